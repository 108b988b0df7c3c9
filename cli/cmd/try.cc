// `rfinject try`: makes changes in the user's program from within, and measures what each wins.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/launch.h"
#include "cli/cmd/options.h"
#include "cli/cmd/shared_options.h"
#include "cli/cmd/text_output.h"
#include "cli/cmd/try_changes.h"
#include "cli/cmd/try_folder.h"
#include "cli/cmd/try_runs.h"
#include "cli/cmd/user_calibration.h"
#include "cli/report/run_list.h"
#include "cli/view/try_view.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kTryUsage =
    "rfinject try [options] CHANGE... PROGRAM [ARGS...]\n"
    "rfinject try [options] --all PROGRAM [ARGS...]\n"
    "rfinject try --list\n\n"
    "Runs PROGRAM without and with each change, which is made in the process, and says what it wins. No line of the\n"
    "program is edited. CHANGE is a name of --list, NAME=VALUE where it takes one, or @FILE, a change of one's own\n"
    "in Python. The program's folder is copied on writing, so its checkpoints and logs stay as they are. It is ended\n"
    "after the measured steps, unless --whole. docs/use/READING_A_REPORT.md has more.\n\n"
    "--require 'won>=10%' exits with 4 unless some change that can be recommended wins as much.";

constexpr std::array<std::string_view, 3> kLossChecks = {"no", "here", "cpu"};  // in the order of LossCheck
// Options of `run` that mean the same here.
constexpr std::array<std::string_view, 9> kOfRun = {"estimate", "estimate-on", "values", "virtual-gpus", "steps",
                                                    "skip",     "overhead",    "ranks",  "quiet"};

// "won>=10%" as 0.1; negative where it is something else.
double RequiredShare(std::string_view text) {
  constexpr std::string_view kBegin = "won>=";
  double value = 0;
  if (!text.starts_with(kBegin) || !text.ends_with('%')) return -1;
  text = text.substr(kBegin.size(), text.size() - kBegin.size() - 1);
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && end == text.data() + text.size() && value >= 0 && value <= 100 ? value / 100 : -1;
}

int PrintList() {
  for (const ShippedChange& change : ShippedChanges()) {
    Print(absl::StrFormat("%-19s %s\n%20swrite: %s\n", change.name, change.title, "", change.write));
  }
  return FinishOutput(0);
}

// Splits the words into changes and the program.
absl::StatusOr<std::vector<WantedChange>> ReadChanges(const ParsedOptions& parsed,
                                                      std::vector<std::string>* program) {
  std::vector<WantedChange> changes;
  *program = parsed.words;
  if (parsed.Has("all")) {
    for (const ShippedChange& change : ShippedChanges()) {
      if (change.name == "checkpoint") continue;  // it needs the names of layers
      changes.push_back(*FindChange(change.name));
    }
  }
  size_t count = 0;
  for (; count < program->size() && NamesAChange((*program)[count]); ++count) {
    absl::StatusOr<WantedChange> change = FindChange((*program)[count]);
    if (!change.ok()) return absl::InvalidArgumentError(std::string(change.status().message()));
    if (change->base == "checkpoint" && change->value.empty()) {
      return absl::InvalidArgumentError("checkpoint=LAYER,LAYER says which layers");
    }
    changes.push_back(*std::move(change));
  }
  program->erase(program->begin(), program->begin() + static_cast<std::ptrdiff_t>(count));
  if (changes.empty()) {
    std::vector<std::string_view> names;
    for (const ShippedChange& change : ShippedChanges()) names.push_back(change.name);
    const std::string_view near = program->empty() ? "" : Nearest(program->front(), names);
    return absl::InvalidArgumentError(
        absl::StrCat("name a change, or --all; rfinject try --list has them",
                     near.empty() ? "" : "; did you mean '" + std::string(near) + "'?"));
  }
  if (program->empty()) return absl::InvalidArgumentError("no program is named behind the changes");
  if (program->front().starts_with('-'))
    return absl::InvalidArgumentError(program->front() + ": options stand before the changes");
  return changes;
}

