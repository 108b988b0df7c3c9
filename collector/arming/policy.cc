#include "collector/arming/policy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <utility>

#include "collector/arming/split_mix.h"
#include "collector/arming/window_coverage.h"

namespace rfinject::arming {
namespace {

// The sample sizes at which a key may be found good enough. Each look may end the sampling by chance, so there are
// few.
constexpr uint32_t kLooks[] = {8, 12, 18, 25};

constexpr uint32_t kMaxLevel = 20;

// What is drawn, each from numbers of its own.
constexpr uint64_t kOfCounters = 1, kOfTimes = 2, kOfSlots = 1000, kOfGroups = 2000, kOfWindows = 3000;
// A step that takes this many times the median tells of a checkpoint or a stalled loader, not of what steps differ
// by.
constexpr uint64_t kLongestThatCounts = 2;

// How many draws are looked at, at most, and the error of its coverage (window_coverage.h) with which a draw is good
// enough. Judging one takes a fraction of a millisecond, and all are judged once in a process. A draw that leaves an
// end of the window out is taken only where no other was found.
constexpr uint64_t kDraws = 1024;
constexpr double kGoodEnough = 0.005;

}  // namespace

Schedule::Schedule(const Options& options, const std::vector<GroupRole>& roles) : seed_(options.seed) {
  double overhead = std::clamp(options.overhead, 1e-6, 0.5);
  spacing_ = static_cast<uint64_t>(std::ceil(1 / overhead));
  burst_begin_ = options.warm_up_steps;
  groups_ = static_cast<uint32_t>(roles.size());
  std::vector<uint32_t> groups;
  for (uint32_t i = 0; i < groups_; ++i) {
    groups.push_back(i);
    samples_bytes_.push_back(roles[i] != GroupRole::kOnce);
  }
  if (options.window_steps != 0) {
    // Every hardware group samples the bytes, so they are repeated until there are as many samples as an interval
    // needs.
    const auto hardware = static_cast<uint32_t>(std::count(roles.begin(), roles.end(), GroupRole::kHardware));
    for (uint32_t samples = hardware; hardware > 0 && samples < options.min_samples; samples += hardware) {
      for (uint32_t i = 0; i < roles.size(); ++i) {
        if (roles[i] == GroupRole::kHardware) groups.push_back(i);
      }
    }
  }
  std::vector<Decision> wanted;
  for (uint32_t group : groups) {
    if (options.has_times) wanted.push_back({Action::kTimes, 0});
    wanted.push_back({Action::kCounters, group});
  }
  if (groups.empty() && options.has_times) wanted.resize(options.min_samples, {Action::kTimes, 0});
  if (options.window_steps != 0) {
    size_t room = options.window_steps > burst_begin_ ? (options.window_steps - burst_begin_) / 2 : 0;
    if (wanted.size() > room) wanted.resize(room);
  }
  for (const Decision& decision : wanted) {
    burst_armed_ += decision.action == Action::kCounters;
    burst_.push_back({2 * burst_.size(), decision});
  }
  // Half of the steps of the first rotation are armed.
  burst_span_ = 2 * burst_.size();
  if (options.window_steps > burst_begin_) {
    // The draw spans no more steps than the budget would need for as many armed ones; the regular slots follow behind
    // it in a longer window.
    const uint64_t earned = std::max<uint64_t>(burst_armed_, 1) * spacing_;
    Draw(std::max(burst_span_, std::min(options.window_steps - burst_begin_, earned)));
  } else if (!burst_.empty()) {
    burst_ = DrawOnce(seed_, burst_span_);
  }
  has_times_ = options.has_times;
}

// Whether the steps that are sampled begin and end as near to the ends of `span` as half of their mean distance. A
// change before the first of them or after the last, such as one of the clock, is not seen.
bool Schedule::ReachesTheEnds(const std::vector<Slot>& slots, uint64_t span) const {
  const auto samples = [this](const Slot& slot) {
    return slot.decision.action == Action::kTimes || samples_bytes_[slot.decision.group];
  };
  const auto first = std::find_if(slots.begin(), slots.end(), samples);
  const auto last = std::find_if(slots.rbegin(), slots.rend(), samples);
  if (last == slots.rend()) return false;
  const auto near = span / (2 * slots.size());
  return first->offset <= near && span - 1 - last->offset <= near;
}

// Spreads the burst over the next `span` steps. Of some random draws it takes the one for which the textbook's
// interval is nearest to right, both for the steps with times and for those with counters.
void Schedule::Draw(uint64_t span) {
  burst_span_ = span;
  const WindowCoverage coverage(span);
  std::vector<Slot> best;
  double least = 0;
  bool best_reaches = false;
  for (uint64_t draw = 1; draw <= kDraws && (!best_reaches || least > kGoodEnough); ++draw) {
    std::vector<Slot> slots = DrawOnce(RandomAt(seed_, draw, kOfWindows), span);
    const bool reaches = ReachesTheEnds(slots, span);
    if (best_reaches && !reaches) continue;
    if (reaches && !best_reaches) best.clear();
    double worst = 0;
    for (const Action action : {Action::kTimes, Action::kCounters}) {
      std::vector<uint64_t> steps;
      for (const Slot& slot : slots) {
        // A group that is armed once samples no bytes.
        const bool samples = action == Action::kTimes || samples_bytes_[slot.decision.group];
        if (slot.decision.action == action && samples) steps.push_back(slot.offset);
      }
      // No interval is printed of fewer than four samples, and where all steps of the window are sampled nothing is
      // uncertain.
      if (steps.size() < 4 || steps.size() == span || (!best.empty() && worst >= least)) continue;
      worst = std::max(worst, coverage.WorstError(steps, best.empty() ? 1 : least));
    }
    if (best.empty() || worst < least) {
      least = worst;
      best = std::move(slots);
      best_reaches = reaches;
    }
  }
  burst_ = std::move(best);
}

// Draws steps so that each set of them is as likely as any other.
std::vector<Schedule::Slot> Schedule::DrawOnce(uint64_t seed, uint64_t span) const {
  const auto random = [&seed] { return SplitMix64(&seed); };
  // This is Floyd's sample without replacement.
  std::vector<uint64_t> steps;
  for (uint64_t last = span - burst_.size(); last < span; ++last) {
    const uint64_t step = random() % (last + 1);
    steps.push_back(std::find(steps.begin(), steps.end(), step) == steps.end() ? step : last);
  }
  // Which of the steps have times is drawn as well; the groups keep their order.
  std::vector<Decision> order;
  for (const Slot& slot : burst_) order.push_back(slot.decision);
  std::vector<Decision> counters;
  std::copy_if(order.begin(), order.end(), std::back_inserter(counters),
               [](const Decision& decision) { return decision.action == Action::kCounters; });
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  std::sort(steps.begin(), steps.end());
  // Where several armed steps lie in a row, times come first: counting makes kernels wait, which may show in the next
  // step.
  for (size_t begin = 0; begin < steps.size();) {
    size_t end = begin + 1;
    while (end < steps.size() && steps[end] == steps[end - 1] + 1) ++end;
    std::stable_partition(order.begin() + static_cast<std::ptrdiff_t>(begin),
                          order.begin() + static_cast<std::ptrdiff_t>(end),
                          [](const Decision& decision) { return decision.action == Action::kTimes; });
    begin = end;
  }
  std::vector<Slot> slots;
  size_t next = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    slots.push_back({steps[i], order[i].action == Action::kCounters ? counters[next++] : order[i]});
  }
  return slots;
}

