// File: recorder.h
//
// The one place that everything measured goes to: it interns names, keeps statistics per launch key, and appends
// them to the trace about once a second, from a thread of its own where the program has threads, too.
//
// Hot calls (Record) write into a ring of the calling thread and return: they take no lock, allocate nothing after a
// thread's first call, and count a drop when the ring is full. Cold calls (Define…, Intern, Add, Report…) take one
// lock, on whichever thread they come.
//
// Life: a process has one Recorder at a time, Recorder::Get(). It is idle at first: rings fill, definitions are kept,
// no thread runs, no file exists. Activate() makes it a trace; the injector calls it when the process turns out to be
// a training process. After fork() the child gets a fresh idle one (definitions kept, statistics and file dropped:
// they are the parent's); the parent's objects are leaked there on purpose, since other threads may have held them.
// References stay good: it is the same object, made anew.
#ifndef RFINJECT_COLLECTOR_RECORDER_H_
#define RFINJECT_COLLECTOR_RECORDER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "collector/native_stack.h"
#include "collector/pm_window.h"
#include "collector/run_facts.h"
#include "collector/site.h"
#include "proto/wire/vocabulary.h"

namespace rfinject {

// Ids of metrics every recorder knows from the start; others come from DefineMetric.
enum WellKnownMetric : uint32_t {
  kTime = 1,
  kModelFlop = 2,
  kDramBytes = 3,
  kCompulsoryBytes = 4,
  kFlopFirst = 5,  // + Precision
  kFirstFreeMetric = kFlopFirst + kPrecisionCount,
};

struct Sample {
  uint32_t metric = 0;
  uint64_t value = 0;
};

// What identifies the statistics that a launch is added to.
struct LaunchIdentity {
  uint32_t kernel = 0;     // Intern()
  uint32_t signature = 0;  // Intern(); estimated kernels only
  Site site;
  std::array<uint32_t, 3> grid{};
  std::array<uint32_t, 3> block{};
  uint32_t dynamic_shared_bytes = 0;
  uint32_t device = 0;

  friend bool operator==(const LaunchIdentity&, const LaunchIdentity&) = default;
};

// Of all that makes two identities equal.
uint64_t HashOf(const LaunchIdentity& identity) noexcept;

inline constexpr size_t kMaxSamplesPerRecord = 6;

struct LaunchRecord {
  LaunchIdentity identity;
  uint32_t launches = 1;  // 0: samples for launches that were recorded already
  uint32_t sample_count = 0;
  std::array<Sample, kMaxSamplesPerRecord> samples{};
  // Recorder::Add only: the samples are shares of one sum over a range of launches (MetricStats.shared_sums). 1 in
  // the first record of a key and sum, 0 in the others of it.
  uint32_t shared_sums = 0;
};

struct LayerDefinition {
  uint32_t model = 0;
  uint32_t parent = 0;
  std::string path;  // "" for the root
  std::string class_name;
  uint64_t parameters = 0;
  uint64_t parameter_bytes = 0;
  bool training = false;
};

struct ModelDefinition {
  std::string class_name;
  uint64_t parameters = 0;
  uint64_t parameter_bytes = 0;
  uint64_t trainable_parameters = 0;
};

using Severity = trace::Severity;

struct MemoryPeak;  // memory_peak.h

class Recorder {
 public:
  // The process's recorder; never null, never destroyed.
  static Recorder& Get() noexcept;

  virtual ~Recorder() = default;

  // --- Definitions. Ids start at 1; 0 means that memory ran out. The same text gives the same id.
  virtual uint32_t Intern(std::string_view text) noexcept = 0;
  virtual uint32_t DefineMetric(std::string_view name, std::string_view unit, double scale) noexcept = 0;
  virtual uint32_t DefineModel(const ModelDefinition& model) noexcept = 0;
  virtual uint32_t DefineLayer(const LayerDefinition& layer) noexcept = 0;
  // Shapes seen at the layer's first call ("f32[8,3,224,224]"); later calls for the same layer are ignored.
  virtual void SetLayerShapes(uint32_t layer, std::string_view input, std::string_view output) noexcept = 0;
  // A layer's path, or its class where it is the root; empty where there is none of that number. May throw
  // std::bad_alloc. Cold.
  virtual std::string LayerName(uint32_t layer) {
    (void)layer;
    return {};
  }
  // Facts are merged field by field; set ones win over unset ones, later over earlier.
  virtual void UpdateFacts(const RunFacts& facts) noexcept = 0;

  // --- Launches, hot. Ignored outside the window of --skip and --steps.
  virtual void Record(const LaunchRecord& record) noexcept = 0;
  // The same, cold, from any thread: for counters that are decoded after the fact. Not bound to the window, which may
  // have closed by then: whether the launch was in it (InWindow) the caller has noted when it was launched.
  virtual void Add(const LaunchRecord& record) noexcept = 0;

