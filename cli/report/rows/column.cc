#include "cli/report/rows/column.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/report/facts/theory.h"
#include "cli/report/rows/layer_group.h"
#include "cli/report/rows/picture_data.h"
#include "cli/report/rows/roofs.h"

namespace rfinject::cli {
namespace {

// A ratio whose divisor is 0 has no value.
Cell Ratio(double value, double divisor) { return divisor > 0 ? Cell{value} : Cell{}; }
// What follows from the roofs has no value where the machine's roofs are not known.
bool HasSlack(const ReportRow& at) { return at.row.sums.least_ns() > 0 && at.row.sums.time_ns() > 0; }
Cell OfRoofs(const ReportRow& at, Cell value) { return at.report.machine.name.empty() ? Cell{} : value; }

constexpr auto kIdentity = std::to_array<ReportColumn>({
    {TextColumn("model", "Class name of the root module; empty for what ran in no layer.", "Model"),
     [](const ReportRow& at) { return TextCell(at.row.model); }},
    {TextColumn("phase",
                "forward, backward, recompute, optimizer, eval, data, communication or other; empty where the row is "
                "of several.",
                "Phase"),
     [](const ReportRow& at) { return TextCell(PhaseName(at.row.phase)); }},
    {TextColumn("layer", "Qualified name of the module; the root's is empty.", "Layer"),
     [](const ReportRow& at) {
       // The root's own path is the empty one, which is not the same as none.
       const bool kept = at.report.by == By::kLayer || at.report.by == By::kKernel;
       return kept && !at.row.model.empty() ? Cell{at.row.layer} : TextCell(at.row.layer);
     }},
    {TextColumn("layer_group", "The layers that are like this one: class, window, channels or features.", "Group"),
     [](const ReportRow& at) { return TextCell(at.row.group); }},
    {CountColumn("layers", "How many layers the row adds up; of rows by class.", "Layers"),
     [](const ReportRow& at) { return KnownCount(at.row.layers); }},
    {TextColumn("op", "The ATen operator's name.", "Operator"),
     [](const ReportRow& at) { return TextCell(at.row.op); }},
    {TextColumn("kernel", "The GPU function's name.", "Kernel"),
     [](const ReportRow& at) { return TextCell(at.row.kernel); }},
    {TextColumn(
         "signature",
         "Types and shapes of an estimated kernel's operands; :nhwc or :nchw where a convolution or batch norm "
         "is not in the usual memory format (channels last for halves, channels first for all else).",
         "Signature"),
     [](const ReportRow& at) { return TextCell(at.row.signature); }},
    {TextColumn("line", "Line of the program that called, file:line.", "Line"),
     [](const ReportRow& at) { return TextCell(at.row.line); }},
    {TextColumn("function", "Function of the program that this line is in.", "Function"),
     [](const ReportRow& at) { return TextCell(at.row.function); }},
    {TextColumn("class", "Class name of the layer.", "Class"),
     [](const ReportRow& at) { return TextCell(at.row.class_name); }},
    {TextColumn("input_shape", "Type and shape of the layer's input.", "Input"),
     [](const ReportRow& at) { return TextCell(at.row.input_shape); }},
    {TextColumn("output_shape", "Type and shape of the layer's output.", "Output"),
     [](const ReportRow& at) { return TextCell(at.row.output_shape); }},
    {CountColumn("parameters", "Parameters of the layer itself; of rows by model, of the whole model.", "Parameters"),
     [](const ReportRow& at) { return Cell{at.row.parameters}; }},
    {UnitColumn("parameter_bytes", "B", "Bytes of these parameters.", "Parameters, bytes"),
     [](const ReportRow& at) { return Cell{at.row.parameter_bytes}; }},
    {UnitColumn("input_bytes", "B", "Bytes of the input shape.", "Input, bytes"),
     [](const ReportRow& at) { return KnownCount(ShapeBytes(at.row.input_shape)); }},
    {UnitColumn("output_bytes", "B", "Bytes of the output shape.", "Output, bytes"),
     [](const ReportRow& at) { return KnownCount(ShapeBytes(at.row.output_shape)); }},
});

// Sums that quantity.h does not hold as they are.
constexpr auto kLaunches = std::to_array<ReportColumn>({
    {CountColumn("launches", "Kernel launches over all measured steps.", "Launches, all steps").Additive(),
     [](const ReportRow& at) { return Cell{at.row.sums.launches}; }},
    {CountColumn("kernel_launches",
                 "Of an estimate on a virtual GPU: launches of PyTorch's and the stand-ins' kernels below the row's "
                 "operators, over all measured steps; not of those in a CUDA graph.",
                 "Kernels launched, all steps")
         .Additive(),
     [](const ReportRow& at) {
       uint64_t launches = 0;
       for (const Row::LaunchedKernel& kernel : at.row.kernels) launches += kernel.launches;
       return KnownCount(launches);
     }},
    {TextColumn("kernels",
                "The same by the kernel's short name: \"vectorized_elementwise_kernel<FillFunctor> 12\", most first.",
                "Kernels below"),
     [](const ReportRow& at) {
       std::string text;
       for (const auto& [name, launches] : at.row.kernels) {
         absl::StrAppend(&text, text.empty() ? "" : ", ", name, " ", launches);
       }
       return TextCell(text);
     }},
});
constexpr ReportColumn kFlop = {
    UnitColumn("flop", "FLOP", "Executed FLOP of all precisions, 2 for a multiply-add, over all measured steps.",
               "FLOP")
        .Additive(),
    [](const ReportRow& at) { return Cell{at.row.sums.total_flop()}; }};
constexpr ReportColumn kLegacyFlop = {
    UnitColumn("flop_mma_tc", "FLOP", "Of the FLOP, those over the older tensor path of Hopper and Blackwell (mma).",
               "FLOP over the mma path")
        .Additive(),
    [](const ReportRow& at) { return KnownCell(at.row.sums.total_legacy_flop()); }};

template <size_t kIndex>
Cell QuantityCell(const ReportRow& at) {
  constexpr auto kQuantity = static_cast<Quantity>(kIndex);
  const double value = at.row.sums[kQuantity];
  // Launches that were never sampled have an unknown time, not a time of 0.
  if (kQuantity == Quantity::kTime && value <= 0 && at.row.time.lacks > 0) return KnownCell(0);
  switch (AllQuantities()[kIndex].zero) {
    case Zero::kUnknown:
      return KnownCell(value);
    case Zero::kUnknownRoofs:
      return OfRoofs(at, value);
    case Zero::kValue:
      break;
  }
  return value;
}

constexpr auto kFollowing = std::to_array<ReportColumn>({
    {ShareColumn("time_share", "The row's part of the run's GPU time.", "Time share").Additive(),
     [](const ReportRow& at) { return Ratio(at.row.time_share, at.row.sums.time_ns()); }},
    {ShareColumn("time_ci95_relative", "Half the 95 % interval of the time over the time; empty for estimates.",
                 "Time ±, 95 %"),
     [](const ReportRow& at) { return KnownCell(at.row.time.relative); }},
    {TextColumn("time_interval", "How that interval was made, or why there is none.", "Time's interval"),
     [](const ReportRow& at) { return TextCell(TrustName(at.row.time.trust)); }},
    {ShareColumn("time_interval_lacks_share", "Part of the time whose spread was not measured.",
                 "Time without spread"),
     [](const ReportRow& at) { return KnownCell(at.row.time.lacks); }},
    {ShareColumn("time_step_spread_relative", "Spread of the time of one step over the time of a step.",
                 "Time, spread of a step"),
     [](const ReportRow& at) { return KnownCell(at.row.time.spread); }},
    {UnitColumn("time_step_p95_ns", "ns", "Time that 95 % of the sampled steps stayed below.", "Time, p95 of a step"),
     [](const ReportRow& at) { return KnownCell(at.row.time.p95); }},
    {ShareColumn("dram_bytes_ci95_relative", "Half the 95 % interval of the DRAM bytes over the bytes.",
                 "Bytes ±, 95 %"),
     [](const ReportRow& at) { return KnownCell(at.row.bytes.relative); }},
    {TextColumn("dram_bytes_interval", "How that interval was made, or why there is none.", "Bytes' interval"),
     [](const ReportRow& at) { return TextCell(TrustName(at.row.bytes.trust)); }},
    {ShareColumn("dram_bytes_interval_lacks_share", "Part of the bytes whose spread was not measured.",
                 "Bytes without spread"),
     [](const ReportRow& at) { return KnownCell(at.row.bytes.lacks); }},
    {PlainColumn("oi_flop_per_byte", "Operational intensity: FLOP over DRAM bytes.", "OI", "FLOP/B").OfCounters(),
     [](const ReportRow& at) { return Ratio(at.row.derived.oi_flop_per_byte, at.row.sums.dram_bytes()); }},
    {PlainColumn("oi_l2_flop_per_byte", "FLOP over L2 bytes.", "OI of L2", "FLOP/B"),
     [](const ReportRow& at) { return Ratio(at.row.derived.oi_l2_flop_per_byte, at.row.sums.l2_bytes()); }},
    {PlainColumn("oi_l1_flop_per_byte", "FLOP over L1 bytes.", "OI of L1", "FLOP/B"),
     [](const ReportRow& at) { return Ratio(at.row.derived.oi_l1_flop_per_byte, at.row.sums.l1_bytes()); }},
    {UnitColumn("performance_flop_per_s", "FLOP/s", "FLOP over GPU time.", "Performance").OfCounters(),
     [](const ReportRow& at) { return Ratio(at.row.derived.performance_flop_per_s, at.row.sums.time_ns()); }},
    {UnitColumn("bandwidth_bytes_per_s", "B/s", "DRAM bytes over GPU time.", "DRAM bandwidth").OfCounters(),
     [](const ReportRow& at) { return Ratio(at.row.derived.bandwidth_bytes_per_s, at.row.sums.time_ns()); }},
    // The cycles of the counters' pass over the time of the same kernels without: what the clock was near. Far below
    // the datasheet's boost clock, the GPU was hot or its power was capped.
    {UnitColumn("gpu_clock_hz", "Hz", "Cycles of the graphics clock over the time of the kernels that were counted.",
                "GPU clock"),
     [](const ReportRow& at) {
       const Sums& sums = at.row.sums;
       return KnownCell(
           sums.time_with_counters_ns() > 0 ? sums[Quantity::kGpuCycles] * 1e9 / sums.time_with_counters_ns() : 0);
     }},
    {UnitColumn("attainable_flop_per_s", "FLOP/s", "FLOP over the least time that the roofs allow.", "Attainable"),
     [](const ReportRow& at) { return Ratio(at.row.derived.attainable_flop_per_s, at.row.sums.least_ns()); }},
    {ShareColumn("attainable_share", "Least time over GPU time: 1 is at the roof.", "Of roof"),
     [](const ReportRow& at) { return OfRoofs(at, Ratio(at.row.derived.attainable_share, at.row.sums.time_ns())); }},
    {UnitColumn("slack_ns", "ns", "GPU time less the least time, over all measured steps.", "Slack, all steps")
         .Additive(),
     [](const ReportRow& at) { return OfRoofs(at, Ratio(at.row.derived.slack_ns, at.row.sums.time_ns())); }},
    {TextColumn("bound", "What keeps most of the time from being shorter: launch, memory, compute, PCIe or NVLink.",
                "Bound by")
         .OfRoofs(),
     [](const ReportRow& at) {
       return at.row.sums.least_ns() > 0 ? TextCell(BoundName(at.row.derived.bound)) : Cell{};
     }},
    {PlainColumn("executed_flop_per_model_flop", "Executed FLOP over model FLOP.", "FLOP / model FLOP"),
     [](const ReportRow& at) { return Ratio(at.row.derived.executed_over_model, at.row.sums.model_flop()); }},
    {TextColumn("flop_reason", "What explains that ratio.", "FLOP explained by"),
     [](const ReportRow& at) { return TextCell(ReasonOf(at.row)); }},
    {PlainColumn("dram_bytes_per_compulsory_byte", "DRAM bytes over compulsory bytes.", "DRAM / compulsory bytes"),
     [](const ReportRow& at) { return Ratio(at.row.derived.dram_over_compulsory, at.row.sums.compulsory_bytes()); }},
    {TextColumn(
         "counters_of",
         "\"layer\" where FLOP and bytes were counted for the layer as a whole and are an equal share a launch "
         "here.",
         "FLOP and bytes of"),
     [](const ReportRow& at) { return TextCell(at.row.bytes.shared ? "layer" : ""); }},
    // A step's, for people; CSV and JSON have the sums and the steps.
    {CountColumn("launches_per_step", "Kernel launches of a step.", "Launches a step").ShownOnly(),
     [](const ReportRow& at) { return Cell{PerStep(at.report, static_cast<double>(at.row.sums.launches))}; }},
    {UnitColumn("time_per_step_ns", "ns", "GPU time of a step.", "GPU time a step").Additive().ShownOnly(),
     [](const ReportRow& at) { return KnownCell(PerStep(at.report, at.row.sums.time_ns())); }},
    {UnitColumn("ideal_time_per_step_ns", "ns", "Least time of a step that the datasheet allows.").ShownOnly(),
     [](const ReportRow& at) { return KnownCell(PerStep(at.report, at.row.sums.ideal_ns())); }},
    {UnitColumn("usual_time_per_step_ns", "ns", "The time that a step's operators are expected to take on this GPU.")
         .ShownOnly(),
     [](const ReportRow& at) { return KnownCell(PerStep(at.report, at.row.sums[Quantity::kUsualTime])); }},
    {PlainColumn("measured_over_usual", "The time of operators over what they usually take on this GPU.").ShownOnly(),
     [](const ReportRow& at) {
       const double usual = at.row.sums[Quantity::kUsualTime];
       return Ratio(at.row.sums[Quantity::kTimeWithUsual] / usual, usual);
     }},
    {UnitColumn("other_gpu_time_per_step_ns", "ns",
                "With --on GPU: the time that a step's operators are expected to take there.")
         .ShownOnly(),
     [](const ReportRow& at) { return KnownCell(PerStep(at.report, at.row.sums[Quantity::kOtherTime])); }},
    {UnitColumn("flop_per_step", "FLOP", "Executed FLOP of a step.").ShownOnly().OfCounters(),
     [](const ReportRow& at) { return KnownCell(PerStep(at.report, at.row.sums.total_flop())); }},
    {UnitColumn("dram_bytes_per_step", "B", "DRAM bytes of a step.").ShownOnly().OfCounters(),
     [](const ReportRow& at) { return KnownCell(PerStep(at.report, at.row.sums.dram_bytes())); }},
    {UnitColumn("model_flop_per_step", "FLOP", "Model FLOP of a step.").ShownOnly(),
     [](const ReportRow& at) { return KnownCell(PerStep(at.report, at.row.sums.model_flop())); }},
    {UnitColumn("compulsory_bytes_per_step", "B", "Compulsory bytes of a step.").ShownOnly(),
     [](const ReportRow& at) { return KnownCell(PerStep(at.report, at.row.sums.compulsory_bytes())); }},
    {UnitColumn("slack_per_step_ns", "ns", "GPU time less the least time, of a step.", "Slack a step")
         .Additive()
         .ShownOnly(),
     [](const ReportRow& at) { return OfRoofs(at, PerStep(at.report, at.row.derived.slack_ns)); }},
    // Where no least time is known, or no time, nothing can be won.
    {ShareColumn("attained_share", "Least time over GPU time: 1 is at the roof.").ShownOnly().OfRoofs(),
     [](const ReportRow& at) { return HasSlack(at) ? Cell{at.row.derived.attainable_share} : Cell{}; }},
    {UnitColumn("to_win_per_step_ns", "ns", "GPU time less the least time, of a step.").ShownOnly().OfRoofs(),
     [](const ReportRow& at) { return HasSlack(at) ? Cell{PerStep(at.report, at.row.derived.slack_ns)} : Cell{}; }},
});

template <size_t... kIndices>
void AddQuantities(std::index_sequence<kIndices...>, std::vector<ReportColumn>* columns) {
  const auto add = [&](const QuantityInfo& quantity, Cell (*value)(const ReportRow&)) {
    if (quantity.id == Quantity::kFlop) columns->push_back(kFlop);
    if (quantity.id == Quantity::kModelFlop) columns->push_back(kLegacyFlop);
    if (quantity.name.empty()) return;
    const ColumnInfo info = UnitColumn(quantity.name, quantity.unit, quantity.help, quantity.title);
    columns->push_back({info.Additive(), value});
  };
  (add(AllQuantities()[kIndices], QuantityCell<kIndices>), ...);
}

std::vector<ReportColumn> MakeColumns() {
  std::vector<ReportColumn> columns(kIdentity.begin(), kIdentity.end());
  columns.insert(columns.end(), kLaunches.begin(), kLaunches.end());
  AddQuantities(std::make_index_sequence<kQuantityCount>(), &columns);
  columns.insert(columns.end(), kFollowing.begin(), kFollowing.end());
  return columns;
}

template <typename RowAt>
RowSet Rows(size_t size, const RowAt& row_at) {
  RowSet set{.size = size, .columns = {}};
  Append(ReportColumns(), row_at, &set);
  return set;
}

constexpr auto kRoofColumns = std::to_array<ColumnOf<RoofLine>>({
    {TextColumn("label"), [](const RoofLine& roof) { return Cell{RoofTitleAndRate(roof)}; }},
    {TextColumn("precision"),
     [](const RoofLine& roof) {
       return roof.peak_flop_per_s > 0 ? TextCell(kPrecisionNames[static_cast<size_t>(roof.precision)]) : Cell{};
     }},
    {TextColumn("path"), [](const RoofLine& roof) { return TextCell(roof.path); }},
    {TextColumn("level"), [](const RoofLine& roof) { return TextCell(MemoryLevelName(roof.level)); }},
    {TextColumn("kind"), [](const RoofLine& roof) { return TextCell(RoofKindName(roof.kind)); }},
    {UnitColumn("peak_flop_per_s", "FLOP/s"), [](const RoofLine& roof) { return KnownCell(roof.peak_flop_per_s); }},
    {UnitColumn("bytes_per_s", "B/s"), [](const RoofLine& roof) { return KnownCell(roof.bytes_per_s); }},
    {PlainColumn("ridge_flop_per_byte", "", "", "FLOP/B"),
     [](const RoofLine& roof) { return KnownCell(RidgeOf(roof)); }},
    {PlainColumn("used"), [](const RoofLine& roof) { return Cell{roof.used}; }},
});

constexpr auto kDeviceColumns = std::to_array<ColumnOf<DeviceInfo>>({
    {CountColumn("index"), [](const DeviceInfo& device) { return Cell{uint64_t{device.index}}; }},
    {TextColumn("name"), [](const DeviceInfo& device) { return TextCell(device.name); }},
    {TextColumn("chip"), [](const DeviceInfo& device) { return TextCell(device.chip); }},
    {TextColumn("uuid"), [](const DeviceInfo& device) { return TextCell(device.uuid); }},
    {TextColumn("compute_capability"),
     [](const DeviceInfo& device) {
       return device.cc_major == 0 ? Cell{}
                                   : Cell{std::to_string(device.cc_major) + "." + std::to_string(device.cc_minor)};
     }},
    {CountColumn("sm_count"), [](const DeviceInfo& device) { return KnownCount(device.sm_count); }},
    {CountColumn("sm_clock_khz"), [](const DeviceInfo& device) { return KnownCount(device.sm_clock_khz); }},
    {CountColumn("memory_clock_khz"), [](const DeviceInfo& device) { return KnownCount(device.memory_clock_khz); }},
    {CountColumn("memory_bus_bits"), [](const DeviceInfo& device) { return KnownCount(device.memory_bus_bits); }},
    {UnitColumn("memory_bytes", "B"), [](const DeviceInfo& device) { return KnownCount(device.memory_bytes); }},
    {UnitColumn("l2_bytes", "B"), [](const DeviceInfo& device) { return KnownCount(device.l2_bytes); }},
    {PlainColumn("mig"), [](const DeviceInfo& device) { return Cell{device.mig}; }},
    // GDDR pays for it with bandwidth that the datasheet still has.
    {PlainColumn("ecc"), [](const DeviceInfo& device) { return device.ecc == 0 ? Cell{} : Cell{device.ecc == 2}; }},
});

}  // namespace

std::span<const ReportColumn> ReportColumns() {
  static const auto* const columns = new std::vector<ReportColumn>(MakeColumns());
  return *columns;
}

bool IsIdentity(std::string_view column) {
  return std::any_of(kIdentity.begin(), kIdentity.end(), [&](const auto& one) { return one.info.name == column; });
}

bool Keeps(By by, std::string_view column) {
  if (!IsIdentity(column) || column == "model" || column == "phase") return true;
  switch (by) {
    case By::kModel:
      return column == "parameters" || column == "parameter_bytes";
    case By::kPhase:
      return false;
    case By::kOp:
      return column == "op";
    case By::kClass:
      return column == "layer_group" || column == "layers";
    case By::kLayer:
      return column != "layers" && column != "op" && column != "kernel" && column != "signature" &&
             column != "line" && column != "function";
    case By::kSource:
      return column == "line" || column == "function";
    case By::kKernel:
      break;
  }
  return column != "line" && column != "function" && column != "layers";
}

RowSet RowsOf(const Report& report, std::span<const Row> rows) {
  return Rows(rows.size(), [&report, rows](size_t i) { return ReportRow{report, rows[i]}; });
}

RowSet RowsOf(const Report& report, std::span<const Row* const> rows) {
  return Rows(rows.size(), [&report, rows](size_t i) { return ReportRow{report, *rows[i]}; });
}

const ReportColumn* FindColumn(std::string_view name) {
  for (const ReportColumn& column : ReportColumns()) {
    if (absl::EqualsIgnoreCase(absl::string_view(name.data(), name.size()),
                               absl::string_view(column.info.name.data(), column.info.name.size()))) {
      return &column;
    }
  }
  return nullptr;
}

void SortRows(const ReportColumn& column, Report* report) {
  const bool text = column.info.kind == Kind::kText;
  std::vector<std::pair<Cell, size_t>> order;
  for (size_t i = 0; i < report->rows.size(); ++i) order.emplace_back(column.value({*report, report->rows[i]}), i);
  const auto known = [](const Cell& cell) { return !std::holds_alternative<std::monostate>(cell); };
  std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    if (known(a.first) != known(b.first)) return known(a.first);
    if (!known(a.first)) return false;
    return text ? std::get<std::string>(a.first) < std::get<std::string>(b.first)
                : NumberIn(a.first) > NumberIn(b.first);
  });
  std::vector<Row> rows;
  rows.reserve(order.size());
  for (const auto& [cell, index] : order) rows.push_back(std::move(report->rows[index]));
  report->rows = std::move(rows);
}

RowSet RoofsOf(const Report& report) { return RowSetOf(kRoofColumns, report.roofs); }

RowSet DevicesOf(const Report& report) { return RowSetOf(kDeviceColumns, report.device.list); }

Row TotalRow(const Report& report) {
  Row row;
  row.sums = report.total.sums;
  row.derived = report.total.derived;
  row.time_share = report.total.sums.time_ns() > 0 ? 1 : 0;
  return row;
}

}  // namespace rfinject::cli
