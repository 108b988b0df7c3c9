// File: errors.h
//
// What is wrong with a record, as damage at its place in the file.
#ifndef RFINJECT_CLI_TRACE_APPLY_ERRORS_H_
#define RFINJECT_CLI_TRACE_APPLY_ERRORS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cli/trace/damage.h"
#include "cli/trace/decode.h"

namespace rfinject::cli {

// Returns the status of `expression` from the function if it is not OK.
#define RFINJECT_TRY(expression)                                         \
  do {                                                                   \
    if (absl::Status status = (expression); !status.ok()) return status; \
  } while (false)

inline absl::Status Undefined(const Record& record, const char* what, uint64_t id) {
  return DamageAt(record.offset, absl::StrCat(what, " ", id, " is used and was never defined"));
}
inline absl::Status Redefined(const Record& record, const char* what, uint64_t id) {
  return DamageAt(record.offset, absl::StrCat(what, " ", id, " is defined twice, differently"));
}
inline absl::Status NoId(const Record& record, const char* what) {
  return DamageAt(record.offset, absl::StrCat("a ", what, " is defined without an id"));
}

// Fills the schema's struct from a message.
template <typename Message, typename Struct>
absl::Status ReadRecord(const Message& message, const Record& record, Struct* into) {
  const char* const wrong = Read(message, into);
  return wrong == nullptr ? absl::OkStatus() : DamageAt(record.offset, wrong);
}

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_APPLY_ERRORS_H_
