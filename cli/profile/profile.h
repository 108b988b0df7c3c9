// File: profile.h
//
// A Profile is the content of one or many traces, in memory, with ids resolved. The reader and the importers make
// Profiles; merging two is adding them; reports, diffs and merged traces are made from them. Only sums are kept, as
// exact integers, so that merging is associative and commutative.
#ifndef RFINJECT_CLI_PROFILE_PROFILE_H_
#define RFINJECT_CLI_PROFILE_PROFILE_H_

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "cli/profile/kept.h"
#include "cli/profile/step_span.h"
#include "cli/profile/step_times.h"
#include "proto/rfinject/v1/trace.schema.h"
#include "proto/wire/stat.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

// Of rfinject.v1.Tier: names of operators and autograd nodes, no layers.
inline constexpr int kTierNamesOnly = 4;

using wire::Stat;
using wire::Uint128;

// What a metric's samples of one step add up to, over processes that sampled it.
struct StepSum {
  uint64_t step = 0;
  uint64_t sum = 0;
  friend auto operator<=>(const StepSum&, const StepSum&) = default;
};

// Drops what comes after step `last`; `sums` ascend.
void DropStepsAfter(uint64_t last, std::vector<StepSum>* sums);

struct MetricInfo {
  std::string name;  // "rf.time", "dram__bytes_read.sum"
  std::string unit;
  double scale = 1;  // value = integer * scale
  friend auto operator<=>(const MetricInfo&, const MetricInfo&) = default;
};

using SourceKind = trace::Source;
// "measured", "estimated", "imported", "none".
std::string_view SourceName(SourceKind source);

// Facts, as the schema declares them: a new field is read, merged and written without a line here.
using DeviceInfo = trace::Device;
using ProcessInfo = trace::Process;
using PolicyInfo = trace::Policy;
using PmWindowInfo = trace::PmWindow;
using DiagnosticInfo = trace::Diagnostic;  // `count`: processes that said so
using trace::Severity;

// The order in which processes are kept and shown: by what they say in words (version, host, …, then the arguments)
// before numbers such as the process id, so that alike processes stand together.
struct ProcessOrder {
  bool operator()(const ProcessInfo& a, const ProcessInfo& b) const;
};

// Returns the error that two metrics of one name are not the same, so that their sums cannot be added.
absl::Status MetricsDisagree(const MetricInfo& there, const MetricInfo& here);

// What must be equal before sums may be added. Everything else about the processes is kept beside the sums.
struct RunKey {
  SourceKind source = SourceKind::kUnspecified;
  std::string gpu;  // device name, or the row of gpus.csv when estimated
  std::string estimated_gpu;
  PolicyInfo policy;
  uint64_t batch_size = 0;
  std::string collector;
  std::vector<std::string> models;  // class names of the roots that hold parameters, in order of first call
  // One class can be many networks: ResNet-18 and ResNet-50 differ in the elements that their parameters have. And
  // one network does other work when it trains than when it infers.
  uint64_t parameters = 0;
  bool training = false;
  friend auto operator<=>(const RunKey&, const RunKey&) = default;
};

// A model without its id, which is the file's.
using ModelInfo = trace::Model;

// Identity of a layer across processes: the model it is in, and its path ("" for the root).
struct LayerKey {
  std::string model;  // ModelInfo::class_name; "" : in no layer
  std::string path;
  friend auto operator<=>(const LayerKey&, const LayerKey&) = default;
};

// What a layer is, without what identifies it in a file.
struct LayerInfo : trace::Layer {
  std::string parent_path;  // in the same model; empty for the root, and below it
  void Merge(const LayerInfo& other);
  friend bool operator==(const LayerInfo&, const LayerInfo&) = default;
};

struct LaunchKey {
  LayerKey layer;
  Phase phase = Phase::kOther;
  std::string op, kernel, signature, node;
  std::array<uint32_t, 3> grid{}, block{};
  uint32_t dynamic_shared_bytes = 0;
  uint32_t device = 0;
  friend auto operator<=>(const LaunchKey&, const LaunchKey&) = default;
};

// A native call stack, innermost first.
struct NativeFrameInfo {
  std::string module, build_id;  // path of the ELF object; build id in hexadecimal
  std::string function;          // demangled; empty where it is not known
  uint64_t offset = 0;           // of the return address, as the file has addresses
  friend auto operator<=>(const NativeFrameInfo&, const NativeFrameInfo&) = default;
};
using NativeStackInfo = std::vector<NativeFrameInfo>;

// A line of the program, in Python (SourceLine of the schema).
struct SourceLineInfo {
  std::string file, function;
  uint32_t line = 0;
  friend auto operator<=>(const SourceLineInfo&, const SourceLineInfo&) = default;
};

