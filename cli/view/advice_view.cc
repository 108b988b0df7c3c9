#include "cli/view/advice_view.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cli/picture/names.h"
#include "cli/report/run_list.h"
#include "cli/words/opening.h"

namespace rfinject::cli {
namespace {

using State = Advice::State;

bool IsProven(const Advice& advice) { return advice.rule->unproven.empty(); }

std::string_view StateName(State state) {
  switch (state) {
    case State::kHolds:
      return "holds";
    case State::kSilent:
      return "silent";
    case State::kUnknown:
      break;
  }
  return "unknown";
}

// The rules in a state; unless `all`, only those that a pair of programs has shown to be right.
std::vector<const Advice*> InState(const Report& report, State state, bool all) {
  std::vector<const Advice*> found;
  for (const Advice& advice : report.advice.advice) {
    if (advice.state == state && (all || IsProven(advice))) found.push_back(&advice);
  }
  return found;
}

Sentence SentenceOf(const Report& report, const Advice& advice) {
  Sentence sentence{.text = GainText(report, advice) + "  " + advice.rule->title + " [" + advice.rule->name + "]"};
  sentence.details = {
      {"why: ", AdviceWhy(advice, report.advice.facts)}, {"do:  ", advice.action()}, {"see: ", advice.rule->link}};
  if (advice.instead) {
    sentence.details.emplace_back("or:  ", "it wins the same time as an advice above; do one of them");
  }
  if (!IsProven(advice)) {
    sentence.details.emplace_back("but: ", "no pair of programs shows this gain: " + advice.rule->unproven);
  }
  return sentence;
}

Cell FactCell(const Report& report, Fact fact) {
  const std::optional<double>& value = report.advice.facts[static_cast<size_t>(fact)];
  return value ? Cell{*value} : Cell{};
}

Data RunData(const Report& report) {
  Data rules = Data::List(), facts = Data::Object(), run = Data::Object();
  for (const Advice& advice : report.advice.advice) {
    const bool holds = advice.state == State::kHolds;
    Data rule = Data::Object(/*one_line=*/true);
    rule.Add("rule", advice.rule->name)
        .Add("state", StateName(advice.state))
        .Add("gain_ns_per_step", holds ? Cell{advice.gain_ns} : Cell{})
        .Add("instead_of_another", Cell{advice.instead})
        .Add("proven", Cell{IsProven(advice)})
        .Add("title", advice.rule->title)
        .Add("why", TextCell(holds ? AdviceWhy(advice, report.advice.facts) : ""))
        .Add("lacks", TextCell(AdviceLacks(advice)))
        .Add("do", advice.action())
        .Add("link", advice.rule->link);
    rules.Append(std::move(rule));
  }
  for (const FactInfo& fact : AllFacts()) facts.Add(fact.name, FactCell(report, fact.id));
  run.Add("device", TextCell(report.device_name))
      .Add("gpu_time_per_step_ns", FactCell(report, Fact::kStep))
      .Add("clock_time_per_step_ns", FactCell(report, Fact::kClock))
      .Add("rules", std::move(rules))
      .Add("facts", std::move(facts));
  return run;
}

// Whether `rfinject advise --try` can make a change that is shown.
bool CanBeTried(const Report& report, bool all) {
  const ProcessInfo* const process = FirstProcess(report.processes);
  if (process == nullptr || process->argv.empty() || report.validation) return false;
  const std::vector<const Advice*> shown = InState(report, State::kHolds, all);
  return std::any_of(shown.begin(), shown.end(), [](const Advice* advice) { return !advice->rule->tries.empty(); });
}

// A line a rule.
RowSet RuleLines(const Report& report, size_t index) {
  RowSet rows;
  rows.size = report.advice.advice.size();
  const auto add = [&](std::string_view name, Cell (*value)(const Report&, const Advice&)) {
    rows.columns.push_back(
        {{.name = name}, [&report, value](size_t i) { return value(report, report.advice.advice[i]); }});
  };
  add("rule", [](const Report&, const Advice& advice) { return Cell{advice.rule->name}; });
  add("state", [](const Report&, const Advice& advice) { return Cell{std::string(StateName(advice.state))}; });
  add("gain_ns_per_step", [](const Report&, const Advice& advice) { return KnownCell(advice.gain_ns); });
  add("instead_of_another", [](const Report&, const Advice& advice) { return Cell{advice.instead}; });
  add("proven", [](const Report&, const Advice& advice) { return Cell{IsProven(advice)}; });
  add("title", [](const Report&, const Advice& advice) { return Cell{advice.rule->title}; });
  add("why", [](const Report& report, const Advice& advice) {
    return TextCell(advice.state == State::kHolds ? AdviceWhy(advice, report.advice.facts) : "");
  });
  add("lacks", [](const Report&, const Advice& advice) { return TextCell(AdviceLacks(advice)); });
  add("do", [](const Report&, const Advice& advice) { return Cell{advice.action()}; });
  return WithConstants({{"run", uint64_t{index}}, {"device", report.device_name}}, std::move(rows));
}

}  // namespace

Data ShownAdviceData(const Report& report) {
  Data list = Data::List();
  for (const Advice* advice : InState(report, State::kHolds, /*all=*/false)) {
    Data one = Data::Object(/*one_line=*/true);
    one.Add("rule", advice->rule->name)
        .Add("gain_ns_per_step", Cell{advice->gain_ns})
        .Add("instead_of_another", Cell{advice->instead})
        .Add("title", advice->rule->title)
        .Add("do", advice->action())
        .Add("link", advice->rule->link);
    list.Append(std::move(one));
  }
  return list;
}

Section AdviceSection(const Report& report, bool all) {
  Section section{.id = "advice"};
  for (const Advice* advice : InState(report, State::kHolds, all)) {
    section.lead.push_back(SentenceOf(report, *advice));
  }
  if (section.lead.empty()) {
    section.lead.push_back({.text = report.total.time_ns() > 0
                                        ? "No rule holds that would win 1 % of a step."
                                        : "No kernel has a time, so there is nothing to advise."});
  }
  const std::vector<const Advice*> unknown = InState(report, State::kUnknown, all);
  if (!unknown.empty()) {
    Sentence& sentence = section.notes.emplace_back(Sentence{.text = "Not known here:"});
    for (const Advice* advice : unknown)
      sentence.details.emplace_back(advice->rule->name + ": ", AdviceLacks(*advice));
  }
  if (!all) return section;
  std::string silent;
  for (const Advice* advice : InState(report, State::kSilent, /*all=*/true)) {
    silent += (silent.empty() ? "Silent: " : ", ") + advice->rule->name;
  }
  if (!silent.empty()) section.notes.push_back({.text = std::move(silent)});
  return section;
}

Document AdviceDocument(std::vector<Report> given, bool all) {
  const auto owner = std::make_shared<const std::vector<Report>>(std::move(given));
  Document document{.title = DocumentTitle("rfinject advise", *owner), .owner = owner};
  Data runs = Data::List();
  for (const Report& report : *owner) {
    Section section = AdviceSection(report, all);
    const std::vector<std::string> opening = OpeningText(report);
    std::vector<Sentence> lead;
    for (size_t i = 0; i < std::min<size_t>(opening.size(), 2); ++i) lead.push_back({.text = opening[i]});
    section.lead.insert(section.lead.begin(), lead.begin(), lead.end());
    if (CanBeTried(report, all)) {
      section.notes.push_back(
          {.text = "rfinject advise --try makes these changes in the program and measures them."});
    }
    document.sections.push_back(std::move(section));
    runs.Append(RunData(report));
    document.lines.push_back(RuleLines(report, document.lines.size() + 1));
  }
  document.data.Add("schema", "rfinject.advice/1").Add("runs", std::move(runs));
  return document;
}

}  // namespace rfinject::cli
