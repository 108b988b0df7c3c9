// File: operator_calls.h
//
// OperatorCalls finds out what launches compute. In a few steps the injector hands over operators with their
// operands, as it does for an estimate, and launch callbacks note what the operator launches; so a launch key gets
// the name, shapes, FLOP and bytes of the calls that it is part of. All other steps run without any of this.
//
// A step whose operators are all heard takes the host a third longer. So a sweep goes over some 25 steps and
// hears a slice of each: the second one goes on, by the count of the step's launches, where the first one stopped. A
// program whose steps differ is heard in part. A short run (`rfinject --steps`) is made for measuring: its sweeps are
// whole steps.
//
// A sweep begins where keys have come that no operator is known of: behind the first step of a program, mostly, and
// where new shapes come later. At most one begins in 64 steps, after the first four.
//
// Launches of one key may do different work, as the additions of one layer over tensors of two shapes that take the
// same grid. Where two sweeps agree on which launch of the step does what, the key is split.
#ifndef RFINJECT_COLLECTOR_CUPTI_OPERATOR_CALLS_H_
#define RFINJECT_COLLECTOR_CUPTI_OPERATOR_CALLS_H_

#include <atomic>
#include <compare>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collector/compiled_code.h"
#include "collector/cupti/launch_keys.h"
#include "collector/estimate/compiled_work.h"
#include "collector/estimate/unknown_operators.h"
#include "collector/recorder.h"
#include "collector/sync.h"
#include "gpus/gpus.h"
#include "operators/op_call.h"
#include "operators/precision.h"

namespace rfinject::cupti {

class OperatorCalls {
 public:
  // The arguments must outlive the object, which is never destroyed. `which` is Settings::operators; `short_run` says
  // that sweeps are whole steps where it is "auto".
  OperatorCalls(LaunchKeys& keys, Recorder& recorder, std::string_view which = {}, bool short_run = false) noexcept
      : keys_(keys),
        recorder_(recorder),
        always_(which == "all" || which == "slices"),
        none_(which == "none"),
        whole_(which == "all" || (which != "slices" && short_run)) {}

  // --- For threads that launch.

  // Whether the step belongs to a sweep.
  bool observing() const noexcept { return observing_.load(std::memory_order_relaxed); }
  // A launch of `key` begins on the calling thread. In CUPTI's callback. `compiled` is what torch.compile's code says
  // of it (CompiledPlace::work); 0: it is an operator's, or not known.
  void NoteLaunch(uint32_t key, const LaunchIdentity& identity, uint32_t compiled) noexcept {
    if (observing()) [[unlikely]]
      NoteObserved(key, identity, compiled);
  }
  // How many launches the calling thread has made while operators were observed.
  static const uint64_t* LaunchesOfThread() noexcept;

  // --- For threads that run operators.

  // Source::wants_ops_now and Source::WantsOpsBehind.
  bool HearsStepFromItsBeginning() const noexcept { return slice_.from_beginning.load(std::memory_order_relaxed); }
  bool GoesOn() noexcept;
  // Takes a finished operator (Source::OnOp). Returns whether launches are its own: those that it made, and no
  // operator inside it.
  bool OnOp(const OpCall& call, bool computed_again) noexcept RFINJECT_EXCLUDES(lock_);
  void OnPolicy(const PolicyFacts& policy) noexcept;
  // Source::DefineCompiledWork.
  uint32_t DefineCompiled(const CompiledWork& work) noexcept;

  // --- For the thread that ends the steps.

  // The device is of this compute capability: its arithmetic has the units of that chip.
  void SetDevice(int cc_major, int cc_minor) noexcept;
  // `step` has ended. If a sweep has, what was seen in it goes to the recorder. Decides what is heard of the next
  // one.
  void OnStepEnd(uint64_t step) noexcept RFINJECT_EXCLUDES(lock_);
  void Stop() noexcept {
    observing_.store(false, std::memory_order_relaxed);
    slice_.from_beginning.store(false, std::memory_order_relaxed);
  }
  void ResetLockInForkedChild() noexcept {
    Stop();
    lock_.ResetInForkedChild();
  }

