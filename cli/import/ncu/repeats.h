// File: repeats.h
//
// Most lines of a long file of Nsight Compute repeat another line in all but the value: kernels list the same metrics
// in the same order, and the same kernels are launched again and again. What is equal to bytes that were split into
// fields once holds the same fields, so such a line is compared and not split. A quote inside a value or a unit makes
// a line match nothing; tables of another shape than ncu's own (NcuColumns::regular) are not looked at.
#ifndef RFINJECT_CLI_IMPORT_NCU_REPEATS_H_
#define RFINJECT_CLI_IMPORT_NCU_REPEATS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/import/ncu/csv_line.h"
#include "cli/import/ncu/kernels.h"

namespace rfinject::cli {

// The metric that stands at one place of every kernel's list.
struct NcuMetricLine {
  struct Unit {
    std::string unit;
    std::optional<double> factor;  // what a value in it is to be multiplied with; nullopt: it does not fit the metric
  };

  std::string section, name;
  std::string raw;  // the two as the line has them, up to the unit's opening quote; empty: nothing is compared
  int metric = -1;  // index into NcuMetrics; -1: not kept
  std::vector<Unit> units;

  const Unit* FindUnit(std::string_view unit) const;
};

// The text of a line of a regular table, split into `line`, from its section's or metric's quote up to and with the
// unit's, when all of its last `tail` fields are quoted and nothing in them is escaped; else empty.
std::string RawMetric(const CsvLine& line, size_t tail);

struct NcuValue {
  const NcuMetricLine::Unit* unit;
  std::string_view text;
};

// `rest` of a line, which begins with its section or metric, as a line of `known`; nullopt when it is none.
std::optional<NcuValue> MatchMetric(const NcuMetricLine& known, std::string_view rest);

struct NcuFirstLine {
  std::string_view id;
  std::string_view identity;  // what stands between the ID and the metric
  size_t repeated;            // length of the part before the metric
  NcuValue value;
};

// Reads `line` as the first line of a new launch, whose first metric is `known`. Returns nullopt where it is another
// line, and where it belongs to the launch that is open (`open_id`).
std::optional<NcuFirstLine> MatchFirstLine(const NcuMetricLine& known, std::string_view open_id,
                                           std::string_view line);

// Returns the length of the ID that a line begins with (`"123",`), or 0 where it begins with something else.
size_t IdentityOffset(std::string_view line);

// The launches that were seen last, by the text that identifies them.
class NcuLaunchMemory {
 public:
  struct Launch {
    std::string identity;         // the text between the ID and the metric
    std::string process;          // its ID
    NcuKernelSum* sum = nullptr;  // where its launches are summed up
  };

  // nullptr when no launch of this identity is remembered.
  const Launch* Find(std::string_view identity) const;
  void Remember(std::string identity, std::string process, NcuKernelSum* sum);
  void Clear() { launches_.clear(); }

 private:
  std::vector<Launch> launches_;  // each at the place that its hash gives
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_NCU_REPEATS_H_
