#include "cli/import/ncu/repeats.h"

#include <utility>

#include "absl/hash/hash.h"

namespace rfinject::cli {
namespace {

// How many launches are remembered, and how long the text of one may be. The limits keep memory from growing with the
// file.
constexpr size_t kLaunches = 4096;
constexpr size_t kLongestIdentity = 4096;  // bytes

// A collision costs time, but no wrong result.
size_t SlotOf(std::string_view text) { return absl::HashOf(text) % kLaunches; }

}  // namespace

const NcuMetricLine::Unit* NcuMetricLine::FindUnit(std::string_view unit) const {
  for (const Unit& candidate : units) {
    if (candidate.unit == unit) return &candidate;
  }
  return nullptr;
}

std::string RawMetric(const CsvLine& line, size_t tail) {
  std::string raw;
  for (size_t i = line.size() - tail; i + 2 < line.size(); ++i) {
    if (line[i].find('"') != std::string_view::npos) return {};
    raw.append("\"").append(line[i]).append("\",");
  }
  return raw + '"';
}

std::optional<NcuValue> MatchMetric(const NcuMetricLine& known, std::string_view rest) {
  if (known.raw.empty() || !rest.starts_with(known.raw)) return std::nullopt;
  rest.remove_prefix(known.raw.size());
  const size_t quote = rest.find('"');
  if (quote == std::string_view::npos || rest.substr(quote + 1, 2) != ",\"") return std::nullopt;
  const std::string_view unit = rest.substr(0, quote);
  rest.remove_prefix(quote + 3);
  if (rest.empty() || rest.find('"') != rest.size() - 1) return std::nullopt;
  rest.remove_suffix(1);
  const NcuMetricLine::Unit* const found = known.FindUnit(unit);
  if (found == nullptr) return std::nullopt;
  return NcuValue{found, rest};
}

std::optional<NcuFirstLine> MatchFirstLine(const NcuMetricLine& known, std::string_view open_id,
                                           std::string_view line) {
  if (known.raw.empty() || line.size() < 2 || line.back() != '"') return std::nullopt;
  const size_t identity_at = IdentityOffset(line);
  if (identity_at == 0) return std::nullopt;
  const std::string_view id = line.substr(1, identity_at - 3);
  if (id == open_id) return std::nullopt;
  // From the end: the value, the unit, and the first metric that every kernel begins with.
  const size_t value_at = line.rfind('"', line.size() - 2);
  if (value_at == std::string_view::npos || value_at < identity_at + 3) return std::nullopt;
  if (line.substr(value_at - 2, 2) != "\",") return std::nullopt;
  const size_t unit_at = line.rfind('"', value_at - 3);
  if (unit_at == std::string_view::npos) return std::nullopt;
  const std::string_view head = line.substr(0, unit_at + 1);
  if (head.size() <= identity_at + known.raw.size() || !head.ends_with(known.raw)) return std::nullopt;
  const size_t repeated = head.size() - known.raw.size();
  const NcuMetricLine::Unit* const unit = known.FindUnit(line.substr(unit_at + 1, value_at - 2 - unit_at - 1));
  if (unit == nullptr) return std::nullopt;
  return NcuFirstLine{.id = id,
                      .identity = line.substr(identity_at, repeated - identity_at),
                      .repeated = repeated,
                      .value = {unit, line.substr(value_at + 1, line.size() - value_at - 2)}};
}

size_t IdentityOffset(std::string_view line) {
  if (line.empty() || line[0] != '"') return 0;
  size_t i = 1;
  while (i < line.size() && line[i] >= '0' && line[i] <= '9') ++i;
  return i > 1 && line.substr(i, 2) == "\"," ? i + 2 : 0;
}

const NcuLaunchMemory::Launch* NcuLaunchMemory::Find(std::string_view identity) const {
  if (launches_.empty()) return nullptr;
  const Launch& launch = launches_[SlotOf(identity)];
  return launch.sum != nullptr && launch.identity == identity ? &launch : nullptr;
}

void NcuLaunchMemory::Remember(std::string identity, std::string process, NcuKernelSum* sum) {
  if (identity.empty() || identity.size() > kLongestIdentity) return;
  if (launches_.empty()) launches_.resize(kLaunches);
  Launch& launch = launches_[SlotOf(identity)];
  launch = {std::move(identity), std::move(process), sum};
}

}  // namespace rfinject::cli
