#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>

#include "cli/cmd/commands.h"
#include "cli/cmd/load.h"
#include "cli/cmd/options.h"
#include "cli/cmd/output_file.h"
#include "cli/cmd/print_report.h"
#include "cli/emit/emit.h"
#include "cli/report/fold.h"
#include "cli/report/machine.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kUsage =
    "rfinject report [options] TRACE|FOLDER...\n\n"
    "How far each layer is from what the GPU could do. Of a folder, every *.rfx in it and below is used; traces of "
    "the\n"
    "same kind of run are added up. A damaged trace is used up to the damage, and the exit code is then 1.";

constexpr Option kOptions[] = {
    {"by", 0, "WHAT", "model, phase, layer (default), op or kernel"},
    {"format", 0, "FORMAT", "table, json, csv, html or svg; default: by the ending of -o, else table"},
    {"output", 'o', "FILE", "write there, not to standard output; created 0600"},
    {"rows", 0, "N", "rows of a table, those with most time; 0: all. Default 40"},
    {"strict", 0, "", "exit with 3 when an alarm (R001 to R012) is raised"},
};

constexpr std::array<std::string_view, 5> kBys = {"model", "phase", "layer", "op", "kernel"};
constexpr std::array<std::string_view, 5> kFormats = {"table", "json", "csv", "html", "svg"};

// The index of `word`, or a complaint that says what there is.
template <size_t kCount>
bool Choose(std::string_view option, const std::string& word, const std::array<std::string_view, kCount>& words,
            size_t* index, int* code) {
  for (size_t i = 0; i < kCount; ++i) {
    if (words[i] == word) {
      *index = i;
      return true;
    }
  }
  std::string text = "--" + std::string(option) + " " + word + ": there are ";
  for (size_t i = 0; i < kCount; ++i) {
    text += (i == 0 ? "" : i + 1 == kCount ? " and " : ", ") + std::string(words[i]);
  }
  *code = UsageError("report", text);
  return false;
}

}  // namespace

TableOptions TableOptionsFor(int fd) {
  TableOptions options;
  struct winsize size {};
  if (::isatty(fd) == 1) {
    if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) options.width = size.ws_col;
    const char* no_color = std::getenv("NO_COLOR");  // no-color.org
    const char* term = std::getenv("TERM");
    options.color = (no_color == nullptr || *no_color == '\0') && (term == nullptr || std::strcmp(term, "dumb") != 0);
  }
  return options;
}

int ReportMain(Arguments arguments) {
  ParsedOptions parsed;
  if (const auto code = ParseOptions("report", kUsage, kOptions, arguments, WordPolicy::kAnywhere, &parsed))
    return *code;
  int code = 0;
  size_t by = 0, format = 0;
  if (!Choose("by", parsed.Value("by", "layer"), kBys, &by, &code)) return code;
  const std::string output = parsed.Value("output");
  const size_t dot = output.rfind('.');
  std::string guess = "table";
  for (const std::string_view known : kFormats) {
    if (dot != std::string::npos && output.substr(dot + 1) == known) guess = known;
  }
  if (!Choose("format", parsed.Value("format", guess), kFormats, &format, &code)) return code;
  uint64_t rows = TableOptions{}.max_rows;
  if (parsed.Has("rows") && !ParseNumber(parsed.Value("rows"), &rows)) {
    return UsageError("report", "--rows wants a number, not '" + parsed.Value("rows") + "'");
  }
  if (parsed.words.empty()) return UsageError("report", "no trace is named");

  // Before the work, not after it.
  OutputFile file;
  const bool to_file = !output.empty() && output != "-";
  if (to_file) {
    if (const std::string error = file.Open(output); !error.empty()) {
      Complain(output + ": cannot be written: " + error);
      return 1;
    }
  }
  Loaded loaded = LoadTraces(parsed.words);
  if (loaded.profile.runs.empty()) {
    if (!loaded.damaged && !loaded.empty) Complain("there is nothing to report");
    return 1;
  }
  const std::vector<Report> reports = FoldProfile(loaded.profile, MachineFor, {.by = static_cast<By>(by)});

  std::ostringstream text;
  switch (format) {
    case 0: {
      TableOptions options = to_file ? TableOptions{} : TableOptionsFor(STDOUT_FILENO);
      options.max_rows = rows;
      EmitTable(reports, options, text);
      break;
    }
    case 1:
      EmitJson(reports, text);
      break;
    case 2:
      EmitCsv(reports, text);
      break;
    case 3:
      EmitHtml(reports, text);
      break;
    case 4:
      EmitSvg(reports, text);
      break;
  }
  const std::string bytes = std::move(text).str();
  if (to_file) {
    std::string error = file.Write(bytes.data(), bytes.size());
    if (error.empty()) error = file.Commit();
    if (!error.empty()) {
      Complain(output + ": cannot be written: " + error);
      return 1;
    }
  } else {
    std::cout << bytes << std::flush;
    if (!std::cout) {
      Complain(std::string("standard output: ") + std::strerror(errno));
      return 1;
    }
  }
  if (loaded.damaged) return 1;
  if (parsed.Has("strict")) {
    for (const Report& report : reports) {
      if (!report.alarms.empty()) return 3;
    }
  }
  return 0;
}

}  // namespace rfinject::cli
