#include "collector/cupti/counting.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "collector/cupti/call_clock.h"
#include "collector/cupti/lock_waits.h"
#include "collector/safe_write.h"

namespace rfinject::cupti {
namespace {

// For how long, at most, a short run waits for the counters to be opened, and for what is in hand at its end; and for
// how long the end of a process waits for our thread: planning takes half a second, and must not outlive CUPTI.
constexpr int64_t kLongestHoldNs = 3'000'000'000, kLongestEndNs = 500'000'000, kLongestStopNs = 2'000'000'000;
// A run with more steps than this is long enough for counters that are opened while it goes on.
constexpr uint64_t kShortRun = 1000;
// While ranges are counted kernels are timed once in so many steps.
constexpr uint64_t kStepsOfRanges = 48;

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
      budget_(settings.overhead_percent / 100) {}

// --- The thread that ends the steps.

void Counting::Start() {
  if (started_.exchange(true)) return;
  keys_.SetCounting(settings_.mode != "times" && settings_.mode != "pm");
  window_.Open();
  if (!window_.available()) times_lost_.store(true);
  // The program's signals are the program's: this thread takes none.
  const SignalShield shield;
  pthread_t thread;
  if (pthread_create(&thread, nullptr, &Main, this) == 0) {
    pthread_detach(thread);
  } else {
    done_.store(true);
  }
}

void Counting::Begin(uint64_t step) {
  first_step_ = step + 1;
  step_.store(step + 1);
  step_began_ns_ = MonotonicNs();
  begun_.store(true, std::memory_order_release);
  event_.Signal();
  Hold();
}

// In a short run the program waits while counters are opened, and at its end for what is being read: it would be over
// before anything was known.
void Counting::Hold() {
  if (settings_.steps == 0 || settings_.steps > kShortRun) return;
  const bool over = recorder_.WindowIsOver();
  const int64_t deadline = MonotonicNs() + (over ? kLongestEndNs : kLongestHoldNs);
  const auto waits = [&] {
    if (done_.load()) return false;
    if (!planned_.load() || opening_.load()) return true;
    return over && state_.load() != Phase::kIdle;
  };
  event_.Signal();
  const int64_t begin = MonotonicNs();
  while (waits() && MonotonicNs() < deadline) {
    const timespec pause = {0, 200'000};
    nanosleep(&pause, nullptr);
  }
  held_ns_.fetch_add(static_cast<uint64_t>(MonotonicNs() - begin), std::memory_order_relaxed);
}

void Counting::OnStepEnd(uint64_t step, bool profiles) {
  const uint64_t used = ranges_used_.load(std::memory_order_relaxed);
  const bool counted = used != std::exchange(ranges_seen_, used) || opening_.load();
  if (counted) recorder_.MarkArmed(std::max<uint32_t>(session_group_.load(), 1));
  NoteDuration(step, counted || state_.load() == Phase::kLogging);
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

void Counting::NoteDuration(uint64_t step, bool counted) {
  const int64_t now = MonotonicNs();
  const auto duration = static_cast<uint64_t>(now - std::exchange(step_began_ns_, now));
  // What was launched in a step may run some steps later, and make these longer.
  constexpr uint32_t kStepsBehind = 4;
  const auto usual = static_cast<int64_t>(step_ns_.load(std::memory_order_relaxed));
  if (counted) steps_behind_ = kStepsBehind + 1;
  if (steps_behind_ > 0 && usual > 0) {
    stretch_ns_ += static_cast<int64_t>(duration) - usual;
    if (--steps_behind_ == 0) {
      longer_ns_.fetch_add(static_cast<uint64_t>(std::max<int64_t>(0, stretch_ns_)), std::memory_order_relaxed);
      stretch_ns_ = 0;
    }
  }
  // The first steps make plans and allocate.
  if (counted || step < first_step_ + 2) return;
  durations_[duration_count_++ % kDurations] = duration;
  std::array<uint64_t, kDurations> sorted = durations_;
  const size_t count = std::min<size_t>(duration_count_, kDurations);
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(count / 2),
                   sorted.begin() + static_cast<std::ptrdiff_t>(count));
  step_ns_.store(sorted[count / 2], std::memory_order_relaxed);
}

void Counting::FollowWindow(uint64_t next, bool ours, bool profiles) {
  if (times_lost_.load()) return;
  if (state_.load(std::memory_order_acquire) == Phase::kLogging) {
    window_.NextStep(next);
    if (ours && next < window_end_) return;
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
  const bool due = schedule_.Begins(next - std::min<uint64_t>(next, settings_.skip));
  if (!ours || !OursIsCurrent() || !(due || window_due_.load())) return;
  Phase idle = Phase::kIdle;
  if (!state_.compare_exchange_strong(idle, Phase::kLogging, std::memory_order_acq_rel)) {
    // Ranges wait for the window: some windows are let pass. One that is due while the last is read comes late,
    // unless FLOP are unknown, for which no time would be left.
    const uint64_t distance = settings_.steps != 0 ? std::min(kStepsOfRanges, settings_.steps / 8) : kStepsOfRanges;
    if (!unfinished_.load(std::memory_order_relaxed) || next >= last_window_ + distance) window_due_.store(true);
    return;
  }
  window_due_.store(false);
  if (!window_.Begin(next)) {
    LoseTimes();
    state_.store(Phase::kIdle, std::memory_order_release);
    return;
  }
  last_window_ = next;
  window_end_ = next + arming::Schedule::kStepsOfWindow;
  window_step_.store(next);
  window_began_unix_ns_.store(UnixNs());
  event_.Signal();
}

void Counting::LoseTimes() {
  if (window_.Lose()) instrumented_.store(true);
  times_lost_.store(true);
}

// Ranges make kernels wait, so that there are none in steps that are timed.
void Counting::AllowRanges(uint64_t next, bool ours) {
  const bool timed = state_.load(std::memory_order_acquire) == Phase::kLogging;
  uint32_t allowed = ours && !timed ? allowance_.load(std::memory_order_relaxed) : 0;
  if (allowed != 0 && settings_.steps != 0) {
    // In what is left of a short run every key shall have its turn.
    const uint64_t left = settings_.skip + settings_.steps > next ? settings_.skip + settings_.steps - next : 1;
    if (left < kShortRun) allowed = std::max<uint32_t>(allowed, static_cast<uint32_t>(2 * keys_.size() / left + 1));
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
  stopping_.store(true);
  contexts_.ForEach([](CountedContext& one) { one.gate().Allow(0); });
  if (!started_.load()) return;
  event_.Signal();
  const int64_t deadline = MonotonicNs() + kLongestStopNs;
  while (!done_.load() && MonotonicNs() < deadline) {
    const timespec pause = {0, 200'000};
    nanosleep(&pause, nullptr);
  }
}

void Counting::OnForkedChild() noexcept {
  stopping_.store(true);
  done_.store(true);
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
  counting->done_.store(true);
  return nullptr;
}

void Counting::Run() {
  Open();
  // What nothing can be counted without is done. Linux counts niceness by thread.
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 10);
  planned_.store(true, std::memory_order_release);
  while (!begun_.load(std::memory_order_acquire) && !stopping_.load()) WaitFor(1'000'000'000);
  begun_ns_ = MonotonicNs();
  ReportFacts();
  while (!stopping_.load()) {
    const uint32_t seen = event_.count();
    AdoptContexts();
    ServeWindow();
    if (!stopping_.load()) Count();
    event_.WaitFor(seen, 1'000'000'000);
  }
  ReportUnfinished();
}

// Uses what there is, and says why rows lack times or counters, where the program ended before everything was
// collected once.
void Counting::ReportUnfinished() {
  for (size_t i = 0; i < devices_count_; ++i) {
    if (Device* const device = DeviceAt(i); device != nullptr && device->bytes != nullptr) device->bytes->Solve();
  }
  if (!unfinished_.load() && windows_ > 0) return;
  recorder_.ReportDiagnostic(Severity::kWarning, "too-few-steps",
                             "the program ended after " + std::to_string(step_.load()) +
                                 " steps, before all counters and times had been taken once",
                             "run more steps");
}

void Counting::WaitFor(int64_t ns) { event_.WaitFor(event_.count(), ns); }

// --- What it costs.

uint64_t Counting::SpentNs() const {
  return ProgramsCallNs() + longer_ns_.load(std::memory_order_relaxed) + held_ns_.load(std::memory_order_relaxed);
}

bool Counting::MayCost(uint64_t ns) const {
  return budget_.Allows(SpentNs(), ns, static_cast<uint64_t>(MonotonicNs() - begun_ns_));
}

void Counting::KeepCosts() {
  const auto keep = [this](const char* what, uint64_t count, uint64_t ns) {
    if (ns == 0 && count == 0) return;
    trace::CountingCost cost;
    cost.what = what;
    cost.count = count;
    cost.ns = ns;
    recorder_.Keep(std::move(cost));
  };
  const auto keep_more = [&](const char* what, uint64_t now, uint64_t* kept, uint64_t count) {
    keep(what, count, now - std::exchange(*kept, now));
  };
  keep_more("calls", ProgramsCallNs(), &kept_calls_ns_, 0);
  keep_more("own calls", OurCallNs(), &kept_own_ns_, 0);
  keep_more("longer steps", longer_ns_.load(std::memory_order_relaxed), &kept_longer_ns_, ranges_ - kept_ranges_);
  keep_more("waiting for the opening", held_ns_.load(std::memory_order_relaxed), &kept_held_ns_, 0);
  kept_ranges_ = ranges_;
}

}  // namespace rfinject::cupti
