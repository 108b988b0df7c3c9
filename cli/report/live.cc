#include "cli/report/live.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cli/report/fold.h"
#include "cli/report/rows/column.h"

namespace rfinject::cli {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kLeastPatience = 10 * kSecond;
// Of the distance of two chunks: a busy machine and a file system between are late.
constexpr int64_t kLate = 3;

StepTally TallyOf(const Run& run) {
  StepTally tally;
  for (const auto& [rank, times] : run.step_times) {
    tally.steps += times.wall_ns.n();
    tally.ns += times.wall_ns.sum();
  }
  return tally;
}

WriterState StateOf(const TraceWriter& writer, int64_t silent_ns, int64_t patience_ns) {
  if (writer.ended) return WriterState::kEnded;
  if (!writer.damage.empty()) return WriterState::kDamaged;
  return silent_ns > patience_ns ? WriterState::kQuiet : WriterState::kWrites;
}

// `waits`: of ranks of any kind of run, those of the one that is shown first.
void AddRanks(const std::vector<TraceWriter>& writers, const std::vector<RankWaits>& waits, uint64_t longest_step_ns,
              LiveRun* live) {
  std::map<std::string, std::pair<const TraceWriter*, size_t>> last;  // by rank, and how many there were
  for (const TraceWriter& writer : writers) {
    auto& [latest, count] = last[writer.rank ? RankName(*writer.rank) : ""];
    ++count;
    // The last of several restarts counts.
    if (latest == nullptr || std::pair(writer.start_unix_ns, writer.changed_unix_ns) >
                                 std::pair(latest->start_unix_ns, latest->changed_unix_ns)) {
      latest = &writer;
    }
  }
  for (const auto& [name, one] : last) {
    const TraceWriter& writer = *one.first;
    LiveRank rank{.rank = name, .processes = one.second};
    rank.silent_ns = std::max<int64_t>(0, live->now_unix_ns - writer.changed_unix_ns);
    const int64_t age = writer.start_unix_ns <= 0 ? 0 : writer.changed_unix_ns - writer.start_unix_ns;
    rank.state = StateOf(writer, rank.silent_ns, PatienceNs(age, longest_step_ns));
    for (const RankWaits& one_of : waits) {
      if (one_of.rank != name && !name.empty()) continue;
      rank.waits = one_of.waits;
      break;
    }
    ++live->ranks_in[static_cast<size_t>(rank.state)];
    live->ranks.push_back(std::move(rank));
  }
  const auto order = [](const LiveRank& rank) {
    const bool quiet = rank.state == WriterState::kQuiet;
    return std::tuple(!quiet, quiet ? -rank.silent_ns : 0, rank.state != WriterState::kDamaged,
                      -rank.waits.wall.p50_ns.value_or(0));
  };
  std::stable_sort(live->ranks.begin(), live->ranks.end(),
                   [&order](const LiveRank& a, const LiveRank& b) { return order(a) < order(b); });
}

}  // namespace

int64_t PatienceNs(int64_t age_ns, uint64_t longest_step_ns) {
  const int64_t chunk = std::clamp(age_ns / 100, kSecond, 60 * kSecond);
  const auto step = static_cast<int64_t>(std::min<uint64_t>(longest_step_ns, INT64_MAX / kLate));
  return std::max(kLeastPatience, kLate * std::max(chunk, step));
}

LiveRun FoldLive(const Profile& profile, const std::vector<TraceWriter>& writers, int64_t now_unix_ns,
                 const std::function<Machine(const Run&)>& machine_for, const LiveOptions& options) {
  LiveRun live;
  int64_t changed = 0;
  for (const TraceWriter& writer : writers) {
    changed = std::max(changed, writer.changed_unix_ns);
    if (writer.start_unix_ns > 0 && (live.start_unix_ns == 0 || writer.start_unix_ns < live.start_unix_ns)) {
      live.start_unix_ns = writer.start_unix_ns;
    }
    if (!writer.damage.empty()) live.damages.push_back(writer.trace + ": " + writer.damage);
  }
  // The clock of a file server may be ahead of ours.
  live.now_unix_ns = std::max(changed, now_unix_ns);

  uint64_t longest_step_ns = 0;
  std::vector<RankWaits> ranks;
  std::vector<Report> reports =
      FoldProfile(profile, machine_for, {.by = options.by, .calibration = options.calibration});
  const auto most = std::max_element(reports.begin(), reports.end(), [](const Report& a, const Report& b) {
    return std::pair(a.total.sums.time_ns(), a.steps.count) < std::pair(b.total.sums.time_ns(), b.steps.count);
  });
  if (most != reports.end()) {
    const Run& run = profile.runs.at(most->run);
    live.anything = true;
    live.other_kinds = reports.size() - 1;
    live.report = std::move(*most);
    for (Row& row : live.report.rows) {
      // The functions of native stacks get their names when the process ends; until then FrameText has an address.
      if (row.caller.find("+0x") == row.caller.npos) continue;
      row.caller.clear();
      row.other_callers = 0;
    }
    if (const ReportColumn* const column = FindColumn(options.sort)) SortRows(*column, &live.report);
    live.waits = FoldWaits(run);
    ranks = live.waits.ranks;
    // A rank whose batch has another size is of another kind, and waits for the others all the same.
    for (const auto& [key, other] : profile.runs) {
      if (&other == &run) continue;
      for (RankWaits& rank : FoldWaits(other).ranks) ranks.push_back(std::move(rank));
    }
    live.measured_steps = run.steps.steps;
    live.armed_steps = run.steps.armed;
    for (const ProcessInfo& process : run.process_list) live.stopped = live.stopped || process.measuring == 1;
    longest_step_ns = run.steps.duration_ns.max;
    live.tally = TallyOf(run);
    // Fewer steps, or as many, are another run's.
    if (options.before.steps > 0 && live.tally.steps > options.before.steps && live.tally.ns >= options.before.ns) {
      live.new_steps = live.tally.steps - options.before.steps;
      live.new_step_ns = static_cast<double>(live.tally.ns - options.before.ns) / static_cast<double>(live.new_steps);
    }
  }
  AddRanks(writers, ranks, longest_step_ns, &live);
  return live;
}

}  // namespace rfinject::cli
