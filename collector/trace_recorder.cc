#include "collector/trace_recorder.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "collector/chunk_schedule.h"
#include "collector/last_words.h"
#include "collector/output_path.h"
#include "collector/process_facts.h"
#include "collector/safe_write.h"
#include "collector/trace_encoder.h"
#include "proto/wire/framing.h"

namespace rfinject {
namespace {

constexpr int64_t kMillisecond = 1'000'000;
// A lock is waited for in slices of this length; after each the waiter looks whether the lock can still be had at
// all.
constexpr int64_t kLockSlice = 100 * kMillisecond;
constexpr int kLockSlices = 50;
constexpr int64_t kLockWait = kLockSlices * kLockSlice;
// Callers cease to write after a few turns in a row that took longer than this, because the disk is slow. A single
// one may be chance.
constexpr int64_t kLongTurn = 20 * kMillisecond;
constexpr int kLongTurns = 2;
// What Finish, whose caller wants to exit, waits at most for the writer, and the writer for the lock.
constexpr int64_t kStopWait = 3000 * kMillisecond;
constexpr int64_t kWriterWait = 2000 * kMillisecond;
// For how long fork() may be held up, at most.
constexpr int64_t kForkWait = 1000 * kMillisecond;

// How often the control file is looked for, which costs one open(2) where there is none.
constexpr int64_t kLookInterval = 1000 * kMillisecond;

// Definitions go into the next frame from here on. What whole steps add up to is not divided: a program that is
// killed between two frames would leave a part of it. 100,000 keys of six metrics take some 7 MB.
constexpr size_t kDefinitionsSoftLimit = 256 << 10;
constexpr size_t kFrameSoftLimit = 10 << 20;
constexpr size_t kFrameLimit = 12 << 20;  // one definition may be large
static_assert(kFrameLimit < wire::kMaxPayloadSize);
// About a thousand launches, so that a thread that defines a layer meanwhile waits for some 100 us at most.
constexpr uint64_t kDrainUnits = 8192;
constexpr size_t kMaxDiagnosticText = 2000;
// Steps that a trace has one by one: as many as the reader looks at singly, 1.7 MB. Later ones are summed.
constexpr uint64_t kSingleSteps = 1 << 16;

constexpr std::string_view kDropRingFull = "launches: ring full";
constexpr std::string_view kDropNoMemory = "launches: out of memory";
constexpr std::string_view kDropNoRing = "launches: no memory for a ring";
constexpr std::string_view kDropUnknown = "launches: unknown ids";
constexpr std::string_view kDropTooMany = "launches: too many launch keys";

std::string_view Cut(std::string_view text) { return text.substr(0, kMaxDiagnosticText); }

// The calling thread's ring. Trivial, so that Record reads it without a call; initial-exec, so that reading it is one
// instruction even in a library that was opened at run time (24 of the 1664 bytes that glibc keeps for such use).
struct ThreadRing {
  const TraceRecorder* owner;
  LaunchRing* ring;
  bool exited;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local ThreadRing t_ring{};

// Gives the ring back when the thread ends. What the thread still records after that (in destructors of other
// libraries) takes the slow way.
struct RingLease {
  void Touch() noexcept {}
  ~RingLease() {
    if (t_ring.ring != nullptr) t_ring.ring->Release();
    t_ring = {nullptr, nullptr, true};
  }
};

}  // namespace

// --- Locks

class RFINJECT_SCOPED_CAPABILITY TraceRecorder::Guard {
 public:
  explicit Guard(TraceRecorder* recorder, int64_t wait_ns = kLockWait) noexcept
      RFINJECT_ACQUIRE(recorder->lock_) RFINJECT_NO_THREAD_SAFETY_ANALYSIS : recorder_(recorder) {
    for (; wait_ns > 0 && !held_; wait_ns -= kLockSlice) {
      held_ = recorder->lock_.LockFor(kLockSlice);
      // A child of a raw clone has a copy of the lock in whatever state it was.
      if (!held_ && !recorder->IsOurProcess()) break;
    }
    if (!held_ || recorder->trace_ != nullptr) return;
    try {
      recorder->trace_ = new Trace;
    } catch (...) {
    }
  }
  ~Guard() RFINJECT_RELEASE() RFINJECT_NO_THREAD_SAFETY_ANALYSIS {
    if (held_) recorder_->lock_.Unlock();
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  explicit operator bool() const noexcept RFINJECT_NO_THREAD_SAFETY_ANALYSIS {
    return held_ && recorder_->definitions_ != nullptr && recorder_->trace_ != nullptr;
  }

 private:
  TraceRecorder* const recorder_;
  bool held_ = false;
};

bool TraceRecorder::IsOurProcess() const noexcept { return getpid() == pid_.load(std::memory_order_relaxed); }

// --- Fork

struct RecorderProcessHooks {
  static inline std::atomic<TraceRecorder*> first{nullptr};

