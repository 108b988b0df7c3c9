// File: trace_recorder.h
//
// TraceRecorder implements Recorder: with rings from the recording threads, a table of statistics, and a writer that
// writes what is new about once a second, and more seldom as a run ages (chunk_schedule.h).
//
// After Activate only the writer touches the file, the frame buffer and the consumer's side of the rings, the last
// writing at the program's end included. The writer is a thread of ours: Finish asks it for the last writing and
// waits, but not for ever, so a disk that hangs holds up nobody.
//
// A program of one thread has no such thread. A second thread would cost it what glibc leaves out for the first alone
// (atomics in malloc and in every lock: 5 % of a step of tiny layers), and Python 3.12 warns of each fork in a
// process of several. There the thread that records is also the writer, in EndStep and MayWrite, while turn_lock_ is
// held. It ceases to be the writer when the program has threads of its own, or when several turns in a row took so
// long that the program would feel it. It never is the writer where a GPU is measured or where the file lies on a
// disk that may hang (TraceFile::MayHang).
//
// lock_ guards definitions and statistics. It is held for microseconds, never while writing, so that every cold call
// may wait for it. No wait is without bound: a thread that held it may not exist any more (a raw clone), or be the
// one that waits (a signal handler).
//
// The handlers below hold lock_ across fork(), so that the child's copy is whole. The child lets go of everything
// that belongs to the parent's trace, and leaks it, since threads that do not exist in the child may have been using
// it. The object stays the same, so references to it remain good. A vfork child shares our memory, and a raw clone
// runs no handlers: for both, what would touch the file first asks whether this is still the process that it was.
#ifndef RFINJECT_COLLECTOR_TRACE_RECORDER_H_
#define RFINJECT_COLLECTOR_TRACE_RECORDER_H_

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collector/control_file.h"
#include "collector/definitions.h"
#include "collector/launch_ring.h"
#include "collector/launch_table.h"
#include "collector/memory_peak.h"
#include "collector/pm_window.h"
#include "collector/recorder.h"
#include "collector/settings.h"
#include "collector/step_sums.h"
#include "collector/step_waits.h"
#include "collector/sync.h"
#include "collector/trace_encoder.h"
#include "collector/trace_file.h"
#include "proto/wire/encoder.h"

namespace rfinject {

class TraceRecorder final : public Recorder {
 public:
  // `settings` must live as long as the recorder, which is never destroyed: allocate it with new, or in static
  // storage.
  explicit TraceRecorder(const Settings& settings) noexcept;

  uint32_t Intern(std::string_view text) noexcept override;
  uint32_t DefineMetric(std::string_view name, std::string_view unit, double scale) noexcept override;
  uint32_t DefineModel(const ModelDefinition& model) noexcept override;
  uint32_t DefineLayer(const LayerDefinition& layer) noexcept override;
  void SetLayerShapes(uint32_t layer, std::string_view input, std::string_view output) noexcept override;
  void UpdateFacts(const RunFacts& facts) noexcept override;
  void Record(const LaunchRecord& record) noexcept override;
  void Add(const LaunchRecord& record) noexcept override;
  uint32_t DefineSourceLine(std::string_view file, uint32_t line, std::string_view function) noexcept override;
  void NoteSourceLine(const LaunchIdentity& identity, uint32_t line) noexcept override;
  void NoteStack(const LaunchIdentity& identity, std::span<const NativeFrame> frames) noexcept override;
  void DescribeModule(uint32_t module, std::string_view path, std::string_view build_id) noexcept override;
  void NameFrame(const NativeFrame& frame, std::string_view function) noexcept override;
  void EndStep(uint64_t samples_in_step) noexcept override;
  void MarkArmed(uint32_t group) noexcept override { armed_group_.store(group, std::memory_order_relaxed); }
  void NoteMemory(uint64_t in_use, uint64_t peak) noexcept override {
    memory_.store(in_use, std::memory_order_relaxed);
    memory_peak_.store(peak, std::memory_order_relaxed);
  }
  void NoteMemoryPeak(const MemoryPeak& peak) noexcept override;
  std::string LayerName(uint32_t layer) override;
  void NoteCalls(uint32_t calls, uint32_t kind, uint32_t optimizer) noexcept override {
    calls_.store(calls, std::memory_order_relaxed);
    kind_.store(kind, std::memory_order_relaxed);
    optimizer_.store(optimizer, std::memory_order_relaxed);
  }
  void NoteEvaluation(uint64_t samples) noexcept override;
  void NoteBusy(uint64_t ns) noexcept override { busy_.store(ns, std::memory_order_relaxed); }
  void LeaveStepOut() noexcept override { step_left_out_.store(true, std::memory_order_relaxed); }
  void RestartStep() noexcept override;
  void AddPmWindow(const PmWindow& window) noexcept override;
  uint64_t CurrentStep() const noexcept override { return step_.load(std::memory_order_relaxed); }
  bool InWindow() const noexcept override { return Measured(CurrentStep()); }
  void RequestMeasuring(bool measuring) noexcept override { wanted_.store(measuring, std::memory_order_relaxed); }
  bool NextStepIsMeasured() const noexcept override {
    return wanted_.load(std::memory_order_relaxed) && InSettingsWindow(CurrentStep() + 1);
  }
  void ReportDiagnostic(Severity severity, std::string_view id, std::string_view text,
                        std::string_view remedy) noexcept override;
  void CountDrop(std::string_view what, uint64_t count) noexcept override;
  void BeginFirstStep() noexcept override;
  void Activate() noexcept override;
  void MayWrite() noexcept override {
    if (writer_.load(std::memory_order_relaxed) == Writer::kCaller) [[unlikely]]
      WriteIfDue();
  }
  bool active() const noexcept override { return mode_.load(std::memory_order_acquire) == Mode::kActive; }
  void Finish(std::string_view reason) noexcept override;
  void Disable(std::string_view reason) noexcept override;

