#include "injector/native/native_layers.h"

#include <errno.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "collector/hash.h"
#include "collector/sync.h"
#include "collector/thread_block.h"
#include "injector/native/elf_functions.h"
#include "injector/native/frame_role.h"
#include "injector/native/objects.h"
#include "injector/native/unwinder.h"

namespace rfinject {
namespace {

// --- What a thread remembers

// The sizes are powers of two. A step of ResNet-50 has some 300 chains of 40 frames, which share most of their
// frames.
constexpr size_t kSteps = 8192;
constexpr size_t kChains = 2048;
constexpr size_t kProbes = 8;

// Where the next return address lies, seen from one return address at one place on the stack.
struct Step {
  uintptr_t slot = 0;  // 0: empty
  uintptr_t ip = 0;
  uintptr_t next = 0;  // its slot; 0: the chain ends here
};
struct Chain {
  uint64_t hash = 0;   // of its return addresses; 0: empty
  uint32_t names = 0;  // g_names when its layer got its name
  NativePlace place;
};
// Changes where layers get other names.
std::atomic<uint32_t> g_names{0};
// Entries by their hashes, of which each has kProbes places.
template <typename Entry, size_t kSize>
class ProbeTable {
 public:
  template <typename Predicate>
  Entry* Find(uint64_t hash, Predicate is) noexcept {
    for (size_t probe = 0; probe < kProbes; ++probe) {
      Entry& entry = entries_[(hash + probe) & (kSize - 1)];
      if (is(entry)) return &entry;
    }
    return nullptr;
  }
  // A place that is free, or the victim that a number chooses where all are taken.
  template <typename Predicate>
  Entry* PlaceFor(uint64_t hash, uint64_t number, Predicate is_free) noexcept {
    Entry* free = Find(hash, is_free);
    return free != nullptr ? free : &entries_[(hash + number % kProbes) & (kSize - 1)];
  }

