#include "cli/cmd/try_runs.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cli/cmd/load.h"
#include "cli/cmd/streams.h"
#include "cli/cmd/subprocess.h"
#include "cli/cmd/text_file.h"
#include "cli/cmd/try_folder.h"
#include "cli/report/facts/memory.h"
#include "cli/report/fold.h"
#include "cli/report/machine.h"

namespace rfinject::cli {
namespace {

using Environment = std::vector<std::pair<std::string, std::string>>;

// The interval of a difference that is narrow enough to stop: half its width as a share of the baseline's step.
constexpr double kNarrow = 0.005;
// Rounds that are run at least where times are measured: with fewer, nothing is known of how runs differ.
constexpr size_t kLeastRounds = 3;
constexpr uint64_t kLosses = 8;
constexpr int kLongestRunS = 6 * 3600;

// What one run of the program left.
struct Outcome {
  int code = 0;
  bool timed_out = false;
  std::string last_error;  // the last line of standard error
  ChangeReport report;
  std::vector<std::string> traces;
};

// The program with some changes, over all rounds.
struct Variant {
  std::vector<WantedChange> changes;
  Trial trial;
  std::vector<std::string> traces;
  std::vector<double> steps_ns;  // of each round
  bool running = true;           // its further rounds would say more
};

class Runner {
 public:
  explicit Runner(const TryPlan& plan) : plan_(plan) {}

  // Runs the program once. `measured`: a trace is wanted.
  absl::StatusOr<Outcome> Run(std::span<const WantedChange> changes, ChangeOptions options, bool measured) {
    const std::string folder = absl::StrCat(plan_.scratch, "/run", ++runs_);
    std::error_code error;
    std::filesystem::create_directories(folder + "/files", error);
    if (error) return absl::UnavailableError(folder + ": " + error.message());
    options.report = folder + "/report";
    options.gpu = plan_.gpu;
    options.guard = !plan_.in_place;
    const std::string change = folder + "/change.py";
    std::ofstream(change, std::ios::binary) << ChangeFile(options, changes);

    std::vector<std::string> words = {"/proc/self/exe", "run", "-q", "-o", folder + "/traces/"};
    words.insert(words.end(), plan_.options.begin(), plan_.options.end());
    Environment environment = {{"RFINJECT_TRY", change}, {"PYTHONDONTWRITEBYTECODE", "1"}, {"RFINJECT_LATEST", ""}};
    if (!measured && plan_.loss == LossCheck::kOnCpu) {
      environment.emplace_back("CUDA_VISIBLE_DEVICES", "-1");
      environment.emplace_back("RFINJECT_ESTIMATE", "");
      environment.emplace_back("RFINJECT_MODE", "none");
      words = {"/proc/self/exe", "run", "-q", "-o", folder + "/traces/"};
    }
    words.emplace_back("--");
    words.insert(words.end(), plan_.program.begin(), plan_.program.end());
    std::function<bool()> in_child;
    if (!plan_.in_place) {
      in_child = [&] {
        const absl::Status status = CopyOnWrite(plan_.folder, folder + "/files");
        if (!status.ok()) Complain(std::string(status.message()));
        return status.ok();
      };
    }
    const auto left = std::clamp<int64_t>(absl::ToInt64Seconds(plan_.deadline - absl::Now()), 60, kLongestRunS);
    const SubprocessResult done = RunSubprocess(words, environment, static_cast<int>(left), plan_.folder, in_child);
    Outcome outcome{.code = done.code,
                    .timed_out = done.timed_out,
                    .last_error = LastLine(done.errors),
                    .report = ReadChangeReport(ReadTextFile(options.report).value_or(""))};
    for (std::filesystem::recursive_directory_iterator it(folder + "/traces", error), end; !error && it != end;
         it.increment(error)) {
      if (it->path().extension() == ".rfx") outcome.traces.push_back(it->path().string());
    }
    std::sort(outcome.traces.begin(), outcome.traces.end());
    return outcome;
  }

