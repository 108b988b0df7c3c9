#include "cli/report/facts/waits.h"

#include <algorithm>
#include <array>
#include <utility>

namespace rfinject::cli {
namespace {

// Medians that are closer than this are alike: quantiles are known to 1/120.
constexpr double kAlike = 0.05;
// A difference of waiting that is worth mentioning, as a part of a step.
constexpr double kWorthAWord = 0.1;

// Of fewer timed steps chance says how many have gaps; and so many are more than accidents.
constexpr double kLeastTimed = 8, kSomeSteps = 0.2;

StepPart PartOf(const Spread& spread) {
  return {.mean_ns = spread.mean_ns(), .p50_ns = spread.Quantile(0.5), .p95_ns = spread.Quantile(0.95)};
}

// What of `idle_ns` of a step falls into waits for data. Timed steps say how the idle time is divided, and older
// traces, in which they do not, nothing: then it may be all.
double DataIdleNs(const StepTimes& times, double idle_ns) {
  if (times.launch_waits < times.usual_ns.n || times.timed_idle_ns == 0) return idle_ns;
  return idle_ns *
         std::min(1.0, static_cast<double>(times.timed_data_idle_ns) / static_cast<double>(times.timed_idle_ns));
}

// By the GPU's clock, or by the host's where nothing disturbs it. Parts of it that add up: something runs on the GPU,
// the host waits for data meanwhile, and the rest, in which nothing was launched early enough.
void SetUsualStep(const StepTimes& times, StepWaits* waits) {
  const double step_ns = times.usual_ns.mean();
  waits->clock = times.by_gpu_clock == times.usual_ns.n ? StepClockOf::kGpu : StepClockOf::kUndisturbed;
  const Spread& wall = waits->clock == StepClockOf::kGpu ? times.period_ns : times.wall_ns;
  waits->wall = {.mean_ns = step_ns, .p50_ns = wall.Quantile(0.5), .p95_ns = wall.Quantile(0.95)};
  StepPart& data = waits->data_wait;
  if (data.mean_ns) data.mean_ns = std::min(*data.mean_ns, step_ns);
  const StepPart own = std::exchange(waits->own, {});
  if (times.usual_busy_ns.n == 0) {
    waits->launch_gaps = {};
    return;
  }
  waits->gpu_busy.mean_ns = std::min(times.usual_busy_ns.mean(), step_ns);
  const double idle_ns = step_ns - *waits->gpu_busy.mean_ns;
  waits->data_idle.mean_ns = std::min({idle_ns, data.mean_ns.value_or(0), DataIdleNs(times, idle_ns)});
  waits->launch_gaps.mean_ns = idle_ns - *waits->data_idle.mean_ns;
  if (!data.mean_ns || !waits->gpu_wait.mean_ns) return;
  const double waited_ns = std::min(*waits->gpu_wait.mean_ns, step_ns - *data.mean_ns);
  // A host that is never late waits in launches that block. In older traces nothing says so: what it waits and what
  // it does itself is not known then.
  if (times.launch_waits < times.usual_ns.n && waited_ns < kWorthAWord * step_ns &&
      *waits->launch_gaps.mean_ns < kWorthAWord * step_ns) {
    waits->gpu_wait = {};
    return;
  }
  waits->gpu_wait.mean_ns = waited_ns;
  waits->own = own;
  waits->own.mean_ns = step_ns - *data.mean_ns - waited_ns;
}

StepWaits WaitsOfTimes(const StepTimes& times) {
  StepWaits waits;
  waits.steps = times.wall_ns.n();
  waits.wall = PartOf(times.wall_ns);
  waits.gpu_busy = PartOf(times.gpu_busy_ns);
  waits.data_wait = PartOf(times.data_wait_ns);
  waits.gpu_wait = PartOf(times.gpu_wait_ns);
  waits.launch_gaps = PartOf(times.launch_gap_ns);
  waits.exposed_communication = PartOf(times.exposed_communication_ns);
  if (times.own_ns.n() > 0 && times.own_ns.n() == times.wall_ns.n()) {
    waits.own = PartOf(times.own_ns);
  } else if (waits.wall.mean_ns && waits.data_wait.mean_ns && waits.gpu_wait.mean_ns) {
    // An older trace has the later steps of a long run as sums of the other parts, whose difference has no quantiles.
    waits.own.mean_ns = std::max(0.0, *waits.wall.mean_ns - *waits.data_wait.mean_ns - *waits.gpu_wait.mean_ns);
  }
  if (times.usual_ns.n > 0) SetUsualStep(times, &waits);
  return waits;
}

double Middle(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Finds the slow rank, and the one that keeps the others waiting.
void CompareRanks(WaitTable* table) {
  std::vector<double> medians, data;
  for (const RankWaits& one : table->ranks) {
    medians.push_back(one.waits.wall.p50_ns.value_or(0));
    data.push_back(one.waits.data_wait.mean_ns.value_or(0));
  }
  if (medians.size() < 2) return;
  const auto [shortest, longest] = std::minmax_element(medians.begin(), medians.end());
  const double middle = Middle(medians);
  if (middle > 0) table->spread = (*longest - *shortest) / middle;
  if (table->spread > kAlike) table->slowest = static_cast<size_t>(longest - medians.begin());
  // Of two ranks the lower one is the usual.
  const auto most = std::max_element(data.begin(), data.end());
  std::vector<double> others = data;
  others.erase(others.begin() + (most - data.begin()));
  table->middle_data_wait_ns = Middle(std::move(others));
  if (*most - table->middle_data_wait_ns > kWorthAWord * middle) {
    table->waits_most = static_cast<size_t>(most - data.begin());
  }
}

constexpr auto kMean = &StepPart::mean_ns, kP50 = &StepPart::p50_ns, kP95 = &StepPart::p95_ns;

template <StepPart StepWaits::*kPart, std::optional<double> StepPart::*kValue>
constexpr ColumnOf<RankWaits> TimeColumn(std::string_view name, std::string_view help) {
  return {UnitColumn(name, "ns", help), [](const RankWaits& r) { return KnownCell(r.waits.*kPart.*kValue); }};
}
template <StepPart StepWaits::*kPart>
constexpr ColumnOf<RankWaits> PartColumn(std::string_view name) {
  return {ShareColumn(name, "The same over what a step takes."),
          [](const RankWaits& r) { return KnownCell(r.waits.Share(r.waits.*kPart)); }};
}

constexpr auto kWaitColumns = std::to_array<ColumnOf<RankWaits>>({
    {TextColumn("rank", "Rank of the job; empty for all ranks together."),
     [](const RankWaits& r) { return TextCell(r.rank); }},
    {CountColumn("steps", "Optimizer's steps that no counters made longer."),
     [](const RankWaits& r) { return Cell{r.waits.steps}; }},
    TimeColumn<&StepWaits::wall, kMean>("wall_time_mean_ns", "A step by the clock; mean."),
    TimeColumn<&StepWaits::wall, kP50>("wall_time_p50_ns", "A step by the clock; median."),
    TimeColumn<&StepWaits::wall, kP95>("wall_time_p95_ns", "A step by the clock; 95 % of the steps stay below."),
    TimeColumn<&StepWaits::gpu_busy, kMean>("gpu_busy_mean_ns", "Of a step: something ran on the GPU; mean."),
    TimeColumn<&StepWaits::gpu_busy, kP50>("gpu_busy_p50_ns", "Of a step: something ran on the GPU; median."),
    TimeColumn<&StepWaits::gpu_busy, kP95>("gpu_busy_p95_ns",
                                           "Of a step: something ran on the GPU; 95 % of the steps stay below."),
    PartColumn<&StepWaits::gpu_busy>("gpu_busy_share"),
    TimeColumn<&StepWaits::data_wait, kMean>("data_wait_mean_ns",
                                             "Of a step: the host waits for its data loader; mean."),
    TimeColumn<&StepWaits::data_wait, kP50>("data_wait_p50_ns",
                                            "Of a step: the host waits for its data loader; median."),
    TimeColumn<&StepWaits::data_wait, kP95>(
        "data_wait_p95_ns", "Of a step: the host waits for its data loader; 95 % of the steps stay below."),
    PartColumn<&StepWaits::data_wait>("data_wait_share"),
    TimeColumn<&StepWaits::gpu_wait, kMean>("gpu_wait_mean_ns",
                                            "Of a step: the host waits for the GPU to have done its work; mean."),
    TimeColumn<&StepWaits::gpu_wait, kP50>("gpu_wait_p50_ns",
                                           "Of a step: the host waits for the GPU to have done its work; median."),
    TimeColumn<&StepWaits::gpu_wait, kP95>(
        "gpu_wait_p95_ns",
        "Of a step: the host waits for the GPU to have done its work; 95 % of the steps stay below."),
    PartColumn<&StepWaits::gpu_wait>("gpu_wait_share"),
    TimeColumn<&StepWaits::own, kMean>("own_mean_ns",
                                       "Of a step: the host does its own, Python and launching; mean."),
    PartColumn<&StepWaits::own>("own_share"),
    TimeColumn<&StepWaits::own, kP50>("own_p50_ns",
                                      "Of a step: the host does its own, Python and launching; median."),
    TimeColumn<&StepWaits::own, kP95>(
        "own_p95_ns", "Of a step: the host does its own, Python and launching; 95 % of the steps stay below."),
    TimeColumn<&StepWaits::launch_gaps, kMean>(
        "launch_gap_mean_ns",
        "Of a step: the GPU is idle and the host does not wait for data; at least, of imports exactly; mean."),
    TimeColumn<&StepWaits::launch_gaps, kP50>(
        "launch_gap_p50_ns",
        "Of a step: the GPU is idle and the host does not wait for data; at least, of imports exactly; median."),
    TimeColumn<&StepWaits::launch_gaps, kP95>(
        "launch_gap_p95_ns",
        "Of a step: the GPU is idle and the host does not wait for data; at least, of imports exactly; 95 % of "
        "the steps stay below."),
    PartColumn<&StepWaits::launch_gaps>("launch_gap_share"),
    TimeColumn<&StepWaits::data_idle, kMean>(
        "data_idle_mean_ns", "Of a measured step: the GPU is idle while the host waits for data; at most; mean."),
    PartColumn<&StepWaits::data_idle>("data_idle_share"),
    TimeColumn<&StepWaits::exposed_communication, kMean>(
        "exposed_communication_mean_ns", "Of a step: only communication runs on the GPU; mean; of recordings."),
    TimeColumn<&StepWaits::exposed_communication, kP50>(
        "exposed_communication_p50_ns", "Of a step: only communication runs on the GPU; median; of recordings."),
    TimeColumn<&StepWaits::exposed_communication, kP95>(
        "exposed_communication_p95_ns",
        "Of a step: only communication runs on the GPU; 95 % of the steps stay below; of recordings."),
    PartColumn<&StepWaits::exposed_communication>("exposed_communication_share"),
    {UnitColumn("late_at_collective_ns", "ns",
                "By what the rank comes to a collective behind the first one; mean of those that all ranks ran; of "
                "recordings of a job."),
     [](const RankWaits& r) { return KnownCell(r.late_ns); }},
    {UnitColumn("waits_at_collective_ns", "ns",
                "How long the rank is in a collective before the last one comes; mean; of recordings of a job."),
     [](const RankWaits& r) { return KnownCell(r.waits_for_ranks_ns); }},
});

constexpr std::string_view kNotWatched = "the trace does not say what its steps waited for";

constexpr std::string_view kNotTimed = "no steps in a row were timed";

template <StepPart StepWaits::*kPart, std::optional<double> StepPart::*kValue>
constexpr FactOf<StepWaits> WaitFact(std::string_view name, std::string_view help) {
  return {UnitColumn(name, "ns", help), [](const StepWaits& waits) { return KnownCell(waits.*kPart.*kValue); },
          kNotWatched};
}

constexpr auto kWaitFacts = std::to_array<FactOf<StepWaits>>({
    WaitFact<&StepWaits::wall, kP50>("optimizer_step_wall_time_p50_ns", "An optimizer's step by the clock; median."),
    WaitFact<&StepWaits::wall, kP95>("optimizer_step_wall_time_p95_ns",
                                     "An optimizer's step by the clock; 95 % of the steps stay below."),
    WaitFact<&StepWaits::gpu_busy, kMean>("optimizer_step_gpu_busy_ns", "Of it: something ran on the GPU; mean."),
    WaitFact<&StepWaits::data_wait, kMean>("optimizer_step_data_wait_ns",
                                           "Of it: the host waits for its data loader; mean."),
    WaitFact<&StepWaits::gpu_wait, kMean>("optimizer_step_gpu_wait_ns", "Of it: the host waits for the GPU; mean."),
    {TextColumn("gpu_waits_for",
                "What the GPU waits for in at least a tenth of a measured step: launches, data or nothing."),
     [](const StepWaits& waits) { return TextCell(waits.gpu_waits_for()); }, kNotTimed},
    {ShareColumn("steps_with_gaps_share",
                 "Of the timed steps, those in which the GPU was idle for more than a tenth."),
     [](const StepWaits& waits) { return KnownCell(waits.steps_with_gaps_share); }, kNotTimed},
});

}  // namespace

std::span<const FactOf<StepWaits>> WaitFacts() { return kWaitFacts; }

std::string_view StepClockName(StepClockOf clock) {
  constexpr std::array<std::string_view, 3> kNames = {"host", "host, undisturbed", "GPU"};
  return kNames[static_cast<size_t>(clock)];
}

double StepWaits::step_ns() const { return std::max(wall.mean_ns.value_or(0), gpu_busy.mean_ns.value_or(0)); }

std::optional<double> StepWaits::Share(const StepPart& part) const {
  const double all = step_ns();
  if (!part.mean_ns || !(all > 0)) return std::nullopt;
  return std::min(1.0, *part.mean_ns / all);
}

std::optional<double> StepWaits::idle_ns() const {
  if (!gpu_busy.mean_ns || !wall.mean_ns) return std::nullopt;
  return std::max(0.0, *wall.mean_ns - *gpu_busy.mean_ns);
}

std::optional<double> StepWaits::GainWithout(const StepPart& wait) const {
  const std::optional<double> idle = idle_ns();
  if (!wait.mean_ns || !idle) return std::nullopt;
  return std::min(*wait.mean_ns, *idle);
}

std::string StepWaits::gpu_waits_for() const {
  if (clock == StepClockOf::kHost || !idle_ns()) return {};
  const bool some = steps_with_gaps_share > kSomeSteps && steps_with_gaps_share < 1 - kSomeSteps;
  if (!some && *idle_ns() < kWorthAWord * step_ns()) return "nothing";
  const bool data = data_idle.mean_ns.value_or(0) > launch_gaps.mean_ns.value_or(0);
  return std::string(data ? "data" : "launches") + (some ? ", in part of the steps" : "");
}

StepWaits WaitsOf(const Run& run) {
  StepTimes all;
  for (const auto& [rank, times] : run.step_times) all.Merge(times);
  StepWaits waits = WaitsOfTimes(all);
  double timed = 0, with_gaps = 0;
  for (const trace::GpuStep& step : run.kept.gpu_step) {
    if (step.period_ns == 0) continue;
    timed += 1;
    const double period = static_cast<double>(step.period_ns), busy = static_cast<double>(step.busy_ns);
    with_gaps += period - busy > kWorthAWord * period ? 1 : 0;
  }
  if (timed >= kLeastTimed) waits.steps_with_gaps_share = with_gaps / timed;
  return waits;
}

std::string RankName(uint32_t rank) {
  return std::to_string(std::min(rank, kMaxRanksKept)) + (rank >= kMaxRanksKept ? " and above" : "");
}

WaitTable FoldWaits(const Run& run) {
  WaitTable table;
  table.title = run.key.gpu.empty() ? "a GPU without a name" : run.key.gpu;
  table.source = run.key.source;
  table.virtual_gpu = run.key.collector == kVirtualGpuCollector;
  table.on_cpu = run.key.source == SourceKind::kEstimated && !table.virtual_gpu;
  table.all = WaitsOf(run);
  table.collectives = CollectivesOf(run);
  if (run.key.source == SourceKind::kMeasured) table.idle = IdleByLayer(run, table.all.idle_ns().value_or(0));
  for (const auto& [rank, times] : run.step_times) {
    RankWaits& one = table.ranks.emplace_back(RankWaits{RankName(rank), WaitsOfTimes(times)});
    const auto at = table.collectives.ranks.find(rank);
    if (at == table.collectives.ranks.end()) continue;
    one.late_ns = at->second.late_ns;
    one.waits_for_ranks_ns = at->second.waits_ns;
  }
  CompareRanks(&table);
  return table;
}

RowSet RowsOf(const WaitTable& table) {
  RowSet set{.size = 1 + (table.ranks.size() > 1 ? table.ranks.size() : 0), .columns = {}};
  const auto row = [&table](size_t i) {
    return i == 0 ? RankWaits{.rank = {}, .waits = table.all} : table.ranks[i - 1];
  };
  Append(std::span<const ColumnOf<RankWaits>>(kWaitColumns), row, &set);
  return set;
}

}  // namespace rfinject::cli
