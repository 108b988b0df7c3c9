#include "cli/testing/sample_profile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace rfinject::cli::testing {
namespace {

constexpr uint64_t kBatch = 8;
constexpr double kLaunchFloor_ns = 2500;

constexpr size_t Index(Precision precision) { return static_cast<size_t>(precision); }

MetricInfo Metric(std::string_view name, std::string_view unit) {
  return {.name = std::string(name), .unit = std::string(unit), .scale = 1};
}

struct Shape {
  uint64_t channels = 0, height = 0, width = 0;
  uint64_t elements() const { return kBatch * channels * height * width; }
  std::string text() const {
    return "f32[" + std::to_string(kBatch) + "," + std::to_string(channels) + "," + std::to_string(height) + "," +
           std::to_string(width) + "]";
  }
};

// Builds the run layer by layer, keeping the shape of the activation as the network goes.
class Builder {
 public:
  Builder(const Machine& machine, uint64_t steps) : machine_(machine), steps_(steps) {
    profile_.metrics = {{std::string(kMetricTime), Metric(kMetricTime, "ns")},
                        {std::string(kMetricModelFlop), Metric(kMetricModelFlop, "flop")},
                        {std::string(kMetricDramBytes), Metric(kMetricDramBytes, "byte")},
                        {std::string(kMetricCompulsoryBytes), Metric(kMetricCompulsoryBytes, "byte")}};
    run_.key.source = SourceKind::kEstimated;
    run_.key.gpu = run_.key.estimated_gpu = machine.name;
    run_.key.policy = {.matmul_tf32 = 1, .cudnn_tf32 = 2, .cudnn_benchmark = 1, .cudnn_deterministic = 1};
    run_.key.batch_size = kBatch;
    run_.key.collector = "estimator";
    run_.key.models = {"ResNet"};
    run_.key.parameters = 11689512;
    run_.key.training = true;
    run_.devices = {{.index = 0, .name = machine.name}};
    run_.processes = 1;
    run_.process_list = {{.rfinject_version = "0.1.0",
                          .host = "node01",
                          .pid = 4242,
                          .argv = {"python3", "main.py", "-a", "resnet18", "--dummy", "-b", "8"},
                          .start_unix_ns = 1767225600000000000,
                          .python_version = "3.11.2",
                          .python_executable = "/usr/bin/python3",
                          .torch_version = "1.13.1",
                          .torchvision_version = "0.14.1",
                          .os = "Linux 6.1 x86_64",
                          .cpus = 2,
                          .memory_bytes = 24000000000}};
    run_.ranks = {0};
    run_.tier = 2;
    run_.models["ResNet"] = {.class_name = "ResNet",
                             .parameters = 11689512,
                             .parameter_bytes = 46758048,
                             .trainable_parameters = 11689512};
    run_.models["CrossEntropyLoss"] = {.class_name = "CrossEntropyLoss"};
    run_.steps.steps = steps;
    run_.steps.samples = steps * kBatch;
    run_.steps.memory_peak_bytes = 612000000;
    for (uint64_t i = 0; i < steps; ++i) run_.steps.duration_ns.Add(2100000000 + (i * 7919 % 13) * 1000000);
  }

  Run& run() { return run_; }
  Profile& profile() { return profile_; }

  void Layer(const std::string& path, const std::string& class_name, const std::string& input,
             const std::string& output, uint64_t parameters = 0, const std::string& model = "ResNet") {
    const size_t dot = path.rfind('.');
    run_.layers[{model, path}] = {{.class_name = class_name,
                                   .parameters = parameters,
                                   .parameter_bytes = parameters * 4,
                                   .input_shape = input,
                                   .output_shape = output,
                                   .training = true,
                                   .order = order_++},
                                  dot == std::string::npos ? "" : path.substr(0, dot)};
  }

