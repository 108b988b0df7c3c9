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
#include "cli/model/operator.h"
#include "gpus/gpus.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

// Where the parameters and the uncertainty of an estimate come from.
enum class Calibrated : uint8_t {
  kGpu,     // times of this GPU and of this family of operators
  kFamily,  // times of this family on other GPUs
};

struct ExpectedTime {
  // The roofline: the largest of FLOP over peak, DRAM bytes over bandwidth, and a kernel that does nothing.
  double ideal_s = 0;
  double expected_s = 0;         // no less than that; with Winograd's algorithms a quarter of the FLOP counts
  double low_s = 0, high_s = 0;  // 80 % interval
  double launch_s = 0;           // of the expected time, what the kernel takes beside its work
  double dram_bytes = 0;         // of the compulsory ones, those that no cache has
  bool winograd = false;         // the fastest known algorithm executes fewer FLOP than the model asks for
  Calibrated calibrated = Calibrated::kFamily;
  ErrorGroup group = ErrorGroup::kOther;  // of its interval
};

class ExpectedTimes {
 public:
  // `gpu` must outlive the object.
  ExpectedTimes(const Gpu& gpu, const Calibration& calibration);

  // Returns the time that an operator is expected to take; all times are 0 where the GPU lacks the unit.
  ExpectedTime Of(const Operator& op) const;

  const Gpu& gpu() const { return gpu_; }

  // Of the compulsory bytes of a kernel, those that move to or from DRAM: the L2 cache has a share of those that the
  // kernel before has just left there.
  double FromDram(double bytes) const;
  // The least time of a kernel of so many DRAM bytes that computes for so long at the peak of its unit.
  double LeastSeconds(double dram_bytes, double seconds_at_peak) const;

  // Winograd's algorithm of 4x4 output pixels takes 36 multiplications where 144 are asked for (Lavin, Gray, "Fast
  // Algorithms for Convolutional Neural Networks", CVPR 2016): nothing executes fewer FLOP than a quarter.
  static constexpr double kWinogradSaves = 4;

  // Seconds between one kernel's start and the next one's when the kernels do nothing (operators/cost.h).
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
  // Convolutions of 3x3 by Winograd's algorithms, on CUDA cores.
  struct Winograd {
    double fused_rate = 1, fused_wave = 0;      // in one kernel, F(2x2,3x3)
    double fused_output = 1, fused_filter = 1;  // times that it pays for the output, the transformed filter
    double rate = 1;                            // with the transforms in memory, F(4x4,3x3)
    Tiles tiles;                                // of its 36 products
    double transform = 1, filter = 1;           // share of the bandwidth; times the filter's transforms
  };
  struct Parameters {
    bool own = false;     // fitted to times of this GPU
    double launch_s = 0;  // GPU time that a kernel takes beside its work
    std::array<double, kScaleNames.size()>
        scales{};                         // by ScaleKind: what the work took in recorded networks over the formula's
    std::array<double, 4> low{}, high{};  // ends of the 80 % interval over the expected time; tiny to long
    // Operators over rows: the share of the sustained bandwidth; softmax of rows that stay in registers; how much of
    // a second reading misses the caches; rows that an SM works on at once.
    double share = 1, share_persistent = 1, reread = 0, rows_per_sm = 0;
    double elements_per_s = 0;     // that all SMs take one by one, or of rows that a block reduces; 0: no limit
    double block_bytes_per_s = 0;  // batch norm; 0: no limit
    // Products.
    Tiles tiles;
    double rate = 1;    // over that of a linear layer's product on the same unit
    double step_s = 0;  // latency of a step of the inner dimension, which blocks pay however few they are
    // More time of tensor cores' products whose rows do not begin at multiples of 16 bytes; and not even of 4.
    double misaligned = 0, narrow = 0;
    double memory = 1;  // share of the sustained bandwidth at which operands arrive; re-reads of tiles are in it
    // Convolutions. The exponent is of output pixels over input pixels: 1: a strided dgrad leaves out all zeros
    // between the elements of its gradient, 0: none.
    double strided_gradient = 1;
    // Times that implicit GEMM on CUDA cores pays for the input's bytes.
    double implicit_gemm_input = 1;
    Winograd winograd;
    // What a block of one warp takes of an SM: how long it lives over how many of them live at once. 0: not counted.
    double block_s = 0;
    // Attention in FP32, over what products reach: on CUDA cores, and on tensor cores as three products of TF32.
    double fma_rate = 1, split_rate = 1;
  };
  // A pass of a convolution as one from `in` channels on pixels of the input to `out` channels on those of the
  // output.
  struct Lowered {
    bool wgrad = false;
    double images = 0, in = 0, out = 0, out_h = 0, out_w = 0, element_bytes = 4;
    double in_bytes = 0, out_bytes = 0, filter_bytes = 0;
  };
  static Lowered LoweredOf(const Operator& op);
  struct Choice {
    bool wide_only = true;    // no tile edge below 64
    bool split_k = true;      // the inner dimension may be split over SMs
    bool whole_waves = true;  // the last wave takes as long as a full one
    double adds_up_s = 0;     // of a kernel of its own that adds the parts up, as cuBLAS has it
  };

  Parameters Read(const Calibration& calibration, std::string_view family) const;
  Unit UnitOf(Precision precision) const;
  const Parameters& Of(Family family) const { return families_[static_cast<size_t>(family)]; }

  // Steps of the inner dimension that a kernel takes at once.
  static constexpr double kBlockK = 8, kBlockKTensor = 32;

  static double CeilTo(double value, double step);
  // The longer of the two where one is much longer, and a little more where both are alike.
  static double Overlapped(double a, double b);
  static double Sustained(double seconds_at_peak, const Unit& unit, double rate);
  struct Cut {
    double seconds = 0;  // at the peak
    double parts = 1;    // of the inner dimension
  };
  Cut ProductAtPeak(double batch, double m, double k, double n, double element_bytes, const Unit& unit,
                    const Tiles& tiles, Choice choice) const;
  double ProductSeconds(const Operator& op, const Parameters& p) const;
  double AttentionSeconds(const Operator& op, const Parameters& p) const;
  double AttentionProducts(const Operator& op, const Parameters& p, double flop) const;
  // Seconds that bytes take at a share of the sustained bandwidth, where DRAM has to move them.
  double Traffic(double bytes, double share) const { return FromDram(bytes) / (bandwidth_ * share); }
  // In expected_convolution.cc.
  double ConvolutionSeconds(const Operator& op, const Parameters& p, bool& winograd) const;
  double UntiledSeconds(const Operator& op, const Parameters& p, Family family) const;
  double TensorSeconds(const Operator& op, const Parameters& p, double gemm) const;
  double FusedWinogradSeconds(const Lowered& pass, const Parameters& p, const Unit& unit) const;
  double WinogradSeconds(const Lowered& pass, const Parameters& p, const Unit& unit) const;
  // The share of a second reading that the L2 cache has no more, when so much was read and written since the first.
  double Missed(double resident_bytes) const;
  double RowSeconds(const Operator& op, const Parameters& p) const;
  double SecondsOf(const Operator& op, const Parameters& p, bool& winograd) const;

  const Gpu& gpu_;
  double bandwidth_;    // sustained, bytes/s
  double kernel_s_;     // GPU time of a kernel that does nothing
  double l2_share_;     // of bytes that fit into the L2 cache, those that are found there
  Unit fp32_, tensor_;  // without their peaks, which are a precision's
  std::array<Parameters, kFamilyNames.size()> families_;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_MODEL_EXPECTED_H_
