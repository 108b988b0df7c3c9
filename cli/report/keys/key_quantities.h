// File: key_quantities.h
//
// Computes the quantities (quantity.h) of a launch key from its metrics. Each quantity is a linear sum of them. A
// metric that no table names is kept in the trace and shown by `dump` only.
#ifndef RFINJECT_CLI_REPORT_KEYS_KEY_QUANTITIES_H_
#define RFINJECT_CLI_REPORT_KEYS_KEY_QUANTITIES_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cli/model/statistics.h"
#include "cli/profile/profile.h"
#include "cli/report/keys/quantity.h"
#include "cli/report/keys/sampled_run.h"

namespace rfinject::cli {

// The sums of one launch key, scaled from the samples to all launches, without the least times (which need a
// machine), and the variances of the estimates that the scaling makes.
struct KeyQuantities {
  Sums sums;
  double least_launch_ns = 0;  // the shortest launch; 0: unknown
  // Counted as arithmetic in half precision, and none: the compiler moves constants with HFMA2. No FLOP.
  double constant_moves = 0;
  bool has_time = false;         // some launch's time was sampled, even if it was 0
  bool has_flop = false;         // some counter of FLOP was sampled
  bool has_tensor_flop = false;  // some counter of tensor FLOP was sampled, even if it counted 0
  bool has_scalar_flop = false;
  bool has_bytes = false;
  // FLOP or bytes were counted for the key's layer and phase as a whole; the key has an equal share a launch.
  bool shared = false;
  // Errors by launch, for traces that have no sums by step (sampled_run.h has the others). Squared 95 % confidence
  // half-widths of time_ns and dram_bytes; 0 when every launch was sampled. Bytes read and bytes written, where they
  // are two metrics, err together. Those of shares (shared) are fully dependent within a layer and phase.
  double time_error_squared = 0;
  double bytes_error_squared = 0;
  // How much time_ns, FLOP and dram_bytes would differ in another run of the same program. Unlike the two above these
  // are not 0 where every launch was sampled, because the launches of two runs are samples of what the runs have in
  // common.
  Uncertainty time_uncertainty, flop_uncertainty, bytes_uncertainty;
  // False: there is no sample, or one alone, which says nothing of how far it may be off.
  bool time_spread_known = false, bytes_spread_known = false;
};

// Reads the launch keys of one run.
class KeyReader {
 public:
  // `metrics` are Profile::metrics, and `run` is one of its. `chip` ("GA100") selects the formulas over hardware
  // counters (gpus/chips.h); empty: only those of rfinject's own metrics are known. An estimate says all of every
  // launch: one without a metric had none of it, as where a program turns TF32 on between two steps. Counters sample
  // launches, and the others are like those.
  KeyReader(const std::map<std::string, MetricInfo>& metrics, std::string_view chip, const Run& run);

  KeyQuantities Read(const LaunchKey& key, const LaunchStats& stats) const;

 private:
  struct Term {
    Quantity quantity{};
    double weight = 1;  // quantity += weight * metric
    bool legacy_path = false;
    // When every metric of one of these lists was sampled, this term does not count: they are better counts of the
    // same thing.
    std::vector<std::vector<std::string>> better;
  };
  static bool Counts(const Term& term, const LaunchStats& stats);
  KeyQuantities ReadAll(const LaunchStats& stats) const;
  bool HasHalfPrecision(const Run& run) const;

  absl::flat_hash_map<std::string, Term> terms_;  // by metric
  bool samples_;                                  // launches without a metric are like those that have it
  bool measured_;
  bool has_half_precision_ = false;  // some kernel of the run has operands of 16 bits or fewer
};

// As Read, with time and bytes those of the run's ordinary steps, and with spreads known where steps were sampled.
KeyQuantities ReadSampled(const KeyReader& reader, const SampledRun& sampled, const LaunchKey& key,
                          const LaunchStats& stats);

// The squared 95 % confidence half-width of mean * launches, from the Student t distribution; 0 when n < 2 (unknown)
// or when every launch was sampled (exact).
double ErrorSquared(const Stat& stat, uint64_t launches);

// The uncertainty of mean * launches as an estimate of what `launches` launches take on average.
Uncertainty SpreadOf(const Stat& stat, uint64_t launches);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_KEYS_KEY_QUANTITIES_H_
