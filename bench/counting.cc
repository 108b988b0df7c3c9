// File: counting.cc
//
// What counting costs a program, on the simulated GPU with the costs of the recorded one
// (integration_tests/simulated_gpu/sim_costs.h). The program's kernels are those of recorded training steps
// (recorded_kernels.csv.gz), cut or repeated to a number of launches and stretched to a duration; the collector is
// the one that is shipped. Time is the machine's, so a machine with much else to do adds to the longest steps.
//
//   counting [--launches N] [--step-ms X] [--steps N] [--streams S] [--overhead P] [--seed S]
//            [--noise white|step|PERIOD] [--exclusive 0|1] [--pace K] [--trace FOLDER]
//            [--start-up-ms X] [--data-ms X] [--reads-loss 0|1] [--odd X] [--second-half X]
//
// The model is called 550 ms before the first step's launches: of four programs on an H100 the first step had ended
// 547 to 2,189 ms after the library saw a context (docs/measurements/h100). The host waits for data before each step,
// reads the loss at its end, and the kernels of odd steps, or those of the second half of the run, take X times as
// long.
//
// With --pace K a run takes K times as long as it says, so that the collector's thread has time on a machine with few
// processors and much to do.
// Returns 1 where FLOP are wrong or CUPTI was used as its documentation forbids.
//
// With --exclusive 1, as by default and on the recorded GPUs, sessions of samples and of ranges exclude each other.
// With --trace the shipped recorder writes a trace into the folder, and beside it truth.csv has the bytes of a mean
// step and of a mean ordinary one, steps.csv what each step took of the GPU and the host, and idle.csv before which
// layers the GPU was idle (the last two of one stream); bench/counting_coverage and
// integration_tests/simulated_gpu/times_test.py hold reports against it.
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
#include <tuple>
#include <vector>

#include "bench/counted_program.h"
#include "collector/cupti/hardware_source.h"
#include "collector/settings.h"
#include "collector/site.h"
#include "collector/step_waits.h"
#include "collector/testing/fake_recorder.h"
#include "integration_tests/simulated_gpu/simulator.h"

namespace rfinject::bench {
namespace {

constexpr uint64_t kFirstSteps = 300;  // what counting may cost is said of these, and what it does after them
constexpr double kLongStep = 1.3;      // over the median

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
  struct Lack {
    uint64_t keys = 0;
    double ns = 0;  // of a step
  };
  // The program's keys that lack bytes, or FLOP of a precision that they execute.
  std::map<std::string, Lack> Lacking() {
    const std::lock_guard lock(mutex_);
    std::map<std::string, Lack> lacking;
    const auto add = [&](const std::string& what, const Launch& launch) {
      ++lacking[what].keys;
      lacking[what].ns += static_cast<double>(launch.variants[0].ns);
    };
    for (const auto& [row, launch] : launches_) {
      const Key& key = keys_[row];
      if (key.byte_samples == 0) add(kBytes, *launch);
      for (size_t p = 0; p < kPrecisionCount; ++p) {
        if (launch->flop[p] != 0 && key.flop_samples[p] == 0) add(std::string(kPrecisionNames[p]), *launch);
      }
    }
    return lacking;
  }
  static constexpr const char* kBytes = "bytes";
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
void ThreadSite(Site* site) noexcept { *site = t_site; }

template <typename Function>
Function* Find(void* library, const char* name) {
  auto* function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function != nullptr) return function;
  fprintf(stderr, "counting: %s\n", dlerror());
  exit(2);
}

// What a step took of the GPU and the host, in ns.
struct StepTruth {
  uint64_t period = 0, busy = 0, host = 0, gpu_wait = 0, data_wait = 0;
  uint64_t data_idle = 0;               // the GPU, while the host waits for data
  bool counted = false;                 // sessions were opened or closed, or ranges counted
  std::map<uint32_t, uint64_t> idle{};  // by layer: the GPU, before its launches
};

// What the run took: when each step had ended on the GPU, in ms.
struct Run {
  std::vector<double> ends;
  std::vector<StepTruth> truths;
  uint64_t windows = 0;                            // sampled in the first steps
  uint64_t flop_known_at = 0, bytes_known_at = 0;  // step; 0: never
  std::map<const Launch*, double> bytes;           // of all steps
  std::map<const Launch*, double> bytes_of_ordinary;
  uint64_t ordinary = 0;   // steps that are not a period's longer one
  std::string calls;       // of the collector's, those that say what it did
  std::string violations;  // of CUPTI's documentation
};

// The program on the simulated GPU.
class Program {
 public:
  Program(const Options& options, std::vector<Launch>* launches) : options_(options), launches_(*launches) {
    for (const Launch& launch : launches_) {
      functions_.emplace(launch.row, reinterpret_cast<CUfunction>(const_cast<SimKernel*>(launch.variants.data())));
    }
    Call<decltype(::cuInit)>("cuInit")(0);
    Call<decltype(::cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context_, 0);
    Call<decltype(::cuCtxSetCurrent)>("cuCtxSetCurrent")(context_);
    Call<decltype(::sim_set_chip)>("sim_set_chip")("GH100", 9, 0);
    Call<decltype(::sim_set_exclusive)>("sim_set_exclusive")(options.exclusive != 0 ? 1 : 0);
    Call<decltype(::sim_set_time)>("sim_set_time")(static_cast<int>(options.pace), 1);
    g_now = now_;
    g_spend = Call<decltype(::sim_spend)>("sim_spend");
    if (options.data_ms > 0) WatchWaits(kDataWaits);
  }

