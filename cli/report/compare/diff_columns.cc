#include <array>
#include <span>
#include <string>
#include <string_view>

#include "cli/report/compare/diff.h"

namespace rfinject::cli {
namespace {

// Cells of a quantity that is compared.
template <Compared kQuantity>
Cell Before(const DiffRow& row) {
  return row.in_before ? Cell{row[kQuantity].before} : Cell{};
}
template <Compared kQuantity>
Cell After(const DiffRow& row) {
  return row.in_after ? Cell{row[kQuantity].after} : Cell{};
}
// Of an estimate whose times are expected ones, beside them.
Cell IdealBefore(const DiffRow& row) { return KnownCell(row.in_before ? row.before.ideal_ns() : 0); }
Cell IdealAfter(const DiffRow& row) { return KnownCell(row.in_after ? row.after.ideal_ns() : 0); }
template <Compared kQuantity>
Cell HalfWidth(const DiffRow& row) {
  return row[kQuantity].half_width;
}
template <Compared kQuantity>
Cell Visible(const DiffRow& row) {
  return KnownCell(row[kQuantity].visible);
}
template <Compared kQuantity>
Cell POf(const DiffRow& row) {
  return row[kQuantity].standard > 0 ? Cell{row[kQuantity].p} : Cell{};
}
template <Compared kQuantity>
Cell IntervalCell(const DiffRow& row) {
  return row.in_before && row.in_after ? TextCell(TrustName(row[kQuantity].trust)) : Cell{};
}
template <Compared kQuantity>
Cell VerdictOf(const DiffRow& row) {
  return std::string(VerdictName(row[kQuantity].verdict));
}

// Columns that several of the quantities have.
constexpr std::string_view kHalfWidthHelp = "Half the 95 % interval of the change, of this change alone; 0: exact.";
constexpr ColumnInfo VerdictColumn(std::string_view name) {
  return TextColumn(name, "What the change is: real, noise, same, unknown or one side only.");
}
constexpr ColumnInfo VisibleColumn(std::string_view name, std::string_view unit) {
  return UnitColumn(name, unit, "The smallest change that would have been called real in four of five such pairs.");
}
constexpr ColumnInfo PColumn(std::string_view name) {
  return PlainColumn(name, "Probability that chance alone shows as large a change.");
}
constexpr ColumnInfo IntervalColumn(std::string_view name) {
  return TextColumn(name, "How the interval was made, or why there is none.");
}

// With the unit that the values have: "time_before_ns".
constexpr auto kDiffColumns = std::to_array<ColumnOf<DiffRow>>({
    {TextColumn("model", "Class name of the root module; empty for what ran in no layer."),
     [](const DiffRow& row) { return TextCell(row.model); }},
    {TextColumn("layer", "Qualified name of the module; the root's is empty."),
     [](const DiffRow& row) { return row.model.empty() ? TextCell(row.layer) : Cell{row.layer}; }},
    {TextColumn("phase", "forward, backward, recompute, optimizer, eval, data, communication or other."),
     [](const DiffRow& row) { return TextCell(PhaseName(row.phase)); }},
    {TextColumn("op", "The ATen operator's name; with --by op and kernel."),
     [](const DiffRow& row) { return TextCell(row.op); }},
    {UnitColumn("time_before_ns", "ns",
                "GPU time in A, a step where both runs know their steps; of an estimate the expected one."),
     Before<Compared::kTime>},
    {UnitColumn("time_after_ns", "ns", "GPU time in B, in the same terms."), After<Compared::kTime>},
    {UnitColumn("time_ci95_ns", "ns", kHalfWidthHelp), HalfWidth<Compared::kTime>},
    {VerdictColumn("time_change"), VerdictOf<Compared::kTime>},
    {UnitColumn("flop_before", "FLOP", "Executed FLOP in A; empty where A has no such row."),
     Before<Compared::kFlop>},
    {UnitColumn("flop_after", "FLOP", "Executed FLOP in B; empty where B has no such row."), After<Compared::kFlop>},
    {UnitColumn("flop_ci95", "FLOP", kHalfWidthHelp), HalfWidth<Compared::kFlop>},
    {VerdictColumn("flop_change"), VerdictOf<Compared::kFlop>},
    {UnitColumn("dram_bytes_before", "B", "DRAM bytes in A; empty where A has no such row."),
     Before<Compared::kBytes>},
    {UnitColumn("dram_bytes_after", "B", "DRAM bytes in B; empty where B has no such row."), After<Compared::kBytes>},
    {UnitColumn("dram_bytes_ci95", "B", kHalfWidthHelp), HalfWidth<Compared::kBytes>},
    {VerdictColumn("dram_bytes_change"), VerdictOf<Compared::kBytes>},
    {PlainColumn("oi_before_flop_per_byte", "FLOP over DRAM bytes in A.", "", "FLOP/B"), Before<Compared::kOi>},
    {PlainColumn("oi_after_flop_per_byte", "FLOP over DRAM bytes in B.", "", "FLOP/B"), After<Compared::kOi>},
    {PlainColumn("oi_ci95_flop_per_byte", kHalfWidthHelp, "", "FLOP/B"), HalfWidth<Compared::kOi>},
    {VerdictColumn("oi_change"), VerdictOf<Compared::kOi>},
    {ShareColumn("attainable_share_before", "Least time over GPU time in A; empty where A has no such row."),
     Before<Compared::kShare>},
    {ShareColumn("attainable_share_after", "Least time over GPU time in B; empty where B has no such row."),
     After<Compared::kShare>},
    {ShareColumn("attainable_share_ci95", kHalfWidthHelp), HalfWidth<Compared::kShare>},
    {VerdictColumn("attainable_share_change"), VerdictOf<Compared::kShare>},
    {VisibleColumn("time_visible_ns", "ns"), Visible<Compared::kTime>},
    {PColumn("time_p"), POf<Compared::kTime>},
    {IntervalColumn("time_interval"), IntervalCell<Compared::kTime>},
    {VisibleColumn("dram_bytes_visible", "B"), Visible<Compared::kBytes>},
    {PColumn("dram_bytes_p"), POf<Compared::kBytes>},
    {IntervalColumn("dram_bytes_interval"), IntervalCell<Compared::kBytes>},
    {UnitColumn("ideal_time_before_ns", "ns", "Of an estimate: what the datasheet allows, in A."), IdealBefore},
    {UnitColumn("ideal_time_after_ns", "ns", "Of an estimate: what the datasheet allows, in B."), IdealAfter},
});

}  // namespace

RowSet RowsOf(std::span<const DiffRow> rows) { return RowSetOf(kDiffColumns, rows); }

}  // namespace rfinject::cli
