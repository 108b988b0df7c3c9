// File: diff.h
//
// The outputs of `diff`. Each format has a function, as in emit.h.
#ifndef RFINJECT_CLI_EMIT_DIFF_H_
#define RFINJECT_CLI_EMIT_DIFF_H_

#include <ostream>

#include "cli/emit/emit.h"
#include "cli/report/diff.h"

namespace rfinject::cli {

void EmitDiffTable(const Diff& diff, const TableOptions& options, std::ostream& out);
void EmitDiffJson(const Diff& diff, std::ostream& out);  // schema rfinject.diff/1
// Every row, the unchanged ones too.
void EmitDiffCsv(const Diff& diff, std::ostream& out, CsvTexts texts = CsvTexts::kForSpreadsheets);
// A pair of runs is one roofline with an arrow from where a layer was to where it is, or two on the same axes where
// the GPUs differ.
void EmitDiffSvg(const Diff& diff, std::ostream& out);
void EmitDiffHtml(const Diff& diff, std::ostream& out);  // the pictures and the table; one self-contained file

void EmitDiffMarkdown(const Diff& diff, const TableOptions& options, std::ostream& out);  // for a comment on a change
void EmitDiffJunit(const Diff& diff, std::ostream& out);  // a test case a gate, for what shows tests

// Says in one or two sentences how chance was kept out of many comparisons; empty where nothing has an interval.
std::string CorrectionText(const RunDiff& pair);
// "batch 8 against 16", "these are different networks", …
std::string CaveatText(const Caveat& caveat);
// Which times of estimates are compared: ", expected", ", ideal"; nothing where both sides are measured.
std::string DiffTimesText(const RunDiff& pair);
// "real", "no change seen; from 1.2 us on it would have been", "unknown: drifting", …
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

#endif  // RFINJECT_CLI_EMIT_DIFF_H_
