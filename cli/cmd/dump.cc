#include <unistd.h>

#include <cinttypes>
#include <cstdio>

#include "cli/cmd/commands.h"
#include "cli/cmd/options.h"
#include "cli/reader/frames.h"
#include "cli/reader/record_text.h"
#include "cli/reader/trace_files.h"
#include "cli/reader/trace_reader.h"
#include "cli/reader/wire_cursor.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kUsage =
    "rfinject dump TRACE...\n\n"
    "The raw records as text, one a line, each with its byte offset in the file. Shows every chunk whose checksum "
    "is\n"
    "right, also where `report` would refuse what is in it.";

// False at damage; it has been said.
bool Dump(const std::string& path) {
  FileSource source;
  if (const std::string error = source.Open(path); !error.empty()) {
    Complain(path + ": cannot be read: " + error);
    return false;
  }
  bool good = true;
  const auto complain = [&](uint64_t offset, const std::string& reason) {
    std::fflush(stdout);
    Complain(path + ": byte " + std::to_string(offset) + ": " + reason);
    good = false;
  };
  FrameReader frames(source);
  while (frames.Next()) {
    std::printf("%010" PRIu64 " chunk %" PRIu64 ", %zu bytes\n", frames.payload_offset() - wire::kFrameHeaderSize,
                frames.frames() - 1, frames.payload().size());
    WireCursor cursor(frames.payload(), frames.payload_offset());
    for (WireField record; cursor.Next(&record);) {
      std::printf("%010" PRIu64 "   %s\n", record.offset, RecordText(record).c_str());
    }
    if (!cursor.ok()) complain(cursor.error_offset(), cursor.error());
  }
  if (frames.damage()) complain(frames.damage()->offset, frames.damage()->reason);
  return good;
}

}  // namespace

int DumpMain(Arguments arguments) {
  ParsedOptions parsed;
  if (const auto code = ParseOptions("dump", kUsage, {}, arguments, WordPolicy::kAnywhere, &parsed)) return *code;
  if (parsed.words.empty()) return UsageError("dump", "no trace is named");
  bool good = true;
  for (const char* path : parsed.words) {
    std::vector<std::string> files;
    if (const std::string error = FindTraces(path, &files); !error.empty()) {
      Complain(std::string(path) + ": " + error);
      good = false;
    }
    for (const std::string& file : files) {
      if (files.size() + parsed.words.size() > 2) std::printf("# %s\n", file.c_str());
      good = Dump(file) && good;
    }
  }
  return good ? 0 : 1;
}

}  // namespace rfinject::cli
