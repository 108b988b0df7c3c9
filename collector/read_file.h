// File: read_file.h
//
// Reads a file of this process's: one of /proc, or one that the program has loaded itself.
#ifndef RFINJECT_COLLECTOR_READ_FILE_H_
#define RFINJECT_COLLECTOR_READ_FILE_H_

#include <cstddef>
#include <string>

namespace rfinject {

// Returns at most the first `limit` bytes of a file; nothing where it cannot be read. May throw std::bad_alloc.
std::string ReadFile(const char* path, size_t limit);

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_READ_FILE_H_
