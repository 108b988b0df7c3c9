// File: report.h
//
// A Report is one Run of a Profile folded for reading: rows by model, phase, layer, operator or kernel, a summary,
// the roofs, the alarms. It holds numbers and codes; every output is made from it, adds words, units and rounding,
// and computes nothing itself, so a number is the same wherever it appears.
#ifndef RFINJECT_CLI_REPORT_REPORT_H_
#define RFINJECT_CLI_REPORT_REPORT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/model/roofline.h"
#include "cli/model/step_interval.h"
#include "cli/profile/profile.h"
#include "cli/report/advice/advice.h"
#include "cli/report/alarms/alarm.h"
#include "cli/report/facts/headline.h"
#include "cli/report/facts/waits.h"
#include "cli/report/keys/quantity.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

// The name of a phase as outputs show it; empty where there is none.
inline std::string_view PhaseName(std::optional<Phase> phase) {
  return phase ? kPhaseNames[static_cast<size_t>(*phase)] : std::string_view();
}

enum class By : uint8_t { kModel, kPhase, kLayer, kOp, kKernel, kSource, kClass };

// What counts as a step: what the training loop repeats, what ends with an optimizer's step, or a call of a root.
enum class StepBy : uint8_t { kIteration, kOptimizer, kForward };

// What keeps something from being faster: the host, for whose launches the GPU waits, bytes, arithmetic, or the links
// to the host and to other GPUs.
enum class Bound : uint8_t { kUnknown, kLaunch, kMemory, kCompute, kPcie, kNvlink };
std::string_view BoundName(Bound bound);  // "launch"; empty where it is not known

// The time that a launch takes whatever its kernel does, where no model says more: kernels that do nothing follow one
// another at this interval (operators/cost.h has the sources).
inline constexpr double kLaunchFloorNs = 3000;

// The interval at which the host launches kernels at best, where nothing is known of it. Eager PyTorch takes 5 to 60
// us for a launch, and in the mean of a step more than 10: in recordings of operators, which hold what recording
// costs, the mean is 39 us at least, and the closest tenth of the launches are 8 to 45 us apart
// (bench/launch_intervals.py).
inline constexpr double kLaunchIntervalNs = 10'000;

// Where a host's time comes from: it is not known, the user gave it, it is that of the run's own steps, or, beside a
// virtual GPU, that of the machine on which the program ran.
enum class HostTime : uint8_t { kUnknown, kGiven, kByTheClock, kThisMachine };
// "floor", since that is what counts where it is not known; "given", "clock", "this machine".
std::string_view HostTimeName(HostTime of);
struct LaunchInterval {
  double ns = kLaunchIntervalNs;  // between the launches of two kernels
  HostTime of = HostTime::kUnknown;
};

struct Derived {  // from Sums alone; 0 where undefined
  double oi_flop_per_byte = 0;
  double performance_flop_per_s = 0;
  double bandwidth_bytes_per_s = 0;
  double attainable_flop_per_s = 0;
  double attainable_share = 0;  // least_ns / time_ns
  double slack_ns = 0;          // time_ns - least_ns
  // What most of the time is bound by; where single launch keys were not looked at, the larger of the least times.
  Bound bound = Bound::kUnknown;
  double executed_over_model = 0;
  double oi_l2_flop_per_byte = 0, oi_l1_flop_per_byte = 0;
  double dram_over_compulsory = 0;
};
Derived Derive(const Sums& sums);

// How well an amount is known. The interval is that of a mean step of the run; slow steps are no part of it.
struct Knowledge {
  Trust trust = Trust::kNone;  // and why there is none
  double relative = 0;         // half the 95 % interval over the amount; 0: exact, or none
  // The share of the row's GPU time whose spread is not known; the true interval is then at least this wide.
  double lacks = 0;
  double spread = 0;  // of one step, robust, over the amount; 0: unknown
  double p95 = 0;     // of one step, ns or bytes; 0: fewer than 20 were sampled
};

