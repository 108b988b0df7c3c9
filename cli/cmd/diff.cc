#include "cli/report/diff.h"

#include <unistd.h>

#include <array>
#include <sstream>
#include <string>
#include <vector>

#include "cli/cmd/commands.h"
#include "cli/cmd/load.h"
#include "cli/cmd/options.h"
#include "cli/cmd/output_file.h"
#include "cli/cmd/print_report.h"
#include "cli/emit/formats.h"
#include "cli/report/machine.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kUsage =
    "rfinject diff [options] A B\n\n"
    "What changed from A to B: two runs, two GPUs, two versions. A and B are traces or folders of traces. Layers "
    "are\n"
    "matched by model, path and phase; changes of time, FLOP, bytes, OI and share of attainable are listed, the "
    "largest\n"
    "change of time first, with 95 % confidence intervals (Welch). Estimates are exact: any change of one is real.";

std::vector<Option> Options() {
  static const auto* const kFormatHelp =
      new std::string(FormatNames(" or ") + "; default: by the ending of -o, else table");
  return {
      {"by", 0, "WHAT", "model, phase, layer (default), op, or kernel (layer and operator)"},
      {"format", 0, "FORMAT", *kFormatHelp},
      {"output", 'o', "FILE", "write there, not to standard output; created 0600"},
      kForceOption,
      kLimitOption,
      kRawOption,
      {"rows", 0, "N", "rows of a table, those with the largest change; 0: all. Default 40"},
  };
}

// In the order of By.
constexpr std::array<std::string_view, 5> kBys = {"model", "phase", "layer", "op", "kernel"};

}  // namespace

int DiffMain(Arguments arguments) {
  ParsedOptions parsed;
  if (const auto code = ParseOptions("diff", kUsage, Options(), arguments, WordPolicy::kAnywhere, &parsed))
    return *code;
  int code = 0;
  size_t by = 0;
  if (!ChooseWord("diff", "by", parsed.Value("by", "layer"), kBys, &by, &code)) return code;
  const std::string output = parsed.Value("output");
  const Format* const format = ChooseFormat("diff", parsed, &code);
  if (format == nullptr) return code;
  CsvTexts csv_texts{};
  if (!ChooseCsvTexts("diff", parsed, *format, &csv_texts, &code)) return code;
  if (!ApplyLimits("diff", parsed, nullptr, &code)) return code;
  uint64_t rows = TableOptions{}.max_rows;
  if (parsed.Has("rows") && !ParseNumber(parsed.Value("rows"), &rows)) {
    return UsageError("diff", "--rows wants a number, not '" + parsed.Value("rows") + "'");
  }
  if (parsed.words.size() != 2) return UsageError("diff", "name two traces or folders, A and B");
  TextOutput destination;
  if (!destination.Open(output, ReplaceOf(parsed))) return 1;

  bool damaged = false;
  std::array<Loaded, 2> sides;
  for (size_t i = 0; i < sides.size(); ++i) {
    sides[i] = LoadTraces({parsed.words[i]});
    damaged = damaged || sides[i].damaged;
    ApplyLimits("diff", parsed, &sides[i].profile, &code);
    if (!sides[i].profile.runs.empty()) continue;
    if (!sides[i].damaged) Complain(std::string(parsed.words[i]) + ": there is nothing to compare");
    return 1;
  }
  const Diff diff = MakeDiff(sides[0].profile, sides[1].profile, MachineFor, {.by = static_cast<By>(by)});
  std::ostringstream text;
  TableOptions options = destination.to_file() ? TableOptions{} : TableOptionsFor(STDOUT_FILENO);
  options.max_rows = rows;
  options.csv_texts = csv_texts;
  format->diff(diff, options, text);
  if (diff.pairs.empty()) Complain("no run of A is of the network and mode of one in B");
  if (!destination.Write(std::move(text).str(), ColorsOf(*format))) return 1;
  return damaged || diff.pairs.empty() ? 1 : 0;
}

}  // namespace rfinject::cli