// The options of `rfinject run` that a run gets.
std::vector<std::string> RunOptions(const ParsedOptions& parsed) {
  std::vector<std::string> options;
  for (const std::string_view name : kOfRun) {
    if (name == "quiet" || name == "steps" || name == "skip" || !parsed.Has(name)) continue;
    options.push_back("--" + std::string(name) + "=" + parsed.Value(name));
  }
  // An estimate is exact from the first step on that is like all others (torch.compile needs three); what is
  // measured is sampled.
  const bool estimate = parsed.Has("estimate");
  options.push_back("--skip=" + parsed.Value("skip", estimate ? "3" : "10"));
  if (parsed.Has("whole") && !parsed.Has("steps")) return options;
  options.push_back("--steps=" + parsed.Value("steps", estimate ? "4" : "50"));
  if (!parsed.Has("whole")) options.emplace_back("--kill");
  return options;
}

// A folder of ours that goes when this does.
class Scratch {
 public:
  ~Scratch() {
    if (path_.empty() || keep_) return;
    std::error_code error;
    // An overlay leaves a folder that nobody may look into.
    for (std::filesystem::directory_iterator it(path_, error), end; !error && it != end; it.increment(error)) {
      ::chmod((it->path().string() + "/files/overlay/work").c_str(), 0700);
    }
    std::filesystem::remove_all(path_, error);
  }
  absl::Status Make() {
    const char* const temporary = std::getenv("TMPDIR");
    std::string pattern =
        std::string(temporary != nullptr && *temporary == '/' ? temporary : "/tmp") + "/rfinject-try-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) return absl::UnavailableError(pattern + ": cannot be made");
    path_ = std::filesystem::canonical(pattern).string();
    return absl::OkStatus();
  }
  void Keep() { keep_ = true; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool keep_ = false;
};

absl::Status MakePlan(const ParsedOptions& parsed, OptionReader& reader, const std::string& scratch, TryPlan* plan) {
  const absl::StatusOr<LaunchVariables> variables = MakeVariables(parsed);  // says what is wrong with an option
  if (!variables.ok()) return variables.status();
  if (parsed.Has("estimate")) plan->gpu = FindBoard(parsed.Value("estimate"));
  plan->options = RunOptions(parsed);
  plan->in_place = parsed.Has("in-place");
  plan->quiet = parsed.Has("quiet");
  plan->loss = static_cast<LossCheck>(reader.Word("check-loss", kLossChecks, parsed.Has("estimate") ? "no" : "here"));
  plan->deadline = absl::Now() + absl::Minutes(static_cast<int64_t>(reader.Number("minutes", 30, 1)));
  plan->calibration = reader.CalibrationOption();
  plan->scratch = scratch;
  std::error_code error;
  plan->folder = std::filesystem::current_path(error).string();
  if (error) return absl::UnavailableError("the working folder: " + error.message());
  if (!reader.ok()) return reader.status();
  if (plan->in_place) return absl::OkStatus();
  const std::string probe = scratch + "/probe";
  std::filesystem::create_directories(probe, error);
  if (const absl::Status status = CanCopyOnWrite(plan->folder, probe); !status.ok()) {
    return absl::FailedPreconditionError(
        "the program's folder cannot be kept as it is: " + std::string(status.message()) +
        "; --in-place lets the program write over its own files");
  }
  return absl::OkStatus();
}

// The patch of the best changes together, which ran like that, or of the best change; in comment lines what of it has
// none.
std::string Patch(const std::vector<Trial>& trials) {
  const Trial* best = nullptr;
  for (const Trial& trial : trials) {
    if (!trial.recommended()) continue;
    if (best == nullptr || trial.changes > best->changes ||
        (trial.changes == best->changes && trial.won_ns() > best->won_ns())) {
      best = &trial;
    }
  }
  if (best == nullptr) return {};
  std::string text;
  for (const auto& [change, where] : best->without_diff) {
    const auto named =
        std::find_if(trials.begin(), trials.end(), [&name = change](const Trial& one) { return one.name == name; });
    absl::StrAppend(&text, "# ", change, " (", where,
                    "): no patch; write: ", named == trials.end() ? best->write : named->write, "\n");
  }
  for (const std::string& diff : best->diffs) text += diff;
  return text;
}

}  // namespace

