// File: elf_functions.h
//
// The functions that an ELF file names. Bounded, whatever the file says; for cold places, since it reads a file.
#ifndef RFINJECT_INJECTOR_NATIVE_ELF_FUNCTIONS_H_
#define RFINJECT_INJECTOR_NATIVE_ELF_FUNCTIONS_H_

#include <cstdint>

namespace rfinject {

// One function: addresses as the file has them, [begin, end), and its mangled name, valid during the call.
using VisitFunction = void (*)(void* data, uint64_t begin, uint64_t end, const char* name);

// Calls `visit` for every defined function of `path`: those of .symtab, or of .dynsym in a stripped file, in the
// file's order. False when the file cannot be read or is not what it should be; some may have been visited then.
// `visit` may throw, and so may this.
bool VisitElfFunctions(const char* path, VisitFunction visit, void* data);

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_NATIVE_ELF_FUNCTIONS_H_
