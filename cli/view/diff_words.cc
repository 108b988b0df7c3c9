#include "cli/view/diff_words.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "cli/text/units.h"

namespace rfinject::cli {
namespace {

std::string SignedPercent(double share) { return (share < 0 ? "-" : "+") + Percent(std::fabs(share)); }

}  // namespace

std::string DiffTimesText(const RunDiff& pair) {
  if (pair.expected) return pair.exact ? ", expected" : ", expected where estimated";
  return pair.exact ? ", ideal" : "";
}

std::string CaveatText(const Caveat& caveat) {
  const auto against = [](std::string_view what, std::string_view was, std::string_view is) {
    return absl::StrFormat("%s%s%s against %s", what, what.empty() ? "" : " ", was, is);
  };
  const auto switched = [&](std::string_view what) {
    const auto word = [](uint64_t state) { return state == 1 ? "off" : "on"; };
    return against(what, word(caveat.before), word(caveat.after));
  };
  switch (caveat.of) {
    case Caveat::Of::kNetwork:
      return "these are different networks";
    case Caveat::Of::kSource: {
      const auto was = static_cast<SourceKind>(caveat.before), is = static_cast<SourceKind>(caveat.after);
      const bool estimated = was == SourceKind::kEstimated || is == SourceKind::kEstimated;
      return absl::StrFormat("one side is %s, the other %s: part of every change is %s", SourceName(was),
                             SourceName(is), estimated ? "the cost model's error" : "how the tools count");
    }
    case Caveat::Of::kBatch:
      return against("batch", Grouped(caveat.before), Grouped(caveat.after));
    case Caveat::Of::kMode: {
      const auto word = [](uint64_t training) { return training != 0 ? "training" : "inference"; };
      return against("", word(caveat.before), word(caveat.after));
    }
    case Caveat::Of::kTf32InConvolutions:
      return switched("TF32 in convolutions");
    case Caveat::Of::kTf32InProducts:
      return switched("TF32 in matrix products");
    case Caveat::Of::kCudnnBenchmark:
      return switched("cudnn.benchmark");
    case Caveat::Of::kCudnnDeterministic:
      return switched("cudnn.deterministic");
    case Caveat::Of::kAutocast: {
      const auto word = [](const std::string& dtype) { return dtype.empty() ? std::string("none") : dtype; };
      return against("autocast", word(caveat.before_text), word(caveat.after_text));
    }
    case Caveat::Of::kGpu:
      return against("two GPUs are compared:", caveat.before_text, caveat.after_text);
    case Caveat::Of::kTorchVersion:
      break;
  }
  return against("torch", caveat.before_text, caveat.after_text);
}

std::string DiffRowName(const DiffRow& row, By by) {
  if (by == By::kModel || by == By::kPhase) return row.model.empty() ? "(no layer)" : row.model;
  if (by == By::kOp) return row.op;
  std::string name = row.model.empty() ? "(no layer)" : row.layer.empty() ? row.model : row.layer;
  if (by == By::kKernel) name += " " + row.op;
  return name;
}

std::string ShortPhase(std::optional<Phase> phase) {
  if (phase == Phase::kForward) return "fwd";
  if (phase == Phase::kBackward) return "bwd";
  if (phase == Phase::kOptimizer) return "opt";
  if (phase == Phase::kRecompute) return "again";
  if (phase == Phase::kCommunication) return "comm";
  return std::string(PhaseName(phase));
}

std::string SignedDuration(double ns) {
  if (ns == 0) return "0";
  return (ns > 0 ? "+" : "-") + Duration(std::fabs(ns));
}

std::string Times(const Change& change) { return change.ratio > 0 ? "x" + Plain(change.ratio) : "-"; }

std::string CorrectionText(const RunDiff& pair) {
  if (pair.comparisons == 0) return "";
  const std::string many = Counted(pair.comparisons, "comparison", "comparisons");
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
  if (pair.within_steps) text += " A layer's time is also compared with that of the other layers in the same steps.";
  if (pair.in_order) text += " Both recordings have the same launches, which are compared in order.";
  return text + (pair.paired ? " Times are compared step by step: both runs sampled the same ones." : "");
}

std::string NoiseText(const Change& change) {
  if (change.visible > 0) return "within the noise; from " + Duration(change.visible) + " on it would have been seen";
  return "chance: the steps of each run differ as much";
}

std::string VerdictText(const Change& change) {
  switch (change.verdict) {
    case Verdict::kReal:
      return "real";
    case Verdict::kSame:
      return "same";
    case Verdict::kNoise:
      return NoiseText(change);
    case Verdict::kUnknown:
      return change.trust == Trust::kNone || change.trust == Trust::kByLaunch
                 ? "unknown: one step of each is known"
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
  return gate.text + ": passes, the change is " + SignedPercent(gate.change) +
         (gate.visible > 0 ? "; a change from " + Percent(gate.visible) + " on would have been seen" : "");
}

}  // namespace rfinject::cli
