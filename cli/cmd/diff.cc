#include "cli/report/diff.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string>
#include <vector>

#include "cli/cmd/commands.h"
#include "cli/cmd/load.h"
#include "cli/cmd/options.h"
#include "cli/cmd/print_report.h"
#include "cli/emit/formats.h"
#include "cli/report/machine.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kUsage =
    "rfinject diff [options] A B\n"
    "rfinject diff [options] --baseline A B\n\n"
    "What changed from A to B: two runs, two GPUs, two versions. A and B are traces or folders of traces. Layers "
    "are\n"
    "matched by model, path and phase; changes of time, FLOP, bytes, OI and share of attainable are listed, the "
    "largest\n"
    "change of time first, with 95 % confidence intervals. What is called real is corrected for the number of\n"
    "comparisons. Estimates are exact: any change of one is real.\n\n"
    "--fail-if 'step_time>+5%' exits with 4 where the change is real and beyond; also step_flop, step_bytes, oi, "
    "and\n"
    "'<'. What cannot be judged (few steps, drifting, two speeds) is said, and fails nothing.";

std::vector<Option> Options() {
  static const auto* const kFormatHelp =
      new std::string(FormatNames(" or ", /*of_diff=*/true) + "; default: by the ending of -o, else table");
  return {
      {"by", 0, "WHAT", "model, phase, layer (default), op, or kernel (layer and operator)"},
      {"format", 0, "FORMAT", *kFormatHelp},
      {"fail-if", 0, "CONDITION", "exit with 4 where it holds of the total: 'step_time>+5%'; several: with commas"},
      {"baseline", 0, "A", "trace or folder that B is held against"},
      {"correction", 0, "WHAT", "for many comparisons: fdr (false discovery rate, default), family, or none"},
      {"output", 'o', "FILE", "write there, not to standard output; created 0600"},
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
  uint64_t rows = TableOptions{}.max_rows;
  if (parsed.Has("rows") && !ParseNumber(parsed.Value("rows"), &rows)) {
    return UsageError("diff", "--rows wants a number, not '" + parsed.Value("rows") + "'");
  }
  constexpr std::array<std::string_view, 3> kCorrections = {"fdr", "family", "none"};  // in the order of Correction
  size_t correction = 0;
  if (!ChooseWord("diff", "correction", parsed.Value("correction", "fdr"), kCorrections, &correction, &code))
    return code;
  DiffOptions compare{.by = static_cast<By>(by), .correction = static_cast<Correction>(correction)};
  std::string conditions(parsed.Value("fail-if"));
  for (size_t begin = 0; begin < conditions.size();) {
    const size_t end = std::min(conditions.find(',', begin), conditions.size());
    const std::string one = conditions.substr(begin, end - begin);
    if (!ParseGate(one, &compare.gates.emplace_back())) {
      return UsageError("diff", "--fail-if wants a condition such as 'step_time>+5%', not '" + one + "'");
    }
    begin = end + 1;
  }
  std::vector<char*> words(parsed.words.begin(), parsed.words.end());
  std::string baseline = parsed.Value("baseline");
  if (!baseline.empty()) words.insert(words.begin(), baseline.data());
  if (words.size() != 2) {
    return UsageError("diff",
                      baseline.empty() ? "name two traces or folders, A and B" : "name one trace or folder, B");
  }
  TextOutput destination;
  if (!destination.Open(output)) return 1;

  bool damaged = false;
  std::array<Loaded, 2> sides;
  for (size_t i = 0; i < sides.size(); ++i) {
    sides[i] = LoadTraces({words[i]});
    damaged = damaged || sides[i].damaged;
    if (!sides[i].profile.runs.empty()) continue;
    if (!sides[i].damaged) Complain(std::string(words[i]) + ": there is nothing to compare");
    return 1;
  }
  const Diff diff = MakeDiff(sides[0].profile, sides[1].profile, MachineFor, compare);
  std::ostringstream text;
  TableOptions options = destination.to_file() ? TableOptions{} : TableOptionsFor(STDOUT_FILENO);
  options.max_rows = rows;
  format->diff(diff, options, text);
  if (diff.pairs.empty()) Complain("no run of A is of the network and mode of one in B");
  if (!destination.Write(std::move(text).str())) return 1;
  if (damaged || diff.pairs.empty()) return 1;
  bool fails = false;
  for (const Gate& gate : diff.gates) {
    fails = fails || gate.outcome == Gate::Outcome::kFails;
    if (gate.outcome == Gate::Outcome::kUnknown) Complain(gate.text + ": cannot be judged; the table says why");
  }
  constexpr int kFailed = 4;  // apart from 1 (an error) and 2 (wrong use)
  return fails ? kFailed : 0;
}

}  // namespace rfinject::cli
