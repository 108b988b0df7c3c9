// File: made_recording.h
//
// Recordings of torch.profiler that tests make, small enough that every sum of them can be worked out by hand.
//
//   MadeRecording made("NVIDIA A100-SXM4-40GB", 8, 0);
//   made.Operator("aten::mm", "[[64,32],[32,16]]", R"(["float","float"])", 100, 20);
//   made.Kernel("ampere_sgemm_32x32_nn", /*launched at*/ 105, /*us*/ 10);
//   ImportTorchProfilerBytes(made.Json(), "file", {});
#ifndef RFINJECT_CLI_IMPORT_TORCH_TESTING_MADE_RECORDING_H_
#define RFINJECT_CLI_IMPORT_TORCH_TESTING_MADE_RECORDING_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace rfinject::cli {

class MadeRecording {
 public:
  MadeRecording(const std::string& gpu, int major, int minor)
      : head_(absl::StrCat(R"({"schemaVersion":1,"deviceProperties":[{"id":0,"name":")", gpu,
                           R"(","totalGlobalMem":0,"computeMajor":)", major, R"(,"computeMinor":)", minor,
                           "}],\"traceEvents\":[\n")) {}

  // An event as it is.
  void Raw(const std::string& json) { events_.push_back(json); }
  void Operator(const std::string& name, const std::string& dims, const std::string& types, int start, int us,
                const std::string& values = "[]") {
    ++operators_;
    Raw(absl::StrCat(R"({"ph":"X","cat":"cpu_op","name":")", name, R"(","pid":1,"tid":10,"ts":)", start, R"(,"dur":)",
                     us, R"(,"args":{"External id":)", operators_, R"(,"Input Dims":)", dims, R"(,"Input type":)",
                     types, R"(,"Concrete Inputs":)", values, "}}"));
  }
  void Annotation(const std::string& name, int start, int us) {
    Raw(absl::StrCat(R"({"ph":"X","cat":"user_annotation","name":")", name, R"(","pid":1,"tid":10,"ts":)", start,
                     R"(,"dur":)", us, "}"));
  }
  void Launch(int at, int correlation, const std::string& call = "cudaLaunchKernel") {
    Raw(absl::StrCat(R"({"ph":"X","cat":"cuda_runtime","name":")", call, R"(","pid":1,"tid":10,"ts":)", at,
                     R"(,"dur":1,"args":{"correlation":)", correlation, "}}"));
  }
  // A kernel and its launch; each begins behind the one before.
  void Kernel(const std::string& name, int launched, int us, int device = 0) {
    Launch(launched, ++correlation_);
    Ran(name, gpu_us_, us, correlation_, device);
    gpu_us_ += us;
  }
  void Ran(const std::string& name, int start, int us, int correlation, int device = 0, int stream = 7) {
    Raw(absl::StrCat(R"({"ph":"X","cat":"kernel","name":")", name, R"(","pid":0,"tid":7,"ts":)", start, R"(,"dur":)",
                     us, R"(,"args":{"device":)", device, R"(,"stream":)", stream, R"(,"correlation":)", correlation,
                     R"(,"grid":[1,1,1],"block":[128,1,1]}})"));
  }

  const std::vector<std::string>& events() const { return events_; }
  std::string Json() const { return absl::StrCat(head_, absl::StrJoin(events_, ",\n"), "\n]}"); }

 private:
  std::string head_;
  std::vector<std::string> events_;
  int operators_ = 0, correlation_ = 0, gpu_us_ = 1'000'000;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_TESTING_MADE_RECORDING_H_
