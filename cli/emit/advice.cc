#include "cli/emit/advice.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "cli/emit/markup.h"
#include "cli/emit/opening.h"
#include "cli/emit/text_grid.h"
#include "cli/report/units.h"

namespace rfinject::cli {
namespace {

bool IsProven(const Advice& advice) { return advice.rule->unproven.empty(); }

std::string_view StateName(Advice::State state) {
  switch (state) {
    case Advice::State::kHolds:
      return "holds";
    case Advice::State::kSilent:
      return "silent";
    case Advice::State::kUnknown:
      break;
  }
  return "unknown";
}

// Those that hold and are shown.
std::vector<const Advice*> Shown(const Report& report, bool all) {
  std::vector<const Advice*> shown;
  for (const Advice& advice : report.advice.advice) {
    if (advice.state == Advice::State::kHolds && (all || IsProven(advice))) shown.push_back(&advice);
  }
  return shown;
}

std::vector<const Advice*> InState(const Report& report, Advice::State state) {
  std::vector<const Advice*> found;
  for (const Advice& advice : report.advice.advice) {
    if (advice.state == state) found.push_back(&advice);
  }
  return found;
}

// What stands after the gain, a line each.
std::vector<std::string> Lines(const Report& report, const Advice& advice) {
  std::vector<std::string> lines = {"why: " + AdviceWhy(advice, report.advice.facts), "do:  " + advice.rule->action,
                                    "see: " + advice.rule->link};
  if (advice.instead) lines.push_back("or:  it wins the same time as an advice above; do one of them");
  if (!IsProven(advice)) lines.push_back("but: no pair of programs shows this gain: " + advice.rule->unproven);
  return lines;
}

std::string Nothing(const Report& report) {
  return report.total.time_ns() > 0 ? "No rule holds that would win 1 % of a step."
                                    : "No kernel has a time, so there is nothing to advise.";
}

}  // namespace

void EmitAdviceText(std::span<const Report> reports, const AdviceOptions& options, std::ostream& out) {
  for (const Report& report : reports) {
    if (&report != reports.data()) out << '\n';
    const std::vector<std::string> opening = OpeningText(report);
    for (size_t i = 0; i < std::min<size_t>(opening.size(), 2); ++i) {
      WriteWrapped(out, opening[i], options.width, "", "  ");
    }
    const std::vector<const Advice*> shown = Shown(report, options.all);
    if (shown.empty()) WriteWrapped(out, Nothing(report), options.width, "", "  ");
    for (const Advice* advice : shown) {
      out << '\n';
      WriteWrapped(out, GainText(report, *advice) + "  " + advice->rule->title + " [" + advice->rule->name + "]",
                   options.width, "", "  ");
      for (const std::string& line : Lines(report, *advice)) WriteWrapped(out, line, options.width, "  ", "       ");
    }
    std::vector<const Advice*> unknown = InState(report, Advice::State::kUnknown);
    if (!options.all) std::erase_if(unknown, [](const Advice* advice) { return !IsProven(*advice); });
    if (!unknown.empty()) out << "\nNot known here:\n";
    for (const Advice* advice : unknown) {
      WriteWrapped(out, advice->rule->name + ": " + AdviceLacks(*advice), options.width, "  ", "    ");
    }
    if (!options.all) continue;
    std::string silent;
    for (const Advice* advice : InState(report, Advice::State::kSilent)) {
      silent += (silent.empty() ? "Silent: " : ", ") + advice->rule->name;
    }
    if (!silent.empty()) {
      out << '\n';
      WriteWrapped(out, silent, options.width, "", "  ");
    }
  }
}

void EmitAdviceMarkdown(std::span<const Report> reports, const AdviceOptions& options, std::ostream& out) {
  for (const Report& report : reports) {
    if (&report != reports.data()) out << '\n';
    const std::vector<std::string> opening = OpeningText(report);
    for (size_t i = 0; i < std::min<size_t>(opening.size(), 2); ++i) {
      out << "* " << MarkdownText(opening[i]) << '\n';
    }
    const std::vector<const Advice*> shown = Shown(report, options.all);
    if (shown.empty()) {
      out << "* " << MarkdownText(Nothing(report)) << '\n';
      continue;
    }
    out << "\n| gain a step | what | why | what to do |\n|---|---|---|---|\n";
    for (const Advice* advice : shown) {
      out << "| " << GainText(report, *advice) << " | " << MarkdownText(advice->rule->title) << " | "
          << MarkdownText(AdviceWhy(*advice, report.advice.facts)) << " | " << MarkdownText(advice->rule->action)
          << " ([more](" << advice->rule->link << ")) |\n";
    }
  }
}

void WriteAdviceMember(JsonWriter& json, const Report& report) {
  json.Key("advice");
  json.BeginArray();
  for (const Advice* advice : Shown(report, /*all=*/false)) {
    json.BeginObject(/*one_line=*/true);
    json.Member("rule", advice->rule->name);
    json.Member("gain_ns_per_step", advice->gain_ns);
    json.Key("instead_of_another");
    json.Bool(advice->instead);
    json.Member("title", advice->rule->title);
    json.Member("do", advice->rule->action);
    json.Member("link", advice->rule->link);
    json.EndObject();
  }
  json.EndArray();
}

void EmitAdviceJson(std::span<const Report> reports, std::ostream& out) {
  JsonWriter json(out);
  json.BeginObject();
  json.Member("schema", "rfinject.advice/1");
  json.Key("runs");
  json.BeginArray();
  for (const Report& report : reports) {
    json.BeginObject();
    json.Optional("device", report.device_name);
    const std::optional<double>& step = report.advice.facts[static_cast<size_t>(Fact::kStep)];
    json.Key("gpu_time_per_step_ns");
    step ? json.Number(*step) : json.Null();
    const std::optional<double>& clock = report.advice.facts[static_cast<size_t>(Fact::kClock)];
    json.Key("clock_time_per_step_ns");
    clock ? json.Number(*clock) : json.Null();
    json.Key("rules");
    json.BeginArray();
    for (const Advice& advice : report.advice.advice) {
      json.BeginObject(/*one_line=*/true);
      json.Member("rule", advice.rule->name);
      json.Member("state", StateName(advice.state));
      json.Key("gain_ns_per_step");
      advice.state == Advice::State::kHolds ? json.Number(advice.gain_ns) : json.Null();
      json.Key("instead_of_another");
      json.Bool(advice.instead);
      json.Key("proven");
      json.Bool(IsProven(advice));
      json.Member("title", advice.rule->title);
      json.Optional("why", advice.state == Advice::State::kHolds ? AdviceWhy(advice, report.advice.facts) : "");
      json.Optional("lacks", AdviceLacks(advice));
      json.Member("do", advice.rule->action);
      json.Member("link", advice.rule->link);
      json.EndObject();
    }
    json.EndArray();
    json.Key("facts");
    json.BeginObject();
    for (const FactInfo& fact : AllFacts()) {
      json.Key(fact.name);
      const std::optional<double>& value = report.advice.facts[static_cast<size_t>(fact.id)];
      value ? json.Number(*value) : json.Null();
    }
    json.EndObject();
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
}

}  // namespace rfinject::cli
