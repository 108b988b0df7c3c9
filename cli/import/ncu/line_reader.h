// File: line_reader.h
//
// Reads lines of a file of any size in bounded memory: one block or the longest line, whichever is larger.
#ifndef RFINJECT_CLI_IMPORT_NCU_LINE_READER_H_
#define RFINJECT_CLI_IMPORT_NCU_LINE_READER_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/import/torch/byte_stream.h"

namespace rfinject::cli {

class LineReader {
 public:
  // A longer line cannot be part of a table: it is cut, and the rest of it skipped.
  static constexpr size_t kMaxLine = 1u << 20;

  // Reads the file `path`, which may be packed by gzip; a failure names it.
  static absl::StatusOr<std::unique_ptr<LineReader>> Open(const std::string& path);
  // Reads `bytes`, which must outlive the reader; `name` stands for the file in messages.
  LineReader(std::string name, std::string_view bytes);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // The next line without its line end (LF or CRLF), valid until the next call; false at the end or on an error.
  bool Next(std::string_view* line) { return Next({}, line, nullptr); }
  // The same for a reader who expects the line to begin with `prefix`, which holds no line end: `*begins` says that
  // it does, and that part was then read once instead of twice. `*begins` may be false for a line across two blocks
  // although the line has the prefix.
  bool Next(std::string_view prefix, std::string_view* line, bool* begins);
  // Goes back to the beginning of the file.
  void Rewind();

  const std::string& name() const { return name_; }
  // Not ok once reading has failed; the message has the file, the last line that was read, and the reason.
  const absl::Status& status() const { return status_; }
  uint64_t line_number() const { return line_number_; }  // of the line that Next gave, from 1
  uint64_t offset() const { return offset_; }            // in bytes, of the end of that line

 private:
  LineReader(std::string name, int fd);
  bool Fill();
  ssize_t ReadSome(char* into, size_t most);

  std::string name_;
  int fd_ = -1;                         // -1: of bytes_
  std::unique_ptr<ByteStream> packed_;  // of a file that is packed
  std::string_view bytes_;
  size_t bytes_read_ = 0;
  std::unique_ptr<char[]> block_;
  size_t begin_ = 0;  // of what was not handed out yet, in block_
  size_t end_ = 0;
  bool at_end_ = false;
  bool skipping_ = false;  // inside the rest of a line that was cut
  uint64_t line_number_ = 0;
  uint64_t offset_ = 0;
  absl::Status status_;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_NCU_LINE_READER_H_
