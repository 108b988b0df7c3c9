// The torch binding in a library that a Python test loads with ctypes, with a recorder and a source that keep what
// they are told. So a test can look at each node and operator without a trace in between; the test's own hooks enter
// modules.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/program_profiler.h"
#include "collector/settings.h"
#include "collector/site.h"
#include "collector/source.h"
#include "collector/step_waits.h"
#include "collector/testing/null_recorder.h"
#include "injector/layer_stack.h"
#include "injector/python_calibration.h"
#include "injector/torch/binding.h"
#include "injector/training.h"
#include "operators/op_call.h"

namespace rfinject {
namespace {

class TestRecorder final : public testing::NullRecorder {
 public:
  uint32_t Intern(std::string_view text) noexcept override { return IdOf(&names_, std::string(text)); }
  uint32_t DefineLayer(const LayerDefinition& layer) noexcept override { return IdOf(&layers_, layer.path); }
  void EndStep(uint64_t) noexcept override { ++steps_; }
  uint64_t CurrentStep() const noexcept override { return steps_; }
  bool InWindow() const noexcept override {
    const Settings& settings = GetSettings();
    return steps_ >= settings.skip && (settings.steps == 0 || steps_ < settings.skip + settings.steps);
  }
  bool WindowIsOver() const noexcept override {
    const Settings& settings = GetSettings();
    return settings.steps != 0 && steps_ >= settings.skip + settings.steps;
  }
  void ReportDiagnostic(Severity, std::string_view id, std::string_view text, std::string_view) noexcept override {
    std::lock_guard lock(mutex_);
    diagnostics_ += std::string(id) + ": " + std::string(text) + "\n";
  }
  void CountDrop(std::string_view what, uint64_t count) noexcept override {
    std::lock_guard lock(mutex_);
    diagnostics_ += "drop " + std::to_string(count) + ": " + std::string(what) + "\n";
  }

  std::string Name(uint32_t id) { return TextOf(names_, id); }
  std::string Layer(uint32_t id) { return TextOf(layers_, id); }
  std::string TakeDiagnostics() {
    std::lock_guard lock(mutex_);
    return std::exchange(diagnostics_, {});
  }

 private:
  uint32_t IdOf(std::vector<std::string>* texts, const std::string& text) {
    std::lock_guard lock(mutex_);
    auto it = std::find(texts->begin(), texts->end(), text);
    if (it == texts->end()) it = texts->insert(it, text);
    return static_cast<uint32_t>(it - texts->begin()) + 1;
  }
  std::string TextOf(const std::vector<std::string>& texts, uint32_t id) {
    std::lock_guard lock(mutex_);
    return id == 0 ? "-" : texts[id - 1];
  }

