// File: unpacked_file.h
//
// A file that may be packed by gzip, as one that can be read at any place: where it is packed, a temporary one
// ($TMPDIR, else /tmp) that goes away with the object.
#ifndef RFINJECT_CLI_IMPORT_NSYS_UNPACKED_FILE_H_
#define RFINJECT_CLI_IMPORT_NSYS_UNPACKED_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace rfinject::cli {

class UnpackedFile {
 public:
  // A packed file of some megabytes can hold as many terabytes: more than `most_bytes` is refused.
  static absl::StatusOr<std::unique_ptr<UnpackedFile>> Of(const std::string& path,
                                                          uint64_t most_bytes = uint64_t{64} << 30);
  ~UnpackedFile();
  UnpackedFile(const UnpackedFile&) = delete;
  UnpackedFile& operator=(const UnpackedFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit UnpackedFile(std::string path) : path_(std::move(path)) {}
  std::string path_;
  bool temporary_ = false;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_NSYS_UNPACKED_FILE_H_
