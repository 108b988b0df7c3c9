#include "cli/report/facts/collectives.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rfinject::cli {
namespace {

// One collective as all ranks ran it.
struct Meeting {
  std::map<uint32_t, const trace::Collective*> ranks;
};

int64_t Middle(std::vector<int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The collectives that all ranks ran. A kind of which some rank ran more than another is left out: the k-th of it is
// not the same one everywhere.
std::vector<Meeting> MeetingsOf(const Run& run, std::set<uint32_t>* ranks) {
  std::map<std::string, std::map<uint32_t, uint64_t>> counts;  // by kernel and rank
  for (const trace::Collective& one : run.kept.collective) {
    ++counts[one.kernel][one.rank];
    ranks->insert(one.rank);
  }
  // What is kept ends somewhere in the last number.
  const bool cut = run.kept.collective.size() >= trace::kMostKept<trace::Collective>;
  std::map<std::pair<uint32_t, std::string>, Meeting> meetings;
  for (const trace::Collective& one : run.kept.collective) {
    const auto& by_rank = counts.at(one.kernel);
    const auto [least, most] = std::minmax_element(by_rank.begin(), by_rank.end(),
                                                   [](const auto& a, const auto& b) { return a.second < b.second; });
    if (by_rank.size() == ranks->size() && (cut || least->second == most->second))
      meetings[{one.index, one.kernel}].ranks[one.rank] = &one;
  }
  std::vector<Meeting> whole;
  for (auto& [which, meeting] : meetings) {
    if (meeting.ranks.size() == ranks->size()) whole.push_back(std::move(meeting));
  }
  return whole;
}

int64_t Apart(const trace::Collective& later, const trace::Collective& earlier) {
  return static_cast<int64_t>(later.end_unix_ns - earlier.end_unix_ns);
}

// By how much a rank's clock is ahead of the first one's: most ends are apart by as much.
int64_t ClockOf(uint32_t rank, const std::vector<Meeting>& meetings) {
  std::vector<int64_t> apart;
  for (const Meeting& one : meetings) apart.push_back(Apart(*one.ranks.at(rank), *one.ranks.begin()->second));
  return Middle(std::move(apart));
}

// Whether the ends of these are apart by the clocks alone: only then is the k-th of a rank that of another.
bool EndTogether(const std::vector<Meeting>& meetings, const std::set<uint32_t>& ranks) {
  std::vector<int64_t> beyond, longest;
  for (const uint32_t rank : ranks) {
    if (rank == *ranks.begin()) continue;  // the one that the others are held against
    const int64_t clock = ClockOf(rank, meetings);
    for (const Meeting& one : meetings)
      beyond.push_back(std::abs(Apart(*one.ranks.at(rank), *one.ranks.begin()->second) - clock));
  }
  for (const Meeting& one : meetings) {
    int64_t most = 0;
    for (const auto& [rank, at] : one.ranks) most = std::max(most, static_cast<int64_t>(at->duration_ns));
    longest.push_back(most);
  }
  // A kernel's end is known to some microseconds, and the ranks leave a collective one after the other.
  constexpr int64_t kAlways = 20'000, kPart = 4;
  return Middle(std::move(beyond)) <= std::max(kAlways, Middle(std::move(longest)) / kPart);
}

}  // namespace

Collectives CollectivesOf(const Run& run) {
  Collectives found;
  std::set<uint32_t> ranks;
  std::vector<Meeting> meetings = MeetingsOf(run, &ranks);
  if (ranks.size() < 2 || meetings.empty()) return found;
  std::map<std::string, std::vector<Meeting>> kinds;
  for (Meeting& one : meetings) kinds[one.ranks.begin()->second->kernel].push_back(std::move(one));
  meetings.clear();
  for (auto& [kernel, of_kind] : kinds) {
    if (EndTogether(of_kind, ranks)) std::move(of_kind.begin(), of_kind.end(), std::back_inserter(meetings));
  }
  found.do_not_match = meetings.empty();
  if (meetings.empty()) return found;
  for (const uint32_t rank : ranks) found.ranks[rank].clock_ns = ClockOf(rank, meetings);
  found.count = meetings.size();
  const double share = 1 / static_cast<double>(meetings.size());
  std::map<uint32_t, uint64_t> came_last;
  double together_ns = 0;
  for (const Meeting& one : meetings) {
    const auto order = [](const auto& a, const auto& b) { return a.second->duration_ns < b.second->duration_ns; };
    const auto [last, first] = std::minmax_element(one.ranks.begin(), one.ranks.end(), order);
    const auto shortest = static_cast<double>(last->second->duration_ns);
    const auto all = static_cast<double>(first->second->duration_ns);
    ++came_last[last->first];
    found.transfer_ns += shortest * share;
    together_ns += all * share;
    for (const auto& [rank, at] : one.ranks) {
      const auto ns = static_cast<double>(at->duration_ns);
      found.ranks[rank].late_ns += (all - ns) * share;
      found.ranks[rank].waits_ns += (ns - shortest) * share;
    }
  }
  const auto most = std::max_element(came_last.begin(), came_last.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  constexpr double kWorthAWord = 0.05;
  const bool usually = 2 * most->second > meetings.size();
  if (usually && found.ranks[most->first].late_ns > kWorthAWord * together_ns) found.last = most->first;
  return found;
}

}  // namespace rfinject::cli
