// File: wanted_counts.h
//
// WantedCounts knows which launch keys lack which group of counters. FLOP do not vary between launches that do the
// same work, so one sample is enough; a second one, much later, checks that. Work that fails the check (shapes that
// change under one grid, sparsity) is sampled until there are as many samples as a mean needs. Counters that vary by
// nature (bytes, where the chip cannot be sampled; what the user asked for) are sampled so from the beginning.
//
// What does the same work is the caller's word: a number, `work`, that several keys may have (the layers of a
// transformer's blocks). Of these one is counted, and another one for the check where there is one. Those that come
// when it was counted are counted by themselves.
//
// It is pure, and used by one thread.
#ifndef RFINJECT_COLLECTOR_ARMING_WANTED_COUNTS_H_
#define RFINJECT_COLLECTOR_ARMING_WANTED_COUNTS_H_

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace rfinject::arming {

class WantedCounts {
 public:
  // As many samples as an interval needs.
  static constexpr uint32_t kSamplesOfMean = 12;

  // `varies` says of each group whether what it counts varies between launches of a key; `later`, which may be empty,
  // whether it only checks others, and is not wanted before BeginCheck.
  explicit WantedCounts(std::vector<bool> varies, std::vector<bool> later = {})
      : varies_(std::move(varies)), later_(std::move(later)) {
    later_.resize(varies_.size());
  }

  // Tells that `key` launches kernels, and what work they do. Keys are small numbers. May throw std::bad_alloc, as
  // the next may.
  void AddKey(uint32_t key, uint64_t work);
  // Tells that a range around a launch of `key` has counted `group`, and the sum of what it counted.
  void AddCount(uint32_t key, size_t group, double sum);
  // Tells that no launch of `key` came although one was wanted. After a few times it is taken to be gone, until it is
  // added again; what was so again and again is launched where it cannot be counted.
  void Missed(uint32_t key) noexcept;
  // Tells that a range of `key` counted more than its launch. After some in a row the key rests: until it was added
  // again twice, and after more of them four times, and so on.
  void Spoiled(uint32_t key) noexcept;
  // From now on a second sample is wanted of what has one.
  void BeginCheck() noexcept { checks_ = true; }

  // The keys of which a launch is to be counted by `group` next, one for each work that lacks it.
  std::vector<uint32_t> Wanted(size_t group) const;
  // Whether every group has counted all work, checks included.
  bool Complete() const;
  // All keys that do the work of `key`.
  const std::vector<uint32_t>& Twins(uint32_t key) const;
  // Whether `key` is one of which a launch is to be counted by `group`, or a twin of one.
  bool Wants(uint32_t key, size_t group) const;
  // Whether the group has counted the key or a twin of it.
  bool IsCounted(uint32_t key, size_t group) const;
  size_t keys() const noexcept { return work_of_.size(); }

 private:
  struct Count {
    uint32_t samples = 0;
    double first = 0;
    bool differs = false;
    uint32_t last_key = UINT32_MAX;
  };
  struct Work {
    std::vector<uint32_t> keys;
    std::vector<Count> counts;  // by group
    uint32_t missed = 0;        // in a row
    uint32_t gone = 0;          // how often it was taken to be, in a row
    uint32_t spoiled = 0;       // in a row
    uint32_t rests = 0;         // for so many times that it is added again
  };

  uint32_t Lacks(const Work& work, size_t group) const;

  std::vector<bool> varies_, later_;
  bool checks_ = false;
  std::unordered_map<uint32_t, size_t> work_of_;  // by key, an index into works_
  std::unordered_map<uint64_t, size_t> index_;    // by the caller's number
  std::vector<Work> works_;
};

}  // namespace rfinject::arming

#endif  // RFINJECT_COLLECTOR_ARMING_WANTED_COUNTS_H_
