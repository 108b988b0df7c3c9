#include "collector/arming/wanted_counts.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rfinject::arming {
namespace {

// Executed FLOP of one work may differ by this share without meaning other work: a persistent kernel's last wave.
constexpr double kSameWork = 1e-3;
// After how many misses a work is gone, how often it may come back, and how many spoiled ranges it may have before it
// rests; and for how many turns at most, as a power of two.
constexpr uint32_t kGone = 3, kComesBack = 4, kSpoiledInARow = 8, kLongestRest = 10;

}  // namespace

void WantedCounts::AddKey(uint32_t key, uint64_t work) {
  if (const auto known = work_of_.find(key); known != work_of_.end()) {
    Work& work = works_[known->second];
    if (std::exchange(work.missed, 0) >= kGone) ++work.gone;
    if (work.rests > 0) --work.rests;
    return;
  }
  const auto [at, added] = index_.try_emplace(work, works_.size());
  // What was counted went to the keys that there were.
  const auto counted = [](const Count& count) { return count.samples > 0; };
  const bool late =
      !added && std::any_of(works_[at->second].counts.begin(), works_[at->second].counts.end(), counted);
  if (late) at->second = works_.size();
  if (added || late) works_.push_back({{}, std::vector<Count>(varies_.size())});
  works_[at->second].keys.push_back(key);
  work_of_.emplace(key, at->second);
}

void WantedCounts::AddCount(uint32_t key, size_t group, double sum) {
  const auto at = work_of_.find(key);
  if (at == work_of_.end() || group >= varies_.size()) return;
  const size_t place = at->second;
  works_[place].missed = works_[place].gone = works_[place].spoiled = 0;
  Count& count = works_[place].counts[group];
  if (count.samples++ == 0) count.first = sum;
  const bool same = std::fabs(sum - count.first) <= kSameWork * std::fabs(count.first);
  count.last_key = key;
  if (same || varies_[group] || count.differs) return;
  count.differs = true;
  // Two keys that were thought to do the same do not: each is counted by itself from now on.
  std::vector<uint32_t> others = std::exchange(works_[place].keys, {key});
  for (const uint32_t other : others) {
    if (other == key) continue;
    work_of_[other] = works_.size();
    works_.push_back({{other}, std::vector<Count>(varies_.size())});
  }
}

void WantedCounts::Missed(uint32_t key) noexcept {
  const auto at = work_of_.find(key);
  if (at == work_of_.end()) return;
  Work& work = works_[at->second];
  ++work.missed;
  // Another key of the same work may still run.
  if (work.keys.size() > 1) std::rotate(work.keys.begin(), work.keys.begin() + 1, work.keys.end());
}

void WantedCounts::Spoiled(uint32_t key) noexcept {
  const auto at = work_of_.find(key);
  if (at == work_of_.end()) return;
  Work& work = works_[at->second];
  if (++work.spoiled % kSpoiledInARow == 0) work.rests = 1U << std::min(work.spoiled / kSpoiledInARow, kLongestRest);
}

uint32_t WantedCounts::Lacks(const Work& work, size_t group) const {
  if (work.missed >= kGone || work.gone > kComesBack || work.rests > 0) return 0;
  const Count& count = work.counts[group];
  // What varies is no other key's.
  const auto keys = static_cast<uint32_t>(work.keys.size());
  const uint32_t wanted = varies_[group] || count.differs ? kSamplesOfMean * keys
                          : later_[group]                 ? (checks_ ? 1 : 0)
                          : checks_                       ? 2
                                                          : 1;
  return count.samples < wanted ? wanted - count.samples : 0;
}

std::vector<uint32_t> WantedCounts::Wanted(size_t group) const {
  std::vector<uint32_t> keys;
  for (const Work& work : works_) {
    if (Lacks(work, group) == 0) continue;
    if (varies_[group]) {
      keys.push_back(work.keys[work.counts[group].samples % work.keys.size()]);
      continue;
    }
    // The check is of another key than the first sample, where there is one.
    const bool same = work.keys.front() == work.counts[group].last_key && work.keys.size() > 1;
    keys.push_back(same ? work.keys.back() : work.keys.front());
  }
  return keys;
}

bool WantedCounts::Complete() const {
  for (const Work& work : works_) {
    for (size_t group = 0; group < varies_.size(); ++group) {
      if (Lacks(work, group) != 0) return false;
    }
  }
  return true;
}

const std::vector<uint32_t>& WantedCounts::Twins(uint32_t key) const {
  static const std::vector<uint32_t> kNone;
  const auto at = work_of_.find(key);
  return at != work_of_.end() ? works_[at->second].keys : kNone;
}

bool WantedCounts::Wants(uint32_t key, size_t group) const {
  const auto at = work_of_.find(key);
  return at != work_of_.end() && group < varies_.size() && Lacks(works_[at->second], group) != 0;
}

bool WantedCounts::IsCounted(uint32_t key, size_t group) const {
  const auto at = work_of_.find(key);
  return at != work_of_.end() && group < varies_.size() && works_[at->second].counts[group].samples > 0;
}

}  // namespace rfinject::arming