Decision Schedule::At(uint64_t step, uint32_t level) const noexcept {
  if (step < burst_begin_) return {};
  if (step < burst_end()) {
    const auto slot = std::lower_bound(burst_.begin(), burst_.end(), step - burst_begin_,
                                       [](const Slot& one, uint64_t offset) { return one.offset < offset; });
    return slot != burst_.end() && burst_begin_ + slot->offset == step ? slot->decision : Decision{};
  }
  const uint64_t slot = step / spacing_;
  // The first rotation has used up as many slots as it had armed steps.
  if (slot <= burst_armed_ || !IsLeft(slot, level)) return {};
  const uint64_t offset = step % spacing_;
  const Offsets armed = OffsetsIn(slot);
  if (offset == armed.counters && groups_ > 0) return {Action::kCounters, GroupOf(slot)};
  if (offset == armed.times && has_times_) return {Action::kTimes, 0};
  return {};
}

Schedule::Offsets Schedule::OffsetsIn(uint64_t slot) const noexcept {
  const uint64_t counters = RandomAt(seed_, slot, kOfCounters) % spacing_;
  // Counting makes kernels wait, which may show in the next step: times are taken in neither of the two.
  constexpr uint64_t kLeastSpacing = 3;
  if (spacing_ < kLeastSpacing) return {counters, (counters + 1) % spacing_};
  uint64_t times = RandomAt(seed_, slot, kOfTimes) % (spacing_ - 2);
  if (times >= counters) times += 2;
  return {counters, times};
}

// Of each two slots that are left at a level, one is left at the next: which of them is drawn.
bool Schedule::IsLeft(uint64_t slot, uint32_t level) const noexcept {
  for (uint32_t i = 0; i < level; ++i, slot >>= 1) {
    if ((slot & 1) != (RandomAt(seed_, slot >> 1, kOfSlots + i) & 1)) return false;
  }
  return true;
}

