// Joins samples of PM sampling with the kernels of a recording of torch.profiler that ran meanwhile, by the code of
// the injected library (collector/cupti/sample_join.h), and prints what each kernel moved as CSV.
//
//   build/release/tools/sample_join SAMPLES.json.gz TRACE.json.gz
//
// SAMPLES has `t`, begin and end of each sample in ticks, one after the other; `v`, the values of each sample, the
// first two of which are bytes read and written; `interval` in ns; `clock0` and `clock1`, each the time since the
// epoch in ns and the tick, read by hand before and after. The first sample is left out: it lasts from the moment at
// which the session was enabled. `spread` is the standard deviation between launches as a share of their mean; where
// samples tell a kernel from others only over all launches, it is the standard error of that instead. Numbers that
// cannot be told are empty. Exits with 1 where the samples do not fit the kernels.
#include "collector/cupti/sample_join.h"

#include <zlib.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "collector/cupti/overlap_solver.h"

namespace {

using nlohmann::json;
using rfinject::cupti::Joined;
using rfinject::cupti::JoinOptions;
using rfinject::cupti::JoinSamples;
using rfinject::cupti::JoinVerdict;
using rfinject::cupti::OverlapSolver;
using rfinject::cupti::SampleWindow;
using rfinject::cupti::TimedKernel;

constexpr size_t kBytesMetrics = 2;  // read and written

// Both clocks were read by hand, a call of Python apart, and drift against each other by what that took.
constexpr double kClocksToleranceNs = 2e6;
constexpr double kRatioTolerance = 1e-3;

constexpr double kMostError = 0.5;  // a number that is less certain than this is none

json ReadJson(const char* path) {
  std::string text;
  gzFile file = gzopen(path, "rb");
  if (file == nullptr) {
    fprintf(stderr, "sample_join: cannot open %s\n", path);
    exit(2);
  }
  char buffer[1 << 16];
  int got = 0;
  while ((got = gzread(file, buffer, sizeof(buffer))) > 0) text.append(buffer, static_cast<size_t>(got));
  gzclose(file);
  return json::parse(text);
}

SampleWindow ReadSamples(const json& samples) {
  const auto ticks = samples.at("t").get<std::vector<uint64_t>>();
  const auto values = samples.at("v").get<std::vector<double>>();
  const size_t count = ticks.size() / 2;
  SampleWindow window;
  window.metrics = count == 0 ? 0 : values.size() / count;
  for (size_t i = 1; i < count; ++i) {
    window.begin.push_back(ticks[2 * i]);
    window.end.push_back(ticks[2 * i + 1]);
  }
  if (count > 0) window.values.assign(values.begin() + static_cast<ptrdiff_t>(window.metrics), values.end());
  return window;
}

// Kernels, copies and memory sets of one name and grid.
struct Group {
  std::string name, grid;
  uint32_t launches = 0, alone = 0;
  double us = 0, bytes = 0, squares = 0;
};

void ReadKernels(const json& trace, std::vector<TimedKernel>* kernels, std::vector<Group>* groups) {
  const auto base = trace.value("baseTimeNanoseconds", uint64_t{0});
  std::map<std::pair<std::string, std::string>, uint32_t> numbers;
  for (const json& event : trace.at("traceEvents")) {
    const std::string category = event.value("cat", "");
    if (event.value("ph", "") != "X" ||
        (category != "kernel" && category != "gpu_memcpy" && category != "gpu_memset")) {
      continue;
    }
    const json& args = event.at("args");
    const std::string name = event.at("name"), grid = args.contains("grid") ? args["grid"].dump() : "";
    const auto [number, is_new] = numbers.try_emplace({name, grid}, static_cast<uint32_t>(numbers.size()));
    if (is_new) groups->push_back({.name = name, .grid = grid});
    const auto ns = [](const json& us) { return static_cast<uint64_t>(std::llround(us.get<double>() * 1e3)); };
    const uint64_t start = base + ns(event.at("ts"));
    kernels->push_back({number->second, start, start + ns(event.at("dur"))});
  }
  std::sort(kernels->begin(), kernels->end(),
            [](const TimedKernel& a, const TimedKernel& b) { return a.start_ns < b.start_ns; });
}

// By what was read of the clocks; where that fits nothing, by the interval that was asked for and with the last
// sample at the last kernel's end.
Joined Join(const json& samples, const SampleWindow& window, const std::vector<TimedKernel>& kernels) {
  JoinOptions options{
      .fitted_metrics = kBytesMetrics, .ticks_tolerance = kRatioTolerance, .offset_tolerance_ns = kClocksToleranceNs};
  if (samples.contains("clock0") && samples.contains("clock1")) {
    const auto before = samples["clock0"].get<std::vector<uint64_t>>();
    const auto after = samples["clock1"].get<std::vector<uint64_t>>();
    options.ticks_per_ns = static_cast<double>(after[1] - before[1]) / static_cast<double>(after[0] - before[0]);
    const auto ticks = static_cast<int64_t>(window.begin.front() - before[1]);
    options.first_sample_ns =
        before[0] + static_cast<uint64_t>(std::llround(static_cast<double>(ticks) / options.ticks_per_ns));
    Joined joined = JoinSamples(window, kernels, options);
    if (joined.fits()) return joined;
  }
  std::vector<uint64_t> length(window.size());
  for (size_t i = 0; i < window.size(); ++i) length[i] = window.end[i] - window.begin[i];
  std::nth_element(length.begin(), length.begin() + static_cast<ptrdiff_t>(length.size() / 2), length.end());
  options.ticks_per_ns = static_cast<double>(length[length.size() / 2]) / samples.value("interval", 1.0);
  const double span = static_cast<double>(window.end.back() - window.begin.front()) / options.ticks_per_ns;
  options.first_sample_ns = kernels.back().end_ns - static_cast<uint64_t>(span);
  options.ticks_tolerance *= 5;
  return JoinSamples(window, kernels, options);
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

void Print(const Joined& joined, const std::vector<TimedKernel>& kernels, std::vector<Group> groups) {
  // Where launches of a group were alone, they speak for all of it.
  for (const bool alone : {true, false}) {
    for (size_t k = 0; k < kernels.size(); ++k) {
      Group& group = groups[kernels[k].group];
      if (!joined.kernels[k].whole || joined.kernels[k].alone != alone) continue;
      ++group.launches;
      group.us += static_cast<double>(kernels[k].end_ns - kernels[k].start_ns) / 1e3;
      if (!alone) continue;
      const double bytes = joined.value(k, 0) + joined.value(k, 1);
      ++group.alone;
      group.bytes += bytes;
      group.squares += bytes * bytes;
    }
  }
  OverlapSolver solver(joined.metrics);
  solver.Add(joined, kernels);
  std::map<uint32_t, std::pair<double, double>> told;  // bytes and their standard error
  for (const OverlapSolver::Solution& one : solver.Solve()) {
    const double bytes = one.told_apart ? one.values[0] + one.values[1] : 0;
    const double error = one.told_apart ? std::hypot(one.errors[0], one.errors[1]) : 0;
    if (!one.told_apart || error > kMostError * bytes) continue;
    told[one.group] = {bytes, error};
  }
  printf("kernel,grid,launches,time_us,dram_bytes,spread\n");
  for (uint32_t g = 0; g < groups.size(); ++g) {
    const Group& group = groups[g];
    if (group.launches == 0) continue;
    printf("%s,%s,%" PRIu32 ",%.3f,", Quoted(group.name).c_str(), Quoted(group.grid).c_str(), group.launches,
           group.us / group.launches);
    const auto solved = told.find(g);
    if (group.alone > 0) {
      const double mean = group.bytes / group.alone;
      const double variance = std::max(0.0, group.squares / group.alone - mean * mean);
      printf("%.0f,%.4f\n", mean, mean > 0 ? std::sqrt(variance) / mean : 0.0);
    } else if (solved != told.end()) {
      const auto [bytes, error] = solved->second;
      printf("%.0f,%.4f\n", bytes, error / bytes);
    } else {
      printf(",\n");
    }
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) {
    fprintf(stderr, "usage: sample_join SAMPLES.json[.gz] TRACE.json[.gz]\n");
    return 2;
  }
  const json samples = ReadJson(argv[1]);
  const SampleWindow window = ReadSamples(samples);
  std::vector<TimedKernel> kernels;
  std::vector<Group> groups;
  ReadKernels(ReadJson(argv[2]), &kernels, &groups);
  if (window.size() == 0 || window.metrics < kBytesMetrics || kernels.empty()) {
    fprintf(stderr, "sample_join: there are no samples of two metrics, or no kernels\n");
    return 1;
  }
  const Joined joined = Join(samples, window, kernels);
  if (!joined.fits()) {
    fprintf(stderr, "sample_join: these kernels do not explain these samples: %s\n",
            joined.verdict == JoinVerdict::kTooFew ? "too few samples lie in their time"
                                                   : "rates within kernels differ as much as between them");
    return 1;
  }
  fprintf(stderr,
          "offset %.1f us, %.6f ticks a ns, %.2f %% of the bytes in kernels, %.1f %% of the variance unexplained\n",
          joined.offset_ns / 1e3, joined.ticks_per_ns, joined.share_in_kernels * 100, joined.unexplained * 100);
  Print(joined, kernels, std::move(groups));
  return 0;
} catch (const json::exception& error) {
  fprintf(stderr, "sample_join: %s\n", error.what());
  return 1;
}
