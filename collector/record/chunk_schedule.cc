#include "collector/record/chunk_schedule.h"

#include <algorithm>

namespace rfinject {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kShortest = kSecond;
constexpr int64_t kYoung = 600 * kSecond;
constexpr int64_t kAgeShare = 100;  // a hundredth of the run is lost at most
constexpr int64_t kLongest = 60 * kSecond;
// The distance where no chunk is written before the last one, at the end of the process, for which some room is left.
constexpr int64_t kNever = 10 * 365 * 86400 * kSecond;
constexpr uint64_t kChunksKept = 4;

}  // namespace

bool IsNearLimit(uint64_t file_bytes, uint64_t max_bytes) noexcept {
  return max_bytes != 0 && file_bytes > max_bytes / 2;
}

int64_t ChunkDistance(int64_t age_ns, uint64_t file_bytes, uint64_t chunk_bytes, uint64_t max_bytes) noexcept {
  const int64_t distance = age_ns < kYoung ? kShortest : std::clamp(age_ns / kAgeShare, kShortest, kLongest);
  if (!IsNearLimit(file_bytes, max_bytes)) return distance;
  const uint64_t room = max_bytes - std::min(file_bytes, max_bytes);
  if (room / kChunksKept <= chunk_bytes) return kNever;
  // The room then shrinks by a constant share in a constant time, so it is never used up.
  const double longer = static_cast<double>(max_bytes) / 2 / static_cast<double>(room);
  return static_cast<int64_t>(static_cast<double>(distance) * longer);
}

}  // namespace rfinject
