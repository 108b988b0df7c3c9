// File: output_file.h
//
// The file that -o names: complete or not there at all.
#ifndef RFINJECT_CLI_CMD_OUTPUT_FILE_H_
#define RFINJECT_CLI_CMD_OUTPUT_FILE_H_

#include <cstddef>
#include <string>

namespace rfinject::cli {

// Writes beside `path` and renames at the end, so that a reader never sees half a file and a failure leaves the old
// one. The file is created 0600: traces hold command lines. Never writes through a symbolic link. A device or a pipe
// is written to directly.
class OutputFile {
 public:
  OutputFile() = default;
  ~OutputFile();  // removes what was not committed
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Each is empty on success, otherwise why not.
  std::string Open(const std::string& path);
  std::string Write(const void* data, size_t size);
  std::string Commit();

 private:
  int fd_ = -1;
  std::string path_;
  std::string temporary_;  // empty: written to directly
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_OUTPUT_FILE_H_