struct LaunchStats {
  uint64_t launches = 0;
  // The stack of a launch of this key, the smallest of those that were taken; null when none was. Keys share stacks.
  std::shared_ptr<const NativeStackInfo> stack;
  // The line of the program that launches of this key come from; the smallest, too, and null when none is known.
  std::shared_ptr<const SourceLineInfo> line;
  std::map<std::string, Stat> metrics;  // by metric name
  // By metric name, ascending by step: of the steps that Run::sampled_steps names, those in which the key was
  // sampled.
  std::map<std::string, std::vector<StepSum>> step_sums;
  void Merge(const LaunchStats& other);
  void MergeStack(const std::shared_ptr<const NativeStackInfo>& other);
  void MergeLine(const std::shared_ptr<const SourceLineInfo>& other);
  friend bool operator==(const LaunchStats& a, const LaunchStats& b) {
    const bool same_stack = a.stack == b.stack || (a.stack && b.stack && *a.stack == *b.stack);
    const bool same_line = a.line == b.line || (a.line && b.line && *a.line == *b.line);
    return a.launches == b.launches && a.metrics == b.metrics && a.step_sums == b.step_sums && same_stack &&
           same_line;
  }
};

// What adds up over the steps of a run, or over the batches of a validation.
using StepSums = trace::RunSteps;

// Ten thousand ranks must not need ten thousand times the memory, so only a few of what each process says differently
// are kept. These are the smallest and not the first, so that merging stays commutative.
inline constexpr size_t kMaxProcessesKept = 64;
inline constexpr size_t kMaxDevicesKept = 64;
inline constexpr size_t kMaxPmWindowsKept = 64;
inline constexpr size_t kMaxCollectorVersionsKept = 64;
inline constexpr size_t kMaxSampledStepsKept = 1024;  // of each metric, the first by number

// What was in a device's memory when it was fullest (MemoryPeak of the schema).
struct MemoryPlace {
  LayerKey layer;
  Phase phase = Phase::kOther;
  friend auto operator<=>(const MemoryPlace&, const MemoryPlace&) = default;
};
struct MemoryPeakInfo : trace::MemoryPeak {  // without its run, and with places by name instead of those by id
  std::map<MemoryPlace, uint64_t> parts;     // bytes
  MemoryPlace refused_in;
  // What did not fit stands before what did.
  friend std::strong_ordering operator<=>(const MemoryPeakInfo& a, const MemoryPeakInfo& b) {
    const auto rank = [](const MemoryPeakInfo& peak) {
      return std::tie(peak.refused_bytes, peak.allocated_bytes, peak.reserved_bytes, peak.step, peak.device,
                      static_cast<const trace::MemoryPeak&>(peak), peak.parts, peak.refused_in);
    };
    return rank(a) <=> rank(b);
  }
  friend bool operator==(const MemoryPeakInfo&, const MemoryPeakInfo&) = default;
};

// A step as the GPU saw it (StepTimeline of the schema): its `key` are places in `launched`.
struct StepTimelineInfo : trace::StepTimeline {
  std::vector<LaunchKey> launched;  // each once
  friend auto operator<=>(const StepTimelineInfo& a, const StepTimelineInfo& b) {
    return std::tie(a.windows, static_cast<const trace::StepTimeline&>(a), a.launched) <=>
           std::tie(b.windows, static_cast<const trace::StepTimeline&>(b), b.launched);
  }
  friend bool operator==(const StepTimelineInfo&, const StepTimelineInfo&) = default;
};

struct Run {
  RunKey key;
  std::vector<DeviceInfo> devices;        // at most kMaxDevicesKept, ascending, no two alike
  std::vector<ProcessInfo> process_list;  // at most kMaxProcessesKept, by ProcessOrder; `processes` counts all
  uint64_t processes = 0;
  std::set<uint32_t> ranks;
  int tier = 0;                             // worst of the processes'; rfinject.v1.Tier
  std::map<std::string, ModelInfo> models;  // by class name
  std::map<LayerKey, LayerInfo> layers;
  std::map<LaunchKey, LaunchStats> launches;
  StepSums steps;
  std::map<uint32_t, StepTimes> step_times;  // by rank; 0 for a program of one process
  MemoryPeakInfo memory_peak;                // of the process that was refused or had most; no parts: not known
  // By metric name: the steps that were sampled, and by how many processes. At most kMaxSampledStepsKept each.
  std::map<std::string, std::map<uint64_t, uint64_t>> sampled_steps;
  // Windows of PM sampling with their bins over time: the first kMaxPmWindowsKept by step. `steps` has the sums of
  // all.
  std::vector<PmWindowInfo> pm_windows;
  // When the steps of an import ran, at most kMostStepSpans, which `steps` has in its sums. None of several
  // processes.
  std::vector<StepSpan> step_spans;
  // By device: that of the process with most windows of samples.
  std::map<uint32_t, StepTimelineInfo> timelines;
  std::set<std::string> collector_versions;  // at most kMaxCollectorVersionsKept, the smallest
  KeptOfRun kept;
  uint64_t unfinished = 0;  // processes whose trace has no End record
  // Adds a run of the same key.
  void Merge(Run other);
  friend bool operator==(const Run&, const Run&) = default;
};

struct Profile {
  // The traces whose sums are in it (Chunk.trace_id). Adding a Profile that shares one would count it twice, so
  // readers of several files check this first.
  std::set<std::string> trace_ids;
  std::map<std::string, MetricInfo> metrics;  // by name
  std::map<RunKey, Run> runs;

  // Adds `other`. Two metrics of one name must agree in unit and scale; where they do not, the status says so and
  // nothing is added.
  absl::Status Merge(Profile other);
  friend bool operator==(const Profile&, const Profile&) = default;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PROFILE_PROFILE_H_
