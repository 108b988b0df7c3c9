// File: diff_words.h
//
// The sentences and names of comparisons.
#ifndef RFINJECT_CLI_VIEW_DIFF_WORDS_H_
#define RFINJECT_CLI_VIEW_DIFF_WORDS_H_

#include <optional>
#include <string>

#include "cli/report/compare/diff.h"

namespace rfinject::cli {

// Says in one or two sentences how chance was kept out of many comparisons; empty where nothing has an interval.
std::string CorrectionText(const RunDiff& pair);
// "batch 8 against 16", "these are different networks", …
std::string CaveatText(const Caveat& caveat);
// Which times of estimates are compared: ", expected", ", ideal"; nothing where both sides are measured.
std::string DiffTimesText(const RunDiff& pair);
// "within the noise; from 1.2 us on it would have been seen", or why it is chance where no interval is known.
std::string NoiseText(const Change& change);
// "real", what NoiseText() says, "unknown: drifting", …
std::string VerdictText(const Change& change);
// "step_time>+5%: +7.1 %, and real".
std::string GateText(const Gate& gate);

// What the table calls a row: "layer1.0.conv1", "(no layer)", the operator or the model.
std::string DiffRowName(const DiffRow& row, By by);
// "fwd", "bwd", "opt", …
std::string ShortPhase(std::optional<Phase> phase);
// "+1.2 ms", "-340 us", "0".
std::string SignedDuration(double ns);
// after / before as "x1.25"; "-" where one is 0.
std::string Times(const Change& change);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_VIEW_DIFF_WORDS_H_