  // Does what Activate does, with a descriptor instead of the settings' output. For tests.
  void ActivateInto(int fd) noexcept;

 private:
  // Knows all recorders, for the end of a thread and for fork() (a process has one, except in tests).
  friend struct RecorderProcessHooks;

  enum class Mode : uint8_t { kIdle, kActive, kFinished, kDisabled };

  // Who does the writer's work. Set under turn_lock_.
  enum class Writer : uint8_t { kNone, kCaller, kThread };

  // What belongs to one trace, and is let go of by a forked child.
  struct Trace {
    LaunchTable table;
    // What was launched in the step that runs, and in the batch that is being validated. Reports divide by what is
    // complete, so this waits here for the end of the step or the batch.
    LaunchTable running_step, running_batch;
    uint64_t running_step_index = 0, running_batch_number = 0;
    uint64_t steps_seen = 0, batches_seen = 0;  // finished_steps_ and eval_batches_ when the rings were last drained
    uint64_t batches_taken = 0;                 // complete batches that are in the file, or wait to be written
    uint64_t batches = 0, samples = 0;          // of complete batches that wait to be written
    StepSums step_sums;
    RepeatedKeys repeated_keys;
    std::map<std::string, uint64_t, std::less<>> drops;
    // Steps that wait to be written. The first ones are kept one by one; later ones, and those of a file that is
    // nearly as large as it may be, as sums. Such a file is seldom written, so what waits for it must not grow with
    // each step.
    std::deque<StepRecord> steps;
    uint64_t single_steps = 0;  // in the file, or in `steps`
    bool near_limit = false;
    SummedSteps summed_steps;
    // Steps whose launches may still lie in a ring, because they ended after steps_seen was read. They wait for the
    // next look: the file has a step and its launches at once.
    std::deque<StepRecord> early_steps;
    void AddStep(const StepRecord& step);
    void KeepStep(const StepRecord& step);
    void SumStep(const StepRecord& step);
    std::deque<PmWindow> pm_windows;
    std::optional<MemoryPeak> memory_peak;  // waits to be written
    // Stacks (Definitions::stacks) of the keys that have one.
    std::unordered_map<LaunchIdentity, uint32_t, IdentityHash> key_stacks;
    // How much of the definitions is in the file already.
    bool process_written = false;
    RunFacts facts_written;
    uint32_t names_written = 0;
    size_t models_written = 0;
    size_t metrics_written = 0;
    size_t diagnostics_written = 0;
    std::vector<uint32_t> layer_versions_written;
    std::vector<uint32_t> module_versions_written;
    std::vector<uint32_t> stack_versions_written;
    size_t lines_written = 0;
  };

  // What the writer owns. A forked child lets go of it without looking at it.
  struct Output {
    Output() noexcept;
    TraceFile file;
    wire::Encoder frame;
    int64_t begun_ns = 0;                   // monotonic
    std::atomic<int64_t> next_chunk_ns{0};  // monotonic; read by callers who ask whether they are to write
    ControlFile control;
    std::atomic<int64_t> next_look_ns{0};  // monotonic, when `control` is looked at next
    bool limit_said = false;
    std::atomic<bool> whole{false};  // the file has its End
    Event stopped;                   // signalled once, when the file is closed
  };

