// File: report.h
//
// Report: a Profile folded for reading: rows by model, phase, layer, operator and kernel, a summary, the roofs, the
// alarms. Every output (table, JSON, CSV, HTML, SVG) is made from this struct and computes nothing itself, so a
// number is the same wherever it appears. One Report is about one Run; a profile with several runs gives several.
#ifndef RFINJECT_CLI_REPORT_REPORT_H_
#define RFINJECT_CLI_REPORT_REPORT_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/model/roofline.h"
#include "cli/profile/profile.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

enum class By : uint8_t { kModel, kPhase, kLayer, kOp, kKernel };

// Sums over all launches of the measured steps. What was sampled is scaled up to the launches it stands for:
// value = mean of the samples * launches.
struct Sums {
  uint64_t launches = 0;
  double time_ns = 0;  // of an estimated run: expected, by the calibrated model
  double model_flop = 0;
  FlopByPrecision flop{};         // executed (measured) or taken as executed (estimated)
  FlopByPrecision legacy_flop{};  // of them, over the legacy tensor path (GH100's mma.sync beside wgmma)
  double dram_bytes = 0;
  double compulsory_bytes = 0;
  double l2_bytes = 0, l1_bytes = 0;  // 0: not measured
  double least_compute_ns = 0;        // sum over kernels of flop time
  double least_memory_ns = 0;         // sum over kernels of byte time
  double least_ns = 0;                // sum over kernels of the longer of the two
  double time_with_counters_ns = 0;   // of time_ns, the part whose kernels have FLOP and bytes
  // Estimated runs only; 0 where no expected time is known, and time_ns is the ideal one then.
  double ideal_ns = 0;             // what the datasheet's roofline allows
  double low_ns = 0, high_ns = 0;  // 80 % interval of time_ns
  double winograd_ns = 0;          // of time_ns, convolutions that execute fewer FLOP than are counted
  double uncalibrated_ns = 0;      // of time_ns, operators without measured times of this GPU

  double total_flop() const;
  double total_legacy_flop() const;
  void Add(const Sums& other);
};

struct Derived {  // from Sums alone; 0 where undefined
  double oi_flop_per_byte = 0;
  double performance_flop_per_s = 0;
  double bandwidth_bytes_per_s = 0;
  double attainable_flop_per_s = 0;
  double attainable_share = 0;  // least_ns / time_ns
  double slack_ns = 0;          // time_ns - least_ns
  bool memory_bound = false;    // least_memory_ns >= least_compute_ns
  double executed_over_model = 0;
};
Derived Derive(const Sums& sums);

struct Row {
  // Those that the chosen `By` does not keep are empty. By::kLayer keeps model, layer; kPhase: model, phase;
  // kOp: model, phase, op. kKernel: everything. What is in no layer (model empty) is a row a phase, and says which.
  std::string model, phase, layer, op, kernel, signature;
  std::string class_name;  // of the layer
  uint64_t parameters = 0, parameter_bytes = 0;
  std::string input_shape, output_shape;  // "f32[8,3,224,224]"
  uint64_t order = 0;                     // rows of By::kLayer are listed as the program runs them
  Sums sums;
  Derived derived;
  double time_share = 0;  // of all GPU time of the run
  // 95 % confidence half-widths relative to the value; 0: exact or unknown
  double time_ci = 0, bytes_ci = 0;
  // By::kOp and kKernel: FLOP and bytes (of some launches) were counted for their layer and phase as a whole, and
  // here is an equal share a launch. The row's time is its own.
  bool counters_shared = false;
};

struct Alarm {
  std::string id;      // "R004"
  std::string text;    // what is wrong, with the numbers
  std::string causes;  // likely causes, in one line
  std::string where;   // model/layer/kernel, or empty
};

struct RoofLine {
  std::string label;           // "TF32 tensor, 156 TFLOP/s", "FP16 tensor (mma), 659.6 TFLOP/s", "L2, 5.4 TB/s"
  Precision precision{};       // of a peak
  std::string path;            // "mma", "wgmma"; empty where the chip has one path
  std::string level;           // "DRAM", "L2", "L1"
  std::string kind;            // "datasheet", "measured clock", "empirical"
  double peak_flop_per_s = 0;  // 0: a bandwidth alone, of no precision
  double bytes_per_s = 0;
  double ridge_flop_per_byte = 0;
  bool used = false;  // some FLOP of the run ran in this precision, over this path
};

struct Report {
  RunKey run;
  std::vector<ProcessInfo> processes;
  uint64_t process_count = 0;
  std::string device_name;
  Machine machine;  // empty name: no roofs known for this GPU
  std::vector<RoofLine> roofs;
  double sm_hz = 0;  // mean SM clock while the counters ran; 0: unknown
  int tier = 0;
  std::string tier_text;  // "A: modules by slot, backward by current node"
  uint64_t steps = 0, samples = 0;
  double step_wall_ns = 0;         // mean
  double step_gpu_ns = 0;          // mean of summed kernel time
  uint64_t memory_peak_bytes = 0;  // of the device, in use by all processes; 0: unknown
  // PM sampling: device-wide means over a few steps that it saw whole; a cross-check of total.dram_bytes.
  uint64_t pm_windows = 0;
  double pm_dram_bytes = 0;     // a step
  double pm_tensor_share = -1;  // of the time; negative: unknown
  By by = By::kLayer;
  Sums total;
  Derived total_derived;
  std::vector<Row> rows;  // of the chosen By
  // The rows are whole runs (sweep.h): their times are not parts of one whole, so marks do not show them by area.
  bool rows_are_runs = false;
  std::vector<Row> phases;  // always there: the By::kPhase rows
  // By::kLayer only: `rows` split by phase (model, layer, phase), in the same order. The pictures show these, because
  // a layer's forward and backward are different points.
  std::vector<Row> layer_phases;
  double shortest_launch_ns = 0;  // the shortest launch seen: what is near it is bound by launching; 0: unknown
  // Shares of GPU time.
  double attributed_share = 0;  // forward and backward launches that have a layer, of all forward and backward ones
  double counters_share = 0;    // time_with_counters / time
  uint64_t unattributed_launches = 0;  // forward or backward without a layer
  // Backward over forward; 0: undefined. About 2 for FLOP (invariants.h, R005).
  double backward_over_forward_model_flop = 0, backward_over_forward_flop = 0, backward_over_forward_time = 0;
  std::vector<std::string> outside_ops;  // operators of the launches of no model and no phase, the longest three
  std::string theory;                    // where model FLOP come from when they are another run's; else empty
  std::vector<std::string> headline;     // the first lines that a reader must see
  std::vector<Alarm> alarms;
  std::vector<DiagnosticInfo> diagnostics;
  std::vector<std::pair<std::string, uint64_t>> drops;
  std::vector<ModelInfo> models;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_REPORT_H_
