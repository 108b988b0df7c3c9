#include "cli/report/facts/queue.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "cli/model/launch_queue.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {
namespace {

// Where in a step a launch stands: the phase, and in the forward the layer's place, in the backward the other way
// round. What is in no layer comes before the forward's and behind the backward's.
using Place = std::pair<int, int64_t>;

Place PlaceOf(const Run& run, const LaunchKey& key) {
  int64_t order = -1;
  if (!key.layer.model.empty()) {
    const auto layer = run.layers.find(key.layer);
    order = layer != run.layers.end() ? static_cast<int64_t>(layer->second.order) : 0;
  }
  switch (key.phase) {
    case Phase::kData:
      return {0, 0};
    case Phase::kForward:
    case Phase::kEval:
      return {1, order};
    case Phase::kBackward:
    case Phase::kRecompute:
      return {2, -order};
    case Phase::kCommunication:
      return {3, 0};
    case Phase::kOptimizer:
      return {4, 0};
    default:
      return {5, 0};
  }
}

// The launches of a mean step, and which of the run's keys each of them is.
struct Queue {
  std::vector<QueueStretch> step;
  std::vector<size_t> keys;
};

Queue QueueOf(const Run& run, std::span<const double> times, double steps) {
  struct Members {
    QueueStretch stretch;
    std::vector<size_t> keys;
  };
  std::map<Place, Members> places;
  size_t i = 0;
  for (const auto& [key, stats] : run.launches) {
    const double launches = static_cast<double>(stats.launches);
    if (launches > 0) {
      Members& members = places[PlaceOf(run, key)];
      members.stretch.kernels.push_back({launches / steps, times[i] / launches});
      members.keys.push_back(i);
    }
    ++i;
  }
  Queue queue;
  for (auto& [place, members] : places) {
    queue.step.push_back(std::move(members.stretch));
    queue.keys.insert(queue.keys.end(), members.keys.begin(), members.keys.end());
  }
  return queue;
}

// The usual step; the first ones of a process are not like the others.
std::optional<double> Usual(const StepPart& part) { return part.p50_ns ? part.p50_ns : part.mean_ns; }

void SetStep(const QueueTimes& times, HostTime of, Report* report) {
  report->step_host_of = of;
  report->step_host_ns = times.host_ns;
  report->step_ns = times.step_ns;
  report->gpu_waits_share = times.step_ns > 0 ? times.waiting_ns / times.step_ns : 0;
}

}  // namespace

LaunchInterval IntervalOf(const Report& report, double launches, double gpu_ns, double given_ns, double floor_ns) {
  const bool estimated = report.run.source == SourceKind::kEstimated;
  if (estimated && given_ns > 0) return {given_ns, HostTime::kGiven};
  if (estimated || report.steps == 0 || !(launches > 0)) return {floor_ns, HostTime::kUnknown};
  const double steps = static_cast<double>(report.steps);
  const StepWaits& waits = report.waits;
  double own_ns = 0;
  if (waits.wall.mean_ns && waits.gpu_busy.mean_ns && waits.gpu_wait.mean_ns) {
    // A recording without a DataLoader's scopes does not say how long the host waits for data; the GPU waits with it.
    own_ns = *waits.wall.mean_ns - *waits.gpu_wait.mean_ns - waits.data_wait.mean_ns.value_or(0);
    own_ns *= report.optimizer_steps_per_step();
  } else if (report.run.source == SourceKind::kMeasured && report.step_wall_ns > 2 * gpu_ns / steps) {
    // What an older trace's host waited for is not known; a GPU that is idle for most of the time is not what it was.
    own_ns = report.step_wall_ns;
  }
  if (!(own_ns > 0)) return {floor_ns, HostTime::kUnknown};
  return {own_ns * steps / launches, HostTime::kByTheClock};
}

std::vector<bool> AddLaunchWaits(const Run& run, std::span<const double> times, Report* report) {
  std::vector<bool> waited_for(run.launches.size());
  const double steps = report->steps > 0 ? static_cast<double>(report->steps) : 1;
  Queue queue = QueueOf(run, times, steps);
  if (queue.step.empty()) return waited_for;
  const bool estimated = report->run.source == SourceKind::kEstimated;
  // Where in a step the host waits is not known. Most programs that wait do it at the end, when they print the loss.
  queue.step.back().host_waits = Usual(report->waits.gpu_wait).value_or(0) > 0;
  const QueueTimes of_step = RunQueue(queue.step, {.interval_ns = report->launch_interval.ns});
  for (size_t i = 0; i < queue.keys.size(); ++i) waited_for[queue.keys[i]] = of_step.waited_for[i];
  if (!estimated || report->steps == 0) return waited_for;
  double launches = 0;
  for (const QueueStretch& stretch : queue.step) {
    for (const QueuedKernels& kernels : stretch.kernels) launches += kernels.launches;
  }
  report->step_launches = launches;
  if (report->launch_interval.of == HostTime::kGiven) {
    SetStep(of_step, HostTime::kGiven, report);
  } else if (const std::optional<double> own = Usual(report->waits.own);
             own && *own > 0 && report->run.collector == kVirtualGpuCollector) {
    const double interval_ns = *own * report->optimizer_steps_per_step() / launches;
    SetStep(RunQueue(queue.step, {.interval_ns = interval_ns}), HostTime::kThisMachine, report);
  }
  return waited_for;
}

}  // namespace rfinject::cli