 private:
  struct Work {
    OperatorWork told;  // without the identities of what it launches
    std::vector<uint32_t> keys;
    uint64_t calls = 0;  // of all observed steps
    LaunchKeys::WorkName name() const { return {told.work.op, told.work.signature}; }
  };
  // What the launches of a key do, in the order in which they begin in a step; no name: no operator has it.
  struct Sequence {
    std::vector<LaunchKeys::WorkName> now, before;  // of this sweep and the one before
    uint32_t launched = 0;                          // in this step
    bool varies = false;                            // steps of this sweep had more or fewer than others
    bool split = false;
  };

  void NoteObserved(uint32_t key, const LaunchIdentity& identity, uint32_t compiled) noexcept
      RFINJECT_EXCLUDES(lock_);
  // Whether the launch is of a compiled kernel whose work is known; then it is told as an operator of its own.
  bool AddCompiled(const LaunchIdentity& identity, uint32_t key, uint32_t place, uint32_t compiled)
      RFINJECT_REQUIRES(lock_);
  estimate::PrecisionPolicy policy() const noexcept {
    return {convolution_tf32_.load(std::memory_order_relaxed), matmul_tf32_.load(std::memory_order_relaxed)};
  }
  struct Launch {
    uint32_t key = 0, place = 0;  // among the key's launches of the step
    friend auto operator<=>(const Launch&, const Launch&) = default;
  };
  // Adds a call of the work with that hash, which `make` makes if it is new. `launched` ascends.
  template <typename Make>
  void Add(uint64_t hash, std::span<const Launch> launched, const Make& make) RFINJECT_REQUIRES(lock_);
  void Describe(const OpCall& call, const struct CallCost& cost, trace::OperatorWork* told);
  void SplitKeys() RFINJECT_REQUIRES(lock_);
  void Split(uint32_t key, const Sequence& sequence) RFINJECT_REQUIRES(lock_);
  void Tell() RFINJECT_REQUIRES(lock_);
  void TellOne(const Work& work, uint64_t calls) RFINJECT_REQUIRES(lock_);
  void Know(uint32_t key) RFINJECT_REQUIRES(lock_);
  bool IsDue(uint64_t step) const noexcept;
  // Whether the step that ends was the last one of its sweep; `launches` are its own.
  bool EndsSweep(uint64_t launches) noexcept;
  void EndSlice(bool ends_sweep) noexcept RFINJECT_EXCLUDES(lock_);
  void EndSweep(uint64_t step) noexcept;

  LaunchKeys& keys_;
  Recorder& recorder_;
  const bool always_, none_, whole_;
  std::atomic<bool> observing_{false};
  // What of this step is heard, in launches since the step began.
  struct Slice {
    std::atomic<bool> from_beginning{false};
    std::atomic<uint64_t> launches{0};
    std::atomic<uint64_t> first{0};    // it begins behind this one; 0: behind none
    std::atomic<uint64_t> least{0};    // it may end behind this one
    std::atomic<uint64_t> stopped{0};  // it has ended behind this one; 0: it has not
  } slice_;
  // Written by the thread that ends the steps or sees the program's policy, and read for each operator. Relaxed: each
  // is a value by itself.
  std::atomic<const Gpu*> gpu_{nullptr};
  std::atomic<bool> convolution_tf32_{estimate::PrecisionPolicy{}.convolution_tf32};
  std::atomic<bool> matmul_tf32_{estimate::PrecisionPolicy{}.matmul_tf32};

  estimate::CompiledKernels compiled_{recorder_};
  estimate::UnknownOperators unknown_{recorder_};

  Mutex lock_;
  std::unordered_map<uint64_t, Work> works_ RFINJECT_GUARDED_BY(lock_);  // by hash
  std::vector<Work*> heard_ RFINJECT_GUARDED_BY(lock_);                  // of works_, since they were told
  std::vector<bool> known_ RFINJECT_GUARDED_BY(lock_);                   // the keys that are in some work
  std::vector<Sequence> sequences_ RFINJECT_GUARDED_BY(lock_);           // by key
  std::atomic<uint32_t> known_count_{0};

  // Of the thread that ends the steps.
  uint64_t observed_ = 0;      // sweeps
  uint64_t next_ = 0;          // the step before which nothing is due where no key is new
  uint64_t gap_ = 1;           // steps until then
  uint64_t of_last_step_ = 0;  // launches; 0: not known
  uint32_t last_size_ = 0;     // of the keys, when the last sweep ended
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_OPERATOR_CALLS_H_
