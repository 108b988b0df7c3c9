// File: name_cache.h
//
// NameCache maps the C strings that torch passes to us repeatedly to what was computed from them. Look-ups take no
// lock. Nothing is removed from it, so it suits names that a program has a few hundred of.
#ifndef RFINJECT_INJECTOR_TORCH_NAME_CACHE_H_
#define RFINJECT_INJECTOR_TORCH_NAME_CACHE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>

namespace rfinject {

// Whether it is an operator's name, "aten::add", and not that of a range that torch marks around operators in the
// same scope: "ReluBackward0", "torch::autograd::CopySlices", "autograd::engine::evaluate_function: AddBackward0".
// Torch builds those in memory that it frees. So they lie at ever other places, and do not belong into a cache by
// pointers.
inline bool IsOperatorName(std::string_view name) {
  const size_t colons = name.find("::");
  return colons != std::string_view::npos && name.find_first_of(": ", colons + 2) == std::string_view::npos;
}

template <typename Value>
class NameCache {
 public:
  // Looks up by the text alone. `make(name, &value)` gives the value for a text not seen before, and false when it is
  // not to be kept; two threads may both make it, one wins. When the cache is full the value is made anew each time.
  template <typename Make>
  Value FindByText(const char* name, Make make) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char* at = name; *at != 0; ++at) hash = (hash ^ static_cast<unsigned char>(*at)) * 0x100000001b3u;
    Value made{};
    return *Find(hash, name, make, &made);
  }

  // Looks up by the pointer, for names that live as long as the process does (operators' schemas); the text is still
  // compared, because another name may have come to lie at the same place.
  template <typename Make>
  Value FindByPointer(const char* name, Make make) {
    Value made{};
    return *Find(HashOf(name), name, make, &made);
  }
  // The same without a copy, for values that are large. Returns the value that is kept, or `own`, which then has it.
  template <typename Make>
  const Value* FindByPointer(const char* name, Make make, Value* own) {
    return Find(HashOf(name), name, make, own);
  }

 private:
  struct Entry {
    uint64_t hash;
    Value value;
    char text[1];  // as long as it is
  };
  // Few enough that those which a step of training looks at stay in the processor's cache.
  static constexpr size_t kSlots = 2048;
  static constexpr size_t kProbes = 16;

  static uint64_t HashOf(const char* pointer) { return reinterpret_cast<uintptr_t>(pointer) * 0x9e3779b97f4a7c15u; }

  // Returns what is kept, or `made`, where that is the value.
  template <typename Make>
  const Value* Find(uint64_t hash, const char* name, Make make, Value* made) {
    size_t slot = hash >> 53;
    for (size_t probe = 0; probe < kProbes; ++probe, ++slot) {
      std::atomic<Entry*>& place = slots_[slot % kSlots];
      Entry* entry = place.load(std::memory_order_acquire);
      if (entry == nullptr) {
        *made = {};
        if (!make(name, made)) return made;
        Entry* kept = New(hash, name, *made);
        if (kept == nullptr) return made;
        if (place.compare_exchange_strong(entry, kept, std::memory_order_acq_rel)) return &kept->value;
        ::operator delete(kept);
      }
      if (entry->hash == hash && std::strcmp(entry->text, name) == 0) {
        return &entry->value;
      }
    }
    *made = {};
    make(name, made);
    return made;
  }

  static Entry* New(uint64_t hash, const char* name, const Value& value) {
    const size_t length = std::strlen(name);
    void* memory = ::operator new(sizeof(Entry) + length, std::nothrow);
    if (memory == nullptr) return nullptr;
    auto* entry = new (memory) Entry{.hash = hash, .value = value, .text = {}};
    std::memcpy(entry->text, name, length + 1);
    return entry;
  }

  std::array<std::atomic<Entry*>, kSlots> slots_{};
};

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_NAME_CACHE_H_
