#include "cli/report/headline.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "cli/report/units.h"
#include "gpus/chips.h"

namespace rfinject::cli {
namespace {

// Above these a kernel's own work is what its time goes to.
constexpr double kManyShortLaunches = 3, kFarFromRoof = 0.3;
// A launch costs some microseconds; the shortest of a run with long kernels only says nothing about that.
constexpr double kLongLaunchNs = 1e4;

std::string SourceLine(const Report& report) {
  switch (report.run.source) {
    case SourceKind::kEstimated:
      return "ESTIMATED on " + report.run.estimated_gpu +
             ": from tensor shapes and a cost model, nothing was measured on a GPU";
    case SourceKind::kMeasured:
      return "Measured on " + (report.device_name.empty() ? "an unnamed GPU" : report.device_name) +
             (report.machine.name.empty()
                  ? ": no roofs are known for it (rfinject gpus lists those that are), so none are drawn"
                  : ", held against the datasheet of " + report.machine.name);
    case SourceKind::kImported:
      return "Imported from " + (report.run.collector.empty() ? "another tool" : report.run.collector) +
             (report.device_name.empty() ? "" : ", measured on " + report.device_name);
    case SourceKind::kNone:
    case SourceKind::kUnspecified:
      break;
  }
  return "Nothing was measured: layers and steps only";
}

std::string PrecisionLine(const Report& report) {
  const double total = report.total.total_flop();
  if (total <= 0) return {};
  std::array<size_t, kPrecisionCount> order;
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return report.total.flop[a] > report.total.flop[b]; });
  std::string line;
  for (size_t i : order) {
    if (report.total.flop[i] <= 0) break;
    line += (line.empty() ? "" : ", ") + Percent(report.total.flop[i] / total) +
            (line.empty() ? " of FLOP in " : " in ") + std::string(kPrecisionTitles[i]);
    if (report.total.legacy_flop[i] > 0) {
      const TensorPaths paths = TensorPathNames(report.machine.chip);
      line += " (" + Percent(report.total.legacy_flop[i] / report.total.flop[i]) + " of it over the " +
              std::string(paths.legacy.empty() ? "mma" : paths.legacy) + " path, whose peak is lower)";
    }
  }
  return line;
}

// The two estimates, which are never mixed: times, shares and advice are of the expected one.
std::string ExpectedLine(const Report& report) {
  const Sums& total = report.total;
  if (total.ideal_ns <= 0) return {};
  const double steps = report.steps > 0 ? static_cast<double>(report.steps) : 1;
  std::string line = "Expected " + Duration(total.time_ns / steps) + (report.steps > 0 ? " a step" : "") +
                     " (80 % interval " + Duration(total.low_ns / steps) + " to " + Duration(total.high_ns / steps) +
                     "), ideal " + Duration(total.ideal_ns / steps) +
                     ": times are expected ones, from a model calibrated on measurements of others";
  if (total.uncalibrated_ns > 0) {
    line += total.uncalibrated_ns >= 0.995 * total.time_ns
                ? ", none of them of this GPU"
                : "; for " + Percent(total.uncalibrated_ns / total.time_ns) + " of the time, of other GPUs";
  }
  return line;
}

std::string WinogradLine(const Report& report) {
  const Sums& total = report.total;
  if (total.winograd_ns <= 0) return {};
  return Percent(total.winograd_ns / total.time_ns) +
         " of GPU time is in 3x3 convolutions for which cuDNN has Winograd kernels: they execute 2.25 to 4 times "
         "fewer "
         "FLOP than are counted here, so such a layer can be above its roof";
}

std::string ShareLine(const Report& report) {
  if (report.total.launches == 0) return "No launch was recorded in the measured steps";
  const bool has_phases = std::any_of(report.phases.begin(), report.phases.end(), [](const Row& row) {
    return row.sums.launches > 0 && (row.phase == kPhaseNames[static_cast<size_t>(Phase::kForward)] ||
                                     row.phase == kPhaseNames[static_cast<size_t>(Phase::kBackward)]);
  });
  std::string line =
      has_phases ? Percent(report.attributed_share) + " of forward and backward GPU time is attributed to layers"
                 : "No launch is known to be of the forward or backward";
  if (report.unattributed_launches > 0) {
    line += " (" + Grouped(report.unattributed_launches) + " launches are not)";
  }
  // An estimate has counters by construction; saying so would suggest that something was counted.
  if (report.run.source != SourceKind::kEstimated) {
    line += "; " + Percent(report.counters_share) + " of GPU time has counters";
  }
  return line;
}

std::string BoundLine(const Report& report, const std::vector<Row>& layers) {
  const Sums& total = report.total;
  if (total.least_ns <= 0 || total.time_ns <= 0) return {};
  const Derived& derived = report.total_derived;
  // Kernels that take little longer than the shortest one seen are not held back by any roof: there are too many of
  // them, and each does too little.
  const double launch_ns = total.launches > 0 ? total.time_ns / static_cast<double>(total.launches) : 0;
  if (report.shortest_launch_ns > 0 && report.shortest_launch_ns < kLongLaunchNs &&
      launch_ns < kManyShortLaunches * report.shortest_launch_ns && derived.attainable_share < kFarFromRoof) {
    return "Held back by launching: a kernel takes " + Duration(launch_ns) + " on average, the shortest " +
           Duration(report.shortest_launch_ns) + ", whatever it does; " + Percent(derived.attainable_share) +
           " of attainable";
  }
  double memory_bound_ns = 0;
  for (const Row& row : layers) {
    if (row.derived.memory_bound) memory_bound_ns += row.sums.time_ns;
  }
  std::string line = derived.memory_bound ? "Held back by memory bandwidth: " : "Held back by arithmetic: ";
  const double share = memory_bound_ns / total.time_ns;
  line += Percent(derived.memory_bound ? share : 1 - share) + " of GPU time is in " +
          (derived.memory_bound ? "memory-bound" : "compute-bound") + " layers; " +
          (total.total_flop() > 0 ? WithPrefix(derived.performance_flop_per_s, "FLOP/s") + ", " : std::string()) +
          Percent(derived.attainable_share) + " of attainable";
  return line;
}

