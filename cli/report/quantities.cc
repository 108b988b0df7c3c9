#include "cli/report/quantities.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "gpus/chips.h"

namespace rfinject::cli {
namespace {

enum class Quantity : uint8_t { kTime, kModelFlop, kFlop, kDramBytes, kCompulsoryBytes, kL2Bytes, kL1Bytes };

struct Term {
  std::string_view metric;
  Quantity quantity;
  Precision precision;  // of kFlop
  double weight;        // quantity += weight * metric
  bool legacy_path = false;
};

constexpr Precision kNoPrecision{};

// The names that rfinject itself gives (proto/wire/vocabulary.h), and the bytes that every chip counts alike.
constexpr auto kTerms = std::to_array<Term>({
    {kMetricTime, Quantity::kTime, kNoPrecision, 1},
    {kMetricModelFlop, Quantity::kModelFlop, kNoPrecision, 1},
    {kMetricDramBytes, Quantity::kDramBytes, kNoPrecision, 1},
    {kMetricCompulsoryBytes, Quantity::kCompulsoryBytes, kNoPrecision, 1},
    {kMetricFlop[0], Quantity::kFlop, Precision::kFp64, 1},
    {kMetricFlop[1], Quantity::kFlop, Precision::kFp32, 1},
    {kMetricFlop[2], Quantity::kFlop, Precision::kFp16, 1},
    {kMetricFlop[3], Quantity::kFlop, Precision::kTf32Tensor, 1},
    {kMetricFlop[4], Quantity::kFlop, Precision::kFp16Tensor, 1},
    {kMetricFlop[5], Quantity::kFlop, Precision::kBf16Tensor, 1},
    {kMetricFlop[6], Quantity::kFlop, Precision::kFp8Tensor, 1},
    {kMetricFlop[7], Quantity::kFlop, Precision::kFp64Tensor, 1},
    {kL2BytesMetric, Quantity::kL2Bytes, kNoPrecision, 1},
    {kL1BytesMetric, Quantity::kL1Bytes, kNoPrecision, 1},
    {kDramReadMetric, Quantity::kDramBytes, kNoPrecision, 1},
    {kDramWriteMetric, Quantity::kDramBytes, kNoPrecision, 1},
    {kDramOpReadMetric, Quantity::kDramBytes, kNoPrecision, 1},  // as GB202 and its sisters call them
    {kDramOpWriteMetric, Quantity::kDramBytes, kNoPrecision, 1},
    {kDramTotalMetric, Quantity::kDramBytes, kNoPrecision, 1},
    {kGpuTimeMetric, Quantity::kTime, kNoPrecision, 1},
});

bool IsTensor(Precision precision) { return precision >= Precision::kTf32Tensor; }

bool Sampled(const LaunchStats& stats, std::string_view metric) {
  const auto found = stats.metrics.find(std::string(metric));
  return found != stats.metrics.end() && found->second.n > 0;
}

// The term for `metric`; nullopt when nothing is known of it, or when another sampled metric says the same thing
// better: our own time (taken while no counters ran) before the counters', reads and writes before their total, the
// dense spelling of a tensor counter before the one that holds sparse work too.
std::optional<Term> TermFor(std::string_view metric, std::string_view chip, const LaunchStats& stats) {
  if (metric == kGpuTimeMetric && Sampled(stats, kMetricTime)) return std::nullopt;
  if (metric == kDramTotalMetric && std::ranges::any_of(kDramCounters, [&](const DramCounters& counters) {
        return Sampled(stats, counters.read) && Sampled(stats, counters.write);
      })) {
    return std::nullopt;
  }
  const auto own = std::find_if(kTerms.begin(), kTerms.end(), [&](const Term& t) { return t.metric == metric; });
  if (own != kTerms.end()) return *own;
  for (const FlopTerm& term : FlopFormula(chip)) {
    if (term.metric != metric) continue;
    if (term.sparse) return std::nullopt;  // R011's business
    return Term{metric, Quantity::kFlop, term.precision, term.flop_per_count, term.legacy_path};
  }
  const std::optional<FlopTerm> alternative = AlternativeTerm(chip, metric);
  if (!alternative) return std::nullopt;
  for (const FlopTerm& term : FlopFormula(chip)) {
    if (term.precision == alternative->precision && IsTensor(term.precision) && Sampled(stats, term.metric)) {
      return std::nullopt;
    }
  }
  if (const std::string_view plain = PlainSpelling(metric); !plain.empty() && Sampled(stats, plain)) {
    return std::nullopt;
  }
  return Term{metric, Quantity::kFlop, alternative->precision, alternative->flop_per_count};
}

// Two-sided 95 % quantiles of Student's t distribution for 1 to 30 degrees of freedom (Abramowitz and Stegun, table
// 26.10); beyond, the normal distribution's is at most 4 % too small.
constexpr std::array<double, 30> kStudent95 = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                               2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                               2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};

// mean * launches. Where every launch was sampled this is the sum itself, to the last bit: a count of FLOP must not
// pass through a division.
double Scaled(const Stat& stat, uint64_t launches) {
  if (stat.n == 0) return 0;
  if (stat.n == launches) return static_cast<double>(stat.sum);
  if (stat.sum % stat.n == 0) {
    return static_cast<double>(static_cast<Uint128>(stat.sum / stat.n)) * static_cast<double>(launches);
  }
  return stat.mean() * static_cast<double>(launches);
}

}  // namespace

