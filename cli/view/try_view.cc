#include "cli/view/try_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "cli/text/units.h"

namespace rfinject::cli {
namespace {

constexpr auto kTryLooks = std::to_array<TableLook>({
    {.column = "change", .title = "change", .left = true},
    {.column = "step", .title = "step", .gap = 2},
    {.column = "won_text", .title = "won", .gap = 2},
    {.column = "won", .title = "%", .gap = 2},
    {.column = "verdict", .title = "change is", .left = true, .gap = 2},
    {.column = "predicted", .title = "advice said", .priority = 3, .gap = 2},
    {.column = "clock", .title = "by the clock", .priority = 4, .gap = 2},
    {.column = "peak_bytes", .title = "memory", .priority = 2, .gap = 2},
    {.column = "loss", .title = "loss", .priority = 1, .left = true, .gap = 2},
});

std::string TimeText(double ns) { return ns > 0 ? Duration(ns) : "-"; }

std::string SignedTime(double ns) { return (ns < 0 ? "-" : "") + Duration(std::fabs(ns)); }

std::string WonText(const Trial& trial) {
  if (trial.state == TrialState::kBaseline) return "";
  if (!trial.compared()) return trial.state == TrialState::kMade ? "-" : std::string(TrialStateName(trial.state));
  std::string text = SignedTime(trial.won_ns());
  if (trial.exact) return text;
  return text + (std::isfinite(trial.time.half_width) ? " +- " + Duration(trial.time.half_width) : " +- ?");
}

Sentence Advised(const Trial& trial, bool with_diffs) {
  Sentence sentence{
      .text = absl::StrFormat("%s wins %s (%s)", trial.name, SignedTime(trial.won_ns()), Percent(trial.won_share()))};
  if (!trial.write.empty()) sentence.details.emplace_back("write: ", trial.write);
  if (with_diffs && trial.diffs.empty())
    sentence.details.emplace_back("diff: ", "there is none that could be made by itself");
  return sentence;
}

Section TableSection(const std::vector<Trial>& trials) {
  RowSet rows = RowsOf(trials);
  rows.AddText("step", [&trials](size_t i) { return TimeText(trials[i].step_ns); });
  rows.AddText("won_text", [&trials](size_t i) { return WonText(trials[i]); });
  rows.AddText("predicted",
               [&trials](size_t i) { return trials[i].predicted_ns ? SignedTime(*trials[i].predicted_ns) : "-"; });
  rows.AddText("clock", [&trials](size_t i) { return TimeText(trials[i].clock_ns); });
  return {.id = "trials",
          .table = Table{.rows = std::move(rows),
                         .looks = {kTryLooks.begin(), kTryLooks.end()},
                         .estimated = !trials.empty() && trials.front().exact}};
}

Check Required(const std::vector<Trial>& trials, double share) {
  Check check{.name = absl::StrFormat("won>=%.6g%%", share * 100), .outcome = Check::Outcome::kFails};
  double best = 0;
  for (const Trial& trial : trials) {
    if (trial.recommended()) best = std::max(best, trial.won_share());
  }
  if (best >= share) check.outcome = Check::Outcome::kHolds;
  check.text = absl::StrFormat("the best change that can be recommended wins %s", Percent(best));
  return check;
}

}  // namespace

Document TryDocument(std::vector<Trial> given, const TryFacts& facts) {
  const auto owner = std::make_shared<const std::vector<Trial>>(std::move(given));
  const std::vector<Trial>& trials = *owner;
  Document document{.title = "rfinject try", .owner = owner};
  document.headline.push_back({.text = facts.opening, .tone = Tone::kStrong});
  Section table = TableSection(trials);
  Section notes{.id = "changes"};
  for (size_t i = 1; i < trials.size(); ++i) {
    const Trial& trial = trials[i];
    Sentence sentence{.text = absl::StrFormat("%s: %s%s%s", trial.name, TrialStateName(trial.state),
                                              trial.text.empty() ? "" : ": ", trial.text)};
    if (trial.loss == LossState::kOutside) {
      sentence.tone = Tone::kAlarm;
      sentence.text += "; the loss goes elsewhere, so it is not recommended";
    } else if (!trial.loss_text.empty()) {
      sentence.details.emplace_back("loss: ", trial.loss_text);
    }
    notes.lead.push_back(std::move(sentence));
  }
  if (facts.nothing_computed) {
    notes.notes.push_back(
        {.text = "A virtual GPU computes nothing, so no loss was checked there; --check-loss cpu runs a "
                 "few steps on the CPU."});
  }
  Section worth{.id = "worth"};
  for (const Trial& trial : trials) {
    if (trial.recommended()) worth.lead.push_back(Advised(trial, facts.with_diffs));
  }
  if (worth.lead.empty()) worth.lead.push_back({.text = "No change won by more than chance."});
  document.sections.push_back(std::move(table));
  document.sections.push_back(std::move(notes));
  document.sections.push_back(std::move(worth));

  Data list = Data::List();
  const RowSet rows = RowsOf(trials);
  for (size_t i = 0; i < trials.size(); ++i) {
    Data one = Data::Object();
    one.AddRow(rows, i).Add("loss_text", TextCell(trials[i].loss_text)).Add("diffs", Data::ListOf(trials[i].diffs));
    list.Append(std::move(one));
  }
  document.data.Add("schema", "rfinject.try/1").Add("on", facts.opening).Add("trials", std::move(list));
  document.lines = {rows};
  if (facts.required_share >= 0) document.checks.push_back(Required(trials, facts.required_share));
  return document;
}

}  // namespace rfinject::cli
