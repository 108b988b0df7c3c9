// Feeds bytes to the import of torch.profiler's recordings. Whatever they are, it must end soon and within bounded
// memory, and either fail with the file's name and a reason or give the launches that it says it found.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/import/torch/torch_profiler.h"

namespace {

using namespace rfinject::cli;  // NOLINT: the harness is all there is here

constexpr char kName[] = "fuzz";

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "torch_profiler_fuzz: %s\n", what);
  std::abort();
}

// --- Files by schema: every field of every event, with values of its own kind and of every other.

template <size_t size>
std::string Any(const char* const (&words)[size], std::mt19937_64& random) {
  return words[random() % size];
}

std::string Value(std::mt19937_64& random) {
  static constexpr const char* kValues[] = {
      "0",
      "1",
      "2",
      "7",
      "-1",
      "1.5",
      "1e300",
      "-1e300",
      "9223372036854775807",
      "9223372036854775808",
      "18446744073709551616",
      "null",
      "true",
      "{}",
      "[]",
      "\"\"",
      "\"x\"",
      "NaN",
      "[[2,3],[3,4]]",
      "[[],[[1],[2,3]],[9223372036854775807,2]]",
      "[[32,3,224,224],[64,3,7,7],[],[],[],[],[],[],[]]",
      "[\"float\",\"float\"]",
      "[\"TensorList\",\"Scalar\"]",
      "[\"c10::BFloat16\",\"long int\",\"bool\"]",
      "[\"\",\"\",\"\",\"[2, 2]\",\"[3]\",\"[0, -1]\",\"True\",\"\",\"1\"]",
      ("[\"\",\"\",\"\",\"[9223372036854775807, -9223372036854775808]\","
       "\"[9223372036854775807]\",\"[-1, 9223372036854775807]\",\"False\",\"\",\"0\"]"),
      ("[\"\",\"[1, -9223372036854775808]\",\"[1, 1]\",\"9223372036854775807\","
       "\"[4611686018427387904]\",\"True\"]"),
      "[[9223372036854775807,2,-9223372036854775808,4],[3,9223372036854775807,2,2]]",
      "[[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],[0],[],[0,0,0,0]]",
      "[0,0,0,0]",
      "[1,2,3]",
      "[-1,4294967296,\"a\"]",
      "{\"a\":[{\"b\":1}]}"};
  if (random() % 64 == 0) return std::string(200, '[') + std::string(200, ']');
  if (random() % 64 == 0) return "\"" + std::string(70'000, 'n') + "\"";
  return Any(kValues, random);
}

std::string HostileEvent(std::mt19937_64& random) {
  static constexpr const char* kCategories[] = {"cpu_op",
                                                "Operator",
                                                "user_annotation",
                                                "python_function",
                                                "cuda_runtime",
                                                "cuda_driver",
                                                "Runtime",
                                                "kernel",
                                                "Kernel",
                                                "gpu_memcpy",
                                                "Memset",
                                                "cuda_profiler_range",
                                                "cpu_instant_event",
                                                "mtia_ccp_events"};
  static constexpr const char* kNames[] = {"aten::mm",
                                           "aten::convolution",
                                           "aten::addmm",
                                           "aten::convolution_backward",
                                           "aten::cudnn_convolution_backward",
                                           "aten::cudnn_convolution_backward_input",
                                           "aten::cudnn_convolution_backward_weight",
                                           "aten::native_batch_norm",
                                           "aten::mean",
                                           "aten::cat",
                                           "aten::embedding",
                                           "aten::max_pool2d_with_indices",
                                           "aten::_foreach_add_",
                                           "aten::upsample_nearest2d_backward",
                                           "aten::index_select",
                                           "aten::copy_",
                                           "MmBackward0",
                                           "nn.Module: Linear_1",
                                           "nn.Module: Net_0",
                                           "autograd::engine::evaluate_function: MmBackward0",
                                           "ProfilerStep#1",
                                           "Optimizer.step#SGD.step",
                                           "enumerate(DataLoader)#x",
                                           "cudaGraphLaunch",
                                           "cudaLaunchKernel",
                                           "ncclKernel_AllReduce",
                                           "sgemm",
                                           "[memory]",
                                           "CheckpointFunctionBackward"};
  static constexpr const char* kArguments[] = {
      "External id",     "correlation",     "Sequence number", "Input Dims", "Input type", "Input Strides",
      "Concrete Inputs", "Call stack",      "device",          "stream",     "grid",       "block",
      "shared memory",   "Total Allocated", "Device Type",     "other"};
  const auto quoted = [](const std::string& text) { return "\"" + text + "\""; };
  const auto odd = [&random] { return random() % 16 == 0; };
  std::string event = "{\"ph\":" + (odd() ? Value(random) : std::string(random() % 8 == 0 ? "\"i\"" : "\"X\""));
  event += ",\"cat\":" + (odd() ? Value(random) : quoted(Any(kCategories, random)));
  event += ",\"name\":" + (odd() ? Value(random) : quoted(Any(kNames, random)));
  event += ",\"pid\":" + (odd() ? Value(random) : "1") + ",\"tid\":" + std::to_string(random() % 2);
  event += ",\"ts\":" + (odd() ? Value(random) : std::to_string(random() % 100));
  event += ",\"dur\":" + (odd() ? Value(random) : std::to_string(random() % 50)) + ",\"args\":";
  if (odd()) return event + Value(random) + "}";
  event += '{';
  const uint64_t count = random() % 6;
  for (uint64_t i = 0; i < count; ++i) {
    event += (i == 0 ? "" : ",") + quoted(Any(kArguments, random)) + ":" + Value(random);
  }
  return event + "}}";
}

ImportOptions Named() {
  rfinject::cli::Run run;
  run.key.models = {"Net"};
  run.models["Net"].class_name = "Net";
  run.steps.steps = 1;
  const auto add = [&run](const std::string& path, const std::string& op, const std::string& signature) {
    LayerInfo& info = run.layers[{"Net", path}];
    info.class_name = path.empty() ? "Net" : "Linear";
    info.order = run.layers.size();
    if (op.empty()) return;
    LaunchKey key;
    key.layer = {"Net", path};
    key.phase = rfinject::Phase::kForward;
    key.op = op;
    key.signature = signature;
    ++run.launches[key].launches;
  };
  add("", "", "");
  add("a", "aten::mm", "f32[2,3] f32[3,4]");
  add("b", "aten::addmm", "");
  add("c", "aten::convolution", "f32[32,3,224,224] f32[64,3,7,7]");
  Profile profile;
  profile.runs[run.key] = run;
  ImportOptions options;
  options.names = std::make_shared<const Profile>(std::move(profile));
  return options;
}

}  // namespace

