#include "cli/model/probes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace rfinject::cli {
namespace {

// What one number is fitted for: the parameters of a family that it scales.
struct Stage {
  std::string_view family;
  std::array<std::string_view, 2> parameters;  // the second may be empty
};

enum StageIndex : uint8_t {
  kBandwidth,
  kSoftmaxInRegisters,
  kSoftmax,
  kLayerNorm,
  kBatchNorm,
  kFp32,
  kFp32Batched,
  kFp32Conv,
  kFp32ConvWinograd,
  kFp32Dgrad,
  kFp32DgradWinograd,
  kFp32Wgrad,
  kFp32WgradWinograd,
  kTensor,
  kTensorBatched,
  kTensorConv,
  kTensorDgrad,
  kTensorWgrad,
};

// In the order of StageIndex. Implicit GEMM is fitted before Winograd, which is taken only where it is faster.
constexpr auto kStages = std::to_array<Stage>({
    {"gpu", {"memory_share"}},
    {"softmax", {"share_persistent"}},
    {"softmax", {"share"}},
    {"layer_norm", {"share"}},
    {"batch_norm", {"share"}},
    {"fp32", {"share"}},
    {"bmm_fp32", {"rate"}},
    {"conv_fp32", {"rate"}},
    {"conv_fp32", {"winograd", "winograd_fused"}},
    {"conv_fp32_dgrad", {"rate"}},
    {"conv_fp32_dgrad", {"winograd", "winograd_fused"}},
    {"conv_fp32_wgrad", {"rate"}},
    {"conv_fp32_wgrad", {"winograd"}},
    {"tensor", {"share"}},
    {"bmm_tensor", {"rate"}},
    {"conv_tensor", {"rate"}},
    {"conv_tensor_dgrad", {"rate"}},
    {"conv_tensor_wgrad", {"rate"}},
});

bool IsWinograd(size_t stage) {
  return stage == kFp32ConvWinograd || stage == kFp32DgradWinograd || stage == kFp32WgradWinograd;
}

std::string Text(double number) { return std::to_string(static_cast<int64_t>(number)); }

std::string WordOf(Precision precision) { return precision == Precision::kFp32 ? "fp32" : "fp16"; }
std::string TitleOf(Precision precision) { return precision == Precision::kFp32 ? "FP32" : "FP16"; }
std::string WordOf(Pass pass) {
  return pass == Pass::kForward ? "forward" : pass == Pass::kDgrad ? "dgrad" : "wgrad";
}

// `name` on `operands` tensors of so many FP32 numbers.
Probe Elementwise(std::string name, double elements, double operands) {
  constexpr double kMiB = 1 << 20;
  return {.words = name + " fp32 forward " + Text(elements),
          .title = name + " of " + Text(4 * elements / kMiB) + " MiB",
          .op = {.kind = OperatorKind::kElementwise, .bytes = 4 * elements * operands},
          .stage = kBandwidth};
}

Probe OverRows(std::string name, OperatorKind kind, double rows, double cols, size_t stage) {
  return {.words = name + " fp32 forward " + Text(rows) + " " + Text(cols),
          .title = name + " of " + Text(rows) + " rows of " + Text(cols),
          .op = {.kind = kind, .rows = rows, .cols = cols, .bytes = 2 * 4 * rows * cols},
          .stage = stage};
}

// Training's: the input is read twice and the output written (estimated_kernel.h counts it so).
Probe BatchNorm(double images, double channels, double size) {
  const double bytes = 4 * images * channels * size * size;
  return {
      .words = "batch_norm fp32 forward " + Text(images) + " " + Text(channels) + " " + Text(size) + " " + Text(size),
      .title = "batch_norm of " + Text(images) + " x " + Text(channels) + " x " + Text(size) + " x " + Text(size),
      .op = {.kind = OperatorKind::kBatchNorm, .rows = channels, .bytes = 2 * bytes, .reread_bytes = bytes},
      .stage = kBatchNorm};
}

Probe Product(Precision precision, double batch, double m, double k, double n, size_t stage) {
  return {.words = "product " + WordOf(precision) + " forward " + Text(batch) + " " + Text(m) + " " + Text(k) + " " +
                   Text(n),
          .title = "product " + TitleOf(precision) + ", " + (batch > 1 ? Text(batch) + " x " : "") + Text(m) + " x " +
                   Text(k) + " x " + Text(n),
          .op = {.kind = OperatorKind::kProduct,
                 .precision = precision,
                 .element_bytes = precision == Precision::kFp32 ? 4.0 : 2.0,
                 .batch = batch,
                 .m = m,
                 .k = k,
                 .n = n,
                 .shared_right = batch == 1},
          .stage = stage};
}

// Padded so that the output of stride 1 is as large as the input, in PyTorch's default layout.
Probe Convolution(Precision precision, Pass pass, double images, double channels, double kernel, double stride,
                  double size, size_t stage) {
  return {.words = "convolution " + WordOf(precision) + " " + WordOf(pass) + " " + Text(images) + " " +
                   Text(channels) + " " + Text(channels) + " " + Text(kernel) + " " + Text(stride) + " " +
                   Text(size) + " " + Text(size),
          .title = "conv " + Text(kernel) + "x" + Text(kernel) + (stride > 1 ? "/" + Text(stride) : "") + " " +
                   TitleOf(precision) + " " + WordOf(pass) + ", " + Text(images) + " x " + Text(channels) + " x " +
                   Text(size) + " x " + Text(size),
          .op = {.kind = OperatorKind::kConvolution,
                 .pass = pass,
                 .precision = precision,
                 .element_bytes = precision == Precision::kFp32 ? 4.0 : 2.0,
                 .images = images,
                 .c_in = channels,
                 .c_out = channels,
                 .kernel_h = kernel,
                 .kernel_w = kernel,
                 .h = size,
                 .w = size,
                 .out_h = size / stride,
                 .out_w = size / stride},
          .stage = stage};
}

// The mean over the probes of `stages` of log(expected / measured).
double Error(const Gpu& gpu, const Calibration& calibration, std::span<const Probe> probes,
             std::span<const double> seconds, std::span<const size_t> stages) {
  const ExpectedTimes model(gpu, calibration);
  double sum = 0;
  size_t count = 0;
  for (size_t i = 0; i < probes.size(); ++i) {
    if (std::find(stages.begin(), stages.end(), probes[i].stage) == stages.end()) continue;
    sum += std::log(model.Of(probes[i].op).expected_s / seconds[i]);
    ++count;
  }
  return sum / static_cast<double>(count);
}

}  // namespace

