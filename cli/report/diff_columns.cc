#include <array>
#include <span>
#include <string>
#include <string_view>

#include "cli/report/diff.h"

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
constexpr ColumnInfo HalfWidthColumn(std::string_view name, Kind kind, std::string_view unit = {}) {
  return {.name = name,
          .help = "Half the 95 % interval of the change, of this change alone; 0: exact.",
          .kind = kind,
          .unit = unit};
}
constexpr ColumnInfo VerdictColumn(std::string_view name) {
  return {
      .name = name, .help = "What the change is: real, noise, same, unknown or one side only.", .kind = Kind::kText};
}
constexpr ColumnInfo VisibleColumn(std::string_view name, std::string_view unit) {
  return {.name = name,
          .help = "The smallest change that would have been called real in four of five such pairs.",
          .kind = Kind::kUnit,
          .unit = unit};
}
constexpr ColumnInfo PColumn(std::string_view name) {
  return {.name = name, .help = "Probability that chance alone shows as large a change."};
}
constexpr ColumnInfo IntervalColumn(std::string_view name) {
  return {.name = name, .help = "How the interval was made, or why there is none.", .kind = Kind::kText};
}

// With the unit that the values have: "time_before_ns".
constexpr auto kColumns = std::to_array<ColumnOf<DiffRow>>({
    {{.name = "model", .help = "Class name of the root module; empty for what ran in no layer.", .kind = Kind::kText},
     [](const DiffRow& row) { return TextCell(row.model); }},
    {{.name = "layer", .help = "Qualified name of the module; the root's is empty.", .kind = Kind::kText},
     [](const DiffRow& row) { return row.model.empty() ? TextCell(row.layer) : Cell{row.layer}; }},
    {{.name = "phase",
      .help = "forward, backward, recompute, optimizer, eval, data, communication or other.",
      .kind = Kind::kText},
     [](const DiffRow& row) { return TextCell(PhaseName(row.phase)); }},
    {{.name = "op", .help = "The ATen operator's name; with --by op and kernel.", .kind = Kind::kText},
     [](const DiffRow& row) { return TextCell(row.op); }},
    {{.name = "time_before_ns",
      .help = "GPU time in A, a step where both runs know their steps; of an estimate the expected one.",
      .kind = Kind::kUnit,
      .unit = "ns"},
     Before<Compared::kTime>},
    {{.name = "time_after_ns", .help = "GPU time in B, in the same terms.", .kind = Kind::kUnit, .unit = "ns"},
     After<Compared::kTime>},
    {HalfWidthColumn("time_ci95_ns", Kind::kUnit, "ns"), HalfWidth<Compared::kTime>},
    {VerdictColumn("time_change"), VerdictOf<Compared::kTime>},
    {{.name = "flop_before",
      .help = "Executed FLOP in A; empty where A has no such row.",
      .kind = Kind::kUnit,
      .unit = "FLOP"},
     Before<Compared::kFlop>},
    {{.name = "flop_after",
      .help = "Executed FLOP in B; empty where B has no such row.",
      .kind = Kind::kUnit,
      .unit = "FLOP"},
     After<Compared::kFlop>},
    {HalfWidthColumn("flop_ci95", Kind::kUnit, "FLOP"), HalfWidth<Compared::kFlop>},
    {VerdictColumn("flop_change"), VerdictOf<Compared::kFlop>},
    {{.name = "dram_bytes_before",
      .help = "DRAM bytes in A; empty where A has no such row.",
      .kind = Kind::kUnit,
      .unit = "B"},
     Before<Compared::kBytes>},
    {{.name = "dram_bytes_after",
      .help = "DRAM bytes in B; empty where B has no such row.",
      .kind = Kind::kUnit,
      .unit = "B"},
     After<Compared::kBytes>},
    {HalfWidthColumn("dram_bytes_ci95", Kind::kUnit, "B"), HalfWidth<Compared::kBytes>},
    {VerdictColumn("dram_bytes_change"), VerdictOf<Compared::kBytes>},
    {{.name = "oi_before_flop_per_byte", .help = "FLOP over DRAM bytes in A.", .unit = "FLOP/B"},
     Before<Compared::kOi>},
    {{.name = "oi_after_flop_per_byte", .help = "FLOP over DRAM bytes in B.", .unit = "FLOP/B"},
     After<Compared::kOi>},
    {HalfWidthColumn("oi_ci95_flop_per_byte", Kind::kPlain, "FLOP/B"), HalfWidth<Compared::kOi>},
    {VerdictColumn("oi_change"), VerdictOf<Compared::kOi>},
    {{.name = "attainable_share_before",
      .help = "Least time over GPU time in A; empty where A has no such row.",
      .kind = Kind::kShare},
     Before<Compared::kShare>},
    {{.name = "attainable_share_after",
      .help = "Least time over GPU time in B; empty where B has no such row.",
      .kind = Kind::kShare},
     After<Compared::kShare>},
    {HalfWidthColumn("attainable_share_ci95", Kind::kShare), HalfWidth<Compared::kShare>},
    {VerdictColumn("attainable_share_change"), VerdictOf<Compared::kShare>},
    {VisibleColumn("time_visible_ns", "ns"), Visible<Compared::kTime>},
    {PColumn("time_p"), POf<Compared::kTime>},
    {IntervalColumn("time_interval"), IntervalCell<Compared::kTime>},
    {VisibleColumn("dram_bytes_visible", "B"), Visible<Compared::kBytes>},
    {PColumn("dram_bytes_p"), POf<Compared::kBytes>},
    {IntervalColumn("dram_bytes_interval"), IntervalCell<Compared::kBytes>},
    {{.name = "ideal_time_before_ns",
      .help = "Of an estimate: what the datasheet allows, in A.",
      .kind = Kind::kUnit,
      .unit = "ns"},
     IdealBefore},
    {{.name = "ideal_time_after_ns",
      .help = "Of an estimate: what the datasheet allows, in B.",
      .kind = Kind::kUnit,
      .unit = "ns"},
     IdealAfter},
});

}  // namespace

RowSet RowsOf(std::span<const DiffRow> rows) {
  RowSet set;
  set.size = rows.size();
  Append(
      std::span<const ColumnOf<DiffRow>>(kColumns), [rows](size_t i) -> const DiffRow& { return rows[i]; }, &set);
  return set;
}

}  // namespace rfinject::cli
