// File: range_gate.h
//
// RangeGate opens a range of CUPTI's around single launches of a context whose counters are wanted. Launch callbacks
// come in on the program's threads: where nothing is counted they pay one relaxed load.
//
// A range must hold one launch and nothing else. So none is opened while another thread is inside a launch of the
// same context, and a range into which another thread has launched is thrown away; its launch is wanted again. No
// launch waits for another. On the GPU, CUPTI lets a range begin when the kernels before it have ended
// (docs/inside/HARDWARE_SOURCE.md): what runs on other streams, communication too, is never in it. All ranks launch
// their collectives in one order, so that these end whatever waits for them. A kernel that sends or receives may wait
// for what its rank launches later: the first such launch bars the gate for good.
//
// Our own thread opens and closes the gate; between the two the session of the batch's backend must run. The thread
// that ends the steps says what the ranges of a step may cost.
#ifndef RFINJECT_COLLECTOR_CUPTI_RANGE_GATE_H_
#define RFINJECT_COLLECTOR_CUPTI_RANGE_GATE_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace rfinject::cupti {

class CounterBackend;

// What is counted between a session's start and its stop.
class RangeBatch {
 public:
  // As many ranges as a session has room for at most. One with more takes longer to start, 1.2 ms a range; each batch
  // takes 60 ms to be read and followed by the next (h100).
  static constexpr size_t kRanges = 128;
  struct Range {
    uint32_t key = 0;
    uint32_t graph = 0;  // LaunchLog::Entry::graph
    std::atomic<bool> good{false};
  };

  // A key of which a launch shall have a range, and what that is expected to cost the program.
  struct Wanted {
    uint32_t key = 0, cost_ns = 1;
  };

  // `room` is for at most kRanges; `wanted` are keys below `keys`. May throw std::bad_alloc.
  RangeBatch(CounterBackend& backend, size_t room, uint32_t keys, std::span<const Wanted> wanted);

  // How many ranges were opened, by ordinal, and the ranges.
  size_t used() const noexcept { return used_.load(std::memory_order_acquire); }
  const Range& range(size_t ordinal) const noexcept { return ranges_[ordinal]; }
  // Whether no more can be opened: there is no room, or every wanted key was launched.
  bool full() const noexcept { return used() >= room_ || left_.load(std::memory_order_relaxed) <= 0; }
  // Whether a launch that was wanted had no range, because its step had enough of them.
  bool denied() const noexcept { return denied_.load(std::memory_order_relaxed); }
  // The first failure of a push or a pop, a CUptiResult.
  int result() const noexcept { return result_.load(std::memory_order_relaxed); }

 private:
  friend class RangeGate;
  // What a range of the key costs; 0: none is wanted.
  uint32_t CostOf(uint32_t key) const noexcept {
    return key < keys_ ? wanted_[key].load(std::memory_order_relaxed) : 0;
  }
  void Fail(int result) noexcept;

  CounterBackend& backend_;
  const size_t room_;
  const uint32_t keys_;
  std::unique_ptr<std::atomic<uint32_t>[]> wanted_;
  std::array<Range, kRanges> ranges_;
  std::atomic<uint32_t> used_{0};
  std::atomic<int32_t> left_;
  std::atomic<bool> denied_{false};
  std::atomic<int> result_{0};
};

class RangeGate {
 public:
  // For our own thread. Close returns when no launch that came in is left; false: one still is after a while, and
  // neither the batch nor its backend may be touched or freed.
  void Open(RangeBatch* batch) noexcept { batch_.store(batch, std::memory_order_seq_cst); }
  bool Close() noexcept;
  bool open() const noexcept { return batch_.load(std::memory_order_relaxed) != nullptr; }

  // For every thread.
  void Bar() noexcept { barred_.store(true, std::memory_order_relaxed); }
  bool barred() const noexcept { return barred_.load(std::memory_order_relaxed); }

  // For the thread that ends the steps: what the ranges of the step that begins may cost, in ns. The first may cost
  // more.
  void Allow(uint64_t ns) noexcept {
    allowed_ns_.store(static_cast<int64_t>(ns), std::memory_order_relaxed);
    first_.store(true, std::memory_order_relaxed);
  }
  // What all ranges so far were expected to cost.
  uint64_t spent_ns() const noexcept { return spent_ns_.load(std::memory_order_relaxed); }

  // A launch of `key` begins and ends on the calling thread. `wanted`: it may have a range, if its key is wanted.
  void Enter(uint32_t key, uint32_t graph, bool wanted) noexcept {
    if (open()) EnterOpen(key, graph, wanted);
  }
  static void Exit(bool failed) noexcept;

 private:
  void EnterOpen(uint32_t key, uint32_t graph, bool wanted) noexcept;
  void OpenRange(RangeBatch* batch, RangeBatch::Wanted wanted, uint32_t graph) noexcept;

  std::atomic<RangeBatch*> batch_{nullptr};
  std::atomic<int64_t> allowed_ns_{0};
  std::atomic<bool> first_{true};  // of the step
  std::atomic<uint64_t> spent_ns_{0};
  std::atomic<bool> barred_{false};
  std::atomic<int32_t> inside_{0};  // launches that have come in and not gone out
  std::atomic<bool> range_open_{false};
  std::atomic<bool> spoiled_{false};  // another thread has launched into the range that is open
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_RANGE_GATE_H_
