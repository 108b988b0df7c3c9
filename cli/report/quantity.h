// File: quantity.h
//
// The quantities that a report sums up: one table of them, and Sums, which holds one number of each. Everything that
// treats all quantities alike (addition, one step's part, the columns of outputs, the metrics that an import keeps)
// walks the table, so a new quantity is an enumerator here and a line in quantity.cc.
//
// All of them add up: over launches, kernels, layers, phases and runs. What does not (a rate, a share, an intensity)
// follows from them and is a column (column.h).
#ifndef RFINJECT_CLI_REPORT_QUANTITY_H_
#define RFINJECT_CLI_REPORT_QUANTITY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "cli/model/roofline.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

enum class Quantity : uint8_t {
  kTime,
  kFlop,                                  // the first of kPrecisionCount: FlopIn(precision)
  kLegacyFlop = kFlop + kPrecisionCount,  // likewise: LegacyFlopIn(precision)
  kModelFlop = kLegacyFlop + kPrecisionCount,
  kDramBytes,
  kCompulsoryBytes,
  kL2Bytes,
  kL1Bytes,
  kLeastCompute,
  kLeastMemory,
  kLeast,
  kTimeWithCounters,
  // Of estimated runs, whose kTime is the expected one (expect.h); 0 where no expected time is known.
  kIdealTime,  // what the datasheet's roofline allows
  kTimeLow,    // the ends of the 80 % interval of kTime
  kTimeHigh,
  kWinogradTime,  // of kTime, convolutions that execute fewer FLOP than are counted
  kForeignTime,   // of kTime, operators whose parameters come from other GPUs
  kEnd,
};
inline constexpr size_t kQuantityCount = static_cast<size_t>(Quantity::kEnd);

// Executed FLOP of one precision (measured), or what is taken as executed (estimated).
constexpr Quantity FlopIn(Precision precision) {
  return static_cast<Quantity>(static_cast<size_t>(Quantity::kFlop) + static_cast<size_t>(precision));
}
// Of them, those over the legacy tensor path (GH100's mma.sync beside wgmma).
constexpr Quantity LegacyFlopIn(Precision precision) {
  return static_cast<Quantity>(static_cast<size_t>(Quantity::kLegacyFlop) + static_cast<size_t>(precision));
}

// A metric of a trace that counts towards a quantity: quantity += value of the metric.
struct MetricName {
  std::string_view name;
  // Pairs of metrics that say the same thing better. When both of a pair were sampled, this one does not count.
  std::array<std::array<std::string_view, 2>, 2> better = {};
};

// What the number 0 means.
enum class Zero : uint8_t {
  kValue,         // it is a value like any other
  kUnknown,       // nothing was measured
  kUnknownRoofs,  // no value where the GPU's roofs are not known; a value elsewhere
};

struct QuantityInfo {
  Quantity id{};
  std::string_view name;   // of the column in CSV and JSON, with its unit; empty: no column of its own
  std::string_view title;  // of the column on the page
  std::string_view unit;   // "ns", "FLOP", "B"
  int page = 0;            // the column's place on the page (row_set.h)
  Zero zero = Zero::kValue;
  std::span<const MetricName> metrics = {};  // besides FlopFormula(chip), which names those of FLOP by chip
};

// One a Quantity, in the order of the enumerators, which is the order of the columns.
std::span<const QuantityInfo, kQuantityCount> AllQuantities();

// The amounts of one thing (a kernel, a layer, a run) over all launches of the measured steps. What was sampled is
// scaled up to the launches it stands for: value = mean of the samples * launches.
class Sums {
 public:
  uint64_t launches = 0;

  double operator[](Quantity quantity) const { return values_[static_cast<size_t>(quantity)]; }
  double& operator[](Quantity quantity) { return values_[static_cast<size_t>(quantity)]; }

  // Names for those that are read in many places.
  double time_ns() const { return (*this)[Quantity::kTime]; }
  double model_flop() const { return (*this)[Quantity::kModelFlop]; }
  double dram_bytes() const { return (*this)[Quantity::kDramBytes]; }
  double compulsory_bytes() const { return (*this)[Quantity::kCompulsoryBytes]; }
  double l2_bytes() const { return (*this)[Quantity::kL2Bytes]; }
  double l1_bytes() const { return (*this)[Quantity::kL1Bytes]; }
  double least_compute_ns() const { return (*this)[Quantity::kLeastCompute]; }  // sum over kernels of FLOP time
  double least_memory_ns() const { return (*this)[Quantity::kLeastMemory]; }    // sum over kernels of byte time
  double least_ns() const { return (*this)[Quantity::kLeast]; }  // sum over kernels of the longer of the two
  // Of time_ns, the part whose kernels have FLOP and bytes.
  double time_with_counters_ns() const { return (*this)[Quantity::kTimeWithCounters]; }

  double ideal_ns() const { return (*this)[Quantity::kIdealTime]; }

  FlopByPrecision flop() const { return ByPrecision(Quantity::kFlop); }
  FlopByPrecision legacy_flop() const { return ByPrecision(Quantity::kLegacyFlop); }
  double total_flop() const;
  double total_legacy_flop() const;

  void Add(const Sums& other);
  // Of one of `steps` equal steps; launches are rounded.
  Sums OfOneStep(double steps) const;

 private:
  FlopByPrecision ByPrecision(Quantity first) const;

  std::array<double, kQuantityCount> values_{};
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_QUANTITY_H_
