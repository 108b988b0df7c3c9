// File: expected.h
//
// Computes what a stopwatch would show for one operator on a GPU, by a model of few parameters, which calibration.h
// holds and calibration/fit makes from times that others measured. It is pure maths. docs/method/ESTIMATOR.md has the
// formulas and the errors.
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
  kElementwise,  // reads and writes
  kOther,        // everything that has no better description than FLOP and bytes
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
  bool channels_last = false;
  double images = 0, c_in = 0, c_out = 0, kernel_h = 1, kernel_w = 1, h = 0, w = 0, out_h = 0, out_w = 0, groups = 1;
  // Operators over rows x cols; the norms and softmax run along cols. A batch norm's rows are its channels where a
  // block of a kernel reduces each of them, otherwise 0.
  double rows = 0, cols = 0;
  // Compulsory traffic of what is neither product nor convolution, bytes read and written; what of it a batch norm
  // reads a second time; and FLOP of kOther.
  double bytes = 0, reread_bytes = 0, flop = 0;
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

// Operators that share parameters: a kind of operator on a kind of unit and, for convolutions, the pass.
enum class Family : uint8_t {
  kElementwise,
  kOther,
  kSoftmax,
  kLayerNorm,
  kRmsNorm,
  kBatchNorm,
  kLinearFp32,
  kLinearTensor,
  kBmmFp32,
  kBmmTensor,
  kConvFp32,
  kConvFp32Dgrad,
  kConvFp32Wgrad,
  kConvTensor,
  kConvTensorDgrad,
  kConvTensorWgrad,
  kConvTf32,  // on tensor cores, too, at another rate than halves
  kConvTf32Dgrad,
  kConvTf32Wgrad,
  kConvDepthwise,  // as many groups as channels
  kConvSingle,     // one channel of halves: there are no tensor cores' kernels for it
  kConvSingleWgrad,
};
// As in the column family of calibration.csv.
inline constexpr std::array<std::string_view, 22> kFamilyNames = {
    "elementwise",     "other",          "softmax",           "layer_norm",        "rms_norm",  "batch_norm",
    "linear_fp32",     "linear_tensor",  "bmm_fp32",          "bmm_tensor",        "conv_fp32", "conv_fp32_dgrad",
    "conv_fp32_wgrad", "conv_tensor",    "conv_tensor_dgrad", "conv_tensor_wgrad", "conv_tf32", "conv_tf32_dgrad",
    "conv_tf32_wgrad", "conv_depthwise", "conv_single",       "conv_single_wgrad"};
Family FamilyOf(const Operator& op);

class ExpectedTimes {
 public:
  // `gpu` must outlive the object.
  ExpectedTimes(const Gpu& gpu, const Calibration& calibration);

  // Returns the time that an operator is expected to take; all times are 0 where the GPU lacks the unit.
  ExpectedTime Of(const Operator& op) const;

  const Gpu& gpu() const { return gpu_; }

  // Seconds between one kernel's start and the next one's when the kernels do nothing (launch_floor.h).
  static constexpr double kLaunchIntervalS = 3e-6;

 private:
  // A kind of units that products run on, and what of their peak is sustained.
  struct Unit {
    double peak = 0;          // FLOP/s of the data sheet
    double share = 1;         // of it sustained by long kernels: power and clock, and how well kernels use the units
    double burst_share = 0;   // of it reached by kernels much shorter than burst_s
    double burst_s = 0;       // how long the power limit lets a burst last
    double stride_slope = 0;  // slowdown for each 32 KiB of row length beyond the first: address translation
  };
  // How a product is cut into tiles, and what that costs.
  struct Tiles {
    double edge = 0;     // elements: a tile of a x b computes at ab / (ab + edge (a+b)/2) of the rate
    double k_setup = 0;  // steps of the inner dimension that a tile's prologue and epilogue cost
    double wave = 0;     // waves that filling and draining the SMs costs
    double least_rows = 0, least_cols = 0;  // the smallest tile that the library has kernels for
  };
  struct Parameters {
    bool own = false;                     // fitted to times of this GPU
    double launch_s = 0;                  // what a kernel takes beside its work
    std::array<double, 3> low{}, high{};  // ends of the 80 % interval over the expected time; short, middle, long
    // Operators over rows: the share of the sustained bandwidth; softmax of rows that stay in registers; how much of
    // a second reading misses the caches; rows that an SM works on at once.
    double share = 1, share_persistent = 1, reread = 0, rows_per_sm = 0;
    double block_bytes_per_s = 0;  // batch norm; 0: no limit
    // Products.
    Tiles tiles;
    double rate = 1;    // over that of a linear layer's product on the same unit
    double memory = 1;  // share of the sustained bandwidth at which operands arrive; re-reads of tiles are in it
    // Convolutions. The exponent is of output pixels over input pixels: 1: a strided dgrad leaves out all zeros
    // between the elements of its gradient, 0: none.
    double strided_gradient = 1;
    // Convolutions on CUDA cores.
    double implicit_gemm_input = 1;                      // times that implicit GEMM pays for the input's bytes
    double fused_rate = 1, fused_wave = 0;               // Winograd in one kernel, F(2x2,3x3)
    double fused_output = 1, fused_filter = 1;           // times that it pays for the output, the transformed filter
    double winograd_rate = 1;                            // Winograd with the transforms in memory, F(4x4,3x3)
    Tiles winograd_tiles;                                // of its 36 products
    double winograd_transform = 1, winograd_filter = 1;  // share of the bandwidth; times the filter's transforms
  };
  struct Choice {
    bool wide_only = true;    // no tile edge below 64
    bool split_k = true;      // the inner dimension may be split over SMs
    bool whole_waves = true;  // the last wave takes as long as a full one
  };

  Parameters Read(const Calibration& calibration, std::string_view family) const;
  Unit UnitOf(Precision precision) const;
  const Parameters& Of(Family family) const { return families_[static_cast<size_t>(family)]; }

  static double Sustained(double seconds_at_peak, const Unit& unit, double rate);
  double ProductAtPeak(double batch, double m, double k, double n, double element_bytes, const Unit& unit,
                       const Tiles& tiles, Choice choice) const;
  double ProductSeconds(const Operator& op, const Parameters& p) const;
  double ConvolutionSeconds(const Operator& op, const Parameters& p, bool& winograd) const;
  // The share of a second reading that the L2 cache has no more, when so much was read and written since the first.
  double Missed(double resident_bytes) const;
  double RowSeconds(const Operator& op, const Parameters& p) const;

  const Gpu& gpu_;
  double bandwidth_;    // sustained, bytes/s
  Unit fp32_, tensor_;  // without their peaks, which are a precision's
  std::array<Parameters, kFamilyNames.size()> families_;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_MODEL_EXPECTED_H_
