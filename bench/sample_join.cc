// Joins samples of PM sampling with the kernels of a recording of torch.profiler that ran meanwhile, by the code of
// the injected library (collector/cupti/sample_join.h), and prints what each kernel moved as CSV.
//
//   build/release/tools/sample_join SAMPLES.json.gz TRACE.json.gz [TIMELINE.rfx]
//
// SAMPLES has `t`, begin and end of each sample in ticks, one after the other; `v`, the values of each sample, the
// first two of which are bytes read and written; `interval` in ns; `clock0` and `clock1`, each the time since the
// epoch in ns and the tick, read by hand before and after. The first sample is left out: it lasts from the moment at
// which the session was enabled. `spread` is the standard deviation between launches as a share of their mean; where
// samples tell a kernel from others only over all launches, it is the standard error of that instead. Numbers that
// cannot be told are empty. Exits with 1 where the samples do not fit the kernels.
//
// TIMELINE becomes a trace with a step of the recording as the GPU saw it: `rfinject report --by timeline`. A step
// ends with what the optimizer's scope ran on the GPU. A recording has no layers; the operators are those that
// launched.
#include "collector/cupti/sample_join.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "collector/cupti/launch_keys.h"
#include "collector/cupti/overlap_solver.h"
#include "collector/cupti/step_timeline.h"
#include "collector/cupti/time_join.h"
#include "collector/recorder.h"

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

