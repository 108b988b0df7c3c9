// File: recorder.h
//
// The Recorder is the one place that everything measured goes to. It interns names, keeps statistics for each launch
// key, and appends them to the trace about once a second, and more seldom as a run ages. It does that from a thread
// of its own where the program has threads, too.
//
// Hot calls (Record) write into a ring of the calling thread and return: they take no lock, allocate nothing after a
// thread's first call, and count a drop when the ring is full. Cold calls (Define…, Intern, Add, Report…) take one
// lock, on whichever thread they come.
//
// A process has one Recorder at a time, Recorder::Get(). It is idle at first: rings fill, definitions are kept, no
// thread of ours runs, and no file exists. Activate() begins the trace; the injector calls it when the process turns
// out to be a training process. After fork() the child has a fresh idle one, which keeps the definitions and drops
// statistics and file, since these are the parent's. The parent's objects are leaked there on purpose, since other
// threads may have held them. References to the Recorder stay good: it is the same object, made anew.
#ifndef RFINJECT_COLLECTOR_RECORDER_H_
#define RFINJECT_COLLECTOR_RECORDER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "collector/native_stack.h"
#include "collector/run_facts.h"
#include "collector/site.h"
#include "proto/rfinject/v1/trace.schema.h"
#include "proto/wire/vocabulary.h"

namespace rfinject {

// The ids of the metrics that every recorder knows from the start; other metrics get theirs from DefineMetric.
enum WellKnownMetric : uint32_t {
  kTime = 1,
  kModelFlop = 2,
  kDramBytes = 3,
  kCompulsoryBytes = 4,
  kFlopFirst = 5,  // + Precision
  kProductFlop = kFlopFirst + kPrecisionCount,
  kHiddenFlop,
  kFirstFreeMetric,
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

// A hash of everything that makes two identities equal.
uint64_t HashOf(const LaunchIdentity& identity) noexcept;
struct IdentityHash {
  size_t operator()(const LaunchIdentity& identity) const noexcept { return HashOf(identity); }
};

inline constexpr size_t kMaxSamplesPerRecord = 8;

struct LaunchRecord {
  // In `launches`: one launch of the CUDA graph that `identity.kernel` is the number of (Recorder::DefineGraph).
  static constexpr uint32_t kGraph = UINT32_MAX;

  LaunchIdentity identity;
  uint32_t launches = 1;  // 0: samples for launches that were recorded already
  uint32_t sample_count = 0;
  std::array<Sample, kMaxSamplesPerRecord> samples{};

  // There must be room for one more.
  void AddSample(uint32_t metric, uint64_t value) noexcept { samples[sample_count++] = {metric, value}; }
};

// What one launch of a CUDA graph launches: so many launches that are alike.
struct GraphMember {
  LaunchIdentity identity;
  uint32_t launches = 1;
};

// What the trace says of a layer and of a model. The recorder gives them their ids, and SetLayerShapes a layer's
// shapes.
using LayerDefinition = trace::Layer;
using ModelDefinition = trace::Model;

// What calls of an operator compute, with the launches of one call in place of their keys, as many as
// `work.launches`.
struct OperatorWork {
  trace::OperatorWork work;
  std::vector<LaunchIdentity> launched;
};

// A step as the GPU saw it, with the launches that ran in it, as many as `timeline.start_ns`, in place of their keys.
struct Timeline {
  trace::StepTimeline timeline;
  std::vector<LaunchIdentity> launched;
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
  // What was defined as that layer; false where no layer has that number. May throw std::bad_alloc. A cold call.
  virtual bool FindLayer(uint32_t layer, LayerDefinition* definition) = 0;
  // Merges facts field by field: set fields win over unset ones, later ones over earlier.
  virtual void UpdateFacts(const RunFacts& facts) noexcept = 0;