 private:
  const TryPlan& plan_;
  size_t runs_ = 0;
};

std::string WhyFailed(const Outcome& outcome) {
  if (!outcome.report.outside.empty()) {
    return "it writes " + outcome.report.outside + ", which is outside of its folder; --in-place accepts that";
  }
  if (outcome.timed_out) return "it did not end in time";
  if (!outcome.report.exception.empty()) return outcome.report.exception;
  return absl::StrCat("exit code ", outcome.code, outcome.last_error.empty() ? "" : ": ", outcome.last_error);
}

bool IsOutOfMemory(const std::string& exception) {
  return exception.find("OutOfMemory") != std::string::npos || exception.find("out of memory") != std::string::npos;
}

// Sets state, text and diffs of a variant from its first run.
void Classify(const Outcome& outcome, Trial* trial) {
  std::map<std::string, std::string> made, other;  // by change
  std::string state_of_others;
  for (const ChangeReport::Line& line : outcome.report.lines) {
    const std::string text = line.text.substr(0, 200);
    if (line.state == "made") {
      std::string& all = made[line.change];
      if (all.find(text) == std::string::npos) absl::StrAppend(&all, all.empty() ? "" : "; ", text);
      if (!line.edited) trial->without_diff.emplace_back(line.change, text);
    } else {
      if (line.state == "already") state_of_others = "already";
      if (other[line.change].empty()) other[line.change] = text;
    }
  }
  // Processes that do the same say the same.
  for (const auto& [process, patch] : outcome.report.patches) {
    if (std::find(trial->diffs.begin(), trial->diffs.end(), patch) == trial->diffs.end())
      trial->diffs.push_back(patch);
  }
  const auto texts = [](const std::map<std::string, std::string>& by_change) {
    return absl::StrJoin(by_change, "; ", [](std::string* out, const auto& one) { out->append(one.second); });
  };
  trial->state = !made.empty()                  ? TrialState::kMade
                 : state_of_others == "already" ? TrialState::kAlready
                                                : TrialState::kNothing;
  trial->text = texts(made.empty() ? other : made);
  if (trial->text.empty()) trial->text = "the program does not come to where it would be made";
  if (outcome.code != 0 || outcome.timed_out || !outcome.report.outside.empty()) {
    trial->text = WhyFailed(outcome);
    trial->state = IsOutOfMemory(trial->text) ? TrialState::kOutOfMemory : TrialState::kFailed;
  }
}

// The runs of a training come first: the pair whose step costs most.
const RunDiff* MainPair(const Diff& diff) {
  const RunDiff* best = nullptr;
  for (const RunDiff& pair : diff.pairs) {
    const auto weight = [](const RunDiff& one) {
      return std::pair(!one.before.steps.validation, one.total[Compared::kTime].before);
    };
    if (best == nullptr || weight(pair) > weight(*best)) best = &pair;
  }
  return best;
}

Profile ProfileOf(const std::vector<std::string>& traces) { return std::move(LoadTraces(traces).profile); }

// Sets what the variant's own traces say: step, clock, memory.
void Describe(const Profile& profile, const Calibration& calibration, Trial* trial, Report* main) {
  double largest = -1;
  for (const auto& [key, run] : profile.runs) {
    Report report = FoldRun(profile, run, MachineFor(run), {.by = By::kModel, .calibration = &calibration});
    const MemoryTable memory = FoldMemory(run);
    trial->peak_bytes =
        std::max({trial->peak_bytes, memory.known ? memory.allocated_bytes : 0, report.memory.peak_bytes});
    const double weight = report.steps.validation ? 0 : report.total.sums.time_ns();
    if (weight <= largest) continue;
    largest = weight;
    trial->step_ns = report.clock.gpu_ns;
    trial->clock_ns = report.advice.facts[static_cast<size_t>(Fact::kClock)].value_or(0);
    *main = std::move(report);
  }
}

// Whether the change is one of those that a rule's `try` has, with spaces between them.
bool Names(const std::string& tries, const std::string& change) {
  return (" " + tries + " ").find(" " + change + " ") != std::string::npos;
}

// What advice says that the change wins; nothing where no rule that names it holds.
std::optional<double> Predicted(const Report& baseline, const WantedChange& change) {
  for (const Advice& advice : baseline.advice.advice) {
    if (advice.state != Advice::State::kHolds) continue;
    if (Names(advice.rule->tries, change.name) || Names(advice.rule->tries, change.base)) return advice.gain_ns;
  }
  return std::nullopt;
}

// The rules' group of the change: of one group only one change is done.
std::string GroupOf(const WantedChange& change) {
  for (const Rule& rule : ShippedRules()) {
    if (Names(rule.tries, change.base) && !rule.group.empty()) return rule.group;
  }
  return change.name;
}

class Comparison {
 public:
  Comparison(const TryPlan& plan, Runner& runner) : plan_(plan), runner_(runner) {
    baseline_.trial.name = "baseline";
    baseline_.trial.state = TrialState::kBaseline;
  }

