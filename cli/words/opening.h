// File: opening.h
//
// The five lines that every report begins with: what a step costs, what holds it back, and the three changes that
// would win most, with what to do. What is not known is left out.
#ifndef RFINJECT_CLI_WORDS_OPENING_H_
#define RFINJECT_CLI_WORDS_OPENING_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/report/advice/advice.h"

namespace rfinject::cli {

struct Report;

// Returns the lines; none where the report's rows are runs.
std::vector<std::string> OpeningText(const Report& report);

// The first two lines: what a step costs, and what holds it back, which is empty where that is not known.
// `of` stands behind the GPU's name, the phases' shares at the end.
std::string CostText(const Report& report, std::string_view of = {}, bool phases = true);
std::string LimitText(const Report& report);

// The three changes that would win most, a line each: "1. -3.42 ms (33 %): ..."; with what to do, or their titles
// only.
std::vector<std::string> GainTexts(const Report& report, bool titles_only);
// Of these, three at most that no rule of advice is about: "at most -3.99 ms (28 %): 20 layers Conv2d, ...".
std::vector<std::string> PlaceTexts(const Report& report);

// Whether it was measured, and on what: "ESTIMATED on A100-SXM4-40GB".
std::string SourceText(const Report& report);

// ", of a trace without its end", for CostText; empty where every process's trace has its end.
std::string EndText(const Report& report);

// Returns the sentence on a recording's rows that take longer than such work usually does on that GPU, the three with
// most time beyond it; empty where none does, and where it is not known.
std::string UnusualText(const Report& report);

// Why there is nothing to report, and what to do, where no launch was recorded; empty where there is something:
// "nothing was measured: no NVIDIA driver in this process and no --estimate (rfinject --estimate ...)".
std::string NothingText(const Report& report);
// The same of several: the first one's reason, and empty where there is something in any.
std::string NothingText(std::span<const Report> reports);

// The largest gain alone, for a place with room for one line: "Largest gain: 3.42 ms a step (33 %): ..."; empty where
// there is none.
std::string LargestGainText(const Report& report);

// "-3.42 ms (33 %)": the gain, and its share of the step; "-3.42 ms (33 %) by the clock" for a rule whose gain is no
// GPU time.
std::string GainText(const Report& report, const Advice& advice);
std::string GainText(double gain_ns, double step_ns);

// The rule's reason with the run's numbers in it.
std::string AdviceWhy(const Advice& advice, const FactValues& facts);

// "it needs idle_ns (...): an estimate has no wall time".
std::string AdviceLacks(const Advice& advice);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_WORDS_OPENING_H_
