// File: stub_library.h
//
// Shared libraries made in memory, so that nothing need be compiled where the program runs: one that has a library's
// name and nothing in it, so that the loader takes it for the library and does not look for the file; and one with a
// function for each name that nothing else has, which reports its name and fails.
#ifndef RFINJECT_VIRTUAL_GPU_LOADER_STUB_LIBRARY_H_
#define RFINJECT_VIRTUAL_GPU_LOADER_STUB_LIBRARY_H_

#include <string>
#include <vector>

namespace rfinject::virtual_gpu {

struct Stub {
  std::string name;
  int status;         // what it returns
  bool text = false;  // it returns a text in place of the status: its type is const char*
};

// Returns the bytes of an x86-64 ELF library of that soname. Each stub calls `report(name, status)` and returns what
// that does; `report` is an address in this process, which is the only one that the bytes are good for. What is
// looked up in the library is also looked up in those that it needs: their sonames, of libraries that are loaded
// already.
std::string MakeLibrary(const std::string& soname, const std::vector<Stub>& stubs, int (*report)(const char*, int),
                        const std::vector<std::string>& needed = {});

// Loads the bytes for the whole process (RTLD_GLOBAL), for ever. Returns an empty text on success, otherwise the
// reason.
std::string LoadLibraryBytes(const std::string& bytes, const std::string& name);

}  // namespace rfinject::virtual_gpu

#endif  // RFINJECT_VIRTUAL_GPU_LOADER_STUB_LIBRARY_H_
