// File: streams.h
//
// Everything that the command itself writes to standard output and standard error goes through here. Names in it come
// from programs and files that we do not know, and none of them may steer a terminal. And a caller must be able to
// trust that exit code 0 means that everything was written.
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
// terminal. Returns false when this or an earlier write failed, so that going on is useless; FinishOutput reports it.
bool Print(std::string_view text, Colors colors = Colors::kNone);
// The same to standard error, always cleaned.
void PrintError(std::string_view text, Colors colors = Colors::kNone);
// Writes "rfinject: TEXT" on standard error, as one line whatever the text holds.
void Complain(std::string_view text);
// Whether `status` is no failure. Complains of a failure.
bool Succeeded(const absl::Status& status);

// Writes what is still in memory, and complains when anything of standard output could not be written. Returns
// `code`, or 1 instead of 0 after such a failure. Further calls do not complain again.
int FinishOutput(int code);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_STREAMS_H_
