#include "cli/report/keys/key_quantities.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "cli/model/operator.h"
#include "gpus/chips.h"
#include "gpus/kernel_names.h"

namespace rfinject::cli {
namespace {

constexpr std::array kHalfTensor = {Precision::kFp16Tensor, Precision::kBf16Tensor, Precision::kFp8Tensor};

bool IsFlop(Quantity quantity) { return quantity >= Quantity::kFlop && quantity < Quantity::kLegacyFlop; }
Precision PrecisionOf(Quantity flop) {
  return static_cast<Precision>(static_cast<size_t>(flop) - static_cast<size_t>(Quantity::kFlop));
}

bool WasSampled(const LaunchStats& stats, const std::string& metric) {
  const auto found = stats.metrics.find(metric);
  return found != stats.metrics.end() && found->second.n > 0;
}

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
  const double half_width = static_cast<double>(launches) * Student95(n - 1);
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

KeyReader::KeyReader(const std::map<std::string, MetricInfo>& metrics, std::string_view chip, const Run& run)
    : samples_(run.key.source != SourceKind::kEstimated), measured_(run.key.source == SourceKind::kMeasured) {
  const auto add = [&](std::string_view metric, Term term) {
    const auto info = metrics.find(std::string(metric));
    if (info != metrics.end()) term.weight *= info->second.scale;
    terms_.try_emplace(std::string(metric), std::move(term));  // the first says best what the metric is
  };
  for (const QuantityMetric& metric : kQuantityMetrics) {
    Term term{.quantity = metric.quantity, .weight = 1, .legacy_path = false, .better = {}};
    for (const auto& pair : metric.better) {
      if (!pair[0].empty()) term.better.push_back({std::string(pair[0]), std::string(pair[1])});
    }
    add(metric.name, std::move(term));
  }
  for (size_t i = 0; i < kPrecisionCount; ++i) {
    add(kMetricFlop[i],
        {.quantity = FlopIn(static_cast<Precision>(i)), .weight = 1, .legacy_path = false, .better = {}});
  }
  const std::span<const FlopTerm> formula = FlopFormula(chip);
  for (const FlopTerm& term : formula) {
    if (term.sparse) continue;  // R011's business
    add(term.metric, {.quantity = FlopIn(term.precision),
                      .weight = term.flop_per_count,
                      .legacy_path = term.legacy_path,
                      .better = {}});
  }
  for (const auto& entry : metrics) {
    const std::string& name = entry.first;
    if (terms_.contains(name) ||
        std::any_of(formula.begin(), formula.end(), [&](const FlopTerm& term) { return term.metric == name; })) {
      continue;
    }
    const std::optional<FlopTerm> alternative = AlternativeTerm(chip, name);
    if (!alternative) continue;
    Term term{.quantity = FlopIn(alternative->precision),
              .weight = alternative->flop_per_count,
              .legacy_path = false,
              .better = {}};
    // The dense spelling of a tensor counter goes before the one that holds sparse work too.
    for (const FlopTerm& own : formula) {
      if (own.precision == alternative->precision && IsTensor(own.precision)) {
        term.better.push_back({std::string(own.metric)});
      }
    }
    // A scalar counter's packed spelling stands for the plain one of the same instruction.
    if (const std::string_view plain = PlainSpelling(name); !plain.empty())
      term.better.push_back({std::string(plain)});
    add(name, std::move(term));
  }
  has_half_precision_ = measured_ && HasHalfPrecision(run);
}

bool KeyReader::HasHalfPrecision(const Run& run) const {
  if (!run.key.policy.autocast_dtype.empty()) return true;
  return std::ranges::any_of(run.launches, [this](const auto& launch) {
    if (NamesHalfPrecision(launch.first.kernel) == true) return true;
    const FlopByPrecision flop = ReadAll(launch.second).sums.flop();
    return std::ranges::any_of(kHalfTensor, [&](Precision of) { return flop[static_cast<size_t>(of)] > 0; });
  });
}

bool KeyReader::Counts(const Term& term, const LaunchStats& stats) {
  return std::none_of(term.better.begin(), term.better.end(), [&](const std::vector<std::string>& list) {
    return std::all_of(list.begin(), list.end(),
                       [&](const std::string& metric) { return WasSampled(stats, metric); });
  });
}

KeyQuantities ReadSampled(const KeyReader& reader, const SampledRun& sampled, const LaunchKey& key,
                          const LaunchStats& stats) {
  KeyQuantities quantities = reader.Read(key, stats);
  // Whether the steps are enough is asked of the whole row; but a single step says nothing of how a key scatters.
  if (sampled.has(Sampled::kTime)) {
    quantities.sums[Quantity::kTime] *= sampled.Ordinary(Sampled::kTime, stats);
    quantities.time_spread_known = sampled.StepsOf(Sampled::kTime, stats) > 1;
  }
  if (sampled.has(Sampled::kBytes)) {
    quantities.sums[Quantity::kDramBytes] *= sampled.Ordinary(Sampled::kBytes, stats);
    quantities.bytes_spread_known = sampled.StepsOf(Sampled::kBytes, stats) > 1;
  }
  return quantities;
}

// The compiler moves constants into registers with HFMA2, which the counters of half precision count as four FLOP: in
// FP32 training on an H100 0.6 % of all. A kernel without an operand of half precision does no arithmetic in it.
// Which operands an operator had is not known of what was measured, but libraries name a kernel's types. Where a name
// has none, a kernel that runs HADD2 or HMUL2 has such operands; of older traces, which have one sum for these and
// HFMA2, it is the run that has half precision somewhere, or not.
KeyQuantities KeyReader::Read(const LaunchKey& key, const LaunchStats& stats) const {
  constexpr double kRounding = 1e-9;
  KeyQuantities result = ReadAll(stats);
  double& half = result.sums[FlopIn(Precision::kFp16)];
  if (!measured_ || !(half > 0)) return result;
  const auto fma = stats.metrics.find(std::string(kMetricHalfFma));
  bool computes = has_half_precision_;
  if (fma != stats.metrics.end() && fma->second.n > 0)
    computes = half > Scaled(fma->second, stats.launches) * (1 + kRounding);
  if (NamesHalfPrecision(key.kernel).value_or(computes)) return result;
  // A share of what a layer's kernels did may be another's.
  if (result.shared && has_half_precision_) return result;
  result.constant_moves = std::exchange(half, 0);
  return result;
}

KeyQuantities KeyReader::ReadAll(const LaunchStats& stats) const {
  KeyQuantities result;
  Sums& sums = result.sums;
  sums.launches = stats.launches;
  bool first_bytes = true;
  for (const auto& [name, stat] : stats.metrics) {
    if (stat.n == 0) continue;
    const auto found = terms_.find(name);
    if (found == terms_.end() || !Counts(found->second, stats)) continue;
    const Term& term = found->second;
    const double weight = term.weight;
    const uint64_t launches = samples_ ? stats.launches : stat.n;
    const double value = weight * Scaled(stat, launches);
    sums[term.quantity] += value;
    if (term.quantity == Quantity::kTime) {
      result.has_time = true;
      result.least_launch_ns = weight * static_cast<double>(stat.min);
      result.time_uncertainty.Add(SpreadOf(stat, launches).Times(weight));
      result.time_error_squared += weight * weight * ErrorSquared(stat, launches);
      result.time_spread_known = stat.independent() > 1 || stat.n >= launches;
    } else if (term.quantity == Quantity::kDramBytes) {
      result.has_bytes = true;
      result.shared = result.shared || stat.shared_sums > 0;
      result.bytes_uncertainty.AddDependent(SpreadOf(stat, launches).Times(weight));
      const double error = std::sqrt(result.bytes_error_squared) + weight * std::sqrt(ErrorSquared(stat, launches));
      result.bytes_error_squared = error * error;
      const bool known = stat.independent() > 1 || stat.n >= launches;
      result.bytes_spread_known = known && (result.bytes_spread_known || first_bytes);
      first_bytes = false;
    } else if (IsFlop(term.quantity)) {
      const Precision precision = PrecisionOf(term.quantity);
      if (term.legacy_path) sums[LegacyFlopIn(precision)] += value;
      result.has_flop = true;
      result.shared = result.shared || stat.shared_sums > 0;
      result.flop_uncertainty.Add(SpreadOf(stat, launches).Times(weight));
      (IsTensor(precision) ? result.has_tensor_flop : result.has_scalar_flop) = true;
    }
  }
  return result;
}

}  // namespace rfinject::cli