  // Holds lock_; false if it could not be had, or if there is nothing that it could guard. (Clang's analysis takes
  // the lock for always held: the author must see to it that the answer is looked at.)
  class Guard;

  bool InSettingsWindow(uint64_t step) const noexcept {
    return step >= window_begin_ && step < window_end_.load(std::memory_order_relaxed);
  }
  // Whether the user had stopped the measuring in `step`. Only the last stop is known.
  bool Stopped(uint64_t step) const noexcept {
    // The order matters: a thread that sees the end of a new stop also sees its beginning (FollowRequest).
    return step < stop_end_.load(std::memory_order_acquire) && step >= stop_begin_.load(std::memory_order_relaxed);
  }
  bool Measured(uint64_t step) const noexcept { return InSettingsWindow(step) && !Stopped(step); }
  // Called when the step `next` is about to begin, to do what the user asked for.
  void FollowRequest(uint64_t next) noexcept;
  // Whether somebody has asked for something by the control file (control_file.h), about once a second.
  void LookForRequest(Output* output) noexcept;
  bool IsOurProcess() const noexcept;
  // Ends recording; returns what it was before.
  Mode Mute(Mode mode) noexcept;
  void Stop(Mode mode, std::string_view reason) noexcept;
  LaunchRing* AcquireRing() noexcept;
  void StartClock() noexcept;
  // What a GPU with a clock of its own (step_waits.h) did since the last call.
  struct GpuTimes {
    bool known = false;
    uint64_t skipped_ns = 0, busy_ns = 0;
  };
  GpuTimes TakeGpuClock() noexcept;
  // Adds what the step that ends waited for, as far as anybody watched.
  void AddWaits(StepRecord* step) noexcept;
  void Print(const Diagnostic& diagnostic) noexcept;
  void PrintHeld() noexcept;
  void WakeWriter() noexcept;

  void AddToTable(const LaunchRecord& record) RFINJECT_REQUIRES(lock_);
  // Adds a record to the table, or to what waits for the end of its step or batch.
  void AddAt(const RingPosition& position, const LaunchRecord& record) RFINJECT_REQUIRES(lock_);
  void SayWhatBecameOf(LaunchTable::AddResult added) RFINJECT_REQUIRES(lock_);
  // Moves what has ended since the last call into the table. `last` says that nothing more will end.
  void TakeWhatEnded(bool last) RFINJECT_REQUIRES(lock_);
  // Whether the writer may read launches of `position`. Those of a step that runs wait for its end in the ring, where
  // there is room for them: from there they come into the table without a second one in between.
  bool MayLeaveRing(const RingPosition& position, bool half_full) const RFINJECT_REQUIRES(lock_);
  // Called when the recording is over, to decide what becomes of a step that did not end.
  void SettleWhatRan() RFINJECT_REQUIRES(lock_);
  void AddDrop(std::string_view what, uint64_t count) RFINJECT_REQUIRES(lock_);
  // Fills the frame buffer up to its soft limit; true if more is waiting. `file_bytes` is what the file has so far.
  bool EncodePending(uint64_t file_bytes, wire::Encoder* out) noexcept RFINJECT_REQUIRES(lock_);

  void Open(int fd) noexcept RFINJECT_REQUIRES(activation_lock_);
  bool MeasuresAGpu() noexcept;
  // Makes a writer: the callers, or a thread of ours. False if there can be none.
  bool StartWriter(bool callers_may_write) noexcept RFINJECT_REQUIRES(turn_lock_);
  bool StartWriterThread() noexcept RFINJECT_REQUIRES(turn_lock_);
  void WriteIfDue() noexcept;
  void WriteLastIfCaller(Output* output) noexcept;

