// File: policy.h
//
// Policy: what to collect in which step. Pure: it knows no CUPTI, no clock and no thread, so that ten thousand steps
// can be simulated in a test.
//
// When. A schedule that is a function of the step's number, the plan and the settings alone names the steps that MAY
// be armed: after a few warm-up steps one rotation through the groups, with unarmed steps between them to compare
// with (where the user has said how many steps there will be, as many rotations as an interval needs, in steps that
// are drawn from those: of a random sample the textbook's interval holds whatever the steps have in common with their
// neighbours. The draw is the same on all ranks, and in all runs, and so it is one of which that holds by itself:
// the report's interval is right for it, not only on the average over draws); then one step in `spacing`, which the
// budget fixes (1 %: one in 100). All ranks of a job compute the same schedule without talking, and arm nothing
// outside it. A rank that needs nothing more, or whose budget is used up, lets a slot pass; so the steps that are
// slow anywhere are never more than the schedule's. (Ranks that armed at different steps would each slow all others
// down, since they wait for one another in every step.)
//
// Whether. A launch key needs samples until its means are known: the interval of DRAM bytes and of time within
// `target` of the mean. Only keys that together hold `time_share` of GPU time count. When none needs more, no step is
// armed until a key appears that is new and turns out to be heavy.
//
// The budget. What an armed step costs is measured: its duration less the median of unarmed steps. Slots are thinned
// by powers of two until the average cost is within the budget (so that ranks whose measurements differ a little
// still arm nested sets of steps), and no slot is taken while the cost so far is above the budget's share of the time
// so far. The first rotation is taken before it is earned: a job shorter than (groups x spacing) steps pays more than
// the budget's share of it. That is the price of having any numbers at all for a short job.
//
// Stopping. Deciding after each sample whether it was enough favours samples that happen to lie close together, and
// the interval computed from them is then too narrow. So the decision uses the 99 % interval where the report will
// print the 95 % one, is taken at a few sample sizes only, and is followed by half as many samples again that had no
// say in it. The simulation in policy_test.cc holds the coverage of the reported interval, also for a single key,
// where nothing else prolongs the sampling.
#ifndef RFINJECT_COLLECTOR_ARMING_POLICY_H_
#define RFINJECT_COLLECTOR_ARMING_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collector/arming/interval.h"

namespace rfinject::arming {

enum class GroupRole : uint8_t {
  kHardware,  // has the base: each armed step is a sample of the bytes
  kOnce,      // what it counts does not vary between launches of a key: one sample a key (SASS metrics)
  kGuard,     // armed once in a run (sparsity)
};

struct Options {
  double overhead = 0.01;      // share of the time that profiling may cost
  uint64_t warm_up_steps = 8;  // autotuning and allocation make the first steps unlike the rest
  // The user asked for this many steps (0: all). Then as many samples as an interval needs come first, in steps drawn
  // from those.
  uint64_t window_steps = 0;
  double target = 0.03;  // half the interval over the mean
  // What a report prints an interval for (docs/INTERVALS.md): samples that are close together count as one.
  uint32_t min_samples = 8;
  uint32_t max_samples = 30;
  double time_share = 0.99;
  bool has_times = true;               // false: kernel times cannot be had, so every key counts as heavy
  uint64_t stall_ns = 10'000'000'000;  // an armed step without any launch for this long is stuck
};

enum class Action : uint8_t { kNone, kTimes, kCounters };

struct Decision {
  Action action = Action::kNone;
  uint32_t group = 0;  // index into the roles given to the constructor; for kCounters
  friend bool operator==(const Decision&, const Decision&) = default;
};

// The schedule: pure, equal on all ranks. `level` thins slots after the first rotation: 2^level times fewer.
class Schedule {
 public:
  Schedule(const Options& options, const std::vector<GroupRole>& roles);

  Decision At(uint64_t step, uint32_t level) const noexcept;

  uint64_t spacing() const noexcept { return spacing_; }
  // Steps [first, end) of the first rotation.
  uint64_t burst_begin() const noexcept { return burst_begin_; }
  uint64_t burst_end() const noexcept { return burst_begin_ + burst_span_; }
  // Armed steps in it.
  uint64_t burst_armed() const noexcept { return burst_armed_; }

