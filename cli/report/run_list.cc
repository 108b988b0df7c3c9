#include "cli/report/run_list.h"

#include <array>

#include "cli/report/facts/schemas.h"

namespace rfinject::cli {
namespace {

constexpr auto kRunColumns = std::to_array<ColumnOf<RunLine>>({
    {TextColumn("started", "When the run began, local time."),
     [](const RunLine& run) { return TextCell(StartText(run.start_unix_ns)); }},
    {CountColumn("start_unix_ns", "The same in ns since 1970."),
     [](const RunLine& run) {
       return run.start_unix_ns > 0 ? Cell{static_cast<uint64_t>(run.start_unix_ns)} : Cell{};
     }},
    {CountColumn("ranks", "Ranks of the job."), [](const RunLine& run) { return Cell{run.ranks}; }},
    {CountColumn("steps", "Steps of one rank."),
     [](const RunLine& run) { return Cell{run.report.steps.count / run.ranks}; }},
    {TextColumn("command", "The command of the run."),
     [](const RunLine& run) { return TextCell(CommandText(run.argv)); }},
    {TextColumn("path", "Its traces."), [](const RunLine& run) { return TextCell(run.path); }},
});

}  // namespace

RowSet RunRows(std::span<const RunLine> lines) {
  return FactRows(Schema::kRuns, RowSetOf(kRunColumns, lines),
                  [lines](size_t row) -> const Report& { return lines[row].report; });
}

}  // namespace rfinject::cli
