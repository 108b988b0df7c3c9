#include "cli/cmd/doctor_file.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "cli/cmd/streams.h"
#include "cli/import/formats.h"
#include "cli/report/fold.h"
#include "cli/report/keys/key_quantities.h"
#include "cli/text/code_points.h"
#include "cli/text/units.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {
namespace {

void Say(const std::string& text) { Print(absl::StrCat("  ", PrintableText(text), "\n")); }

// "12,345 events, 678 kernels and copies, 64.9 ms of GPU time".
std::string Amounts(const Imported& imported) {
  double ns = 0;
  for (const auto& [key, run] : imported.profile.runs) {
    const KeyReader reader(imported.profile.metrics, ChipOf(run), run);
    for (const auto& [launch, stats] : run.launches) ns += reader.Read(launch, stats).sums.time_ns();
  }
  return absl::StrCat(Counted(imported.rows, "event", "events"), ", ",
                      Counted(imported.kernels, "kernel or copy", "kernels and copies"), ", ", Duration(ns),
                      " of GPU time");
}

// Whether the file's sums can be trusted.
bool Examine(const std::string& path) {
  Print(absl::StrCat("About ", PrintableText(path), "\n"));
  const ImportFormat* const format = RecogniseImport(path);
  if (format == nullptr) {
    const std::string why = WhyPackedIsNothing(path);
    Say(absl::StrCat("error: ", why.empty()
                                    ? absl::StrCat("no file of ", ImportFormatNames(), ", or none that can be read")
                                    : why));
    return false;
  }
  const absl::StatusOr<Imported> imported = ImportFile(*format, path, {});
  if (!imported.ok()) {
    Say(absl::StrCat("error: ", imported.status().message()));
    return false;
  }
  Say(absl::StrCat("a file of ", std::string(format->name), ": ", Amounts(*imported)));
  constexpr std::string_view kLabels[] = {"note: ", "warning: ", "error: "};
  bool trusted = true;
  std::set<std::string> said;
  for (const auto& [key, run] : imported->profile.runs) {
    for (const trace::Diagnostic& one : run.kept.diagnostic) {
      trusted = trusted && !DoubtsSums(one.id);
      said.insert(absl::StrCat(path, ": ", one.text));
      Say(absl::StrCat(std::string(kLabels[std::min<size_t>(static_cast<size_t>(one.severity), 2)]), one.text));
    }
  }
  for (const std::string& warning : imported->warnings) {
    if (said.insert(warning).second)
      Say(absl::StrCat("note: ", warning.substr(std::min(warning.size(), path.size() + 2))));
  }
  if (!trusted) Say("its sums cannot be trusted");
  return trusted;
}

}  // namespace

int ExamineFiles(const std::vector<std::string>& paths) {
  bool trusted = true;
  for (const std::string& path : paths) trusted = Examine(path) && trusted;
  return trusted ? 0 : 1;
}

}  // namespace rfinject::cli
