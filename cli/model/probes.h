// File: probes.h
//
// Says what `rfinject calibrate` times on the user's own GPU, and makes from the times the parameters of
// calibration.h that tell one GPU from another. The parameters of shapes (tiles, waves, caches) stay as
// calibration/fit found them from thousands of times; two dozen cannot say more.
//
//   const std::vector<Probe> probes = CalibrationProbes();
//   ... seconds[i]: what probes[i] took
//   const std::vector<FittedParameter> own = FitToProbes(gpu, Calibration::Shipped(), probes, seconds);
#ifndef RFINJECT_CLI_MODEL_PROBES_H_
#define RFINJECT_CLI_MODEL_PROBES_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/model/calibration.h"
#include "cli/model/expected.h"
#include "gpus/gpus.h"

namespace rfinject::cli {

// An operator that is timed.
struct Probe {
  std::string words;  // as cli/cmd/calibrate.py understands them: "convolution fp16 dgrad 256 256 256 3 1 28 28"
  std::string title;  // as people read it: "conv 3x3 FP16 dgrad, 256 x 256 x 28 x 28"
  Operator op;
  size_t stage = 0;  // of the fit
};

// All of them, for any GPU.
std::vector<Probe> CalibrationProbes();

// Whether the GPU has the unit that the probe is for.
bool HasUnitFor(const Gpu& gpu, const Probe& probe);

struct FittedParameter {
  std::string_view family, parameter;  // of calibration.csv
  double value = 0;
  size_t times = 0;  // that it was fitted to
};

// Returns the GPU's own values. The stages of the fit go from the bandwidth, on which everything depends, to single
// families; in each, the values of `base` are multiplied by the one number for which the expected times of the
// stage's probes have the measured times' geometric mean. `seconds` are those of `probes`, all above 0.
std::vector<FittedParameter> FitToProbes(const Gpu& gpu, const Calibration& base, std::span<const Probe> probes,
                                         std::span<const double> seconds);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_MODEL_PROBES_H_
