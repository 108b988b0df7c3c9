// File: range_counter.h
//
// RangeCounter counts what does not vary between launches of a key, FLOP above all, on one device: it keeps a session
// of the profiler's open while keys lack something, puts ranges around single launches through the context's gate,
// and reads them in batches. Groups of counters change seldom, when all known keys have been counted by one.
//
// All calls come from our own thread, with the context current, and may take 0.2 s; the program launches meanwhile.
#ifndef RFINJECT_COLLECTOR_CUPTI_RANGE_COUNTER_H_
#define RFINJECT_COLLECTOR_CUPTI_RANGE_COUNTER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collector/arming/wanted_counts.h"
#include "collector/cupti/captured_graphs.h"
#include "collector/cupti/counted_context.h"
#include "collector/cupti/counter_backend.h"
#include "collector/cupti/counter_samples.h"
#include "collector/cupti/launch_keys.h"
#include "collector/recorder.h"

namespace rfinject::cupti {

class RangeCounter {
 public:
  // `backend` has been opened, and is of the context.
  RangeCounter(CountedContext& context, std::unique_ptr<CounterBackend> backend, LaunchKeys& keys,
               const CapturedGraphs& graphs, Recorder& recorder);

  const CounterBackend& backend() const { return *backend_; }
  // Tells that `key` was launched, and how long its kernel runs (0: not known). Keys of other devices are left out,
  // and what no range may count.
  void AddKey(uint32_t key, uint64_t ns);
  // Tells that launches of `key` were seen to use no tensor core: what is on the tensor path is 0, and not counted.
  void SetNoTensor(uint32_t key);
  // Tells that every key there is may be launched, where it is not known which are.
  void AddNewKeys();
  void BeginCheck() {
    checks_ = true;
    wanted_.BeginCheck();
  }

  // Whether FLOP of some key are not known yet.
  bool lacks_flop() const;
  // Whether nothing is lacking, or nothing can be counted any more.
  bool idle() const { return lost_ || (batch_ == nullptr && wanted_.Complete()); }
  bool session_open() const { return backend_->started(); }
  bool counting() const { return batch_ != nullptr; }
  // The group that is counted, or will be next, and what a range of it costs at least, in ns.
  size_t group() const { return group_; }
  uint64_t range_ns() const { return IsSass(group_) ? kSassRangeNs : kRangeNs; }

  // Begins a batch of ranges. It may have to open a session for the next group that lacks something; `opens` says
  // whether the next call of Begin will. Returns a CUptiResult.
  bool opens() const;
  int Begin();
  // Whether every range of the batch was used, or is not wanted any more.
  bool BatchIsFull() const { return batch_ != nullptr && batch_->full(); }
  size_t used() const { return batch_ != nullptr ? batch_->used() : 0; }
  // Reads the batch. `waited`: nothing that was wanted was launched for a while. Returns a CUptiResult.
  int Finish(bool waited);
  // Ends the session, if one is open. Returns a CUptiResult.
  int Close();
  // For any thread that holds what Begin, Finish and Close are called under: the context goes away, so what can be
  // ended is. What was counted is our thread's to free.
  void Abandon();
  // Nothing is counted any more. What a launch may still be in is never freed.
  void Lose();
  bool lost() const { return lost_; }
  // Whether a batch read nothing but zeros where that cannot be, since the last call: it was not taken.
  bool TakeZeros() { return std::exchange(zeros_, false); }
  // Whether sparse tensor instructions were counted since the last call.
  bool TakeSparse() { return std::exchange(sparse_, false); }

 private:
  // What was seen of ranges around tensor counters and around patched code (h200), which makes a kernel six times as
  // long (h100).
  static constexpr uint64_t kRangeNs = 1'400'000, kSassRangeNs = 2'500'000, kSassTimes = 6;
  uint32_t CostOf(uint32_t key) const;
  bool IsTensor(size_t group) const;
  void SetZero(uint32_t key, size_t group);
  bool IsSass(size_t group) const { return backend_->groups()[group].kind == GroupKind::kSass; }
  bool CountsFlop(size_t group) const;
  // Whether what a batch counted, row by row, is nothing but zeros where it cannot be.
  bool CannotBe(const RangeBatch& batch, const std::vector<double>& values) const;
  void NoteIfCounted(uint32_t key);
  size_t NextGroup() const;
  void AddGraph(const RangeBatch::Range& range, std::span<const double> row);

  CountedContext& context_;
  std::unique_ptr<CounterBackend> backend_;
  LaunchKeys& keys_;
  const CapturedGraphs& graphs_;
  Recorder& recorder_;
  CounterSamples samples_;
  arming::WantedCounts wanted_;
  std::unique_ptr<RangeBatch> batch_;
  std::vector<uint32_t> batch_keys_;
  std::unordered_map<uint32_t, uint64_t> kernel_ns_;  // by key
  size_t group_ = 0;
  size_t room_ = 0;        // ranges of the session
  uint32_t new_keys_ = 0;  // the first that AddNewKeys has not added
  bool stuck_ = false;     // the last batch counted nothing: another group has its turn
  std::atomic<bool> lost_{false};
  bool sparse_ = false, read_ = false, checks_ = false, zeros_ = false;
  bool counts_bytes_ = false, saw_bytes_ = false;  // in ranges; `bytes_group_` has them
  size_t bytes_group_ = 0;
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_RANGE_COUNTER_H_
