// File: needed_libraries.h
//
// Finds the shared libraries that a program names as needed, from its file and without running it.
#ifndef RFINJECT_CLI_CMD_NEEDED_LIBRARIES_H_
#define RFINJECT_CLI_CMD_NEEDED_LIBRARIES_H_

#include <string>
#include <vector>

namespace rfinject::cli {

// The names in the DT_NEEDED entries (elf(5)) of the 64-bit little-endian ELF file at `path`, in their order; of a
// script, those of the interpreter that its first line names. The result is empty where the file is something else,
// is static, or is damaged: the caller then only loses a remedy. It reads the file's headers and its table of names,
// nothing else.
std::vector<std::string> NeededLibraries(const std::string& path);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_NEEDED_LIBRARIES_H_
