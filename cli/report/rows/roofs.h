// File: roofs.h
//
// Chooses which roofs a report draws, and where these come from. There are three kinds, which are kept apart
// everywhere (RoofLine::kind):
//   datasheet        the vendor's peaks, of the SKU; what attainable and R001 are held against
//   measured clock   the datasheet's peaks times the SM clock that the run's counters saw over the datasheet's clock
//   empirical        what a benchmark reached: published figures of gpus.csv, or what the user measured and says
//
//   RoofOptions options;
//   absl::Status status = ParseRoofKinds("datasheet,empirical", &options);
//   status = ParseUserRoofs("bf16_tc=271.2T,dram=1.36T", &options);
#ifndef RFINJECT_CLI_REPORT_ROWS_ROOFS_H_
#define RFINJECT_CLI_REPORT_ROWS_ROOFS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "cli/model/roofline.h"
#include "cli/profile/profile.h"
#include "cli/report/keys/quantity.h"

namespace rfinject::cli {

// Where a roof is from (roofs.h), and which memory its bandwidth is of.
enum class RoofKind : uint8_t { kDatasheet, kMeasuredClock, kEmpirical };
enum class MemoryLevel : uint8_t { kDram, kL2, kL1 };

struct RoofLine {
  Precision precision{};  // of a peak
  std::string path;       // "mma", "wgmma"; empty where the chip has one path
  MemoryLevel level{};
  RoofKind kind{};
  double peak_flop_per_s = 0;  // 0: a bandwidth alone, of no precision
  double bytes_per_s = 0;
  bool used = false;         // some FLOP of the run ran in this precision, over this path
  bool legacy_path = false;  // of a chip with two paths, the slower one
};

// "datasheet", "measured clock", "empirical"; "DRAM", "L2", "L1".
std::string_view RoofKindName(RoofKind kind);
std::string_view MemoryLevelName(MemoryLevel level);
// What a roof is the limit of, "TF32 tensor", "FP16 tensor (mma)" or "L2", and the limit, "156 TFLOP/s" or "5.4
// TB/s".
std::string RoofTitle(const RoofLine& roof);
std::string RoofRate(const RoofLine& roof);
std::string RoofTitleAndRate(const RoofLine& roof);  // with a comma between

struct RoofOptions {
  bool datasheet = true, clock = false, empirical = false;
  Rates user;  // empirical ones; they replace the published ones of the same name
};

// Reads "datasheet", "clock", "empirical" or "all", with commas between. Returns InvalidArgument for any other word;
// the message names it and the words that there are.
absl::Status ParseRoofKinds(std::string_view text, RoofOptions* options);

// NAME=VALUE with commas between: NAME is a precision (kPrecisionNames) in FLOP/s, or dram, l2 or l1 in bytes/s;
// VALUE a number with an SI prefix: "1.36T", "828.8 GB/s". Switches the empirical roofs on. InvalidArgument names
// the word that is not such a pair.
absl::Status ParseUserRoofs(std::string_view text, RoofOptions* options);

// Returns the mean SM clock in Hz over the launches that have it, weighted by their time: cycles over time, or the
// clock's own metric; 0 where the trace has neither. Both come from counter passes, whose clock is the run's if
// nothing locks it.
double MeasuredSmClock(const Run& run, const std::map<std::string, MetricInfo>& metrics);

// Whether FLOP of `sums` ran against this roof: in its precision and, where the chip has two paths, over its path. A
// bandwidth is always in use.
bool UsesRoof(const Sums& sums, const RoofLine& roof);

// Makes the roofs of `machine` that `options` ask for, by kind, then by precision; those of L2 and L1 only where the
// run has their bytes. A chip with two tensor paths has a roof for each. `total` says which of them the run uses.
std::vector<RoofLine> MakeRoofs(const Machine& machine, const Sums& total, double sm_hz, const RoofOptions& options);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_ROWS_ROOFS_H_
