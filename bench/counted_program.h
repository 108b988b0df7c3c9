// File: counted_program.h
//
// The program that bench/counting runs on the simulated GPU: the kernels of a recorded training step, cut or repeated
// to a number of launches and stretched to a duration, with noise.
#ifndef RFINJECT_BENCH_COUNTED_PROGRAM_H_
#define RFINJECT_BENCH_COUNTED_PROGRAM_H_

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "integration_tests/simulated_gpu/simulator.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::bench {

inline constexpr size_t kVariants = 16;  // of a launch, which differ by noise

// The program, and how it is run; counting.cc says what the words are.
struct Options {
  uint64_t launches = 349, steps = 450, streams = 1, seed = 1, exclusive = 1, pace = 1, reads_loss = 0;
  double step_ms = 14.5, overhead = 1, start_up_ms = 550, data_ms = 0, odd = 1, second_half = 1;
  std::string noise = "white", trace;
  uint64_t period() const { return strtoull(noise.c_str(), nullptr, 10); }  // 0: none
};

// A launch of the program, again and again in each step.
struct Launch {
  std::string kernel;
  Phase phase = Phase::kOther;
  uint32_t layer = 0, row = 0;
  uint32_t site_layer = 0;  // by the recorder's numbers
  std::array<unsigned, 3> grid{};
  unsigned block = 0;
  double ns = 0, bytes = 0, l2_bytes = 0;
  std::array<uint64_t, kPrecisionCount> flop{};
  std::array<std::vector<SimMetric>, kVariants> metrics;
  std::array<SimKernel, kVariants> variants{}, longer{};
};

// Which variant a launch is in a step, and the kernel that it runs there.
size_t VariantOf(const Options& options, uint64_t step, uint64_t launch);
const SimKernel& KernelIn(uint64_t step, size_t variant, const Options& options, Launch* launch);

// The recorded program that has the next number of launches, by its `name`; empty where recorded_kernels.csv.gz
// cannot be read.
std::vector<Launch> MakeProgram(const Options& options, std::string* name);

}  // namespace rfinject::bench

#endif  // RFINJECT_BENCH_COUNTED_PROGRAM_H_