  // Runs baseline and variants in turn until their differences are known well enough.
  absl::Status Rounds(std::vector<Variant>& variants) {
    for (Variant& variant : variants) variant.running = true;
    for (;;) {
      // An estimate says the same each time.
      if (!baseline_.trial.exact) {
        if (absl::Status status = RunOnce(baseline_); !status.ok()) return status;
      }
      for (Variant& variant : variants) {
        if (!variant.running) continue;
        if (absl::Status status = RunOnce(variant); !status.ok()) return status;
      }
      bool more = false;
      for (Variant& variant : variants) {
        if (variant.running) Compare(&variant);
        more = more || variant.running;
      }
      if (!more || absl::Now() > plan_.deadline) return absl::OkStatus();
    }
  }

  void CheckLosses(std::vector<Variant>& variants) {
    if (plan_.loss == LossCheck::kNone) return;
    if (baseline_losses_.empty() && why_no_losses_.empty()) {
      Say("losses of the program as it is");
      baseline_losses_ = LossesOf({}, /*perturb=*/false, &why_no_losses_);
      if (why_no_losses_.empty()) rounded_losses_ = LossesOf({}, /*perturb=*/true, &why_no_losses_);
    }
    for (Variant& variant : variants) {
      if (variant.trial.state != TrialState::kMade) continue;
      std::string why = why_no_losses_;
      if (why.empty()) {
        Say("losses with " + variant.trial.name);
        const std::vector<double> losses = LossesOf(variant.changes, /*perturb=*/false, &why);
        if (why.empty()) variant.trial.loss = JudgeLoss(baseline_losses_, rounded_losses_, losses);
      }
      if (!why.empty()) variant.trial.loss_text = "could not be checked: " + why;
    }
  }

  const Trial& baseline() const { return baseline_.trial; }

 private:
  void Say(const std::string& what) const {
    if (!plan_.quiet) Complain(what);
  }

  absl::Status RunOnce(Variant& variant) {
    const bool first = variant.trial.runs == 0;
    Say(absl::StrCat("run ", variant.trial.runs + 1, ": ", variant.trial.name));
    absl::StatusOr<Outcome> outcome = runner_.Run(variant.changes, {}, /*measured=*/true);
    if (!outcome.ok()) return outcome.status();
    const bool baseline = variant.trial.state == TrialState::kBaseline;
    const bool failed = outcome->code != 0 || outcome->timed_out || !outcome->report.outside.empty();
    if (baseline && failed) {
      return absl::FailedPreconditionError("the program without any change fails: " + WhyFailed(*outcome));
    }
    ++variant.trial.runs;
    if (!baseline && (first || failed)) {
      Classify(*outcome, &variant.trial);
      variant.running = variant.trial.state == TrialState::kMade;
      if (!variant.running) return absl::OkStatus();
    }
    variant.traces.insert(variant.traces.end(), outcome->traces.begin(), outcome->traces.end());
    if (baseline && outcome->traces.empty()) {
      return absl::FailedPreconditionError("the program left no trace: 'rfinject doctor' tells what works here");
    }
    Trial of_round;
    Report main;
    Describe(ProfileOf(outcome->traces), plan_.calibration, &of_round, &main);
    variant.steps_ns.push_back(of_round.step_ns);
    if (baseline && first) {
      main_ = std::move(main);
      if (!(of_round.step_ns > 0)) {
        return absl::FailedPreconditionError(
            "no step of the program was measured: is there a GPU, or --estimate GPU?");
      }
    }
    return absl::OkStatus();
  }