// What a row is of. Texts that the chosen `By` does not keep are empty. By::kLayer keeps model, layer; kPhase: model,
// phase; kOp: model, phase, op. kKernel: everything. What is in no layer (model empty) has a row for each phase,
// which it names. kSource keeps line and function alone; what has no line has a row for each phase. kClass keeps
// model and group.
struct RowNames {
  std::string model, layer, op, kernel, signature;
  std::string line, function;  // of the program: "model.py:41", "Block.forward"
  std::optional<Phase> phase;
  // In no layer: what launched it (stacks.h), of several the one with most time; empty where no stack was taken.
  std::string caller;
  size_t other_callers = 0;
  std::string group;  // the layer and those that are like it (layer_group.h)
};

// What a row's layer, or group of layers, is like.
struct RowLayer {
  std::string class_name;
  uint64_t layers = 0;  // that the row adds up; 0: it is not of a group
  uint64_t parameters = 0, parameter_bytes = 0;
  std::string input_shape, output_shape;  // "f32[8,3,224,224]"
  uint64_t order = 0;                     // rows of By::kLayer are listed as the program runs them
};

struct Row : RowNames, RowLayer {
  // For a layer in PictureRows: the row of its group, where the group is there as well (GroupedForPage); -1: none.
  int64_t member_of = -1;
  // Of an estimate on a virtual GPU, what PyTorch launched below the row's operators: kernels by their short names
  // (kernel_name.h), most launches first. Nothing for what is in a CUDA graph.
  struct LaunchedKernel {
    std::string name;
    uint64_t launches = 0;
  };
  std::vector<LaunchedKernel> kernels;
  uint64_t kernel_launches = 0;  // of all of them
  Sums sums;
  Derived derived;
  double time_share = 0;  // of all GPU time of the run
  Knowledge time, bytes;
  // By::kOp and kKernel: FLOP and bytes (of some launches) were counted for their layer and phase as a whole, and the
  // row has an equal share for each launch. The row's time is its own.
  bool counters_shared = false;
};

// Model FLOP and compulsory bytes that come from another run, an estimate (theory.h).
struct TheoryUse {
  enum class State : uint8_t {
    kNone,     // none was asked for, or the run has its own
    kMissing,  // the estimates given hold no run of this network and mode
    kApplied,
  };
  State state = State::kNone;
  std::string model;  // of the estimate
  uint64_t batch_size = 0;
  uint64_t samples = 0, steps = 0;  // what the run's work was taken as; both 0: one step of the estimate's batch
  bool bytes = false;               // the batches agree, so compulsory bytes are the run's too
  // Layers of the run that the estimate does not have, where they are too many for the same network.
  uint64_t missing_layers = 0, layers = 0;
  std::string missing_layer;  // one of them
};

// Where a roof is from (roofs.h), and which memory its bandwidth is of.
enum class RoofKind : uint8_t { kDatasheet, kMeasuredClock, kEmpirical };
enum class MemoryLevel : uint8_t { kDram, kL2, kL1 };

struct RoofLine {
  Precision precision{};  // of a peak
  std::string path;       // "mma", "wgmma"; empty where the chip has one path
  MemoryLevel level{};
  RoofKind kind{};
  double peak_flop_per_s = 0;  // 0: a bandwidth alone, of no precision
  double bytes_per_s = 0;
  bool used = false;         // some FLOP of the run ran in this precision, over this path
  bool legacy_path = false;  // of a chip with two paths, the slower one
};

template <typename Record>
using KeptVector = std::vector<Record>;

// Which run it was, on what, and what the trace says of itself.
struct ReportedRun {
  RunKey run;
  std::vector<ProcessInfo> processes;
  uint64_t process_count = 0;
  std::vector<std::string> different_commands;  // where processes were added that were not started alike
  std::string device_name;
  // A simulated GPU's numbers look like measured ones and are made up.
  bool simulated() const { return device_name.starts_with(kSimulatedDevice); }
  std::vector<DeviceInfo> devices;  // that the run used
  Machine machine;                  // empty name: no roofs known for this GPU
  std::string own_calibration;      // Calibration::OwnSource, if the user's own GPU was measured
  double sm_hz = 0;                 // mean SM clock while the counters ran; 0: unknown
  int tier = 0;
  uint64_t memory_peak_bytes = 0;  // of the device, in use by all processes; 0: unknown
  std::vector<ModelInfo> models;
  uint64_t unfinished = 0;              // processes whose trace has no end
  trace::KeptRecords<KeptVector> kept;  // what Run::kept has; graph breaks that most bytes cross first
};

