// The functions by which a program can tell us something. They are behind rfinject.range, rfinject.start and
// rfinject.stop of the Python package, which finds them by name in the process. A program that is not profiled does
// not have them.
//
// A range is a layer for what runs outside of modules, and for the autograd nodes that are created there: it enters
// the thread's stack of layers as a module does. Inside a module or an autograd node it does nothing. So the frames
// of modules always lie above those of ranges, and each leaves the layer that it entered.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "collector/recorder.h"
#include "collector/sync.h"
#include "collector/thread_block.h"
#include "injector/layer_stack.h"
#include "injector/torch/autograd.h"

namespace rfinject {
namespace {

constexpr size_t kMaxOpen = 16;  // ranges that nest on a thread
// How many ranges a process may have, by name and enclosing range. A program that puts numbers into names must not
// fill the memory.
constexpr size_t kMaxRanges = 1024;
constexpr size_t kMaxNameBytes = 200;
// How long a range's begin waits for g_lock, ns. Python calls with the GIL held, so the lock is free unless a C++
// thread of the program calls at the same time.
constexpr int64_t kLockWaitNs = 1'000'000;

struct Known {
  uint32_t model, layer;
  std::string path;
};
// Ranges by the range around them (0: none) and their name.
using Ranges = std::map<std::pair<uint32_t, std::string>, Known, std::less<>>;
constinit Mutex g_lock;
Ranges* g_ranges RFINJECT_GUARDED_BY(g_lock) = nullptr;  // never destroyed

struct OpenRange {
  uint64_t token;
  uint64_t entered;  // LayerTop::entered
  uint32_t depth;
  uint32_t layer;
  bool ended;  // its end was told when it was not the innermost frame
};
struct OpenRanges {
  size_t count = 0;
  std::array<OpenRange, kMaxOpen> open;

  bool InnermostIsTop(const LayerTop& top) const {
    return count != 0 && open[count - 1].depth == top.depth && open[count - 1].entered == top.entered;
  }
};
ThreadBlock<OpenRanges> g_open_ranges;
[[gnu::tls_model("initial-exec")]] constinit thread_local OpenRanges* t_open_ranges = nullptr;
constinit std::atomic<uint64_t> g_last_token{0};

// Returns the layer of a range; 0 where memory ran out or there are too many ranges.
uint32_t LayerOf(uint32_t around, std::string_view name) {
  if (!g_lock.LockFor(kLockWaitNs)) return 0;
  const HeldLock held(g_lock);
  if (g_ranges == nullptr) g_ranges = new Ranges;
  std::pair<uint32_t, std::string> key(around, name);
  if (const auto found = g_ranges->find(key); found != g_ranges->end()) return found->second.layer;
  Recorder& recorder = Recorder::Get();
  if (g_ranges->size() >= kMaxRanges) {
    recorder.ReportDiagnostic(Severity::kWarning, "too-many-ranges",
                              "more than 1024 different names of ranges: what runs in further ones has no name",
                              "do not put numbers that change into names");
    return 0;
  }
  Known known{};
  const auto outer = std::find_if(g_ranges->begin(), g_ranges->end(),
                                  [around](const auto& entry) { return entry.second.layer == around; });
  if (around != 0 && outer != g_ranges->end()) {
    known.model = outer->second.model;
    known.path = outer->second.path.empty() ? std::string(name) : outer->second.path + "." + std::string(name);
  } else {
    ModelDefinition model;
    model.class_name = name;
    known.model = recorder.DefineModel(model);
  }
  if (known.model == 0) return 0;
  LayerDefinition layer;
  layer.model = known.model;
  layer.parent = around;
  layer.path = known.path;
  layer.class_name = "range";
  layer.training = true;
  known.layer = recorder.DefineLayer(layer);
  if (known.layer == 0) return 0;
  return g_ranges->emplace(std::move(key), std::move(known)).first->second.layer;
}

// Leaves the innermost ranges whose end was told.
void LeaveEnded(OpenRanges& ranges) {
  while (ranges.count != 0 && ranges.open[ranges.count - 1].ended && ranges.InnermostIsTop(CurrentLayer())) {
    LeaveLayer();
    --ranges.count;
  }
}

}  // namespace
}  // namespace rfinject

// Begins a range called `name` (UTF-8) on the calling thread. Returns the token that ends it, or 0 where no range
// began.
extern "C" [[gnu::visibility("default")]] uint64_t rfinject_range_begin(const char* name) noexcept try {
  using namespace rfinject;
  if (name == nullptr || *name == '\0') return 0;
  OpenRanges* ranges = g_open_ranges.Get(&t_open_ranges);
  if (ranges == nullptr) return 0;
  LeaveEnded(*ranges);
  if (ranges->count == kMaxOpen) return 0;
  const LayerTop top = CurrentLayer();
  if ((top.depth != 0 && !ranges->InnermostIsTop(top)) || RunningNode() != 0) return 0;
  const uint32_t layer = LayerOf(top.layer, std::string_view(name).substr(0, kMaxNameBytes));
  if (layer == 0) return 0;
  EnterLayer(layer);
  const LayerTop entered = CurrentLayer();
  if (entered.layer != layer || entered.depth != top.depth + 1) return 0;
  const uint64_t token = g_last_token.fetch_add(1, std::memory_order_relaxed) + 1;
  ranges->open[ranges->count++] = {token, entered.entered, entered.depth, layer, false};
  return token;
} catch (...) {
  return 0;
}

// Ends the range that `token` identifies. A token of another thread, or of a range that has ended, has no effect.
extern "C" [[gnu::visibility("default")]] void rfinject_range_end(uint64_t token) noexcept {
  using namespace rfinject;
  OpenRanges* ranges = t_open_ranges;
  if (ranges == nullptr || token == 0) return;
  for (size_t i = ranges->count; i-- != 0;) {
    if (ranges->open[i].token == token) ranges->open[i].ended = true;
  }
  LeaveEnded(*ranges);
}

// Says whether the steps that begin from now on shall be measured (1) or not (0).
extern "C" [[gnu::visibility("default")]] void rfinject_measure(int measuring) noexcept {
  rfinject::Recorder::Get().RequestMeasuring(measuring != 0);
}
