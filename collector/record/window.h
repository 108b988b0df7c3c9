// File: window.h
//
// Window knows which steps are measured: those from --skip on, --steps of them, without those in which the user had
// stopped the measuring. Record asks it for every launch, so it is four relaxed loads and no lock.
#ifndef RFINJECT_COLLECTOR_RECORD_WINDOW_H_
#define RFINJECT_COLLECTOR_RECORD_WINDOW_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collector/settings.h"

namespace rfinject {

class Window {
 public:
  // No iteration has more steps, and so it may be cut within as many last ones, less one.
  static constexpr uint64_t kStepsNearEnd = 64;

  explicit Window(const Settings& settings) noexcept { Begin(settings); }
  // Begins at step 0. Called while nobody records.
  void Begin(const Settings& settings) noexcept {
    skip_ = settings.skip;
    skip_and_steps_ = settings.steps == 0 || settings.steps > UINT64_MAX - settings.skip
                          ? UINT64_MAX
                          : settings.skip + settings.steps;
    Request(!settings.start_stopped);
    ResetInForkedChild();
  }

  // Whether --skip and --steps let `step` be measured.
  bool InSettings(uint64_t step) const noexcept { return step >= begin() && step < end(); }
  // Tells what the step that ends is (Step.kind and Step.optimizer). Called by the thread that ends the steps.
  void NoteKind(uint32_t kind, uint32_t optimizer) noexcept {
    const uint64_t both = uint64_t{kind} << 32 | optimizer;
    uint64_t first = 0;
    if (both == 0 || first_kind_.compare_exchange_strong(first, both, std::memory_order_relaxed)) return;
    if (first != both) kinds_differ_.store(true, std::memory_order_relaxed);
  }
  // Whether steps are of several kinds, so that an iteration may have several.
  bool KindsDiffer() const noexcept { return kinds_differ_.load(std::memory_order_relaxed); }
  // Whether --steps says which step will be the last.
  bool Ends() const noexcept { return settings_end_.load(std::memory_order_relaxed) != UINT64_MAX; }
  // Whether `step` is one of the last of the window that --steps ends, within which an iteration may be cut.
  bool IsNearEnd(uint64_t step) const noexcept {
    const uint64_t last = settings_end_.load(std::memory_order_relaxed);
    return last != UINT64_MAX && step < last && last - step < kStepsNearEnd && step >= begin();
  }
  // Whether --steps have passed when `step` begins.
  bool IsOver(uint64_t step) const noexcept { return step >= settings_end_.load(std::memory_order_relaxed); }
  // Lets --skip and --steps count from `step` on. Called by the thread that ends the steps.
  void BeginAt(uint64_t step) noexcept {
    const uint64_t last = skip_and_steps_ > UINT64_MAX - 1 - step ? UINT64_MAX : skip_and_steps_ + step;
    begin_.store(skip_ > UINT64_MAX - step ? UINT64_MAX : skip_ + step, std::memory_order_relaxed);
    uint64_t open = settings_end_.exchange(last, std::memory_order_relaxed);
    end_.compare_exchange_strong(open, last, std::memory_order_relaxed);
  }
  // Leaves `step`, which ends, out of a window that has one step more for it. Returns false where too many steps were
  // left out. Called by the thread that ends the steps, before the next one begins.
  bool LeaveOut(uint64_t step) noexcept {
    const size_t count = left_out_count_.load(std::memory_order_relaxed);
    if (count == left_out_.size()) return false;
    left_out_[count].store(step, std::memory_order_relaxed);
    left_out_count_.store(count + 1, std::memory_order_release);
    uint64_t last = settings_end_.load(std::memory_order_relaxed);
    if (last == UINT64_MAX) return true;
    settings_end_.store(last + 1, std::memory_order_relaxed);
    end_.compare_exchange_strong(last, last + 1, std::memory_order_relaxed);
    return true;
  }
  // Whether `step`, which has ended, was left out.
  bool LeftOut(uint64_t step) const noexcept {
    for (size_t i = left_out_count_.load(std::memory_order_acquire); i > 0; --i) {
      const uint64_t one = left_out_[i - 1].load(std::memory_order_relaxed);
      if (one <= step) return one == step;
    }
    return false;
  }
  // Whether the user had stopped the measuring in `step`. Only the last stop is known.
  bool Stopped(uint64_t step) const noexcept {
    return step < stop_end_.load(std::memory_order_acquire) && step >= stop_begin_.load(std::memory_order_relaxed);
  }
  bool Measured(uint64_t step) const noexcept { return InSettings(step) && !Stopped(step); }

