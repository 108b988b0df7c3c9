#include "cli/import/nsys/overlaps.h"

#include <sqlite3.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/import/nsys/step_times.h"

namespace rfinject::cli {
namespace {

// Numbers of calls are a process's own. `process` is a globalPid or a globalTid.
uint64_t CallOf(int64_t process, int64_t correlation) {
  return static_cast<uint64_t>(process / kThreadsOfProcess) << 32 ^ static_cast<uint64_t>(correlation);
}

}  // namespace

Interval NsysOverlaps::Next(Interval at, const Stream& stream, int64_t correlation) {
  const uint64_t index = next_++;
  if (!ends_.empty()) {
    const auto end = ends_.find(index);
    if (end != ends_.end()) at.end = std::max(at.start, end->second);
    return at;
  }
  if (gave_up()) {
    ran_ = {};
  } else {
    if (streams_.empty() || stream != last_stream_->first) {
      last_stream_ = streams_.try_emplace(stream, streams_.size()).first;
    }
    ran_.push_back({last_stream_->second, at.start, at.end, index, CallOf(stream[0], correlation)});
  }
  return at;
}

bool NsysOverlaps::Find(UntrustedDatabase* database) {
  ends_ = EarlierEnds(std::exchange(ran_, {}), [database](const Correlations& calls) {
    Correlations waiting;
    const std::set<std::string> columns = database->ColumnsOf("CUPTI_ACTIVITY_KIND_RUNTIME");
    for (const char* needed : {"globalTid", "correlationId", "nameId"}) {
      if (!columns.contains(needed)) return waiting;
    }
    const Statement all = database->Prepare(
        "SELECT r.globalTid, r.correlationId, s.value FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = "
        "r.nameId");
    while (database->Row(all)) {
      const uint64_t call = CallOf(sqlite3_column_int64(all.get(), 0), sqlite3_column_int64(all.get(), 1));
      if (calls.contains(call) && WaitsForItsStream(ColumnText(all, 2))) waiting.insert(call);
    }
    return waiting;
  });
  return !ends_.empty();
}

void NsysOverlaps::Rewind() {
  next_ = 0;
  ran_.clear();
  streams_.clear();
}

}  // namespace rfinject::cli
