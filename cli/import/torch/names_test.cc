#include "cli/import/torch/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/import/testing/published.h"
#include "cli/import/torch/torch_profiler.h"
#include "cli/testing/sanitized.h"

namespace rfinject::cli {
namespace {

// A trace of a program, as an estimate of it would be.
class NamedProgram {
 public:
  explicit NamedProgram(const std::string& model) : model_(model) {
    run_.key.models = {model};
    run_.key.training = true;
    run_.models[model].class_name = model;
    run_.steps.steps = 1;
    AddLayer("", model);
  }
  void AddLayer(const std::string& path, const std::string& class_name, const std::string& parent = "") {
    LayerInfo& info = run_.layers[{model_, path}];
    info.class_name = class_name;
    info.parent_path = parent;
    info.order = run_.layers.size();
  }
  void AddCall(const std::string& path, const std::string& op, const std::string& signature, uint64_t calls = 1) {
    LaunchKey key;
    key.layer = {model_, path};
    key.phase = Phase::kForward;
    key.op = key.kernel = op;
    key.signature = signature;
    run_.launches[key].launches += calls;
  }
  ImportOptions Options() const {
    Profile profile;
    profile.runs[run_.key] = run_;
    ImportOptions options;
    options.names = std::make_shared<const Profile>(std::move(profile));
    return options;
  }

