#include "cli/words/words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_join.h"
#include "cli/report/facts/queue.h"
#include "cli/report/report.h"
#include "cli/report/rows/kernel_name.h"
#include "cli/text/units.h"
#include "cli/words/opening.h"
#include "gpus/chips.h"

namespace rfinject::cli {
namespace {

std::string SourceLine(const Report& report) {
  switch (report.run.source) {
    case SourceKind::kEstimated:
      return SourceText(report) + ": from tensor shapes and a cost model, nothing was measured on a GPU" +
             (report.run.collector == kVirtualGpuCollector
                  ? "; the program ran on a virtual GPU, which computes nothing"
                  : "");
    case SourceKind::kMeasured:
      if (report.device.simulated()) {
        return "SIMULATED, not measured: the counters and times of " + report.device.name +
               " are made up by a test of rfinject's";
      }
      return SourceText(report) +
             (report.machine.name.empty()
                  ? ": no roofs are known for it (rfinject gpus lists those that are), so none are drawn"
                  : ", held against the datasheet of " + report.machine.name);
    case SourceKind::kImported:
      return SourceText(report);
    case SourceKind::kNone:
    case SourceKind::kUnspecified:
      break;
  }
  return "Nothing was measured: layers and steps only";
}

// The two estimates, which are never mixed: times, shares and advice are of the expected one.
std::string ExpectedLine(const Report& report) {
  if (!report.headline.expected) return {};
  const Headline::Expected& expected = *report.headline.expected;
  std::string line = "Expected " + Duration(expected.ns) + (report.steps.count > 0 ? " a step" : "") +
                     " (80 % interval " + Duration(expected.low_ns) + " to " + Duration(expected.high_ns) +
                     "), ideal " + Duration(expected.ideal_ns) +
                     ": times are expected ones, from a model calibrated on ";
  line += report.device.own_calibration.empty() ? "measurements of others"
                                                : "your own measurements (" + report.device.own_calibration + ")";
  constexpr double kAll = 0.995;
  if (expected.foreign_share >= kAll) return line + ", none of them of this GPU";
  if (expected.foreign_share > 0) line += "; for " + Percent(expected.foreign_share) + " of the time, of other GPUs";
  return line;
}

std::string WinogradLine(const Report& report) {
  if (!report.headline.expected || report.headline.expected->winograd_share <= 0) return {};
  return Percent(report.headline.expected->winograd_share) +
         " of GPU time is in 3x3 convolutions for which cuDNN has Winograd kernels: they execute 2.25 to 4 times "
         "fewer FLOP than are counted here, so such a layer can be above its roof";
}

std::string PrecisionLine(const Report& report) {
  std::string line;
  for (const Headline::PrecisionShare& one : report.headline.precisions) {
    line += (line.empty() ? "" : ", ") + Percent(one.share) + (line.empty() ? " of FLOP in " : " in ") +
            std::string(kPrecisionTitles[static_cast<size_t>(one.precision)]);
    if (one.legacy_share > 0) {
      const TensorPaths paths = TensorPathNames(report.machine.chip);
      line += " (" + Percent(one.legacy_share) + " of it over the " +
              std::string(paths.legacy.empty() ? "mma" : paths.legacy) + " path, whose peak is lower)";
    }
  }
  constexpr double kWorthAWord = 0.0005;  // of all, below which shares are "<0.1 %"
  const double moves = report.attribution.constant_moves, flop = report.total.sums.total_flop();
  if (!line.empty() && moves > kWorthAWord * flop) {
    line += "; instructions of half precision that only move constants, " + Percent(moves / (flop + moves)) +
            " of what was counted, are no FLOP";
  }
  return line;
}

std::string ShareLine(const Report& report) {
  if (report.total.sums.launches == 0) return "No launch was recorded in the measured steps";
  std::string line = AttributedText(report);
  // An estimate has counters by construction; saying so would suggest that something was counted.
  if (report.run.source != SourceKind::kEstimated && report.total.sums.time_ns() > 0) {
    const bool of_shapes = report.run.source == SourceKind::kImported && report.total.sums.compulsory_bytes() > 0;
    line += "; " + Percent(report.attribution.counters_share) + " of GPU time has " +
            (of_shapes ? "FLOP and bytes" : "counters");
  }
  if (report.attribution.untimed_launches > 0) {
    const double share =
        static_cast<double>(report.attribution.untimed_launches) / static_cast<double>(report.total.sums.launches);
    line += "; " + Percent(share) + " of the launches were never sampled (" +
            Counted(report.attribution.untimed_keys, "kind", "kinds") +
            "): their time is not known, and is in no sum";
  }
  return line;
}

std::string OutsideLine(const Report& report) {
  if (report.headline.outside_share <= 0) return {};
  return Percent(report.headline.outside_share) + " of GPU time is of no model: " +
         absl::StrJoin(report.attribution.outside_ops, ", ",
                       [](std::string* out, const std::string& name) { out->append(ShortKernelName(name)); }) +
         (report.headline.outside_initialises
              ? "; if that is the program making its weights before the first step, --skip 1 leaves it out"
              : "");
}

std::string LaunchFloorLine(const Report& report) {
  constexpr double kWorthAWord = 0.005;
  if (report.headline.launch_share < kWorthAWord) return {};
  const LaunchInterval& interval = report.queue.interval;
  const std::string_view why = interval.of == HostTime::kGiven ? " (--host-us)" : " at best (--launch-floor)";
  return "Bound by launching is what the GPU waits for: the host launches a kernel every " + Duration(interval.ns) +
         std::string(why) + ", and by then the GPU has done all before it";
}

std::string StepLine(const Report& report) {
  if (report.queue.step_ns <= 0) return {};
  const bool here = report.queue.host_of == HostTime::kThisMachine;
  std::string line = here ? "With the host that it ran on here, a step takes " : "A step takes ";
  line += Duration(report.queue.step_ns) + " by the clock: the longer of GPU time, " + Duration(report.clock.gpu_ns) +
          " and " + Duration(kGapOfStepNs) + " between two kernels, and host time, " +
          Duration(report.queue.host_ns) + " for " + Count(std::floor(report.queue.launches)) + " launches";
  if (report.queue.launch_bound) {
    line += ". It is bound by launching: the GPU waits " + Percent(report.queue.gpu_waits_share) + " of the time";
  }
  if (here)
    line += ". That host is not the GPU's, and its time holds what observing it costs; --host-us gives another";
  return line;
}

std::string RatioLine(const Report& report) {
  const double time = NumberOf(report, "backward_time_per_forward_time");
  const double model = NumberOf(report, "backward_model_flop_per_forward_model_flop");
  const double flop = model > 0 ? model : NumberOf(report, "backward_flop_per_forward_flop");
  if (time <= 0) return {};
  return "Backward over forward: " +
         (flop > 0 ? Plain(flop) + (model > 0 ? " times the model FLOP, " : " times the FLOP, ") : std::string()) +
         Plain(time) + " times the GPU time";
}

std::string SharedLine(const Report& report) {
  if (!report.headline.shared_counters) return {};
  return std::string("FLOP and bytes marked with ~ were counted layer by layer and are not split between ") +
         (report.by == By::kOp ? "operators" : "kernels") +
         ": each launch has an equal share of its layer's. --by layer has the sums themselves";
}

std::string DifferingLayersText(const TheoryUse& theory) {
  return Grouped(theory.missing_layers) + " of " + Grouped(theory.layers) + " layers of this run (" +
         theory.missing_layer +
         ", for one) are not in the estimate given as theory: it is of another network, and the model FLOP beside "
         "these layers are not theirs";
}

std::string GraphBreakText(const trace::GraphBreak& place) {
  std::string text = place.file.empty() ? "a line that torch does not say" : place.file;
  if (place.line > 0) text += ":" + std::to_string(place.line);
  if (!place.function.empty()) text += " in " + place.function;
  if (place.count > 1) text += ", compiled " + Grouped(place.count) + " times";
  if (place.bytes > 0) text += ", " + WithPrefix(static_cast<double>(place.bytes), "B") + " cross it";
  if (!place.reason.empty()) text += ": " + place.reason;
  return text;
}

}  // namespace

std::vector<std::string> FactsText(const Report& report) {
  if (report.rows_are_runs) return {};  // the runs have headlines of their own
  std::vector<std::string> lines = {
      SourceLine(report),         ExpectedLine(report),    StepLine(report),     CountingText(report.clock),
      SlowStepsText(report.slow), PrecisionLine(report),   WinogradLine(report), ShareLine(report),
      OutsideLine(report),        LaunchFloorLine(report), RatioLine(report),    PmSamplingText(report.sampling),
      ClockText(report.device),   SharedLine(report),      TheoryText(report)};
  std::erase_if(lines, [](const std::string& line) { return line.empty(); });
  return lines;
}

std::vector<std::string> HeadlineText(const Report& report) {
  std::vector<std::string> lines = OpeningText(report);
  for (std::string& fact : FactsText(report)) lines.push_back(std::move(fact));
  return lines;
}

std::string AttributedText(const Report& report) {
  if (!report.headline.has_forward_or_backward) return "No launch is known to be of the forward or backward";
  const bool timed = report.total.sums.time_ns() > 0;
  if (report.attribution.share == 0 && report.process.tier == kTierNamesOnly) return "No launch has a layer";
  std::string text = Percent(report.attribution.share) + " of forward and backward " +
                     (timed ? "GPU time is attributed to layers" : "launches have a layer");
  if (report.attribution.without_layer > 0)
    text += " (" + Grouped(report.attribution.without_layer) + " launches " + (timed ? "are" : "do") + " not)";
  return text;
}

std::string TheoryText(const Report& report) {
  const TheoryUse& theory = report.theory;
  if (theory.state == TheoryUse::State::kNone) return {};
  if (theory.state == TheoryUse::State::kMissing) {
    return "Theory: no estimated run of this network and mode was given";
  }
  const std::string batch = "batch " + Grouped(theory.batch_size);
  const std::string extent = theory.samples > 0 ? Grouped(theory.samples) + " samples"
                             : theory.steps > 0
                                 ? Counted(theory.steps, "step", "steps")
                                 : "one step of " + batch + ", because the run does not say how many it holds";
  std::string line = "Theory: model FLOP of " + extent + " from an estimated run of " + theory.model + ", " + batch;
  if (report.total.sums.total_flop() > 0) {
    line += "; executed / model FLOP is " + Plain(report.total.derived.executed_over_model);
  }
  if (!theory.bytes) line += "; compulsory bytes left out, the batches differ";
  return theory.missing_layers > 0 ? "WARNING: " + DifferingLayersText(theory) + ". " + line : line;
}

std::string AlarmWhere(const Alarm& alarm) {
  if (!alarm.where) return {};
  constexpr size_t kMostKernel = 80;
  const AlarmPlace& place = *alarm.where;
  std::string where = place.model;
  if (!place.layer.empty()) where += (where.empty() ? "" : " ") + place.layer;
  where += (where.empty() ? "" : ", ") + std::string(kPhaseNames[static_cast<size_t>(place.phase)]);
  if (place.kernel.empty()) return where;
  return where + ", " +
         (place.kernel.size() > kMostKernel ? place.kernel.substr(0, kMostKernel - 3) + "..." : place.kernel);
}

std::vector<DiagnosticInfo> DiagnosticsText(const Report& report) {
  std::vector<DiagnosticInfo> diagnostics = report.kept.diagnostic;
  const auto add = [&](Severity severity, const char* id, std::string text, const char* remedy = "") {
    diagnostics.push_back({.severity = severity, .id = id, .text = std::move(text), .remedy = remedy});
  };
  if (report.process.unfinished > 0) {
    add(Severity::kInfo, "unfinished",
        Grouped(report.process.unfinished) + " of " + Grouped(report.process.count) +
            " processes left no end of their trace: still running, or killed (dmesg says what the kernel killed for "
            "lack of memory)");
  }
  uint64_t stopped_steps = 0, compiling_steps = 0;
  for (const ProcessInfo& process : report.process.list) {
    stopped_steps += process.stopped_steps;
    compiling_steps += process.compiling_steps;
  }
  if (stopped_steps > 0) {
    add(Severity::kInfo, "stopped-steps",
        Counted(stopped_steps, "step is", "steps are") +
            " in no sum: measuring was stopped (rfinject.stop, rfinject control, --start-stopped)");
  }
  if (compiling_steps > 0) {
    add(Severity::kInfo, "compiling-steps",
        Counted(compiling_steps, "step is", "steps are") +
            " in no sum: torch.compile was compiling, and tried kernels out",
        report.steps.count > 0 ? "" : "a program of more steps has some that compile nothing");
  }
  if (report.steps.by == StepBy::kIteration && report.steps.count > 0 &&
      report.steps.optimizer > report.steps.count) {
    const uint64_t left = report.steps.optimizer % report.steps.count;
    if (left > 0 && left < report.steps.optimizer / report.steps.count) {
      add(Severity::kInfo, "incomplete-iteration",
          Counted(left, "optimizer step is", "optimizer steps are") +
              " of an iteration that is not complete: what was done in it is in the sums");
    }
  }
  if (const std::vector<std::string>& commands = report.process.different_commands; !commands.empty()) {
    add(Severity::kWarning, "different-commands",
        "what is added up here was started by " + Grouped(commands.size()) + " different commands: " + commands[0] +
            "; " + commands[1] + (commands.size() > 2 ? "; ..." : ""));
  }
  if (report.theory.missing_layers > 0) {
    add(Severity::kWarning, "theory-of-another-network", DifferingLayersText(report.theory),
        "give --theory an estimate of the same program: rfinject --estimate GPU PROGRAM");
  }
  return diagnostics;
}

std::vector<std::string> GraphBreakTexts(const Report& report) {
  constexpr size_t kMost = 8;
  std::vector<std::string> texts;
  const auto& breaks = report.kept.graph_break;
  for (size_t i = 0; i < std::min(breaks.size(), kMost); ++i) texts.push_back(GraphBreakText(breaks[i]));
  if (breaks.size() > kMost) {
    texts.push_back(Grouped(breaks.size() - kMost) + " more places (rfinject report --format json has all)");
  }
  return texts;
}

std::string IntervalText(const Report& report) {
  const Knowledge& time = report.total.time;
  std::string line;
  switch (time.trust) {
    case Trust::kNone:
      return {};
    case Trust::kByStep:
    case Trust::kByLaunch:
      if (time.relative <= 0) return {};
      line = "GPU time is known to +-" + Percent(time.relative) + " (95 %), ";
      line += time.trust == Trust::kByLaunch
                  ? "if launches are independent of one another: the trace has no sums by step"
                  : "from " + Grouped(report.slow.sampled) + " sampled steps" +
                        (time.close ? ", some of them close together" : "");
      break;
    case Trust::kFewSteps:
      line = "Few steps: too few were sampled, or too close together, for an interval of the GPU time";
      break;
    case Trust::kDrifting:
      line =
          "Drifting: GPU time has no interval, because steps resemble one another for longer than sampled ones are "
          "apart";
      break;
    case Trust::kTwoSpeeds:
      line = "Two speeds: GPU time has no interval, because steps have two durations and change between them seldom";
      break;
  }
  const bool by_step = report.slow.sampled > 0 && time.trust != Trust::kByLaunch;
  if (by_step && report.steps.by == StepBy::kIteration && report.steps.count > 0 &&
      report.steps.optimizer >= 2 * report.steps.count) {
    line += "; sampled are single steps of an optimizer, which a shown iteration has several of";
  }
  return line;
}

std::string_view ByName(By by) {
  static constexpr std::string_view kNames[] = {"model", "phase", "layer", "op", "kernel", "source", "class"};
  return kNames[static_cast<size_t>(by)];
}

}  // namespace rfinject::cli
