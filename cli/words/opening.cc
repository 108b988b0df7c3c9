#include "cli/words/opening.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_join.h"
#include "cli/report/facts/mfu.h"
#include "cli/report/rows/picture_data.h"
#include "cli/text/units.h"

namespace rfinject::cli {
namespace {

// What a newcomer is told of first; more is in `rfinject advise`.
constexpr size_t kGains = 3;
constexpr double kWorthAWord = 0.005, kWorthASentence = 0.1;

double StepNs(const Report& report) { return PerStep(report, report.total.sums.time_ns()); }

// "backward 52 %, forward 26 %, optimizer 22 %", the longest first.
std::string PhaseShares(const Report& report) {
  std::vector<Row> phases = PhaseTotals(report);
  std::stable_sort(phases.begin(), phases.end(),
                   [](const Row& a, const Row& b) { return a.time_share > b.time_share; });
  constexpr size_t kMost = 4;
  std::string text;
  for (size_t i = 0; i < std::min(phases.size(), kMost); ++i) {
    if (phases[i].time_share < kWorthAWord) break;
    text +=
        (text.empty() ? "" : ", ") + std::string(PhaseName(phases[i].phase)) + " " + Percent(phases[i].time_share);
  }
  return text;
}

}  // namespace

std::string SourceText(const Report& report) {
  switch (report.run.source) {
    case SourceKind::kEstimated:
      return "ESTIMATED on " + report.run.estimated_gpu;
    case SourceKind::kMeasured:
      return "Measured on " + (report.device.name.empty() ? "an unnamed GPU" : report.device.name);
    case SourceKind::kImported:
      return "Imported from " + (report.run.collector.empty() ? "another tool" : report.run.collector) +
             (report.device.name.empty() ? "" : ", measured on " + report.device.name);
    case SourceKind::kNone:
    case SourceKind::kUnspecified:
      break;
  }
  return "Nothing was measured: no counters";
}

std::string EndText(const Report& report) {
  if (report.process.unfinished == 0) return {};
  if (report.process.count <= 1) return ", of a trace without its end";
  return ", " + Grouped(report.process.unfinished) + " of " + Grouped(report.process.count) +
         " traces without their end";
}

std::string CostText(const Report& report, std::string_view of, bool phases) {
  std::string line = SourceText(report) + std::string(of) + ": ";
  if (report.total.sums.time_ns() <= 0) return line + "no kernel has a time";
  const std::string_view what = report.steps.count == 0   ? "all that was recorded"
                                : report.steps.validation ? "a batch of validation"
                                                          : "a step";
  line += std::string(what) + " takes ";
  if (report.queue.host_of == HostTime::kGiven) {
    line += Duration(report.queue.step_ns) + ", ";
  } else if (const double wall_ns = report.clock.measured_wall_ns(); wall_ns > 0) {
    line += Duration(wall_ns) + (report.clock.of == StepClockOf::kGpu ? " by the GPU's clock, " : " by the clock, ");
  }
  line += Duration(StepNs(report)) + " of GPU time";
  const double wall_ns = report.clock.measured_wall_ns();
  if (wall_ns > 0 && StepNs(report) > wall_ns) line += " in kernels that overlap";
  if (const auto& expected = report.headline.expected; expected && expected->high_ns > 0) {
    line += " (80 % interval " + Duration(expected->low_ns) + " to " + Duration(expected->high_ns) + ")";
  }
  const std::string shares = phases ? PhaseShares(report) : std::string();
  return shares.empty() ? line : line + ": " + shares;
}

namespace {

// Whether a step would be shorter by a tenth without this wait.
bool Matters(const StepWaits& waits, const StepPart& wait) {
  const std::optional<double> gain = waits.GainWithout(wait);
  return gain && *gain >= kWorthASentence * waits.step_ns() && *gain > 0;
}

// "by the clock the GPU is busy for 31 % of a step, and the host waits 55 % for data; launch gaps are 14 % of it":
// where one of them is worth a change of the program; else empty.
std::string WaitShareText(const Report& report) {
  const StepWaits& waits = report.waits;
  const std::optional<double> busy = waits.Share(waits.gpu_busy);
  const bool data = Matters(waits, waits.data_wait), gpu = Matters(waits, waits.gpu_wait);
  // On a virtual GPU launching takes what it takes on this host, with what observing it costs.
  const bool gaps =
      report.run.source != SourceKind::kEstimated && waits.Share(waits.launch_gaps).value_or(0) >= kWorthASentence;
  const bool communication = waits.Share(waits.exposed_communication).value_or(0) >= kWorthASentence;
  if (!busy || (!data && !gpu && !gaps && !communication)) return {};
  std::string text = waits.clock == StepClockOf::kGpu ? "by its own clock" : "by the clock";
  text += " the GPU is busy for " + Percent(*busy) + " of a step";
  if (data || gpu) text += ", and the host waits ";
  if (data) text += Percent(*waits.Share(waits.data_wait)) + " for data";
  if (gpu) text += (data ? ", " : "") + Percent(*waits.Share(waits.gpu_wait)) + " for the GPU";
  if (gaps) {
    text += std::string("; launch gaps are ") + (waits.clock == StepClockOf::kHost ? "at least " : "") +
            Percent(*waits.Share(waits.launch_gaps)) + " of it";
  }
  if (communication) {
    text += "; communication that nothing hides is " + Percent(*waits.Share(waits.exposed_communication)) + " of it";
  }
  return text;
}

// "copies between host and GPU run at 27.7 of 63.0 GB/s", where they take a part of the time that is worth a
// sentence; with their share where the limit does not say it. Of an estimate they run at what its model has.
std::string CopyRateText(const Report& report, bool with_share) {
  const Sums& sums = report.total.sums;
  const double ns = sums[Quantity::kCopyTime];
  if (report.run.source == SourceKind::kEstimated || !(ns > kWorthASentence * sums.time_ns())) return {};
  std::string text = "copies between host and GPU ";
  if (with_share) text += "are " + Percent(ns / sums.time_ns()) + " of GPU time, and ";
  text += "run at " + WithPrefix(sums[Quantity::kPcieBytes] / ns * 1e9, "B/s");
  const double link = report.machine.pcie_bytes_per_s;
  return link > 0 ? text + " of the link's " + WithPrefix(link, "B/s") : text;
}

}  // namespace

std::string NothingText(const Report& report) {
  if (report.rows_are_runs || report.total.sums.launches > 0) return {};
  const std::string begin = "nothing was measured: ";
  // What the library said of it; the gravest, if it said several things.
  const DiagnosticInfo* gravest = nullptr;
  for (const DiagnosticInfo& diagnostic : report.kept.diagnostic) {
    if (diagnostic.remedy.empty() && diagnostic.severity == Severity::kInfo) continue;
    if (gravest == nullptr || diagnostic.severity > gravest->severity) gravest = &diagnostic;
  }
  if (gravest != nullptr) {
    return begin + gravest->text + (gravest->remedy.empty() ? "" : " (" + gravest->remedy + ")");
  }
  const std::string remedy = " (rfinject doctor says what works on this machine)";
  if (!report.kept.drop.empty()) {
    const trace::Drop& drop = report.kept.drop.front();
    return begin + Grouped(drop.count) + " lost: " + drop.what + remedy;
  }
  if (report.steps.count == 0) {
    return begin + (report.process.unfinished > 0 ? "no step has ended yet, or the program was killed before one did "
                                                    "(dmesg says what the kernel killed for lack of memory)"
                                                  : "no step ended" + remedy);
  }
  return begin + "no kernel ran in " + Counted(report.steps.count, "step", "steps") + remedy;
}

std::string NothingText(std::span<const Report> reports) {
  std::string nothing;
  for (const Report& report : reports) {
    std::string text = NothingText(report);
    if (text.empty()) return {};
    if (nothing.empty()) nothing = std::move(text);
  }
  return nothing;
}

std::string LimitText(const Report& report) {
  const Headline& headline = report.headline;
  const Derived& derived = report.total.derived;
  std::array<std::pair<double, std::string_view>, 5> parts = {{{headline.launch_share, "launching"},
                                                               {headline.memory_share, "memory bandwidth"},
                                                               {headline.compute_share, "arithmetic"},
                                                               {headline.pcie_share, "PCIe"},
                                                               {headline.nvlink_share, "NVLink"}}};
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string line;
  double known = 0;
  for (const auto& [share, name] : parts) {
    known += share;
    if (share < kWorthAWord) continue;
    line += (line.empty() ? "Held back by " : ", ") + std::string(name) + " " + Percent(share);
  }
  if (line.empty()) {
    if (report.total.sums.time_ns() <= 0) return {};
    if (!report.machine.name.empty()) {
      return known > 0
                 ? "What holds it back cannot be told: FLOP and bytes are known of " + Percent(known) + " of GPU time"
                 : std::string();
    }
    const std::string copies = CopyRateText(report, /*with_share=*/true);
    return "What holds it back cannot be told: the roofs of this GPU are not known (rfinject gpus lists those that "
           "are)" +
           (copies.empty() ? "" : "; " + copies);
  }
  line += " of GPU time; ";
  const bool all_known = 1 - known < kWorthASentence;
  if (report.total.sums.total_flop() > 0 && all_known) {
    line += WithPrefix(derived.performance_flop_per_s, "FLOP/s") + ", ";
  }
  line += all_known ? Percent(derived.attainable_share) + " of attainable"
                    : Percent(headline.attainable_share) + " of attainable there, and the rest is not known";
  if (const std::string mfu = MfuText(report); !mfu.empty()) line += "; " + mfu;
  if (const std::string copies = CopyRateText(report, /*with_share=*/false); !copies.empty()) line += "; " + copies;
  if (const std::string waits = WaitShareText(report); !waits.empty()) {
    line += "; " + waits;
  } else if (headline.idle_share >= kWorthASentence) {
    line += "; the GPU is idle for " + Percent(headline.idle_share) + " of a step";
  }
  return line;
}

namespace {

// Nothing that the program does already.
std::string_view RemedyOf(Bound bound, const Attribution& program) {
  switch (bound) {
    case Bound::kLaunch:
      return program.compiled
                 ? "bound by launching: fewer and larger launches (a larger batch, CUDA graphs)"
                 : "bound by launching: fewer and larger launches (a larger batch, CUDA graphs, torch.compile)";
    case Bound::kMemory:
      return program.compiled ? "bound by memory: halve the bytes (autocast)"
                              : "bound by memory: fuse operators (torch.compile), or halve the bytes (autocast)";
    case Bound::kCompute:
      return "bound by arithmetic: sizes that fill the GPU (a larger batch, multiples of 8), or a lower precision";
    case Bound::kPcie:
      return program.pinned
                 ? "bound by PCIe: copy less (keep it on the GPU, smaller types), or copy while the GPU computes "
                   "(non_blocking, on a stream of its own)"
                 : "bound by PCIe: copy less (keep it on the GPU, smaller types), or copy while the GPU computes "
                   "(pin_memory, non_blocking)";
    case Bound::kNvlink:
      return "bound by NVLink: communicate less (gradients in half precision), or while the GPU computes";
    case Bound::kUnknown:
      break;
  }
  return "nobody knows what it is bound by";
}

std::string PlaceText(const Report& report, const Headline::Slack& slack) {
  if (slack.phase) return std::string(PhaseName(slack.phase)) + " (in no layer)";
  // In a run of several networks a path alone names nothing.
  std::string layer = slack.layer.empty()            ? slack.model
                      : report.run.models.size() > 1 ? slack.model + "/" + slack.layer
                                                     : slack.layer;
  if (slack.layers == 1) return layer;
  const std::string of_class = slack.class_name.empty() ? "" : " " + slack.class_name;
  return Grouped(slack.layers) + " layers" + of_class + ", most in " + layer;
}

// Whether advice is given already for what this place takes.
bool IsAdvised(const Report& report, const Headline::Slack& slack) {
  if (slack.phase != Phase::kOptimizer) return false;
  return std::any_of(report.advice.advice.begin(), report.advice.advice.end(), [](const Advice& one) {
    return one.state == Advice::State::kHolds && one.rule->unproven.empty() && one.rule->group == "optimizer";
  });
}

}  // namespace

std::string GainText(const Report& report, const Advice& advice) {
  const std::optional<Fact> of = FactNamed(advice.rule->of);
  const std::optional<double> step_ns = of ? report.advice.facts[static_cast<size_t>(*of)] : std::nullopt;
  return GainText(advice.gain_ns, step_ns.value_or(StepNs(report))) + (of ? " by the clock" : "");
}

std::string GainText(double gain_ns, double step_ns) {
  return "-" + Duration(gain_ns) + (step_ns > 0 ? " (" + Percent(gain_ns / step_ns) + ")" : "");
}

namespace {

std::string RowName(const Row& row) {
  std::string name;
  const auto add = [&name](std::string_view part) {
    if (!part.empty()) name += (name.empty() ? "" : " ") + std::string(part);
  };
  if (row.phase) add(PhaseName(row.phase));
  add(row.layer.empty() && row.op.empty() ? row.model : row.layer);
  add(row.op);
  return name;
}

}  // namespace

std::string UnusualText(const Report& report) {
  if (!(report.total.sums[Quantity::kUsualTime] > 0) || !(report.total.sums.time_ns() > 0)) return {};
  constexpr double kWorthNaming = 0.005;
  constexpr size_t kNamed = 3;
  const auto beyond = [](const Row& row) {
    return row.sums[Quantity::kTimeWithUsual] - row.sums[Quantity::kUsualTime];
  };
  std::vector<const Row*> rows;
  for (const Row& row : report.rows) {
    if (row.sums[Quantity::kUsualTime] > 0 && beyond(row) > kWorthNaming * report.total.sums.time_ns()) {
      rows.push_back(&row);
    }
  }
  if (rows.empty()) return {};
  std::stable_sort(rows.begin(), rows.end(), [&](const Row* a, const Row* b) { return beyond(*a) > beyond(*b); });
  if (rows.size() > kNamed) rows.resize(kNamed);
  const double steps = report.steps.divisor();
  std::vector<std::string> named;
  for (const Row* row : rows) {
    const double time_ns = row->sums[Quantity::kTimeWithUsual];
    const bool inside = time_ns <= row->sums[Quantity::kUsualHigh];
    named.push_back(RowName(*row) + " " + Duration(beyond(*row) / steps) + " (x" +
                    Plain(time_ns / row->sums[Quantity::kUsualTime]) +
                    (inside ? ", which the estimate may be off by)" : ")"));
  }
  return "Slower than such work usually is on " + report.machine.name + ": " + absl::StrJoin(named, ", ");
}

std::vector<std::string> OpeningText(const Report& report) {
  if (report.rows_are_runs) return {};
  std::vector<std::string> lines = {CostText(report)};
  if (const std::string limit = LimitText(report); !limit.empty()) lines.push_back(limit);
  if (const std::string unusual = UnusualText(report); !unusual.empty()) lines.push_back(unusual);
  if (const std::string other = OtherGpuText(report.device.other); !other.empty()) lines.push_back(other);
  for (std::string& gain : GainTexts(report, /*titles_only=*/false)) lines.push_back(std::move(gain));
  return lines;
}

std::vector<std::string> GainTexts(const Report& report, bool titles_only) {
  std::vector<std::string> lines;
  size_t gains = 0;
  for (const Advice& advice : report.advice.advice) {
    if (gains == kGains || advice.state != Advice::State::kHolds) break;
    if (advice.instead || !advice.rule->unproven.empty()) continue;
    lines.push_back(Grouped(++gains) + ". " + GainText(report, advice) + ": " + advice.rule->title +
                    (titles_only ? "" : ". Do: " + advice.action()));
  }
  for (const std::string& place : PlaceTexts(report)) {
    if (gains == kGains) break;
    lines.push_back(Grouped(++gains) + ". " + place);
  }
  return lines;
}

std::vector<std::string> PlaceTexts(const Report& report) {
  std::vector<std::string> places;
  for (const Headline::Slack& slack : report.headline.most_to_win) {
    if (places.size() == kGains) break;
    if (slack.ns < kLeastGainShare * StepNs(report) || IsAdvised(report, slack)) continue;
    places.push_back("at most " + GainText(slack.ns, StepNs(report)) + ": " + PlaceText(report, slack) + ", " +
                     std::string(RemedyOf(slack.bound, report.attribution)));
  }
  return places;
}

std::string LargestGainText(const Report& report) {
  if (report.rows_are_runs) return {};
  const std::string begin = "Largest gain: ";
  for (const Advice& advice : report.advice.advice) {
    if (advice.state != Advice::State::kHolds) break;
    if (advice.rule->unproven.empty()) return begin + GainText(report, advice) + ": " + advice.rule->title;
  }
  for (const Headline::Slack& slack : report.headline.most_to_win) {
    if (slack.ns < kLeastGainShare * StepNs(report)) break;
    return begin + "at most " + GainText(slack.ns, StepNs(report)) + ": " + PlaceText(report, slack);
  }
  return {};
}

std::string AdviceWhy(const Advice& advice, const FactValues& facts) {
  std::string text;
  std::string_view rest = advice.rule->why;
  while (!rest.empty()) {
    const size_t open = std::min(rest.find('{'), rest.size());
    text.append(rest.substr(0, open));
    rest.remove_prefix(open);
    if (rest.empty()) break;
    const size_t close = std::min(rest.find('}'), rest.size());
    const std::string_view name = rest.substr(1, close - 1);
    rest.remove_prefix(std::min(close + 1, rest.size()));
    const std::optional<Fact> fact = FactNamed(name);
    const std::optional<double> value = fact ? facts[static_cast<size_t>(*fact)] : std::nullopt;
    if (!value) {
      text += "an unknown amount";
    } else if (name.ends_with("_ns")) {
      text += Duration(*value);
    } else if (name.ends_with("_bytes")) {
      text += WithPrefix(*value, "B");
    } else {
      text += Count(*value);
    }
  }
  return text;
}

std::string AdviceLacks(const Advice& advice) {
  // Several facts often lack for one reason.
  std::vector<std::string> reasons;
  for (const Fact fact : advice.missing) {
    const FactInfo& info = AllFacts()[static_cast<size_t>(fact)];
    std::string reason(info.lacking.empty() ? info.meaning : info.lacking);
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) reasons.push_back(std::move(reason));
  }
  return absl::StrJoin(reasons, "; ");
}

}  // namespace rfinject::cli
