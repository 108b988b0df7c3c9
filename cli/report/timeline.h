// File: timeline.h
//
// One step as the GPU saw it: the bandwidth of DRAM and the work of tensor pipes over its time, the kernels that ran,
// stream by stream, and the layers that they are of.
#ifndef RFINJECT_CLI_REPORT_TIMELINE_H_
#define RFINJECT_CLI_REPORT_TIMELINE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/profile/profile.h"
#include "cli/text/row_set.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

// Times are in ns from the beginning of the step's first kernel.
struct TimelineKernel {
  double start_ns = 0, duration_ns = 0;
  size_t lane = 0;  // of its stream, in the order in which streams first run something
  Phase phase = Phase::kOther;
  std::string model, layer, op, kernel;
  double dram_bytes = 0;  // by the samples in its time; 0: none fell there
};

// An equal part of the step.
struct TimelinePart {
  bool sampled = false;
  double dram_bytes_per_s = 0;
  double tensor_share = 0;  // of the time of all SMs in which tensor pipes worked
};

// Kernels one after the other that are of one layer and phase, or of one operator where they are in no layer.
struct TimelineLayer {
  double start_ns = 0, end_ns = 0;
  Phase phase = Phase::kOther;
  std::string name;  // the layer's, the operator's or the phase's
};

struct Timeline {
  std::string title;  // of the run
  uint64_t step = 0, windows = 0;
  uint32_t device = 0;
  size_t streams = 0;
  double period_ns = 0;
  double busy_ns = 0;           // something ran
  double sampled_share = 0;     // of that, what samples fell into
  double dram_bytes_per_s = 0;  // the roof; 0: not known
  bool has_tensor = false;      // tensor_share says something
  std::vector<TimelinePart> parts;
  std::vector<TimelineKernel> kernels;  // by start
  std::vector<TimelineLayer> layers;    // by start

  bool known() const { return !kernels.empty(); }
};

// That of the run's first device; nothing is known where the trace has none.
Timeline TimelineOf(const Run& run);

// The kernels with the columns of CSV and JSON.
RowSet KernelsOf(std::span<const TimelineKernel> kernels);

// "one step of 26.7 ms, in which the GPU was busy for 99.2 %; bandwidth from 12 windows of samples, which cover 97
// %".
std::string TimelineText(const Timeline& timeline);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_TIMELINE_H_
