#include "cli/model/launch_queue.h"

#include <algorithm>
#include <cstddef>

namespace rfinject::cli {
namespace {

// The clocks of both: when the host has launched what it was to launch so far, and when the GPU has done it.
struct Clocks {
  double host_ns = 0, gpu_ns = 0;
};

// Runs a stretch, and returns how long the GPU waits in it. Exact for kernels that are alike: the GPU is done with
// them either when it has run one after the other from the first launch on, or a kernel after the last launch.
double RunStretch(const QueueStretch& stretch, const QueueOptions& options, Clocks* clocks) {
  double launches = 0, work_ns = 0;
  for (const QueuedKernels& kernels : stretch.kernels) {
    launches += kernels.launches;
    work_ns += kernels.launches * (kernels.kernel_ns + options.gap_ns);
  }
  const double before_ns = clocks->gpu_ns;
  if (launches > 0) {
    const double one_ns = work_ns / std::max(1.0, launches);
    const double first_ns = clocks->host_ns + options.interval_ns * std::min(1.0, launches);
    clocks->host_ns += options.interval_ns * launches;
    clocks->gpu_ns = std::max(std::max(clocks->gpu_ns, first_ns) + work_ns, clocks->host_ns + one_ns);
  }
  const double waiting_ns = std::max(0.0, clocks->gpu_ns - before_ns - work_ns);
  if (stretch.host_waits) clocks->host_ns = std::max(clocks->host_ns, clocks->gpu_ns);
  return waiting_ns;
}

// Appends which kernels the GPU waits for. Those that take longer than the host's interval let the host get ahead.
void NoteWaitedFor(const QueueStretch& stretch, const QueueOptions& options, double waiting_ns,
                   std::vector<bool>* waited_for) {
  const auto short_by = [&options](const QueuedKernels& kernels) {
    return std::max(0.0, options.interval_ns - kernels.kernel_ns - options.gap_ns) * kernels.launches;
  };
  double short_ns = 0;
  for (const QueuedKernels& kernels : stretch.kernels) short_ns += short_by(kernels);
  constexpr double kMost = 0.5;
  for (const QueuedKernels& kernels : stretch.kernels) {
    waited_for->push_back(short_by(kernels) > 0 && waiting_ns >= kMost * short_ns);
  }
}

}  // namespace

QueueTimes RunQueue(std::span<const QueueStretch> step, const QueueOptions& options) {
  Clocks clocks;
  // Behind the first step the host is as far ahead as it gets, or further with every step; the second shows which.
  for (const QueueStretch& stretch : step) RunStretch(stretch, options, &clocks);
  QueueTimes times;
  const double begin_ns = clocks.gpu_ns;
  for (const QueueStretch& stretch : step) {
    const double waiting_ns = RunStretch(stretch, options, &clocks);
    times.waiting_ns += waiting_ns;
    NoteWaitedFor(stretch, options, waiting_ns, &times.waited_for);
    for (const QueuedKernels& kernels : stretch.kernels) times.host_ns += options.interval_ns * kernels.launches;
  }
  times.step_ns = clocks.gpu_ns - begin_ns;
  // What rounding leaves is no waiting.
  if (times.waiting_ns <= 1e-9 * times.step_ns) times.waiting_ns = 0;
  return times;
}

}  // namespace rfinject::cli