  template <typename Function>
  Function* Call(const char* name) const {
    return Find<Function>(driver_, name);
  }
  // When all that was launched has ended, by the simulated clock.
  uint64_t EndNs() const { return std::max(now_(), idle_at_(context_)); }
  uint64_t now_ns() const { return now_(); }
  uint64_t SampledWindows() const { return calls_("cuptiPmSamplingStop"); }
  // What libraries do when the model is called first, in which our thread plans.
  void StartUp(Source* source) const {
    source->OnFirstCall();
    g_spend(static_cast<uint64_t>(options_.start_up_ms * 1e6));
  }

  void RunStep(uint64_t step, Source* source, Recorder* recorder, Run* run) {
    StepTruth truth;
    const uint64_t begin = now_(), waited = waited_(), end_before = idle_at_(context_), calls = CountingCalls();
    WaitForData(&truth);
    if (!IsLonger(step)) ++run->ordinary;
    for (size_t i = 0; i < launches_.size(); ++i) LaunchOne(step, i, &truth, run);
    truth.period = idle_at_(context_) - end_before;
    if (options_.reads_loss != 0) {
      const uint64_t before = now_();
      synchronize_();
      truth.gpu_wait += now_() - before;
    }
    truth.gpu_wait += waited_() - waited;
    truth.host = now_() - begin;
    source->OnStepEnd(step);
    recorder->EndStep(1);
    barrier_(context_, 0);
    truth.counted = CountingCalls() != calls;
    run->truths.push_back(std::move(truth));
  }