 private:
  std::array<Entry, kSize> entries_;
};
struct Known {
  uint64_t unwinds = 0;
  ProbeTable<Step, kSteps> steps;
  ProbeTable<Chain, kChains> chains;
};
ThreadBlock<Known> g_known;
__attribute__((tls_model("initial-exec"))) constinit thread_local Known* t_known = nullptr;

Step* FindStep(Known* known, uintptr_t slot, uintptr_t ip) noexcept {
  return known->steps.Find(HashMix(slot, ip), [=](const Step& step) { return step.slot == slot && step.ip == ip; });
}

void SetStep(Known* known, uintptr_t slot, uintptr_t ip, uintptr_t next) noexcept {
  Step* step = FindStep(known, slot, ip);
  if (step == nullptr) {
    step = known->steps.PlaceFor(HashMix(slot, ip), known->unwinds, [](const Step& one) { return one.slot == 0; });
  }
  *step = {slot, ip, next};
}

Chain* FindChain(Known* known, uint64_t hash) noexcept {
  const uint32_t names = g_names.load(std::memory_order_relaxed);
  return known->chains.Find(hash, [=](const Chain& chain) { return chain.hash == hash && chain.names == names; });
}

void SetChain(Known* known, uint64_t hash, const NativePlace& place) noexcept {
  const uint32_t names = g_names.load(std::memory_order_relaxed);
  const auto is_free = [names](const Chain& chain) { return chain.hash == 0 || chain.names != names; };
  *known->chains.PlaceFor(hash, known->unwinds, is_free) = {hash, names, place};
}

constexpr uint64_t kHashSeed = 0x452821E638D01377u;
uint64_t HashFrame(uint64_t hash, uintptr_t ip) noexcept { return HashMix(hash, ip) | 1; }  // 0 is an empty chain

// The hash of the chain that begins at `slot`; 0 when it leads to a place that is not known. Every slot in a step was
// seen on this thread's stack, further out than the caller's own frame: it can be read. (A sanitizer would object to
// reading other functions' frames.)
[[gnu::no_sanitize_address]] uint64_t ReadChain(Known* known, uintptr_t slot) noexcept {
  uint64_t hash = kHashSeed;
  for (size_t i = 0; i < kMaxStackFrames; ++i) {
    const uintptr_t ip = *reinterpret_cast<const volatile uintptr_t*>(slot);
    const Step* step = FindStep(known, slot, ip);
    if (step == nullptr) return 0;
    hash = HashFrame(hash, ip);
    if (step->next == 0) return hash;
    slot = step->next;
  }
  return 0;
}

// --- What the process knows, under g_mutex

struct RoleRange {
  uint64_t begin;
  uint64_t end;
  FrameRole role;
};
struct ObjectRoles {
  LoadedObject object;
  std::vector<RoleRange> ranges;  // ascending, as the file has them
};

struct NativeLayer {
  uint32_t id = 0;
  uint32_t model = 0;
  std::string path;
};

constexpr size_t kMaxNativeLayers = 10'000;
constexpr int64_t kLockWait = 100'000'000;  // ns; what one operator may be held up for by another thread's reading

struct Knowledge {
  std::vector<ObjectRoles> objects;
  std::vector<NativeLayer> layers;  // 0: the program itself
  // The layers by (enclosing layer, place of the call, class), and how many there are by (enclosing layer, class).
  std::map<std::tuple<uint32_t, uintptr_t, std::string>, uint32_t> calls;
  std::map<std::pair<uint32_t, std::string>, uint32_t> counts;
};
Mutex g_mutex;
Knowledge* g_knowledge = nullptr;
Recorder* g_recorder = nullptr;

constexpr uint32_t kProgram = 0;

void AddRole(void* data, uint64_t begin, uint64_t end, const char* name) {
  if (!MayHaveRole(name)) return;
  FrameRole role = RoleOfFunction(Demangle(name));
  if (role.kind == FrameRole::Kind::kNone) return;
  static_cast<std::vector<RoleRange>*>(data)->push_back({begin, end, std::move(role)});
}

const ObjectRoles* RolesOf(uintptr_t address) {
  LoadedObject object;
  if (!FindObject(address, &object)) return nullptr;
  for (const ObjectRoles& known : g_knowledge->objects) {
    if (known.object.begin == object.begin && known.object.unwind_table == object.unwind_table &&
        known.object.end == object.end) {
      return &known;
    }
  }
  ObjectRoles roles;
  roles.object = object;
  ObjectFile file;
  if (DescribeObject(object, &file)) VisitElfFunctions(file.path.c_str(), AddRole, &roles.ranges);
  std::sort(roles.ranges.begin(), roles.ranges.end(),
            [](const RoleRange& a, const RoleRange& b) { return a.begin < b.begin; });
  g_knowledge->objects.push_back(std::move(roles));
  return &g_knowledge->objects.back();
}

// The role of the function that a call returns to.
const FrameRole* RoleAt(uintptr_t return_address) {
  const uintptr_t call = return_address - 1;  // the return address may be another function's first
  const ObjectRoles* roles = RolesOf(call);
  if (roles == nullptr) return nullptr;
  const uint64_t address = call - roles->object.bias;
  auto after = std::upper_bound(roles->ranges.begin(), roles->ranges.end(), address,
                                [](uint64_t value, const RoleRange& range) { return value < range.begin; });
  if (after == roles->ranges.begin() || address >= std::prev(after)->end) return nullptr;
  return &std::prev(after)->role;
}

uint32_t Define(uint32_t model, uint32_t parent, std::string path, const std::string& class_name) {
  LayerDefinition definition;
  definition.model = model;
  definition.parent = parent;
  definition.path = std::move(path);
  definition.class_name = class_name;
  definition.training = true;
  const uint32_t id = g_recorder->DefineLayer(definition);
  if (id == 0) return 0;
  g_knowledge->layers.push_back({id, model, definition.path});
  return static_cast<uint32_t>(g_knowledge->layers.size() - 1);
}

uint32_t DefineRoot(const std::string& class_name) {
  ModelDefinition model;
  model.class_name = class_name;
  const uint32_t id = g_recorder->DefineModel(model);
  return id != 0 ? Define(id, 0, "", class_name) : 0;
}

// Makes the layer of the program itself, for modules that no visible forward of the program encloses. Its number is
// kProgram.
void EnsureProgram() {
  if (!g_knowledge->layers.empty()) return;
  if (DefineRoot(program_invocation_short_name) == kProgram && !g_knowledge->layers.empty()) return;
  g_knowledge->layers.push_back({});
}

// The layer of `role`, called by `call` in `parent`. A root of the program's own is one model wherever it is called.
uint32_t ChildOf(uint32_t parent, bool has_parent, uintptr_t call, const FrameRole& role) {
  const bool model = !has_parent && !role.of_torch;
  const auto [found, is_new] = g_knowledge->calls.try_emplace({parent, model ? 0 : call, role.class_name}, 0);
  if (!is_new) return found->second;
  if (g_knowledge->layers.size() >= kMaxNativeLayers) return parent;
  if (model) return found->second = DefineRoot(role.class_name);
  const uint32_t number = ++g_knowledge->counts[{parent, role.class_name}];
  const NativeLayer& outer = g_knowledge->layers[parent];
  std::string path = outer.path.empty() ? role.class_name : outer.path + "." + role.class_name;
  if (number > 1) path += "#" + std::to_string(number);
  const uint32_t child = Define(outer.model, outer.id, std::move(path), role.class_name);
  g_knowledge->calls[{parent, call, role.class_name}] = child;
  return child;
}

// Goes from the outermost frame inwards: each forward is called from a place in the one before.
NativePlace Interpret(const StackFrame* frames, size_t count) {
  using Kind = FrameRole::Kind;
  struct Module {
    const FrameRole* role;
    uintptr_t ip;     // in its forward
    uintptr_t outer;  // in what called its forward
  };
  NativePlace place;
  std::vector<Module> modules;  // innermost first
  for (size_t i = 0; i < count; ++i) {
    const FrameRole* role = RoleAt(frames[i].ip);
    if (role == nullptr) continue;
    switch (role->kind) {
      case Kind::kOptimizerStep:
        place.optimizer_step = true;
        place.phase = Phase::kOptimizer;
        return place;
      case Kind::kZeroGrad:
        place.phase = Phase::kOptimizer;
        return place;
      case Kind::kData:
        place.phase = Phase::kData;
        return place;
      case Kind::kHolder:
        // A holder says what X::forward, just inside of it, has said already.
        if (!modules.empty() && modules.back().role->class_name == role->class_name) {
          modules.back().outer = i + 1 < count ? frames[i + 1].ip : 0;
          continue;
        }
        [[fallthrough]];
      case Kind::kModule:
        modules.push_back({role, frames[i].ip, i + 1 < count ? frames[i + 1].ip : 0});
        continue;
      case Kind::kNone:
        continue;
    }
  }
  if (modules.empty()) return place;
  EnsureProgram();
  uint32_t layer = kProgram;
  for (size_t i = modules.size(); i-- > 0;) {
    // The place of the call is the return address in the enclosing forward, even with frames between.
    const bool nested = i + 1 < modules.size();
    layer = ChildOf(layer, nested, nested ? modules[i + 1].ip : modules[i].outer, *modules[i].role);
  }
  place.layer = g_knowledge->layers[layer].id;
  const uint32_t model = g_knowledge->layers[layer].model;
  if (model != g_knowledge->layers[kProgram].model) place.model = model;
  if (place.layer != 0) place.phase = Phase::kForward;
  return place;
}

// `anchor` is the slot of the innermost return address that counts; what lies further in is this library's own.
[[gnu::noinline]] NativePlace Learn(Known* known, uintptr_t anchor) noexcept try {
  StackFrame frames[kMaxStackFrames];
  const size_t all = Unwind(frames);
  ++known->unwinds;
  size_t first = 0;
  while (first < all && frames[first].slot < anchor) ++first;
  if (first == all || frames[first].slot != anchor) return {};
  uint64_t hash = kHashSeed;
  for (size_t i = first; i < all; ++i) hash = HashFrame(hash, frames[i].ip);
  NativePlace place;
  if (const Chain* chain = FindChain(known, hash)) {
    place = chain->place;  // known from other places on the stack
  } else {
    if (!g_mutex.LockFor(kLockWait)) return {};
    const HeldLock held(g_mutex);
    place = Interpret(frames + first, all - first);
    place.call = hash;
    SetChain(known, hash, place);
  }
  for (size_t i = first; i < all; ++i) {
    SetStep(known, frames[i].slot, frames[i].ip, i + 1 < all ? frames[i + 1].slot : 0);
  }
  return place;
} catch (...) {
  return {};
}

}  // namespace

bool InitNativeLayers(Recorder& recorder) noexcept try {
  if (!PrepareUnwinder()) return false;
  g_recorder = &recorder;
  if (g_knowledge == nullptr) g_knowledge = new Knowledge;
  return true;
} catch (...) {
  return false;
}

[[gnu::noinline]] NativePlace PlaceOfThread() noexcept {
  if (g_knowledge == nullptr) return {};
  Known* known = g_known.Get(&t_known);
  if (known == nullptr) return {};
  const uintptr_t anchor = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) + sizeof(uintptr_t);
  const uint64_t hash = ReadChain(known, anchor);
  if (hash != 0) {
    if (const Chain* chain = FindChain(known, hash)) return chain->place;
  }
  return Learn(known, anchor);
}

void NameLayersAnew() noexcept {
  if (g_knowledge == nullptr || !g_mutex.LockFor(kLockWait)) return;
  const HeldLock held(g_mutex);
  g_knowledge->layers.clear();
  g_knowledge->calls.clear();
  g_knowledge->counts.clear();
  g_names.fetch_add(1, std::memory_order_relaxed);
}

void ResetNativeLayersAfterFork() noexcept { g_mutex.ResetInForkedChild(); }

}  // namespace rfinject
