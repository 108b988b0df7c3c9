// File: dump.h
//
// Prints one record of a trace as one line of text, in the manner of protobuf's short text format: `name { id: 7
// text: "x" }`.
#ifndef RFINJECT_CLI_TRACE_DUMP_H_
#define RFINJECT_CLI_TRACE_DUMP_H_

#include <string>

#include "cli/trace/fields.h"

namespace rfinject::cli {

// `record` is a field of a Chunk. What the schema does not know is shown by number; what does not parse ends the line
// with the reason. The text is one line of printable ASCII whatever the bytes are.
std::string RecordText(const Field& record);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_DUMP_H_
