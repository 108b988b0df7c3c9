// File: launch_ring.h
//
// LaunchRing is the way from a recording thread to the writer: a ring with one producer and one consumer. A record
// takes as many 16-byte units as it has samples, and four more. A thread that ends leaves its ring to the next thread
// that begins.
#ifndef RFINJECT_COLLECTOR_RECORD_LAUNCH_RING_H_
#define RFINJECT_COLLECTOR_RECORD_LAUNCH_RING_H_

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "collector/recorder.h"

namespace rfinject {

// A finished step as it travels through a ring, in the place of a LaunchRecord.
struct alignas(16) StepRecord {
  uint64_t index = 0;
  int64_t start_unix_ns = 0;
  uint64_t duration_ns = 0;
  uint64_t samples = 0;
  bool measured = false;
  uint32_t armed_group = 0;   // 0: no counters were armed
  uint64_t memory_bytes = 0;  // of the device, in use at the end; 0: unknown
  uint64_t memory_peak_bytes = 0;
  uint32_t calls = 0, kind = 0, optimizer = 0, watched = 0;  // as in Step
  uint64_t data_wait_ns = 0, gpu_wait_ns = 0, gpu_busy_ns = 0;
};

// Where a program is: in which step, and in which batch of validation (from 1; 0: none was begun). Launches of
// training belong to the step, those of validation to the batch.
struct alignas(16) RingPosition {
  uint64_t step = 0;
  uint64_t batch = 0;
  friend bool operator==(const RingPosition&, const RingPosition&) = default;
};

class LaunchRing {
 public:
  struct alignas(16) Unit {
    unsigned char bytes[16];
  };
  // The ring has 2 MiB, which is about 18 000 launches with three samples. So much fits before Activate; afterwards
  // the producer wakes the writer when half is taken. The memory is mapped, not touched, until it is used.
  static constexpr uint64_t kUnits = uint64_t{1} << 17;

  // Returns null when memory ran out. A ring is never freed.
  static LaunchRing* Create() noexcept;

