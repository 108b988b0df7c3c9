// File: trace_recorder.h
//
// TraceRecorder implements Recorder. Recording threads put launches into rings (rings.h); the writer (writer.h) moves
// them into sums (pending.h), makes frames of these (frame_builder.h) and appends the frames to the trace
// (trace_file.h).
//
// A forked child lets go of everything that belongs to its parent's trace, and leaks it, since threads that do not
// exist in the child may have been using it. The object stays the same, so references to it remain good. A vfork
// child shares our memory, and a raw clone runs no handlers: for both, what would touch the file first asks whether
// this is still the process that it was (RecorderState::IsOurProcess).
#ifndef RFINJECT_COLLECTOR_RECORD_TRACE_RECORDER_H_
#define RFINJECT_COLLECTOR_RECORD_TRACE_RECORDER_H_

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "collector/record/diagnostic_log.h"
#include "collector/record/fork.h"
#include "collector/record/rings.h"
#include "collector/record/state.h"
#include "collector/record/step_clock.h"
#include "collector/record/step_notes.h"
#include "collector/record/writer.h"
#include "collector/recorder.h"
#include "collector/settings.h"
#include "collector/sync.h"

namespace rfinject {

class TraceRecorder final : public Recorder, private ForkHandler {
 public:
  // `settings` must live as long as the recorder, which is never destroyed: allocate it with new, or in static
  // storage.
  explicit TraceRecorder(const Settings& settings) noexcept;

  uint32_t Intern(std::string_view text) noexcept override;
  uint32_t DefineMetric(std::string_view name, std::string_view unit, double scale) noexcept override;
  uint32_t DefineModel(const ModelDefinition& model) noexcept override;
  uint32_t DefineLayer(const LayerDefinition& layer) noexcept override;
  void SetLayerShapes(uint32_t layer, std::string_view input, std::string_view output) noexcept override;
  bool FindLayer(uint32_t layer, LayerDefinition* definition) override;
  void UpdateFacts(const RunFacts& facts) noexcept override;
  uint32_t DefineSourceLine(std::string_view file, uint32_t line, std::string_view function) noexcept override;
  void NoteSourceLine(const LaunchIdentity& identity, uint32_t line) noexcept override;
  void NoteOperatorWork(OperatorWork work) noexcept override;
  void NoteTimeline(Timeline timeline) noexcept override;
  void NoteStack(const LaunchIdentity& identity, std::span<const NativeFrame> frames) noexcept override;
  void DescribeModule(uint32_t module, std::string_view path, std::string_view build_id) noexcept override;
  void NameFrame(const NativeFrame& frame, std::string_view function) noexcept override;

  void Record(const LaunchRecord& record) noexcept override;
  void RecordLaunch(const LaunchIdentity& identity, uint32_t launches) noexcept override;
  void Add(const LaunchRecord& record) noexcept override;
  void AddSamples(const LaunchRecord& record, uint64_t step) noexcept override;
  uint32_t DefineGraph(std::span<const GraphMember> members, const LaunchIdentity& whole,
                       bool settled) noexcept override;
  void SettleGraph(uint32_t graph, bool by_members) noexcept override;
  void ForgetGraph(uint32_t graph) noexcept override;
  void CountDrop(std::string_view what, uint64_t count) noexcept override;
  void MayWrite() noexcept override { writer_.MayWrite(); }
  void WaitForRoom() noexcept override;

  void BeginFirstStep() noexcept override;
  void EndStep(uint64_t samples_in_step) noexcept override;
  void BeginTraining() noexcept override;
  void RestartStep() noexcept override { clock_.Restart(); }
  uint64_t CurrentStep() const noexcept override { return state_.progress.step(); }
  void MarkArmed(uint32_t group) noexcept override { notes_.MarkArmed(group); }
  void NoteMemory(uint64_t in_use, uint64_t peak) noexcept override { notes_.NoteMemory(in_use, peak); }
  void NoteMemoryPeak(const MemoryPeak& peak) noexcept override;
  void NoteCalls(uint32_t calls, uint32_t kind, uint32_t optimizer) noexcept override {
    notes_.NoteCalls(calls, kind, optimizer);
  }
  void LeaveStepOut() noexcept override { notes_.LeaveOut(); }
  void NoteFailure() noexcept override { notes_.NoteFailure(); }
  void NoteCompilation() noexcept override { notes_.NoteCompilation(); }
  void NoteEvaluation(uint64_t samples) noexcept override {
    if (InWindow()) state_.progress.BeginBatch(samples);
  }
  void Keep(trace::RunRecord record) noexcept override;

  bool InWindow() const noexcept override { return state_.window.Measured(CurrentStep()); }
  bool WindowIsOver() const noexcept override { return state_.window.IsOver(CurrentStep()); }
  void RequestMeasuring(bool measuring) noexcept override { state_.window.Request(measuring); }
  bool NextStepIsMeasured() const noexcept override {
    return state_.window.wanted() && state_.window.InSettings(CurrentStep() + 1);
  }

  void ReportDiagnostic(Severity severity, std::string_view id, std::string_view text,
                        std::string_view remedy) noexcept override {
    log_.Report(severity, id, text, remedy);
  }
  void Activate() noexcept override { ActivateInto(-1); }
  bool active() const noexcept override { return state_.active(); }
  void WriteNow() noexcept override { writer_.WriteNow(); }
  void Finish(std::string_view reason) noexcept override;
  void Disable(std::string_view reason) noexcept override;
  bool BeginAgain() noexcept override;

  // Does what Activate does, with a descriptor instead of the settings' output if `fd` is not negative. For tests.
  void ActivateInto(int fd) noexcept;

 private:
  // Calls `what(definitions, pending)` under the state's lock, and returns its result; a value of nothing (0, "")
  // where the lock or memory cannot be had.
  template <typename Do>
  auto Locked(Do what) noexcept -> decltype(what(std::declval<Definitions&>(), std::declval<Pending&>()));
  // Records what LaunchRing::Push takes.
  template <typename... What>
  void Push(const What&... what) noexcept;
  template <typename... What>
  void PushAt(LaunchRing* ring, const RingPosition& position, const What&... what) noexcept;
  // Records the first launch of a thread, or one of a thread that gets no ring: it is kept where the thread has had
  // one, and counted as dropped else.
  [[gnu::noinline, gnu::cold]] void RecordFirst(const LaunchRecord& record, const RingPosition& position) noexcept;
  LaunchRing* AcquireRing() noexcept;
  // Keeps what was waited for since the last step, unless something was validated since.
  void NoteWaitsBehindLastStep() noexcept;
  // Starts or stops the measuring with the step `next`, if the user has asked for that.
  void FollowRequest(uint64_t next) noexcept;

  void BeforeFork() noexcept override { state_.BeforeFork(); }
  void AfterForkInParent() noexcept override { state_.AfterForkInParent(); }
  void AfterForkInChild() noexcept override;

  RecorderState state_;
  Rings rings_;
  StepClock clock_;
  StepNotes notes_;
  DiagnosticLog log_{&state_};
  TraceWriter writer_{&state_, &rings_, &log_};
  Mutex activation_lock_;  // held by the one thread that opens the trace
  // Threads that end steps add to it, the thread that finishes reads it for the last line. Relaxed: it is one number.
  std::atomic<uint64_t> measured_steps_{0};
  // Batches of validation when the last step ended. As above.
  std::atomic<uint64_t> batches_before_{0};
  // The last line was printed, or need not be. Threads that finish exchange it, so that one of them speaks.
  std::atomic<bool> last_words_{false};
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_RECORD_TRACE_RECORDER_H_
