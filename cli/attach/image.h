// File: image.h
//
// Finds functions of an ELF object in the memory of another process, and those that it calls. Its file may be another
// one by now (an upgrade), or out of reach; what is in memory is what runs.
#ifndef RFINJECT_CLI_ATTACH_IMAGE_H_
#define RFINJECT_CLI_ATTACH_IMAGE_H_

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace rfinject::cli {

// Copies `size` bytes at `address` of the process to `to`. False where that is not memory.
using ReadMemory = std::function<bool(uint64_t address, void* to, uint64_t size)>;

// Returns the address of the function `name` that the object exports whose first page lies at `base`; 0 where it
// exports none, or is no whole 64-bit object. `size`, if it is not null, is set to how long the function is.
uint64_t FindFunction(const ReadMemory& read, uint64_t base, std::string_view name, uint64_t* size = nullptr);

// A place through which an object calls a function that may be another object's (R_X86_64_JUMP_SLOT).
struct CallSlot {
  uint64_t at = 0;        // address of the place
  uint64_t function = 0;  // what it holds: the function's address, or some of the object's own that binds it
};
// Those of the object whose first page lies at `base`; none where it is no whole 64-bit object.
std::vector<CallSlot> FindCallSlots(const ReadMemory& read, uint64_t base);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_ATTACH_IMAGE_H_
