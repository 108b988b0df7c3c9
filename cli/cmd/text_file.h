// File: text_file.h
//
// Reads whole files. A file may fail when it is read although it opened, as those of a process in /proc do once it
// has ended, and as folders do; a stream would throw then.
#ifndef RFINJECT_CLI_CMD_TEXT_FILE_H_
#define RFINJECT_CLI_CMD_TEXT_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace rfinject::cli {

// Appends what is left of a file to `text`, until that has `most` bytes. Returns false, with errno, where reading
// fails.
bool ReadUpTo(int fd, size_t most, std::string* text);

// Returns what is in a file. Fails with NotFound, "PATH: why", where it cannot be opened or read.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_TEXT_FILE_H_