  // --- Launches. Record is a hot call, for the thread that launches. It ignores launches outside of the window of
  // --skip and --steps.
  virtual void Record(const LaunchRecord& record) noexcept = 0;
  // The same of one launch without samples, or of a graph's (`launches`: kGraph).
  virtual void RecordLaunch(const LaunchIdentity& identity, uint32_t launches = 1) noexcept = 0;
  // A cold call that does the same from any thread, for counters that are decoded after the step. It does not look at
  // the window, which may have closed by then: the caller must note at the launch whether it was in the window
  // (InWindow).
  virtual void Add(const LaunchRecord& record) noexcept = 0;
  // The same for samples of launches that were recorded in `step`, which has ended. The samples of a metric must come
  // in the order of the steps; those of kOfNoStep are in no sum by step (SampledStep).
  static constexpr uint64_t kOfNoStep = UINT64_MAX;
  virtual void AddSamples(const LaunchRecord& record, uint64_t step) noexcept = 0;

  // --- CUDA graphs: one record (LaunchRecord::kGraph) stands for all that a launch of the graph launches. Cold
  // calls. DefineGraph returns the graph's number; 0 when there is no room for it. While the graph is not `settled`,
  // its launches are kept back; SettleGraph says what they are: those of `members`, or launches of `whole`.
  // ForgetGraph tells that the graph is launched no more.
  virtual uint32_t DefineGraph(std::span<const GraphMember> members, const LaunchIdentity& whole,
                               bool settled) noexcept = 0;
  virtual void SettleGraph(uint32_t graph, bool by_members) noexcept = 0;
  virtual void ForgetGraph(uint32_t graph) noexcept = 0;

  // Lets a recorder that has no thread of its own write what is due, about once a second; otherwise costs one load.
  // The calling thread must not be in a signal handler. Sources whose launches are recorded by the program's own
  // thread call this after Record.
  virtual void MayWrite() noexcept = 0;
  // Waits, for a second at most, until there is room again for what this thread records, where most of it is taken;
  // otherwise costs two loads. Only for sources that have no GPU to hold up.
  virtual void WaitForRoom() noexcept {}

  // --- Lines of the program; cold calls. DefineSourceLine returns one id for the same line; `file` is written as the
  // trace shall have it. NoteSourceLine gives the line of the launches that are recorded under `identity`; the first
  // one stands.
  virtual uint32_t DefineSourceLine(std::string_view file, uint32_t line, std::string_view function) noexcept = 0;
  virtual void NoteSourceLine(const LaunchIdentity& identity, uint32_t line) noexcept = 0;

  // --- Operators; a cold call. Tells what launches compute, which may have been recorded or not. The calls of what
  // was told before are added up.
  virtual void NoteOperatorWork(OperatorWork /*work*/) noexcept {}
  // Takes the place of the timeline that was noted last for the device. A cold call.
  virtual void NoteTimeline(Timeline /*timeline*/) noexcept {}

  // --- Native stacks; cold calls. NoteStack gives the stack of the launches that are recorded under `identity`; the
  // first one stands.
  virtual void NoteStack(const LaunchIdentity& identity, std::span<const NativeFrame> frames) noexcept = 0;
  // Tell what the module is that frames number `module`, and what a frame's function is called, once that is known.
  virtual void DescribeModule(uint32_t module, std::string_view path, std::string_view build_id) noexcept = 0;
  virtual void NameFrame(const NativeFrame& frame, std::string_view function) noexcept = 0;