std::string SharedLine(const Report& report) {
  if (std::none_of(report.rows.begin(), report.rows.end(), [](const Row& row) { return row.counters_shared; }))
    return {};
  return std::string("FLOP and bytes marked with ~ were counted layer by layer and are not split between ") +
         (report.by == By::kOp ? "operators" : "kernels") +
         ": each launch has an equal share of its layer's. --by layer has the sums themselves";
}

std::string RatioLine(const Report& report) {
  const bool model = report.backward_over_forward_model_flop > 0;
  const double flop = model ? report.backward_over_forward_model_flop : report.backward_over_forward_flop;
  if (report.backward_over_forward_time <= 0) return {};
  return "Backward over forward: " +
         (flop > 0 ? Plain(flop) + (model ? " times the model FLOP, " : " times the FLOP, ") : std::string()) +
         Plain(report.backward_over_forward_time) + " times the GPU time";
}

// Two ways to the same number: what the whole device moved during a few steps, and the sum over the kernels.
std::string PmLine(const Report& report) {
  if (report.pm_windows == 0) return {};
  std::string line = "DRAM bytes a step by PM sampling " + WithPrefix(report.pm_dram_bytes, "B") + " (" +
                     (report.pm_windows == 1 ? "1 step" : Grouped(report.pm_windows) + " steps") + ")";
  const double steps = static_cast<double>(report.steps);
  if (report.steps > 0 && report.total.dram_bytes > 0) {
    line += ", by kernels " + WithPrefix(report.total.dram_bytes / steps, "B");
  }
  if (report.pm_tensor_share >= 0) {
    line += "; tensor pipes active " + Percent(report.pm_tensor_share) + " of the time";
  }
  return line;
}

// In a run of several networks a path alone names nothing.
std::string Name(const Report& report, const Row& row) {
  if (row.layer.empty()) return row.model;
  return report.run.models.size() > 1 ? row.model + "/" + row.layer : row.layer;
}

std::string SlackLine(const Report& report, const std::vector<Row>& layers) {
  if (report.steps == 0 || report.total.least_ns <= 0) return {};
  std::vector<const Row*> order;
  for (const Row& row : layers) {
    if (!row.model.empty() && row.derived.slack_ns > 0) order.push_back(&row);
  }
  const size_t kept = std::min<size_t>(order.size(), 3);
  if (kept == 0) return {};
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                    [](const Row* a, const Row* b) { return a->derived.slack_ns > b->derived.slack_ns; });
  std::string line = "Most time to win, in ms a step:";
  for (size_t i = 0; i < kept; ++i) {
    const Row& row = *order[i];
    line += (i == 0 ? " " : ", ") + Name(report, row) + " " +
            Plain(row.derived.slack_ns / 1e6 / static_cast<double>(report.steps));
  }
  // What is in no layer can hold more than any of them: an optimizer with a kernel for every parameter.
  const Row* outside = nullptr;
  for (const Row& row : layers) {
    if (row.model.empty() && (outside == nullptr || row.derived.slack_ns > outside->derived.slack_ns)) outside = &row;
  }
  if (outside != nullptr && outside->derived.slack_ns > order[kept - 1]->derived.slack_ns) {
    line += "; in no layer: " + outside->phase + " " +
            Plain(outside->derived.slack_ns / 1e6 / static_cast<double>(report.steps));
  }
  return line;
}

// A large part of the time that is of no model and no phase must not stand there without a word about what it is.
std::string OutsideLine(const Report& report, const std::vector<Row>& layers) {
  constexpr double kWorthALine = 0.1;
  double share = 0;
  for (const Row& row : layers) {
    if (row.model.empty() && row.phase == kPhaseNames[static_cast<size_t>(Phase::kOther)]) share += row.time_share;
  }
  if (share < kWorthALine || report.outside_ops.empty()) return {};
  std::string ops;
  bool initialises = false;
  for (const std::string& op : report.outside_ops) {
    ops += (ops.empty() ? "" : ", ") + op;
    for (const std::string_view initialiser : {"normal_", "uniform_", "zero_", "fill_"}) {
      initialises |= op.ends_with(initialiser);
    }
  }
  return Percent(share) + " of GPU time is of no model: " + ops +
         (initialises ? "; if that is the program making its weights before the first step, --skip 1 leaves it out"
                      : "");
}

}  // namespace

std::vector<std::string> MakeHeadline(const Report& report, const std::vector<Row>& layers) {
  std::vector<std::string> lines = {SourceLine(report),        ExpectedLine(report), PrecisionLine(report),
                                    WinogradLine(report),      ShareLine(report),    OutsideLine(report, layers),
                                    BoundLine(report, layers), RatioLine(report),    PmLine(report),
                                    SlackLine(report, layers), SharedLine(report),   report.theory};
  std::erase_if(lines, [](const std::string& line) { return line.empty(); });
  return lines;
}

}  // namespace rfinject::cli