 private:
  uint64_t spacing_;
  uint64_t burst_begin_;
  uint64_t burst_armed_ = 0;
  bool has_times_ = true;
  struct Slot {
    uint64_t offset = 0;  // from burst_begin_
    Decision decision;
  };
  void Draw(uint64_t span);
  std::vector<Slot> DrawOnce(uint64_t seed, uint64_t span) const;

  std::vector<Slot> burst_;          // ascending
  std::vector<bool> samples_bytes_;  // by group
  uint64_t burst_span_ = 0;
  std::vector<uint32_t> rotation_;  // an odd number, so that every level visits every group
};

class Policy {
 public:
  Policy(const Options& options, std::vector<GroupRole> roles);

  // So many steps run until every group and the times had their first turn.
  uint64_t first_rotation_steps() const noexcept { return schedule_.burst_end(); }

  // What to do in `step`, asked once before it runs. Steps count from 0 and only forward.
  Decision Begin(uint64_t step) noexcept;

  // The decision that Begin gave could not be carried out: the step is not armed, and cannot be stuck.
  void Cancel() noexcept { step_is_armed_ = false; }

  // `step` ran under `decision` and took `duration_ns` of wall time. `valid`: its samples could be used; they must
  // have been given before.
  void End(uint64_t step, const Decision& decision, uint64_t duration_ns, bool valid) noexcept;

  // A launch key was seen for the first time. Keys are small numbers, given out in order.
  void OnNewKey(uint32_t key) noexcept;
  // What the current step measured for a key, as means over its launches in the step: launches of one step are not
  // independent, steps are.
  void OnBytes(uint32_t key, double bytes) noexcept;
  void OnTime(uint32_t key, double ns, uint32_t launches) noexcept;
  void OnCounted(uint32_t key, uint32_t group) noexcept;

  // `progress` is any count that grows while the program launches work. True when the armed step is stuck: the caller
  // then disarms; nothing is armed any more in this process.
  bool CheckStall(uint64_t now_ns, uint64_t progress) noexcept;
  void DisarmForGood() noexcept { disarmed_ = true; }

  bool converged() const noexcept { return converged_; }
  uint64_t armed_steps() const noexcept { return armed_steps_; }
  uint64_t timed_steps() const noexcept { return timed_steps_; }
  uint32_t level() const noexcept { return level_; }
  // Cost so far over the time so far.
  double measured_overhead() const noexcept;

  struct KeyState {
    Moments bytes;
    Moments time;  // ns
    double time_total = 0;
    std::vector<uint16_t> counted;  // by group
    uint16_t missed_times = 0;      // timed steps without the key, while it had no sample at all
    uint16_t missed_counters = 0;   // armed steps without the key
    bool seen_in_step = false;
    bool heavy = true;
    uint32_t bytes_until = 0, time_until = 0;  // samples wanted, once the look was good; 0: not yet
    bool bytes_done = false;
    bool time_done = false;
  };
  const KeyState& key(uint32_t key) const { return keys_[key]; }
  size_t key_count() const noexcept { return keys_.size(); }

 private:
  KeyState* Find(uint32_t key) noexcept;
  bool Done(const Moments& moments) const noexcept;
  bool NeedsTimes() const noexcept;
  bool Needs(uint32_t group) const noexcept;
  void Review() noexcept;
  void UpdateLevel() noexcept;
  uint64_t MedianUnarmed() const noexcept;

  Options options_;
  std::vector<GroupRole> roles_;
  Schedule schedule_;
  std::vector<KeyState> keys_;
  std::vector<bool> guarded_;  // by group: armed with success

  bool converged_ = false;
  bool disarmed_ = false;
  uint32_t level_ = 0;
  uint64_t armed_steps_ = 0, timed_steps_ = 0;

  // Cost.
  static constexpr size_t kRecent = 64;
  uint64_t recent_unarmed_[kRecent] = {};
  uint64_t unarmed_steps_ = 0;
  double elapsed_ns_ = 0;
  double extra_ns_ = 0;
  Moments counters_cost_, times_cost_;  // ns a step

  // Stall.
  bool step_is_armed_ = false;
  bool progress_known_ = false;
  uint64_t last_progress_ = 0;
  uint64_t last_progress_ns_ = 0;
};

}  // namespace rfinject::arming

#endif  // RFINJECT_COLLECTOR_ARMING_POLICY_H_