 private:
  static void* Open() {
    setenv("SIM_REAL_CUPTI", SIM_REAL_CUPTI_FOLDER, 1);
    void* driver = dlopen(SIM_FOLDER "/driver/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver != nullptr && dlopen(SIM_FOLDER "/cupti13/libcupti.so.13", RTLD_NOW | RTLD_LOCAL) != nullptr)
      return driver;
    fprintf(stderr, "counting: %s\n", dlerror());
    exit(2);
  }
  void WaitForData(StepTruth* truth) {
    if (!(options_.data_ms > 0)) return;
    const uint64_t begin = now_(), idle_at = idle_at_(context_);
    BeginWait(kDataWaits);
    g_spend(static_cast<uint64_t>(options_.data_ms * 1e6));
    EndWait(kDataWaits);
    const uint64_t end = now_();
    truth->data_wait = end - begin;
    truth->data_idle = end - std::min(end, std::max(begin, idle_at));
  }
  void LaunchOne(uint64_t step, size_t i, StepTruth* truth, Run* run) {
    Launch& launch = launches_[i];
    // Streams wait for each other where the phase changes.
    if (i > 0 && launch.phase != launches_[i - 1].phase) barrier_(context_, 0);
    t_site = Site{launch.site_layer, 0, 0, launch.phase};
    const SimKernel& kernel = KernelIn(step, VariantOf(options_, step, i), options_, &launch);
    const double bytes = kernel.metrics[0].value + kernel.metrics[1].value;
    run->bytes[&launch] += bytes;
    if (!IsLonger(step)) run->bytes_of_ordinary[&launch] += bytes;
    const uintptr_t stream = launch.phase == Phase::kBackward ? i % options_.streams : 0;
    const uint64_t before = idle_at_(context_);
    launch_as_(&kernel);
    launch_(functions_[launch.row], launch.grid[0], launch.grid[1], launch.grid[2], launch.block, 1, 1, 0,
            reinterpret_cast<CUstream>(16 * stream), nullptr, nullptr);
    truth->busy += kernel.ns;
    const uint64_t passed = idle_at_(context_) - before;
    truth->idle[launch.layer] += passed - std::min(passed, kernel.ns);
  }
  bool IsLonger(uint64_t step) const { return options_.period() != 0 && VariantOf(options_, step, 0) == 0; }
  uint64_t CountingCalls() const {
    uint64_t sum = 0;
    for (const char* name : {"cuptiRangeProfilerEnable", "cuptiRangeProfilerDisable", "cuptiRangeProfilerStart",
                             "cuptiRangeProfilerStop", "cuptiRangeProfilerPushRange"}) {
      sum += calls_(name);
    }
    return sum;
  }

  const Options& options_;
  std::vector<Launch>& launches_;
  void* const driver_ = Open();
  CUcontext context_ = nullptr;
  std::map<uint32_t, CUfunction> functions_;  // by the row of the table
  decltype(&::cuLaunchKernel) launch_ = Call<decltype(::cuLaunchKernel)>("cuLaunchKernel");
  decltype(&::cuCtxSynchronize) synchronize_ = Call<decltype(::cuCtxSynchronize)>("cuCtxSynchronize");
  decltype(&::sim_launch_as) launch_as_ = Call<decltype(::sim_launch_as)>("sim_launch_as");
  decltype(&::sim_now) now_ = Call<decltype(::sim_now)>("sim_now");
  decltype(&::sim_barrier) barrier_ = Call<decltype(::sim_barrier)>("sim_barrier");
  decltype(&::sim_idle_at) idle_at_ = Call<decltype(::sim_idle_at)>("sim_idle_at");
  decltype(&::sim_waited) waited_ = Call<decltype(::sim_waited)>("sim_waited");
  decltype(&::sim_calls) calls_ = Call<decltype(::sim_calls)>("sim_calls");
};

Run RunProgram(const Options& options, std::vector<Launch>* launches, Recorder& recorder, Samples* samples) {
  Program program(options, launches);
  auto* settings = new Settings;
  settings->overhead_percent = options.overhead;
  settings->verbosity = GetSettings().verbosity;
  g_site_function.store(&ThreadSite);
  Source* source = MakeHardwareSource(*settings, recorder);
  Run run;
  program.StartUp(source);
  const uint64_t begin = program.now_ns();
  const auto mark = [&] { run.ends.push_back(static_cast<double>(program.EndNs() - begin) / 1e6); };
  mark();
  for (uint64_t step = 0; step < options.steps; ++step) {
    program.RunStep(step, source, &recorder, &run);
    mark();
    if (step < kFirstSteps) run.windows = program.SampledWindows();
    if (samples == nullptr || (run.flop_known_at != 0 && run.bytes_known_at != 0)) continue;
    const auto lacking = samples->Lacking();
    const bool bytes = lacking.contains(Samples::kBytes);
    if (run.bytes_known_at == 0 && !bytes) run.bytes_known_at = step + 1;
    if (run.flop_known_at == 0 && lacking.size() == (bytes ? 1 : 0)) run.flop_known_at = step + 1;
  }
  auto* const calls = program.Call<decltype(::sim_calls)>("sim_calls");
  for (const char* name :
       {"cuptiPmSamplingEnable", "cuptiPmSamplingStart", "cuptiRangeProfilerEnable", "cuptiRangeProfilerStart",
        "cuptiRangeProfilerPushRange", "cuptiActivityFlushAll", "cuCtxSynchronize"}) {
    if (const uint64_t count = calls(name); count != 0)
      run.calls += std::string(" ") + name + " " + std::to_string(count);
  }
  program.Call<decltype(::cuCtxSynchronize)>("cuCtxSynchronize")();
  source->Stop();
  run.violations = program.Call<decltype(::sim_violations)>("sim_violations")();
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
  printf("windows of samples         %10" PRIu64 " in the first %zu steps\n", run.windows, first);
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
  const auto by = [](uint64_t step) { return step != 0 ? "by step " + std::to_string(step) : "never"; };
  printf("FLOP of all keys are known %10s, bytes %s\n", by(run.flop_known_at).c_str(),
         by(run.bytes_known_at).c_str());
  double step_ns = 0;
  for (const auto& [launch, bytes] : run.bytes) step_ns += static_cast<double>(launch->variants[0].ns);
  for (const auto& [what, lack] : samples.Lacking()) {
    printf("%" PRIu64 " keys lack %s, %.2f %% of the time\n", lack.keys, what.c_str(), 100 * lack.ns / step_ns);
  }
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

// What a report of the trace should say: the bytes of a step, by layer, phase and kernel; of all steps, and of those
// that are no longer than the others, for reports that leave these out.
void WriteTruth(const Options& options, const Run& run) {
  std::map<std::tuple<uint32_t, Phase, std::string_view>, std::pair<double, double>> rows;
  for (const auto& [launch, bytes] : run.bytes) {
    auto& [of_all, of_ordinary] = rows[{launch->layer, launch->phase, launch->kernel}];
    of_all += bytes / static_cast<double>(options.steps);
    const auto ordinary = run.bytes_of_ordinary.find(launch);
    if (ordinary != run.bytes_of_ordinary.end()) of_ordinary += ordinary->second / static_cast<double>(run.ordinary);
  }
  FILE* file = fopen((options.trace + "/truth.csv").c_str(), "w");
  if (file == nullptr) return;
  for (const auto& [row, bytes] : rows) {
    const auto& [layer, phase, kernel] = row;
    fprintf(file, "layer%u,%s,%s,%.0f,%.0f\n", layer, std::string(kPhaseNames[static_cast<size_t>(phase)]).c_str(),
            std::string(kernel).c_str(), bytes.first, bytes.second);
  }
  fclose(file);
  file = fopen((options.trace + "/steps.csv").c_str(), "w");
  FILE* const idle = fopen((options.trace + "/idle.csv").c_str(), "w");
  if (file == nullptr || idle == nullptr) return;
  fprintf(file, "step,period_ns,busy_ns,host_ns,gpu_wait_ns,data_wait_ns,data_idle_ns,counted\n");
  fprintf(idle, "step,layer,idle_ns\n");
  for (size_t i = 0; i < run.truths.size(); ++i) {
    const StepTruth& step = run.truths[i];
    fprintf(file, "%zu,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%d\n", i, step.period,
            step.busy, step.host, step.gpu_wait, step.data_wait, step.data_idle, step.counted ? 1 : 0);
    for (const auto& [layer, ns] : step.idle) {
      if (ns > 0) fprintf(idle, "%zu,layer%u,%" PRIu64 "\n", i, layer, ns);
    }
  }
  fclose(file);
  fclose(idle);
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
  }
  return recorder;
}

bool Parse(int argc, char** argv, Options* options) {
  const std::map<std::string_view, uint64_t*> numbers = {
      {"--launches", &options->launches},    {"--steps", &options->steps},
      {"--streams", &options->streams},      {"--seed", &options->seed},
      {"--exclusive", &options->exclusive},  {"--pace", &options->pace},
      {"--reads-loss", &options->reads_loss}};
  const std::map<std::string_view, double*> shares = {
      {"--step-ms", &options->step_ms}, {"--overhead", &options->overhead}, {"--start-up-ms", &options->start_up_ms},
      {"--data-ms", &options->data_ms}, {"--odd", &options->odd},           {"--second-half", &options->second_half}};
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
            "                [--trace FOLDER] [--start-up-ms X] [--data-ms X] [--reads-loss 0|1]\n"
            "                [--odd X] [--second-half X]\n");
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
    const Run run = RunProgram(options, &program, recorder, nullptr);
    recorder.Finish("exit");
    PrintCosts(options, name, run);
    WriteTruth(options, run);
    return run.violations.empty() ? 0 : 1;
  }
  auto* const samples = new Samples;
  samples->Know(program);
  const Run run = RunProgram(options, &program, *samples, samples);
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
