// File: written.h
//
// A document as a format writes it.
#ifndef RFINJECT_CLI_FORMAT_TESTING_WRITTEN_H_
#define RFINJECT_CLI_FORMAT_TESTING_WRITTEN_H_

#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "cli/format/format.h"

namespace rfinject::cli::testing {

// What the format refuses is shown as its reason.
inline std::string Written(const Document& document, std::string_view format, const WriteOptions& options = {}) {
  std::ostringstream out;
  const absl::Status status = FindFormat(format)->write(document, options, out);
  return status.ok() ? std::move(out).str() : "refused: " + std::string(status.message());
}

}  // namespace rfinject::cli::testing

#endif  // RFINJECT_CLI_FORMAT_TESTING_WRITTEN_H_
