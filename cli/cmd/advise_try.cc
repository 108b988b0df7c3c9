#include "cli/cmd/advise_try.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/streams.h"
#include "cli/report/run_list.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {
namespace {

// Of these `advise` and `try` take the same.
constexpr std::string_view kPassedOn[] = {"format", "output", "force", "width", "raw", "calibration"};

// What trains and takes longest; null of nothing but validations.
const Report* MainRun(std::span<const Report> reports) {
  const Report* main = nullptr;
  for (const Report& report : reports) {
    if (report.steps.validation) continue;
    if (main == nullptr || report.total.sums.time_ns() > main->total.sums.time_ns()) main = &report;
  }
  return main;
}

std::vector<std::string> ChangesOf(const Report& report, bool all) {
  std::vector<std::string> changes;
  for (const Advice& advice : report.advice.advice) {
    if (advice.state != Advice::State::kHolds || (!all && !advice.rule->unproven.empty())) continue;
    const std::vector<std::string> named = absl::StrSplit(advice.rule->tries, ' ', absl::SkipEmpty());
    for (const std::string& change : named) {
      if (std::find(changes.begin(), changes.end(), change) == changes.end()) changes.push_back(change);
    }
  }
  return changes;
}

// Whether the person at the terminal says yes. There is one.
bool Agrees() {
  PrintError("Run this? [y/N] ");
  std::string answer;
  for (int c = std::getchar(); c != EOF && c != '\n'; c = std::getchar()) answer += static_cast<char>(c);
  return answer == "y" || answer == "Y" || answer == "yes";
}

// The words behind `rfinject` that try what the advice of the largest run that is no validation names: `try`, the
// options, the changes, the program. Rules that no pair of programs has shown to be right count with `all` only.
// NotFound: no rule that holds names a change. FailedPrecondition: the trace does not say how to start the program
// again. The message is a line for the user.
absl::StatusOr<std::vector<std::string>> TryWords(std::span<const Report> reports, bool all) {
  const Report* const report = MainRun(reports);
  if (report == nullptr) return absl::NotFoundError("there is nothing to advise on");
  const std::vector<std::string> changes = ChangesOf(*report, all);
  if (changes.empty()) {
    return absl::NotFoundError(
        "no rule that holds names a change that rfinject can make; rfinject try --list has those that it can");
  }
  const std::string typed = "; type: rfinject try " + CommandText(changes) + " PROGRAM";
  const ProcessInfo* const process = FirstProcess(report->process.list);
  if (process == nullptr || process->argv.empty()) {
    return absl::FailedPreconditionError("the trace does not say which program it is of" + typed);
  }
  if (process->world_size > 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("the run had ", process->world_size, " ranks, which a launcher started", typed));
  }
  std::vector<std::string> words = {"try"};
  if (report->run.source == SourceKind::kEstimated) {
    words.push_back("--estimate=" + report->run.estimated_gpu);
    words.emplace_back(report->run.collector == kVirtualGpuCollector ? "--estimate-on=virtual-gpu"
                                                                     : "--estimate-on=cpu");
  }
  words.insert(words.end(), changes.begin(), changes.end());
  words.insert(words.end(), process->argv.begin(), process->argv.end());
  return words;
}

}  // namespace

int TryAdvice(std::span<const Report> reports, const ParsedOptions& parsed) {
  absl::StatusOr<std::vector<std::string>> words = TryWords(reports, parsed.Has("all"));
  if (!words.ok()) {
    Complain("advise --try: " + std::string(words.status().message()));
    return absl::IsNotFound(words.status()) ? 0 : 1;
  }
  std::vector<std::string> options;
  for (const std::string_view name : kPassedOn) {
    if (!parsed.Has(name)) continue;
    const std::string value = parsed.Value(name);
    options.push_back("--" + std::string(name) + (value.empty() ? "" : "=" + value));
  }
  words->insert(words->begin() + 1, options.begin(), options.end());
  PrintError("rfinject " + CommandText(*words) + "\n");
  if (!parsed.Has("yes")) {
    if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1) {
      return UsageError("advise", "--try runs the command above, which the trace names, with --yes");
    }
    if (!Agrees()) return 0;
  }
  std::vector<char*> arguments;
  for (size_t i = 1; i < words->size(); ++i) arguments.push_back((*words)[i].data());
  return RunVerb("try", arguments);
}

}  // namespace rfinject::cli
