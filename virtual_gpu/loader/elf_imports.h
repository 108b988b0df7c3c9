// File: elf_imports.h
//
// Reads what a shared library needs of others: their names, and the functions that it does not have itself.
#ifndef RFINJECT_VIRTUAL_GPU_LOADER_ELF_IMPORTS_H_
#define RFINJECT_VIRTUAL_GPU_LOADER_ELF_IMPORTS_H_

#include <set>
#include <string>

namespace rfinject::virtual_gpu {

struct Imports {
  std::set<std::string> libraries;  // DT_NEEDED
  std::set<std::string> functions;  // undefined dynamic symbols, without their versions
};

// Adds what `path` needs. Returns false when the file cannot be read or is no ELF file of this machine with section
// headers.
bool ReadImports(const std::string& path, Imports* imports);

}  // namespace rfinject::virtual_gpu

#endif  // RFINJECT_VIRTUAL_GPU_LOADER_ELF_IMPORTS_H_