bool Schedule::KeepsWatch(uint64_t step) const noexcept {
  constexpr uint64_t kAllOfTheFirst = 32;
  const uint64_t slot = step / spacing_;
  uint32_t level = 0;
  while ((slot >> level) >= kAllOfTheFirst) ++level;
  return IsLeft(slot, level);
}

// Each rotation has the groups in an order of its own. Thinning is drawn, too, so that every level meets every group.
uint32_t Schedule::GroupOf(uint64_t slot) const noexcept {
  constexpr uint32_t kMost = 64;  // no chip's plan has as many
  if (groups_ > kMost) return static_cast<uint32_t>(slot % groups_);
  std::array<uint8_t, kMost> order{};
  std::iota(order.begin(), order.begin() + groups_, uint8_t{0});
  const uint64_t rotation = slot / groups_;
  for (uint32_t i = groups_; i > 1; --i) {
    std::swap(order[i - 1], order[RandomAt(seed_, rotation, kOfGroups + i) % i]);
  }
  return order[slot % groups_];
}

Policy::Policy(const Options& options, std::vector<GroupRole> roles)
    : options_(options), roles_(std::move(roles)), schedule_(options_, roles_), guarded_(roles_.size(), false) {}

Policy::KeyState& Policy::Seen(uint32_t key) {
  if (key >= keys_.size()) OnNewKey(key);
  keys_[key].seen_in_step = true;
  return keys_[key];
}

void Policy::OnNewKey(uint32_t key) {
  while (keys_.size() <= key) {
    KeyState state;
    state.counted.resize(roles_.size(), 0);
    keys_.push_back(std::move(state));
  }
}

// A few samples may all be of one kind of step by chance, and then look sure. The durations of all steps say what
// steps differ by, so there must be samples enough for that as well.
bool Policy::Done(const Moments& moments) const noexcept {
  if (HalfWidth99(moments) > options_.target * std::abs(moments.mean)) return false;
  const Moments clock{
      .n = moments.n, .mean = unarmed_.mean, .m2 = unarmed_.variance() * (std::max(moments.n, 1u) - 1)};
  return HalfWidth99(clock) <= options_.target * clock.mean;
}

void Policy::OnBytes(uint32_t key, double bytes) { Seen(key).bytes.Add(bytes); }

void Policy::OnTime(uint32_t key, double ns, uint32_t launches) {
  KeyState& state = Seen(key);
  state.time.Add(ns);
  state.time_total += ns * launches;
}

void Policy::OnCounted(uint32_t key, uint32_t group) {
  KeyState& state = Seen(key);
  if (group < state.counted.size() && state.counted[group] < UINT16_MAX) ++state.counted[group];
}

// A key that was launched, but in none of as many timed steps as would be wanted of any, is taken to be gone (an
// evaluation, a last batch). One that runs in every sixteenth step is met by then.
bool Policy::IsGone(const KeyState& key) const noexcept {
  return key.time.n == 0 && key.missed_times >= options_.max_samples;
}

bool Policy::NeedsTimes() const noexcept {
  if (!options_.has_times) return false;
  return std::any_of(keys_.begin(), keys_.end(), [this](const KeyState& key) {
    if (key.time.n == 0) return !IsGone(key);
    return key.heavy && !key.time_done;
  });
}

bool Policy::Needs(uint32_t group) const noexcept {
  if (roles_[group] == GroupRole::kGuard) return !guarded_[group];
  return std::any_of(keys_.begin(), keys_.end(), [&](const KeyState& key) {
    if (!key.heavy || key.missed_counters >= options_.max_samples) return false;
    if (options_.has_times && key.time.n == 0) return false;  // not known to be heavy yet
    if (key.counted[group] == 0) return true;
    return roles_[group] == GroupRole::kHardware && !key.bytes_done;
  });
}

Decision Policy::Begin(uint64_t step) noexcept {
  step_is_armed_ = false;
  if (disarmed_) return {};
  Decision decision = schedule_.At(step, level_);
  if (decision.action == Action::kNone) return {};
  bool burst = step < schedule_.burst_end();
  // A cost that was not measured yet cannot be overspent: the first rotation is taken on credit.
  double expected = decision.action == Action::kTimes ? times_cost_.mean : counters_cost_.mean;
  if (!burst && extra_ns_ + expected > options_.overhead * elapsed_ns_) return {};
  if (decision.action == Action::kTimes) {
    if (!burst && !NeedsTimes() && !schedule_.KeepsWatch(step)) return {};
  } else if (!burst && !Needs(decision.group)) {
    // Another hardware group may be short of samples. SASS and guard groups stay in their own slots, where all ranks
    // have them: they cost more.
    uint32_t other = 0;
    while (other < roles_.size() && !(roles_[other] == GroupRole::kHardware && Needs(other))) ++other;
    if (other == roles_.size()) return {};
    decision.group = other;
  }
  step_is_armed_ = true;
  progress_known_ = false;
  for (KeyState& key : keys_) key.seen_in_step = false;
  return decision;
}

