// File: spread.h
//
// A Spread is Spread of the schema: durations, as their exact sum and how many lie in which range, of 64 in each
// octave. So sums stay exact, a quantile over many processes is within 1/120 of the duration that it stands for, and
// all durations need at most 3,456 codes.
//
//   SpreadCode(1'000'000) = 634;  DurationOf(634) = 1'003'648
#ifndef RFINJECT_PROTO_WIRE_SPREAD_H_
#define RFINJECT_PROTO_WIRE_SPREAD_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "proto/wire/saturating_add.h"
#include "proto/wire/sum_code.h"

namespace rfinject::wire {

// A sum's code (sum_code.h) has 2,048 ranges in each octave.
inline constexpr uint32_t kSpreadShift = 5;
inline constexpr uint32_t kMaxSpreadCode = 110'591 >> kSpreadShift;

// Returns the code of `ns`, which grows with it.
constexpr uint32_t SpreadCode(uint64_t ns) noexcept { return SumCode(ns) >> kSpreadShift; }

// Returns the middle of the durations that have this code; 0 for the first code, which holds nothing above 31 ns.
constexpr uint64_t DurationOf(uint32_t code) noexcept {
  return code == 0 ? 0 : SumOfCode((code << kSpreadShift) + (1u << (kSpreadShift - 1)));
}

// Counts and the sum saturate rather than wrap. What adds may throw std::bad_alloc.
class Spread {
 public:
  void Add(uint64_t ns) {
    AddCounted(SpreadCode(ns), 1);
    SaturatingAdd(&sum_, ns);
  }
  // Makes the durations longer by `ns` in all; which of them is not said.
  void Lengthen(uint64_t ns) { SaturatingAdd(&sum_, ns); }
  // Adds `count` durations that have this code; codes beyond the largest count as that one.
  void AddCounted(uint32_t code, uint64_t count) {
    if (count == 0) return;
    SaturatingAdd(&counts_[std::min(code, kMaxSpreadCode)], count);
    SaturatingAdd(&n_, count);
  }
  void Merge(const Spread& other) {
    for (const auto& [code, count] : other.counts_) AddCounted(code, count);
    SaturatingAdd(&sum_, other.sum_);
  }

  uint64_t n() const { return n_; }
  unsigned __int128 sum() const { return sum_; }
  const std::map<uint32_t, uint64_t>& counts() const { return counts_; }  // by code

  // The mean in ns; nothing where there are no durations.
  std::optional<double> mean_ns() const {
    if (n_ == 0) return std::nullopt;
    return static_cast<double>(sum_) / static_cast<double>(n_);
  }
  // The duration in ns that `share` of all are not above (nearest rank), within 1/120; nothing where there are none.
  std::optional<double> Quantile(double share) const {
    if (n_ == 0) return std::nullopt;
    double rest = std::max(1.0, std::ceil(share * static_cast<double>(n_)));
    uint32_t last = 0;
    for (const auto& [code, count] : counts_) {
      last = code;
      rest -= static_cast<double>(count);
      if (rest <= 0) break;
    }
    return static_cast<double>(DurationOf(last));
  }

  friend bool operator==(const Spread&, const Spread&) = default;

  template <typename Writer>
  void Write(Writer* out) const {
    std::vector<uint32_t> codes;
    std::vector<uint64_t> counts;
    for (const auto& [code, count] : counts_) {
      codes.push_back(code);
      counts.push_back(count);
    }
    out->set_sum(static_cast<uint64_t>(sum_));
    out->set_sum_high(static_cast<uint64_t>(sum_ >> 64));
    out->set_code(codes);
    out->set_count(counts);
  }

  // Fills this from a message. Returns null, or what contradicts itself there.
  template <typename Message>
  const char* Read(const Message& from) {
    *this = Spread();
    if (from.code_size() != from.count_size()) return "a spread has not one count a code";
    for (int i = 0; i < from.code_size(); ++i) {
      if (i > 0 && from.code(i) <= from.code(i - 1)) return "a spread's codes do not ascend";
      AddCounted(from.code(i), from.count(i));
    }
    sum_ = static_cast<unsigned __int128>(from.sum_high()) << 64 | from.sum();
    return nullptr;
  }

 private:
  uint64_t n_ = 0;
  unsigned __int128 sum_ = 0;
  std::map<uint32_t, uint64_t> counts_;
};

}  // namespace rfinject::wire

#endif  // RFINJECT_PROTO_WIRE_SPREAD_H_