std::vector<uint8_t> HostileInput(std::mt19937_64& random) {
  std::string file = "{\"schemaVersion\":1,";
  static constexpr const char* kMembers[] = {"deviceProperties", "distributedInfo", "baseTimeNanoseconds"};
  if (random() % 4 == 0) file += "\"" + Any(kMembers, random) + "\":" + Value(random) + ",";
  file += "\"traceEvents\":[";
  for (uint64_t i = 0, count = 1 + random() % 24; i < count; ++i) file += (i == 0 ? "" : ",") + HostileEvent(random);
  file += "]}";
  return {file.begin(), file.end()};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // Every other one with the names of a program that has operators and modules of these.
  static const ImportOptions& named = *new ImportOptions(Named());
  static const ImportOptions& plain = *new ImportOptions();
  const absl::StatusOr<Imported> imported = ImportTorchProfilerBytes(bytes, kName, size % 2 == 0 ? plain : named);
  if (!imported.ok()) {
    const std::string message(imported.status().message());
    if (!message.starts_with(std::string(kName) + ": ")) Fail("a failure without the file's name and a reason");
    return 0;
  }
  uint64_t launches = 0;
  for (const auto& [key, run] : imported->profile.runs) {
    for (const auto& [launch, stats] : run.launches) launches += stats.launches;
  }
  if (imported->kernels == 0 || launches != imported->kernels) Fail("launches were lost");
  return 0;
}
