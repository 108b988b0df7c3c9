#include "cli/view/advice_view.h"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
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
  static constexpr std::string_view kNames[] = {"holds", "silent", "unknown"};
  return kNames[static_cast<size_t>(state)];
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

// A rule, with the run that it is of.
struct RunAdvice {
  const Report& report;
  const Advice& advice;
};

// What machines read of a rule. A line of CSV lacks the last one.
constexpr auto kRuleColumns = std::to_array<ColumnOf<RunAdvice>>({
    {{.name = "rule"}, [](const RunAdvice& of) { return Cell{of.advice.rule->name}; }},
    {{.name = "state"}, [](const RunAdvice& of) { return Cell{std::string(StateName(of.advice.state))}; }},
    {{.name = "gain_ns_per_step"}, [](const RunAdvice& of) { return KnownCell(of.advice.gain_ns); }},
    {{.name = "instead_of_another"}, [](const RunAdvice& of) { return Cell{of.advice.instead}; }},
    {{.name = "proven"}, [](const RunAdvice& of) { return Cell{IsProven(of.advice)}; }},
    {{.name = "title"}, [](const RunAdvice& of) { return Cell{of.advice.rule->title}; }},
    {{.name = "why"},
     [](const RunAdvice& of) {
       const bool holds = of.advice.state == State::kHolds;
       return TextCell(holds ? AdviceWhy(of.advice, of.report.advice.facts) : "");
     }},
    {{.name = "lacks"}, [](const RunAdvice& of) { return TextCell(AdviceLacks(of.advice)); }},
    {{.name = "do"}, [](const RunAdvice& of) { return Cell{of.advice.action()}; }},
    {{.name = "link"}, [](const RunAdvice& of) { return Cell{of.advice.rule->link}; }},
});

// `report`, whose `advice` it is, must outlive the rows.
RowSet RulesOf(const Report& report, std::vector<const Advice*> advice) {
  RowSet rows{.size = advice.size()};
  const auto subject = [&report, advice = std::move(advice)](size_t i) { return RunAdvice{report, *advice[i]}; };
  Append(std::span<const ColumnOf<RunAdvice>>(kRuleColumns), subject, &rows);
  return rows;
}

RowSet AllRulesOf(const Report& report) {
  std::vector<const Advice*> all;
  for (const Advice& advice : report.advice.advice) all.push_back(&advice);
  return RulesOf(report, std::move(all));
}

Data AdviceData(const Report& report) {
  const auto cell = [&](Fact fact) { return KnownCell(report.advice.facts[fact]); };
  Data facts = Data::Object();
  for (const RunFact& fact : AllRunFacts()) {
    if (FactNamed(fact.info.name)) facts.Add(fact.info.name, fact.value(report));
  }
  return Data::Object()
      .Add("device", TextCell(report.device.name))
      .Add("gpu_time_per_step_ns", cell(Fact::kStep))
      .Add("clock_time_per_step_ns", cell(Fact::kClock))
      .Add("rules", AllRulesOf(report))
      .Add("facts", std::move(facts));
}

// Whether `rfinject advise --try` can make a change that is shown.
bool CanBeTried(const Report& report, bool all) {
  const ProcessInfo* const process = FirstProcess(report.process.list);
  if (process == nullptr || process->argv.empty() || report.steps.validation) return false;
  const std::vector<const Advice*> shown = InState(report, State::kHolds, all);
  return std::any_of(shown.begin(), shown.end(), [](const Advice* advice) { return !advice->rule->tries.empty(); });
}

// A line a rule.
RowSet RuleLines(const Report& report, size_t index) {
  RowSet rows = AllRulesOf(report);
  rows.columns.pop_back();  // the link
  return WithConstants({{"run", uint64_t{index}}, {"device", report.device.name}}, std::move(rows));
}

}  // namespace

Data ShownAdviceData(const Report& report) {
  RowSet rows = RulesOf(report, InState(report, State::kHolds, /*all=*/false));
  std::erase_if(rows.columns, [](const Column& column) {
    const std::string_view name = column.info.name;
    return name == "state" || name == "proven" || name == "why" || name == "lacks";
  });
  return rows;
}

Section AdviceSection(const Report& report, bool all) {
  Section section{.id = "advice"};
  for (const Advice* advice : InState(report, State::kHolds, all)) {
    section.lead.push_back(SentenceOf(report, *advice));
  }
  for (const std::string& place : PlaceTexts(report)) section.lead.push_back({.text = place});
  if (section.lead.empty()) {
    section.lead.push_back({.text = report.total.sums.time_ns() > 0
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
    document.lines.push_back(RuleLines(report, document.lines.size() + 1));
  }
  document.data.Add("schema", "rfinject.advice/1").Add("runs", Data::ListOf(*owner, AdviceData));
  return document;
}

}  // namespace rfinject::cli
