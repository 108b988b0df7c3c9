#include "bench/counted_program.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string_view>

namespace rfinject::bench {
namespace {

// White noise is of each launch alone; that of a step is of all its launches; a period has one step that is longer.
constexpr double kWhite = 0.01, kOfStep = 0.02, kLonger = 0.5;
constexpr double kTimeNoise = 0.003;

// Which counters count a precision on GH100, and the FLOP that one count stands for.
struct Counter {
  std::string_view precision;
  const char* name;
  double flop;
};
constexpr Counter kCounters[] = {
    {"fp64", "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum", 2},
    {"fp32", "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 2},
    {"fp16", "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum", 4},
    {"tf32_tc", "sm__ops_path_tensor_op_hgmma_src_tf32_dst_fp32_sparsity_off.sum", 1},
    {"fp16_tc", "sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum", 1},
    {"bf16_tc", "sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum", 1},
    {"fp64_tc", "sm__ops_path_tensor_src_fp64.sum", 1},
};

std::vector<std::string> Split(const std::string& line) {
  std::vector<std::string> fields(1);
  for (char letter : line) letter == ',' ? void(fields.emplace_back()) : fields.back().push_back(letter);
  return fields;
}

Phase PhaseOf(std::string_view name) {
  return name == "forward"     ? Phase::kForward
         : name == "backward"  ? Phase::kBackward
         : name == "optimizer" ? Phase::kOptimizer
                               : Phase::kOther;
}

// The recorded programs' steps, each launch by itself.
std::map<std::string, std::vector<Launch>> ReadPrograms() {
  std::map<std::string, std::vector<Launch>> programs;
  std::map<std::string, std::string> kernels;
  FILE* file = popen("gzip -dc " RECORDED_KERNELS, "r");
  std::array<char, 4096> text{};
  for (uint32_t row = 1; file != nullptr && fgets(text.data(), text.size(), file) != nullptr; ++row) {
    std::string line = text.data();
    while (!line.empty() && line.back() == '\n') line.pop_back();
    const std::vector<std::string> fields = Split(line);
    if (fields[0] == "kernel") {
      kernels[fields[1]] = fields[2];
      continue;
    }
    Launch launch;
    launch.phase = PhaseOf(fields[1]);
    launch.layer = static_cast<uint32_t>(std::stoul(fields[2]));
    launch.kernel = kernels[fields[3]];
    launch.row = launch.site_layer = row;
    for (size_t i = 0; i < 3; ++i) launch.grid[i] = static_cast<unsigned>(std::stoul(fields[4 + i]));
    launch.block = static_cast<unsigned>(std::stoul(fields[7]));
    launch.ns = std::stod(fields[9]);
    launch.bytes = std::stod(fields[10]);
    launch.l2_bytes = std::stod(fields[11]);
    for (size_t i = 12; i < fields.size(); ++i) {
      const size_t equals = fields[i].find('=');
      const auto at = std::find(kPrecisionNames.begin(), kPrecisionNames.end(), fields[i].substr(0, equals));
      if (at == kPrecisionNames.end()) continue;
      // A multiple of what every count stands for.
      launch.flop[static_cast<size_t>(at - kPrecisionNames.begin())] =
          std::stoull(fields[i].substr(equals + 1)) / 4 * 4;
    }
    for (uint64_t i = std::stoull(fields[8]); i > 0; --i) programs[fields[0]].push_back(launch);
  }
  if (file != nullptr) pclose(file);
  return programs;
}

uint64_t Mix(uint64_t x) {  // splitmix64
  x = (x + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
double Noise(uint64_t seed, double spread) {  // near enough to a normal distribution: the sum of four uniform ones
  double sum = 0;
  for (uint64_t i = 0; i < 4; ++i) sum += static_cast<double>(Mix(seed * 4 + i) >> 11) * 0x1p-53;
  return 1 + spread * (sum - 2) * std::sqrt(3.0);
}

// What a variant's bytes and time are multiplied by.
double FactorOf(const Options& options, uint64_t launch, uint64_t variant) {
  if (options.period() != 0) return variant == 0 ? 1 + kLonger : 1;
  return options.noise == "step" ? Noise(variant, kOfStep) : Noise(launch * kVariants + variant, kWhite);
}

}  // namespace

size_t VariantOf(const Options& options, uint64_t step, uint64_t launch) {
  if (options.period() != 0) return (step + options.seed) % options.period();
  const uint64_t of_step = Mix(options.seed ^ Mix(step));
  return (options.noise == "step" ? of_step : Mix(of_step ^ launch)) % kVariants;
}

const SimKernel& KernelIn(uint64_t step, size_t variant, const Options& options, Launch* launch) {
  const double times = (step % 2 == 1 ? options.odd : 1) * (step * 2 >= options.steps ? options.second_half : 1);
  if (times == 1) return launch->variants[variant];
  SimKernel& longer = launch->longer[variant];
  const uint64_t ns = static_cast<uint64_t>(static_cast<double>(launch->variants[variant].ns) * times);
  if (longer.ns != ns) longer = launch->variants[variant];
  longer.ns = ns;
  return longer;
}

std::vector<Launch> MakeProgram(const Options& options, std::string* name) {
  const auto programs = ReadPrograms();
  const std::vector<Launch>* nearest = nullptr;
  const auto distance = [&](size_t launches) { return std::abs(std::log(launches / double(options.launches))); };
  for (const auto& [program, launches] : programs) {
    if (nearest != nullptr && distance(nearest->size()) <= distance(launches.size())) continue;
    nearest = &launches;
    *name = program;
  }
  std::vector<Launch> chosen;
  if (nearest == nullptr) return chosen;
  double sum = 0;
  for (uint64_t i = 0; i < options.launches; ++i) {
    sum += chosen.emplace_back((*nearest)[i * nearest->size() / options.launches]).ns;
  }
  const double stretch = options.step_ms * 1e6 / sum;
  for (uint64_t i = 0; i < chosen.size(); ++i) {
    Launch& launch = chosen[i];
    for (uint64_t k = 0; k < kVariants; ++k) {
      const double factor = FactorOf(options, i, k);
      const double bytes = launch.bytes * stretch * factor / 2;
      std::vector<SimMetric>& metrics = launch.metrics[k];
      metrics = {{"dram__bytes_read.sum", std::round(bytes)},
                 {"dram__bytes_write.sum", std::round(bytes)},
                 {"lts__t_bytes.sum", launch.l2_bytes * stretch}};
      for (size_t p = 0; p < kPrecisionCount; ++p) {
        for (const Counter& counter : kCounters) {
          if (counter.precision != kPrecisionNames[p] || launch.flop[p] == 0) continue;
          metrics.push_back({counter.name, static_cast<double>(launch.flop[p]) / counter.flop});
        }
      }
      const double ns =
          launch.ns * stretch * (options.noise == "white" ? Noise(i * kVariants + k, kTimeNoise) : factor);
      launch.variants[k] = {launch.kernel.c_str(), static_cast<uint64_t>(ns), metrics.data(), metrics.size(),
                            nullptr};
    }
  }
  return chosen;
}

}  // namespace rfinject::bench
