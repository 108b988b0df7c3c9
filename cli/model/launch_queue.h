// File: launch_queue.h
//
// What a step takes by the clock: the host launches kernels one after the other, ahead of the GPU, and the GPU runs
// them in that order on one stream. Where the host is not far enough ahead the GPU waits for a launch. It is pure.
//
//   const std::vector<QueueStretch> step = {{.kernels = {{.launches = 100, .kernel_ns = 2000}}}};
//   RunQueue(step, {.interval_ns = 10'000}).step_ns;  // 1 ms: the GPU waits for most of it
#ifndef RFINJECT_CLI_MODEL_LAUNCH_QUEUE_H_
#define RFINJECT_CLI_MODEL_LAUNCH_QUEUE_H_

#include <span>
#include <vector>

namespace rfinject::cli {

// From the end of a kernel to the beginning of the next one that was launched long before, on one stream. Recordings
// of torch.profiler with fractions of a microsecond say 1.1 to 1.4 us (median) of an A100 and of H100s; those of
// whole microseconds say 1 us of a V100 (bench/launch_intervals.py). Kernels that do nothing take 1.7 us and more, so
// they follow one another at 3 us (operators/cost.h).
inline constexpr double kKernelGapNs = 1200;

// Kernels that are alike. Launches of a mean step may be a fraction.
struct QueuedKernels {
  double launches = 0;
  double kernel_ns = 0;  // of one
};

// A part of a step. Its kernels are launched in no order that is known, so they are taken as evenly mixed.
struct QueueStretch {
  std::vector<QueuedKernels> kernels;
  bool host_waits = false;  // at its end, until the GPU has done all that was launched
};

struct QueueOptions {
  double interval_ns = 0;  // in which the host launches one kernel
  double gap_ns = kKernelGapNs;
};

struct QueueTimes {
  double step_ns = 0;     // from the end of a step's last kernel to that of the next step's
  double host_ns = 0;     // of that, in which the host launches
  double waiting_ns = 0;  // of that, in which the GPU waits for a launch; gaps between kernels are no waiting
  // For each of the kernels, stretch by stretch: whether the GPU waits for most of their launches, so that a step
  // would be no shorter if they took no time.
  std::vector<bool> waited_for;
};

// Runs one step after another until they are alike. A program that never waits for the GPU launches ahead of it from
// step to step.
QueueTimes RunQueue(std::span<const QueueStretch> step, const QueueOptions& options);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_MODEL_LAUNCH_QUEUE_H_