  // Moves launches into the table. Called by the writer or, before there is one, under activation_lock_.
  enum class Wanted : uint8_t { kAll, kOfAModelOrPhase };
  bool DrainRings(Wanted wanted = Wanted::kAll, bool last = false) noexcept;
  bool WriteFrame(Output* output) noexcept;
  // Writes everything that is waiting; with `last`, even if recording is over.
  bool Flush(Output* output, bool last) noexcept;
  // Do one round of the writer's work, and the last one. Called by the writer.
  void WriteTurn(Output* output) noexcept;
  uint64_t MaxBytes() const noexcept { return std::min(settings_.max_size_mb, UINT64_MAX / 1'000'000) * 1'000'000; }
  // Returns when the chunk after one of `chunk_bytes` bytes is due; says so when the trace comes near its limit.
  int64_t NextChunkNs(Output* output, uint64_t chunk_bytes) noexcept;
  void WriteLast(Output* output) noexcept;
  static void* WriterMain(void* self) noexcept;
  void WriterLoop(Output* output) noexcept;

  // Around fork() the lock is taken in one function and given back in another, and the child has only one thread: the
  // analysis of locks cannot follow that.
  void BeforeFork() noexcept RFINJECT_NO_THREAD_SAFETY_ANALYSIS;
  void AfterForkInParent() noexcept RFINJECT_NO_THREAD_SAFETY_ANALYSIS;
  void AfterForkInChild() noexcept RFINJECT_NO_THREAD_SAFETY_ANALYSIS;

  const Settings& settings_;
  const uint64_t window_begin_;
  // Read by every Record. 0 once nothing is to be recorded any more.
  std::atomic<uint64_t> window_end_;
  // The steps of the last stop; read by every Record, written between two steps.
  std::atomic<uint64_t> stop_begin_, stop_end_;
  std::atomic<bool> wanted_;  // from the next step on
  std::atomic<uint64_t> step_{0};
  std::atomic<uint32_t> armed_group_{0};  // of the step that is running
  std::atomic<uint64_t> memory_{0};       // likewise; 0: unknown
  std::atomic<uint64_t> memory_peak_{0};
  std::atomic<uint32_t> calls_{0};  // likewise
  static constexpr uint64_t kBusyUnknown = UINT64_MAX;
  std::atomic<uint64_t> busy_{kBusyUnknown};                       // likewise
  std::atomic<uint64_t> gpu_skipped_ns_{0}, gpu_busy_seen_ns_{0};  // of the GPU's own clock, when the step began
  std::atomic<uint64_t> measured_steps_{0};
  std::atomic<bool> last_words_{false};  // the last line was printed, or need not be
  std::atomic<bool> step_left_out_{false};
  std::atomic<uint32_t> kind_{0};
  std::atomic<uint32_t> optimizer_{0};
  std::atomic<uint64_t> finished_steps_{0};  // step_, once the step's own record is in its ring
  std::atomic<uint64_t> eval_batches_{0};    // begun; all but the last have ended
  std::atomic<uint64_t> eval_samples_{0};    // of those that have ended, not in the file yet
  std::atomic<uint64_t> eval_last_samples_{0};
  std::atomic<Mode> mode_{Mode::kIdle};
  std::atomic<pid_t> pid_;
  std::atomic<LaunchRing*> rings_{nullptr};
  std::atomic<int64_t> step_start_ns_{0};  // monotonic; 0: nothing has happened yet
  std::atomic<uint64_t> ringless_drops_{0};
  int64_t created_unix_ns_;

  Mutex lock_;
  // The pointer is set before there are threads; a name in it is also looked up without the lock (NameTable::Find).
  Definitions* definitions_ RFINJECT_PT_GUARDED_BY(lock_) = nullptr;
  Trace* trace_ RFINJECT_GUARDED_BY(lock_) RFINJECT_PT_GUARDED_BY(lock_) = nullptr;
  size_t diagnostics_printed_ RFINJECT_GUARDED_BY(lock_) = 0;  // all before this one were printed
  std::atomic<const void*> fork_holder_{nullptr};

  Mutex activation_lock_;  // held by the one thread that opens the trace
  std::atomic<Output*> output_{nullptr};
  Mutex turn_lock_;  // held by a caller that does the writer's work, and by whoever makes or changes the writer
  int long_turns_ RFINJECT_GUARDED_BY(turn_lock_) = 0;  // turns of callers, in a row, that took too long
  std::atomic<Writer> writer_{Writer::kNone};
  std::atomic<bool> turn_due_{false};  // is to a caller that writes what wake_ is to the thread
  Event wake_;
  std::atomic<bool> flush_now_{false};
  std::atomic<bool> stop_requested_{false};
  std::string_view stop_reason_;  // into stop_reason_text_; written before mode_, read by the writer after it
  char stop_reason_text_[240];

  TraceRecorder* next_ = nullptr;
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_TRACE_RECORDER_H_