  // --- Steps. EndStep closes the current step: all that was recorded by any thread before the call belongs to it.
  // What is told of the current step is told before.
  virtual void EndStep(uint64_t samples_in_step) noexcept = 0;
  virtual uint64_t CurrentStep() const noexcept = 0;
  // Tells that the current step ran with counters; `group` counts from 1.
  virtual void MarkArmed(uint32_t group) noexcept = 0;
  // Tells the device memory in use at the end of the current step, and the most during it: bytes, of all processes.
  virtual void NoteMemory(uint64_t in_use, uint64_t peak) noexcept = 0;
  // Tells what lay in the device's memory when the most was allocated; it takes the place of the last peak. A cold
  // call.
  virtual void NoteMemoryPeak(const MemoryPeak& peak) noexcept = 0;
  // Tells what the current step is made of: how many calls of root modules, a number that tells it from other steps
  // of an iteration (Step.kind), and Step.optimizer.
  virtual void NoteCalls(uint32_t calls, uint32_t kind, uint32_t optimizer) noexcept = 0;
  // Tells that a batch is validated, which is part of no step.
  virtual void NoteEvaluation(uint64_t samples) noexcept = 0;
  // Leaves out the step that runs, because it was not seen from its beginning.
  virtual void LeaveStepOut() noexcept = 0;
  // Tells that what the program tries in the current step has failed. What is launched in this step is in no sum.
  virtual void NoteFailure() noexcept {}
  // Tells that the program compiles kernels in the current step (torch.compile), and tries them out. What is launched
  // in this step is in no sum, and --steps counts the next one instead.
  virtual void NoteCompilation() noexcept = 0;
  // Tells that the program begins to train with the current step, which nothing was launched in. What it has run
  // before was no training: its steps were batches of validation, and --skip and --steps count from here.
  virtual void BeginTraining() noexcept = 0;
  // Lets the current step begin now, and not when the last one ended.
  virtual void RestartStep() noexcept = 0;
  // Writes a record as it is (@as_is and @kept in the schema), after all that is defined so far; the recorder sets
  // its `run`. What says in which `step` it was seen counts only if that step is measured. A cold call.
  virtual void Keep(trace::RunRecord record) noexcept = 0;
  // Whether the current step is measured: false before --skip steps have passed, after --steps more have, and while
  // measuring is stopped.
  virtual bool InWindow() const noexcept = 0;
  // Whether --skip and --steps have passed.
  virtual bool WindowIsOver() const noexcept = 0;
  // Asks for the steps that begin from now on to be measured, or not. The step that runs stays as it is. Any thread
  // may call this.
  virtual void RequestMeasuring(bool measuring) noexcept = 0;
  // What InWindow will return in the step after the current one, if nothing else is asked for.
  virtual bool NextStepIsMeasured() const noexcept = 0;

  // --- What went wrong. One Diagnostic per id; the first also goes to stderr, in one line, unless quiet. An idle
  // recorder holds that line back until Activate: a process that is no training process hears nothing from us.
  virtual void ReportDiagnostic(Severity severity, std::string_view id, std::string_view text,
                                std::string_view remedy = {}) noexcept = 0;
  virtual void CountDrop(std::string_view what, uint64_t count = 1) noexcept = 0;

  // --- Life.
  // Begins the first step at this moment. Launches that belong to no model and no phase so far are forgotten: the
  // program was making its weights, and that is part of no step. The injector calls this once, with the GIL held,
  // before Activate and on the same thread; after Activate, or when a step has ended already, it does nothing.
  virtual void BeginFirstStep() noexcept = 0;
  // Opens the trace and begins to write; idempotent. On failure the recorder is muted for good, with a line on
  // stderr.
  virtual void Activate() noexcept = 0;
  virtual bool active() const noexcept = 0;
  // Writes the steps that have ended, and goes on recording. Waits for that, but not longer than a second. The
  // calling thread must not be in a signal handler.
  virtual void WriteNow() noexcept = 0;
  // Writes what there is, then an End chunk, and closes. Safe to call twice and from any thread; bounded in time.
  virtual void Finish(std::string_view reason) noexcept = 0;
  // Stops everything for good and keeps the reason in the trace.
  virtual void Disable(std::string_view reason) noexcept = 0;
  // Forgets a recording that has ended, but for what ids stand for, so that the next Activate opens another trace, as
  // GetSettings then says. Called while nobody records. Returns false where a trace is being written.
  virtual bool BeginAgain() noexcept = 0;
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_RECORDER_H_
