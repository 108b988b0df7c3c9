// File: alarm.h
//
// What the checks of invariants.h have found wrong, as numbers. The sentences are made where they are printed
// (cli/words/words.h).
#ifndef RFINJECT_CLI_REPORT_ALARM_H_
#define RFINJECT_CLI_REPORT_ALARM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

// R001: the least time that the roofs allow is longer than the time taken.
struct AboveRoof {
  double flop = 0, bytes = 0, taken_ns = 0, least_ns = 0;
  double ratio = 0;  // least over taken
};
// R002: faster than the memory of `machine`.
struct AboveBandwidth {
  double bytes_per_s = 0, limit_bytes_per_s = 0;
  double ratio = 0;  // of the two
  std::string machine;
};
// R003: FLOP of a precision for which `machine` has no unit.
struct MissingUnit {
  Precision precision{};
  double flop = 0;
  std::string machine;
};
// R003: faster than a unit's peak, or than one of its paths ("mma"; empty: the unit's own).
struct AbovePeak {
  Precision precision{};
  double flop_per_s = 0, peak_flop_per_s = 0;
  double ratio = 0;  // of the two
  std::string path;
};
// R004: a kernel named for tensor cores without tensor FLOP.
struct NoTensorFlop {
  bool counted = false;  // a tensor counter was collected, and it is 0
};
// R005: model FLOP of the backward over those of the forward, of a layer or of the whole run.
struct OddBackward {
  double ratio = 0;
  bool low = false;
  double most = 0;  // that such a layer may need; 0: the whole run's
};
// R005: what share of the backward's model FLOP is in no layer.
struct BackwardWithoutLayer {
  double share = 0;
};
// R006: `what` is a column; the sum of the rows, and the whole run's.
struct RowsDoNotAddUp {
  std::string what;
  double rows = 0, total = 0;
};
// R007: a count that differs between the launches of one key.
struct VaryingCount {
  std::string metric;
  uint64_t least = 0, most = 0;
};
// R008: GPU time and wall time of a step.
struct LongerThanTheStep {
  double gpu_ns = 0, wall_ns = 0;
};
// R009: executed FLOP over the model's.
struct OddFlop {
  double ratio = 0;
  bool low = false;
};
// R010: the fastest SM clock over the slowest.
struct ClockDrift {
  double ratio = 0;
};
// R011: a counter of sparse FLOP is not 0.
struct SparseFlop {
  std::string metric;
};
// R012: a value that no counter reaches.
struct HugeValue {
  std::string metric;
  double value = 0;
};
// R012: a long kernel that moved nothing.
struct NoBytes {
  double launch_ns = 0;
};
// This many more findings of one kind, with less time.
struct MoreOfThisKind {
  size_t count = 0;
};

// A kernel, and where it runs; no kernel: all of a layer.
struct AlarmPlace {
  std::string model, layer;
  Phase phase{};
  std::string kernel;
};

struct Alarm {
  std::string id;  // "R004"
  std::variant<AboveRoof, AboveBandwidth, MissingUnit, AbovePeak, NoTensorFlop, OddBackward, BackwardWithoutLayer,
               RowsDoNotAddUp, VaryingCount, LongerThanTheStep, OddFlop, ClockDrift, SparseFlop, HugeValue, NoBytes,
               MoreOfThisKind>
      finding;
  std::optional<AlarmPlace> where;  // nothing: the whole run
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_ALARM_H_
