#include "cli/import/stream_overlaps.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/import/imported.h"

namespace rfinject::cli {
namespace {

// Of those, sorted, that begin before one of their stream has ended, the places.
std::vector<size_t> BeginEarly(const std::vector<OnStream>& order) {
  // Clocks of whole microseconds are no overlap.
  constexpr int64_t kClockNs = 1000;
  std::vector<size_t> early;
  int64_t latest = INT64_MIN;
  for (size_t i = 1; i < order.size(); ++i) {
    latest = order[i].stream == order[i - 1].stream ? std::max(latest, order[i - 1].end) : INT64_MIN;
    if (latest > INT64_MIN + kClockNs && order[i].start < latest - kClockNs) early.push_back(i);
  }
  return early;
}

}  // namespace

bool WaitsForItsStream(std::string_view call) {
  const auto contains = [call](std::string_view part) { return call.find(part) != std::string_view::npos; };
  return call.starts_with("cu") && !contains("LaunchKernelEx") && !contains("Graph");
}

absl::flat_hash_map<uint64_t, int64_t> EarlierEnds(std::vector<OnStream> order,
                                                   const std::function<Correlations(const Correlations&)>& waiting) {
  const auto place = [](const OnStream& one) { return std::tuple(one.stream, one.start, one.index); };
  // They mostly are sorted, and then the look costs a tenth of sorting.
  if (!std::ranges::is_sorted(order, {}, place)) std::ranges::sort(order, {}, place);
  const std::vector<size_t> early = BeginEarly(order);
  absl::flat_hash_map<uint64_t, int64_t> cut;
  if (early.empty()) return cut;
  Correlations asked;
  for (const size_t i : early) asked.insert(order[i].correlation);
  const Correlations wait = waiting(asked);
  absl::flat_hash_set<size_t> waits;
  for (const size_t i : early) {
    if (wait.contains(order[i].correlation)) waits.insert(i);
  }
  // The one whose end is the latest so far, the first that began in it, and how many ended in it.
  size_t open = 0, first_in = 0;
  int inside = 0;
  constexpr int kSeveral = 2;
  for (size_t i = 1; i < order.size(); ++i) {
    const OnStream &one = order[i], &longer = order[open];
    bool next = longer.stream != one.stream || one.start >= longer.end;
    if (!next) {
      if (first_in == 0) first_in = i;
      // Times of whole microseconds make a kernel of no length end where another does. One kernel in another does not
      // tell which of the two is wrong, where nothing says how it was launched.
      inside += one.end < longer.end && one.end > one.start && one.start > longer.start ? 1 : 0;
      if (waits.contains(i) && one.start > longer.start) {
        cut[longer.index] = one.start;
      } else if (inside >= kSeveral) {
        cut[longer.index] = order[first_in].start;
      }
      next = cut.contains(longer.index) || one.end >= longer.end;
    }
    if (!next) continue;
    open = i;
    first_in = 0;
    inside = 0;
  }
  return cut;
}

std::string LostOverlaps::Text() const {
  constexpr size_t kLongest = 80;  // bytes of a name
  size_t length = std::min(name.size(), kLongest);
  while (length < name.size() && length > 0 && (name[length] & 0xC0) == 0x80) --length;  // inside of a character
  return absl::StrCat(
      count, count == 1 ? " kernel is" : " kernels are",
      " said to run on while others of the stream do, which cannot be: ", TimeText(static_cast<double>(ns)),
      " of that is not counted, most of it of ", name.substr(0, length), length < name.size() ? ".." : "");
}

}  // namespace rfinject::cli