 private:
  std::string model_;
  Run run_;
};

std::string Shape(const std::vector<int>& sizes) {
  std::string text = "f32[";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(sizes[i]);
  return text + "]";
}

// torchvision's ResNet-50 by its definition (He et al., 2015; strides in the second convolution), and the shapes that
// its layers have: "layer1.0.conv2" -> "f32[32,64,56,56] f32[64,64,3,3]".
struct ResNet50 {
  explicit ResNet50(int batch) : program("ResNet"), images(batch) {
    Convolve("conv1", 3, 64, 7, 224, 112);
    Normalise("bn1", 64, 112);
    Activate("relu", 64, 112);
    program.AddLayer("maxpool", "MaxPool2d");
    program.AddCall("maxpool", "aten::max_pool2d_with_indices", Shape({images, 64, 112, 112}));
    int in = 64, size = 56;
    for (int stage = 0; stage < 4; ++stage) {
      const int blocks[] = {3, 4, 6, 3};
      const int width = 64 << stage, out = 4 * width;
      for (int block = 0; block < blocks[stage]; ++block) {
        const std::string path = "layer" + std::to_string(stage + 1) + "." + std::to_string(block);
        program.AddLayer(path, "Bottleneck");
        const int after = block == 0 && stage > 0 ? size / 2 : size;
        Convolve(path + ".conv1", in, width, 1, size, size);
        Normalise(path + ".bn1", width, size);
        Activate(path + ".relu", width, size);
        Convolve(path + ".conv2", width, width, 3, size, after);
        Normalise(path + ".bn2", width, after);
        Activate(path + ".relu", width, after);
        Convolve(path + ".conv3", width, out, 1, after, after);
        Normalise(path + ".bn3", out, after);
        if (block == 0) {
          Convolve(path + ".downsample.0", in, out, 1, size, after);
          Normalise(path + ".downsample.1", out, after);
        }
        program.AddCall(path, "aten::add_",
                        Shape({images, out, after, after}) + " " + Shape({images, out, after, after}));
        Activate(path + ".relu", out, after);
        in = out;
        size = after;
      }
    }
    program.AddLayer("fc", "Linear");
    products["fc"] = Shape({1000}) + " " + Shape({images, 2048}) + " " + Shape({2048, 1000});
    program.AddCall("fc", "aten::addmm", products["fc"]);
  }
  void Convolve(const std::string& path, int in, int out, int kernel, int size, int after) {
    program.AddLayer(path, "Conv2d");
    convolutions[path] = Shape({images, in, size, size}) + " " + Shape({out, in, kernel, kernel});
    gradients[path] = Shape({images, out, after, after}) + " " + convolutions[path];
    program.AddCall(path, "aten::convolution", convolutions[path]);
  }
  void Normalise(const std::string& path, int channels, int size) {
    program.AddLayer(path, "BatchNorm2d");
    const std::string one = " " + Shape({channels});
    norms[path] = Shape({images, channels, size, size}) + one + one + one + one;
    program.AddCall(path, "aten::native_batch_norm", norms[path]);
  }
  void Activate(const std::string& path, int channels, int size) {
    program.AddLayer(path, "ReLU");
    program.AddCall(path, "aten::relu_", Shape({images, channels, size, size}));
  }
  NamedProgram program;
  int images;
  std::map<std::string, std::string> convolutions, gradients, norms, products;
};

const Run& TheRun(const Imported& imported) {
  EXPECT_EQ(imported.profile.runs.size(), 1u);
  return imported.profile.runs.begin()->second;
}

// By layer, the signatures of the rows of an operator; "" is no layer.
std::map<std::string, std::set<std::string>> Signatures(const Run& run, Phase phase, const std::string& op) {
  std::map<std::string, std::set<std::string>> found;
  for (const auto& [key, stats] : run.launches) {
    if (key.phase == phase && key.op == op) found[key.layer.path].insert(key.signature);
  }
  return found;
}

std::map<std::string, std::set<std::string>> Sets(const std::map<std::string, std::string>& map) {
  std::map<std::string, std::set<std::string>> sets;
  for (const auto& [key, value] : map) sets[key] = {value};
  return sets;
}

// The recording of a real V100: all 53 convolutions, 53 norms and the linear layer stand at their names, forward and
// backward, and their operands are those of the layer of that name.
TEST(NamesTest, ResNet50OnAV100HasTheProgramsNames) {
  const std::string file = Published("pytorch_profiler/v100_resnet50_1623143089861.pt.trace.json.gz");
  if (file.empty()) GTEST_SKIP() << kNotPublishedHere;
  for (const int batch : {2, 32}) {  // the other trace need not be of the recording's batch
    if (batch == 32 && kSanitized) break;
    const ResNet50 known(batch), real(32);
    const absl::StatusOr<Imported> imported = ImportTorchProfiler(file, known.program.Options());
    ASSERT_TRUE(imported.ok()) << imported.status();
    const cli::Run& run = TheRun(*imported);
    EXPECT_EQ(real.convolutions.size(), 53u);
    EXPECT_EQ(Signatures(run, Phase::kForward, "aten::convolution"), Sets(real.convolutions));
    EXPECT_EQ(Signatures(run, Phase::kBackward, "aten::convolution_backward"), Sets(real.gradients));
    EXPECT_EQ(Signatures(run, Phase::kForward, "aten::cudnn_batch_norm"), Sets(real.norms));
    const auto norms = Signatures(run, Phase::kBackward, "aten::cudnn_batch_norm_backward");
    EXPECT_EQ(norms.size(), 53u);
    for (const auto& [layer, signatures] : norms) {
      const std::string& expected = real.norms.at(layer);
      const std::string input = expected.substr(0, expected.find(' '));
      EXPECT_THAT(signatures, testing::ElementsAre(testing::StartsWith(input + " " + input))) << layer;
    }
    EXPECT_EQ(Signatures(run, Phase::kForward, "aten::addmm"), Sets(real.products));
    EXPECT_EQ(Signatures(run, Phase::kBackward, "aten::mm").size(), 1u);
    EXPECT_TRUE(Signatures(run, Phase::kBackward, "aten::mm").contains("fc"));
    EXPECT_EQ(run.layers.at({"ResNet", "layer4.2.conv3"}).class_name, "Conv2d");
  }
}

std::string NamedEvent(const std::string& category, const std::string& name, int start, int duration,
                       const std::string& arguments) {
  return "{\"ph\":\"X\",\"cat\":\"" + category + "\",\"name\":\"" + name +
         "\",\"pid\":1,\"tid\":1,\"ts\":" + std::to_string(start) + ",\"dur\":" + std::to_string(duration) +
         ",\"args\":{" + arguments + "}}";
}

// Operators one after the other, each with a kernel.
std::string Calls(const std::vector<std::pair<std::string, std::string>>& ops) {
  std::string text;
  for (size_t i = 0; i < ops.size(); ++i) {
    const int at = 100 * static_cast<int>(i), number = static_cast<int>(i) + 1;
    const std::string correlation = "\"correlation\":" + std::to_string(number);
    text += (i == 0 ? "" : ",") + NamedEvent("cpu_op", ops[i].first, at, 50, ops[i].second) + "," +
            NamedEvent("cuda_runtime", "cudaLaunchKernel", at + 10, 5, correlation) + "," +
            NamedEvent("kernel", "kernel" + std::to_string(number), at + 20, 7, correlation);
  }
  return "{\"schemaVersion\":1,\"traceEvents\":[" + text + "]}";
}

std::map<std::string, std::string> LayersByKernel(const Imported& imported) {
  std::map<std::string, std::string> layers;
  for (const auto& [key, stats] : TheRun(imported).launches)
    layers[key.kernel] = key.layer.model + ":" + key.layer.path;
  return layers;
}

std::string SaidOf(const Imported& imported, const std::string& id) {
  for (const DiagnosticInfo& diagnostic : TheRun(imported).kept.diagnostic) {
    if (diagnostic.id == id) return diagnostic.text;
  }
  return "";
}

TEST(NamesTest, WithoutShapesTheOrderTells) {
  NamedProgram program("Net");
  for (const char* path : {"a", "b"}) {
    program.AddLayer(path, "Linear");
    program.AddCall(path, "aten::linear", "f32[2,3] f32[3,4]");
  }
  program.AddLayer("act", "ReLU");
  program.AddCall("act", "aten::relu", "f32[2,4]", 2);
  const std::vector<std::pair<std::string, std::string>> pass = {
      {"aten::addmm", ""}, {"aten::clamp_min", ""}, {"aten::addmm", ""}, {"aten::clamp_min", ""}};
  std::vector<std::pair<std::string, std::string>> twice = pass;
  twice.insert(twice.end(), pass.begin(), pass.end());
  twice.emplace_back("aten::exp", "");
  const absl::StatusOr<Imported> imported = ImportTorchProfilerBytes(Calls(twice), "file", program.Options());
  ASSERT_TRUE(imported.ok()) << imported.status();
  const std::map<std::string, std::string> expected = {
      {"kernel1", "Net:a"},   {"kernel2", "Net:act"}, {"kernel3", "Net:b"},
      {"kernel4", "Net:act"}, {"kernel5", "Net:a"},   {"kernel6", "Net:act"},
      {"kernel7", "Net:b"},   {"kernel8", "Net:act"}, {"kernel9", ":"}};
  EXPECT_EQ(LayersByKernel(*imported), expected);
  EXPECT_THAT(SaidOf(*imported, "names-aligned"),
              testing::HasSubstr("of 9 forward operators 8 were found in it, 8 of these by"));
}

TEST(NamesTest, CountersHaveLayers) {
  NamedProgram program("Net");
  program.AddLayer("features", "Conv2d");
  program.AddCall("features", "aten::convolution", "");
  for (const char* path : {"hidden", "classifier"}) {
    program.AddLayer(path, "Linear");
    program.AddCall(path, "aten::addmm", "");
  }
  const absl::StatusOr<Imported> imported =
      ImportTorchProfiler(RFINJECT_IMPORT_TESTDATA "/counters.json", program.Options());
  ASSERT_TRUE(imported.ok()) << imported.status();
  std::map<std::string, uint64_t> counted;
  for (const auto& [key, stats] : TheRun(*imported).launches) {
    const auto found = stats.metrics.find("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum");
    if (found != stats.metrics.end()) counted[key.layer.path] += static_cast<uint64_t>(found->second.sum);
  }
  EXPECT_EQ(counted, (std::map<std::string, uint64_t>{
                         {"features", 7'077'888}, {"hidden", 64 * 1024 * 512}, {"classifier", 64 * 512 * 10}}));
}

// A recording without steps of a model that does not train: it has as many steps as it repeats those of the trace.
TEST(NamesTest, RepeatedPassesAreSteps) {
  NamedProgram program("Net");
  program.AddLayer("a", "Linear");
  program.AddCall("a", "aten::mm", "f32[2,3] f32[3,4]");
  program.AddLayer("b", "Linear");
  program.AddCall("b", "aten::mm", "f32[2,4] f32[4,4]");
  const std::string a = R"("Input Dims":[[2,3],[3,4]],"Input type":["float","float"])";
  const std::string b = R"("Input Dims":[[2,4],[4,4]],"Input type":["float","float"])";
  const auto steps = [&](const std::vector<std::pair<std::string, std::string>>& calls) -> uint64_t {
    const absl::StatusOr<Imported> imported = ImportTorchProfilerBytes(Calls(calls), "file", program.Options());
    return imported.ok() ? TheRun(*imported).steps.steps : 0;
  };
  const std::pair<std::string, std::string> first = {"aten::mm", a}, second = {"aten::mm", b};
  EXPECT_EQ(steps({first, second}), 1u);
  EXPECT_EQ(steps({first, second, first, second, first, second}), 3u);
  EXPECT_EQ(steps({first, first, second}), 1u);  // not each as often
}

TEST(NamesTest, WhatIsCalledAnotherNumberOfTimesIsLeftAlone) {
  NamedProgram program("Net");
  program.AddLayer("a", "Linear");
  program.AddCall("a", "aten::mm", "f32[2,3] f32[3,4]", 2);
  program.AddLayer("b", "Linear");
  program.AddCall("b", "aten::mm", "f32[2,4] f32[4,4]");
  const std::string a = R"("Input Dims":[[2,3],[3,4]],"Input type":["float","float"])";
  const std::string b = R"("Input Dims":[[2,4],[4,4]],"Input type":["c10::Half","c10::Half"])";
  const absl::StatusOr<Imported> imported =
      ImportTorchProfilerBytes(Calls({{"aten::mm", a}, {"aten::mm", b}}), "file", program.Options());
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(LayersByKernel(*imported), (std::map<std::string, std::string>{{"kernel1", ":"}, {"kernel2", "Net:b"}}));
  EXPECT_THAT(SaidOf(*imported, "names-aligned"), testing::HasSubstr("of 2 forward operators 1 were found"));
}

// The execution trace's node of a product, as PyTorch's observer writes it.
std::string Product(int id, const std::string& shapes) {
  const std::string types = R"json(["Tensor(float)","Tensor(float)"])json";
  return R"({"id":)" + std::to_string(id) + R"(,"name":"aten::mm","ctrl_deps":2,"inputs":{"values":)" +
         R"([[7,8,0,6,4,"cuda:0"],[9,10,0,12,4,"cuda:0"]],"shapes":)" + shapes + R"(,"types":)" + types +
         R"json(},"outputs":{"values":[[11,12,0,8,4,"cuda:0"]],"shapes":[[2,4]],"types":["Tensor(float)"]},)json" +
         R"("attrs":[{"name":"scope","type":"uint64","value":0}]})";
}

// The recording has no shapes and the order misleads: the program calls first what the trace has last.
TEST(NamesTest, ShapesOfAnExecutionTraceTellLayersApart) {
  NamedProgram program("Net");
  program.AddLayer("a", "Linear");
  program.AddCall("a", "aten::mm", "f32[2,3] f32[3,4]");
  program.AddLayer("b", "Linear");
  program.AddCall("b", "aten::mm", "f32[2,4] f32[4,4]");
  const std::string file = testing::TempDir() + "/names_test_execution_trace.json";
  std::ofstream(file) << R"({"schema":"1.1.1-chakra.0.0.4","pid":1,"start_ts":1,"nodes":[)"
                      << Product(4, "[[2,4],[4,4]]") << "," << Product(5, "[[2,3],[3,4]]")
                      << R"(,{"id":2,"name":"[pytorch|profiler|execution_trace|thread]","ctrl_deps":1,)"
                      << R"("inputs":{"values":[],"shapes":[],"types":[]},"outputs":{"values":[],"shapes":[],)"
                      << R"("types":[]},"attrs":[{"name":"scope","type":"uint64","value":7}]}]})";
  ImportOptions options = program.Options();
  options.execution_trace = file;
  const absl::StatusOr<Imported> imported =
      ImportTorchProfilerBytes(Calls({{"aten::mm", ""}, {"aten::mm", ""}}), "file", options);
  std::remove(file.c_str());
  ASSERT_TRUE(imported.ok()) << imported.status();
  // The two products are alike by their names, so the k-th of a step is the k-th of the execution trace.
  EXPECT_EQ(LayersByKernel(*imported),
            (std::map<std::string, std::string>{{"kernel1", "Net:b"}, {"kernel2", "Net:a"}}));
  EXPECT_EQ(SaidOf(*imported, "names-aligned").find("by their order alone"), std::string::npos);
}

TEST(NamesTest, ModulesOfARecordingGetTheirNames) {
  NamedProgram program("Net");
  program.AddLayer("encoder", "Encoder");
  for (const char* path : {"encoder.layer.0", "encoder.layer.1"}) {
    program.AddLayer(path, "Block", "encoder");
    program.AddLayer(std::string(path) + ".query", "Linear", path);
    program.AddLayer(std::string(path) + ".key", "Linear", path);
  }
  std::string events;
  const auto module = [&events](const std::string& name, int start, int duration) {
    events += NamedEvent("python_function", "nn.Module: " + name, start, duration, "") + ",";
  };
  int number = 0;
  const auto kernel = [&](int at) {
    const std::string correlation = "\"correlation\":" + std::to_string(++number);
    events += NamedEvent("cpu_op", "aten::mm", at, 5, "") + "," +
              NamedEvent("cuda_runtime", "cudaLaunchKernel", at + 1, 2, correlation) + "," +
              NamedEvent("kernel", "kernel" + std::to_string(number), at + 3, 7, correlation) + ",";
  };
  module("Net_0", 0, 1000);
  module("Encoder_0", 1, 900);
  for (int block = 0; block < 2; ++block) {
    const int at = 10 + 100 * block;
    module("Block_" + std::to_string(block), at, 90);
    module("Linear_" + std::to_string(2 * block), at + 10, 20);
    kernel(at + 12);
    module("Linear_" + std::to_string(2 * block + 1), at + 40, 20);
    kernel(at + 42);
    module("Other_" + std::to_string(block), at + 70, 15);
    kernel(at + 72);
  }
  events.pop_back();
  const absl::StatusOr<Imported> imported =
      ImportTorchProfilerBytes("{\"traceEvents\":[" + events + "]}", "file", program.Options());
  ASSERT_TRUE(imported.ok()) << imported.status();
  const std::map<std::string, std::string> expected = {
      {"kernel1", "Net:encoder.layer.0.query"},   {"kernel2", "Net:encoder.layer.0.key"},
      {"kernel3", "Net:encoder.layer.0.Other_0"}, {"kernel4", "Net:encoder.layer.1.query"},
      {"kernel5", "Net:encoder.layer.1.key"},     {"kernel6", "Net:encoder.layer.1.Other_1"}};
  EXPECT_EQ(LayersByKernel(*imported), expected);
  EXPECT_THAT(SaidOf(*imported, "names-aligned"), testing::HasSubstr("of 10 modules, 8 were found in it"));
}

TEST(NamesTest, ATraceWithoutLayersIsRefused) {
  ImportOptions options;
  options.names = std::make_shared<const Profile>();
  const absl::StatusOr<Imported> imported = ImportTorchProfilerBytes(Calls({{"aten::mm", ""}}), "file", options);
  EXPECT_THAT(std::string(imported.status().message()), testing::HasSubstr("the trace for its names has no layers"));
}

TEST(NamesTest, OneFamilyHasManyNames) {
  EXPECT_EQ(OperatorFamily("aten::cudnn_batch_norm"), "batch_norm");
  EXPECT_EQ(OperatorFamily("aten::native_batch_norm"), "batch_norm");
  EXPECT_EQ(OperatorFamily("aten::_batch_norm_with_update"), "batch_norm");
  EXPECT_EQ(OperatorFamily("aten::clamp_min_"), OperatorFamily("aten::relu"));
  EXPECT_EQ(OperatorFamily("aten::addmm"), OperatorFamily("aten::linear"));
  EXPECT_NE(OperatorFamily("aten::convolution_backward"), OperatorFamily("aten::convolution"));
}

}  // namespace
}  // namespace rfinject::cli
