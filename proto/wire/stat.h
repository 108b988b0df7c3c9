// File: stat.h
//
// A Stat is MetricStats of the schema: exact sums over the samples of one metric. The library adds samples up, and
// the command adds up what libraries wrote; both read and write it as one message.
#ifndef RFINJECT_PROTO_WIRE_STAT_H_
#define RFINJECT_PROTO_WIRE_STAT_H_

#include <algorithm>
#include <cstdint>

#include "proto/wire/saturating_add.h"

namespace rfinject::wire {

using Uint128 = unsigned __int128;

// Sums saturate at the largest value rather than wrap.
struct Stat {
  uint64_t n = 0;
  Uint128 sum = 0;
  Uint128 sum_squares = 0;
  uint64_t min = UINT64_MAX;
  uint64_t max = 0;
  // > 0: the samples are equal shares of this many sums over launches of several keys (MetricStats.shared_sums).
  uint64_t shared_sums = 0;

  // Returns the sums of n samples of one value.
  static Stat Same(uint64_t value, uint64_t n) noexcept {
    Stat stat{.n = n, .sum = Uint128{n} * value, .min = value, .max = value};
    if (__builtin_mul_overflow(stat.sum, Uint128{value}, &stat.sum_squares)) stat.sum_squares = ~Uint128{0};
    return stat;
  }
  // Adds `times` samples, at least one, of the same value.
  void Add(uint64_t value, uint64_t times = 1) noexcept { Merge(Same(value, times)); }
  void Merge(const Stat& other) noexcept {
    SaturatingAdd(&n, other.n);
    SaturatingAdd(&sum, other.sum);
    SaturatingAdd(&sum_squares, other.sum_squares);
    min = std::min(min, other.min);
    max = std::max(max, other.max);
    SaturatingAdd(&shared_sums, other.shared_sums);
  }
  // How many of the samples are independent.
  uint64_t independent() const noexcept { return shared_sums > 0 ? shared_sums : n; }
  double mean() const noexcept { return n == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(n); }
  friend bool operator==(const Stat&, const Stat&) = default;

  // Writes all but the metric. Of samples that are all the same the sums follow from n and min, and are left out.
  template <typename Writer>
  void Write(Writer* out) const {
    Stat same = Same(min, n);
    same.shared_sums = shared_sums;
    const bool all = *this != same;
    out->set_n(n);
    if (all) {
      out->set_sum(static_cast<uint64_t>(sum));
      out->set_sum_high(static_cast<uint64_t>(sum >> 64));
      out->set_sum_squares(static_cast<uint64_t>(sum_squares));
      out->set_sum_squares_high(static_cast<uint64_t>(sum_squares >> 64));
    }
    if (n == 0) return;
    out->set_min(min);
    if (all) out->set_max(max);
    out->set_shared_sums(shared_sums);
  }

  // Fills this from a message, or from its numbers. Returns null, or what contradicts itself there.
  template <typename Message>
  const char* Read(const Message& from) noexcept {
    *this = Stat{};
    const Uint128 total = Uint128{from.sum_high()} << 64 | from.sum();
    if (from.n() == 0) return total == 0 ? nullptr : "a sum over no samples is not 0";
    const Uint128 squares = Uint128{from.sum_squares_high()} << 64 | from.sum_squares();
    if (total == 0 && squares == 0 && from.max() == 0) {  // all samples are the same
      *this = Same(from.min(), from.n());
    } else if (from.min() > from.max()) {
      return "a metric's minimum is above its maximum";
    } else {
      *this = {.n = from.n(), .sum = total, .sum_squares = squares, .min = from.min(), .max = from.max()};
    }
    shared_sums = from.shared_sums();
    return nullptr;
  }
};

}  // namespace rfinject::wire

#endif  // RFINJECT_PROTO_WIRE_STAT_H_
