// File: rings.h
//
// Rings are the ways from the recording threads to the writer, one a thread. The recorder's hot path asks for the
// calling thread's ring, which is one thread-local read.
#ifndef RFINJECT_COLLECTOR_RECORD_RINGS_H_
#define RFINJECT_COLLECTOR_RECORD_RINGS_H_

#include <atomic>
#include <cstdint>

#include "collector/record/launch_ring.h"

namespace rfinject {

struct RecorderState;
class Rings;

// The calling thread's ring. Trivial and constinit, so that it is read without a call; initial-exec, so that reading
// it is one instruction even in a library that was opened at run time (24 of the 1664 bytes that glibc keeps for
// that).
struct ThreadRing {
  const Rings* owner;
  LaunchRing* ring;
  bool exited;  // the thread's ring was given back for good
};
[[gnu::tls_model("initial-exec")]] extern constinit thread_local ThreadRing t_ring;

class Rings {
 public:
  // --- For recording threads. Whether Acquire has given a ring to this thread, and that ring.
  bool HasThread() const noexcept { return t_ring.owner == this; }
  static LaunchRing* RingOfThread() noexcept { return t_ring.ring; }
  // Gives a ring to this thread. Returns null if memory ran out or the thread has ended (ThreadEnded).
  LaunchRing* Acquire() noexcept;
  // Whether the calling thread runs its last destructors, and has given its ring back.
  static bool ThreadEnded() noexcept { return t_ring.exited; }
  // Counts a launch of a thread that got no ring.
  void CountRingless() noexcept { ringless_drops_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t TakeRinglessDrops() noexcept { return ringless_drops_.exchange(0, std::memory_order_relaxed); }

  // --- For the writer or, before there is one, the thread that activates the recorder.
  // Moves what has ended into state->trace. With `last` nothing more will end, and everything is taken. Returns false
  // if the state's lock could not be had.
  bool Drain(RecorderState* state, bool last) noexcept { return Drain(state, Wanted::kAll, last); }
  // Does the same, but forgets the launches that belong to no layer and no phase.
  void DrainModelOnly(RecorderState* state) noexcept {
    (void)Drain(state, Wanted::kOfAModelOrPhase, false);
    (void)TakeRinglessDrops();
  }

  // Forgets what the rings hold. Called while nobody records and there is no writer.
  void Discard() noexcept;

  // Lets go of the parent's rings, whose threads go on using them in the parent.
  void ResetInForkedChild() noexcept;

 private:
  enum class Wanted : uint8_t { kAll, kOfAModelOrPhase };
  bool Drain(RecorderState* state, Wanted wanted, bool last) noexcept;
  static bool DrainSome(RecorderState* state, LaunchRing* ring, Wanted wanted, bool last) noexcept;

  // The newest ring. A thread that records for the first time puts its own before it (release), and the writer and
  // other such threads acquire it, and so see the ring's fields.
  std::atomic<LaunchRing*> first_{nullptr};
  // Recording threads add, the writer takes. Relaxed: each drop is counted once, in whichever frame.
  std::atomic<uint64_t> ringless_drops_{0};
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_RECORD_RINGS_H_
