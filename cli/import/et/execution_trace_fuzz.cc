// Feeds bytes to the import of execution traces, and joins them with a recording. Whatever they are, it must end soon
// and within bounded memory, and either fail with the file's name and a reason or give the launches that it says it
// found.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/import/et/estimate.h"
#include "cli/import/et/execution_trace.h"
#include "cli/import/et/join_execution_trace.h"
#include "cli/import/torch/byte_stream.h"
#include "cli/import/torch/call_tree.h"
#include "cli/import/torch/recording.h"
#include "cli/import/torch/windows.h"
#include "cli/import/torch/work.h"

namespace {

using namespace rfinject::cli;  // NOLINT: the harness is all there is here

constexpr char kName[] = "fuzz";

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "execution_trace_fuzz: %s\n", what);
  std::abort();
}

template <size_t size>
std::string Any(const char* const (&words)[size], std::mt19937_64& random) {
  return words[random() % size];
}

std::string Value(std::mt19937_64& random) {
  static constexpr const char* kValues[] = {"0",
                                            "1",
                                            "-1",
                                            "1.5",
                                            "1e300",
                                            "9223372036854775807",
                                            "18446744073709551616",
                                            "null",
                                            "true",
                                            "{}",
                                            "[]",
                                            "\"x\"",
                                            "\"<None>\"",
                                            "[[2,3],[3,4]]",
                                            "[[2,3],[[1],[2,3]],[9223372036854775807,2]]",
                                            "[\"Tensor(float)\",\"Tensor(float)\"]",
                                            "[\"GenericList[Tensor(float),Tensor(float)]\",\"Int\"]",
                                            "[\"Tensor(c10::Half)\",\"GenericList[Int]\",\"None\",\"Bool\"]",
                                            "[[1,2,0,6,4,\"cuda:0\"],[1,2,0,6,4,\"cpu\"],[2,[3]],true]",
                                            "[7,-1,2.5]"};
  if (random() % 64 == 0) return std::string(200, '[') + std::string(200, ']');
  return Any(kValues, random);
}

std::string Node(std::mt19937_64& random) {
  static constexpr const char* kNames[] = {"aten::mm",
                                           "aten::addmm",
                                           "aten::convolution",
                                           "aten::copy_",
                                           "aten::view",
                                           "aten::lstm",
                                           "autograd::engine::evaluate_function: MmBackward0",
                                           "Optimizer.step#SGD.step",
                                           "[pytorch|profiler|execution_trace|thread]"};
  static constexpr const char* kMembers[] = {
      "inputs", "input_shapes", "input_types", "outputs", "output_shapes", "output_types", "scope", "attrs", "other"};
  std::string node = "{\"name\":" + (random() % 16 == 0 ? Value(random) : "\"" + Any(kNames, random) + "\"");
  node += ",\"id\":" + (random() % 16 == 0 ? Value(random) : std::to_string(random() % 12));
  node += std::string(",\"") + (random() % 2 == 0 ? "parent" : "ctrl_deps") + "\":" + std::to_string(random() % 12);
  for (uint64_t i = 0, count = random() % 8; i < count; ++i) {
    if (random() % 4 == 0) {
      node += ",\"inputs\":{\"values\":" + Value(random) + ",\"shapes\":" + Value(random) +
              ",\"types\":" + Value(random) + ",\"strides\":" + Value(random) + "}";
    } else {
      node += ",\"" + Any(kMembers, random) + "\":" + Value(random);
    }
  }
  return node + "}";
}

// A recording of two products, one of which has a kernel.
TorchRecording Recording() {
  constexpr std::string_view kText =
      R"({"traceEvents":[{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":5,"args":{}},)"
      R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":2,"dur":1,"args":{"correlation":1}},)"
      R"({"ph":"X","cat":"kernel","name":"k","pid":1,"tid":7,"ts":3,"dur":2,"args":{"correlation":1}},)"
      R"({"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":11,"dur":5,"args":{}}]})";
  const auto bytes = ByteStream::OfBytes(kText);
  return *ReadTorchRecording(**bytes);
}

}  // namespace

std::vector<uint8_t> HostileInput(std::mt19937_64& random) {
  std::string file = "{\"schema\":\"1.0.1\",\"nodes\":[";
  for (uint64_t i = 0, count = 1 + random() % 16; i < count; ++i) file += (i == 0 ? "" : ",") + Node(random);
  file += "]}";
  return {file.begin(), file.end()};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static const ImportOptions& options = *new ImportOptions{.estimate = "A100-SXM4-40GB"};
  const absl::StatusOr<Imported> imported = ImportExecutionTraceBytes(bytes, kName, options);
  const auto stream = ByteStream::OfBytes(bytes);
  if (!imported.ok()) {
    const std::string message(imported.status().message());
    if (!message.starts_with(std::string(kName) + ": ")) Fail("a failure without the file's name and a reason");
  } else if (imported->kernels == 0 || imported->profile.runs.begin()->second.launches.empty()) {
    Fail("no launches, and no reason");
  }
  if (!stream.ok()) return 0;
  const absl::StatusOr<ExecutionTrace> trace = ReadExecutionTrace(**stream);
  if (!trace.ok()) return 0;
  TorchRecording recording = Recording();
  TorchWindow window = TorchWindows(recording, OutlineOf(recording), kOneWindow).Unpack(0, recording);
  const CallTree tree = MakeCallTree(recording, window);
  const JoinedCalls joined = JoinExecutionTrace(*trace, recording.texts, tree, &window, &recording.operands);
  if (joined.joined + joined.not_joined != 2) Fail("operators were lost");
  WorkTable works(recording, window, tree);
  for (uint32_t span = 0; span < window.spans.size(); ++span) works.Of(span);
  return 0;
}
