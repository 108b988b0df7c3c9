// File: image.h
//
// Finds functions of an ELF object in the memory of another process. Its file may be another one by now (an upgrade),
// or out of reach; what is in memory is what runs.
#ifndef RFINJECT_CLI_ATTACH_IMAGE_H_
#define RFINJECT_CLI_ATTACH_IMAGE_H_

#include <cstdint>
#include <functional>
#include <string_view>

namespace rfinject::cli {

// Copies `size` bytes at `address` of the process to `to`. False where that is not memory.
using ReadMemory = std::function<bool(uint64_t address, void* to, uint64_t size)>;

// Returns the address of the function `name` that the object exports whose first page lies at `base`; 0 where it
// exports none, or is no whole 64-bit object.
uint64_t FindFunction(const ReadMemory& read, uint64_t base, std::string_view name);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_ATTACH_IMAGE_H_
