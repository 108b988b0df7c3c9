// File: words.h
//
// The sentences of outputs: they put the codes and numbers of a Report into words. Every format takes them from here,
// so that a run is described in the same words everywhere.
#ifndef RFINJECT_CLI_WORDS_WORDS_H_
#define RFINJECT_CLI_WORDS_WORDS_H_

#include <string>
#include <string_view>
#include <vector>

#include "cli/report/facts/process.h"
#include "cli/report/rows/row.h"

namespace rfinject::cli {

struct Alarm;
struct Report;

// The sentences below the opening (opening.h). They are in this order, and each is left out when nothing is known of
// it: measured or estimated, on what; the precisions that the FLOP ran in; the shares attributed and counted; what is
// outside of the models; backward against forward; DRAM bytes by PM sampling against those of the kernels; counters
// that are shares; where theory comes from.
std::vector<std::string> FactsText(const Report& report);
// The opening, then the facts.
std::vector<std::string> HeadlineText(const Report& report);

// Which part of forward and backward has a layer, without a full stop.
std::string AttributedText(const Report& report);

// Where model FLOP of another run come from; empty when there are none.
std::string TheoryText(const Report& report);

// "ResNet layer1.0.conv1, forward, KERNEL"; empty for the whole run.
std::string AlarmWhere(const Alarm& alarm);

// Those of the trace, and what the folding has to say about it.
std::vector<DiagnosticInfo> DiagnosticsText(const Report& report);

// Returns a sentence for each of the first few places where torch.compile ended a graph, those that most bytes cross
// first, and one for the rest: "net.py:12 in Net.forward, 3.2 MB cross it: Tensor.item". None where no graph was
// ended.
std::vector<std::string> GraphBreakTexts(const Report& report);

// Says how well the GPU time is known, or why that cannot be said (docs/method/INTERVALS.md); also that the samples
// are of optimizer steps where an iteration of several is shown. Empty where all of it is exact, or nothing was
// sampled.
std::string IntervalText(const Report& report);

// "model", "phase", "layer", "op", "kernel", as --by has them.
std::string_view ByName(By by);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_WORDS_WORDS_H_
