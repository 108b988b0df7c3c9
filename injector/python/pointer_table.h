// File: pointer_table.h
//
// An open-addressing hash table from object addresses to small values. Find allocates nothing and, at the load that
// is kept here, touches one cache line as a rule; std::unordered_map would follow two pointers.
#ifndef RFINJECT_INJECTOR_PYTHON_POINTER_TABLE_H_
#define RFINJECT_INJECTOR_PYTHON_POINTER_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace rfinject {

// Not thread-safe. Values must be cheap to copy. Insert throws std::bad_alloc.
template <typename Value>
class PointerTable {
 public:
  Value* Find(const void* key) noexcept {
    if (size_ == 0) return nullptr;
    for (size_t i = Home(key);; i = (i + 1) & mask_) {
      if (slots_[i].key == key) return &slots_[i].value;
      if (slots_[i].key == nullptr) return nullptr;
    }
  }

  // Adds or replaces; `key` is not null.
  void Insert(const void* key, const Value& value) {
    if (Value* found = Find(key)) {
      *found = value;
      return;
    }
    if (slots_ == nullptr || (size_ + 1) * 2 > mask_ + 1) Grow();
    Place(key, value);
    ++size_;
  }

  bool Erase(const void* key) noexcept {
    if (size_ == 0) return false;
    size_t i = Home(key);
    while (slots_[i].key != key) {
      if (slots_[i].key == nullptr) return false;
      i = (i + 1) & mask_;
    }
    // Closes the gap: an entry moves back unless its home lies cyclically in (gap, its place].
    for (size_t j = (i + 1) & mask_; slots_[j].key != nullptr; j = (j + 1) & mask_) {
      const size_t home = Home(slots_[j].key);
      if (((j - home) & mask_) >= ((j - i) & mask_)) {
        slots_[i] = slots_[j];
        i = j;
      }
    }
    slots_[i].key = nullptr;
    --size_;
    return true;
  }

  size_t size() const noexcept { return size_; }

 private:
  struct Slot {
    const void* key = nullptr;
    Value value{};
  };

  size_t Home(const void* key) const noexcept {
    // Objects are 16-byte aligned, so the low bits carry no information. Fibonacci hashing takes the high bits of the
    // product.
    return static_cast<size_t>(((reinterpret_cast<uintptr_t>(key) >> 4) * 0x9E3779B97F4A7C15ull) >> 32) & mask_;
  }

  void Place(const void* key, const Value& value) noexcept {
    size_t i = Home(key);
    while (slots_[i].key != nullptr) i = (i + 1) & mask_;
    slots_[i].key = key;
    slots_[i].value = value;
  }

  void Grow() {
    const size_t old_capacity = slots_ == nullptr ? 0 : mask_ + 1;
    const size_t capacity = old_capacity == 0 ? 256 : old_capacity * 2;
    std::unique_ptr<Slot[]> old = std::exchange(slots_, std::make_unique<Slot[]>(capacity));
    mask_ = capacity - 1;
    for (size_t i = 0; i < old_capacity; ++i) {
      if (old[i].key != nullptr) Place(old[i].key, old[i].value);
    }
  }

  std::unique_ptr<Slot[]> slots_;
  size_t mask_ = 0;
  size_t size_ = 0;
};

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_POINTER_TABLE_H_