std::vector<Probe> CalibrationProbes() {
  // Tensors of 256 MiB are several times any L2 cache; everything takes 0.05 ms or more on the fastest GPU of the
  // table, so that the host launches ahead of it, and less than 0.15 s on the slowest.
  constexpr double kElements = 64 << 20;
  constexpr Precision kFp32Unit = Precision::kFp32, kFp16Unit = Precision::kFp16Tensor;
  std::vector<Probe> probes = {
      Elementwise("scale", kElements, 2),
      Elementwise("add", kElements, 3),
      OverRows("softmax", OperatorKind::kSoftmax, kElements / 1024, 1024, kSoftmaxInRegisters),
      OverRows("softmax", OperatorKind::kSoftmax, kElements / 4096, 4096, kSoftmax),
      OverRows("layer_norm", OperatorKind::kLayerNorm, kElements / 1024, 1024, kLayerNorm),
      BatchNorm(64, 256, 56),
      Product(kFp32Unit, 1, 4096, 4096, 4096, kFp32),
      Product(kFp32Unit, 1, 16384, 1024, 4096, kFp32),
      Product(kFp32Unit, 256, 512, 512, 512, kFp32Batched),
      Product(kFp16Unit, 1, 8192, 8192, 8192, kTensor),
      Product(kFp16Unit, 1, 16384, 2048, 8192, kTensor),
      Product(kFp16Unit, 256, 1024, 1024, 1024, kTensorBatched),
  };
  struct Passes {
    Pass pass;
    size_t gemm, winograd, tensor;
  };
  for (const auto& [pass, gemm, winograd, tensor] :
       {Passes{Pass::kForward, kFp32Conv, kFp32ConvWinograd, kTensorConv},
        Passes{Pass::kDgrad, kFp32Dgrad, kFp32DgradWinograd, kTensorDgrad},
        Passes{Pass::kWgrad, kFp32Wgrad, kFp32WgradWinograd, kTensorWgrad}}) {
    probes.push_back(Convolution(kFp32Unit, pass, 64, 512, 1, 1, 28, gemm));
    probes.push_back(Convolution(kFp32Unit, pass, 64, 256, 3, 2, 28, gemm));
    probes.push_back(Convolution(kFp32Unit, pass, 64, 256, 3, 1, 28, winograd));
    probes.push_back(Convolution(kFp16Unit, pass, 256, 512, 1, 1, 28, tensor));
    probes.push_back(Convolution(kFp16Unit, pass, 256, 256, 3, 1, 28, tensor));
  }
  return probes;
}

