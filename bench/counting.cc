// File: counting.cc
//
// What counting costs a program, on the simulated GPU with the costs of the recorded one
// (integration_tests/simulated_gpu/sim_costs.h). The program's kernels are those of recorded training steps
// (recorded_kernels.csv.gz), cut or repeated to a number of launches and stretched to a duration; the collector is
// the one that is shipped. Time is the machine's, so a machine with much else to do adds to the longest steps.
//
//   counting [--launches N] [--step-ms X] [--steps N] [--streams S] [--overhead P] [--seed S]
//            [--noise white|step|PERIOD] [--exclusive 0|1] [--pace K] [--trace FOLDER]
//
// With --pace K a run takes K times as long as it says, so that the collector's thread has time on a machine with few
// processors and much to do.
// Returns 1 where FLOP are wrong or CUPTI was used as its documentation forbids.
//
// With --exclusive 1, as by default and on the recorded GPUs, sessions of samples and of ranges exclude each other.
// With --trace the shipped recorder writes a trace into the folder, and truth.csv beside it has the bytes of a mean
// step; bench/counting_coverage holds the intervals of a report against it.
#include <cuda.h>
#include <dlfcn.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collector/cupti/hardware_source.h"
#include "collector/settings.h"
#include "collector/site.h"
#include "collector/testing/fake_recorder.h"
#include "integration_tests/simulated_gpu/simulator.h"

namespace rfinject::bench {
namespace {

constexpr uint64_t kFirstSteps = 300;  // what counting may cost is said of these, and what it does after them
constexpr double kLongStep = 1.3;      // over the median
constexpr size_t kVariants = 16;       // of a launch, which differ by noise
// White noise is of each launch alone; that of a step is of all its launches; a period has one step that is longer.
constexpr double kWhite = 0.01, kOfStep = 0.02, kLonger = 0.5;
constexpr double kTimeNoise = 0.003;

struct Options {
  uint64_t launches = 349, steps = 450, streams = 1, seed = 1, exclusive = 1, pace = 1;
  double step_ms = 14.5, overhead = 1;
  std::string noise = "white", trace;
  uint64_t period() const { return strtoull(noise.c_str(), nullptr, 10); }  // 0: none
};

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

// A launch of the program, again and again in each step.
struct Launch {
  std::string kernel;
  Phase phase = Phase::kOther;
  uint32_t layer = 0, row = 0;
  uint32_t site_layer = 0, site_op = 0;  // by the recorder's numbers
  std::array<unsigned, 3> grid{};
  unsigned block = 0;
  double ns = 0, bytes = 0, l2_bytes = 0;
  std::array<uint64_t, kPrecisionCount> flop{};
  std::array<std::vector<SimMetric>, kVariants> metrics;
  std::array<SimKernel, kVariants> variants{};
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
// Which variant a launch is.
size_t VariantOf(const Options& options, uint64_t step, uint64_t launch) {
  if (options.period() != 0) return (step + options.seed) % options.period();
  const uint64_t of_step = Mix(options.seed ^ Mix(step));
  return (options.noise == "step" ? of_step : Mix(of_step ^ launch)) % kVariants;
}

// The program that has the next number of launches, cut or repeated to it, and stretched to the duration.
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

// Keeps how often each launch key was sampled, and since when; records are not kept.
class Samples : public testing::FakeRecorder {
 public:
  struct Key {
    std::array<uint64_t, kPrecisionCount> flop_samples{};
    uint64_t byte_samples = 0, byte_launches = 0, wrong_flop = 0;
    double bytes = 0;
  };
  void Record(const LaunchRecord& record) noexcept override {
    const std::lock_guard lock(mutex_);
    Key& key = keys_[record.identity.site.layer];
    for (uint32_t i = 0; i < record.sample_count; ++i) {
      const Sample& sample = record.samples[i];
      if (sample.metric == kDramBytes) {
        ++key.byte_samples;
        key.bytes += static_cast<double>(sample.value);
      } else if (sample.metric >= kFlopFirst && sample.metric < kFlopFirst + kPrecisionCount) {
        const size_t precision = sample.metric - kFlopFirst;
        ++key.flop_samples[precision];
        const Launch* launch = launches_[record.identity.site.layer];
        key.wrong_flop += launch != nullptr && sample.value != launch->flop[precision];
      }
    }
  }
  void Know(const std::vector<Launch>& program) {
    for (const Launch& launch : program) {
      if (launches_.emplace(launch.row, &launch).second) work_[launch.layer] += WorkOf(launch);
    }
  }
  // Layers that launch the same are of one class and have the same shapes, as the blocks of a network have. Each row
  // is a layer of its own here, so that its samples can be told apart.
  bool FindLayer(uint32_t layer, LayerDefinition* definition) override {
    const auto row = launches_.find(layer);
    if (row == launches_.end() || row->second->layer == 0) return false;
    definition->class_name = "Layer";
    definition->input_shape = work_[row->second->layer];
    definition->output_shape = WorkOf(*row->second);
    return true;
  }
  // How many of the program's keys lack bytes, or FLOP of a precision that they execute.
  std::map<std::string, uint64_t> Lacking() {
    const std::lock_guard lock(mutex_);
    std::map<std::string, uint64_t> lacking;
    for (const auto& [row, launch] : launches_) {
      const Key& key = keys_[row];
      if (key.byte_samples == 0) ++lacking["bytes"];
      for (size_t p = 0; p < kPrecisionCount; ++p) {
        if (launch->flop[p] != 0 && key.flop_samples[p] == 0) ++lacking[std::string(kPrecisionNames[p])];
      }
    }
    return lacking;
  }
  const std::map<uint32_t, const Launch*>& launches() const { return launches_; }
  Key KeyOf(uint32_t row) {
    const std::lock_guard lock(mutex_);
    return keys_[row];
  }