double ErrorSquared(const Stat& stat, uint64_t launches) {
  // Shares of a sum are as many equal numbers, but one sample.
  const uint64_t independent = stat.independent();
  if (independent < 2 || stat.n >= launches) return 0;
  const double n = static_cast<double>(independent);
  const double mean = stat.mean();
  const double spread = static_cast<double>(stat.sum_squares) / static_cast<double>(stat.n) - mean * mean;
  const double variance = std::max(0.0, spread) * n / (n - 1);  // of one sample
  const double t = independent - 1 <= kStudent95.size() ? kStudent95[independent - 2] : 1.96;
  const double half_width = static_cast<double>(launches) * t;
  return half_width * half_width * variance / n;
}

Uncertainty SpreadOf(const Stat& stat, uint64_t launches) {
  if (stat.n == 0 || launches == 0) return {};
  // Shares of one sum err together, which a sum of variances does not say.
  if (stat.n == 1 || stat.shared_sums > 0) return {.variance = 0, .satterthwaite = 0, .known = false};
  if (stat.min == stat.max) return {};
  const double n = static_cast<double>(stat.n);
  const double mean = stat.mean();
  const double spread = std::max(0.0, static_cast<double>(stat.sum_squares) / n - mean * mean) * n / (n - 1);
  const double variance = static_cast<double>(launches) * static_cast<double>(launches) * spread / n;
  return {.variance = variance, .satterthwaite = variance * variance / (n - 1)};
}

KeyQuantities Quantities(const LaunchStats& stats, const std::map<std::string, MetricInfo>& metrics,
                         std::string_view chip) {
  KeyQuantities result;
  Sums& sums = result.sums;
  sums.launches = stats.launches;
  for (const auto& [name, stat] : stats.metrics) {
    if (stat.n == 0) continue;
    const std::optional<Term> term = TermFor(name, chip, stats);
    if (!term) continue;
    const auto info = metrics.find(name);
    const double weight = term->weight * (info == metrics.end() ? 1 : info->second.scale);
    const double value = weight * Scaled(stat, stats.launches);
    switch (term->quantity) {
      case Quantity::kTime:
        sums.time_ns += value;
        result.least_launch_ns = weight * static_cast<double>(stat.min);
        result.time_uncertainty.Add(SpreadOf(stat, stats.launches).Times(weight));
        result.time_error_squared += weight * weight * ErrorSquared(stat, stats.launches);
        break;
      case Quantity::kModelFlop:
        sums.model_flop += value;
        break;
      case Quantity::kFlop:
        sums.flop[static_cast<size_t>(term->precision)] += value;
        if (term->legacy_path) sums.legacy_flop[static_cast<size_t>(term->precision)] += value;
        result.has_flop = true;
        result.shared = result.shared || stat.shared_sums > 0;
        result.flop_uncertainty.Add(SpreadOf(stat, stats.launches).Times(weight));
        (IsTensor(term->precision) ? result.has_tensor_flop : result.has_scalar_flop) = true;
        break;
      case Quantity::kDramBytes:
        sums.dram_bytes += value;
        result.has_bytes = true;
        result.shared = result.shared || stat.shared_sums > 0;
        result.bytes_uncertainty.Add(SpreadOf(stat, stats.launches).Times(weight));
        result.bytes_error_squared += weight * weight * ErrorSquared(stat, stats.launches);
        break;
      case Quantity::kCompulsoryBytes:
        sums.compulsory_bytes += value;
        break;
      case Quantity::kL2Bytes:
        sums.l2_bytes += value;
        break;
      case Quantity::kL1Bytes:
        sums.l1_bytes += value;
        break;
    }
  }
  return result;
}

}  // namespace rfinject::cli
