// File: streams.h
//
// All that the command itself writes to standard output and standard error. Names in it come from programs and files
// that we do not know, and none of them may steer a terminal; and a caller must be able to trust that exit code 0
// means that everything was written.
//
//   Print("chunk 1\n");
//   ...
//   return FinishOutput(code);   // main(), once
#ifndef RFINJECT_CLI_CMD_STREAMS_H_
#define RFINJECT_CLI_CMD_STREAMS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace rfinject::cli {

enum class Colors : uint8_t {
  kNone,
  kOurs,  // sequences that set colours are in the text, and every name in it was cleaned before
};

// Appends `text` to standard output, as it is where that is a file or a pipe, cleaned (PrintableLines) where it is a
// terminal. False when this or an earlier write failed: there is no use in going on. Nothing is said yet.
bool Print(std::string_view text, Colors colors = Colors::kNone);
// The same to standard error, always cleaned.
void PrintError(std::string_view text, Colors colors = Colors::kNone);
// "rfinject: TEXT" on standard error, one line whatever is in it.
void Complain(std::string_view text);
// Whether `status` is no failure; complains of one.
bool Succeeded(const absl::Status& status);

// Writes what is still in memory, and says it when anything of standard output could not be written. Returns `code`,
// or 1 for a 0 that would then be a lie. Further calls say nothing.
int FinishOutput(int code);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_STREAMS_H_
