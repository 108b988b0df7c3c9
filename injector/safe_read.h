// File: safe_read.h
//
// Reads memory of this process by address; also memory that may not be there, since calibration follows words that
// only look like pointers.
#ifndef RFINJECT_INJECTOR_SAFE_READ_H_
#define RFINJECT_INJECTOR_SAFE_READ_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rfinject {

// Reads memory that is known to be there.
template <typename T>
T Load(uintptr_t address) noexcept {
  T value;
  std::memcpy(static_cast<void*>(&value), reinterpret_cast<const void*>(address), sizeof(value));
  return value;
}

// Copies up to `size` bytes from `address`; returns how many could be read (whole pages are lost at an unmapped one).
// It never faults, and takes about a microsecond.
size_t SafeRead(uintptr_t address, void* to, size_t size) noexcept;

// Copies the value at `address`; returns false, with `*value` undefined, where not all of it could be read.
template <typename T>
bool SafeReadValue(uintptr_t address, T* value) noexcept {
  return SafeRead(address, value, sizeof(T)) == sizeof(T);
}

// The first bytes of an object, copied.
struct Snapshot {
  size_t size = 0;
  std::array<unsigned char, 512> bytes{};

  uint64_t Word(size_t offset) const noexcept { return Field(offset, 8); }
  // The unsigned number of `width` bytes at `offset`; 0 outside of what was read.
  uint64_t Field(size_t offset, size_t width) const noexcept {
    uint64_t value = 0;
    if (offset + width <= size) std::memcpy(&value, bytes.data() + offset, width);
    return value;
  }
};
Snapshot TakeSnapshot(uintptr_t address, size_t size = 512) noexcept;

// The unqualified name of the class of the C++ object at `address`, by its virtual table's type information
// ("MulBackward0"), copied to `name`; false when there is none. Template arguments are left out.
bool SafeClassName(uintptr_t address, char* name, size_t size) noexcept;

// The last identifier of a mangled type name: "N5torch8autograd9generated12MulBackward0E" gives "MulBackward0".
bool UnqualifiedName(const char* mangled, char* name, size_t size) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_SAFE_READ_H_
