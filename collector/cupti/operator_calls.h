// File: operator_calls.h
//
// OperatorCalls finds out what launches compute. In a few steps the injector hands over every operator with its
// operands, as it does for an estimate, and launch callbacks note what the operator launches; so a launch key gets
// the name, shapes, FLOP and bytes of the calls that it is part of. All other steps run without any of this.
//
// A step is observed where keys have come that no operator is known of: the second and third step of a program,
// mostly, and what later brings new shapes. At most one step in 64 is, after the first four.
//
// Launches of one key may do different work, as the additions of one layer over tensors of two shapes that take the
// same grid. Where two observed steps agree on which launch of the step does what, the key is split.
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
  // The arguments must outlive the object, which is never destroyed.
  // `which` is Settings::operators: other steps than those that are due are observed where it is "all".
  OperatorCalls(LaunchKeys& keys, Recorder& recorder, std::string_view which = {}) noexcept
      : keys_(keys), recorder_(recorder), all_(which == "all"), none_(which == "none") {}

  // --- For threads that launch.

  // Whether operators are observed now.
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

  // Takes a finished operator (Source::OnOp). Returns whether launches are its own: those that it made, and no
  // operator inside it.
  bool OnOp(const OpCall& call, bool computed_again) noexcept RFINJECT_EXCLUDES(lock_);
  void OnPolicy(const PolicyFacts& policy) noexcept;
  // Source::DefineCompiledWork.
  uint32_t DefineCompiled(const CompiledWork& work) noexcept;

  // --- For the thread that ends the steps.

  // The device is of this compute capability: its arithmetic has the units of that chip.
  void SetDevice(int cc_major, int cc_minor) noexcept;
  // `step` has ended: what was seen in it goes to the recorder. Decides whether the next one is observed.
  void OnStepEnd(uint64_t step) noexcept RFINJECT_EXCLUDES(lock_);
  void Stop() noexcept { observing_.store(false, std::memory_order_relaxed); }
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
    std::vector<LaunchKeys::WorkName> now, before;
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

  LaunchKeys& keys_;
  Recorder& recorder_;
  const bool all_, none_;
  std::atomic<bool> observing_{false};
  // Written by the thread that ends the steps or sees the program's policy, and read for each operator. Relaxed: each
  // is a value by itself.
  std::atomic<const Gpu*> gpu_{nullptr};
  std::atomic<bool> convolution_tf32_{estimate::PrecisionPolicy{}.convolution_tf32};
  std::atomic<bool> matmul_tf32_{estimate::PrecisionPolicy{}.matmul_tf32};

  estimate::CompiledKernels compiled_{recorder_};
  estimate::UnknownOperators unknown_{recorder_};

  Mutex lock_;
  std::unordered_map<uint64_t, Work> works_ RFINJECT_GUARDED_BY(lock_);  // by hash
  std::vector<bool> known_ RFINJECT_GUARDED_BY(lock_);                   // the keys that are in some work
  std::vector<Sequence> sequences_ RFINJECT_GUARDED_BY(lock_);           // by key
  std::atomic<uint32_t> known_count_{0};

  // Of the thread that ends the steps.
  uint64_t observed_ = 0;   // steps
  uint64_t next_ = 0;       // the step before which nothing is due where no key is new
  uint64_t gap_ = 1;        // steps until then
  uint32_t last_size_ = 0;  // of the keys, when the last observed step ended
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_OPERATOR_CALLS_H_
