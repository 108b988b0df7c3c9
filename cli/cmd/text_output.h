// File: text_output.h
//
// Where a verb's document goes: the file that -o names, complete or not at all, else standard output.
#ifndef RFINJECT_CLI_CMD_TEXT_OUTPUT_H_
#define RFINJECT_CLI_CMD_TEXT_OUTPUT_H_

#include <string>

#include "absl/status/status.h"
#include "cli/cmd/output_file.h"
#include "cli/format/format.h"

namespace rfinject::cli {

class TextOutput {
 public:
  // Opens the file before the work, so that a mistyped folder is known early. An error's message is a line for the
  // user.
  absl::Status Open(const std::string& output, const Replace& replace);
  // Writes the document, and its warnings to standard error. InvalidArgument: the format has nothing to show of it.
  absl::Status Write(const Document& document, const Format& format, const WriteOptions& options);

 private:
  OutputFile file_;
  bool to_file_ = false;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_TEXT_OUTPUT_H_
