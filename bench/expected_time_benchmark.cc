// What an expected time costs beside the ideal one: of a convolution, which has the most to try, a product and an
// element-wise operator. Reports pay it once a launch key; a process that trains never does, because traces hold the
// ideal time and the collector does not link the model (docs/ARCHITECTURE.md).
#include <benchmark/benchmark.h>

#include <algorithm>

#include "cli/model/calibration.h"
#include "cli/model/expected.h"
#include "gpus/gpus.h"

namespace rfinject::cli {
namespace {

const Gpu& TheGpu() { return *FindGpu("V100-SXM2-16GB"); }

Operator Convolution() {
  return {.kind = OperatorKind::kConvolution,
          .precision = Precision::kFp32,
          .images = 64,
          .c_in = 256,
          .c_out = 256,
          .kernel_h = 3,
          .kernel_w = 3,
          .h = 28,
          .w = 28,
          .out_h = 28,
          .out_w = 28};
}

Operator Product() {
  return {.kind = OperatorKind::kProduct, .precision = Precision::kFp32, .m = 4096, .k = 1024, .n = 4096};
}

Operator Elementwise() { return {.kind = OperatorKind::kElementwise, .bytes = 1e9}; }

void Expected(benchmark::State& state, const Operator& op) {
  const ExpectedTimes times(TheGpu(), Calibration::Shipped());
  for (auto _ : state) benchmark::DoNotOptimize(times.Of(op));
}

void Ideal(benchmark::State& state, const Operator& op) {
  const Gpu& gpu = TheGpu();
  double flop = 2 * op.images * op.c_out * op.out_h * op.out_w * op.c_in * op.kernel_h * op.kernel_w,
         bytes = op.bytes;
  for (auto _ : state) {
    benchmark::DoNotOptimize(flop);
    benchmark::DoNotOptimize(bytes);
    benchmark::DoNotOptimize(std::max({ExpectedTimes::kLaunchIntervalS, bytes / gpu.dram_bytes_per_s,
                                       flop / gpu.peak[static_cast<size_t>(op.precision)]}));
  }
}

// Once a report.
void Parameters(benchmark::State& state) {
  const Calibration& calibration = Calibration::Shipped();
  for (auto _ : state) benchmark::DoNotOptimize(ExpectedTimes(TheGpu(), calibration));
}

BENCHMARK_CAPTURE(Ideal, convolution, Convolution());
BENCHMARK_CAPTURE(Expected, convolution, Convolution());
BENCHMARK_CAPTURE(Expected, product, Product());
BENCHMARK_CAPTURE(Expected, elementwise, Elementwise());
BENCHMARK(Parameters);

}  // namespace
}  // namespace rfinject::cli
