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
    const size_t length = std::strlen(name);
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; ++i) hash = (hash ^ static_cast<unsigned char>(name[i])) * 0x100000001b3u;
    return Find(hash, name, length, make);
  }

  // Looks up by the pointer, for names that live as long as the process does (operators' schemas); the text is still
  // compared, because another name may have come to lie at the same place.
  template <typename Make>
  Value FindByPointer(const char* name, Make make) {
    return Find(reinterpret_cast<uintptr_t>(name) * 0x9e3779b97f4a7c15u, name, std::strlen(name), make);
  }

 private:
  struct Entry {
    uint64_t hash;
    size_t length;
    Value value;
    char text[1];  // length + 1
  };
  static constexpr size_t kSlots = 8192;
  static constexpr size_t kProbes = 16;

  template <typename Make>
  Value Find(uint64_t hash, const char* name, size_t length, Make make) {
    Value value{};
    size_t slot = hash >> 51;
    for (size_t probe = 0; probe < kProbes; ++probe, ++slot) {
      std::atomic<Entry*>& place = slots_[slot % kSlots];
      Entry* entry = place.load(std::memory_order_acquire);
      if (entry == nullptr) {
        if (!make(name, &value)) return value;
        Entry* made = New(hash, name, length, value);
        if (made == nullptr) return value;
        if (place.compare_exchange_strong(entry, made, std::memory_order_acq_rel)) return value;
        ::operator delete(made);
      }
      if (entry->hash == hash && entry->length == length && std::memcmp(entry->text, name, length) == 0) {
        return entry->value;
      }
    }
    make(name, &value);
    return value;
  }

  static Entry* New(uint64_t hash, const char* name, size_t length, Value value) {
    void* memory = ::operator new(sizeof(Entry) + length, std::nothrow);
    if (memory == nullptr) return nullptr;
    auto* entry = new (memory) Entry{.hash = hash, .length = length, .value = value, .text = {}};
    std::memcpy(entry->text, name, length + 1);
    return entry;
  }

  std::array<std::atomic<Entry*>, kSlots> slots_{};
};

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_NAME_CACHE_H_
