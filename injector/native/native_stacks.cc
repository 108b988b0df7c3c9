#include "injector/native/native_stacks.h"

#include <algorithm>
#include <array>
#include <string>

#include "collector/native_stack.h"
#include "collector/sync.h"
#include "injector/native/elf_functions.h"
#include "injector/native/frame_role.h"
#include "injector/native/objects.h"
#include "injector/native/unwinder.h"

namespace rfinject {
namespace {

// A launch callback notes here, without allocating, which objects there are on stacks and which places in them. What
// does not fit gets no name.
constexpr size_t kMaxObjects = 512;
constexpr size_t kMaxPlaces = 1 << 16;

struct Place {
  uint32_t module = 0;
  uint64_t offset = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};
struct Noted {
  size_t objects_size = 0;
  size_t places_size = 0;
  std::array<LoadedObject, kMaxObjects> objects;
  std::array<Place, kMaxPlaces> places;
};
Mutex g_unwinding;  // tried, never waited for
Noted* g_noted = nullptr;
// This library. Our constructor may run before dynamic initialisers.
constinit LoadedObject g_own;

uint32_t ModuleOf(uintptr_t address) noexcept {
  for (size_t i = 0; i < g_noted->objects_size; ++i) {
    const LoadedObject& object = g_noted->objects[i];
    if (address >= object.begin && address < object.end) return static_cast<uint32_t>(i + 1);
  }
  if (g_noted->objects_size == kMaxObjects) return 0;
  if (!FindObject(address, &g_noted->objects[g_noted->objects_size])) return 0;
  return static_cast<uint32_t>(++g_noted->objects_size);
}

size_t TakeStack(std::span<NativeFrame> out) noexcept {
  if (!g_unwinding.TryLock()) return 0;
  const HeldLock held(g_unwinding);
  StackFrame frames[kMaxStackFrames];
  const size_t count = Unwind(frames);
  size_t kept = 0;
  for (size_t i = 0; i < count && kept < out.size(); ++i) {
    const uintptr_t call = frames[i].ip - 1;
    if (kept == 0 && call >= g_own.begin && call < g_own.end) continue;
    const uint32_t module = ModuleOf(call);
    if (module == 0) break;
    const uint64_t offset = frames[i].ip - g_noted->objects[module - 1].bias;
    out[kept++] = {module, offset};
    if (g_noted->places_size < kMaxPlaces) g_noted->places[g_noted->places_size++] = {module, offset};
  }
  return kept;
}

struct Naming {
  Recorder* recorder;
  const Place* begin;
  const Place* end;
};

// A place is a return address. The call just before it lies in the function; the address itself may lie beyond.
void NamePlaces(void* data, uint64_t begin, uint64_t end, const char* name) {
  const auto* naming = static_cast<const Naming*>(data);
  const Place* place = std::upper_bound(naming->begin, naming->end, begin,
                                        [](uint64_t value, const Place& p) { return value < p.offset; });
  if (place == naming->end || place->offset > end) return;
  const std::string text = Demangle(name);
  for (; place != naming->end && place->offset <= end; ++place) {
    naming->recorder->NameFrame({place->module, place->offset}, text);
  }
}

}  // namespace

void OfferNativeStacks() noexcept try {
  if (!PrepareUnwinder()) return;
  if (g_noted == nullptr) g_noted = new Noted;
  FindObject(reinterpret_cast<uintptr_t>(&OfferNativeStacks), &g_own);
  g_native_stack.store(TakeStack, std::memory_order_release);
} catch (...) {
}

// No stacks are taken from here on: the mutex stays locked on purpose, which the analysis of locks would report.
void NameNativeStacks(Recorder& recorder) noexcept RFINJECT_NO_THREAD_SAFETY_ANALYSIS try {
  if (g_noted == nullptr) return;
  // An unwind of another thread takes some 70 us. A thread that was stopped inside an unwind must not hold up the end
  // of the process.
  constexpr int64_t kUnwindWaitNs = 100'000'000;
  if (!g_unwinding.LockFor(kUnwindWaitNs)) return;
  auto* const begin = g_noted->places.data();
  std::sort(begin, begin + g_noted->places_size);
  auto* const end = std::unique(begin, begin + g_noted->places_size);
  for (const Place* first = begin; first != end;) {
    const Place* last = std::find_if(first, static_cast<const Place*>(end),
                                     [first](const Place& place) { return place.module != first->module; });
    ObjectFile file;
    if (DescribeObject(g_noted->objects[first->module - 1], &file)) {
      recorder.DescribeModule(first->module, file.path, file.build_id);
      Naming naming{&recorder, first, last};
      VisitElfFunctions(file.path.c_str(), NamePlaces, &naming);
    }
    first = last;
  }
} catch (...) {
}

void ResetNativeStacksAfterFork() noexcept { g_unwinding.ResetInForkedChild(); }

}  // namespace rfinject