  static void Register(TraceRecorder* recorder) noexcept {
    recorder->next_ = first.load(std::memory_order_relaxed);
    while (!first.compare_exchange_weak(recorder->next_, recorder, std::memory_order_release)) {
    }
    static const int registered = pthread_atfork(&BeforeFork, &AfterForkInParent, &AfterForkInChild);
    // If the handlers cannot be had, a fork is like a raw clone: the child records into nothing, which is harmless.
    (void)registered;
  }
  template <typename Do>
  static void ForEach(Do what) noexcept {
    for (TraceRecorder* r = first.load(std::memory_order_acquire); r != nullptr; r = r->next_) what(r);
  }
  static void BeforeFork() noexcept {
    ForEach([](TraceRecorder* r) { r->BeforeFork(); });
  }
  static void AfterForkInParent() noexcept {
    ForEach([](TraceRecorder* r) { r->AfterForkInParent(); });
  }
  static void AfterForkInChild() noexcept {
    // The ring belongs to the parent's thread, which goes on using it in the parent.
    t_ring = {nullptr, nullptr, t_ring.exited};
    ForEach([](TraceRecorder* r) { r->AfterForkInChild(); });
  }
};

// Several threads may fork at once, so who holds the lock is noted; the address of a thread's variable names it in
// the parent and in the child alike.
void TraceRecorder::BeforeFork() noexcept {
  if (lock_.LockFor(kForkWait)) fork_holder_.store(&t_ring, std::memory_order_relaxed);
}

void TraceRecorder::AfterForkInParent() noexcept {
  if (fork_holder_.load(std::memory_order_relaxed) != &t_ring) return;
  fork_holder_.store(nullptr, std::memory_order_relaxed);
  lock_.Unlock();
}

// Allocates nothing: the allocator that the program preloaded may not have come out of its own handler yet.
void TraceRecorder::AfterForkInChild() noexcept {
  const bool whole = fork_holder_.load(std::memory_order_relaxed) == &t_ring;
  fork_holder_.store(nullptr, std::memory_order_relaxed);
  pid_.store(getpid(), std::memory_order_relaxed);
  if (Output* parents = output_.exchange(nullptr, std::memory_order_acq_rel)) parents->file.CloseInForkedChild();
  rings_.store(nullptr, std::memory_order_relaxed);
  trace_ = nullptr;
  step_.store(0, std::memory_order_relaxed);
  stop_begin_.store(wanted_.load(std::memory_order_relaxed) ? UINT64_MAX : 0, std::memory_order_relaxed);
  stop_end_.store(UINT64_MAX, std::memory_order_relaxed);
  step_start_ns_.store(0, std::memory_order_relaxed);
  busy_.store(kBusyUnknown, std::memory_order_relaxed);
  measured_steps_.store(0, std::memory_order_relaxed);
  last_words_.store(false, std::memory_order_relaxed);
  eval_batches_.store(0, std::memory_order_relaxed);
  eval_samples_.store(0, std::memory_order_relaxed);
  eval_last_samples_.store(0, std::memory_order_relaxed);
  finished_steps_.store(0, std::memory_order_relaxed);
  ringless_drops_.store(0, std::memory_order_relaxed);
  flush_now_.store(false, std::memory_order_relaxed);
  stop_requested_.store(false, std::memory_order_relaxed);
  turn_due_.store(false, std::memory_order_relaxed);
  writer_.store(Writer::kNone, std::memory_order_relaxed);
  activation_lock_.ResetInForkedChild();
  turn_lock_.ResetInForkedChild();
  lock_.ResetInForkedChild();
  if (!whole) definitions_ = nullptr;  // somebody was changing them
  if (definitions_ == nullptr || mode_.load(std::memory_order_relaxed) == Mode::kDisabled) {
    Mute(Mode::kDisabled);
    return;
  }
  definitions_->facts.process.stopped_steps = 0;
  mode_.store(Mode::kIdle, std::memory_order_relaxed);
  window_end_.store(settings_.steps == 0 || settings_.steps > UINT64_MAX - window_begin_
                        ? UINT64_MAX
                        : window_begin_ + settings_.steps,
                    std::memory_order_relaxed);
}

// --- Construction, definitions

TraceRecorder::Output::Output() noexcept : frame(kFrameLimit) {}

TraceRecorder::TraceRecorder(const Settings& settings) noexcept
    : settings_(settings),
      window_begin_(settings.skip),
      window_end_(settings.steps == 0 || settings.steps > UINT64_MAX - settings.skip
                      ? UINT64_MAX
                      : settings.skip + settings.steps),
      stop_begin_(settings.start_stopped ? 0 : UINT64_MAX),
      stop_end_(UINT64_MAX),
      wanted_(!settings.start_stopped),
      pid_(getpid()),
      created_unix_ns_(UnixNs()) {
  try {
    definitions_ = new Definitions;
    if (settings.start_stopped) definitions_->facts.process.measuring = 1;
  } catch (...) {
    Mute(Mode::kDisabled);
  }
  if (settings.disabled || !RankMeasures(settings.ranks)) Mute(Mode::kDisabled);
  RecorderProcessHooks::Register(this);
}

TraceRecorder::Mode TraceRecorder::Mute(Mode mode) noexcept {
  window_end_.store(0, std::memory_order_relaxed);
  return mode_.exchange(mode, std::memory_order_acq_rel);
}

uint32_t TraceRecorder::Intern(std::string_view text) noexcept {
  Definitions* definitions = definitions_;
  if (definitions == nullptr) return 0;
  if (const uint32_t id = definitions->names.Find(text)) return id;
  Guard guard(this);
  return guard ? definitions_->names.Add(text) : 0;
}

uint32_t TraceRecorder::DefineMetric(std::string_view name, std::string_view unit, double scale) noexcept try {
  Guard guard(this);
  return guard ? definitions_->DefineMetric(name, unit, scale) : 0;
} catch (...) {
  return 0;
}

uint32_t TraceRecorder::DefineModel(const ModelDefinition& model) noexcept try {
  Guard guard(this);
  return guard ? definitions_->DefineModel(model) : 0;
} catch (...) {
  return 0;
}

uint32_t TraceRecorder::DefineLayer(const LayerDefinition& layer) noexcept try {
  uint32_t id = 0;
  {
    Guard guard(this);
    if (guard) id = definitions_->DefineLayer(layer);
  }
  MayWrite();
  return id;
} catch (...) {
  return 0;
}

void TraceRecorder::SetLayerShapes(uint32_t layer, std::string_view input, std::string_view output) noexcept try {
  Guard guard(this);
  if (guard) definitions_->SetLayerShapes(layer, input, output);
} catch (...) {
}

void TraceRecorder::UpdateFacts(const RunFacts& facts) noexcept try {
  Guard guard(this);
  if (guard) MergeFacts(facts, &definitions_->facts);
} catch (...) {
}

uint32_t TraceRecorder::DefineSourceLine(std::string_view file, uint32_t line, std::string_view function) noexcept
    try {
  const uint32_t file_name = Intern(file), function_name = Intern(function);
  Guard guard(this);
  return guard ? definitions_->DefineLine(file_name, line, function_name) : 0;
} catch (...) {
  return 0;
}

void TraceRecorder::NoteSourceLine(const LaunchIdentity& identity, uint32_t line) noexcept try {
  Guard guard(this);
  if (guard && line != 0 && line <= definitions_->lines.size()) definitions_->key_lines.try_emplace(identity, line);
} catch (...) {
}

void TraceRecorder::NoteMemoryPeak(const MemoryPeak& peak) noexcept try {
  Guard guard(this);
  if (guard) trace_->memory_peak = peak;
} catch (...) {
}

std::string TraceRecorder::LayerName(uint32_t layer) {
  Guard guard(this);
  if (!guard || layer == 0 || layer > definitions_->layers.size()) return {};
  const LayerDefinition& known = definitions_->layers[layer - 1].definition;
  return known.path.empty() ? known.class_name : known.path;
}

void TraceRecorder::NoteStack(const LaunchIdentity& identity, std::span<const NativeFrame> frames) noexcept try {
  Guard guard(this);
  if (!guard) return;
  const uint32_t stack = definitions_->DefineStack(frames);
  if (stack != 0) trace_->key_stacks.try_emplace(identity, stack);
} catch (...) {
}

void TraceRecorder::DescribeModule(uint32_t module, std::string_view path, std::string_view build_id) noexcept try {
  Guard guard(this);
  if (guard) definitions_->DescribeModule(module, path, build_id);
} catch (...) {
}

void TraceRecorder::NameFrame(const NativeFrame& frame, std::string_view function) noexcept try {
  const uint32_t name = Intern(function);
  Guard guard(this);
  if (guard) definitions_->NameFrame(frame, name);
} catch (...) {
}

// --- Launches

LaunchRing* TraceRecorder::AcquireRing() noexcept {
  StartClock();
  if (t_ring.exited) return nullptr;
  static thread_local RingLease lease;
  lease.Touch();
  if (t_ring.ring != nullptr) t_ring.ring->Release();
  t_ring = {};
  LaunchRing* ring = rings_.load(std::memory_order_acquire);
  while (ring != nullptr && !ring->TryAcquire()) ring = ring->next;
  if (ring == nullptr) {
    ring = LaunchRing::Create();
    if (ring == nullptr) return nullptr;
    ring->next = rings_.load(std::memory_order_relaxed);
    while (!rings_.compare_exchange_weak(ring->next, ring, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }
  t_ring = {this, ring, false};
  return ring;
}

// Whether a launch counts is decided by one load of the step. That makes the window's edges exact: a Record that
// happens before EndStep cannot see the step that it begins, and one that happens after it cannot see the old one
// (read-write and write-read coherence, C++ [intro.races]).
void TraceRecorder::Record(const LaunchRecord& record) noexcept {
  const RingPosition position = {CurrentStep(), eval_batches_.load(std::memory_order_relaxed)};
  if (!Measured(position.step)) return;
  LaunchRing* ring = t_ring.ring;
  if (t_ring.owner != this) [[unlikely]] {
    ring = AcquireRing();
    if (ring == nullptr) {
      if (t_ring.exited) return Add(record);
      ringless_drops_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
  if (!ring->MoveTo(position)) [[unlikely]] {
    return ring->CountDrop();
  }
  if (ring->Push(record) == LaunchRing::PushResult::kHalfFull) [[unlikely]] {
    if (active()) WakeWriter();
  }
}

void TraceRecorder::Add(const LaunchRecord& record) noexcept try {
  if (window_end_.load(std::memory_order_relaxed) == 0) return;
  Guard guard(this);
  if (guard) AddToTable(record);
} catch (...) {
}

void TraceRecorder::AddToTable(const LaunchRecord& record) {
  if (!definitions_->Knows(record)) return AddDrop(kDropUnknown, 1);
  uint32_t key = 0;
  const LaunchTable::AddResult added = trace_->table.Add(record, &key);
  // Samples of launches that were recorded when they happened are those of a step that was armed: this one, which the
  // caller is about to end. A value that comes with its launch, as an estimate does, is no sample of the step but all
  // of it.
  if (key != 0 && record.launches == 0) {
    for (uint32_t s = 0; s < record.sample_count && s < kMaxSamplesPerRecord; ++s) {
      trace_->step_sums.Add(CurrentStep(), key, record.samples[s]);
    }
  }
  SayWhatBecameOf(added);
}

void TraceRecorder::AddAt(const RingPosition& position, const LaunchRecord& record) {
  if (!definitions_->Knows(record)) return AddDrop(kDropUnknown, 1);
  if (record.identity.site.phase == Phase::kEval) {
    if (position.batch < trace_->batches_seen) return AddToTable(record);
    trace_->running_batch_number = position.batch;
    return SayWhatBecameOf(trace_->running_batch.Add(record));
  }
  // Before a step has ended there is no number of steps to divide by; what ran is kept all the same.
  if (trace_->steps_seen == 0 || position.step < trace_->steps_seen) return AddToTable(record);
  trace_->running_step_index = position.step;
  SayWhatBecameOf(trace_->running_step.Add(record));
}

void TraceRecorder::SayWhatBecameOf(LaunchTable::AddResult added) {
  switch (added) {
    case LaunchTable::AddResult::kOk:
      return;
    case LaunchTable::AddResult::kCoarsened:
      definitions_->AddDiagnostic(Severity::kWarning, "too-many-keys",
                                  "more than " + std::to_string(LaunchTable::kMaxKeys) +
                                      " launch keys; new ones are kept without their shapes and grids",
                                  "measure fewer steps (--steps) where shapes change in every step", UnixNs());
      return;
    case LaunchTable::AddResult::kOutOfMemory:
      return AddDrop(kDropNoMemory, 1);
    case LaunchTable::AddResult::kTooMany:
      return AddDrop(kDropTooMany, 1);
  }
}

void TraceRecorder::AddDrop(std::string_view what, uint64_t count) {
  auto it = trace_->drops.find(what);
  if (it == trace_->drops.end()) it = trace_->drops.emplace(what, 0).first;
  it->second += count;
}

void TraceRecorder::CountDrop(std::string_view what, uint64_t count) noexcept try {
  if (count == 0) return;
  Guard guard(this);
  if (guard) AddDrop(Cut(what), count);
} catch (...) {
}

// --- Steps

void TraceRecorder::StartClock() noexcept {
  int64_t unset = 0;
  if (step_start_ns_.load(std::memory_order_relaxed) == 0) {
    if (step_start_ns_.compare_exchange_strong(unset, MonotonicNs(), std::memory_order_relaxed)) (void)TakeGpuClock();
  }
}

// Returns what the GPU's own clock says since the last call; `known` is 0 where there is no such clock.
TraceRecorder::GpuTimes TraceRecorder::TakeGpuClock() noexcept {
  GpuClock now;
  const GpuClockFunction read = g_gpu_clock.load(std::memory_order_relaxed);
  if (read == nullptr || !read(&now)) return {};
  const uint64_t skipped = gpu_skipped_ns_.exchange(now.skipped_ns, std::memory_order_relaxed);
  const uint64_t busy = gpu_busy_seen_ns_.exchange(now.busy_ns, std::memory_order_relaxed);
  return {.known = true,
          .skipped_ns = now.skipped_ns - std::min(skipped, now.skipped_ns),
          .busy_ns = now.busy_ns - std::min(busy, now.busy_ns)};
}

void TraceRecorder::AddWaits(StepRecord* step) noexcept {
  const StepWaits waits = TakeWaits();
  step->watched = WatchedWaits();
  step->data_wait_ns = waits.data_ns;
  step->gpu_wait_ns = waits.gpu_ns;
  if (const uint64_t busy = busy_.exchange(kBusyUnknown, std::memory_order_relaxed); busy != kBusyUnknown) {
    step->gpu_busy_ns = busy;
    step->watched |= kGpuBusy;
  }
  const GpuTimes gpu = TakeGpuClock();
  if (!gpu.known) return;
  step->duration_ns += gpu.skipped_ns;
  step->gpu_wait_ns += gpu.skipped_ns;
  step->gpu_busy_ns = gpu.busy_ns;
  step->watched |= kGpuWaits | kGpuBusy;
}

void TraceRecorder::EndStep(uint64_t samples_in_step) noexcept try {
  const uint64_t window_end = window_end_.load(std::memory_order_relaxed);
  if (window_end == 0) return;
  StartClock();
  const int64_t now = MonotonicNs();
  const int64_t start = step_start_ns_.exchange(now, std::memory_order_relaxed);
  StepRecord step;
  const uint64_t current = CurrentStep();
  const bool stopped = Stopped(current) && InSettingsWindow(current);
  FollowRequest(current + 1);
  step.index = step_.fetch_add(1, std::memory_order_acq_rel);
  step.duration_ns = start < now ? static_cast<uint64_t>(now - start) : 0;
  step.start_unix_ns = UnixNs() - static_cast<int64_t>(step.duration_ns);
  step.samples = samples_in_step;
  const bool left_out = step_left_out_.exchange(false, std::memory_order_relaxed);
  step.measured = InSettingsWindow(step.index) && !stopped && !left_out;
  if (step.measured) measured_steps_.fetch_add(1, std::memory_order_relaxed);
  step.armed_group = armed_group_.exchange(0, std::memory_order_relaxed);
  step.memory_bytes = memory_.exchange(0, std::memory_order_relaxed);
  step.memory_peak_bytes = memory_peak_.exchange(0, std::memory_order_relaxed);
  step.calls = calls_.exchange(0, std::memory_order_relaxed);
  step.kind = kind_.exchange(0, std::memory_order_relaxed);
  step.optimizer = optimizer_.exchange(0, std::memory_order_relaxed);
  AddWaits(&step);
  LaunchRing* ring = t_ring.owner == this ? t_ring.ring : AcquireRing();
  if (ring == nullptr || ring->Push(step) == LaunchRing::PushResult::kDropped) {
    // Launches may be lost, but a step must not: reports divide by the number of steps.
    Guard guard(this);
    if (guard) trace_->AddStep(step);
  }
  // A thread that reads this number finds the step's record, and all of its launches, in the rings.
  finished_steps_.fetch_add(1, std::memory_order_release);
  if (step.index + 1 == window_end && active()) {
    flush_now_.store(true, std::memory_order_relaxed);
    WakeWriter();
  }
  if (stopped) {
    Guard guard(this);
    if (guard) ++definitions_->facts.process.stopped_steps;
  }
  MayWrite();
  Output* output = output_.load(std::memory_order_acquire);
  if (output != nullptr && writer_.load(std::memory_order_relaxed) == Writer::kCaller &&
      now >= output->next_look_ns.load(std::memory_order_relaxed)) {
    SignalShield shield;
    if (turn_lock_.TryLock()) {
      const HeldLock held(turn_lock_);
      if (writer_.load(std::memory_order_relaxed) == Writer::kCaller) LookForRequest(output);
    }
  }
} catch (...) {
}

// This runs on the thread that ends the step, so that the step that ends and the one that begins are each measured
// whole or not at all.
void TraceRecorder::FollowRequest(uint64_t next) noexcept try {
  const bool wanted = wanted_.load(std::memory_order_relaxed);
  if (wanted != Stopped(next)) return;  // it is so already
  if (wanted) {
    stop_end_.store(next, std::memory_order_release);
  } else {
    // The order keeps the steps in between from belonging to any stop, at any moment.
    stop_begin_.store(next, std::memory_order_release);
    stop_end_.store(UINT64_MAX, std::memory_order_release);
  }
  {
    Guard guard(this);
    if (guard) definitions_->facts.process.measuring = wanted ? 2 : 1;
  }
  flush_now_.store(true, std::memory_order_relaxed);
  if (active()) WakeWriter();
} catch (...) {
}

void TraceRecorder::LookForRequest(Output* output) noexcept {
  output->next_look_ns.store(MonotonicNs() + kLookInterval, std::memory_order_relaxed);
  const ControlFile::Request request = output->control.Take();
  if (request != ControlFile::Request::kNone) RequestMeasuring(request == ControlFile::Request::kStart);
}

void TraceRecorder::NoteEvaluation(uint64_t samples) noexcept {
  if (!InWindow()) return;
  eval_samples_.fetch_add(eval_last_samples_.exchange(samples, std::memory_order_relaxed), std::memory_order_relaxed);
  eval_batches_.fetch_add(1, std::memory_order_release);
}

void TraceRecorder::RestartStep() noexcept {
  step_start_ns_.store(MonotonicNs(), std::memory_order_relaxed);
  (void)TakeWaits();
  (void)TakeGpuClock();
}

void TraceRecorder::AddPmWindow(const PmWindow& window) noexcept try {
  if (!Measured(window.step)) return;
  Guard guard(this);
  if (guard) trace_->pm_windows.push_back(window);
} catch (...) {
}

// --- Diagnostics

void TraceRecorder::Print(const Diagnostic& diagnostic) noexcept try {
  if (settings_.verbosity < 0) return;
  std::string line;
  if (diagnostic.severity == Severity::kWarning) line = "warning: ";
  if (diagnostic.severity == Severity::kError) line = "error: ";
  line += diagnostic.text;
  if (!diagnostic.remedy.empty()) line += " (" + diagnostic.remedy + ")";
  WriteLogLine(line);
} catch (...) {
}

// Prints what was reported while nobody was to hear it, or while a lock was held.
void TraceRecorder::PrintHeld() noexcept try {
  std::deque<Diagnostic> held;
  {
    Guard guard(this);
    if (!guard) return;
    for (; diagnostics_printed_ < definitions_->diagnostics.size(); ++diagnostics_printed_) {
      Diagnostic& diagnostic = definitions_->diagnostics[diagnostics_printed_];
      if (!diagnostic.printed) held.push_back(diagnostic);
      diagnostic.printed = true;
    }
  }
  for (const Diagnostic& diagnostic : held) Print(diagnostic);
} catch (...) {
}

void TraceRecorder::ReportDiagnostic(Severity severity, std::string_view id, std::string_view text,
                                     std::string_view remedy) noexcept try {
  Diagnostic to_print;
  {
    Guard guard(this);
    if (!guard) return;
    Diagnostic* added = definitions_->AddDiagnostic(severity, Cut(id), Cut(text), Cut(remedy), UnixNs());
    // An idle process may turn out to be no training process at all, and those hear nothing from us.
    if (added == nullptr || mode_.load(std::memory_order_relaxed) == Mode::kIdle) return;
    added->printed = true;
    to_print = *added;
  }
  Print(to_print);
} catch (...) {
}

// --- Writing

void TraceRecorder::TakeWhatEnded(bool last) {
  Trace& trace = *trace_;
  trace_->steps_seen = finished_steps_.load(std::memory_order_acquire);
  trace_->batches_seen = eval_batches_.load(std::memory_order_acquire);
  for (size_t early = trace.early_steps.size(); early > 0; --early) {
    const StepRecord step = trace.early_steps.front();
    trace.early_steps.pop_front();
    trace.AddStep(step);
  }
  trace.samples += eval_samples_.exchange(0, std::memory_order_relaxed);
  uint64_t ended = trace_->batches_seen - std::min<uint64_t>(trace_->batches_seen, 1);
  if (last) {
    // The program has come to its end, and so has the batch that it validated last.
    ended = trace_->batches_seen++;
    trace.samples += eval_last_samples_.exchange(0, std::memory_order_relaxed);
  }
  trace.batches += ended - std::min(ended, trace.batches_taken);
  trace.batches_taken = std::max(trace.batches_taken, ended);
  if (trace.running_step_index < trace_->steps_seen) SayWhatBecameOf(trace.table.TakeAllOf(&trace.running_step));
  if (trace.running_batch_number < trace_->batches_seen) SayWhatBecameOf(trace.table.TakeAllOf(&trace.running_batch));
}

// What a loop does after its optimizer's step (an average of the weights, a metric) is in the sums of the next step.
// What it does after its last step is in no other, and counts with that one. A forward, however, has begun a step
// that has not ended, and is left out.
void TraceRecorder::SettleWhatRan() {
  Trace& trace = *trace_;
  SayWhatBecameOf(trace.table.TakeAllOf(&trace.running_batch));
  bool began = false;
  uint64_t launches = 0;
  trace.running_step.ForEachChanged([&](const LaunchTable::Key& key) {
    const Phase phase = key.identity.site.phase;
    began = began || phase == Phase::kForward || phase == Phase::kBackward || phase == Phase::kRecompute;
    launches += key.launches;
  });
  if (!began) return SayWhatBecameOf(trace.table.TakeAllOf(&trace.running_step));
  while (trace.running_step.TakeOne([](auto&&...) {})) {
  }
  definitions_->AddDiagnostic(Severity::kInfo, "step-not-ended",
                              "the last step did not end before the program did: what ran in it, " +
                                  std::to_string(launches) + " launches, is in no sum",
                              {}, UnixNs());
}

bool TraceRecorder::MayLeaveRing(const RingPosition& position, bool half_full) const {
  const uint64_t steps = trace_->steps_seen, batches = trace_->batches_seen;
  // The tables hold one running step and one running batch at a time; what began meanwhile is read the next time.
  if (position.step > steps || position.batch > batches) return false;
  const bool runs = steps != 0 && position.step == steps && position.batch == batches;
  return !runs || half_full;
}

bool TraceRecorder::DrainRings(Wanted wanted, bool last) noexcept {
  {
    Guard guard(this, kWriterWait);
    if (!guard) return false;
    try {
      TakeWhatEnded(last);
    } catch (...) {
    }
  }
  for (LaunchRing* ring = rings_.load(std::memory_order_acquire); ring != nullptr; ring = ring->next) {
    // A producer that is faster than we are must not keep us here.
    for (uint64_t units = 0; units < 2 * LaunchRing::kUnits; units += kDrainUnits) {
      Guard guard(this, kWriterWait);
      if (!guard) return false;
      const auto on_launch = [this, wanted](const LaunchRecord& record, const RingPosition& position) {
        lock_.AssertHeld();
        const Site& site = record.identity.site;
        if (wanted == Wanted::kOfAModelOrPhase && site.layer == 0 && site.phase == Phase::kOther) return;
        try {
          AddAt(position, record);
        } catch (...) {
        }
      };
      const auto on_step = [this](const StepRecord& step) {
        lock_.AssertHeld();
        try {
          trace_->AddStep(step);
        } catch (...) {
        }
      };
      const auto may_enter = [this, last](const RingPosition& position, bool half_full) {
        lock_.AssertHeld();
        return last || MayLeaveRing(position, half_full);
      };
      const bool more = ring->Drain(kDrainUnits, on_launch, on_step, may_enter);
      const uint64_t drops = ring->drops();
      // The ring is full of what is forgotten here, so what it dropped is no loss to any step.
      if (wanted == Wanted::kOfAModelOrPhase) ring->drops_reported = drops;
      if (drops != ring->drops_reported) {
        try {
          AddDrop(kDropRingFull, drops - ring->drops_reported);
          ring->drops_reported = drops;
        } catch (...) {
        }
      }
      if (!more) break;
    }
  }
  return true;
}

void TraceRecorder::Trace::AddStep(const StepRecord& step) {
  if (step.index < steps_seen) return KeepStep(step);
  early_steps.push_back(step);
}

void TraceRecorder::Trace::KeepStep(const StepRecord& step) {
  if (single_steps < kSingleSteps && !near_limit) {
    steps.push_back(step);
    ++single_steps;
  } else {
    SumStep(step);
  }
}

void TraceRecorder::Trace::SumStep(const StepRecord& step) {
  if (step.measured) summed_steps.Add(step);
}

bool TraceRecorder::EncodePending(uint64_t file_bytes, wire::Encoder* out) noexcept {
  Trace& trace = *trace_;
  Definitions& definitions = *definitions_;
  const auto full = [out] { return out->size() >= kDefinitionsSoftLimit || !out->ok(); };
  const auto too_long = [out] { return out->size() >= kFrameSoftLimit || !out->ok(); };
  try {
    // Definitions come before everything that may refer to them, in this frame or an earlier one.
    if (!trace.process_written) {
      EncodeTraceId(NewTraceId(), out);
      RunFacts own = ReadProcessFacts();
      own.process.start_unix_ns = created_unix_ns_;
      EncodeFactChanges(RunFacts{}, own, out);
      trace.process_written = true;
    }
    if (EncodeFactChanges(trace.facts_written, definitions.facts, out)) trace.facts_written = definitions.facts;
    for (; trace.names_written < definitions.names.size() && !full(); ++trace.names_written) {
      EncodeName(trace.names_written + 1, definitions.names.text(trace.names_written + 1), out);
    }
    for (; trace.models_written < definitions.models.size() && !full(); ++trace.models_written) {
      EncodeModel(static_cast<uint32_t>(trace.models_written + 1), definitions.models[trace.models_written], out);
    }
    trace.layer_versions_written.resize(definitions.layers.size());
    for (size_t i = 0; i < definitions.layers.size() && !full(); ++i) {
      const Layer& layer = definitions.layers[i];
      if (trace.layer_versions_written[i] == layer.version) continue;
      EncodeLayer(static_cast<uint32_t>(i + 1), layer, out);
      trace.layer_versions_written[i] = layer.version;
    }
    trace.module_versions_written.resize(definitions.modules.size());
    for (size_t i = 0; i < definitions.modules.size() && !full(); ++i) {
      const NativeModule& module = definitions.modules[i];
      if (trace.module_versions_written[i] == module.version) continue;
      EncodeModule(static_cast<uint32_t>(i + 1), module, out);
      trace.module_versions_written[i] = module.version;
    }
    trace.stack_versions_written.resize(definitions.stacks.size());
    for (size_t i = 0; i < definitions.stacks.size() && !full(); ++i) {
      const NativeStack& stack = definitions.stacks[i];
      if (trace.stack_versions_written[i] == stack.version) continue;
      EncodeStack(static_cast<uint32_t>(i + 1), stack, out);
      trace.stack_versions_written[i] = stack.version;
    }
    for (; trace.lines_written < definitions.lines.size() && !full(); ++trace.lines_written) {
      EncodeSourceLine(static_cast<uint32_t>(trace.lines_written + 1), definitions.lines[trace.lines_written], out);
    }
    for (; trace.metrics_written < definitions.metrics.size() && !full(); ++trace.metrics_written) {
      EncodeMetric(static_cast<uint32_t>(trace.metrics_written + 1), definitions.metrics[trace.metrics_written], out);
    }
    // A pointer, because the analysis of locks does not know that the function below is called under ours.
    const auto* const stacks = &trace.key_stacks;
    const auto* const lines = &definitions.key_lines;
    const bool all_defined =
        trace.table.DefineChanged([&, stacks, lines](uint32_t id, const LaunchIdentity& identity) {
          if (full()) return false;
          const auto stack = stacks->find(identity);
          const auto line = lines->find(identity);
          EncodeLaunchKey(id, identity, stack != stacks->end() ? stack->second : 0,
                          line != lines->end() ? line->second : 0, out);
          return true;
        });
    if (!all_defined || full()) return true;

    RepeatedKeys* const repeated = &trace.repeated_keys;
    const auto take = [out, repeated](uint32_t id, const LaunchTable::Key& key, auto metrics) {
      if (key.repeats && repeated->full()) repeated->Encode(out);
      if (!key.repeats || !repeated->Add(id, key.launches)) EncodeKeyStats(id, key.launches, metrics, out);
    };
    while (!too_long() && trace.table.TakeOne(take)) {
    }
    repeated->Encode(out);
    if (too_long() || trace.table.HasChanges()) return true;
    // The keys of the complete steps are in the file by now. The step that runs may get more samples.
    trace.step_sums.CompleteBefore(active() ? CurrentStep() : UINT64_MAX);
    std::deque<SampledStep>& sampled = trace.step_sums.complete();
    for (; !sampled.empty() && !too_long(); sampled.pop_front()) EncodeSampledStep(sampled.front(), out);
    for (; !trace.steps.empty() && !too_long(); trace.steps.pop_front()) {
      // A writer that gets no time finds more steps than the file may have.
      trace.near_limit = trace.near_limit || IsNearLimit(file_bytes + out->size(), MaxBytes());
      if (trace.near_limit) {
        trace.SumStep(trace.steps.front());
      } else {
        EncodeStep(trace.steps.front(), out);
      }
    }
    if (trace.summed_steps.steps != 0) EncodeSummedSteps(trace.summed_steps, out);
    trace.summed_steps = {};
    // Samples may be read a moment before the batch whose end they are of; they wait for it.
    if (trace.batches != 0) {
      EncodeEvaluation(trace.batches, trace.samples, out);
      trace.batches = trace.samples = 0;
    }
    // The peak may refer only to layers that were written above.
    if (trace.memory_peak) EncodeMemoryPeak(*trace.memory_peak, definitions.layers.size(), out);
    trace.memory_peak.reset();
    for (; !trace.pm_windows.empty() && !too_long(); trace.pm_windows.pop_front()) {
      EncodePmWindow(trace.pm_windows.front(), out);
    }
    for (; trace.diagnostics_written < definitions.diagnostics.size() && !too_long(); ++trace.diagnostics_written) {
      EncodeDiagnostic(definitions.diagnostics[trace.diagnostics_written], out);
    }
    for (auto it = trace.drops.begin(); it != trace.drops.end() && !too_long(); it = trace.drops.erase(it)) {
      EncodeDrop(it->first, it->second, out);
    }
  } catch (...) {
    out->Fail();
    return false;
  }
  return too_long();
}

bool TraceRecorder::WriteFrame(Output* output) noexcept try {
  std::string error = "out of memory";
  wire::Encoder& frame = output->frame;
  if (frame.ok()) {
    if (frame.size() == wire::kFrameHeaderSize) return true;
    if (output->file.WriteFrame(frame.data(), frame.size(), &error)) return true;
  }
  Mute(Mode::kDisabled);
  output->file.Close();
  if (settings_.verbosity >= 0) {
    WriteLogLine("error: nothing is recorded any more: " + error + "; the program goes on");
  }
  return false;
} catch (...) {
  Mute(Mode::kDisabled);
  output->file.Close();
  return false;
}

bool TraceRecorder::Flush(Output* output, bool last) noexcept {
  if (!output->file.is_open()) return false;
  // A program may make things to write faster than they are written. Then there is always more, but the rings must
  // not overflow meanwhile, and Finish must not wait for an end that does not come.
  for (bool more = true; more && (last || active());) {
    if (!DrainRings(Wanted::kAll, last)) return false;
    output->frame.Clear(wire::kFrameHeaderSize);
    {
      Guard guard(this, kWriterWait);
      if (!guard) return false;
      if (const uint64_t drops = ringless_drops_.exchange(0, std::memory_order_relaxed)) {
        try {
          AddDrop(kDropNoRing, drops);
        } catch (...) {
        }
      }
      if (last) {
        try {
          SettleWhatRan();
        } catch (...) {
        }
      }
      more = EncodePending(output->file.size(), &output->frame);
    }
    if (!WriteFrame(output)) return false;
  }
  return true;
}

void* TraceRecorder::WriterMain(void* self) noexcept {
  prctl(PR_SET_NAME, "rfinject");
  auto* recorder = static_cast<TraceRecorder*>(self);
  recorder->WriterLoop(recorder->output_.load(std::memory_order_acquire));
  return nullptr;
}

void TraceRecorder::WakeWriter() noexcept {
  if (writer_.load(std::memory_order_relaxed) == Writer::kThread) return wake_.Signal();
  // A caller that writes learns of it at its next MayWrite: this one may be in a signal handler.
  turn_due_.store(true, std::memory_order_relaxed);
}

void TraceRecorder::WriteTurn(Output* output) noexcept {
  if (flush_now_.exchange(false, std::memory_order_relaxed) ||
      MonotonicNs() >= output->next_chunk_ns.load(std::memory_order_relaxed)) {
    const uint64_t before = output->file.size();
    Flush(output, false);
    output->next_chunk_ns.store(NextChunkNs(output, output->file.size() - before), std::memory_order_relaxed);
  } else {
    DrainRings();
  }
  PrintHeld();
}

int64_t TraceRecorder::NextChunkNs(Output* output, uint64_t chunk_bytes) noexcept {
  const int64_t now = MonotonicNs();
  if (IsNearLimit(output->file.size(), MaxBytes()) && !std::exchange(output->limit_said, true)) {
    {
      Guard guard(this, kWriterWait);
      if (guard) trace_->near_limit = true;
    }
    ReportDiagnostic(Severity::kInfo, "trace-size",
                     "the trace has half of the bytes that it may have; from here on its steps are summed and it is "
                     "written more seldom, so that what a killed program loses is longer",
                     "--max-size MB allows more, --steps N measures less");
  }
  return now + ChunkDistance(now - output->begun_ns, output->file.size(), chunk_bytes, MaxBytes());
}

void TraceRecorder::WriteLast(Output* output) noexcept {
  if (Flush(output, true)) {
    output->frame.Clear(wire::kFrameHeaderSize);
    EncodeEnd(stop_reason_, UnixNs(), &output->frame);
    if (WriteFrame(output)) {
      output->file.Close();
      output->whole.store(true, std::memory_order_release);
    }
  }
  output->stopped.Signal();
}

void TraceRecorder::WriterLoop(Output* output) noexcept {
  for (;;) {
    const uint32_t seen = wake_.count();
    if (!active()) break;
    WriteTurn(output);
    if (MonotonicNs() >= output->next_look_ns.load(std::memory_order_relaxed)) LookForRequest(output);
    const int64_t next = std::min(output->next_chunk_ns.load(std::memory_order_relaxed),
                                  output->next_look_ns.load(std::memory_order_relaxed));
    wake_.WaitFor(seen, next - MonotonicNs());
  }
  WriteLast(output);
}

// --- The caller as the writer

// The coarse clock is a millisecond or four behind, and costs a quarter of the exact one.
void TraceRecorder::WriteIfDue() noexcept {
  Output* output = output_.load(std::memory_order_acquire);
  if (output == nullptr || !active()) return;
  if (!turn_due_.load(std::memory_order_relaxed) &&
      ClockNs(CLOCK_MONOTONIC_COARSE) < output->next_chunk_ns.load(std::memory_order_relaxed)) {
    return;
  }
  if (!IsOurProcess()) return;
  // A signal handler of the program that ran here could exit, and wait in Finish for this writer, which waits for the
  // handler.
  SignalShield shield;
  if (!turn_lock_.TryLock()) return;
  const HeldLock held(turn_lock_);
  if (writer_.load(std::memory_order_relaxed) != Writer::kCaller) return;
  const int64_t begin = MonotonicNs();
  turn_due_.store(false, std::memory_order_relaxed);
  WriteTurn(output);
  long_turns_ = MonotonicNs() - begin > kLongTurn ? long_turns_ + 1 : 0;
  if (long_turns_ >= kLongTurns || ThreadsOfProcess() != 1) StartWriterThread();
}

void TraceRecorder::WriteLastIfCaller(Output* output) noexcept {
  if (writer_.load(std::memory_order_relaxed) != Writer::kCaller || !turn_lock_.LockFor(kStopWait)) return;
  const HeldLock held(turn_lock_);
  if (writer_.load(std::memory_order_relaxed) != Writer::kCaller) return;
  writer_.store(Writer::kNone, std::memory_order_relaxed);
  WriteLast(output);
}

// --- Life

bool TraceRecorder::StartWriterThread() noexcept {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  // Never joined: Finish waits for Output::stopped, and not for ever.
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  const Writer before = writer_.exchange(Writer::kThread, std::memory_order_relaxed);
  pthread_t thread;
  // The new thread inherits a mask with all signals blocked: the program's handlers run on the program's threads.
  SignalShield shield;
  const bool started = pthread_create(&thread, &attributes, &WriterMain, this) == 0;
  pthread_attr_destroy(&attributes);
  if (!started) writer_.store(before, std::memory_order_relaxed);
  return started;
}

bool TraceRecorder::StartWriter(bool callers_may_write) noexcept {
  if (!callers_may_write || ThreadsOfProcess() != 1) return StartWriterThread();
  writer_.store(Writer::kCaller, std::memory_order_relaxed);
  return true;
}

// Whether the counters of a GPU are read. A GPU's driver has threads, and a launch must not wait for a disk. Where no
// source is named, as in tests, the answer is yes.
bool TraceRecorder::MeasuresAGpu() noexcept {
  Guard guard(this);
  if (!guard) return true;
  const SourceKind source = definitions_->facts.source;
  return source != SourceKind::kNone && source != SourceKind::kEstimated;
}

void TraceRecorder::Open(int fd) noexcept try {
  if (mode_.load(std::memory_order_relaxed) != Mode::kIdle) return;
  g_trace_begun.store(true, std::memory_order_relaxed);
  StartClock();
  std::string error;
  auto* output = new Output;  // never freed: the writer may be in it when the process ends
  output->begun_ns = MonotonicNs();
  const bool opened = fd >= 0 ? output->file.Adopt(fd, &error) : output->file.Open(settings_.output, &error);
  if (opened && fd < 0) output->control.Watch(output->file.path());
  if (opened && fd < 0 && settings_.link_latest) (void)LinkLatest(output->file.path());
  output_.store(output, std::memory_order_release);
  Mode idle = Mode::kIdle;
  // Another thread may have finished us meanwhile; from here on Finish waits for the writer.
  if (opened && mode_.compare_exchange_strong(idle, Mode::kActive, std::memory_order_acq_rel)) {
    if (turn_lock_.LockFor(kLockWait)) {
      const HeldLock held(turn_lock_);
      if (StartWriter(fd < 0 && !MeasuresAGpu() && !output->file.MayHang())) return;
    }
    error = "no thread could be started";
  }
  output->file.Close();
  output->stopped.Signal();
  if (error.empty()) return;
  Mute(Mode::kDisabled);
  if (settings_.verbosity >= 0) WriteLogLine("error: nothing is recorded: " + error);
} catch (...) {
  Mute(Mode::kDisabled);
}

void TraceRecorder::BeginFirstStep() noexcept try {
  if (!IsOurProcess() || !activation_lock_.LockFor(kLockWait)) return;
  const HeldLock held(activation_lock_);
  if (mode_.load(std::memory_order_relaxed) == Mode::kIdle && step_.load(std::memory_order_relaxed) == 0) {
    DrainRings(Wanted::kOfAModelOrPhase);
    ringless_drops_.store(0, std::memory_order_relaxed);
    RestartStep();
  }
} catch (...) {
}

void TraceRecorder::Activate() noexcept { ActivateInto(-1); }

void TraceRecorder::ActivateInto(int fd) noexcept try {
  if (mode_.load(std::memory_order_relaxed) != Mode::kIdle || !IsOurProcess()) return;
  {
    if (!activation_lock_.LockFor(kLockWait)) return;
    const HeldLock held(activation_lock_);
    Open(fd);
  }
  if (!active()) return;
  if (!SettingsErrors().empty()) {
    ReportDiagnostic(Severity::kWarning, "settings", SettingsErrors(), "`rfinject env` prints what is understood");
  }
  PrintHeld();
} catch (...) {
}

void TraceRecorder::Finish(std::string_view reason) noexcept {
  Stop(Mode::kFinished, reason);
  const Output* output = output_.load(std::memory_order_acquire);
  if (!IsOurProcess() || output == nullptr || !output->whole.load(std::memory_order_acquire)) return;
  try {
    if (last_words_.exchange(true) || !MaySpeakLast(settings_)) return;
    WriteLogLine(TraceWords(settings_, measured_steps_.load(std::memory_order_relaxed), output->file.path()));
  } catch (...) {
  }
}

void TraceRecorder::Disable(std::string_view reason) noexcept try {
  if (!IsOurProcess() || mode_.load(std::memory_order_relaxed) == Mode::kDisabled) return;
  ReportDiagnostic(Severity::kError, "disabled", reason, {});
  Stop(Mode::kDisabled, "disabled: " + std::string(Cut(reason)));
} catch (...) {
  Mute(Mode::kDisabled);
}

void TraceRecorder::Stop(Mode mode, std::string_view reason) noexcept {
  if (!IsOurProcess()) return;
  // No signal handler of the program may run between here and the end: it could exit, and come here again.
  SignalShield shield;
  if (!stop_requested_.exchange(true, std::memory_order_acq_rel)) {
    reason = reason.substr(0, sizeof stop_reason_text_);
    if (!reason.empty()) std::memcpy(stop_reason_text_, reason.data(), reason.size());
    stop_reason_ = {stop_reason_text_, reason.size()};
    if (Mute(mode) != Mode::kActive) return;
    WakeWriter();
  }
  Output* output = output_.load(std::memory_order_acquire);
  if (output == nullptr) return;
  WriteLastIfCaller(output);
  // A second caller also waits, so that neither exits before the file is whole.
  const int64_t deadline = MonotonicNs() + kStopWait;
  while (output->stopped.count() == 0 && MonotonicNs() < deadline) {
    output->stopped.WaitFor(0, deadline - MonotonicNs());
  }
}

}  // namespace rfinject
