#include "cli/import/nsys/ranges.h"

#include <sqlite3.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <string>

#include "cli/import/nsys/step_times.h"
#include "cli/import/nvtx_ranges.h"

namespace rfinject::cli {
namespace {

bool Has(const std::set<std::string>& columns, std::initializer_list<const char*> names) {
  return std::all_of(names.begin(), names.end(), [&](const char* name) { return columns.contains(name); });
}

void AddOperators(UntrustedDatabase* database, NsysRanges* ranges) {
  NvtxOperators& operators = ranges->operators.emplace();
  int64_t thread = 0, end = INT64_MIN;  // of the step
  const auto next = PushPopRanges(database);
  for (NvtxRange range; next(&range) && !operators.full();) {
    const bool step = IsStepName(range.name);
    if (step) {
      thread = range.thread;
      end = range.end;
    }
    // What is around a step, or a phase, is no part of the network.
    const bool inside = ranges->steps == 0 || (range.thread == thread && range.start < end);
    const bool phase = PhaseOfRange(NameOfRange(range.name)) != Phase::kOther;
    operators.Add(range, inside && !step && !phase);
  }
  operators.Finish();
}

}  // namespace

void FindNsysRanges(UntrustedDatabase* database, NsysRanges* ranges_found) {
  NsysRanges& found = *ranges_found;
  const std::set<std::string> ranges = database->ColumnsOf("NVTX_EVENTS");
  const std::set<std::string> calls = database->ColumnsOf("CUPTI_ACTIVITY_KIND_RUNTIME");
  const bool has_ranges = Has(ranges, {"start", "end", "eventType", "text", "globalTid"});
  if (has_ranges) {
    const Statement count = database->Prepare("SELECT count(*) FROM NVTX_EVENTS WHERE eventType = 60");
    if (database->Row(count)) found.not_nesting = static_cast<uint64_t>(sqlite3_column_int64(count.get(), 0));
  }
  found.known = has_ranges && Has(calls, {"start", "correlationId", "globalTid"});
  if (!found.known) return;
  std::map<int64_t, uint64_t> steps;  // by thread
  int64_t thread = 0, end = 0;        // of the step that was last
  bool has_numbers = false;
  const auto next = PushPopRanges(database);
  for (NvtxRange range; next(&range);) {
    const NvtxOperator parsed = ParseNvtxOperator(range.name);
    found.has_shapes = found.has_shapes || !parsed.sizes.empty();
    has_numbers = has_numbers || parsed.sequence != TorchSpan::kNone;
    if (!IsStepName(range.name) || (range.thread == thread && range.start < end)) continue;
    thread = range.thread;
    end = range.end;
    if (++steps[thread] > found.steps) {
      found.steps = steps[thread];
      found.step_thread = thread;
    }
  }
  if (found.has_shapes || has_numbers) AddOperators(database, &found);
}

}  // namespace rfinject::cli
