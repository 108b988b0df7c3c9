// File: policy.h
//
// Policy decides what is collected in which step. It is pure: it knows no CUPTI, no clock and no thread, so that a
// test can simulate ten thousand steps. It answers four questions.
//
// Which steps may be armed? A schedule says so, which is a function of the step's number, the plan and the settings
// alone. After a few warm-up steps comes one rotation through the groups, with unarmed steps between them to compare
// with; then one step in `spacing`, which the budget fixes (1 %: one in 100). All ranks of a job compute the same
// schedule without talking to each other, and arm nothing outside of it. A rank that needs nothing more, or whose
// budget is used up, lets a slot pass. So the steps that are slow anywhere are never more than the schedule's. (Ranks
// that armed in different steps would each slow all others down, since they wait for one another in every step.)
// Where the user has said how many steps there will be, there are as many rotations as an interval needs, in steps
// that are drawn at random: the textbook's interval is right for a random sample, whatever neighbouring steps have in
// common. The draw is the same on all ranks and in all runs. So it is chosen such that the interval is right for this
// one draw, and not only on the average over draws (window_coverage.h).
//
// Is a step that may be armed needed? A launch key needs samples until the intervals of its DRAM bytes and of its
// time are within `target` of the mean, and as many as the spread of the steps' durations asks for. Only keys that
// together hold `time_share` of GPU time count. When none needs more, no counter is armed until a key appears that is
// new and turns out to be heavy; times are taken now and then (Schedule::KeepsWatch).
//
// Is there budget left for it? What an armed step costs is measured: its duration less the median of unarmed steps.
// Slots are thinned by powers of two until the average cost is within the budget (so that ranks whose measurements
// differ a little still arm nested sets of steps), and no slot is taken while the cost so far is above the budget's
// share of the time so far. The first rotation is taken before it is earned: a job shorter than (groups x spacing)
// steps pays more than the budget's share of it. That is the price of having any numbers at all for a short job.
//
// When are there enough samples? Deciding that after each sample favours samples that happen to lie close together,
// and the interval computed from them is then too narrow. So the decision uses the 99 % interval where the report
// will print the 95 % one, is taken at a few sample sizes only, and is followed by half as many samples again that
// had no say in it. The simulation in policy_test.cc holds the coverage of the reported interval, also for a single
// key, where nothing else prolongs the sampling.
#ifndef RFINJECT_COLLECTOR_ARMING_POLICY_H_
#define RFINJECT_COLLECTOR_ARMING_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collector/arming/interval.h"

namespace rfinject::arming {

enum class GroupRole : uint8_t {
  kHardware,  // counts the base metrics, so each armed step samples the bytes
  kOnce,      // counts what is the same for all launches of a key, so one sample is enough (SASS metrics)
  kGuard,     // is armed once in a run, to see whether sparse tensor instructions run at all
};

struct Options {
  double overhead = 0.01;      // share of the time that profiling may cost
  uint64_t warm_up_steps = 8;  // autotuning and allocation make the first steps unlike the rest
  // The number of steps that the user asked for; 0: all. If given, as many samples as an interval needs come first,
  // in steps drawn from those.
  uint64_t window_steps = 0;
  double target = 0.03;  // half the interval over the mean
  // How many samples a report needs to print an interval (docs/method/INTERVALS.md), even if fewer lie close
  // together.
  uint32_t min_samples = 8;
  uint32_t max_samples = 30;
  double time_share = 0.99;
  bool has_times = true;               // false: kernel times cannot be had, so every key counts as heavy
  uint64_t seed = 20211102;            // of what is drawn; the same on all ranks
  uint64_t stall_ns = 10'000'000'000;  // an armed step that launches nothing for this long is stuck
};

enum class Action : uint8_t { kNone, kTimes, kCounters };

struct Decision {
  Action action = Action::kNone;
  uint32_t group = 0;  // index into the roles given to the constructor; for kCounters
  friend bool operator==(const Decision&, const Decision&) = default;
};

// Schedule says which steps may be armed. It is pure, and equal on all ranks. Where in a slot a step is armed, which
// slots are left when they are thinned, and the order of the groups in a rotation are drawn, so that no rhythm of the
// program (two optimizers in turn, every sixteenth step longer) meets the armed steps at one place only. The draw has
// a fixed seed: ranks arm the same steps, and two runs of a program can be compared step by step. After the first
// rotation `level` thins the slots: there are 2^level times fewer.
class Schedule {
 public:
  Schedule(const Options& options, const std::vector<GroupRole>& roles);

  Decision At(uint64_t step, uint32_t level) const noexcept;
  // Whether times are taken in the step's slot though no key needs them: in all of the first 32 slots and in 16 of
  // each later doubling. A program that waits for its host hides from the steps' durations that the GPU's clock
  // changes; a few times over all of the run show it.
  bool KeepsWatch(uint64_t step) const noexcept;

