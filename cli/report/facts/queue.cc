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
      return {2, ~order};  // the other way round, and defined for all numbers that a file may hold
    case Phase::kCommunication:
      return {3, 0};
    case Phase::kOptimizer:
      return {4, 0};
    default:
      return {5, 0};
  }
}

// The launches of a mean step, and which of the run's keys each of them is.
struct StepQueue {
  std::vector<QueueStretch> step;
  std::vector<size_t> keys;
};

StepQueue QueueOf(const Run& run, std::span<const double> times, double steps) {
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
  StepQueue queue;
  for (auto& [place, members] : places) {
    queue.step.push_back(std::move(members.stretch));
    queue.keys.insert(queue.keys.end(), members.keys.begin(), members.keys.end());
  }
  return queue;
}

// The usual step; the first ones of a process are not like the others.
std::optional<double> Usual(const StepPart& part) { return part.p50_ns ? part.p50_ns : part.mean_ns; }

void SetStep(const QueueTimes& times, HostTime of, Queue* queue) {
  queue->host_of = of;
  queue->host_ns = times.host_ns;
  queue->step_ns = times.step_ns;
  queue->gpu_waits_share = times.step_ns > 0 ? times.waiting_ns / times.step_ns : 0;
}

Cell OfStep(const Queue& queue, Cell value) { return queue.step_ns > 0 ? value : Cell{}; }

constexpr std::string_view kNeedsHost = "--host-us says how long a launch takes the host; a virtual GPU has its own";

constexpr std::string_view kOfAnEstimate =
    "kernels that ran are bound by what they do; the gaps before them are waits";

constexpr auto kQueueFacts = std::to_array<FactOf<Queue>>({
    {UnitColumn("host_time_per_step_ns", "ns",
                "Of an estimate with --host-us, or on a virtual GPU: what the host takes to launch a step."),
     [](const Queue& queue) { return KnownCell(queue.host_ns); }, kNeedsHost},
    {UnitColumn("step_time_ns", "ns",
                "With that: a step by the clock, the longer of both along the queue of launches."),
     [](const Queue& queue) { return KnownCell(queue.step_ns); }, kNeedsHost},
    {TextColumn("step_bound", "With that: launch where the GPU waits for launches, else GPU."),
     [](const Queue& queue) { return OfStep(queue, std::string(queue.launch_bound ? "launch" : "GPU")); },
     kNeedsHost},
    {ShareColumn("step_gpu_waits_share", "With that: part of the step in which the GPU waits for a launch."),
     [](const Queue& queue) { return OfStep(queue, queue.gpu_waits_share); }, kNeedsHost},
    {TextColumn("host_time_of", "Whose time that is: given, or of the machine that the program ran on."),
     [](const Queue& queue) { return OfStep(queue, std::string(HostTimeName(queue.host_of))); }, kNeedsHost},
    {UnitColumn("shortest_launch_ns", "ns", "The shortest launch that was seen."),
     [](const Queue& queue) { return KnownCell(queue.shortest_ns); }, "nothing was timed"},
    {UnitColumn("launch_floor_ns", "ns", "--launch-floor: the host launches a kernel at this interval at best."),
     [](const Queue& queue) { return Cell{queue.floor_ns}; }},
    {UnitColumn("launch_interval_ns", "ns",
                "Of an estimate: the interval at which the host launches kernels, by which they are bound."),
     [](const Queue& queue) { return KnownCell(queue.interval.ns); }, kOfAnEstimate},
    {TextColumn("launch_interval_of", "Where that is from: floor or given."),
     [](const Queue& queue) {
       return queue.interval.ns > 0 ? Cell{std::string(HostTimeName(queue.interval.of))} : Cell{};
     },
     kOfAnEstimate},
});

}  // namespace

std::span<const FactOf<Queue>> QueueFacts() { return kQueueFacts; }

std::string_view HostTimeName(HostTime of) {
  constexpr std::array<std::string_view, 3> kNames = {"floor", "given", "this machine"};
  return kNames[static_cast<size_t>(of)];
}

LaunchInterval IntervalOf(double given_ns, double floor_ns) {
  return given_ns > 0 ? LaunchInterval{given_ns, HostTime::kGiven} : LaunchInterval{floor_ns, HostTime::kUnknown};
}

std::vector<bool> AddLaunchWaits(const Run& run, std::span<const double> times, const Steps& counted,
                                 const StepWaits& waits, Queue* found) {
  std::vector<bool> waited_for(run.launches.size());
  const double steps = counted.divisor();
  StepQueue queue = QueueOf(run, times, steps);
  if (queue.step.empty()) return waited_for;
  // Where in a step the host waits is not known. Most programs that wait do it at the end, when they print the loss.
  queue.step.back().host_waits = Usual(waits.gpu_wait).value_or(0) > 0;
  const QueueTimes of_step = RunQueue(queue.step, {.interval_ns = found->interval.ns});
  for (size_t i = 0; i < queue.keys.size(); ++i) waited_for[queue.keys[i]] = of_step.waited_for[i];
  if (counted.count == 0) return waited_for;
  double launches = 0;
  for (const QueueStretch& stretch : queue.step) {
    for (const QueuedKernels& kernels : stretch.kernels) launches += kernels.launches;
  }
  found->launches = launches;
  if (found->interval.of == HostTime::kGiven) {
    SetStep(of_step, HostTime::kGiven, found);
  } else if (const std::optional<double> own = Usual(waits.own);
             own && *own > 0 && run.key.collector == kVirtualGpuCollector) {
    const double interval_ns = *own * counted.optimizer_per_step() / launches;
    SetStep(RunQueue(queue.step, {.interval_ns = interval_ns}), HostTime::kThisMachine, found);
  }
  return waited_for;
}

}  // namespace rfinject::cli
