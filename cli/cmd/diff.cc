#include "cli/report/diff.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/cmd/commands.h"
#include "cli/cmd/load.h"
#include "cli/cmd/options.h"
#include "cli/cmd/output_file.h"
#include "cli/cmd/print_report.h"
#include "cli/cmd/user_calibration.h"
#include "cli/emit/formats.h"
#include "cli/report/machine.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kUsage =
    "rfinject diff [options] [A [B]]\n"
    "rfinject diff [options] --baseline A [B]\n\n"
    "What changed from A to B: two runs, two GPUs, two versions. A and B are traces or folders, of which the newest "
    "run\n"
    "counts; without B it is the latest run in rfinject-out/, and without A that is compared with the run before "
    "it.\n"
    "Layers are matched by model, path and phase; changes of time, FLOP, bytes, OI and share of attainable are\n"
    "listed, the largest change of time first, with 95 % confidence intervals. What is called real is corrected for\n"
    "the number of comparisons. Estimates are exact: any change of one is real.\n\n"
    "--fail-if 'step_time>+5%' exits with 4 where the change is real and beyond; also step_flop, step_bytes, oi, "
    "and\n"
    "'<'. What cannot be judged (few steps, drifting, two speeds) is said, and fails nothing.";

// The words of --by, in the order of By.
constexpr std::array<std::string_view, 5> kBys = {"model", "phase", "layer", "op", "kernel"};
constexpr std::array<std::string_view, 3> kCorrections = {"fdr", "family", "none"};  // in the order of Correction

std::vector<Option> Options() {
  static const auto* const kFormatHelp =
      new std::string(FormatNames(" or ", /*of_diff=*/true) + "; default: by the ending of -o, else table");
  return {
      {"by", 0, "WHAT", "model, phase, layer (default), op, or kernel (layer and operator)", ChoicesOf(kBys)},
      {"format", 0, "FORMAT", *kFormatHelp, ChoicesOf(FormatsOf("diff"))},
      {"fail-if", 0, "CONDITION", "exit with 4 where it holds of the total: 'step_time>+5%'; several: with commas"},
      {"baseline", 0, "A", "trace or folder that B is held against", kFiles},
      {"correction", 0, "WHAT", "for many comparisons: fdr (false discovery rate, default), family, or none",
       ChoicesOf(kCorrections)},
      {"output", 'o', "FILE", "write there, not to standard output; created 0600", kFiles},
      kForceOption,
      kLimitOption,
      kCalibrationOption,
      kRawOption,
      {"rows", 0, "N", "rows of a table, those with the largest change; 0: all. Default 40"},
      kWidthOption,
      kWideOption,
  };
}

// The files or folders of A and B. False after a complaint.
bool ChooseSides(const std::vector<std::string>& words, std::array<std::vector<std::string>, 2>* paths) {
  if (words.size() == 2) {
    *paths = {{{words[0]}, {words[1]}}};
    return true;
  }
  if (words.size() == 1) {
    *paths = {{{words[0]}, {NewestRunHere("diff")}}};
    return !(*paths)[1].front().empty();
  }
  const std::string here = std::string(kRunsFolder) + "/";
  std::error_code error;
  if (!std::filesystem::is_directory(here, error)) {
    UsageError("diff", "name two traces or folders, A and B; there is no " + here + " here");
    return false;
  }
  LoadedRuns unreadable;
  const std::vector<RunFiles> runs = FindRuns({here}, &unreadable);
  if (runs.size() < 2) {
    UsageError("diff", "name two traces or folders, A and B; " + here + " does not hold two runs");
    return false;
  }
  const RunFiles &before = runs[runs.size() - 2], &after = runs.back();
  Complain(before.files.front() + " against " + after.files.front());
  *paths = {{before.files, after.files}};
  return true;
}

}  // namespace

VerbHelp DiffHelp() { return {kUsage, Options(), kFiles}; }

int DiffMain(Arguments arguments) {
  ParsedOptions parsed;
  if (const auto code = ParseOptions("diff", DiffHelp(), arguments, WordPolicy::kAnywhere, &parsed)) return *code;
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
  TableOptions options;
  if (!ChooseTableWidth("diff", parsed, &options, &code)) return code;
  size_t correction = 0;
  if (!ChooseWord("diff", "correction", parsed.Value("correction", "fdr"), kCorrections, &correction, &code))
    return code;
  Calibration calibration;
  if (!ChooseCalibration(parsed, &calibration, &code)) return code;
  DiffOptions compare{.by = static_cast<By>(by), .correction = static_cast<Correction>(correction)};
  compare.calibration = &calibration;
  std::string conditions(parsed.Value("fail-if"));
  for (size_t begin = 0; begin < conditions.size();) {
    const size_t end = std::min(conditions.find(',', begin), conditions.size());
    const std::string one = conditions.substr(begin, end - begin);
    if (!ParseGate(one, &compare.gates.emplace_back())) {
      return UsageError("diff", "--fail-if wants a condition such as 'step_time>+5%', not '" + one + "'");
    }
    begin = end + 1;
  }
  std::vector<std::string> words = PathsOf(parsed.words);
  if (const std::string baseline = parsed.Value("baseline"); !baseline.empty()) words.insert(words.begin(), baseline);
  if (words.size() > 2) return UsageError("diff", "name two traces or folders, A and B");
  std::array<std::vector<std::string>, 2> paths;
  if (!ChooseSides(words, &paths)) return 2;
  std::vector<std::string> inputs = paths[0];
  inputs.insert(inputs.end(), paths[1].begin(), paths[1].end());
  TextOutput destination;
  if (!destination.Open(output, ReplaceOf(parsed, inputs))) return 1;

  bool damaged = false;
  std::array<Profile, 2> sides;
  for (size_t i = 0; i < sides.size(); ++i) {
    LoadedRuns loaded = LoadRuns(paths[i], FolderMeans::kNewestRun);
    damaged = damaged || loaded.damaged;
    if (loaded.runs.empty()) {
      if (!loaded.damaged) Complain(paths[i].front() + ": there is nothing to compare");
      return 1;
    }
    sides[i] = std::move(loaded.runs.back().profile);
    ApplyLimits("diff", parsed, &sides[i], &code);
  }
  const Diff diff = MakeDiff(sides[0], sides[1], MachineFor, compare);
  std::ostringstream text;
  options.max_rows = rows;
  options.csv_texts = csv_texts;
  format->diff(diff, options, text);
  if (diff.pairs.empty()) Complain("no run of A is of the network and mode of one in B");
  if (!destination.Write(std::move(text).str(), ColorsOf(*format))) return 1;
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
