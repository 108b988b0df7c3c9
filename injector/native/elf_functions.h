// File: elf_functions.h
//
// Lists the functions that an ELF file names. Time and memory are bounded for any contents of the file. It reads a
// file, so it is not for the launch path.
#ifndef RFINJECT_INJECTOR_NATIVE_ELF_FUNCTIONS_H_
#define RFINJECT_INJECTOR_NATIVE_ELF_FUNCTIONS_H_

#include <cstdint>

namespace rfinject {

// One function: addresses as the file has them, [begin, end), and its mangled name, valid during the call.
using VisitFunction = void (*)(void* data, uint64_t begin, uint64_t end, const char* name);

// Calls `visit` for every defined function of `path`: those of .symtab, or of .dynsym in a stripped file, in the
// file's order. Returns false when the file cannot be read or is damaged; some functions may have been visited then.
// `visit` may throw, and so may this function.
bool VisitElfFunctions(const char* path, VisitFunction visit, void* data);

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_NATIVE_ELF_FUNCTIONS_H_
