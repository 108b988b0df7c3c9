// File: picture_data.h
//
// The numbers of a report that pictures and the page show and that no field of Report holds. A picture computes
// places only, so that a number is the same wherever it appears.
#ifndef RFINJECT_CLI_REPORT_ROWS_PICTURE_DATA_H_
#define RFINJECT_CLI_REPORT_ROWS_PICTURE_DATA_H_

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "cli/report/report.h"

namespace rfinject::cli {

// The rows that the pictures show: by layer they are split by phase where the report has that split.
std::span<const Row> PictureRows(const Report& report);

// For the page, the report of a model with repeated blocks: its PictureRows are first all layers, then a row for each
// group of equal ones, which its layers name (Row::member_of). Nothing where no layer is repeated.
std::optional<Report> GroupedForPage(const Report& report);

// A sum over all measured steps as a step's; the sum itself where steps are unknown.
double PerStep(const Report& report, double sum);

// The precision that most of the FLOP ran in; -1 without FLOP.
int DominantPrecision(const FlopByPrecision& flop);

// The ridge of a roof in FLOP per byte: where its peak meets its bandwidth; 0 where it lacks one of them.
double RidgeOf(const RoofLine& roof);

// The DRAM bandwidth in bytes/s that rows without FLOP are held against: the datasheet's, else the highest roof's;
// 0: unknown.
double BandwidthRoof(const Report& report);

// The DRAM bandwidth of a row as a share of that roof; 0 where one of them is unknown.
double ShareOfBandwidth(const Report& report, const Row& row);

// Whether the row took less time than its least time, or moved bytes faster than the bandwidth roof, by more than
// kRoofTolerance (invariants.h, R001 and R002).
bool AboveRoof(const Report& report, const Row& row);

// FLOP over the bytes of one level of the memory, in FLOP/byte; 0 where the bytes are unknown.
double IntensityOver(const Sums& sums, double bytes);

// A 95 % confidence interval.
struct Interval {
  double low = 0, high = 0;
};
// That of the row's operational intensity, whose error is that of the bytes, and of its performance, whose error is
// that of the time. Both ends are the value itself where the half-width is unknown or as large as the value.
Interval IntensityInterval(const Row& row);
Interval PerformanceInterval(const Row& row);

// Some of the picture's rows, as a count and as a share of GPU time.
struct RowShare {
  size_t rows = 0;
  double time_share = 0;
};
// Those that took time and have no FLOP.
RowShare WithoutFlop(const Report& report);
// Those that took time and have no least times: no FLOP and no bytes, or no roofs.
RowShare WithoutLeastTimes(const Report& report);
bool HasLeastTimes(const Row& row);

// The phases of a step. Report::phases are a row a model and a phase; here the models are added up.
std::vector<Row> PhaseTotals(const Report& report);

// The shares of `values` in their sum; empty where the sum is not above 0.
std::vector<double> Shares(std::span<const double> values);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_ROWS_PICTURE_DATA_H_
