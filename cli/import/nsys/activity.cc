#include "cli/import/nsys/activity.h"

#include <sqlite3.h>

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/import/imported.h"

namespace rfinject::cli {

void NsysActivity::Add(int64_t device, Interval at) {
  if (++count_ <= kMostKept) kept_[device].push_back(at);
}

// In the time between each GPU's first kernel or copy and its last, the share in which none ran.
std::string NsysActivity::IdleText(UntrustedDatabase* database) {
  double all = 0, busy = 0;
  const auto length = [](const Interval& one) {
    return static_cast<double>(static_cast<uint64_t>(one.end) - static_cast<uint64_t>(one.start));
  };
  std::optional<int64_t> device;
  Interval ran;  // of the device so far, with what lies between
  const auto take = [&](int64_t on, Interval one) {
    if (device != on) {
      if (device) all += length(ran);
      device = on;
      ran = {one.start, one.start};
    }
    one = {std::max(one.start, ran.end), std::max(one.end, ran.end)};
    busy += length(one);
    ran.end = one.end;
  };
  if (count_ <= kMostKept) {
    for (auto& [on, intervals] : kept_) {
      const auto starts_before = [](const Interval& a, const Interval& b) { return a.start < b.start; };
      // They mostly are, and then the look costs a tenth of sorting.
      if (!std::is_sorted(intervals.begin(), intervals.end(), starts_before)) {
        std::sort(intervals.begin(), intervals.end(), starts_before);
      }
      for (const Interval& one : intervals) take(on, one);
    }
  } else {
    std::string sql;
    for (const char* table :
         {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"}) {
      const std::set<std::string> columns = database->ColumnsOf(table);
      if (!columns.contains("start") || !columns.contains("end")) continue;
      absl::StrAppend(&sql, sql.empty() ? "" : " UNION ALL ", "SELECT ",
                      columns.contains("deviceId") ? "deviceId" : "0", " AS device, start, end FROM ", table,
                      " WHERE end >= start");
    }
    const Statement statement = database->Prepare(absl::StrCat(sql, " ORDER BY 1, 2"));
    while (database->Row(statement)) {
      take(sqlite3_column_int64(statement.get(), 0),
           {sqlite3_column_int64(statement.get(), 1), sqlite3_column_int64(statement.get(), 2)});
    }
  }
  if (device) all += length(ran);
  kept_.clear();
  constexpr double kWorthALine = 0.1;
  count_ = 0;
  if (!(all > 0) || 1 - busy / all < kWorthALine) return {};
  return absl::StrFormat("the GPU was idle for %.0f %% of the %s between the file's first kernel and its last",
                         100 * (1 - busy / all), TimeText(all));
}

}  // namespace rfinject::cli
