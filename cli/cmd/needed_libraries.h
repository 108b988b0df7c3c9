// File: needed_libraries.h
//
// Which shared libraries a program names as needed, read from its file without running it.
#ifndef RFINJECT_CLI_CMD_NEEDED_LIBRARIES_H_
#define RFINJECT_CLI_CMD_NEEDED_LIBRARIES_H_

#include <string>
#include <vector>

namespace rfinject::cli {

// The names in the DT_NEEDED entries (elf(5)) of the 64-bit little-endian ELF file at `path`, in their order; of a
// script, those of the interpreter that its first line names. Empty where the file is something else, is static, or
// does not hold together: the caller only loses a remedy. Reads the file's headers and its table of names, nothing
// else.
std::vector<std::string> NeededLibraries(const std::string& path);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_NEEDED_LIBRARIES_H_