 private:
  static std::string WorkOf(const Launch& launch) {
    std::string work = launch.kernel + " " + std::to_string(static_cast<int>(launch.phase));
    for (const unsigned blocks : launch.grid) work += " " + std::to_string(blocks);
    for (const uint64_t flop : launch.flop) work += " " + std::to_string(flop);
    return work + "\n";
  }

  std::mutex mutex_;
  std::map<uint32_t, Key> keys_;
  std::map<uint32_t, const Launch*> launches_;  // by the row of the table, which the site's layer is
  std::map<uint32_t, std::string> work_;        // of each layer: what it launches
};

// The collector measures by the simulated clock, so that what else the machine does costs nothing here.
decltype(&::sim_now) g_now = nullptr;
decltype(&::sim_spend) g_spend = nullptr;

thread_local Site t_site;
Site ThreadSite() noexcept { return t_site; }

template <typename Function>
Function* Find(void* library, const char* name) {
  auto* function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function != nullptr) return function;
  fprintf(stderr, "counting: %s\n", dlerror());
  exit(2);
}

// What the run took: when each step had ended on the GPU, in ms.
struct Run {
  std::vector<double> ends;
  uint64_t known_at = 0;                  // step; 0: never
  std::map<const Launch*, double> bytes;  // of all steps
  std::string calls;                      // of the collector's, those that say what it did
  std::string violations;                 // of CUPTI's documentation
};

Run RunProgram(const Options& options, const std::vector<Launch>& program, Recorder& recorder, Samples* samples) {
  setenv("SIM_REAL_CUPTI", SIM_REAL_CUPTI_FOLDER, 1);
  void* driver = dlopen(SIM_FOLDER "/driver/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr || dlopen(SIM_FOLDER "/cupti13/libcupti.so.13", RTLD_NOW | RTLD_LOCAL) == nullptr) {
    fprintf(stderr, "counting: %s\n", dlerror());
    exit(2);
  }
  auto* const launch_kernel = Find<decltype(::cuLaunchKernel)>(driver, "cuLaunchKernel");
  auto* const launch_as = Find<decltype(::sim_launch_as)>(driver, "sim_launch_as");
  std::map<uint32_t, CUfunction> functions;  // by the row of the table
  for (const Launch& launch : program) {
    functions.emplace(launch.row, reinterpret_cast<CUfunction>(const_cast<SimKernel*>(launch.variants.data())));
  }
  auto* const now = Find<decltype(::sim_now)>(driver, "sim_now");
  auto* const barrier = Find<decltype(::sim_barrier)>(driver, "sim_barrier");
  auto* const spend = Find<decltype(::sim_spend)>(driver, "sim_spend");
  auto* const idle_at = Find<decltype(::sim_idle_at)>(driver, "sim_idle_at");
  CUcontext context = nullptr;
  Find<decltype(::cuInit)>(driver, "cuInit")(0);
  Find<decltype(::cuDevicePrimaryCtxRetain)>(driver, "cuDevicePrimaryCtxRetain")(&context, 0);
  Find<decltype(::cuCtxSetCurrent)>(driver, "cuCtxSetCurrent")(context);
  Find<decltype(::sim_set_chip)>(driver, "sim_set_chip")("GH100", 9, 0);
  Find<decltype(::sim_set_exclusive)>(driver, "sim_set_exclusive")(options.exclusive != 0 ? 1 : 0);
  Find<decltype(::sim_set_time)>(driver, "sim_set_time")(static_cast<int>(options.pace), 1);
  g_now = now;
  g_spend = spend;
  auto* settings = new Settings;
  settings->overhead_percent = options.overhead;
  g_site_function.store(&ThreadSite);
  Source* source = MakeHardwareSource(*settings, recorder);
  Run run;
  const uint64_t begin = now();
  const auto mark = [&] { run.ends.push_back(static_cast<double>(std::max(now(), idle_at(context)) - begin) / 1e6); };
  mark();
  for (uint64_t step = 0; step < options.steps; ++step) {
    for (size_t i = 0; i < program.size(); ++i) {
      const Launch& launch = program[i];
      // Streams wait for each other where the phase changes.
      if (i > 0 && launch.phase != program[i - 1].phase) barrier(context, 0);
      t_site = Site{launch.site_layer, launch.site_op, 0, launch.phase};
      const SimKernel& kernel = launch.variants[VariantOf(options, step, i)];
      run.bytes[&launch] += kernel.metrics[0].value + kernel.metrics[1].value;
      const uintptr_t stream = launch.phase == Phase::kBackward ? i % options.streams : 0;
      launch_as(&kernel);
      launch_kernel(functions[launch.row], launch.grid[0], launch.grid[1], launch.grid[2], launch.block, 1, 1, 0,
                    reinterpret_cast<CUstream>(16 * stream), nullptr, nullptr);
    }
    source->OnStepEnd(step);
    recorder.EndStep(1);
    barrier(context, 0);
    mark();
    if (samples != nullptr && run.known_at == 0 && samples->Lacking().empty()) run.known_at = step + 1;
  }
  auto* const calls = Find<decltype(::sim_calls)>(driver, "sim_calls");
  for (const char* name :
       {"cuptiPmSamplingEnable", "cuptiPmSamplingStart", "cuptiRangeProfilerEnable", "cuptiRangeProfilerStart",
        "cuptiRangeProfilerPushRange", "cuptiActivityFlushAll", "cuCtxSynchronize"}) {
    if (const uint64_t count = calls(name); count != 0)
      run.calls += std::string(" ") + name + " " + std::to_string(count);
  }
  Find<decltype(::cuCtxSynchronize)>(driver, "cuCtxSynchronize")();
  source->Stop();
  run.violations = Find<decltype(::sim_violations)>(driver, "sim_violations")();
  return run;
}

void PrintCosts(const Options& options, const std::string& name, const Run& run) {
  std::vector<double> steps;
  for (size_t i = 1; i < run.ends.size(); ++i) steps.push_back(run.ends[i] - run.ends[i - 1]);
  std::vector<double> sorted = steps;
  std::sort(sorted.begin(), sorted.end());
  const double median = sorted[sorted.size() / 2];
  const size_t first = std::min<size_t>(kFirstSteps, steps.size());
  printf("%" PRIu64 " launches of %s, %.1f ms, %" PRIu64 " streams; budget %g %%\n", options.launches, name.c_str(),
         options.step_ms, options.streams, options.overhead);
  printf("a step, median             %10.2f ms\n", median);
  printf("lost in the first %zu steps %9.2f s\n", first,
         (run.ends[first] - static_cast<double>(first) * median) / 1e3);
  printf("the longest step           %10.2f times the median; %td steps above %g:", sorted.back() / median,
         std::count_if(steps.begin(), steps.end(), [&](double ms) { return ms > kLongStep * median; }), kLongStep);
  int said = 0;
  for (size_t i = 0; i < steps.size() && said < 12; ++i) {
    if (steps[i] > kLongStep * median) said += printf(" %zu (%.2f)", i + 1, steps[i] / median) > 0;
  }
  printf("\n");
  printf("calls                     %s\n", run.calls.c_str());
  if (!run.violations.empty()) printf("CUPTI was used wrongly:\n%s", run.violations.c_str());
  if (steps.size() > first) {
    const double after = run.ends.back() - run.ends[first];
    printf("overhead after that        %10.4f\n", after / (static_cast<double>(steps.size() - first) * median));
  }
}

// Returns how many samples of FLOP were not what the kernel does.
uint64_t PrintSamples(const Run& run, Samples& samples) {
  std::map<uint32_t, std::pair<double, double>> truths;  // of a row of the table: bytes and launches
  for (const auto& [launch, bytes] : run.bytes) {
    truths[launch->row].first += bytes;
    truths[launch->row].second += static_cast<double>(run.ends.size() - 1);
  }
  printf("all keys are known         %10s\n",
         run.known_at != 0 ? ("by step " + std::to_string(run.known_at)).c_str() : "never");
  for (const auto& [what, keys] : samples.Lacking()) printf("%" PRIu64 " keys lack %s\n", keys, what.c_str());
  std::vector<uint64_t> byte_samples;
  double error = 0, all = 0;
  uint64_t wrong = 0;
  for (const auto& [row, launch] : samples.launches()) {
    const Samples::Key key = samples.KeyOf(row);
    byte_samples.push_back(key.byte_samples);
    wrong += key.wrong_flop;
    const double truth = truths[row].first / truths[row].second;
    all += truth;
    if (key.byte_samples != 0) error += std::abs(key.bytes / static_cast<double>(key.byte_samples) - truth);
  }
  std::sort(byte_samples.begin(), byte_samples.end());
  printf("samples of bytes a key     %10" PRIu64 " at least, %" PRIu64 " in the median\n", byte_samples.front(),
         byte_samples[byte_samples.size() / 2]);
  printf("bytes are off by           %10.2f %%; FLOP samples that are wrong: %" PRIu64 "\n", 100 * error / all,
         wrong);
  for (const auto& one : samples.diagnostics()) printf("said: %s: %s\n", one.id.c_str(), one.text.c_str());
  return wrong;
}

// What a report of the trace should say: the bytes of a step, by the operator that TraceInto gives each row.
void WriteTruth(const Options& options, const Run& run) {
  std::map<uint32_t, double> rows;
  for (const auto& [launch, bytes] : run.bytes) rows[launch->row] += bytes / static_cast<double>(options.steps);
  FILE* file = fopen((options.trace + "/truth.csv").c_str(), "w");
  if (file == nullptr) return;
  for (const auto& [row, bytes] : rows) fprintf(file, "row %u,%.0f\n", row, bytes);
  fclose(file);
}

// The shipped recorder, with a layer for each of the program's.
Recorder& TraceInto(const std::string& folder, std::vector<Launch>* program) {
  setenv("RFINJECT_OUTPUT", (folder + "/").c_str(), 1);
  Recorder& recorder = Recorder::Get();
  recorder.Activate();
  const uint32_t model = recorder.DefineModel({.class_name = "Recorded"});
  std::map<uint32_t, uint32_t> layers;
  for (Launch& launch : *program) {
    uint32_t& layer = layers[launch.layer];
    if (layer == 0) layer = recorder.DefineLayer({.model = model, .path = "layer" + std::to_string(launch.layer)});
    launch.site_layer = layer;
    launch.site_op = recorder.Intern("row " + std::to_string(launch.row));
  }
  return recorder;
}

bool Parse(int argc, char** argv, Options* options) {
  const std::map<std::string_view, uint64_t*> numbers = {
      {"--launches", &options->launches}, {"--steps", &options->steps},         {"--streams", &options->streams},
      {"--seed", &options->seed},         {"--exclusive", &options->exclusive}, {"--pace", &options->pace}};
  const std::map<std::string_view, double*> shares = {{"--step-ms", &options->step_ms},
                                                      {"--overhead", &options->overhead}};
  const std::map<std::string_view, std::string*> words = {{"--noise", &options->noise}, {"--trace", &options->trace}};
  for (int i = 1; i + 1 < argc; i += 2) {
    if (const auto at = numbers.find(argv[i]); at != numbers.end()) {
      *at->second = strtoull(argv[i + 1], nullptr, 10);
    } else if (const auto share = shares.find(argv[i]); share != shares.end()) {
      *share->second = strtod(argv[i + 1], nullptr);
    } else if (const auto word = words.find(argv[i]); word != words.end()) {
      *word->second = argv[i + 1];
    } else {
      return false;
    }
  }
  const bool noise = options->noise == "white" || options->noise == "step" ||
                     (options->period() >= 2 && options->period() <= kVariants);
  return argc % 2 == 1 && options->launches > 0 && options->steps > 0 && options->streams > 0 &&
         options->step_ms > 0 && options->pace > 0 && noise;
}

int Main(int argc, char** argv) {
  Options options;
  if (!Parse(argc, argv, &options)) {
    fprintf(stderr,
            "usage: counting [--launches N] [--step-ms X] [--steps N] [--streams S] [--overhead P] [--seed S]\n"
            "                [--noise white|step|2...16] [--exclusive 0|1] [--pace K]\n"
            "                [--trace FOLDER]\n");
    return 2;
  }
  if (access(SIM_REAL_CUPTI_FOLDER "/libcupti.so.13", R_OK) != 0) {
    fprintf(stderr, "counting: there is no real CUPTI 13 to plan with\n");
    return 77;  // as a test it is skipped
  }
  std::string name;
  // Never freed, as samples and settings: a thread of the source's may still look at them when the process ends.
  auto& program = *new std::vector<Launch>(MakeProgram(options, &name));
  if (program.empty()) {
    fprintf(stderr, "counting: %s cannot be read\n", RECORDED_KERNELS);
    return 2;
  }
  if (!options.trace.empty()) {
    Recorder& recorder = TraceInto(options.trace, &program);
    const Run run = RunProgram(options, program, recorder, nullptr);
    recorder.Finish("exit");
    PrintCosts(options, name, run);
    WriteTruth(options, run);
    return run.violations.empty() ? 0 : 1;
  }
  auto* const samples = new Samples;
  samples->Know(program);
  const Run run = RunProgram(options, program, *samples, samples);
  PrintCosts(options, name, run);
  return PrintSamples(run, *samples) == 0 && run.violations.empty() ? 0 : 1;
}

}  // namespace
}  // namespace rfinject::bench

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto now = rfinject::bench::g_now;
  if (now == nullptr || clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_PROCESS_CPUTIME_ID) {
    return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  }
  const uint64_t ns = now();
  *time = {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  return 0;
}
extern "C" int nanosleep(const timespec* time, timespec* left) {
  const auto spend = rfinject::bench::g_spend;
  if (spend == nullptr) return static_cast<int>(syscall(SYS_nanosleep, time, left));
  spend(static_cast<uint64_t>(time->tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time->tv_nsec));
  return 0;
}

int main(int argc, char** argv) { return rfinject::bench::Main(argc, argv); }