bool RanOnGpu(const json& event) {
  const std::string category = event.value("cat", "");
  return event.value("ph", "") == "X" &&
         (category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset");
}

void ReadKernels(const json& trace, std::vector<TimedKernel>* kernels, std::vector<Group>* groups) {
  const auto base = trace.value("baseTimeNanoseconds", uint64_t{0});
  std::map<std::pair<std::string, std::string>, uint32_t> numbers;
  for (const json& event : trace.at("traceEvents")) {
    if (!RanOnGpu(event)) continue;
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
Joined Join(const json& samples, const SampleWindow& window, const std::vector<TimedKernel>& kernels,
            uint64_t* first_sample_ns) {
  JoinOptions options{
      .fitted_metrics = kBytesMetrics, .ticks_tolerance = kRatioTolerance, .offset_tolerance_ns = kClocksToleranceNs};
  if (samples.contains("clock0") && samples.contains("clock1")) {
    const auto before = samples["clock0"].get<std::vector<uint64_t>>();
    const auto after = samples["clock1"].get<std::vector<uint64_t>>();
    options.ticks_per_ns = static_cast<double>(after[1] - before[1]) / static_cast<double>(after[0] - before[0]);
    const auto ticks = static_cast<int64_t>(window.begin.front() - before[1]);
    options.first_sample_ns =
        before[0] + static_cast<uint64_t>(std::llround(static_cast<double>(ticks) / options.ticks_per_ns));
    *first_sample_ns = options.first_sample_ns;
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
  *first_sample_ns = options.first_sample_ns;
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

// What the recording says of the host's side: operators by when they ran, and launches.
class HostSide {
 public:
  explicit HostSide(const json& trace) {
    for (const json& event : trace.at("traceEvents")) {
      if (event.value("ph", "") != "X") continue;
      const std::string category = event.value("cat", "");
      const double begin = event.at("ts"), end = begin + event.value("dur", 0.0);
      const int64_t thread = event.value("tid", json(0)).is_number() ? event["tid"].get<int64_t>() : 0;
      if (category == "cpu_op" || category == "user_annotation")
        scopes_[thread].push_back({begin, end, event.at("name")});
      if (category == "cuda_runtime" || category == "cuda_driver") {
        launches_[event.at("args").value("correlation", 0)] = {thread, begin};
      }
      if (category == "gpu_user_annotation" && event.at("name").get<std::string>().starts_with("Optimizer.step")) {
        step_ends_.push_back(end);
      }
    }
    for (auto& [thread, scopes] : scopes_) std::sort(scopes.begin(), scopes.end());
    std::sort(step_ends_.begin(), step_ends_.end());
  }

  // The innermost operator of a launch, and its phase.
  std::string OperatorOf(int64_t correlation, rfinject::Phase* phase) const {
    std::string op;
    *phase = rfinject::Phase::kForward;
    const auto launch = launches_.find(correlation);
    if (launch == launches_.end() || !scopes_.contains(launch->second.thread)) return op;
    for (const Scope& scope : scopes_.at(launch->second.thread)) {
      if (scope.begin > launch->second.at) break;
      if (scope.end < launch->second.at) continue;
      if (scope.name.starts_with("autograd::engine")) *phase = rfinject::Phase::kBackward;
      if (scope.name.starts_with("Optimizer.")) *phase = rfinject::Phase::kOptimizer;
      if (scope.name.starts_with("aten::")) op = scope.name;
    }
    return op;
  }

  uint64_t StepAt(double at) const {
    return static_cast<uint64_t>(std::upper_bound(step_ends_.begin(), step_ends_.end(), at) - step_ends_.begin());
  }

 private:
  struct Scope {
    double begin, end;
    std::string name;
    bool operator<(const Scope& other) const { return begin < other.begin; }
  };
  struct Launch {
    int64_t thread;
    double at;
  };
  std::map<int64_t, std::vector<Scope>> scopes_;
  std::map<int64_t, Launch> launches_;
  std::vector<double> step_ends_;
};

// The recording as the library's own log of launches; `records` becomes what ran.
rfinject::cupti::TimeJoin LogOf(const json& trace, rfinject::cupti::LaunchKeys* keys, rfinject::Recorder& recorder) {
  const HostSide host(trace);
  const auto base = trace.value("baseTimeNanoseconds", uint64_t{0});
  rfinject::cupti::TimeJoin join;
  for (const json& event : trace.at("traceEvents")) {
    if (!RanOnGpu(event)) continue;
    const json& args = event.at("args");
    rfinject::cupti::LaunchCall call;
    static std::map<std::string, char> functions;
    const std::string name = event.at("name");
    call.function = &functions[name];
    if (args.contains("grid")) call.grid = args["grid"].get<std::array<uint32_t, 3>>();
    if (args.contains("block")) call.block = args["block"].get<std::array<uint32_t, 3>>();
    call.site.op = recorder.Intern(host.OperatorOf(args.value("correlation", 0), &call.site.phase));
    const rfinject::LaunchIdentity* identity = nullptr;
    const uint32_t key = keys->Find(call, name.c_str(), recorder, &identity);
    const auto ns = [](const json& us) { return static_cast<uint64_t>(std::llround(us.get<double>() * 1e3)); };
    const uint64_t start = base + ns(event.at("ts")), end = start + ns(event.at("dur"));
    join.ran.push_back({static_cast<uint32_t>(join.launches.size()), event.value("cat", "") != "kernel", 0, start,
                        end, args.value("stream", 0U)});
    join.launches.push_back({key, end - start, host.StepAt(event.at("ts"))});
  }
  std::sort(join.ran.begin(), join.ran.end(), [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
  return join;
}

void WriteTimeline(const json& trace, const SampleWindow& window, const Joined& joined, uint64_t first_sample_ns,
                   const char* path) {
  setenv("RFINJECT_OUTPUT", path, 1);
  rfinject::Recorder& recorder = rfinject::Recorder::Get();
  recorder.BeginFirstStep();
  recorder.Activate();
  rfinject::RunFacts facts;
  facts.source = rfinject::SourceKind::kMeasured;
  facts.collector = "sample_join";
  const json& board = trace.at("deviceProperties").at(0);
  rfinject::DeviceFacts device;
  device.name = board.at("name").get<std::string>();
  device.sm_count = board.value("numSms", 0U);
  facts.device.push_back(device);
  recorder.UpdateFacts(facts);

  rfinject::cupti::LaunchKeys keys;
  const rfinject::cupti::TimeJoin join = LogOf(trace, &keys, recorder);
  uint64_t step = 0;
  for (const auto& ran : join.ran) {
    const auto& launch = join.launches[ran.launch];
    for (; step < launch.step; ++step) recorder.EndStep(0);
    rfinject::LaunchRecord record;
    record.identity = keys.Identity(launch.key);
    record.AddSample(rfinject::kTime, launch.ns);
    recorder.Record(record);
  }
  recorder.EndStep(0);

  SampleWindow timed = window;  // in ns
  for (std::vector<uint64_t>* const ticks : {&timed.begin, &timed.end}) {
    for (uint64_t& tick : *ticks) {
      const auto ns = static_cast<double>(static_cast<int64_t>(tick - window.begin.front())) / joined.ticks_per_ns;
      tick = first_sample_ns + static_cast<uint64_t>(std::llround(ns + joined.offset_ns));
    }
  }
  rfinject::cupti::StepTimeline timeline(0, window.metrics, keys);
  timeline.Add(join, timed, 0);
  timeline.Tell(recorder);
  recorder.Finish("exit");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3 && argc != 4) {
    fprintf(stderr, "usage: sample_join SAMPLES.json[.gz] TRACE.json[.gz] [TIMELINE.rfx]\n");
    return 2;
  }
  const json samples = ReadJson(argv[1]);
  const SampleWindow window = ReadSamples(samples);
  std::vector<TimedKernel> kernels;
  std::vector<Group> groups;
  const json trace = ReadJson(argv[2]);
  ReadKernels(trace, &kernels, &groups);
  if (window.size() == 0 || window.metrics < kBytesMetrics || kernels.empty()) {
    fprintf(stderr, "sample_join: there are no samples of two metrics, or no kernels\n");
    return 1;
  }
  uint64_t first_sample_ns = 0;
  const Joined joined = Join(samples, window, kernels, &first_sample_ns);
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
  if (argc == 4) WriteTimeline(trace, window, joined, first_sample_ns, argv[3]);
  return 0;
} catch (const json::exception& error) {
  fprintf(stderr, "sample_join: %s\n", error.what());
  return 1;
}
