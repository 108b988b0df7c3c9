#include "cli/trace/follow.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/profile/accumulator.h"
#include "cli/trace/damage.h"
#include "cli/trace/files.h"
#include "cli/trace/frames.h"
#include "cli/trace/identity.h"
#include "cli/trace/read.h"

namespace rfinject::cli {
namespace {

// Adds up the traces of a run as they are.
class Sum {
 public:
  // Adds what the file says to the sum, once for each trace (SumTraces), and describes the file in `*trace`.
  void Add(Decoder* decoder, FollowedTrace* trace) {
    FileSource source;
    trace->damage = source.Open(trace->path);
    if (!trace->damage.ok()) return;
    Profile beginning;
    const TraceIdentity identity = IdentityOf(source, &beginning);
    if (!identity.merged && !beginning.runs.empty() && !beginning.runs.begin()->second.process_list.empty()) {
      trace->process = beginning.runs.begin()->second.process_list.front();
    }
    TraceRecords records = ReadRecords(source, decoder);
    if (!IsCut(records.status)) trace->damage = records.status;
    trace->ended = identity.merged || records.applier.finished();
    if (!records.usable) return;
    for (const std::string& id : records.applier.trace_ids()) {
      if (!ids_.insert(id).second) return;  // a copy
    }
    for (const MetricInfo& metric : records.applier.metrics()) {
      const auto [known, is_new] = metrics_.try_emplace(metric.name, metric);
      if (is_new || known->second == metric) continue;
      trace->damage = MetricsDisagree(known->second, metric);
      return;
    }
    std::move(records.applier).AddTo(&sum_);
  }

  Profile Take() && { return std::move(sum_).Take(); }

 private:
  Accumulator sum_;
  std::set<std::string> ids_;
  std::map<std::string, MetricInfo> metrics_;
};

}  // namespace

absl::StatusOr<bool> RunFollower::Look(const std::function<bool()>& keep_on) {
  const auto failed = [this](const std::string& why) {
    return absl::UnavailableError(absl::StrCat(path_, ": ", why));
  };
  absl::StatusOr<std::vector<std::string>> files = FindTraces(path_);
  if (!files.ok()) return failed(std::string(files.status().message()));
  std::map<std::string, Extent> extents;
  for (const std::string& file : *files) {
    struct stat status;
    if (::stat(file.c_str(), &status) != 0) continue;  // it has gone since
    extents.emplace(file, Extent(status.st_ino, static_cast<uint64_t>(status.st_size), ChangedUnixNs(status)));
  }
  if (extents.empty()) return failed("the traces have gone");
  if (extents == seen_) return false;

  TraceBeginnings beginnings;
  std::vector<std::string> present, unknown;
  for (const auto& [file, extent] : extents) {
    if (!keep_on()) return false;
    beginnings.Of(file);
    present.push_back(file);
  }
  std::vector<RunFiles> runs = GroupByRun(present, &beginnings, &unknown);
  FollowedRun run;
  run.runs = runs.size();
  if (!runs.empty()) {
    run.of = std::move(runs.back());
  } else {
    run.of.files = std::move(unknown);
  }
  for (const std::string& file : run.of.files) {
    const auto [inode, bytes, changed] = extents.at(file);
    run.traces.push_back({.path = file, .bytes = bytes, .changed_unix_ns = changed});
  }
  // Of two traces that share an id, the one that holds more counts.
  std::vector<FollowedTrace*> longest_first;
  for (FollowedTrace& trace : run.traces) longest_first.push_back(&trace);
  std::ranges::stable_sort(longest_first, std::ranges::greater{}, &FollowedTrace::bytes);
  Sum sum;
  for (FollowedTrace* trace : longest_first) {
    if (!keep_on()) return false;
    sum.Add(&decoder_, trace);
  }
  run.profile = std::move(sum).Take();
  run_ = std::move(run);
  seen_ = std::move(extents);
  return true;
}

}  // namespace rfinject::cli