  // The calling thread is in no signal handler: where the recorder has no thread of its own it writes here what is
  // due, about once a second. Costs one load otherwise. Sources whose launches are recorded by the program's own
  // thread call it after Record.
  virtual void MayWrite() noexcept {}

  // --- Lines of the program, cold. One id for the same line; `file` as the trace is to have it. The line of the
  // launches that are recorded under `identity`; the first one stands.
  virtual uint32_t DefineSourceLine(std::string_view file, uint32_t line, std::string_view function) noexcept {
    (void)file;
    (void)line;
    (void)function;
    return 0;
  }
  virtual void NoteSourceLine(const LaunchIdentity& identity, uint32_t line) noexcept {
    (void)identity;
    (void)line;
  }

  // --- Native stacks, cold. The stack of the launches that are recorded under `identity`; the first one stands.
  virtual void NoteStack(const LaunchIdentity& identity, std::span<const NativeFrame> frames) noexcept {
    (void)identity;
    (void)frames;
  }
  // What the module numbered `module` in frames is, and what a frame's function is called, once that is known.
  virtual void DescribeModule(uint32_t module, std::string_view path, std::string_view build_id) noexcept {
    (void)module;
    (void)path;
    (void)build_id;
  }
  virtual void NameFrame(const NativeFrame& frame, std::string_view function) noexcept {
    (void)frame;
    (void)function;
  }

  // --- Steps. EndStep closes the current step: all that was recorded by any thread before the call belongs to it.
  virtual void EndStep(uint64_t samples_in_step) noexcept = 0;
  virtual uint64_t CurrentStep() const noexcept = 0;
  // The current step ran with counters: `group` from 1. Called before its EndStep.
  virtual void MarkArmed(uint32_t group) noexcept { (void)group; }
  // Device memory at the end of the current step, and the most during it; bytes in use by all processes. Before
  // EndStep.
  virtual void NoteMemory(uint64_t in_use, uint64_t peak) noexcept {
    (void)in_use;
    (void)peak;
  }
  // For how long something ran on the GPU in the current step. Before EndStep.
  virtual void NoteBusy(uint64_t ns) noexcept { (void)ns; }
  // What lay in the device's memory when most did; the highest so far, which takes the place of the last one. Cold.
  virtual void NoteMemoryPeak(const MemoryPeak& peak) noexcept { (void)peak; }
  // What the current step is made of: calls of root modules, and a number that tells it from other steps of an
  // iteration (Step.kind); `optimizer`: Step.optimizer. Before EndStep.
  virtual void NoteCalls(uint32_t calls, uint32_t kind, uint32_t optimizer) noexcept {
    (void)calls;
    (void)kind;
    (void)optimizer;
  }
  // A batch is validated, which is part of no step.
  virtual void NoteEvaluation(uint64_t samples) noexcept { (void)samples; }
  // The step that runs was not seen from its beginning, so that it is no measured one. Before its EndStep.
  virtual void LeaveStepOut() noexcept {}
  // The current step begins now and not when the last one ended.
  virtual void RestartStep() noexcept {}
  // What PM sampling saw of a measured step. Cold.
  virtual void AddPmWindow(const PmWindow& window) noexcept { (void)window; }
  // False before --skip steps have passed and after --steps more have, and while measuring is stopped.
  virtual bool InWindow() const noexcept = 0;
  // The steps that begin from now on are wanted measured, or not. The one that runs stays as it is. Any thread.
  virtual void RequestMeasuring(bool measuring) noexcept { (void)measuring; }
  // What InWindow will say in the step that comes after the current one, as things stand.
  virtual bool NextStepIsMeasured() const noexcept { return true; }

  // --- What went wrong. One Diagnostic per id; the first also goes to stderr, in one line, unless quiet. An idle
  // recorder holds that line back until Activate: a process that is no training process hears nothing from us.
  virtual void ReportDiagnostic(Severity severity, std::string_view id, std::string_view text,
                                std::string_view remedy = {}) noexcept = 0;
  virtual void CountDrop(std::string_view what, uint64_t count = 1) noexcept = 0;

  // --- Life.
  // Begins the first step at this moment. Launches that belong to no model and no phase so far are forgotten: the
  // program was making its weights, and that is part of no step. The injector calls this once, with the GIL held,
  // before Activate and on the same thread; after Activate, or when a step has ended already, it does nothing.
  virtual void BeginFirstStep() noexcept {}
  // Opens the trace and begins to write; idempotent. On failure the recorder is muted for good, with a
  // line on stderr.
  virtual void Activate() noexcept = 0;
  virtual bool active() const noexcept = 0;
  // Writes what there is, then an End chunk, and closes. Safe to call twice and from any thread; bounded in time.
  virtual void Finish(std::string_view reason) noexcept = 0;
  // Stops everything for good and keeps the reason in the trace.
  virtual void Disable(std::string_view reason) noexcept = 0;
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_RECORDER_H_