VerbHelp TryHelp() {
  VerbHelp help = {
      kTryUsage,
      {{"all", 0, "", "every change of --list that needs no value"},
       {"list", 0, "", "print the changes, and what each writes into a program"},
       {"minutes", 0, "N", "begin no further round after N minutes; default 30. Estimates need one round"},
       {"check-loss", 0, "WHERE",
        "hold the loss of eight steps against the program's own: cpu, here, or no. Default:\n"
        "here, but no for an estimate",
        ChoicesOf(kLossChecks)},
       {"in-place", 0, "", "let the program write where it writes, over its own files"},
       {"whole", 0, "", "let the program run to its end"},
       {"diff", 0, "", "print the changes worth doing as a patch; the table goes to standard error"},
       {"require", 0, "CONDITION", "exit with 4 unless it holds: 'won>=10%'"},
       {"keep", 0, "", "keep the folder with all traces, and say where it is"},
       FormatOption(/*pictures=*/false),
       kOutputOption,
       kForceOption,
       kWidthOption,
       kWideOption,
       kRawOption,
       kCalibrationOption},
      kPrograms};
  for (const Option& option : LaunchOptions()) {
    if (std::find(kOfRun.begin(), kOfRun.end(), option.name) != kOfRun.end()) help.options.push_back(option);
  }
  return help;
}

int TryMain(const ParsedOptions& parsed) {
  if (parsed.Has("list")) return PrintList();
  OptionReader reader(parsed);
  const Format* const format = reader.FormatOption(/*pictures=*/false);
  const WriteOptions writing = reader.Writing(format);
  TryFacts facts{.with_diffs = parsed.Has("diff")};
  if (parsed.Has("require")) {
    facts.required_share = RequiredShare(parsed.Value("require"));
    if (facts.required_share < 0) reader.Refuse("--require wants a condition such as 'won>=10%'");
  }
  TryPlan plan;
  const absl::StatusOr<std::vector<WantedChange>> changes = ReadChanges(parsed, &plan.program);
  if (!changes.ok()) reader.Keep(changes.status());
  if (!reader.ok()) return Refused("try", reader.status());
  Scratch scratch;
  if (!Succeeded(scratch.Make())) return 1;
  if (parsed.Has("keep")) {
    scratch.Keep();
    Complain("everything is kept in " + scratch.path());
  }
  if (const absl::Status status = MakePlan(parsed, reader, scratch.path(), &plan); !status.ok()) {
    return Refused("try", status);
  }
  TextOutput destination;
  if (!Succeeded(destination.Open(parsed.Value("output"), ReplaceOf(parsed, {})))) return 1;

  const absl::StatusOr<std::vector<Trial>> trials = TryChanges(plan, *changes);
  if (!trials.ok()) return Refused("try", trials.status());
  facts.opening =
      CommandText(plan.program) + (plan.gpu != nullptr ? ", ESTIMATED on " + std::string(plan.gpu->name) : "");
  facts.nothing_computed = plan.gpu != nullptr && plan.loss == LossCheck::kNone &&
                           parsed.Value("estimate-on") != "cpu" && parsed.Value("values") != "all";
  const Document document = TryDocument(*trials, facts);
  if (parsed.Has("diff")) Print(Patch(*trials));
  if (parsed.Has("diff") && !parsed.Has("output") && !parsed.Has("format")) {
    std::ostringstream table;
    (void)format->write(document, WriteOptionsFor(STDERR_FILENO), table);
    PrintError(std::move(table).str(), Colors::kOurs);
  } else if (const absl::Status written = destination.Write(document, *format, writing); !written.ok()) {
    return Refused("try", written);
  }
  constexpr int kRequirementFails = 4;
  for (const Check& check : document.checks) {
    if (check.outcome != Check::Outcome::kHolds) {
      Complain(check.name + " does not hold: " + check.text);
      return FinishOutput(kRequirementFails);
    }
  }
  return FinishOutput(0);
}

}  // namespace rfinject::cli
