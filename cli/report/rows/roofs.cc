#include "cli/report/rows/roofs.h"

#include <array>
#include <charconv>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "cli/text/units.h"
#include "gpus/chips.h"

namespace rfinject::cli {
namespace {

// What stands between commas; of an empty text one empty word.
std::vector<std::string> WordsOf(std::string_view text) { return absl::StrSplit(std::string(text), ','); }

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// "1.36T", "828.8 GB/s", "1e12"; `unit` is what may follow the prefix.
bool ParseRate(std::string_view text, std::string_view unit, double* value) {
  text = Trimmed(text);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (error != std::errc{} || !(*value > 0) || !std::isfinite(*value)) return false;
  text = Trimmed(text.substr(static_cast<size_t>(end - text.data())));
  if (text.ends_with(unit)) text.remove_suffix(unit.size());
  if (text.empty()) return true;
  constexpr std::string_view kPrefixes = "KMGTP";
  const size_t power = kPrefixes.find(text[0] == 'k' ? 'K' : text[0]);
  if (text.size() != 1 || power == std::string_view::npos) return false;
  *value *= std::pow(1000.0, static_cast<double>(power + 1));
  return true;
}

double* RateNamed(std::string_view name, Rates* rates) {
  if (name == "dram") return &rates->dram_bytes_per_s;
  if (name == "l2") return &rates->l2_bytes_per_s;
  if (name == "l1") return &rates->l1_bytes_per_s;
  for (size_t i = 0; i < kPrecisionCount; ++i) {
    if (name == kPrecisionNames[i]) return &rates->peak[i];
  }
  return nullptr;
}

void AddPeak(const Machine& machine, Precision precision, bool legacy, RoofKind kind, double peak, double bytes_per_s,
             const Sums& total, std::vector<RoofLine>* roofs) {
  if (!(peak > 0)) return;
  RoofLine roof;
  roof.precision = precision;
  // A benchmark's rate belongs to the path that the benchmark took, and no table says which that was.
  if (HasLegacyPath(machine.chip, precision) && kind != RoofKind::kEmpirical) {
    const TensorPaths paths = TensorPathNames(machine.chip);
    roof.path = legacy ? paths.legacy : paths.own;
  }
  roof.kind = kind;
  roof.peak_flop_per_s = peak;
  roof.bytes_per_s = bytes_per_s;
  roof.legacy_path = legacy;
  roof.used = UsesRoof(total, roof);
  roofs->push_back(std::move(roof));
}

void AddBandwidth(MemoryLevel level, RoofKind kind, double bytes_per_s, std::vector<RoofLine>* roofs) {
  if (!(bytes_per_s > 0)) return;
  RoofLine roof;
  roof.level = level;
  roof.kind = kind;
  roof.bytes_per_s = bytes_per_s;
  roof.used = true;
  roofs->push_back(std::move(roof));
}

void AddKind(const Machine& machine, const Rates& rates, RoofKind kind, const Sums& total,
             std::vector<RoofLine>* roofs) {
  // A benchmark of a peak says nothing of the memory: then the peak stands on the datasheet's bandwidth.
  const double dram = rates.dram_bytes_per_s > 0 ? rates.dram_bytes_per_s : machine.dram_bytes_per_s;
  bool any_peak = false;
  for (size_t i = 0; i < kPrecisionCount; ++i) {
    const auto precision = static_cast<Precision>(i);
    AddPeak(machine, precision, false, kind, rates.peak[i], dram, total, roofs);
    if (HasLegacyPath(machine.chip, precision) && kind != RoofKind::kEmpirical) {
      AddPeak(machine, precision, true, kind, rates.peak[i] * machine.legacy_share, dram, total, roofs);
    }
    any_peak |= rates.peak[i] > 0;
  }
  if (!any_peak) AddBandwidth(MemoryLevel::kDram, kind, rates.dram_bytes_per_s, roofs);
  if (total.l2_bytes() > 0) AddBandwidth(MemoryLevel::kL2, kind, rates.l2_bytes_per_s, roofs);
  if (total.l1_bytes() > 0) AddBandwidth(MemoryLevel::kL1, kind, rates.l1_bytes_per_s, roofs);
}

}  // namespace

std::string_view RoofKindName(RoofKind kind) {
  constexpr std::array<std::string_view, 3> kNames = {"datasheet", "measured clock", "empirical"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view MemoryLevelName(MemoryLevel level) {
  constexpr std::array<std::string_view, 3> kNames = {"DRAM", "L2", "L1"};
  return kNames[static_cast<size_t>(level)];
}

std::string RoofTitle(const RoofLine& roof) {
  if (!(roof.peak_flop_per_s > 0)) return std::string(MemoryLevelName(roof.level));
  const std::string_view unit = kPrecisionTitles[static_cast<size_t>(roof.precision)];
  return roof.path.empty() ? std::string(unit) : absl::StrFormat("%s (%s)", unit, roof.path);
}

std::string RoofRate(const RoofLine& roof) {
  if (!(roof.peak_flop_per_s > 0)) return WithPrefix(roof.bytes_per_s, "B/s");
  return absl::StrFormat("%.4g TFLOP/s", roof.peak_flop_per_s / 1e12);
}

std::string RoofTitleAndRate(const RoofLine& roof) { return RoofTitle(roof) + ", " + RoofRate(roof); }

absl::Status ParseRoofKinds(std::string_view text, RoofOptions* options) {
  options->datasheet = options->clock = options->empirical = false;
  for (const std::string& word : WordsOf(text)) {
    const bool all = word == "all";
    if (!all && word != "datasheet" && word != "clock" && word != "empirical") {
      return absl::InvalidArgumentError(absl::StrFormat("'%s': there are datasheet, clock, empirical and all", word));
    }
    options->datasheet |= all || word == "datasheet";
    options->clock |= all || word == "clock";
    options->empirical |= all || word == "empirical";
  }
  return absl::OkStatus();
}

absl::Status ParseUserRoofs(std::string_view text, RoofOptions* options) {
  options->empirical = true;
  for (const std::string& word : WordsOf(text)) {
    const size_t equals = word.find('=');
    const std::string_view name = Trimmed(std::string_view(word).substr(0, equals));
    double* const rate = RateNamed(name, &options->user);
    if (equals == std::string::npos || rate == nullptr) {
      std::string names;
      for (const std::string_view known : kPrecisionNames) absl::StrAppendFormat(&names, "%s, ", known);
      return absl::InvalidArgumentError(
          absl::StrFormat("'%s': wanted is NAME=VALUE, where NAME is one of %sdram, l2, l1", word, names));
    }
    const std::string_view unit = name == "dram" || name == "l2" || name == "l1" ? "B/s" : "FLOP/s";
    if (!ParseRate(std::string_view(word).substr(equals + 1), unit, rate)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("'%s': wanted is a number with an SI prefix, like 1.36T%s", word, unit));
    }
  }
  return absl::OkStatus();
}

double MeasuredSmClock(const Run& run, const std::map<std::string, MetricInfo>& metrics) {
  const auto scale = [&](std::string_view name) {
    const auto info = metrics.find(std::string(name));
    return info == metrics.end() ? 1.0 : info->second.scale;
  };
  const double cycle_scale = scale(kGpuCyclesMetric), ns_scale = scale(kGpuTimeMetric),
               hz_scale = scale(kSmClockMetric);
  double cycles = 0, cycle_ns = 0, hz = 0, weight = 0;
  for (const auto& [key, stats] : run.launches) {
    const auto find = [&metrics_of_key = stats.metrics](std::string_view name) -> const Stat* {
      const auto found = metrics_of_key.find(std::string(name));
      return found != metrics_of_key.end() && found->second.n > 0 && found->second.sum > 0 ? &found->second : nullptr;
    };
    const Stat* const time = find(kGpuTimeMetric);
    const auto launches = static_cast<double>(stats.launches);
    // Means, because the two may come from passes of different number.
    if (const Stat* const count = find(kGpuCyclesMetric); count != nullptr && time != nullptr) {
      cycles += count->mean() * cycle_scale * launches;
      cycle_ns += time->mean() * ns_scale * launches;
    }
    if (const Stat* const clock = find(kSmClockMetric); clock != nullptr) {
      const double ns = (time != nullptr ? time->mean() * ns_scale : 1) * launches;
      hz += clock->mean() * hz_scale * ns;
      weight += ns;
    }
  }
  if (weight > 0) return hz / weight;
  return cycle_ns > 0 ? cycles / cycle_ns * 1e9 : 0;
}

bool UsesRoof(const Sums& sums, const RoofLine& roof) {
  if (!(roof.peak_flop_per_s > 0)) return true;
  const double flop = sums[FlopIn(roof.precision)], legacy = sums[LegacyFlopIn(roof.precision)];
  if (roof.path.empty()) return flop > 0;
  return roof.legacy_path ? legacy > 0 : flop > legacy;
}

std::vector<RoofLine> MakeRoofs(const Machine& machine, const Sums& total, double sm_hz, const RoofOptions& options) {
  std::vector<RoofLine> roofs;
  if (options.datasheet) AddKind(machine, machine, RoofKind::kDatasheet, total, &roofs);
  if (options.clock && sm_hz > 0) {
    Rates rates;
    double sm_clock = 0;
    for (size_t i = 0; i < kPrecisionCount; ++i) {
      if (machine.peak_hz[i] <= 0) continue;
      rates.peak[i] = machine.peak[i] * sm_hz / machine.peak_hz[i];
      if (static_cast<Precision>(i) == Precision::kFp32) sm_clock = machine.peak_hz[i];
    }
    // L1 runs at the SM's clock; L2 and DRAM have clocks of their own, which no counter here tells.
    if (sm_clock > 0) rates.l1_bytes_per_s = machine.l1_bytes_per_s * sm_hz / sm_clock;
    AddKind(machine, rates, RoofKind::kMeasuredClock, total, &roofs);
  }
  if (options.empirical) {
    Rates rates = machine.empirical;
    for (size_t i = 0; i < kPrecisionCount; ++i) {
      if (options.user.peak[i] > 0) rates.peak[i] = options.user.peak[i];
    }
    for (double Rates::*const rate : {&Rates::dram_bytes_per_s, &Rates::l2_bytes_per_s, &Rates::l1_bytes_per_s}) {
      if (options.user.*rate > 0) rates.*rate = options.user.*rate;
    }
    AddKind(machine, rates, RoofKind::kEmpirical, total, &roofs);
  }
  return roofs;
}

}  // namespace rfinject::cli