  std::mutex mutex_;
  std::vector<std::string> names_;
  std::vector<std::string> layers_;
  std::string diagnostics_;
  std::atomic<uint64_t> steps_{0};
};

TestRecorder& TheRecorder() {
  static auto* recorder = new TestRecorder;
  return *recorder;
}

std::string Describe(const TensorView& tensor) {
  static const std::map<DType, const char*> names = {{DType::kFloat, "f32"}, {DType::kDouble, "f64"},
                                                     {DType::kHalf, "f16"},  {DType::kBFloat16, "bf16"},
                                                     {DType::kInt64, "i64"}, {DType::kBool, "b"}};
  auto name = names.find(tensor.dtype);
  std::string text = name != names.end() ? name->second : "?";
  text += '[';
  for (size_t i = 0; i < tensor.rank; ++i) text += (i ? "," : "") + std::to_string(tensor.shape[i]);
  return text + "]" + (tensor.broadcast ? "/" + std::to_string(tensor.distinct) : "");
}

std::string Describe(const OpCall& call, const Argument& argument) {
  switch (argument.kind) {
    case Argument::Kind::kNone:
      return "None";
    case Argument::Kind::kTensor:
      return Describe(call.tensors[argument.first]);
    case Argument::Kind::kTensorList: {
      std::string text = "(";
      for (size_t i = 0; i < argument.count; ++i) {
        text += (i ? " " : "") + Describe(call.tensors[argument.first + i]);
      }
      return text + ")";
    }
    case Argument::Kind::kInt:
      return std::to_string(argument.integer);
    case Argument::Kind::kIntList: {
      std::string text = "{";
      for (size_t i = 0; i < argument.count; ++i) {
        text += (i ? "," : "") + std::to_string(call.ints[argument.first + i]);
      }
      return text + "}";
    }
    case Argument::Kind::kDouble:
      return std::to_string(argument.real);
    case Argument::Kind::kBool:
      return argument.integer != 0 ? "True" : "False";
    case Argument::Kind::kOther:
      break;
  }
  return "?";
}

std::string Describe(const Site& site) {
  return std::string(kPhaseNames[static_cast<size_t>(site.phase)]) + "|" + TheRecorder().Layer(site.layer) + "|" +
         TheRecorder().Name(site.node) + "|" + TheRecorder().Name(site.op);
}

// One line for each operator: name, phase, layer, node, site's operator, inputs, outputs.
class TestSource final : public Source {
 public:
  bool wants_ops() const noexcept override { return true; }
  bool OnOp(const OpCall& call, const Site& site) noexcept override {
    if (quiet) return true;
    std::string line = std::string(call.name) + "|" + Describe(site) + "|";
    for (const Argument& argument : call.inputs) line += Describe(call, argument) + ";";
    line += '|';
    for (const Argument& argument : call.outputs) line += Describe(call, argument) + ";";
    std::lock_guard lock(mutex_);
    lines_ += line + "\n";
    return true;
  }
  std::string Take() {
    std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

  std::atomic<bool> quiet{false};

 private:
  std::mutex mutex_;
  std::string lines_;
};

TestSource& TheSource() {
  static auto* source = new TestSource;
  return *source;
}

std::atomic<uint64_t> g_repairs{0};
std::atomic<uint64_t> g_exits{0};

const char* Keep(std::string text) {
  static thread_local std::string kept;
  kept = std::move(text);
  return kept.c_str();
}

}  // namespace

void BeginWait(Watched) noexcept {}
void EndWait(Watched) noexcept {}
void WatchWaits(Watched, bool) noexcept {}
void RequestSlotRepair() noexcept { ++g_repairs; }
uint32_t LayerOfGradient(uint32_t owner, uintptr_t) noexcept { return owner; }
void RequestPoliteExit() noexcept { ++g_exits; }
void EndAttachmentIfOver() noexcept {}
void ActivateWithoutPython() noexcept {}
uint64_t TakeSamplesOfStep() noexcept { return 0; }
void NoteCallsOfStep(std::string_view, uint32_t) noexcept {}
void NoteOptimizerStep() noexcept {}

const Settings& GetSettings() noexcept {
  static const Settings* settings = [] {
    auto* read = new Settings;
    const auto text = [](const char* name) { return std::string(getenv(name) != nullptr ? getenv(name) : ""); };
    read->tier = text("RFINJECT_TIER");
    read->skip = strtoull(text("RFINJECT_SKIP").c_str(), nullptr, 10);
    read->steps = strtoull(text("RFINJECT_STEPS").c_str(), nullptr, 10);
    read->kill = text("RFINJECT_KILL") == "1";
    return read;
  }();
  return *settings;
}

}  // namespace rfinject

#define RFINJECT_TEST_EXPORT extern "C" __attribute__((visibility("default")))

using namespace rfinject;

// Returns the capabilities, one word each, and what is missing after a colon.
RFINJECT_TEST_EXPORT const char* test_bind(int wants_ops, int with_python) {
  const TorchCapabilities c =
      BindTorch(with_python ? &CalibrateByPython : nullptr, TheRecorder(), wants_ops ? &TheSource() : nullptr, false);
  std::string text;
  if (c.record_function) text += "record_function ";
  if (c.sequence) text += "sequence ";
  if (c.current_node) text += "current_node ";
  if (c.backward_scope) text += "backward_scope ";
  if (c.operands) text += "operands ";
  return Keep(text + ": " + c.missing);
}
RFINJECT_TEST_EXPORT uint32_t test_layer(const char* path) {
  LayerDefinition layer;
  layer.path = path;
  return TheRecorder().DefineLayer(layer);
}
RFINJECT_TEST_EXPORT void test_enter(uint32_t layer) { EnterLayer(layer); }
RFINJECT_TEST_EXPORT void test_leave() { LeaveLayer(); }
RFINJECT_TEST_EXPORT const char* test_site() { return Keep(Describe(CurrentSite())); }
RFINJECT_TEST_EXPORT const char* test_owner(uint64_t thread, uint64_t sequence) {
  bool forgotten = false;
  const uint32_t layer = OwnerOf(thread, sequence, &forgotten);
  return Keep(forgotten ? "forgotten" : TheRecorder().Layer(layer));
}
RFINJECT_TEST_EXPORT const char* test_take() { return Keep(TheSource().Take()); }
RFINJECT_TEST_EXPORT const char* test_diagnostics() { return Keep(TheRecorder().TakeDiagnostics()); }
RFINJECT_TEST_EXPORT void test_quiet() { TheSource().quiet = true; }
RFINJECT_TEST_EXPORT uint64_t test_steps() { return TheRecorder().CurrentStep(); }
RFINJECT_TEST_EXPORT bool test_program_profiles() { return ProgramProfiles(); }
RFINJECT_TEST_EXPORT uint64_t test_repairs() { return g_repairs; }
RFINJECT_TEST_EXPORT uint64_t test_exits() { return g_exits; }
RFINJECT_TEST_EXPORT void test_site_loop(uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) CurrentSite();
}
RFINJECT_TEST_EXPORT void test_layer_loop(uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    EnterLayer(1);
    LeaveLayer();
  }
}
