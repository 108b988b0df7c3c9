#include "cli/import/nsys/step_times.h"

#include <sqlite3.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/import/timed_steps.h"

namespace rfinject::cli {
namespace {

class StepTimer {
 public:
  StepTimer(int64_t thread, UntrustedDatabase* database) : thread_(thread), database_(*database) {}

  void AddTo(cli::Run* run) {
    std::vector<TimedStep> steps;
    const auto ranges = RangesOfSteps([](const std::string& name) { return IsStepName(name); });
    for (Interval one; steps.size() < kMostTimedSteps && ranges(&one);) {
      if (!steps.empty()) one.start = steps.back().at.end;
      steps.push_back({.at = one});
    }
    const std::string sql = Activity(true);
    AddOverlap(IntervalsOfQuery(sql), &TimedStep::busy_ns, &steps);
    const bool communicates = std::any_of(run->launches.begin(), run->launches.end(), [](const auto& launch) {
      return launch.first.phase == Phase::kCommunication;
    });
    if (communicates) AddOverlap(IntervalsOfQuery(Activity(false)), &TimedStep::working_ns, &steps);
    // torch.autograd.profiler.emit_nvtx makes a range of each scope that torch opens.
    bool has_data = false;
    const auto is_data = [&has_data](const std::string& name) {
      const bool data = IsLoaderName(name);
      has_data = has_data || data;
      return data;
    };
    AddOverlap(RangesOfSteps(is_data), &TimedStep::data_ns, &steps);
    AddOverlap(Merged(IntervalsOfQuery(sql), RangesOfSteps(is_data)), &TimedStep::busy_or_data_ns, &steps);
    const bool has_calls = AddWaits(&steps);
    AddStepTimes(steps, {.data = has_data, .calls = has_calls, .communication = communicates}, SessionStartUnixNs(),
                 0, run);
  }

 private:
  // Whether the export says how long calls took, and so those that wait for the GPU.
  bool AddWaits(std::vector<TimedStep>* steps) {
    const std::set<std::string> calls = database_.ColumnsOf("CUPTI_ACTIVITY_KIND_RUNTIME");
    if (!calls.contains("end") || !calls.contains("nameId")) return false;
    AddOverlap(
        IntervalsOfQuery(absl::StrCat("SELECT r.start, r.end FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON "
                                      "s.id = r.nameId WHERE r.globalTid = ",
                                      thread_,
                                      " AND (s.value GLOB 'cu*Synchronize*' OR s.value GLOB 'cudaMemcpy_v*' OR "
                                      "s.value GLOB 'cuMemcpyDtoH_v*') ORDER BY 1, 2")),
        &TimedStep::gpu_wait_ns, steps);
    return true;
  }

  // The rows of a query whose first two columns are a start and an end.
  Intervals IntervalsOfQuery(const std::string& sql) {
    const auto statement = std::make_shared<Statement>(database_.Prepare(sql));
    return [this, statement](Interval* one) {
      if (!database_.Row(*statement)) return false;
      *one = {sqlite3_column_int64(statement->get(), 0), sqlite3_column_int64(statement->get(), 1)};
      return true;
    };
  }

  // The ranges of the steps' thread that `wanted` names, the outer one of two.
  std::function<bool(Interval*)> RangesOfSteps(const std::function<bool(const std::string&)>& wanted) {
    return [this, wanted, next = PushPopRanges(&database_), end = INT64_MIN](Interval* one) mutable {
      for (NvtxRange range; next(&range);) {
        if (range.thread != thread_ || range.start < end || !wanted(range.name)) continue;
        end = range.end;
        *one = {range.start, range.end};
        return true;
      }
      return false;
    };
  }

  // When the file's clock was 0; 0 where the export does not say it.
  int64_t SessionStartUnixNs() {
    if (!database_.ColumnsOf("TARGET_INFO_SESSION_START_TIME").contains("utcEpochNs")) return 0;
    const Statement start =
        database_.Prepare("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME ORDER BY 1 LIMIT 1");
    return database_.Row(start) ? sqlite3_column_int64(start.get(), 0) : 0;
  }

  // What asks for the intervals in which something ran on the GPU, of the process that has the steps.
  std::string Activity(bool with_communication) {
    std::string sql;
    for (const char* table :
         {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"}) {
      const std::set<std::string> columns = database_.ColumnsOf(table);
      if (!columns.contains("start") || !columns.contains("end")) continue;
      absl::StrAppend(&sql, sql.empty() ? "" : " UNION ALL ", "SELECT start, end FROM ", table, " WHERE ");
      const bool processes = columns.contains("globalPid");
      const int64_t process = thread_ / kThreadsOfProcess;
      absl::StrAppend(&sql, processes ? absl::StrCat("globalPid / ", kThreadsOfProcess, " = ", process) : "1");
      for (const char* name : {"demangledName", "shortName"}) {
        if (with_communication || !columns.contains(name)) continue;
        absl::StrAppend(&sql, " AND COALESCE(", name,
                        ", -1) NOT IN (SELECT id FROM StringIds WHERE is_communication_kernel(value))");
        break;
      }
    }
    return sql + " ORDER BY 1, 2";
  }

  const int64_t thread_;
  UntrustedDatabase& database_;
};

}  // namespace

std::function<bool(NvtxRange*)> PushPopRanges(UntrustedDatabase* database) {
  const bool ids = database->ColumnsOf("NVTX_EVENTS").contains("textId");
  const auto statement = std::make_shared<Statement>(database->Prepare(
      // Longer names are cut, because a name is kept for each place that a range is in.
      absl::StrCat("SELECT n.globalTid, n.start, n.end, substr(", ids ? "COALESCE(n.text, s.value)" : "n.text",
                   ", 1, 4096) FROM NVTX_EVENTS n ", ids ? "LEFT JOIN StringIds s ON s.id = n.textId " : "",
                   // 59: NvtxPushPopRange, which nest; others begin on one thread and may end on another.
                   "WHERE n.eventType = 59 AND n.end IS NOT NULL ORDER BY n.globalTid, n.start, n.end DESC")));
  return [database, statement](NvtxRange* range) {
    if (!database->Row(*statement)) return false;
    sqlite3_stmt* row = statement->get();
    *range = {.thread = sqlite3_column_int64(row, 0),
              .start = sqlite3_column_int64(row, 1),
              .end = sqlite3_column_int64(row, 2),
              .name = ColumnText(*statement, 3)};
    return true;
  };
}

void AddNsysSteps(int64_t thread, UntrustedDatabase* database, Run* run) { StepTimer(thread, database).AddTo(run); }

}  // namespace rfinject::cli