  // `launches` kernels a step, each with `flop` on `precision` and `bytes`.
  void Kernels(const std::string& model, const std::string& path, Phase phase, const std::string& op,
               const std::string& signature, double flop, Precision precision, double bytes,
               bool counts_as_model = false, uint64_t launches = 1) {
    Work work;
    if (machine_.peak[Index(precision)] <= 0) precision = Precision::kFp32;
    work.flop[Index(precision)] = flop;
    work.dram_bytes = bytes;
    const auto time = static_cast<uint64_t>(std::max(kLaunchFloor_ns, 1.25e9 * LeastTime(machine_, work).total_s()));
    LaunchKey key{.layer = {model, path},
                  .phase = phase,
                  .op = op,
                  .kernel = op,
                  .signature = signature,
                  .node = phase == Phase::kBackward ? Node(op) : ""};
    LaunchStats& stats = run_.launches[std::move(key)];
    for (uint64_t i = 0; i < steps_ * launches; ++i) {
      ++stats.launches;
      stats.metrics[std::string(kMetricTime)].Add(time);
      stats.metrics[std::string(kMetricDramBytes)].Add(static_cast<uint64_t>(bytes));
      stats.metrics[std::string(kMetricCompulsoryBytes)].Add(static_cast<uint64_t>(bytes));
      if (counts_as_model) stats.metrics[std::string(kMetricModelFlop)].Add(static_cast<uint64_t>(flop));
      if (flop > 0) {
        const std::string name(kMetricFlop[Index(precision)]);
        profile_.metrics.try_emplace(name, Metric(name, "flop"));
        stats.metrics[name].Add(static_cast<uint64_t>(flop));
      }
    }
  }

  Shape Convolution(const std::string& path, Shape in, uint64_t out_channels, uint64_t kernel, uint64_t stride,
                    bool needs_input_gradient = true) {
    const Shape out{out_channels, in.height / stride, in.width / stride};
    const uint64_t weights = out_channels * in.channels * kernel * kernel;
    const double flop =
        2.0 * static_cast<double>(out.elements()) * static_cast<double>(in.channels * kernel * kernel);
    const double bytes = 4.0 * static_cast<double>(in.elements() + out.elements() + weights);
    const std::string signature = in.text() + " f32[" + std::to_string(out_channels) + "," +
                                  std::to_string(in.channels) + "," + std::to_string(kernel) + "," +
                                  std::to_string(kernel) + "]";
    Layer(path, "Conv2d", in.text(), out.text(), weights);
    Kernels("ResNet", path, Phase::kForward, "aten::convolution", signature, flop, Precision::kTf32Tensor, bytes,
            true);
    const int gradients = needs_input_gradient ? 2 : 1;
    Kernels("ResNet", path, Phase::kBackward, "aten::convolution_backward", signature, gradients * flop,
            Precision::kTf32Tensor, gradients * bytes, true);
    Optimize(weights);
    return out;
  }

  void BatchNorm(const std::string& path, Shape shape) {
    const auto n = static_cast<double>(shape.elements());
    Layer(path, "BatchNorm2d", shape.text(), shape.text(), 2 * shape.channels);
    Kernels("ResNet", path, Phase::kForward, "aten::native_batch_norm", shape.text(), 5 * n, Precision::kFp32, 8 * n);
    Kernels("ResNet", path, Phase::kBackward, "aten::native_batch_norm_backward", shape.text(), 8 * n,
            Precision::kFp32, 12 * n);
    Optimize(shape.channels);
    Optimize(shape.channels);
  }

  // A ReLU module is one layer however often it is called; comparisons are no FLOP.
  void Relu(const std::string& path, Shape shape, bool declare) {
    const auto n = static_cast<double>(shape.elements());
    if (declare) Layer(path, "ReLU", shape.text(), shape.text());
    Kernels("ResNet", path, Phase::kForward, "aten::clamp_min_", shape.text(), 0, Precision::kFp32, 8 * n);
    Kernels("ResNet", path, Phase::kBackward, "aten::threshold_backward", shape.text(), 0, Precision::kFp32, 12 * n);
  }

  void Optimize(uint64_t parameters) {
    const auto n = static_cast<double>(parameters);
    Kernels("", "", Phase::kOptimizer, "aten::_foreach_add_", "f32[" + std::to_string(parameters) + "]", 2 * n,
            Precision::kFp32, 12 * n);
    Kernels("", "", Phase::kOptimizer, "aten::_foreach_mul_", "f32[" + std::to_string(parameters) + "]", n,
            Precision::kFp32, 8 * n);
  }

