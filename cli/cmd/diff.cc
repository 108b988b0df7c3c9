#include "cli/report/compare/diff.h"

#include <array>
#include <filesystem>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/load.h"
#include "cli/cmd/options.h"
#include "cli/cmd/output_file.h"
#include "cli/cmd/shared_options.h"
#include "cli/cmd/text_output.h"
#include "cli/cmd/user_calibration.h"
#include "cli/report/machine.h"
#include "cli/view/compare_views.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kDiffUsage =
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

struct DiffArguments {
  const Format* format = nullptr;
  WriteOptions writing;
  Limits limits;
  Calibration calibration;
  DiffOptions compare;
  std::vector<std::string> words;  // A and B, as far as they are named
};

absl::StatusOr<DiffArguments> ReadDiff(const ParsedOptions& parsed) {
  OptionReader reader(parsed);
  DiffArguments given;
  given.compare.by = static_cast<By>(reader.Word("by", kBys, "layer"));
  given.format = reader.FormatOption();
  given.writing = reader.Writing(given.format);
  given.limits = reader.Limit();
  given.compare.correction = static_cast<Correction>(reader.Word("correction", kCorrections, "fdr"));
  given.calibration = reader.CalibrationOption();
  const std::string conditions = parsed.Value("fail-if");
  // A script whose variable is not set must not pass for ever.
  if (parsed.Has("fail-if") && conditions.empty()) {
    reader.Refuse("--fail-if is empty; it wants a condition such as 'step_time>+5%'");
  }
  std::istringstream each(conditions);
  for (std::string one; std::getline(each, one, ',');) {
    if (!ParseGate(one, &given.compare.gates.emplace_back())) {
      reader.Refuse("--fail-if wants a condition such as 'step_time>+5%', of " + GateNames() + ", not '" + one + "'");
    }
  }
  given.words = parsed.words;
  if (const std::string baseline = parsed.Value("baseline"); !baseline.empty()) {
    given.words.insert(given.words.begin(), baseline);
  }
  if (given.words.size() > 2) reader.Refuse("name two traces or folders, A and B");
  if (!reader.ok()) return reader.status();
  return given;
}

// The files or folders of A and B.
using Sides = std::array<std::vector<std::string>, 2>;

// InvalidArgument where there are no two of them; Cancelled where that was said already.
absl::StatusOr<Sides> ChooseSides(const std::vector<std::string>& words) {
  if (words.size() == 2) return Sides{{{words[0]}, {words[1]}}};
  if (words.size() == 1) {
    Sides sides = {{{words[0]}, {NewestRunHere("diff")}}};
    return sides[1].front().empty() ? absl::StatusOr<Sides>(absl::CancelledError()) : sides;
  }
  const std::string here = std::string(kRunsFolder) + "/";
  std::error_code error;
  if (!std::filesystem::is_directory(here, error)) {
    return absl::InvalidArgumentError("name two traces or folders, A and B; there is no " + here + " here");
  }
  LoadedRuns unreadable;
  const std::vector<RunFiles> runs = FindRuns({here}, &unreadable);
  if (runs.size() < 2) {
    return absl::InvalidArgumentError("name two traces or folders, A and B; " + here + " does not hold two runs");
  }
  const RunFiles &before = runs[runs.size() - 2], &after = runs.back();
  Complain(before.files.front() + " against " + after.files.front());
  return Sides{before.files, after.files};
}

}  // namespace

VerbHelp DiffHelp() {
  return {
      kDiffUsage,
      {{"by", 0, "WHAT", "model, phase, layer (default), op, or kernel (layer and operator)", ChoicesOf(kBys)},
       FormatOption(),
       {"fail-if", 0, "CONDITION", "exit with 4 where it holds of the total: 'step_time>+5%'; several: with commas"},
       {"baseline", 0, "A", "trace or folder that B is held against", kFiles},
       {"correction", 0, "WHAT", "for many comparisons: fdr (false discovery rate, default), family, or none",
        ChoicesOf(kCorrections)},
       kOutputOption,
       kForceOption,
       kLimitOption,
       kCalibrationOption,
       kRawOption,
       {"rows", 0, "N", "rows of a table, those with the largest change; 0: all. Default 40"},
       kWidthOption,
       kWideOption},
      kFiles};
}

int DiffMain(const ParsedOptions& parsed) {
  absl::StatusOr<DiffArguments> given = ReadDiff(parsed);
  if (!given.ok()) return Refused("diff", given.status());
  given->compare.calibration = &given->calibration;
  const absl::StatusOr<Sides> paths = ChooseSides(given->words);
  if (!paths.ok()) {
    Refused("diff", paths.status());
    return 2;
  }
  std::vector<std::string> inputs = (*paths)[0];
  inputs.insert(inputs.end(), (*paths)[1].begin(), (*paths)[1].end());
  TextOutput destination;
  if (!Succeeded(destination.Open(parsed.Value("output"), ReplaceOf(parsed, inputs)))) return 1;

  bool damaged = false;
  std::array<Profile, 2> sides;
  for (size_t i = 0; i < sides.size(); ++i) {
    LoadedRuns loaded = LoadRuns((*paths)[i], FolderMeans::kNewestRun);
    damaged = damaged || loaded.damaged;
    if (loaded.runs.empty()) {
      if (!loaded.damaged) Complain((*paths)[i].front() + ": there is nothing to compare");
      return 1;
    }
    sides[i] = std::move(loaded.runs.back().profile);
    ApplyLimits(given->limits, &sides[i]);
  }
  Diff diff = MakeDiff(sides[0], sides[1], MachineFor, given->compare);
  const bool compared = !diff.pairs.empty();
  if (!compared) Complain("no run of A is of the network and mode of one in B");
  const Document document = DiffDocument(std::move(diff));
  const absl::Status written = destination.Write(document, *given->format, given->writing);
  if (!written.ok()) return Refused("diff", written);
  if (damaged || !compared) return 1;
  bool fails = false;
  for (const Check& check : document.checks) {
    fails = fails || check.outcome == Check::Outcome::kFails;
    if (check.outcome == Check::Outcome::kUnknown) Complain(check.name + ": cannot be judged; the table says why");
  }
  constexpr int kFailed = 4;  // apart from 1 (an error) and 2 (wrong use)
  return fails ? kFailed : 0;
}

}  // namespace rfinject::cli
