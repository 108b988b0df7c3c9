// File: output_file.h
//
// OutputFile is the file that -o names. It is complete or does not exist, and never replaces somebody's work.
#ifndef RFINJECT_CLI_CMD_OUTPUT_FILE_H_
#define RFINJECT_CLI_CMD_OUTPUT_FILE_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "cli/cmd/options.h"

namespace rfinject::cli {

inline constexpr Option kOutputOption = {"output", 'o', "FILE", "write there, not to standard output; created 0600",
                                         kFiles};
inline constexpr Option kForceOption = {"force", 0, "", "replace FILE where it exists"};

// What may be replaced. An input never is, whatever is said here.
struct Replace {
  bool any = false;  // --force
  // The files that the output is made of; folders count as the traces in them.
  std::vector<std::string> inputs;
  // Whether a merged trace may be replaced though it is an input: for `merge`, whose result holds all of it.
  bool merged_inputs = false;
  // Write to a file that has a name beside the output, as where a file system has no unnamed ones. For tests.
  bool named = false;
};

// Returns the Replace for a verb with kForceOption that reads what `inputs` name: files, folders and the traces in
// them.
Replace ReplaceOf(const ParsedOptions& parsed, std::span<const std::string> inputs);

// Writes a file that has no name until it is complete (O_TMPFILE), or, where a file system cannot do that, one beside
// `path` that goes away by every end that a process can see. So a reader never sees half a file, and a failure leaves
// the old one. The file is created 0600: traces hold command lines. Never writes through a symbolic link. A device or
// a pipe is written to directly.
//
// A file that exists and is not empty is replaced only where Replace says so: what is in it may be a page that
// somebody has written, or a trace that cannot be taken again, and nobody must look into it to know what -o does.
class OutputFile {
 public:
  OutputFile() = default;
  ~OutputFile();  // removes what was not committed
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Where one of these fails, its message is a line for the user: "out.html: cannot be written: is a folder".
  absl::Status Open(const std::string& path, const Replace& replace);
  // Whether the file is an input (Replace::merged_inputs). It may then be replaced only if nothing of it was lost in
  // reading.
  bool is_input() const { return is_input_; }
  absl::Status Write(const void* data, size_t size);
  // Puts the file in its place once its bytes are on the disk. Where `made`, the status of making the content, is a
  // failure, it does nothing and returns that failure.
  absl::Status Commit(const absl::Status& made = absl::OkStatus());

 private:
  absl::Status OpenUnnamed();
  absl::Status OpenBeside();
  absl::Status NameUnnamed();
  absl::Status Failed(absl::StatusCode code, std::string_view why) const;
  absl::Status Failed(int error) const;

  int fd_ = -1;
  bool unnamed_ = false;
  bool is_input_ = false;
  bool write_failed_ = false;
  std::string path_;
  std::string temporary_;  // the name beside path_ while there is one
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_OUTPUT_FILE_H_