  // --- For a thread that wants to become the producer.
  bool TryAcquire() noexcept {
    bool expected = false;
    // Acquire pairs with Release's release, so that this thread sees the former producer's fields.
    return !owned_.load(std::memory_order_relaxed) &&
           owned_.compare_exchange_strong(expected, true, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void Release() noexcept { owned_.store(false, std::memory_order_release); }

  // --- For the producer.
  enum class PushResult : uint8_t {
    kOk,
    kHalfFull,  // pushed; half or more of the ring is taken and a quarter mark was passed: the caller wakes the
                // consumer
    kDropped,   // no room, or called from a signal handler that interrupted a push
  };
  // Tells that what is pushed from now on was launched at `position`. A new position puts a mark into the ring;
  // returns false when there was no room for that.
  bool MoveTo(const RingPosition& position) noexcept {
    if (position == position_) [[likely]] {
      return true;
    }
    return PushMark(position);
  }
  // Pushes a launch; what it drops is counted in drops().
  PushResult Push(const LaunchRecord& record) noexcept {
    if (record.sample_count > kMaxSamplesPerRecord) [[unlikely]] {
      LaunchRecord clamped = record;
      clamped.sample_count = kMaxSamplesPerRecord;
      return Push(clamped);
    }
    const PushResult result = PushRecord(record, kHeaderUnits + record.sample_count);
    if (result == PushResult::kDropped) CountDrop();
    return result;
  }
  // Pushes a launch without samples. Nearly all are; the identity is copied to where it is read.
  PushResult Push(const LaunchIdentity& identity, uint32_t launches) noexcept {
    const PushResult result = PushUnits(kHeaderUnits, [&](uint64_t at) {
      const uint64_t first = at & (kUnits - 1);
      if (first + kHeaderUnits > kUnits) [[unlikely]] {
        LaunchRecord record;
        record.identity = identity;
        record.launches = launches;
        return CopyIn(at, record, kHeaderUnits);
      }
      unsigned char* const to = units_[first].bytes;
      const uint64_t counts = launches;  // and no samples
      std::memcpy(to, &identity, sizeof identity);
      std::memcpy(to + sizeof identity, &counts, sizeof counts);
    });
    if (result == PushResult::kDropped) CountDrop();
    return result;
  }
  // Pushes a step; if it finds no room, the caller must keep it elsewhere.
  PushResult Push(const StepRecord& step) noexcept;

  // Whether three quarters of the ring or more are taken.
  bool MostIsTaken() const noexcept {
    return head_.load(std::memory_order_relaxed) - tail_.load(std::memory_order_relaxed) >= kUnits / 4 * 3;
  }

  // Counts a launch that found no room for its mark.
  void CountDrop() noexcept {
    // There is one writer, so no read-modify-write instruction is needed.
    drops_.store(drops_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  // --- For the consumer. Calls on_launch(const LaunchRecord&, const RingPosition&) and on_step(const StepRecord&)
  // for what is there, up to about `max_units` and to a mark of a position for which may_enter(const RingPosition&,
  // bool half_full) returns false; `half_full` says that half of the ring or more is taken by that position and what
  // follows. Returns true if something is left that may be had now.
  template <typename OnLaunch, typename OnStep, typename MayEnter>
  bool Drain(uint64_t max_units, OnLaunch on_launch, OnStep on_step, MayEnter may_enter) noexcept {
    const uint64_t head = head_.load(std::memory_order_acquire);
    const uint64_t begin = tail_.load(std::memory_order_relaxed);
    uint64_t tail = begin;
    while (tail != head && tail - begin < max_units) {
      LaunchRecord record;
      CopyOut(tail, &record, kHeaderUnits);
      if (record.sample_count == kStepMark) {
        StepRecord step;
        CopyOut(tail + kHeaderUnits, &step, kStepUnits);
        on_step(step);
        tail += kHeaderUnits + kStepUnits;
        continue;
      }
      if (record.sample_count == kPositionMark) {
        RingPosition position;
        CopyOut(tail + kHeaderUnits, &position, kPositionUnits);
        if (!may_enter(position, head - tail >= kUnits / 2)) {
          tail_.store(tail, std::memory_order_release);
          return false;
        }
        drained_to_ = position;
        tail += kHeaderUnits + kPositionUnits;
        continue;
      }
      CopyOut(tail + kHeaderUnits, record.samples.data(), record.sample_count);
      on_launch(record, drained_to_);
      tail += kHeaderUnits + record.sample_count;
    }
    tail_.store(tail, std::memory_order_release);
    return tail != head;
  }
  // Launches that were dropped since the ring was made.
  uint64_t drops() const noexcept { return drops_.load(std::memory_order_relaxed); }

  LaunchRing* next = nullptr;   // in the recorder's list; written before the ring is published
  uint64_t drops_reported = 0;  // the consumer's note

 private:
  static constexpr size_t kHeaderUnits = 4;
  static constexpr size_t kStepUnits = 6;
  static constexpr size_t kPositionUnits = 1;
  static constexpr size_t kMaxUnits = kHeaderUnits + kMaxSamplesPerRecord;
  static constexpr uint32_t kStepMark = UINT32_MAX;
  static constexpr uint32_t kPositionMark = UINT32_MAX - 1;
  static_assert(sizeof(Unit) == sizeof(Sample));
  static_assert(offsetof(LaunchRecord, samples) == kHeaderUnits * sizeof(Unit));
  static_assert(offsetof(LaunchRecord, launches) == sizeof(LaunchIdentity) &&
                offsetof(LaunchRecord, sample_count) == sizeof(LaunchIdentity) + sizeof(uint32_t) &&
                std::endian::native == std::endian::little);
  static_assert(sizeof(LaunchRecord) >= kMaxUnits * sizeof(Unit) && kHeaderUnits + kStepUnits <= kMaxUnits);
  static_assert(sizeof(StepRecord) == kStepUnits * sizeof(Unit));
  static_assert(sizeof(RingPosition) == kPositionUnits * sizeof(Unit));

  bool PushMark(const RingPosition& position) noexcept;
  // Pushes the first `count` units of `record`. Not inlined: it is long, and has several callers.
  [[gnu::noinline]] PushResult PushRecord(const LaunchRecord& record, size_t count) noexcept {
    return PushUnits(count, [&](uint64_t at) { CopyIn(at, record, count); });
  }
  // Pushes `count` units, at most kMaxUnits, which `copy(uint64_t at)` copies to their place.
  template <typename Copy>
  PushResult PushUnits(size_t count, Copy copy) noexcept {
    if (pushing_) return PushResult::kDropped;
    pushing_ = true;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const uint64_t head = head_.load(std::memory_order_relaxed);
    PushResult result = PushResult::kOk;
    if (head + kMaxUnits - cached_tail_ > kUnits) {
      cached_tail_ = tail_.load(std::memory_order_acquire);
      if (head + count - cached_tail_ > kUnits) result = PushResult::kDropped;
    }
    if (result == PushResult::kOk) {
      copy(head);
      head_.store(head + count, std::memory_order_release);
      // The reader has had the next place in its cache, and a processor's own is smaller than the ring.
      __builtin_prefetch(&units_[(head + count) & (kUnits - 1)], 1);
      if (((head ^ (head + count)) & ~(kUnits / 4 - 1)) != 0) {
        cached_tail_ = tail_.load(std::memory_order_acquire);
        if (head + count - cached_tail_ >= kUnits / 2) result = PushResult::kHalfFull;
      }
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    pushing_ = false;
    return result;
  }
  void CopyIn(uint64_t at, const LaunchRecord& record, size_t count) noexcept {
    const void* const data = &record;
    const uint64_t first = at & (kUnits - 1);
    const uint64_t until_end = kUnits - first;
    if (count <= until_end) {
      std::memcpy(&units_[first], data, count * sizeof(Unit));
      return;
    }
    std::memcpy(&units_[first], data, until_end * sizeof(Unit));
    std::memcpy(&units_[0], static_cast<const Unit*>(data) + until_end, (count - until_end) * sizeof(Unit));
  }
  void CopyOut(uint64_t at, void* data, size_t count) const noexcept {
    const uint64_t first = at & (kUnits - 1);
    const uint64_t until_end = kUnits - first;
    if (count <= until_end) {
      std::memcpy(data, &units_[first], count * sizeof(Unit));
      return;
    }
    std::memcpy(data, &units_[first], until_end * sizeof(Unit));
    std::memcpy(static_cast<Unit*>(data) + until_end, &units_[0], (count - until_end) * sizeof(Unit));
  }

  LaunchRing() = default;

  std::atomic<bool> owned_{true};
  // The producer's cache line.
  alignas(64) std::atomic<uint64_t> head_{0};
  uint64_t cached_tail_ = 0;
  std::atomic<uint64_t> drops_{0};
  bool pushing_ = false;
  RingPosition position_;
  // The consumer's.
  alignas(64) std::atomic<uint64_t> tail_{0};
  RingPosition drained_to_;
  alignas(64) Unit units_[kUnits];
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_RECORD_LAUNCH_RING_H_