bool HasUnitFor(const Gpu& gpu, const Probe& probe) { return gpu.peak[static_cast<size_t>(probe.op.precision)] > 0; }

std::vector<FittedParameter> FitToProbes(const Gpu& gpu, const Calibration& base, std::span<const Probe> probes,
                                         std::span<const double> seconds) {
  // A factor of base's value; wider than what any GPU differs from another by.
  constexpr double kLeast = 1.0 / 64, kMost = 64;
  constexpr int kHalvings = 40;
  constexpr double kSettled = 0.01;  // what rounding leaves of a fit is less
  std::vector<FittedParameter> fitted;
  Calibration own = base;
  const auto put = [&](std::string_view family, std::string_view parameter, double value, size_t times) {
    own.Set(gpu.name, family, parameter, value);
    const auto same = [&](const FittedParameter& one) { return one.family == family && one.parameter == parameter; };
    std::erase_if(fitted, same);
    fitted.push_back({family, parameter, value, times});
  };
  // Fits the parameters of stage `s` to the probes of `stages`, and returns the error that is left.
  const auto fit = [&](size_t s, std::span<const size_t> stages) {
    const Stage& stage = kStages[s];
    const auto times = static_cast<size_t>(std::count_if(probes.begin(), probes.end(), [&](const Probe& probe) {
      return std::find(stages.begin(), stages.end(), probe.stage) != stages.end();
    }));
    if (times == 0) return 0.0;
    // The probes keep the GPU as busy as training does; what it reaches in the first moments of a load is no part.
    if (s == kFp32) put("fp32", "burst_ms", 0, times);
    std::array<double, 2> values{};
    const auto scale = [&](double factor) {
      for (size_t i = 0; i < stage.parameters.size() && !stage.parameters[i].empty(); ++i) {
        const double value = base.Get(gpu, stage.family, stage.parameters[i]).value_or(1) * factor;
        values[i] = std::clamp(value, kLeastShare, kMostShare);
        own.Set(gpu.name, stage.family, stage.parameters[i], values[i]);
      }
    };
    double low = std::log(kLeast), high = std::log(kMost);
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (low + high) / 2;
      scale(std::exp(middle));
      (Error(gpu, own, probes, seconds, stages) > 0 ? low : high) = middle;
    }
    scale(std::exp((low + high) / 2));
    for (size_t i = 0; i < stage.parameters.size() && !stage.parameters[i].empty(); ++i) {
      put(stage.family, stage.parameters[i], values[i], times);
    }
    return Error(gpu, own, probes, seconds, stages);
  };
  for (size_t s = 0; s < kStages.size(); ++s) {
    const double left = fit(s, std::array{s});
    // However slow Winograd is, implicit GEMM alone would be faster than what was measured: so that is what all of
    // the convolutions ran on, and all of them say how fast it is.
    if (IsWinograd(s) && left < -kSettled) fit(s - 1, std::array{s - 1, s});
  }
  // "rows" says of a family that its parameters are the GPU's own.
  std::array<size_t, kFamilyNames.size()> rows{};
  for (const Probe& probe : probes) ++rows[static_cast<size_t>(FamilyOf(probe.op))];
  for (size_t f = 0; f < rows.size(); ++f) {
    if (rows[f] > 0) put(kFamilyNames[f], "rows", static_cast<double>(rows[f]), rows[f]);
  }
  return fitted;
}

}  // namespace rfinject::cli