  Shape Block(const std::string& path, Shape in, uint64_t channels, uint64_t stride) {
    const Shape out{channels, in.height / stride, in.width / stride};
    Layer(path, "BasicBlock", in.text(), out.text());
    Convolution(path + ".conv1", in, channels, 3, stride);
    BatchNorm(path + ".bn1", out);
    Relu(path + ".relu", out, true);
    Convolution(path + ".conv2", out, channels, 3, 1);
    BatchNorm(path + ".bn2", out);
    if (stride != 1) {
      Layer(path + ".downsample", "Sequential", in.text(), out.text());
      Convolution(path + ".downsample.0", in, channels, 1, stride);
      BatchNorm(path + ".downsample.1", out);
    }
    const auto n = static_cast<double>(out.elements());
    Kernels("ResNet", path, Phase::kForward, "aten::add_", out.text(), n, Precision::kFp32, 12 * n);
    Kernels("ResNet", path, Phase::kBackward, "aten::add", out.text(), n, Precision::kFp32, 12 * n);
    Relu(path + ".relu", out, false);
    return out;
  }

  Profile Finish() && {
    profile_.runs.emplace(run_.key, std::move(run_));
    return std::move(profile_);
  }

 private:
  static std::string Node(const std::string& op) {
    if (op == "aten::convolution_backward") return "ConvolutionBackward0";
    if (op == "aten::native_batch_norm_backward") return "NativeBatchNormBackward0";
    return {};
  }

  const Machine machine_;
  const uint64_t steps_;
  Profile profile_;
  Run run_;
  uint64_t order_ = 1;
};

void BuildResNet18(Builder& builder) {
  Shape shape{3, 224, 224};
  builder.Layer("", "ResNet", shape.text(), "f32[8,1000]");
  builder.Kernels("", "", Phase::kData, "aten::copy_", shape.text(), 0, Precision::kFp32,
                  8.0 * static_cast<double>(shape.elements()));
  shape = builder.Convolution("conv1", shape, 64, 7, 2, /*needs_input_gradient=*/false);
  builder.BatchNorm("bn1", shape);
  builder.Relu("relu", shape, true);
  const Shape pooled{64, 56, 56};
  builder.Layer("maxpool", "MaxPool2d", shape.text(), pooled.text());
  const auto read = static_cast<double>(shape.elements()), written = static_cast<double>(pooled.elements());
  builder.Kernels("ResNet", "maxpool", Phase::kForward, "aten::max_pool2d_with_indices", shape.text(), 0,
                  Precision::kFp32, 4 * read + 12 * written);
  builder.Kernels("ResNet", "maxpool", Phase::kBackward, "aten::max_pool2d_with_indices_backward", shape.text(), 0,
                  Precision::kFp32, 4 * read + 12 * written);
  shape = pooled;
  const std::array<uint64_t, 4> channels = {64, 128, 256, 512};
  for (size_t i = 0; i < channels.size(); ++i) {
    const std::string path = "layer" + std::to_string(i + 1);
    const Shape before = shape;
    const uint64_t stride = i == 0 ? 1 : 2;
    builder.Layer(path, "Sequential", before.text(),
                  Shape{channels[i], before.height / stride, before.width / stride}.text());
    shape = builder.Block(path + ".0", shape, channels[i], stride);
    shape = builder.Block(path + ".1", shape, channels[i], 1);
  }
  const auto n = static_cast<double>(shape.elements());
  builder.Layer("avgpool", "AdaptiveAvgPool2d", shape.text(), "f32[8,512,1,1]");
  builder.Kernels("ResNet", "avgpool", Phase::kForward, "aten::mean", shape.text(), n, Precision::kFp32, 4 * n);
  builder.Kernels("ResNet", "avgpool", Phase::kBackward, "aten::div", shape.text(), n, Precision::kFp32, 8 * n);
  builder.Layer("fc", "Linear", "f32[8,512]", "f32[8,1000]", 513000);
  const double fc = 2.0 * kBatch * 512 * 1000, weights = 4.0 * 513000;
  builder.Kernels("ResNet", "fc", Phase::kForward, "aten::addmm", "f32[1000] f32[8,512] f32[512,1000]", fc,
                  Precision::kFp32, weights + 4.0 * kBatch * 1512, true);
  builder.Kernels("ResNet", "fc", Phase::kBackward, "aten::mm", "f32[8,1000] f32[1000,512]", fc, Precision::kFp32,
                  weights + 4.0 * kBatch * 1512, true, 2);
  builder.Optimize(512000);
  builder.Optimize(1000);
  builder.Layer("", "CrossEntropyLoss", "f32[8,1000]", "f32[]", 0, "CrossEntropyLoss");
  builder.Kernels("CrossEntropyLoss", "", Phase::kForward, "aten::_log_softmax", "f32[8,1000]", 3.0 * 8000,
                  Precision::kFp32, 8.0 * 8000);
  builder.Kernels("CrossEntropyLoss", "", Phase::kForward, "aten::nll_loss_forward", "f32[8,1000] i64[8]", 8,
                  Precision::kFp32, 132);
  builder.Kernels("CrossEntropyLoss", "", Phase::kBackward, "aten::_log_softmax_backward_data", "f32[8,1000]",
                  3.0 * 8000, Precision::kFp32, 12.0 * 8000);
}

}  // namespace