uint64_t Policy::MedianUnarmed() const noexcept {
  size_t count = std::min<uint64_t>(unarmed_steps_, kRecent);
  if (count == 0) return 0;
  uint64_t sorted[kRecent];
  std::copy(recent_unarmed_, recent_unarmed_ + count, sorted);
  std::nth_element(sorted, sorted + count / 2, sorted + count);
  return sorted[count / 2];
}

void Policy::End(uint64_t step, const Decision& decision, uint64_t duration_ns, bool valid) {
  step_is_armed_ = false;
  // Warm-up steps are no measure of what a step costs.
  if (step < schedule_.burst_begin() / 2) return;
  elapsed_ns_ += static_cast<double>(duration_ns);
  if (decision.action == Action::kNone) {
    recent_unarmed_[unarmed_steps_++ % kRecent] = duration_ns;
    if (unarmed_steps_ % kRecent == 0) median_unarmed_ = MedianUnarmed();
    if (median_unarmed_ > 0) {
      unarmed_.Add(static_cast<double>(std::min(duration_ns, kLongestThatCounts * median_unarmed_)));
    }
    return;
  }
  double cost = static_cast<double>(duration_ns) - static_cast<double>(MedianUnarmed());
  if (unarmed_steps_ == 0 || cost < 0) cost = 0;
  extra_ns_ += cost;
  if (decision.action == Action::kTimes) {
    ++timed_steps_;
    times_cost_.Add(cost);
  } else {
    ++armed_steps_;
    counters_cost_.Add(cost);
  }
  UpdateLevel();
  if (!valid) return;
  if (decision.action == Action::kTimes) {
    for (KeyState& key : keys_) {
      if (!key.seen_in_step && key.time.n == 0 && key.missed_times < UINT16_MAX) ++key.missed_times;
    }
  } else {
    if (roles_[decision.group] == GroupRole::kGuard) guarded_[decision.group] = true;
    for (KeyState& key : keys_) {
      if (!key.seen_in_step && key.missed_counters < UINT16_MAX) ++key.missed_counters;
    }
  }
  Review();
}

void Policy::UpdateLevel() noexcept {
  double unarmed = static_cast<double>(MedianUnarmed());
  if (unarmed <= 0) return;
  double cost = counters_cost_.mean + times_cost_.mean;  // a slot has one step of each
  double budget = options_.overhead * unarmed * static_cast<double>(schedule_.spacing());
  level_ = 0;
  while (level_ < kMaxLevel && cost > budget * static_cast<double>(uint64_t{1} << level_)) ++level_;
}

// Which keys are heavy, and which are done.
void Policy::Review() {
  double total = 0;
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i].time.n == 0) continue;
    total += keys_[i].time_total;
    order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return keys_[a].time_total != keys_[b].time_total ? keys_[a].time_total > keys_[b].time_total : a < b;
  });
  double sum = 0;
  for (uint32_t i : order) {
    keys_[i].heavy = !options_.has_times || sum < options_.time_share * total;
    sum += keys_[i].time_total;
  }
  auto look = [&](const Moments& moments, uint32_t* until, bool* done) {
    if (*done) return;
    if (*until == 0 && moments.n >= options_.min_samples && Done(moments) &&
        std::find(std::begin(kLooks), std::end(kLooks), moments.n) != std::end(kLooks)) {
      *until = moments.n + std::max(2u, moments.n / 2);
    }
    *done = moments.n >= options_.max_samples || (*until != 0 && moments.n >= *until);
  };
  for (KeyState& key : keys_) {
    look(key.bytes, &key.bytes_until, &key.bytes_done);
    look(key.time, &key.time_until, &key.time_done);
    if (options_.has_times && IsGone(key)) key.heavy = false;
  }
}

bool Policy::converged() const noexcept {
  bool needed = NeedsTimes();
  for (uint32_t group = 0; group < roles_.size() && !needed; ++group) needed = Needs(group);
  return !needed;
}

bool Policy::CheckStall(uint64_t now_ns, uint64_t progress) noexcept {
  if (!step_is_armed_ || disarmed_) return false;
  if (!progress_known_ || progress != last_progress_) {
    progress_known_ = true;
    last_progress_ = progress;
    last_progress_ns_ = now_ns;
    return false;
  }
  uint64_t limit = std::max(options_.stall_ns, 20 * MedianUnarmed());
  if (now_ns - last_progress_ns_ < limit) return false;
  disarmed_ = true;
  return true;
}

double Policy::measured_overhead() const noexcept { return elapsed_ns_ > 0 ? extra_ns_ / elapsed_ns_ : 0; }

}  // namespace rfinject::arming
