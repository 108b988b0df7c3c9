#include "collector/record/trace_recorder.h"

#include <new>
#include <variant>

#include "collector/last_words.h"
#include "collector/safe_write.h"
#include "collector/step_waits.h"

namespace rfinject {

Recorder& Recorder::Get() noexcept {
  // The recorder is in static storage and never destroyed: threads and exit handlers of the program record until the
  // very end, and an allocation could fail.
  alignas(TraceRecorder) static unsigned char storage[sizeof(TraceRecorder)];
  static TraceRecorder* const recorder = new (storage) TraceRecorder(GetSettings());
  return *recorder;
}

TraceRecorder::TraceRecorder(const Settings& settings) noexcept : state_(settings) { RegisterForFork(); }

void TraceRecorder::AfterForkInChild() noexcept {
  writer_.ResetInForkedChild();
  rings_.ResetInForkedChild();
  clock_.ResetInForkedChild();
  measured_steps_.store(0, std::memory_order_relaxed);
  last_words_.store(false, std::memory_order_relaxed);
  activation_lock_.ResetInForkedChild();
  state_.ResetInForkedChild();
}

template <typename Do>
auto TraceRecorder::Locked(Do what) noexcept
    -> decltype(what(std::declval<Definitions&>(), std::declval<Pending&>())) {
  try {
    StateGuard guard(&state_);
    if (guard) return what(*state_.definitions, state_.trace->pending);
  } catch (...) {
  }
  return decltype(what(std::declval<Definitions&>(), std::declval<Pending&>()))();
}

// --- Definitions

uint32_t TraceRecorder::Intern(std::string_view text) noexcept {
  Definitions* definitions = state_.definitions;
  if (definitions == nullptr) return 0;
  if (const uint32_t id = definitions->names.Find(text)) return id;
  StateGuard guard(&state_);
  return guard ? definitions->names.Add(text) : 0;
}

uint32_t TraceRecorder::DefineMetric(std::string_view name, std::string_view unit, double scale) noexcept {
  return Locked([&](Definitions& known, Pending&) { return known.DefineMetric(name, unit, scale); });
}

uint32_t TraceRecorder::DefineModel(const ModelDefinition& model) noexcept {
  return Locked([&](Definitions& known, Pending&) { return known.DefineModel(model); });
}

uint32_t TraceRecorder::DefineLayer(const LayerDefinition& layer) noexcept {
  const uint32_t id = Locked([&](Definitions& known, Pending&) { return known.DefineLayer(layer); });
  MayWrite();
  return id;
}

void TraceRecorder::SetLayerShapes(uint32_t layer, std::string_view input, std::string_view output) noexcept {
  Locked([&](Definitions& known, Pending&) { known.SetLayerShapes(layer, input, output); });
}

bool TraceRecorder::FindLayer(uint32_t layer, LayerDefinition* definition) {
  return Locked([&](Definitions& known, Pending&) {
    if (layer == 0 || layer > known.layers.size()) return false;
    *definition = known.layers[layer - 1].definition;
    return true;
  });
}

void TraceRecorder::UpdateFacts(const RunFacts& facts) noexcept {
  Locked([&](Definitions& known, Pending&) { MergeFacts(facts, &known.facts); });
}

uint32_t TraceRecorder::DefineSourceLine(std::string_view file, uint32_t line, std::string_view function) noexcept {
  const uint32_t file_name = Intern(file), function_name = Intern(function);
  return Locked([&](Definitions& known, Pending&) { return known.DefineLine(file_name, line, function_name); });
}

void TraceRecorder::NoteSourceLine(const LaunchIdentity& identity, uint32_t line) noexcept {
  Locked([&](Definitions& known, Pending&) {
    if (line != 0 && line <= known.lines.size()) known.key_lines.try_emplace(identity, line);
  });
}

void TraceRecorder::NoteOperatorWork(OperatorWork work) noexcept {
  Locked([&](Definitions&, Pending& pending) { pending.AddWork(std::move(work)); });
}

void TraceRecorder::NoteTimeline(Timeline timeline) noexcept {
  Locked([&](Definitions&, Pending& pending) {
    pending.told.timelines[timeline.timeline.device] = std::move(timeline);
  });
}

void TraceRecorder::NoteStack(const LaunchIdentity& identity, std::span<const NativeFrame> frames) noexcept {
  Locked([&](Definitions& known, Pending& pending) {
    if (const uint32_t stack = known.DefineStack(frames)) pending.key_stacks.try_emplace(identity, stack);
  });
}

void TraceRecorder::DescribeModule(uint32_t module, std::string_view path, std::string_view build_id) noexcept {
  Locked([&](Definitions& known, Pending&) { known.DescribeModule(module, path, build_id); });
}

void TraceRecorder::NameFrame(const NativeFrame& frame, std::string_view function) noexcept {
  const uint32_t name = Intern(function);
  Locked([&](Definitions& known, Pending&) { known.NameFrame(frame, name); });
}

// --- Launches

template <typename... What>
inline void TraceRecorder::PushAt(LaunchRing* ring, const RingPosition& position, const What&... what) noexcept {
  if (!ring->MoveTo(position)) [[unlikely]] {
    return ring->CountDrop();
  }
  if (ring->Push(what...) == LaunchRing::PushResult::kHalfFull) [[unlikely]] {
    if (active()) writer_.Wake();
  }
}

// Whether a launch counts is decided by one load of the step. That makes the window's edges exact: a Record that
// happens before EndStep cannot see the step that it begins, and one that happens after it cannot see the old one
// (read-write and write-read coherence, C++ [intro.races]).
template <typename... What>
inline void TraceRecorder::Push(const What&... what) noexcept {
  const RingPosition position = state_.progress.Position();
  if (!state_.window.Measured(position.step)) return;
  if (rings_.HasThread()) [[likely]] {
    return PushAt(Rings::RingOfThread(), position, what...);
  }
  RecordFirst(LaunchRecord{what...}, position);
}

void TraceRecorder::RecordFirst(const LaunchRecord& record, const RingPosition& position) noexcept {
  if (LaunchRing* ring = AcquireRing(); ring != nullptr) return PushAt(ring, position, record);
  if (Rings::ThreadEnded()) return Add(record);
  rings_.CountRingless();
}

void TraceRecorder::Record(const LaunchRecord& record) noexcept { Push(record); }
void TraceRecorder::RecordLaunch(const LaunchIdentity& identity, uint32_t launches) noexcept {
  Push(identity, launches);
}

LaunchRing* TraceRecorder::AcquireRing() noexcept {
  clock_.Start();
  return rings_.Acquire();
}

void TraceRecorder::WaitForRoom() noexcept {
  if (!rings_.HasThread()) return;
  constexpr int64_t kMostNs = 1'000'000'000;
  constexpr timespec kTurn = {.tv_sec = 0, .tv_nsec = 100'000};
  const LaunchRing& ring = *Rings::RingOfThread();
  for (int64_t begin = 0; ring.MostIsTaken() && active(); nanosleep(&kTurn, nullptr)) {
    const int64_t now = MonotonicNs();
    if (begin == 0) begin = now;
    if (now - begin > kMostNs) return;
    writer_.Wake();
    writer_.MayWrite();
  }
}

void TraceRecorder::Add(const LaunchRecord& record) noexcept {
  if (state_.window.end() == 0) return;
  Locked([&](Definitions&, Pending& pending) { pending.Add(record, CurrentStep()); });
}

void TraceRecorder::AddSamples(const LaunchRecord& record, uint64_t step) noexcept {
  if (state_.window.end() == 0) return;
  if (step != kOfNoStep && (!state_.window.Measured(step) || state_.window.LeftOut(step))) return;
  Locked([&](Definitions&, Pending& pending) { pending.AddSamples(record, step, CurrentStep()); });
}

uint32_t TraceRecorder::DefineGraph(std::span<const GraphMember> members, const LaunchIdentity& whole,
                                    bool settled) noexcept {
  return Locked([&](Definitions&, Pending& pending) { return pending.graphs.Define(members, whole, settled); });
}

void TraceRecorder::SettleGraph(uint32_t graph, bool by_members) noexcept {
  Locked([&](Definitions&, Pending& pending) { pending.SettleGraph(graph, by_members); });
}

void TraceRecorder::ForgetGraph(uint32_t graph) noexcept {
  Locked([&](Definitions&, Pending& pending) { pending.graphs.Forget(graph, CurrentStep()); });
}

void TraceRecorder::CountDrop(std::string_view what, uint64_t count) noexcept {
  if (count == 0) return;
  Locked([&](Definitions&, Pending& pending) { pending.AddDrop(CutText(what), count); });
}

// --- Steps

void TraceRecorder::BeginFirstStep() noexcept {
  if (!state_.IsOurProcess() || !activation_lock_.LockFor(kLockWaitNs)) return;
  const HeldLock held(activation_lock_);
  if (state_.Is(RecorderState::Mode::kIdle) && CurrentStep() == 0) {
    rings_.DrainModelOnly(&state_);
    RestartStep();
  }
}

void TraceRecorder::BeginTraining() noexcept {
  const uint64_t step = CurrentStep();
  if (step == 0 || state_.window.end() == 0) return;
  Locked([step](Definitions&, Pending& pending) { pending.BeginTraining(step); });
  state_.window.BeginAt(step);
  measured_steps_.store(0, std::memory_order_relaxed);
  writer_.FlushSoon();
}

void TraceRecorder::EndStep(uint64_t samples_in_step) noexcept {
  const uint64_t window_end = state_.window.end();
  if (window_end == 0) return;
  StepRecord step;
  const int64_t now = clock_.EndStep(&step);
  const uint64_t current = CurrentStep();
  const bool in_settings = state_.window.InSettings(current);
  const bool stopped = state_.window.Stopped(current) && in_settings;
  const bool left_out = notes_.TakeLeftOut(), failed = notes_.TakeFailed(), compiled = notes_.TakeCompiled();
  step.measured = in_settings && !stopped && !left_out;
  const bool in_no_sum = step.measured && (failed || compiled) && state_.window.LeaveOut(current);
  const bool compiling = in_no_sum && !failed;
  step.measured = step.measured && !in_no_sum;
  FollowRequest(current + 1);
  step.index = state_.progress.NextStep();
  step.samples = samples_in_step;
  if (step.measured) measured_steps_.fetch_add(1, std::memory_order_relaxed);
  notes_.TakeInto(&step);
  state_.window.NoteKind(step.kind, step.optimizer);
  clock_.AddWaits(&step);
  batches_before_.store(state_.progress.batches(), std::memory_order_relaxed);
  LaunchRing* ring = rings_.HasThread() ? Rings::RingOfThread() : AcquireRing();
  if (ring == nullptr || ring->Push(step) == LaunchRing::PushResult::kDropped) {
    // Launches may be lost, but a step must not: reports divide by the number of steps.
    Locked([&](Definitions&, Pending& pending) { pending.AddStep(step); });
  }
  state_.progress.StepIsInRing();
  if (step.index + 1 == window_end && active()) writer_.FlushSoon();
  if (stopped) Locked([](Definitions& known, Pending&) { ++known.facts.process.stopped_steps; });
  if (compiling) Locked([](Definitions& known, Pending&) { ++known.facts.process.compiling_steps; });
  MayWrite();
  writer_.MayLookForRequest(now);
}

void TraceRecorder::FollowRequest(uint64_t next) noexcept {
  if (!state_.window.Follow(next)) return;
  const uint32_t measuring = state_.window.Stopped(next) ? 1 : 2;
  Locked([&](Definitions& known, Pending&) { known.facts.process.measuring = measuring; });
  writer_.FlushSoon();
}

void TraceRecorder::NoteMemoryPeak(const MemoryPeak& peak) noexcept {
  Locked([&](Definitions&, Pending& pending) { pending.memory_peak = peak; });
}

void TraceRecorder::Keep(trace::RunRecord record) noexcept {
  const bool measured = std::visit(
      [this](const auto& one) {
        if constexpr (requires { one.step; }) return state_.window.Measured(one.step);
        return true;
      },
      record);
  if (measured) Locked([&](Definitions&, Pending& pending) { pending.Keep(std::move(record)); });
}

// --- Life

void TraceRecorder::ActivateInto(int fd) noexcept {
  if (!state_.Is(RecorderState::Mode::kIdle) || !state_.IsOurProcess()) return;
  {
    if (!activation_lock_.LockFor(kLockWaitNs)) return;
    const HeldLock held(activation_lock_);
    if (state_.Is(RecorderState::Mode::kIdle)) {
      clock_.Start();
      writer_.Open(fd);
    }
  }
  if (!active()) return;
  if (!SettingsErrors().empty()) {
    ReportDiagnostic(Severity::kWarning, "settings", SettingsErrors(), "`rfinject env` prints what is understood");
  }
  log_.PrintHeld();
}

void TraceRecorder::NoteWaitsBehindLastStep() noexcept {
  if (!active() || !state_.IsOurProcess()) return;
  if (state_.progress.batches() != batches_before_.load(std::memory_order_relaxed)) return;
  StepRecord waits;
  clock_.AddWaits(&waits);
  if ((waits.watched & kGpuWaits) == 0 || waits.gpu_wait_ns == 0) return;
  Locked([&](Definitions&, Pending& pending) { pending.steps.waits_behind = waits; });
}

void TraceRecorder::Finish(std::string_view reason) noexcept {
  NoteWaitsBehindLastStep();
  writer_.Stop(RecorderState::Mode::kFinished, reason);
  if (!state_.IsOurProcess()) return;
  const std::string* trace = writer_.WholeTrace();
  if (trace == nullptr) return;
  try {
    if (last_words_.exchange(true) || !MaySpeakLast(state_.settings)) return;
    WriteLogLine(TraceWords(state_.settings, measured_steps_.load(std::memory_order_relaxed), *trace));
  } catch (...) {
  }
}

bool TraceRecorder::BeginAgain() noexcept {
  if (!state_.IsOurProcess() || !activation_lock_.LockFor(kLockWaitNs)) return false;
  const HeldLock held(activation_lock_);
  if (state_.active() || !writer_.BeginAgain() || !state_.BeginAgain()) return false;
  // What a ring still holds, it was given after the last writing.
  rings_.Discard();
  clock_.ResetInForkedChild();
  notes_.Forget();
  log_.BeginAgain();
  measured_steps_.store(0, std::memory_order_relaxed);
  batches_before_.store(0, std::memory_order_relaxed);
  last_words_.store(false, std::memory_order_relaxed);
  return true;
}

void TraceRecorder::Disable(std::string_view reason) noexcept try {
  if (!state_.IsOurProcess() || state_.Is(RecorderState::Mode::kDisabled)) return;
  ReportDiagnostic(Severity::kError, "disabled", reason, {});
  writer_.Stop(RecorderState::Mode::kDisabled, "disabled: " + std::string(CutText(reason)));
} catch (...) {
  state_.Mute(RecorderState::Mode::kDisabled);
}

}  // namespace rfinject