  // What diff says of the traces of all rounds; where there are rounds enough, an interval that is wider because runs
  // differ from one another counts.
  void Compare(Variant* variant) {
    const Profile before = ProfileOf(baseline_.traces), after = ProfileOf(variant->traces);
    Report unused;
    Describe(before, plan_.calibration, &baseline_.trial, &unused);
    Describe(after, plan_.calibration, &variant->trial, &unused);
    const Diff diff = MakeDiff(before, after, MachineFor, {.by = By::kModel, .calibration = &plan_.calibration});
    const RunDiff* const pair = MainPair(diff);
    Trial& trial = variant->trial;
    trial.predicted_ns = variant->changes.size() == 1 ? Predicted(main_, variant->changes.front()) : std::nullopt;
    if (pair == nullptr) {
      trial.text += "; its steps could not be compared with the baseline's";
      variant->running = false;
      return;
    }
    trial.time = pair->total[Compared::kTime];
    trial.exact = baseline_.trial.exact = pair->exact;
    if (pair->exact) {
      variant->running = false;
      return;
    }
    std::vector<double> differences;
    for (size_t i = 0; i < std::min(baseline_.steps_ns.size(), variant->steps_ns.size()); ++i) {
      differences.push_back(variant->steps_ns[i] - baseline_.steps_ns[i]);
    }
    if (differences.size() >= kLeastRounds) {
      const double half_width = RoundsHalfWidth(differences);
      if (!(trial.time.half_width >= half_width)) trial.time.half_width = half_width;
      if (trial.time.verdict == Verdict::kReal && std::fabs(trial.time.difference()) < half_width) {
        trial.time.verdict = Verdict::kNoise;
      }
      variant->running = !(trial.time.half_width < kNarrow * trial.time.before);
    }
  }

  std::vector<double> LossesOf(std::span<const WantedChange> changes, bool perturb, std::string* why) {
    const absl::StatusOr<Outcome> outcome =
        runner_.Run(changes, {.seed = true, .losses = kLosses, .perturb = perturb}, /*measured=*/false);
    if (!outcome.ok()) {
      *why = std::string(outcome.status().message());
    } else if (outcome->code != 0) {
      *why = WhyFailed(*outcome);
    } else if (outcome->report.losses.empty()) {
      *why = "the program calls no loss.backward()";
    } else {
      return outcome->report.losses;
    }
    return {};
  }

  const TryPlan& plan_;
  Runner& runner_;
  Variant baseline_;
  Report main_;  // the baseline's
  std::vector<double> baseline_losses_, rounded_losses_;
  std::string why_no_losses_;
};

// The changes that are worth it, the best of each group.
std::vector<WantedChange> BestOf(const std::vector<Variant>& variants) {
  std::map<std::string, const Variant*> best;
  for (const Variant& variant : variants) {
    if (!variant.trial.recommended()) continue;
    const Variant*& of_group = best[GroupOf(variant.changes.front())];
    if (of_group == nullptr || variant.trial.won_ns() > of_group->trial.won_ns()) of_group = &variant;
  }
  std::vector<WantedChange> changes;
  for (const Variant& variant : variants) {
    for (const auto& [group, chosen] : best) {
      if (chosen == &variant) changes.push_back(variant.changes.front());
    }
  }
  return changes;
}

Variant VariantOf(std::vector<WantedChange> changes) {
  Variant variant;
  variant.trial.name =
      absl::StrJoin(changes, " + ", [](std::string* out, const WantedChange& change) { out->append(change.name); });
  if (changes.size() == 1) variant.trial.write = changes.front().write;
  variant.trial.changes = changes.size();
  variant.changes = std::move(changes);
  return variant;
}

}  // namespace

absl::StatusOr<std::vector<Trial>> TryChanges(const TryPlan& plan, std::span<const WantedChange> changes) {
  Runner runner(plan);
  Comparison comparison(plan, runner);
  std::vector<Variant> variants;
  for (const WantedChange& change : changes) variants.push_back(VariantOf({change}));
  if (absl::Status status = comparison.Rounds(variants); !status.ok()) return status;
  comparison.CheckLosses(variants);
  std::vector<Variant> together;
  if (std::vector<WantedChange> best = BestOf(variants); best.size() > 1) {
    together.push_back(VariantOf(std::move(best)));
    if (absl::Status status = comparison.Rounds(together); !status.ok()) return status;
    comparison.CheckLosses(together);
  }
  std::vector<Trial> trials = {comparison.baseline()};
  for (std::vector<Variant>* list : {&variants, &together}) {
    for (Variant& variant : *list) trials.push_back(std::move(variant.trial));
  }
  return trials;
}

}  // namespace rfinject::cli
