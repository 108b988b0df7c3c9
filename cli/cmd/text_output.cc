#include "cli/cmd/text_output.h"

#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/cmd/streams.h"

namespace rfinject::cli {

absl::Status TextOutput::Open(const std::string& output, const Replace& replace) {
  to_file_ = !output.empty() && output != "-";
  return to_file_ ? file_.Open(output, replace) : absl::OkStatus();
}

absl::Status TextOutput::Write(const Document& document, const Format& format, const WriteOptions& options) {
  for (const std::string& warning : document.warnings) Complain(warning);
  std::ostringstream out;
  if (const absl::Status status = format.write(document, options, out); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat("--format ", std::string(format.name), ": what is shown ",
                                                    std::string(status.message())));
  }
  const std::string text = std::move(out).str();
  if (to_file_) return file_.Commit(file_.Write(text.data(), text.size()));
  Print(text, format.colors ? Colors::kOurs : Colors::kNone);
  // It has complained of what could not be written.
  return FinishOutput(0) == 0 ? absl::OkStatus() : absl::CancelledError();
}

}  // namespace rfinject::cli
