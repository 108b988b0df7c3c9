// File: expected.h
//
// What a stopwatch would show for one operator on a GPU: a model of few parameters, which calibration.h holds and
// calibration/fit makes from times that others measured. Pure maths. docs/ESTIMATOR.md has the formulas and the errors.
//
//   const ExpectedTimes v100(*FindGpu("V100-PCIe"), Calibration::Shipped());
//   v100.Of({.kind = OperatorKind::kProduct, .precision = Precision::kFp32, .m = 4096, .k = 4096, .n = 4096})
#ifndef RFINJECT_CLI_MODEL_EXPECTED_H_
#define RFINJECT_CLI_MODEL_EXPECTED_H_

#include <array>
#include <cstdint>
#include <string_view>

#include "cli/model/calibration.h"
#include "gpus/gpus.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

enum class OperatorKind : uint8_t {
  kElementwise,  // reads and writes; whatever has no better description
  kProduct,      // batch products of m x k by k x n; `shared_right`: the right operand is one matrix (a linear layer)
  kConvolution,
  kSoftmax,
  kLayerNorm,
  kRmsNorm,
  kBatchNorm,
};

enum class Pass : uint8_t { kForward, kDgrad, kWgrad };  // dgrad: the input's gradient; wgrad: the weight's

struct Operator {
  OperatorKind kind = OperatorKind::kElementwise;
  Pass pass = Pass::kForward;
  Precision precision = Precision::kFp32;  // the unit that products and convolutions run on
  double element_bytes = 4;
  // Products.
  double batch = 1, m = 0, k = 0, n = 0;
  bool shared_right = true;
  // Convolutions, by the forward's sizes whatever the pass.
  double images = 0, c_in = 0, c_out = 0, kernel_h = 1, kernel_w = 1, h = 0, w = 0, out_h = 0, out_w = 0, groups = 1;
  // Operators over rows x cols; the norms and softmax run along cols.
  double rows = 0, cols = 0;
  // Compulsory traffic of what is neither product nor convolution, bytes read and written.
  double bytes = 0;
};

// Where the parameters and the uncertainty of an estimate come from.
enum class Calibrated : uint8_t {
  kGpu,     // times of this GPU and of this family of operators
  kFamily,  // times of this family on other GPUs
};

struct ExpectedTime {
  double ideal_s = 0;  // the roofline: max of FLOP over peak, bytes over bandwidth, and the launch interval
  double expected_s = 0;
  double low_s = 0, high_s = 0;  // 80 % interval
  bool winograd = false;         // the fastest known algorithm executes fewer FLOP than the model asks for
  Calibrated calibrated = Calibrated::kFamily;
};

// "conv_fp32", "linear_tensor", …: the family whose parameters count.
std::string_view FamilyOf(const Operator& op);

class ExpectedTimes {
 public:
  // Both must outlive the object.
  ExpectedTimes(const Gpu& gpu, const Calibration& calibration);

  // Zero times where the GPU lacks the unit.
  ExpectedTime Of(const Operator& op) const;

  // Seconds between one kernel's start and the next one's when the kernels do nothing (launch_floor.h).
  static constexpr double kLaunchIntervalS = 3e-6;

 private:
  // A processor of products: the rate of its units, and what of it is sustained.
  struct Unit {
    double peak = 0;          // FLOP/s of the data sheet
    double share = 0;         // of it sustained by long kernels: power and clock, and how well kernels use the units
    double burst_share = 0;   // of it reached by kernels much shorter than burst_s
    double burst_s = 0;       // how long the power limit lets a burst last
    double stride_slope = 0;  // slowdown for each 32 KiB of row length beyond the first: address translation
  };
  struct Tiles {
    double edge = 0;     // elements: a tile of a x b computes at ab / (ab + edge (a+b)/2) of the rate
    double k_setup = 0;  // steps of the inner dimension that prologue and epilogue of a tile cost
    double wave = 0;     // waves that filling and draining the SMs costs
    double memory = 1;   // share of the sustained bandwidth that operands arrive at; re-reads of tiles are in it
  };
  struct Convolution {
    Tiles tiles;
    double gemm = 1;            // implicit GEMM's rate over that of a product
    double fused = 1;           // the same for fused Winograd, F(2x2,3x3)
    double nonfused = 1;        // and for Winograd with the transforms in memory, F(4x4,3x3)
    double fused_wave = 0;      // as Tiles::wave
    double fused_output = 1;    // times that the output's bytes are paid for
    double fused_filter = 1;    // the same for the transformed filter
    double transform = 1;       // share of the bandwidth that the transforms reach
    double nonfused_filter = 1;  // times that the transformed filter's bytes are paid for
  };

  double Parameter(std::string_view family, std::string_view name, double missing) const;
  Tiles TilesOf(std::string_view family) const;
  Convolution ConvolutionOf(std::string_view family) const;
  Unit UnitOf(Precision precision) const;

  static double Sustained(double seconds_at_peak, const Unit& unit, double rate);
  double ProductAtPeak(double batch, double m, double k, double n, double element_bytes, const Unit& unit,
                       const Tiles& tiles, bool wide_only, bool split_k) const;
  double ProductSeconds(const Operator& op) const;
  double ConvolutionSeconds(const Operator& op, bool& winograd) const;
  double DepthwiseSeconds(const Operator& op) const;
  double RowSeconds(const Operator& op) const;

  const Gpu& gpu_;
  const Calibration& calibration_;
  double bandwidth_;  // sustained, bytes/s
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_MODEL_EXPECTED_H_
