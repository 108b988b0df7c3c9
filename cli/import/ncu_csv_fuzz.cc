// Feeds bytes to the import of ncu's CSV. Whatever they are, it must end soon and within bounded memory, and either
// fail with the file's name and a reason or give the launches that it says it found.
//
// Lines that repeat others are compared with them and not split into fields (ncu_repeats.h). A column behind the last
// makes a table of another shape than ncu's own, for which that is not done: both must give the same.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cli/import/line_reader.h"
#include "cli/import/ncu_csv.h"

namespace {

using namespace rfinject::cli;  // NOLINT: the harness is all there is here

constexpr char kName[] = "fuzz";

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "ncu_csv_fuzz: %s\n", what);
  std::abort();
}

// `text` with an empty column behind the last of every line.
std::string WithAnotherColumn(std::string_view text) {
  std::string wider;
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    const bool carriage_return = line.ends_with('\r');
    if (carriage_return) line.remove_suffix(1);
    wider.append(line).append(",\"\"").append(carriage_return ? "\r" : "");
    if (newline != std::string_view::npos) wider += '\n';
  }
  return wider;
}

absl::StatusOr<Imported> Import(std::string_view text, const ImportOptions& options) {
  LineReader lines(kName, text);
  return ImportNcuCsv(lines, options);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<Imported> imported = Import(text, {});
  const absl::StatusOr<Imported> wider = Import(WithAnotherColumn(text), {});
  if (imported.ok() != wider.ok()) Fail("the short way and the long one do not agree that there is a table");
  if (!imported.ok()) {
    const std::string message(imported.status().message());
    if (!message.starts_with(std::string(kName) + ": ")) Fail("a failure without the file's name and a reason");
    return 0;
  }
  uint64_t launches = 0;
  for (const auto& [key, run] : imported->profile.runs) {
    for (const auto& [launch, stats] : run.launches) launches += stats.launches;
  }
  if (imported->kernels == 0 || launches != imported->kernels) Fail("launches were lost");
  if (imported->rows < imported->kernels) Fail("more launches than lines");
  if (imported->rows != wider->rows || imported->kernels != wider->kernels ||
      imported->skipped_lines != wider->skipped_lines || imported->warnings != wider->warnings ||
      imported->profile != wider->profile) {
    Fail("the short way and the long one give different things");
  }
  return 0;
}
