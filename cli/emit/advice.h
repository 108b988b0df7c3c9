// File: advice.h
//
// Writes advice as text, JSON and Markdown. Each format has a function, as in emit.h for reports.
#ifndef RFINJECT_CLI_EMIT_ADVICE_H_
#define RFINJECT_CLI_EMIT_ADVICE_H_

#include <ostream>
#include <span>

#include "cli/emit/json_writer.h"
#include "cli/report/report.h"

namespace rfinject::cli {

struct AdviceOptions {
  int width = 80;
  bool all = false;  // also show unproven rules, and those that lack a fact or do not hold
};

void EmitAdviceText(std::span<const Report> reports, const AdviceOptions& options, std::ostream& out);
void EmitAdviceMarkdown(std::span<const Report> reports, const AdviceOptions& options, std::ostream& out);
void EmitAdviceJson(std::span<const Report> reports,
                    std::ostream& out);  // schema rfinject.advice/1; always all rules

// Writes a member "advice" of the object that is open, with the rules that hold.
void WriteAdviceMember(JsonWriter& json, const Report& report);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_ADVICE_H_
