// The outputs of `diff` for continuous integration: Markdown for a comment on a change, and JUnit's XML for what
// shows tests.
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "cli/emit/code_points.h"
#include "cli/emit/diff.h"
#include "cli/emit/markup.h"
#include "cli/report/units.h"

namespace rfinject::cli {
namespace {

std::string Xml(std::string_view text) { return Escaped(text).text(); }

std::string SignedPercent(double share) { return (share < 0 ? "-" : "+") + Percent(std::fabs(share)); }

std::string Margin(const Change& change) { return change.standard > 0 ? " ± " + Duration(change.half_width) : ""; }

}  // namespace

std::string CorrectionText(const RunDiff& pair) {
  if (pair.comparisons == 0) return "";
  const std::string many = Grouped(pair.comparisons) + (pair.comparisons == 1 ? " comparison" : " comparisons");
  std::string text;
  switch (pair.correction) {
    case Correction::kFalseDiscovery:
      text =
          "Real: of what is called so, 5 % is chance (false discovery rate over " + many + ", Benjamini-Hochberg).";
      break;
    case Correction::kFamily:
      text = "Real: one comparison of two equal runs in 20 calls anything so (family-wise over " + many + ", Holm).";
      break;
    case Correction::kNone:
      text = "Real: one in 20 of " + many + " is called so by chance (no correction).";
      break;
  }
  return text + (pair.paired ? " Times are compared step by step: both runs sampled the same ones." : "");
}

std::string VerdictText(const Change& change) {
  switch (change.verdict) {
    case Verdict::kReal:
      return "real";
    case Verdict::kSame:
      return "same";
    case Verdict::kNoise:
      return "no change seen; from " + Duration(change.visible) + " on it would have been";
    case Verdict::kUnknown:
      return change.trust == Trust::kNone || change.trust == Trust::kByLaunch
                 ? "unknown: sampled once"
                 : "unknown: " + std::string(TrustName(change.trust));
    case Verdict::kOneSide:
      break;
  }
  return "one side only";
}

std::string GateText(const Gate& gate) {
  switch (gate.outcome) {
    case Gate::Outcome::kFails:
      return gate.text + ": " + SignedPercent(gate.change) + ", and real";
    case Gate::Outcome::kUnknown:
      return gate.text + ": cannot be judged, there is no interval";
    case Gate::Outcome::kHolds:
      break;
  }
  return gate.text + ": holds, " + SignedPercent(gate.change) +
         (gate.visible > 0 ? "; a change from " + Percent(gate.visible) + " on would have been seen" : "");
}

void EmitDiffMarkdown(const Diff& diff, const TableOptions& options, std::ostream& out) {
  for (const Gate& gate : diff.gates) {
    out << (gate.outcome == Gate::Outcome::kFails ? "**FAILS** " : "") << MarkdownText(GateText(gate)) << "\n\n";
  }
  for (const RunDiff& pair : diff.pairs) {
    out << "### " << MarkdownText(pair.before_title) << " → " << MarkdownText(pair.after_title) << "\n\n";
    for (const Caveat& caveat : pair.caveats) out << "- " << MarkdownText(CaveatText(caveat)) << "\n";
    if (!pair.caveats.empty()) out << '\n';
    const DiffExcerpt excerpt = ExcerptOf(pair, options.max_rows);
    out << "| | phase | before | after | change | |\n|---|---|--:|--:|--:|---|\n";
    const auto line = [&](const DiffRow& row, const std::string& name) {
      const Change& time = row[Compared::kTime];
      out << "| " << MarkdownText(name) << " | " << ShortPhase(row.phase) << " | "
          << (row.in_before ? Duration(time.before) : "") << " | " << (row.in_after ? Duration(time.after) : "")
          << " | " << SignedDuration(time.difference()) << Margin(time) << " | " << VerdictText(time) << " |\n";
    };
    line(pair.total, (pair.per_step ? "GPU time a step" : "GPU time") + DiffTimesText(pair));
    for (const DiffRow* row : excerpt.rows) line(*row, DiffRowName(*row, diff.by));
    if (excerpt.left_out > 0) out << "\n" << Grouped(excerpt.left_out) << " more rows changed.\n";
    const std::string correction = CorrectionText(pair);
    if (!correction.empty()) out << "\n" << correction << "\n";
    out << '\n';
  }
  for (const std::string& title : diff.only_before) out << "Only in A: " << MarkdownText(title) << "\n\n";
  for (const std::string& title : diff.only_after) out << "Only in B: " << MarkdownText(title) << "\n\n";
}

void EmitDiffJunit(const Diff& diff, std::ostream& out) {
  size_t failures = 0, skipped = 0;
  for (const Gate& gate : diff.gates) {
    failures += gate.outcome == Gate::Outcome::kFails;
    skipped += gate.outcome == Gate::Outcome::kUnknown;
  }
  out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"rfinject diff\" tests=\"" << diff.gates.size()
      << "\" failures=\"" << failures << "\" skipped=\"" << skipped << "\">\n";
  for (const Gate& gate : diff.gates) {
    out << "  <testcase classname=\"rfinject\" name=\"" << Xml(gate.text) << "\"";
    if (gate.outcome == Gate::Outcome::kHolds) {
      out << "/>\n";
      continue;
    }
    const char* element = gate.outcome == Gate::Outcome::kFails ? "failure" : "skipped";
    out << ">\n    <" << element << " message=\"" << Xml(GateText(gate)) << "\"/>\n  </testcase>\n";
  }
  out << "  <system-out>";
  for (const RunDiff& pair : diff.pairs) {
    out << Xml(pair.before_title) << " -> " << Xml(pair.after_title) << "\n";
    for (const DiffRow& row : pair.rows) {
      const Change& time = row[Compared::kTime];
      if (time.verdict != Verdict::kReal) continue;
      out << Xml(DiffRowName(row, diff.by)) << " " << ShortPhase(row.phase) << " "
          << SignedDuration(time.difference()) << "\n";
    }
    out << Xml(CorrectionText(pair)) << "\n";
  }
  out << "</system-out>\n</testsuite>\n";
}

}  // namespace rfinject::cli