Machine SampleV100() {
  Machine machine{.name = "V100-SXM2-16GB"};
  machine.peak[Index(Precision::kFp64)] = 7.8e12;
  machine.peak[Index(Precision::kFp32)] = 15.7e12;
  machine.peak[Index(Precision::kFp16)] = 31.4e12;
  machine.peak[Index(Precision::kFp16Tensor)] = 125e12;
  machine.dram_bytes_per_s = 900e9;
  return machine;
}

Machine SampleA100() {
  Machine machine{.name = "A100-SXM4-40GB"};
  machine.peak[Index(Precision::kFp64)] = 9.7e12;
  machine.peak[Index(Precision::kFp32)] = 19.5e12;
  machine.peak[Index(Precision::kFp16)] = 78e12;
  machine.peak[Index(Precision::kTf32Tensor)] = 156e12;
  machine.peak[Index(Precision::kFp16Tensor)] = 312e12;
  machine.peak[Index(Precision::kBf16Tensor)] = 312e12;
  machine.peak[Index(Precision::kFp64Tensor)] = 19.5e12;
  machine.dram_bytes_per_s = 1555e9;
  return machine;
}

Profile SampleResNet18(const Machine& machine, uint64_t steps) {
  Builder builder(machine, steps);
  BuildResNet18(builder);
  return std::move(builder).Finish();
}

Profile SampleMeasured(const Machine& machine, uint64_t steps) {
  Builder builder(machine, steps);
  BuildResNet18(builder);
  Run& run = builder.run();
  run.key.source = SourceKind::kMeasured;
  run.key.gpu = run.devices[0].name = "NVIDIA " + machine.name;
  run.key.estimated_gpu.clear();
  run.key.collector = "range-profiler";
  run.tier = 1;
  run.steps.armed = steps / 2;
  run.steps.duration_ns = {};
  for (uint64_t i = 0; i < steps; ++i) run.steps.duration_ns.Add(9000000 + i % 7 * 100000);
  std::mt19937_64 random(18);
  std::map<LaunchKey, LaunchStats> launches;
  for (auto& [old_key, stats] : run.launches) {
    LaunchKey key = old_key;
    key.signature.clear();
    key.kernel = "void kernel_" + key.op.substr(6) + "<float, " + std::to_string(random() % 4) + ">(float*)";
    key.grid = {static_cast<uint32_t>(random() % 4096 + 1), 1, 1};
    key.block = {256, 1, 1};
    if (key.layer.path == "layer3.0.relu") key.layer = {};  // what was not attributed
    LaunchStats& into = launches[key];
    into.launches += stats.launches;
    for (auto& [name, stat] : stats.metrics) {
      const bool spread = name == kMetricTime || name == kMetricDramBytes;
      if (name == kMetricModelFlop || name == kMetricCompulsoryBytes) {
        into.metrics[name].Merge(stat);
      } else if (key.op == "aten::mean") {
        if (name == kMetricTime) into.metrics[name].Merge(stat);  // a kernel without counters
      } else {
        for (uint64_t i = 0; i < std::max<uint64_t>(3, stat.n / 3); ++i) {
          into.metrics[name].Add(spread ? stat.max * (95 + random() % 11) / 100 : stat.max);
        }
      }
    }
  }
  run.launches = std::move(launches);
  run.kept.diagnostic.Add({.severity = Severity::kWarning,
                           .id = "counters-held",
                           .text = "some counters were held by another profiler in 2 of the armed steps",
                           .remedy = "stop dcgm's profiling fields: dcgmi profile --pause"});
  run.kept.drop.Add({.what = "launches: ring full", .count = 12});
  return std::move(builder).Finish();
}