  // The first step after the window; 0 once nothing is recorded any more.
  uint64_t end() const noexcept { return end_.load(std::memory_order_relaxed); }
  // Ends the recording at once.
  void Close() noexcept { end_.store(0, std::memory_order_relaxed); }

  // Asks for the steps that begin from now on to be measured, or not. Any thread may call this.
  void Request(bool measuring) noexcept { wanted_.store(measuring, std::memory_order_relaxed); }
  bool wanted() const noexcept { return wanted_.load(std::memory_order_relaxed); }
  // Does what was asked for when the step `next` is about to begin, so that the step that ends and the one that
  // begins are each measured whole or not at all. Called by the thread that ends the step. Returns whether anything
  // changed.
  bool Follow(uint64_t next) noexcept {
    if (wanted() != Stopped(next)) return false;  // it is so already
    if (wanted()) {
      stop_end_.store(next, std::memory_order_release);
    } else {
      // In this order the steps in between belong to no stop at any moment.
      stop_begin_.store(next, std::memory_order_release);
      stop_end_.store(UINT64_MAX, std::memory_order_release);
    }
    return true;
  }

  // A forked child begins at step 0 again, stopped if its parent was asked to stop.
  void ResetInForkedChild() noexcept {
    stop_begin_.store(wanted() ? UINT64_MAX : 0, std::memory_order_relaxed);
    stop_end_.store(UINT64_MAX, std::memory_order_relaxed);
    first_kind_.store(0, std::memory_order_relaxed);
    kinds_differ_.store(false, std::memory_order_relaxed);
    begin_.store(skip_, std::memory_order_relaxed);
    settings_end_.store(skip_and_steps_, std::memory_order_relaxed);
    end_.store(skip_and_steps_, std::memory_order_relaxed);
    left_out_count_.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr size_t kMostLeftOut = 256;

  uint64_t begin() const noexcept { return begin_.load(std::memory_order_relaxed); }

  uint64_t skip_ = 0, skip_and_steps_ = 0;
  // The thread that ends the steps writes them (BeginAt), and every recording thread reads them. Relaxed:
  // the launches that come after are of that same thread, or follow it by what it hands to theirs.
  std::atomic<uint64_t> begin_{0}, settings_end_{0};
  // Close writes it, on whichever thread ends the recording; every recording thread reads it. Relaxed: a launch that
  // is recorded a moment late lies in a ring that is not read any more.
  std::atomic<uint64_t> end_{0};
  // The first step of the last stop, and the first after it. The thread that ends a step writes them, every recording
  // thread reads them. stop_end_ is released after stop_begin_ and acquired before it, so a thread that sees the end
  // of a new stop also sees its beginning.
  std::atomic<uint64_t> stop_begin_{UINT64_MAX}, stop_end_{UINT64_MAX};
  // Steps that were left out, ascending. The thread that ends a step writes them; the writer acquires their number,
  // and asks for steps only that it has seen end.
  std::array<std::atomic<uint64_t>, kMostLeftOut> left_out_{};
  std::atomic<size_t> left_out_count_{0};
  // The thread that ends the steps writes them, the writer reads kinds_differ_. Relaxed: what is launched in later
  // steps reaches the writer after it.
  std::atomic<uint64_t> first_kind_{0};
  std::atomic<bool> kinds_differ_{false};
  // What the user wants from the next step on. Any thread writes it, the one that ends a step reads it. Relaxed:
  // nothing else is handed over with it.
  std::atomic<bool> wanted_{true};
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_RECORD_WINDOW_H_
