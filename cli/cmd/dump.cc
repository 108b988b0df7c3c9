#include "cli/trace/dump.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/load.h"
#include "cli/cmd/options.h"
#include "cli/text/code_points.h"
#include "cli/trace/damage.h"
#include "cli/trace/fields.h"
#include "cli/trace/files.h"
#include "cli/trace/frames.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kDumpUsage =
    "rfinject dump [TRACE...]\n\n"
    "The raw records as text, one a line, each with its byte offset in the file. Shows every chunk whose checksum "
    "is\n"
    "right, also where `report` would refuse what is in it.";

// Prints the records of a trace. Returns false at damage, which it has reported, and when standard output takes
// nothing more.
bool Dump(const std::string& path) {
  FileSource source;
  if (const absl::Status status = source.Open(path); !status.ok()) {
    Complain(absl::StrCat(path, ": cannot be read: ", status.message()));
    return false;
  }
  bool good = true;
  const auto complain = [&](const absl::Status& damage) {
    FinishOutput(0);  // so that the lines before come before
    Complain(absl::StrCat(path, ": ", damage.message()));
    good = false;
  };
  FrameReader frames(source);
  while (frames.Next()) {
    Print(absl::StrFormat("%010d chunk %d, %d bytes\n", frames.payload_offset() - wire::kFrameHeaderSize,
                          frames.frames() - 1, frames.payload().size()));
    FieldCursor cursor(frames.payload(), frames.payload_offset());
    for (Field record; cursor.Next(&record);) {
      if (!Print(absl::StrFormat("%010d   %s\n", record.offset, RecordText(record)))) return false;
    }
    if (!cursor.ok()) complain(DamageAt(cursor.error_offset(), cursor.error()));
  }
  if (!frames.status().ok()) complain(frames.status());
  return good;
}

}  // namespace

VerbHelp DumpHelp() { return {kDumpUsage, {}, kFiles}; }

int DumpMain(const ParsedOptions& parsed) {
  const std::vector<std::string> paths = PathsOrNewestRun("dump", parsed);
  if (paths.empty()) return 2;
  bool good = true;
  for (const std::string& path : paths) {
    const absl::StatusOr<std::vector<std::string>> files = FindTraces(path);
    if (!files.ok()) {
      Complain(absl::StrCat(path, ": ", files.status().message()));
      good = false;
      continue;
    }
    for (const std::string& file : *files) {
      if (files->size() + paths.size() > 2) Print(absl::StrCat("# ", PrintableText(file), "\n"));
      good = Dump(file) && good;
    }
  }
  return good ? 0 : 1;
}

}  // namespace rfinject::cli
