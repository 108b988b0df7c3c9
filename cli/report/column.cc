#include "cli/report/column.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/report/roofs.h"
#include "cli/report/theory.h"

namespace rfinject::cli {
namespace {

// A ratio whose divisor is 0 has no value.
Cell Ratio(double value, double divisor) { return divisor > 0 ? Cell{value} : Cell{}; }
// What follows from the roofs has no value where the machine's roofs are not known.
Cell OfRoofs(const ReportRow& at, Cell value) { return at.report.machine.name.empty() ? Cell{} : value; }
// The amount of a step; where the number of steps is not known, that of the whole run.
double PerStep(const ReportRow& at, double value) {
  return at.report.steps > 0 ? value / static_cast<double>(at.report.steps) : value;
}

constexpr auto kIdentity = std::to_array<ReportColumn>({
    {{.name = "model",
      .help = "Class name of the root module; empty for what ran in no layer.",
      .title = "Model",
      .kind = Kind::kText},
     [](const ReportRow& at) { return TextCell(at.row.model); }},
    {{.name = "phase",
      .help = "forward, backward, recompute, optimizer, eval, data, communication or other; empty where the row is "
              "of several.",
      .title = "Phase",
      .kind = Kind::kText},
     [](const ReportRow& at) { return TextCell(PhaseName(at.row.phase)); }},
    {{.name = "layer",
      .help = "Qualified name of the module; the root's is empty.",
      .title = "Layer",
      .kind = Kind::kText},
     [](const ReportRow& at) {
       // The root's own path is the empty one, which is not the same as none.
       const bool kept = at.report.by == By::kLayer || at.report.by == By::kKernel;
       return kept && !at.row.model.empty() ? Cell{at.row.layer} : TextCell(at.row.layer);
     }},
    {{.name = "layer_group",
      .help = "The layers that are like this one: class, window, channels or features.",
      .title = "Group",
      .kind = Kind::kText},
     [](const ReportRow& at) { return TextCell(at.row.group); }},
    {{.name = "layers",
      .help = "How many layers the row adds up; of rows by class.",
      .title = "Layers",
      .kind = Kind::kCount},
     [](const ReportRow& at) { return KnownCount(at.row.layers); }},
    {{.name = "op", .help = "The ATen operator's name.", .title = "Operator", .kind = Kind::kText},
     [](const ReportRow& at) { return TextCell(at.row.op); }},
    {{.name = "kernel", .help = "The GPU function's name.", .title = "Kernel", .kind = Kind::kText},
     [](const ReportRow& at) { return TextCell(at.row.kernel); }},
    {{.name = "signature",
      .help = "Types and shapes of an estimated kernel's operands; :nhwc or :nchw where a convolution or batch norm "
              "is not in the usual memory format (channels last for halves, channels first for all else).",
      .title = "Signature",
      .kind = Kind::kText},
     [](const ReportRow& at) { return TextCell(at.row.signature); }},
    {{.name = "line", .help = "Line of the program that called, file:line.", .title = "Line", .kind = Kind::kText},
     [](const ReportRow& at) { return TextCell(at.row.line); }},
    {{.name = "function",
      .help = "Function of the program that this line is in.",
      .title = "Function",
      .kind = Kind::kText},
     [](const ReportRow& at) { return TextCell(at.row.function); }},
    {{.name = "class", .help = "Class name of the layer.", .title = "Class", .kind = Kind::kText},
     [](const ReportRow& at) { return TextCell(at.row.class_name); }},
    {{.name = "input_shape", .help = "Type and shape of the layer's input.", .title = "Input", .kind = Kind::kText},
     [](const ReportRow& at) { return TextCell(at.row.input_shape); }},
    {{.name = "output_shape",
      .help = "Type and shape of the layer's output.",
      .title = "Output",
      .kind = Kind::kText},
     [](const ReportRow& at) { return TextCell(at.row.output_shape); }},
    {{.name = "parameters",
      .help = "Parameters of the layer itself; of rows by model, of the whole model.",
      .title = "Parameters",
      .kind = Kind::kCount},
     [](const ReportRow& at) { return Cell{at.row.parameters}; }},
    {{.name = "parameter_bytes",
      .help = "Bytes of these parameters.",
      .title = "Parameters, bytes",
      .kind = Kind::kUnit,
      .unit = "B"},
     [](const ReportRow& at) { return Cell{at.row.parameter_bytes}; }},
    {{.name = "input_bytes",
      .help = "Bytes of the input shape.",
      .title = "Input, bytes",
      .kind = Kind::kUnit,
      .unit = "B"},
     [](const ReportRow& at) { return KnownCount(ShapeBytes(at.row.input_shape)); }},
    {{.name = "output_bytes",
      .help = "Bytes of the output shape.",
      .title = "Output, bytes",
      .kind = Kind::kUnit,
      .unit = "B"},
     [](const ReportRow& at) { return KnownCount(ShapeBytes(at.row.output_shape)); }},
});

// Sums that quantity.h does not hold as they are.
constexpr ReportColumn kLaunches = {{.name = "launches",
                                     .help = "Kernel launches over all measured steps.",
                                     .title = "Launches, all steps",
                                     .kind = Kind::kCount,
                                     .additive = true},
                                    [](const ReportRow& at) { return Cell{at.row.sums.launches}; }};
constexpr auto kBelow = std::to_array<ReportColumn>({
    {{.name = "kernel_launches",
      .help = "Of an estimate on a virtual GPU: launches of PyTorch's and the stand-ins' kernels below the row's "
              "operators, over all measured steps; not of those in a CUDA graph.",
      .title = "Kernels launched, all steps",
      .kind = Kind::kCount,
      .additive = true},
     [](const ReportRow& at) { return KnownCount(at.row.kernel_launches); }},
    {{.name = "kernels",
      .help = "The same by the kernel's short name: \"vectorized_elementwise_kernel<FillFunctor> 12\", most first.",
      .title = "Kernels below",
      .kind = Kind::kText},
     [](const ReportRow& at) {
       std::string text;
       for (const auto& [name, launches] : at.row.kernels) {
         absl::StrAppend(&text, text.empty() ? "" : ", ", name, " ", launches);
       }
       return TextCell(text);
     }},
});
constexpr ReportColumn kFlop = {
    {.name = "flop",
     .help = "Executed FLOP of all precisions, 2 for a multiply-add, over all measured steps.",
     .title = "FLOP",
     .kind = Kind::kUnit,
     .unit = "FLOP",
     .additive = true},
    [](const ReportRow& at) { return Cell{at.row.sums.total_flop()}; }};
constexpr ReportColumn kLegacyFlop = {
    {.name = "flop_mma_tc",
     .help = "Of the FLOP, those over the older tensor path of Hopper and Blackwell (mma).",
     .title = "FLOP over the mma path",
     .kind = Kind::kUnit,
     .unit = "FLOP",
     .additive = true},
    [](const ReportRow& at) { return KnownCell(at.row.sums.total_legacy_flop()); }};

template <size_t kIndex>
Cell QuantityCell(const ReportRow& at) {
  constexpr auto kQuantity = static_cast<Quantity>(kIndex);
  const double value = at.row.sums[kQuantity];
  // Launches that were never sampled have a time that nobody knows, not none.
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
    {{.name = "time_share",
      .help = "The row's part of the run's GPU time.",
      .title = "Time share",
      .kind = Kind::kShare,
      .additive = true},
     [](const ReportRow& at) { return Ratio(at.row.time_share, at.row.sums.time_ns()); }},
    {{.name = "time_ci95_relative",
      .help = "Half the 95 % interval of the time over the time; empty for estimates.",
      .title = "Time ±, 95 %",
      .kind = Kind::kShare},
     [](const ReportRow& at) { return KnownCell(at.row.time.relative); }},
    {{.name = "time_interval",
      .help = "How that interval was made, or why there is none.",
      .title = "Time's interval",
      .kind = Kind::kText},
     [](const ReportRow& at) { return TextCell(TrustName(at.row.time.trust)); }},
    {{.name = "time_interval_lacks_share",
      .help = "Part of the time whose spread was not measured.",
      .title = "Time without spread",
      .kind = Kind::kShare},
     [](const ReportRow& at) { return KnownCell(at.row.time.lacks); }},
    {{.name = "time_step_spread_relative",
      .help = "Spread of the time of one step over the time of a step.",
      .title = "Time, spread of a step",
      .kind = Kind::kShare},
     [](const ReportRow& at) { return KnownCell(at.row.time.spread); }},
    {{.name = "time_step_p95_ns",
      .help = "Time that 95 % of the sampled steps stayed below.",
      .title = "Time, p95 of a step",
      .kind = Kind::kUnit,
      .unit = "ns"},
     [](const ReportRow& at) { return KnownCell(at.row.time.p95); }},
    {{.name = "dram_bytes_ci95_relative",
      .help = "Half the 95 % interval of the DRAM bytes over the bytes.",
      .title = "Bytes ±, 95 %",
      .kind = Kind::kShare},
     [](const ReportRow& at) { return KnownCell(at.row.bytes.relative); }},
    {{.name = "dram_bytes_interval",
      .help = "How that interval was made, or why there is none.",
      .title = "Bytes' interval",
      .kind = Kind::kText},
     [](const ReportRow& at) { return TextCell(TrustName(at.row.bytes.trust)); }},
    {{.name = "dram_bytes_interval_lacks_share",
      .help = "Part of the bytes whose spread was not measured.",
      .title = "Bytes without spread",
      .kind = Kind::kShare},
     [](const ReportRow& at) { return KnownCell(at.row.bytes.lacks); }},
    {{.name = "oi_flop_per_byte",
      .help = "Operational intensity: FLOP over DRAM bytes.",
      .title = "OI",
      .unit = "FLOP/B",
      .of_counters = true},
     [](const ReportRow& at) { return Ratio(at.row.derived.oi_flop_per_byte, at.row.sums.dram_bytes()); }},
    {{.name = "oi_l2_flop_per_byte", .help = "FLOP over L2 bytes.", .title = "OI of L2", .unit = "FLOP/B"},
     [](const ReportRow& at) { return Ratio(at.row.derived.oi_l2_flop_per_byte, at.row.sums.l2_bytes()); }},
    {{.name = "oi_l1_flop_per_byte", .help = "FLOP over L1 bytes.", .title = "OI of L1", .unit = "FLOP/B"},
     [](const ReportRow& at) { return Ratio(at.row.derived.oi_l1_flop_per_byte, at.row.sums.l1_bytes()); }},
    {{.name = "performance_flop_per_s",
      .help = "FLOP over GPU time.",
      .title = "Performance",
      .kind = Kind::kUnit,
      .unit = "FLOP/s",
      .of_counters = true},
     [](const ReportRow& at) { return Ratio(at.row.derived.performance_flop_per_s, at.row.sums.time_ns()); }},
    {{.name = "bandwidth_bytes_per_s",
      .help = "DRAM bytes over GPU time.",
      .title = "DRAM bandwidth",
      .kind = Kind::kUnit,
      .unit = "B/s",
      .of_counters = true},
     [](const ReportRow& at) { return Ratio(at.row.derived.bandwidth_bytes_per_s, at.row.sums.time_ns()); }},
    // The cycles of the counters' pass over the time of the same kernels without: what the clock was near. Far below
    // the datasheet's boost clock, the GPU was hot or its power was capped.
    {{.name = "gpu_clock_hz",
      .help = "Cycles of the graphics clock over the time of the kernels that were counted.",
      .title = "GPU clock",
      .kind = Kind::kUnit,
      .unit = "Hz"},
     [](const ReportRow& at) {
       const Sums& sums = at.row.sums;
       return KnownCell(
           sums.time_with_counters_ns() > 0 ? sums[Quantity::kGpuCycles] * 1e9 / sums.time_with_counters_ns() : 0);
     }},
    {{.name = "attainable_flop_per_s",
      .help = "FLOP over the least time that the roofs allow.",
      .title = "Attainable",
      .kind = Kind::kUnit,
      .unit = "FLOP/s"},
     [](const ReportRow& at) { return Ratio(at.row.derived.attainable_flop_per_s, at.row.sums.least_ns()); }},
    {{.name = "attainable_share",
      .help = "Least time over GPU time: 1 is at the roof.",
      .title = "Of roof",
      .kind = Kind::kShare},
     [](const ReportRow& at) { return OfRoofs(at, Ratio(at.row.derived.attainable_share, at.row.sums.time_ns())); }},
    {{.name = "slack_ns",
      .help = "GPU time less the least time, over all measured steps.",
      .title = "Slack, all steps",
      .kind = Kind::kUnit,
      .unit = "ns",
      .additive = true},
     [](const ReportRow& at) { return OfRoofs(at, Ratio(at.row.derived.slack_ns, at.row.sums.time_ns())); }},
    {{.name = "bound",
      .help = "What keeps most of the time from being shorter: launch, memory, compute, PCIe or NVLink.",
      .title = "Bound by",
      .kind = Kind::kText,
      .of_roofs = true},
     [](const ReportRow& at) {
       return at.row.sums.least_ns() > 0 ? TextCell(BoundName(at.row.derived.bound)) : Cell{};
     }},
    {{.name = "executed_flop_per_model_flop", .help = "Executed FLOP over model FLOP.", .title = "FLOP / model FLOP"},
     [](const ReportRow& at) { return Ratio(at.row.derived.executed_over_model, at.row.sums.model_flop()); }},
    {{.name = "flop_reason", .help = "What explains that ratio.", .title = "FLOP explained by", .kind = Kind::kText},
     [](const ReportRow& at) { return TextCell(ReasonOf(at.row)); }},
    {{.name = "dram_bytes_per_compulsory_byte",
      .help = "DRAM bytes over compulsory bytes.",
      .title = "DRAM / compulsory bytes"},
     [](const ReportRow& at) { return Ratio(at.row.derived.dram_over_compulsory, at.row.sums.compulsory_bytes()); }},
    {{.name = "counters_of",
      .help = "\"layer\" where FLOP and bytes were counted for the layer as a whole and are an equal share a launch "
              "here.",
      .title = "FLOP and bytes of",
      .kind = Kind::kText},
     [](const ReportRow& at) { return TextCell(at.row.counters_shared ? "layer" : ""); }},
    // A step's, for people; CSV and JSON have the sums and the steps.
    {{.name = "launches_per_step",
      .help = "Kernel launches of a step.",
      .title = "Launches a step",
      .kind = Kind::kCount,
      .data = false},
     [](const ReportRow& at) { return Cell{PerStep(at, static_cast<double>(at.row.sums.launches))}; }},
    {{.name = "time_per_step_ns",
      .help = "GPU time of a step.",
      .title = "GPU time a step",
      .kind = Kind::kUnit,
      .unit = "ns",
      .additive = true,
      .data = false},
     [](const ReportRow& at) { return KnownCell(PerStep(at, at.row.sums.time_ns())); }},
    {{.name = "ideal_time_per_step_ns",
      .help = "Least time of a step that the datasheet allows.",
      .kind = Kind::kUnit,
      .unit = "ns",
      .data = false},
     [](const ReportRow& at) { return KnownCell(PerStep(at, at.row.sums.ideal_ns())); }},
    {{.name = "usual_time_per_step_ns",
      .help = "Of a recording: the time that a step's operators are expected to take on this GPU.",
      .kind = Kind::kUnit,
      .unit = "ns",
      .data = false},
     [](const ReportRow& at) { return KnownCell(PerStep(at, at.row.sums[Quantity::kUsualTime])); }},
    {{.name = "measured_over_usual",
      .help = "Of a recording: the time of its operators over what they usually take on this GPU.",
      .data = false},
     [](const ReportRow& at) {
       const double usual = at.row.sums[Quantity::kUsualTime];
       return Ratio(at.row.sums[Quantity::kTimeWithUsual] / usual, usual);
     }},
    {{.name = "flop_per_step",
      .help = "Executed FLOP of a step.",
      .kind = Kind::kUnit,
      .unit = "FLOP",
      .data = false,
      .of_counters = true},
     [](const ReportRow& at) { return KnownCell(PerStep(at, at.row.sums.total_flop())); }},
    {{.name = "dram_bytes_per_step",
      .help = "DRAM bytes of a step.",
      .kind = Kind::kUnit,
      .unit = "B",
      .data = false,
      .of_counters = true},
     [](const ReportRow& at) { return KnownCell(PerStep(at, at.row.sums.dram_bytes())); }},
    {{.name = "model_flop_per_step",
      .help = "Model FLOP of a step.",
      .kind = Kind::kUnit,
      .unit = "FLOP",
      .data = false},
     [](const ReportRow& at) { return KnownCell(PerStep(at, at.row.sums.model_flop())); }},
    {{.name = "compulsory_bytes_per_step",
      .help = "Compulsory bytes of a step.",
      .kind = Kind::kUnit,
      .unit = "B",
      .data = false},
     [](const ReportRow& at) { return KnownCell(PerStep(at, at.row.sums.compulsory_bytes())); }},
    {{.name = "slack_per_step_ns",
      .help = "GPU time less the least time, of a step.",
      .title = "Slack a step",
      .kind = Kind::kUnit,
      .unit = "ns",
      .additive = true,
      .data = false},
     [](const ReportRow& at) { return OfRoofs(at, PerStep(at, at.row.derived.slack_ns)); }},
    // Where no least time is known, nothing can be won.
    {{.name = "attained_share",
      .help = "Least time over GPU time: 1 is at the roof.",
      .kind = Kind::kShare,
      .data = false,
      .of_roofs = true},
     [](const ReportRow& at) { return at.row.sums.least_ns() > 0 ? Cell{at.row.derived.attainable_share} : Cell{}; }},
    {{.name = "to_win_per_step_ns",
      .help = "GPU time less the least time, of a step.",
      .kind = Kind::kUnit,
      .unit = "ns",
      .data = false,
      .of_roofs = true},
     [](const ReportRow& at) {
       return at.row.sums.least_ns() > 0 ? Cell{PerStep(at, at.row.derived.slack_ns)} : Cell{};
     }},
});

template <size_t... kIndices>
std::vector<ReportColumn> QuantityColumns(std::index_sequence<kIndices...>) {
  std::vector<ReportColumn> columns;
  const auto add = [&](const QuantityInfo& quantity, Cell (*value)(const ReportRow&)) {
    if (quantity.name.empty()) return;
    columns.push_back({{.name = quantity.name,
                        .help = quantity.help,
                        .title = quantity.title,
                        .kind = Kind::kUnit,
                        .unit = quantity.unit,
                        .additive = true},
                       value});
  };
  (add(AllQuantities()[kIndices], QuantityCell<kIndices>), ...);
  return columns;
}

std::vector<ReportColumn> MakeColumns() {
  std::vector<ReportColumn> columns(kIdentity.begin(), kIdentity.end());
  columns.push_back(kLaunches);
  columns.insert(columns.end(), kBelow.begin(), kBelow.end());
  for (const ReportColumn& column : QuantityColumns(std::make_index_sequence<kQuantityCount>())) {
    if (column.info.name == AllQuantities()[static_cast<size_t>(Quantity::kFlop)].name) columns.push_back(kFlop);
    if (column.info.name == AllQuantities()[static_cast<size_t>(Quantity::kModelFlop)].name) {
      columns.push_back(kLegacyFlop);
    }
    columns.push_back(column);
  }
  columns.insert(columns.end(), kFollowing.begin(), kFollowing.end());
  return columns;
}

constexpr auto kRoofColumns = std::to_array<ColumnOf<RoofLine>>({
    {{.name = "label", .kind = Kind::kText}, [](const RoofLine& roof) { return Cell{RoofTitleAndRate(roof)}; }},
    {{.name = "precision", .kind = Kind::kText},
     [](const RoofLine& roof) {
       return roof.peak_flop_per_s > 0 ? TextCell(kPrecisionNames[static_cast<size_t>(roof.precision)]) : Cell{};
     }},
    {{.name = "path", .kind = Kind::kText}, [](const RoofLine& roof) { return TextCell(roof.path); }},
    {{.name = "level", .kind = Kind::kText},
     [](const RoofLine& roof) { return TextCell(MemoryLevelName(roof.level)); }},
    {{.name = "kind", .kind = Kind::kText}, [](const RoofLine& roof) { return TextCell(RoofKindName(roof.kind)); }},
    {{.name = "peak_flop_per_s", .kind = Kind::kUnit, .unit = "FLOP/s"},
     [](const RoofLine& roof) { return KnownCell(roof.peak_flop_per_s); }},
    {{.name = "bytes_per_s", .kind = Kind::kUnit, .unit = "B/s"},
     [](const RoofLine& roof) { return KnownCell(roof.bytes_per_s); }},
    {{.name = "ridge_flop_per_byte", .unit = "FLOP/B"},
     [](const RoofLine& roof) { return KnownCell(roof.ridge_flop_per_byte); }},
    {{.name = "used"}, [](const RoofLine& roof) { return Cell{roof.used}; }},
});

constexpr auto kDeviceColumns = std::to_array<ColumnOf<DeviceInfo>>({
    {{.name = "index", .kind = Kind::kCount}, [](const DeviceInfo& device) { return Cell{uint64_t{device.index}}; }},
    {{.name = "name", .kind = Kind::kText}, [](const DeviceInfo& device) { return TextCell(device.name); }},
    {{.name = "chip", .kind = Kind::kText}, [](const DeviceInfo& device) { return TextCell(device.chip); }},
    {{.name = "uuid", .kind = Kind::kText}, [](const DeviceInfo& device) { return TextCell(device.uuid); }},
    {{.name = "compute_capability", .kind = Kind::kText},
     [](const DeviceInfo& device) {
       return device.cc_major == 0 ? Cell{}
                                   : Cell{std::to_string(device.cc_major) + "." + std::to_string(device.cc_minor)};
     }},
    {{.name = "sm_count", .kind = Kind::kCount},
     [](const DeviceInfo& device) { return KnownCount(device.sm_count); }},
    {{.name = "sm_clock_khz", .kind = Kind::kCount},
     [](const DeviceInfo& device) { return KnownCount(device.sm_clock_khz); }},
    {{.name = "memory_clock_khz", .kind = Kind::kCount},
     [](const DeviceInfo& device) { return KnownCount(device.memory_clock_khz); }},
    {{.name = "memory_bus_bits", .kind = Kind::kCount},
     [](const DeviceInfo& device) { return KnownCount(device.memory_bus_bits); }},
    {{.name = "memory_bytes", .kind = Kind::kUnit, .unit = "B"},
     [](const DeviceInfo& device) { return KnownCount(device.memory_bytes); }},
    {{.name = "l2_bytes", .kind = Kind::kUnit, .unit = "B"},
     [](const DeviceInfo& device) { return KnownCount(device.l2_bytes); }},
    {{.name = "mig"}, [](const DeviceInfo& device) { return Cell{device.mig}; }},
    // GDDR pays for it with bandwidth that the datasheet still has.
    {{.name = "ecc"}, [](const DeviceInfo& device) { return device.ecc == 0 ? Cell{} : Cell{device.ecc == 2}; }},
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
  RowSet set;
  set.size = rows.size();
  Append(
      ReportColumns(),
      [&report, rows](size_t i) {
        return ReportRow{report, rows[i]};
      },
      &set);
  return set;
}

RowSet RowsOf(const Report& report, std::span<const Row* const> rows) {
  RowSet set;
  set.size = rows.size();
  Append(
      ReportColumns(),
      [&report, rows](size_t i) {
        return ReportRow{report, *rows[i]};
      },
      &set);
  return set;
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

RowSet RoofsOf(const Report& report) {
  RowSet set;
  set.size = report.roofs.size();
  const std::span<const RoofLine> roofs = report.roofs;
  Append(
      std::span<const ColumnOf<RoofLine>>(kRoofColumns), [roofs](size_t i) -> const RoofLine& { return roofs[i]; },
      &set);
  return set;
}

RowSet DevicesOf(const Report& report) {
  RowSet set;
  set.size = report.devices.size();
  const std::span<const DeviceInfo> devices = report.devices;
  Append(
      std::span<const ColumnOf<DeviceInfo>>(kDeviceColumns),
      [devices](size_t i) -> const DeviceInfo& { return devices[i]; }, &set);
  return set;
}

Row TotalRow(const Report& report) {
  Row row;
  row.sums = report.total;
  row.derived = report.total_derived;
  row.time_share = report.total.time_ns() > 0 ? 1 : 0;
  return row;
}

}  // namespace rfinject::cli
