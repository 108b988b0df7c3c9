// File: what_if.h
//
// Computes how long a launch key's work would take if it were done otherwise: in another precision, with other
// channels, fused. For an estimate the model of expected times is asked again; a measured time changes as the least
// time does, so that the kernel keeps its share of the roof.
#ifndef RFINJECT_CLI_REPORT_ADVICE_WHAT_IF_H_
#define RFINJECT_CLI_REPORT_ADVICE_WHAT_IF_H_

#include <optional>
#include <string>

#include "cli/model/estimated_kernel.h"
#include "cli/model/expected.h"
#include "cli/model/roofline.h"
#include "cli/profile/profile.h"
#include "cli/report/keys/quantity.h"

namespace rfinject::cli {

class WhatIf {
 public:
  // `machine` without a name: no roofs are known. `model` is null where no operators are known. Both must outlive it.
  // `measured`: what an operator takes is no expected time.
  WhatIf(const Machine& machine, const ExpectedTimes* model, bool measured)
      : machine_(machine), model_(model), measured_(measured) {}

  bool Has(Precision precision) const { return machine_.peak[static_cast<size_t>(precision)] > 0; }
  bool has_roofs() const { return !machine_.name.empty(); }
  bool has_model() const { return model_ != nullptr; }

  // All times are in ns, for all launches of the key together; except for WithBatch they are never longer than the
  // key took.

  // The FLOP of FP32, TF32 and FP64 are done in `to` instead, with elements `bytes_ratio` times as large.
  double InPrecision(const LaunchKey& key, const Sums& sums, Precision to, double bytes_ratio) const;

  // The convolution has its channels rounded up to what tensor cores' kernels take. Returns nothing where they are
  // that already, it does not run on tensor cores, it reads an image (fewer than 8 channels), or its shape is not
  // known.
  std::optional<double> WithAlignedChannels(const LaunchKey& key, const Sums& sums) const;

  // With a batch `times` as large: convolutions and products have more rows, all else more bytes. Nothing without
  // shapes.
  std::optional<double> WithBatch(const LaunchKey& key, const Sums& sums, double times) const;

  // One kernel of attention, forward or backward, of as many queries as keys: it reads and writes `bytes` and does
  // `flop` in `precision` between.
  double FusedAttention(bool backward, Precision precision, double flop, double bytes, double keys) const;
  // One element-wise kernel. Without a model bytes over the datasheet's bandwidth, and the launch floor.
  double Elementwise(double bytes) const;

 private:
  // How much longer the key's launches took than the model expects them to; 1 for an estimate.
  double BeyondExpected(const EstimatedKernel& kernel, const Sums& sums) const;

  const Machine& machine_;
  const ExpectedTimes* const model_;
  const bool measured_;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_ADVICE_WHAT_IF_H_