  uint64_t spacing() const noexcept { return spacing_; }
  // Steps [first, end) of the first rotation.
  uint64_t burst_begin() const noexcept { return burst_begin_; }
  uint64_t burst_end() const noexcept { return burst_begin_ + burst_span_; }
  // How many steps of the first rotation are armed.
  uint64_t burst_armed() const noexcept { return burst_armed_; }

 private:
  uint64_t seed_;
  uint64_t spacing_;
  uint64_t burst_begin_;
  uint64_t burst_armed_ = 0;
  bool has_times_ = true;
  struct Slot {
    uint64_t offset = 0;  // from burst_begin_
    Decision decision;
  };
  struct Offsets {
    uint64_t counters = 0, times = 0;
  };
  // Where in the slot its two armed steps lie.
  Offsets OffsetsIn(uint64_t slot) const noexcept;
  // Whether the slot is one of those that are left at that level.
  bool IsLeft(uint64_t slot, uint32_t level) const noexcept;
  // The group of a slot, whatever the level: all ranks have it there.
  uint32_t GroupOf(uint64_t slot) const noexcept;
  void Draw(uint64_t span);
  bool ReachesTheEnds(const std::vector<Slot>& slots, uint64_t span) const;
  std::vector<Slot> DrawOnce(uint64_t seed, uint64_t span) const;

  std::vector<Slot> burst_;          // ascending
  std::vector<bool> samples_bytes_;  // by group
  uint64_t burst_span_ = 0;
  uint32_t groups_ = 0;
};

class Policy {
 public:
  Policy(const Options& options, std::vector<GroupRole> roles);

  // The number of steps after which every group, and the times, have had their first turn.
  uint64_t first_rotation_steps() const noexcept { return schedule_.burst_end(); }

  // What to do in `step`, asked once before it runs. Steps count from 0 and only forward.
  Decision Begin(uint64_t step) noexcept;

  // Tells that the decision of Begin could not be carried out: the step is not armed, and cannot be stuck.
  void Cancel() noexcept { step_is_armed_ = false; }

  // `step` ran under `decision` and took `duration_ns` of wall time. `valid` says that its samples could be used;
  // OnBytes and OnTime must have been called with them before. Throws std::bad_alloc, as the next four do.
  void End(uint64_t step, const Decision& decision, uint64_t duration_ns, bool valid);

  // Tells that a launch key was seen for the first time. Keys are small numbers, given out in order.
  void OnNewKey(uint32_t key);
  // Tell what the current step measured for a key, as the mean over its launches in the step: launches of one step
  // are not independent, steps are.
  void OnBytes(uint32_t key, double bytes);
  void OnTime(uint32_t key, double ns, uint32_t launches);
  void OnCounted(uint32_t key, uint32_t group);

  // `progress` is any count that grows while the program launches work. Returns whether the armed step is stuck: the
  // caller then disarms it, and nothing is armed any more in this process.
  bool CheckStall(uint64_t now_ns, uint64_t progress) noexcept;

  // Whether nothing more is needed.
  bool converged() const noexcept;
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
  // Notes that the current step has the key.
  KeyState& Seen(uint32_t key);
  bool Done(const Moments& moments) const noexcept;
  bool IsGone(const KeyState& key) const noexcept;
  bool NeedsTimes() const noexcept;
  bool Needs(uint32_t group) const noexcept;
  void Review();
  void UpdateLevel() noexcept;
  uint64_t MedianUnarmed() const noexcept;

  Options options_;
  std::vector<GroupRole> roles_;
  Schedule schedule_;
  std::vector<KeyState> keys_;
  std::vector<bool> guarded_;  // by group: armed with success

  bool disarmed_ = false;
  uint32_t level_ = 0;
  uint64_t armed_steps_ = 0, timed_steps_ = 0;

  // What is known of the cost of an armed step.
  static constexpr size_t kRecent = 64;
  uint64_t recent_unarmed_[kRecent] = {};
  uint64_t unarmed_steps_ = 0;
  uint64_t median_unarmed_ = 0;  // ns; renewed now and then
  Moments unarmed_;              // ns a step, without the longest
  double elapsed_ns_ = 0;
  double extra_ns_ = 0;
  Moments counters_cost_, times_cost_;  // ns a step

  // What is needed to recognize a step that is stuck.
  bool step_is_armed_ = false;
  bool progress_known_ = false;
  uint64_t last_progress_ = 0;
  uint64_t last_progress_ns_ = 0;
};

}  // namespace rfinject::arming

#endif  // RFINJECT_COLLECTOR_ARMING_POLICY_H_