// How many steps there were, and how long they took.
struct ReportedSteps {
  uint64_t steps = 0, samples = 0;
  uint64_t optimizer_steps = 0;  // that `steps` are made of, and what did not make a whole one
  // Optimizer's steps in one of `steps`; 1 where either is not known.
  double optimizer_steps_per_step() const {
    if (steps == 0 || optimizer_steps == 0) return 1;
    return static_cast<double>(optimizer_steps) / static_cast<double>(steps);
  }
  StepBy step_by = StepBy::kIteration;
  bool validation = false;  // of a model that also trains: its steps are batches
  double step_wall_ns = 0;  // mean
  double step_gpu_ns = 0;   // mean of summed kernel time
  // For an estimate of which the host's time is known, and whose it is: how long a step's launches take the host, how
  // many there are, and how long a step takes by the clock, along the queue of launches (queue.h). 0: not
  // known.
  HostTime step_host_of = HostTime::kUnknown;
  double step_host_ns = 0, step_launches = 0, step_ns = 0;
  double gpu_waits_share = 0;  // of such a step, in which the GPU waits for a launch
  bool launch_bound() const { return gpu_waits_share > 0 && step_host_ns > step_gpu_ns; }
  LaunchInterval launch_interval;   // by which launches are bound by launching
  StepWaits waits;                  // what an optimizer's step waits for, by the clock
  uint64_t sampled_steps = 0;       // of times: those that count
  uint64_t slow_sampled_steps = 0;  // those that were set aside, of times or of bytes
  // Of all steps that were not armed, timed_steps: those that were slow, and how much longer they took together.
  uint64_t slow_steps = 0, timed_steps = 0;
  double slow_extra_ns = 0;
};

// The sum of all launches, how well it is known, and what it is made of.
struct ReportedWork {
  Sums total;
  Derived total_derived;
  Knowledge total_time, total_bytes;
  double shortest_launch_ns = 0;               // the shortest launch seen; 0: unknown
  double launch_floor_ns = kLaunchIntervalNs;  // as it was given
  // Forward and backward launches that have a layer, of all forward and backward ones: by time, or by number where no
  // launch has a time.
  double attributed_share = 0;
  double counters_share = 0;  // time_with_counters / time, of the launches whose time is known
  // Launches of a measured run that were never sampled, so that their time is in no sum, and how many launch keys
  // they are of.
  uint64_t untimed_launches = 0, untimed_keys = 0;
  uint64_t unattributed_launches = 0;  // forward or backward without a layer
  // Backward over forward; 0: undefined. About 2 for FLOP (invariants.h).
  double backward_over_forward_model_flop = 0, backward_over_forward_flop = 0, backward_over_forward_time = 0;
  // Of the launches in no model and no phase, the three operators that take longest, or what these are for ("loss").
  std::vector<std::string> outside_ops;
  bool compiled = false;  // torch.compile made some of the kernels
  // PM sampling: device-wide means over a few steps that it saw whole; a cross-check of total.dram_bytes().
  uint64_t pm_windows = 0;
  double pm_dram_bytes = 0;               // a step
  double pm_tensor_share = -1;            // of the time; negative: unknown
  double kernel_dram_bytes_per_step = 0;  // what pm_dram_bytes is held against; 0: unknown
};

struct Report : ReportedRun, ReportedSteps, ReportedWork {
  By by = By::kLayer;
  std::vector<Row> rows;  // of the chosen By
  // The rows are whole runs (sweep.h): their times are not parts of one whole, so marks do not show them by area.
  bool rows_are_runs = false;
  std::vector<Row> phases;  // always there: the By::kPhase rows
  // By::kLayer only: `rows` split by phase, in the same order. The pictures show these.
  std::vector<Row> layer_phases;
  // By::kLayer and kClass: the groups of layers that are alike, split by phase.
  std::vector<Row> group_phases;
  std::vector<RoofLine> roofs;
  TheoryUse theory;
  Headline headline;
  AdviceList advice;  // what to change, of the rules that are compiled in
  std::vector<Alarm> alarms;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_REPORT_H_