namespace {

// Draws what a trace may hold. Tests know the traces by their seeds: what is drawn, and in which order, must stay.
class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}

  uint64_t pick(uint64_t n) { return random_() % n; }
  uint64_t number() {
    switch (pick(4)) {
      case 0:
        return pick(10);
      case 1:
        return pick(1000000000);
      case 2:
        return UINT64_MAX - pick(10);
      default:
        return random_();
    }
  }
  Stat stat() {
    Stat result;
    for (uint64_t i = pick(4); i > 0; --i) result.Add(number());
    if (pick(8) == 0 && result.n > 0) result.sum_squares = ~Uint128{0} - pick(1000);
    if (pick(8) == 0 && result.n > 0) result.n = UINT64_MAX - pick(3);
    return result;
  }
  std::string text(const char* prefix, uint64_t n) { return std::string(prefix) + std::to_string(pick(n)); }
  // One of a few records that a list may have.
  template <typename Record>
  Record record(const KeptList<Record>*) {
    Record made;
    trace::ForEachField(&made, [&](std::string_view, auto* field) {
      using Field = std::remove_pointer_t<decltype(field)>;
      if constexpr (std::is_same_v<Field, std::string>) {
        *field = text("text ", 2);
      } else if constexpr (std::is_enum_v<Field>) {
        FromNumber(static_cast<int>(pick(3)), field);
      } else if constexpr (std::is_same_v<Field, uint32_t>) {
        *field = 1 + static_cast<uint32_t>(pick(2));
      } else {
        *field = static_cast<Field>(1 + number() / 2);
      }
    });
    made.run = 0;
    return made;
  }

 private:
  std::mt19937_64 random_;
};

void DrawProcesses(Draw& draw, Run* run) {
  run->key.source = static_cast<SourceKind>(1 + draw.pick(4));
  run->key.gpu = draw.text("GPU ", 2);
  run->key.batch_size = 8 * draw.pick(2);
  run->key.policy.cudnn_tf32 = static_cast<uint32_t>(draw.pick(3));
  run->key.models = {"Net"};
  run->key.parameters = 100 + draw.pick(2);
  run->key.training = draw.pick(2) != 0;
  for (uint64_t i = draw.pick(3); i > 0; --i) {
    // The key names the device that a reader would take it from.
    run->devices.push_back({.index = static_cast<uint32_t>(i), .name = run->key.gpu, .uuid = draw.text("GPU-", 4)});
  }
  std::sort(run->devices.begin(), run->devices.end());
  run->devices.erase(std::unique(run->devices.begin(), run->devices.end()), run->devices.end());
  run->processes = 1 + draw.pick(3);
  for (uint64_t i = 0; i < run->processes; ++i) {
    ProcessInfo& process = run->process_list.emplace_back();
    process.host = draw.text("node", 3);
    process.argv = {"python3", draw.text("arg", 2)};
    process.pid = static_cast<uint32_t>(draw.pick(100000));
    process.rank = static_cast<uint32_t>(draw.pick(8));
    run->ranks.insert(run->process_list.back().rank);
  }
  std::sort(run->process_list.begin(), run->process_list.end(), ProcessOrder());
}

void DrawLayers(Draw& draw, Run* run) {
  run->tier = static_cast<int>(1 + draw.pick(6));
  run->models["Net"] = {.class_name = "Net", .parameters = 100 + draw.pick(2), .parameter_bytes = 400};
  if (draw.pick(2) != 0) run->models["Loss"] = {.class_name = "Loss"};
  for (auto& [name, model] : run->models) {
    run->layers[{name, ""}] = {{.class_name = name, .order = 1 + draw.pick(100)}, ""};
    for (uint64_t i = draw.pick(4); i > 0; --i) {
      run->layers[{name, draw.text("layer", 5)}] = {
          {.class_name = draw.text("Class", 3),
           .parameters = draw.pick(10),
           .input_shape = draw.pick(2) != 0 ? draw.text("f32[", 3) + "]" : "",
           .training = draw.pick(2) != 0,
           .order = 1 + draw.pick(100)},
          ""};
    }
  }
}

