#include "injector/attachment.h"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "collector/recorder.h"
#include "collector/safe_write.h"
#include "collector/settings.h"
#include "collector/sync.h"
#include "injector/attach.h"
#include "injector/python/door.h"
#include "injector/python/loaded_code.h"
#include "injector/python/python_api.h"
#include "injector/python/ref.h"
#include "injector/python/torch_state.h"
#include "injector/training.h"

namespace rfinject {
namespace {

enum class Attachment : int { kNever, kNow, kBefore };
// Written by who has the turn; the thread that ends a step reads it. Relaxed: what is late is seen at the next step.
constinit std::atomic<Attachment> g_attachment{Attachment::kNever};
constinit std::atomic<int64_t> g_deadline_ns{0};  // monotonic; 0: none
constinit std::atomic<bool> g_end_pending{false};

bool Use(const char* settings) noexcept try {
  std::vector<const char*> entries;
  for (; *settings != '\0'; settings += std::strlen(settings) + 1) entries.push_back(settings);
  entries.push_back(nullptr);
  return SetSettings(entries.data());
} catch (const std::exception&) {
  return false;
}

// Whether the main thread is in the middle of something that torch's operators and nodes, which we run to find our
// way around, would take part in: a backward pass, whose hooks are Python, or a mode that is told of each operator (a
// trace of torch.compile, fake tensors). Torch 1.13 has no way to keep them from a mode for functions.
constexpr char kLook[] = R"python(
import sys
def busy():
    frame = sys._getframe()
    while frame is not None:
        code = frame.f_code
        if code.co_name in ('backward', 'grad') and code.co_filename.endswith('torch/autograd/__init__.py'):
            return True
        frame = frame.f_back
    core = sys.modules['torch._C']
    if not hasattr(core, 'DisableTorchFunctionSubclass') and getattr(core, '_len_torch_function_stack', int)() != 0:
        return True
    modes = getattr(core, '_len_torch_dispatch_stack', None)
    if modes is not None:
        return modes() != 0
    return getattr(core, '_get_torch_dispatch_mode', lambda: None)() is not None
found = busy()
)python";

// Whether operators run here and make nodes of autograd, as our trials of them must. In torch 1.13 they fail in the
// middle of entering or leaving a mode, where the dispatcher asks for one that has left torch's stack of them
// already.
constexpr char kTry[] = R"python(
import sys
torch = sys.modules['torch']
def makes_node():
    with torch.inference_mode(False), torch.enable_grad():
        x = torch.zeros(1, dtype=torch.float32, device='cpu', requires_grad=True)
        return (x * 2).grad_fn is not None
found = makes_node()
)python";

bool Finds(const PythonApi& python, const char* script) {
  std::string error;
  return RunPython(python, script, &error).Item("found").IsTrue();
}

int DetachSoon(void*) {
  g_end_pending.store(false);
  DetachRunning();
  return 0;
}

bool HasPython() noexcept { return dlsym(RTLD_DEFAULT, "Py_AddPendingCall") != nullptr; }

// In a C++ program any thread may be asked to attach or detach, and several at once.
class Turn {
 public:
  Turn() : mine_(!taken_.exchange(true)) {}
  ~Turn() {
    if (mine_) taken_.store(false);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool mine() const { return mine_; }

 private:
  static constinit inline std::atomic<bool> taken_{false};
  const bool mine_;
};

// Takes the settings and what ends the attachment with them. Returns null, or why not.
const char* Prepare(Attachment phase, const char* settings) {
  if (!Use(settings)) return "it has no memory for the settings";
  if (phase == Attachment::kBefore && !Recorder::Get().BeginAgain()) return "its former trace is still being written";
  constexpr int64_t kSecond = 1'000'000'000, kMost = INT64_MAX / kSecond / 2;
  const auto seconds = static_cast<int64_t>(std::min<uint64_t>(GetSettings().seconds, kMost));
  g_deadline_ns.store(seconds != 0 ? MonotonicNs() + seconds * kSecond : 0);
  g_attachment.store(Attachment::kNow);
  return nullptr;
}

const char* AttachRunningPython(Attachment phase, const char* settings) {
  if (phase == Attachment::kNever) {
    if (const char* why = TakeRunningPython(); why != nullptr) return why;
    g_attachment.store(Attachment::kBefore);
  }
  const PythonApi& python = *GetPython();
  const DynamoAsleep dynamo(python);
  if (Finds(python, kLook)) return "busy: it is in a backward pass or a trace";
  InitTorchState(python);
  const QuietTorch quiet;  // no mode and no hook of the program's is to hear of the operators that we try
  const SavedTensorsUnheard unheard(python);
  if (!Finds(python, kTry)) return "busy: it is entering or leaving a mode";
  if (const char* why = Prepare(phase, settings); why != nullptr) return why;
  WatchLoadedCode(python);
  AttachPython(python);
  return nullptr;
}

const char* AttachRunningLibtorch(Attachment phase, const char* settings) {
  if (phase == Attachment::kNever && IsAttached()) return "it was started with rfinject";
  if (const char* why = Prepare(phase, settings); why != nullptr) return why;
  // The operators that are tried must make nodes of autograd. This thread may be in a backward pass or in inference
  // mode, and its stack may be short; a new one is in no mode. It takes none of the program's signals.
  const auto attach = [](void*) -> void* {
    AttachLibtorch(true);
    return nullptr;
  };
  const SignalShield shield;
  pthread_t thread;
  if (pthread_create(&thread, nullptr, attach, nullptr) != 0) {
    g_attachment.store(Attachment::kBefore);
    return "it can start no thread";
  }
  pthread_join(thread, nullptr);
  return nullptr;
}

}  // namespace

const char* AttachRunning(const char* settings) {
  const Turn turn;
  if (!turn.mine()) return "busy: another command attaches to it or detaches";
  const Attachment phase = g_attachment.load();
  if (phase == Attachment::kNow) return "rfinject is attached to it already; rfinject detach ends that";
  return HasPython() ? AttachRunningPython(phase, settings) : AttachRunningLibtorch(phase, settings);
}

const char* DetachRunning() {
  const Turn turn;
  if (!turn.mine()) return "busy: another command attaches to it or detaches";
  if (g_attachment.load() != Attachment::kNow) return "rfinject is not attached to it";
  if (!(HasPython() ? DetachPython(*GetPython()) : DetachLibtorch())) return "busy: it captures a CUDA graph";
  g_attachment.store(Attachment::kBefore);
  return nullptr;
}

void EndAttachmentIfOver() noexcept try {
  if (g_attachment.load(std::memory_order_relaxed) != Attachment::kNow) return;
  const int64_t deadline = g_deadline_ns.load(std::memory_order_relaxed);
  if (!Recorder::Get().WindowIsOver() && (deadline == 0 || MonotonicNs() < deadline)) return;
  if (!HasPython()) return (void)DetachRunning();
  if (g_end_pending.exchange(true)) return;
  if (GetPython()->Py_AddPendingCall(&DetachSoon, nullptr) != 0) g_end_pending.store(false);
} catch (...) {
  Recorder::Get().Disable("out of memory while detaching");
}

}  // namespace rfinject
