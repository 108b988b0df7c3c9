#include "cli/report/facts/headline.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "cli/report/report.h"
#include "gpus/chips.h"

namespace rfinject::cli {
namespace {

constexpr size_t kPlacesToWin = 4;
// A part of the time below it is no headline.
constexpr double kWorthALine = 0.1;

void AddPrecisions(const Sums& total, Headline* headline) {
  const double all = total.total_flop();
  if (all <= 0) return;
  const FlopByPrecision flop = total.flop(), legacy = total.legacy_flop();
  std::array<size_t, kPrecisionCount> order;
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return flop[a] > flop[b]; });
  for (const size_t i : order) {
    if (flop[i] <= 0) break;
    headline->precisions.push_back({static_cast<Precision>(i), flop[i] / all, legacy[i] / flop[i]});
  }
}

void AddExpected(const Report& report, Headline* headline) {
  const Sums& total = report.total.sums;
  if (report.run.source != SourceKind::kEstimated || total.ideal_ns() <= 0 || total.time_ns() <= 0) return;
  const Sums step = report.steps.count > 0 ? total.OfOneStep(static_cast<double>(report.steps.count)) : total;
  headline->expected = {.ns = step.time_ns(),
                        .low_ns = step[Quantity::kTimeLow],
                        .high_ns = step[Quantity::kTimeHigh],
                        .ideal_ns = step.ideal_ns(),
                        .foreign_share = total[Quantity::kForeignTime] / total.time_ns(),
                        .winograd_share = total[Quantity::kWinogradTime] / total.time_ns()};
}

void AddLimit(const Report& report, Headline* headline) {
  const Sums& total = report.total.sums;
  const double known = BoundTime(total), all = std::max(known, total.time_ns());
  if (all > 0) {
    headline->launch_share = total[Quantity::kLaunchBoundTime] / all;
    headline->memory_share = total[Quantity::kMemoryBoundTime] / all;
    headline->compute_share = total[Quantity::kComputeBoundTime] / all;
    headline->pcie_share = total[Quantity::kPcieBoundTime] / all;
    headline->nvlink_share = total[Quantity::kNvlinkBoundTime] / all;
    headline->attainable_share = known > 0 ? total.least_ns() / known : 0;
  }
  const Clock& clock = report.clock;
  const double busy_ns = clock.busy_ns > 0 ? clock.busy_ns : clock.gpu_ns;
  if (busy_ns > 0 && clock.measured_wall_ns() > 0)
    headline->idle_share = std::max(0.0, 1 - busy_ns / clock.measured_wall_ns());
}

void AddMostToWin(const Report& report, std::span<const Row> layers, Headline* headline) {
  if (report.steps.count == 0 || report.total.sums.least_ns() <= 0) return;
  struct Group {
    Headline::Slack slack;
    Sums sums;
    double most_ns = 0;  // of one layer
  };
  // Layers of one class have the same remedy, and one of many says little of how much there is to win.
  std::map<std::pair<std::string, std::optional<Phase>>, Group> groups;
  // Another tool's file that names no layers is one layer that is called as the file is: its operators are the
  // places.
  const auto unnamed = [](const Row& row) { return row.layer.empty() && row.class_name.empty(); };
  const bool by_op = report.run.source == SourceKind::kImported && std::ranges::all_of(layers, unnamed);
  if (by_op && report.by != By::kOp) return;
  for (const Row& row : by_op ? std::span<const Row>(report.rows) : layers) {
    // What no operator asked for, as a copy between host and GPU, is a place by its phase.
    const bool outside = row.model.empty() || (by_op && row.op.empty());
    if (!(row.derived.slack_ns > 0) || (by_op && outside && row.derived.bound == Bound::kUnknown)) continue;
    Group& group = groups[{row.class_name + row.op, outside ? row.phase : std::nullopt}];
    group.slack.ns += row.derived.slack_ns / static_cast<double>(report.steps.count);
    group.sums.Add(row.sums);
    if (outside) {
      group.slack.phase = row.phase;
      continue;
    }
    group.slack.layers += by_op && group.slack.layers == 1 ? 0 : 1;
    if (row.derived.slack_ns <= group.most_ns) continue;
    group.most_ns = row.derived.slack_ns;
    const bool of_file = report.run.source == SourceKind::kImported;  // which is no layer's class
    group.slack.class_name = row.class_name.empty() && !of_file ? row.model : row.class_name;
    group.slack.model = row.model;
    group.slack.layer = by_op ? row.op : row.layer;
  }
  for (auto& [key, group] : groups) {
    group.slack.bound = Derive(group.sums).bound;
    headline->most_to_win.push_back(std::move(group.slack));
  }
  std::ranges::stable_sort(headline->most_to_win, std::ranges::greater{}, &Headline::Slack::ns);
  if (headline->most_to_win.size() > kPlacesToWin) headline->most_to_win.resize(kPlacesToWin);
}

// A large part of the time that is of no model and no phase must not stand there without a word about what it is.
void AddOutside(const Report& report, std::span<const Row> layers, Headline* headline) {
  double share = 0;
  for (const Row& row : layers) {
    if (row.model.empty() && row.phase == Phase::kOther) share += row.time_share;
  }
  if (share < kWorthALine || report.attribution.outside_ops.empty()) return;
  headline->outside_share = share;
  for (const std::string& op : report.attribution.outside_ops) {
    // Programs that zero their gradients and start their backward fill tensors too; random numbers are for weights.
    for (const std::string_view initialiser : {"normal_", "uniform_"}) {
      headline->outside_initialises |= op.ends_with(initialiser);
    }
  }
}

}  // namespace

Headline MakeHeadline(const Report& report, std::span<const Row> layers) {
  Headline headline;
  AddExpected(report, &headline);
  AddPrecisions(report.total.sums, &headline);
  headline.has_forward_or_backward = std::any_of(report.phases.begin(), report.phases.end(), [](const Row& row) {
    return row.sums.launches > 0 &&
           (row.phase == Phase::kForward || row.phase == Phase::kBackward || row.phase == Phase::kEval);
  });
  AddOutside(report, layers, &headline);
  AddLimit(report, &headline);
  AddMostToWin(report, layers, &headline);
  headline.shared_counters =
      std::any_of(report.rows.begin(), report.rows.end(), [](const Row& row) { return row.bytes.shared; });
  return headline;
}

}  // namespace rfinject::cli
