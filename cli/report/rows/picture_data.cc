#include "cli/report/rows/picture_data.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "cli/report/alarms/invariants.h"
#include "cli/report/rows/repeated_blocks.h"

namespace rfinject::cli {
namespace {

template <typename Wanted>
RowShare ShareOf(const Report& report, const Wanted& wanted) {
  RowShare share;
  for (const Row& row : PictureRows(report)) {
    if (!(row.sums.time_ns() > 0) || row.member_of >= 0 || !wanted(row)) continue;
    ++share.rows;
    share.time_share += row.time_share;
  }
  return share;
}

bool IsKnownHalfWidth(double relative) { return relative > 0 && relative < 1; }

}  // namespace

std::span<const Row> PictureRows(const Report& report) {
  if (report.by == By::kLayer && !report.layer_phases.empty()) return report.layer_phases;
  if (report.by == By::kClass && !report.group_phases.empty()) return report.group_phases;
  return report.rows;
}

std::optional<Report> GroupedForPage(const Report& report) {
  if (report.by != By::kLayer) return std::nullopt;
  RepeatedBlocks repeated = FindRepeatedBlocks(report.layer_phases);
  if (repeated.groups.empty()) return std::nullopt;
  Report grouped = report;
  std::vector<Row>& rows = grouped.layer_phases;
  const auto first = static_cast<int64_t>(rows.size());
  for (size_t i = 0; i < repeated.group_of.size(); ++i) {
    if (repeated.group_of[i] >= 0) rows[i].member_of = first + repeated.group_of[i];
  }
  std::move(repeated.groups.begin(), repeated.groups.end(), std::back_inserter(rows));
  return grouped;
}

double PerStep(const Report& report, double sum) {
  return report.steps.count > 0 ? sum / static_cast<double>(report.steps.count) : sum;
}

int DominantPrecision(const FlopByPrecision& flop) {
  int best = -1;
  for (size_t p = 0; p < kPrecisionCount; ++p) {
    if (flop[p] > 0 && (best < 0 || flop[p] > flop[static_cast<size_t>(best)])) best = static_cast<int>(p);
  }
  return best;
}

double RidgeOf(const RoofLine& roof) {
  return roof.peak_flop_per_s > 0 && roof.bytes_per_s > 0 ? roof.peak_flop_per_s / roof.bytes_per_s : 0;
}

double BandwidthRoof(const Report& report) {
  if (report.machine.dram_bytes_per_s > 0) return report.machine.dram_bytes_per_s;
  double best = 0;
  for (const RoofLine& roof : report.roofs) {
    if (roof.level == MemoryLevel::kDram) best = std::max(best, roof.bytes_per_s);
  }
  return best;
}

double ShareOfBandwidth(const Report& report, const Row& row) {
  const double roof = BandwidthRoof(report);
  return roof > 0 ? row.derived.bandwidth_bytes_per_s / roof : 0;
}

bool AboveRoof(const Report& report, const Row& row) {
  // Winograd executes fewer FLOP than are counted, so it is no error that it is faster than its roof.
  if (row.sums[Quantity::kWinogradTime] > 0) return false;
  if (row.sums.total_flop() > 0) {
    return row.derived.attainable_flop_per_s > 0 &&
           row.derived.performance_flop_per_s > row.derived.attainable_flop_per_s * kRoofTolerance;
  }
  return ShareOfBandwidth(report, row) > kRoofTolerance;
}

double IntensityOver(const Sums& sums, double bytes) { return bytes > 0 ? sums.total_flop() / bytes : 0; }

Interval IntensityInterval(const Row& row) {
  const double oi = row.derived.oi_flop_per_byte;
  if (!IsKnownHalfWidth(row.bytes.relative)) return {oi, oi};
  return {oi / (1 + row.bytes.relative), oi / (1 - row.bytes.relative)};
}

Interval PerformanceInterval(const Row& row) {
  const double performance = row.derived.performance_flop_per_s;
  if (!IsKnownHalfWidth(row.time.relative)) return {performance, performance};
  return {performance / (1 + row.time.relative), performance / (1 - row.time.relative)};
}

RowShare WithoutFlop(const Report& report) {
  return ShareOf(report, [](const Row& row) { return !(row.sums.total_flop() > 0); });
}

RowShare WithoutLeastTimes(const Report& report) {
  return ShareOf(report, [](const Row& row) { return !HasLeastTimes(row); });
}

bool HasLeastTimes(const Row& row) {
  const double compute_ns = row.sums.least_compute_ns(), memory_ns = row.sums.least_memory_ns();
  return (compute_ns > 0 || memory_ns > 0) && std::isfinite(compute_ns) && std::isfinite(memory_ns);
}

std::vector<Row> PhaseTotals(const Report& report) {
  std::vector<Row> phases;
  for (const Row& row : report.phases) {
    const auto same = std::find_if(phases.begin(), phases.end(), [&](const Row& p) { return p.phase == row.phase; });
    if (same == phases.end()) {
      phases.push_back(row);
    } else {
      same->sums.Add(row.sums);
      same->time_share += row.time_share;
    }
  }
  for (Row& row : phases) row.derived = Derive(row.sums);
  return phases;
}

std::vector<double> Shares(std::span<const double> values) {
  double total = 0;
  for (const double value : values) total += value;
  std::vector<double> shares;
  if (!(total > 0)) return shares;
  for (const double value : values) shares.push_back(value / total);
  return shares;
}

}  // namespace rfinject::cli
