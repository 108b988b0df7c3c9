// File: theory.h
//
// Puts theory beside measurement: the model FLOP and the compulsory bytes of an estimated run go into the report of a
// run of the same network that has none (a measurement, an import).
#ifndef RFINJECT_CLI_REPORT_FACTS_THEORY_H_
#define RFINJECT_CLI_REPORT_FACTS_THEORY_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/profile/profile.h"
#include "cli/report/facts/fact.h"
#include "cli/report/rows/row.h"

namespace rfinject::cli {

// Model FLOP and compulsory bytes that come from another run, an estimate (theory.h).
struct TheoryUse {
  enum class State : uint8_t {
    kNone,     // none was asked for, or the run has its own
    kMissing,  // the estimates given hold no run of this network and mode
    kApplied,
  };
  State state = State::kNone;
  std::string model;  // of the estimate
  uint64_t batch_size = 0;
  uint64_t samples = 0, steps = 0;  // what the run's work was taken as; both 0: one step of the estimate's batch
  bool bytes = false;               // the batches agree, so compulsory bytes are the run's too
  // Layers of the run that the estimate does not have, where they are too many for the same network.
  uint64_t missing_layers = 0, layers = 0;
  std::string missing_layer;  // one of them
};

// What explains executed FLOP / model FLOP of a row; "" where either is unknown.
//   not counted    executed 0, or below what any known algorithm needs (kExecutedOverModelLow)
//   Winograd, FFT  fewer, in a convolution
//   fewer          fewer, elsewhere
//   as the model   within 3 %
//   padding        more, up to twice: tiles and channels filled up
//   recomputation  more than in the model, in the phase that runs a forward again, or about twice
//   unexplained    more than twice
std::string_view ReasonOf(const Row& row);

// The run of `theory` that is of the report's network: the same class and parameters or the same name, training where
// the report is (imports do not say), the batch size nearest. nullptr when there is none.
const Run* FindTheory(const Profile& theory, const Report& report, const std::vector<ProcessInfo>& processes);

// Counts the layers of `run` that `theory` does not have into `use`, where they are so many that it is of another
// network, or of another version of it.
void FindDifferingLayers(const Run& theory, const Run& run, TheoryUse* use);

// Fills model_flop and compulsory_bytes of all rows and of the total. `theory` is the folding of the estimated run by
// the same By. Rows are matched by model, layer, phase and operator; work that the run lacks was not counted and
// becomes a row without launches, so that sums stay right. The run's work is taken from its samples, else from its
// steps, else as one step of the theory's batch. Compulsory bytes are filled in only where the run has none and its
// batch is the theory's, because weights do not grow with the batch. Returns what was done; nothing where the run has
// model FLOP of its own.
TheoryUse ApplyTheory(const Report& theory, Report& report);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FACTS_THEORY_H_
