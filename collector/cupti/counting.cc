#include "collector/cupti/counting.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "collector/arming/split_mix.h"
#include "collector/cupti/call_clock.h"
#include "collector/cupti/lock_waits.h"
#include "collector/safe_write.h"
#include "collector/step_waits.h"

namespace rfinject::cupti {
namespace {

// For how long, at most, a short run waits for the counters to be opened, and for what is in hand at its end; and for
// how long the end of a process waits for our thread: planning takes half a second, and must not outlive CUPTI.
constexpr int64_t kLongestHoldNs = 3'000'000'000, kLongestEndNs = 500'000'000, kLongestStopNs = 2'000'000'000;
// Closing a session of ranges takes some 0.4 s (h200), and what the GPU has in hand.
constexpr int64_t kLongestGivingWayNs = 2'000'000'000;
// While ranges are counted kernels are timed once in so many steps.
constexpr uint64_t kStepsOfRanges = 48;
constexpr uint64_t kOfExtra = 5;  // what is drawn: how many steps an extra window waits
// What a range of a short run is expected to cost.
constexpr uint64_t kLongRangeNs = 3'000'000;

arming::ScheduleOptions ScheduleOf(const Settings& settings) {
  arming::ScheduleOptions options;
  options.run_steps = settings.steps;
  if (settings.skip > 0) options.warm_up_steps = 2;  // the steps that were skipped have warmed up already
  return options;
}

}  // namespace

Counting::Counting(const Settings& settings, const Api& api, Contexts& contexts, LaunchTap& tap, LaunchKeys& keys,
                   Recorder& recorder) noexcept
    : settings_(settings),
      api_(api),
      contexts_(contexts),
      tap_(tap),
      keys_(keys),
      recorder_(recorder),
      window_(api, tap, keys, recorder),
      schedule_(ScheduleOf(settings)),
      turns_(settings.steps),
      costs_(settings.overhead_percent / 100, pace_) {}

// --- The thread that ends the steps.

void Counting::Start() {
  if (life_.started.exchange(true)) return;
  keys_.SetCounting(settings_.mode != "times" && settings_.mode != "pm");
  window_.Open();
  if (!window_.available()) times_lost_.store(true);
  // The program's signals are the program's: this thread takes none.
  const SignalShield shield;
  pthread_t thread;
  if (pthread_create(&thread, nullptr, &Main, this) == 0) {
    pthread_detach(thread);
  } else {
    life_.done.store(true);
  }
}

void Counting::Begin(uint64_t step) {
  step_.store(step + 1);
  pace_.Begin();
  life_.begun.store(true, std::memory_order_release);
  event_.Signal();
  Hold();
}

// In a short run the program waits while counters are opened, and for what is being read at its end and where a new
// graph is to be seen: it would be over before anything was known.
void Counting::Hold() {
  if (!IsShortRun(settings_)) return;
  const bool over = recorder_.WindowIsOver();
  const int64_t deadline = MonotonicNs() + (over ? kLongestEndNs : kLongestHoldNs);
  const auto waits = [&] {
    if (life_.done.load()) return false;
    if (!life_.planned.load() || opening_.load()) return true;
    const Phase state = state_.load();
    if (windows_.soon.load() && (state == Phase::kCounting || state == Phase::kLogged)) return true;
    return over && state != Phase::kIdle;
  };
  event_.Signal();
  const int64_t begin = MonotonicNs();
  while (waits()) {
    if (MonotonicNs() >= deadline) {
      windows_.soon.store(false);  // it is not waited for twice
      break;
    }
    const timespec pause = {0, 200'000};
    nanosleep(&pause, nullptr);
  }
  costs_.AddHeld(static_cast<uint64_t>(MonotonicNs() - begin));
}

void Counting::OnStepEnd(uint64_t step, bool profiles) {
  const uint64_t spent = RangesSpentNs(), of_ranges = spent - std::exchange(ranges_.spent_ns, spent);
  const bool kept = kept_launches_.exchange(false), called = opening_.load() || kept,
             counted = of_ranges > 0 || called;
  if (counted) recorder_.MarkArmed(std::max<uint32_t>(ranges_.group.load(), 1));
  pace_.EndStep({.counted = counted || state_.load() == Phase::kLogging, .called = called, .ranges_ns = of_ranges});
  const uint64_t next = step + 1;
  const KernelWindow::Turn turn = window_.TurnIn(next, profiles);
  if (turn == KernelWindow::Turn::kLost) LoseTimes();
  const bool ours = turn != KernelWindow::Turn::kTheirs && next >= settings_.skip && recorder_.NextStepIsMeasured();
  paused_.store(!ours);
  FollowWindow(next, ours, profiles);
  AllowRanges(next, ours);
  step_.store(next, std::memory_order_release);
  event_.Signal();
  if (ours || recorder_.WindowIsOver()) Hold();
}

void Counting::GiveWay() noexcept {
  paused_.store(true);
  window_.GiveWay();
  if (state_.load() == Phase::kLogging && window_.Abandon()) state_.store(Phase::kIdle);
  contexts_.ForEach([](CountedContext& one) { one.gate().Allow(0); });
  if (!life_.begun.load()) return;
  life_.giving_way.store(true);
  event_.Signal();
  const int64_t deadline = MonotonicNs() + kLongestGivingWayNs;
  while (life_.giving_way.load() && !life_.done.load() && MonotonicNs() < deadline) {
    const timespec pause = {0, 200'000};
    nanosleep(&pause, nullptr);
  }
}

void Counting::FollowWindow(uint64_t next, bool ours, bool profiles) {
  if (times_lost_.load()) return;
  if (state_.load(std::memory_order_acquire) == Phase::kLogging) {
    NoteDataWaits();
    window_.NextStep(next);
    if (ours && next < windows_.end) return;
    windows_.ended_unix_ns.store(UnixNs());
    switch (window_.Finish(next, profiles)) {
      case KernelWindow::End::kDone:
        state_.store(Phase::kLogged, std::memory_order_release);
        return;
      case KernelWindow::End::kLost:
        LoseTimes();
        break;
      case KernelWindow::End::kTaken:
        break;
    }
    state_.store(Phase::kIdle, std::memory_order_release);
    return;
  }
  const bool drawn = schedule_.Begins(next - std::min<uint64_t>(next, settings_.skip));
  if (!ours || !OursIsCurrent()) return;
  const bool graph = tap_.graphs().TakeUnseen(), wanted = drawn || graph || windows_.due.load();
  if (!wanted && !(windows_.hurry.load() && ExtraIsDue())) return;
  Phase idle = Phase::kIdle;
  if (!state_.compare_exchange_strong(idle, Phase::kLogging, std::memory_order_acq_rel)) {
    // One that was drawn while another is read comes late. While FLOP are lacking most are let pass: no time would be
    // left for ranges.
    const bool late =
        drawn && (!ranges_.unfinished.load(std::memory_order_relaxed) || next >= windows_.last + kStepsOfRanges);
    if (late) windows_.drawn = true;
    if (graph) windows_.soon.store(true);
    if (late || graph) windows_.due.store(true);
    return;
  }
  windows_.due.store(false);
  windows_.soon.store(false);
  if (!window_.Begin(next)) {
    LoseTimes();
    state_.store(Phase::kIdle, std::memory_order_release);
    return;
  }
  windows_.data_waits.clear();
  windows_.last = next;
  windows_.end = next + arming::Schedule::kStepsOfWindow;
  windows_.extra.store(!std::exchange(windows_.drawn, false) && !drawn);
  windows_.step.store(next);
  windows_.began_unix_ns.store(UnixNs());
  event_.Signal();
}

// Windows that follow each other at once would be as far apart as it takes to read one, and of a program whose every
// second or fourth step is longer always meet the same kind. So each waits for a drawn number of steps.
bool Counting::ExtraIsDue() {
  constexpr uint64_t kMostSteps = 4;
  if (state_.load(std::memory_order_acquire) != Phase::kIdle) return false;
  if (windows_.extra_in == 0) {
    windows_.extra_in = 1 + arming::RandomAt(arming::ScheduleOptions{}.seed, windows_.last, kOfExtra) % kMostSteps;
  }
  return --windows_.extra_in == 0;
}

// What the step that has ended waited for, on the clock of the records.
void Counting::NoteDataWaits() {
  std::array<BatchWait, kBatchWaitsKept> waits;
  const int64_t to_unix = UnixNs() - MonotonicNs();
  const size_t count = CopyBatchWaits(waits);
  for (size_t i = 0; i < count; ++i) {
    windows_.data_waits.push_back(
        {static_cast<uint64_t>(waits[i].began_ns + to_unix), static_cast<uint64_t>(waits[i].ended_ns + to_unix)});
  }
}

void Counting::LoseTimes() {
  if (window_.Lose()) instrumented_.store(true);
  times_lost_.store(true);
}

uint64_t Counting::RangesSpentNs() {
  uint64_t spent = 0;
  contexts_.ForEach([&spent](CountedContext& one) { spent += one.gate().spent_ns(); });
  return spent;
}

// Ranges make kernels wait, so that there are none in steps that are timed.
void Counting::AllowRanges(uint64_t next, bool ours) {
  const bool timed = state_.load(std::memory_order_acquire) == Phase::kLogging;
  uint64_t allowed = ours && !timed ? ranges_.allowance_ns.load(std::memory_order_relaxed) : 0;
  if (allowed != 0 && settings_.steps != 0) {
    // In what is left of a short run every key shall have its turn.
    const uint64_t left = settings_.skip + settings_.steps > next ? settings_.skip + settings_.steps - next : 1;
    if (left < kShortRun) allowed = std::max(allowed, (2 * keys_.size() / left + 1) * kLongRangeNs);
  }
  contexts_.ForEach([allowed](CountedContext& one) { one.gate().Allow(allowed); });
}

bool Counting::OursIsCurrent() const {
  CUcontext current = nullptr;
  return api_.cuCtxGetCurrent != nullptr && api_.cuCtxGetCurrent(&current) == CUDA_SUCCESS &&
         contexts_.first() != nullptr && current == contexts_.first()->context();
}

void Counting::OnContextDestroyed(const void* context) noexcept {
  contexts_.ForEach([context](CountedContext& one) {
    if (one.context() == context) one.ForgetContext();
  });
  if (!calls_.LockFor(kStepLockWaitNs)) return;
  const HeldLock held(calls_);
  for (Device& device : devices_) {
    if (device.context->context() != nullptr) continue;
    if (device.ranges != nullptr) device.ranges->Abandon();
    if (device.bytes != nullptr) device.bytes->Close();
  }
}

void Counting::EndSessions() noexcept {
  if (!calls_.LockFor(kStepLockWaitNs)) return;
  const HeldLock held(calls_);
  for (Device& device : devices_) {
    const ContextScope scope(api_, device.context->context());
    if (!scope.ok()) continue;
    if (device.ranges != nullptr) device.ranges->Abandon();
    if (device.bytes != nullptr) device.bytes->Close();
  }
}

void Counting::Stop() noexcept {
  life_.stopping.store(true);
  contexts_.ForEach([](CountedContext& one) { one.gate().Allow(0); });
  if (!life_.started.load()) return;
  event_.Signal();
  const int64_t deadline = MonotonicNs() + kLongestStopNs;
  while (!life_.done.load() && MonotonicNs() < deadline) {
    const timespec pause = {0, 200'000};
    nanosleep(&pause, nullptr);
  }
}

void Counting::OnForkedChild() noexcept {
  life_.stopping.store(true);
  life_.done.store(true);
  calls_.ResetInForkedChild();
}

// --- Our thread.

void* Counting::Main(void* self) noexcept {
  auto* const counting = static_cast<Counting*>(self);
  ThisThreadIsOurs();
  try {
    counting->Run();
  } catch (...) {
    // The only exception that can be thrown here is that memory ran out.
    counting->recorder_.CountDrop("counting: out of memory");
  }
  counting->life_.done.store(true);
  return nullptr;
}

void Counting::Run() {
  Open();
  // What nothing can be counted without is done. Linux counts niceness by thread.
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 10);
  life_.planned.store(true, std::memory_order_release);
  while (!life_.begun.load(std::memory_order_acquire) && !life_.stopping.load()) WaitFor(1'000'000'000);
  costs_.Begin();
  turns_.Begin(step_.load());
  ReportFacts();
  while (!life_.stopping.load()) {
    const uint32_t seen = event_.count();
    if (life_.giving_way.load()) {
      CloseSessions();
      window_.TakeBuffersBack();
      life_.giving_way.store(false);
    }
    AdoptContexts();
    ServeWindow();
    if (!life_.stopping.load()) Count();
    event_.WaitFor(seen, 1'000'000'000);
  }
  ReportUnfinished();
}

// Uses what there is, and says why rows lack times or counters, where the program ended before everything was
// collected once.
void Counting::ReportUnfinished() {
  for (size_t i = 0; i < opened_.devices; ++i) {
    if (Device* const device = DeviceAt(i); device != nullptr && device->bytes != nullptr) device->bytes->Solve();
  }
  if (!ranges_.unfinished.load() && windows_.count > 0) return;
  recorder_.ReportDiagnostic(Severity::kWarning, "too-few-steps",
                             "the program ended after " + std::to_string(step_.load()) +
                                 " steps, before all counters and times had been taken once",
                             "run more steps");
}

void Counting::WaitFor(int64_t ns) { event_.WaitFor(event_.count(), ns); }

}  // namespace rfinject::cupti