void DrawLaunches(Draw& draw, const std::vector<std::string>& metrics, Run* run) {
  for (uint64_t i = draw.pick(8); i > 0; --i) {
    LaunchKey key;
    if (draw.pick(4) != 0) {
      auto layer = run->layers.begin();
      std::advance(layer, static_cast<std::ptrdiff_t>(draw.pick(run->layers.size())));
      key.layer = layer->first;
    }
    key.phase = static_cast<Phase>(draw.pick(kPhaseNames.size()));
    key.op = draw.text("aten::op", 3);
    key.kernel = draw.text("kernel", 3);
    key.grid = {static_cast<uint32_t>(draw.pick(2)), 1, 1};
    key.device = static_cast<uint32_t>(draw.pick(2));
    LaunchStats stats;
    stats.launches = draw.number();
    // The line is made from numbers that are there.
    if (stats.launches % 2 == 0) {
      stats.line = std::make_shared<const SourceLineInfo>(
          SourceLineInfo{.file = "a.py", .function = "f", .line = static_cast<uint32_t>(stats.launches % 3)});
    }
    for (const std::string& name : metrics) {
      if (draw.pick(2) == 0) continue;
      const Stat one = draw.stat();
      if (one.n > 0) stats.metrics[name] = one;
    }
    run->launches[key].Merge(stats);
  }
}

void DrawSteps(Draw& draw, Run* run) {
  run->steps.steps = draw.number();
  run->steps.samples = draw.number();
  run->steps.armed = draw.number();
  run->steps.memory_peak_bytes = draw.number();
  if (const uint64_t some = run->steps.memory_peak_bytes; some % 2 == 0) {
    run->memory_peak = {
        {.allocated_bytes = some % 3, .reserved_bytes = some, .part = {}, .refused_bytes = some % 7}, {}, {}};
    for (uint64_t i = some % 5; i > 0; --i) {
      run->memory_peak.parts[{.layer = run->layers.empty() ? LayerKey{} : run->layers.begin()->first,
                              .phase = static_cast<Phase>((some + i) % kPhaseNames.size())}] = some / i;
    }
  }
  run->steps.pm_dram_bytes.Add(draw.number());
  run->steps.pm_duration_ns.Add(draw.number());
  run->steps.pm_tensor_active_ns.Add(draw.number());
  run->steps.duration_ns = draw.stat();
  const auto draw_records = [&draw](auto* list) {
    for (uint64_t i = draw.pick(3); i > 0; --i) list->Add(draw.record(list));
  };
  trace::ForEachList(draw_records, &run->kept);
  run->unfinished = draw.pick(run->processes + 1);
}

}  // namespace

Profile RandomProfile(uint64_t seed) {
  Draw draw(seed);
  Profile profile;
  const std::vector<std::string> metrics = {std::string(kMetricTime), "dram__bytes_read.sum", "rf.flop.fp32"};
  for (const std::string& name : metrics) profile.metrics[name] = Metric(name, "unit of " + name);
  for (uint64_t runs = 1 + draw.pick(3); runs > 0; --runs) {
    Run run;
    DrawProcesses(draw, &run);
    DrawLayers(draw, &run);
    DrawLaunches(draw, metrics, &run);
    DrawSteps(draw, &run);
    const RunKey key = run.key;
    Profile one{.metrics = profile.metrics, .runs = {}};
    one.runs.emplace(key, std::move(run));
    (void)profile.Merge(std::move(one));
  }
  return profile;
}

Profile OneKey(const LaunchKey& key, const LaunchStats& stats) {
  Profile profile;
  profile.metrics["rf.time"] = {.name = "rf.time", .unit = "ns", .scale = 1};
  profile.metrics["rf.dram_bytes"] = {.name = "rf.dram_bytes", .unit = "byte", .scale = 32};
  profile.metrics["rf.flop.fp32"] = {.name = "rf.flop.fp32", .unit = "flop", .scale = 1};
  cli::Run run;
  run.key.source = SourceKind::kMeasured;
  run.launches[key] = stats;
  profile.runs.emplace(run.key, run);
  return profile;
}

}  // namespace rfinject::cli::testing
