// File: progress.h
//
// Progress counts how far the program has come: its training steps, and the batches that it validates.
#ifndef RFINJECT_COLLECTOR_RECORD_PROGRESS_H_
#define RFINJECT_COLLECTOR_RECORD_PROGRESS_H_

#include <atomic>
#include <cstdint>

#include "collector/record/launch_ring.h"

namespace rfinject {

class Progress {
 public:
  // --- For the program's threads.
  uint64_t step() const noexcept { return step_.load(std::memory_order_relaxed); }
  // Where a launch that is recorded now belongs.
  RingPosition Position() const noexcept { return {step(), batches_.load(std::memory_order_relaxed)}; }
  // Begins the next step, and returns the index of the one that ends.
  uint64_t NextStep() noexcept { return step_.fetch_add(1, std::memory_order_acq_rel); }
  // Tells that the record of a step that ended lies in its ring.
  void StepIsInRing() noexcept { finished_steps_.fetch_add(1, std::memory_order_release); }
  // Begins a batch of validation, which ends the one before it.
  void BeginBatch(uint64_t samples) noexcept {
    ended_samples_.fetch_add(last_samples_.exchange(samples, std::memory_order_relaxed), std::memory_order_relaxed);
    if (samples > most_samples()) most_samples_.store(samples, std::memory_order_relaxed);
    batches_.fetch_add(1, std::memory_order_release);
  }

  // --- For the writer.
  uint64_t finished_steps() const noexcept { return finished_steps_.load(std::memory_order_acquire); }
  uint64_t batches() const noexcept { return batches_.load(std::memory_order_acquire); }
  // The most samples that a batch had so far.
  uint64_t most_samples() const noexcept { return most_samples_.load(std::memory_order_relaxed); }
  // Takes the samples of the batches that have ended since the last call; with `last`, also those of the batch that
  // was begun last.
  uint64_t TakeSamples(bool last) noexcept {
    const uint64_t samples = ended_samples_.exchange(0, std::memory_order_relaxed);
    return last ? samples + last_samples_.exchange(0, std::memory_order_relaxed) : samples;
  }

  void ResetInForkedChild() noexcept {
    step_.store(0, std::memory_order_relaxed);
    finished_steps_.store(0, std::memory_order_relaxed);
    batches_.store(0, std::memory_order_relaxed);
    ended_samples_.store(0, std::memory_order_relaxed);
    last_samples_.store(0, std::memory_order_relaxed);
    most_samples_.store(0, std::memory_order_relaxed);
  }

 private:
  // The step that runs. The thread that ends a step writes it, every recording thread reads it. Relaxed reads: the
  // coherence of this one word makes the window's edges exact (TraceRecorder::Record).
  std::atomic<uint64_t> step_{0};
  // The steps whose own records are in their rings. The thread that ends a step writes it; the writer acquires it,
  // and so finds these records, and the launches before them, in the rings.
  std::atomic<uint64_t> finished_steps_{0};
  // The batches that were begun; all but the last have ended. The thread that validates writes it. Recording threads
  // read it relaxed, as a part of their own position; the writer acquires it, and so finds the launches before it.
  std::atomic<uint64_t> batches_{0};
  // The samples of ended batches that the writer has not taken yet, and those of the last batch. The thread that
  // validates and the writer exchange them. Relaxed: each sample is counted once, in whichever frame.
  std::atomic<uint64_t> ended_samples_{0}, last_samples_{0};
  // The thread that validates writes it, the writer reads it. Relaxed: it is one number.
  std::atomic<uint64_t> most_samples_{0};
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_RECORD_PROGRESS_H_
