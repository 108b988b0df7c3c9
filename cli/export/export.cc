#include "cli/export/export.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "cli/report/facts/run.h"
#include "cli/report/facts/run_name.h"
#include "cli/report/report.h"

namespace rfinject::cli {
namespace {

constexpr auto kExports = std::to_array<ExportKind>({
    {.name = "perfetto",
     .help = "a mean step as nested slices, and the steps by the clock, for ui.perfetto.dev",
     .steps = true,
     .make = MakePerfettoExporter},
    {.name = "pprof",
     .help = "a profile whose stacks are layers, operators and kernels, for `go tool pprof`",
     .make = MakePprofExporter},
    {.name = "sqlite",
     .help = "tables of runs, layers, kernels, lines, waits, memory, advice and others, for SQL",
     .lines = true,
     .make = MakeSqliteExporter},
    {.name = "parquet",
     .help = "the same tables as a dataset by job and day; -o is its folder (pip install rfinject[parquet])",
     .lines = true},
    {.name = "openmetrics",
     .help = "gauges a phase, for the textfile collector of Prometheus' node_exporter",
     .text = true,
     .make = MakeOpenMetricsExporter},
});

}  // namespace

std::span<const ExportKind> AllExports() { return kExports; }

const ExportKind* FindExport(std::string_view name) {
  const auto* found =
      std::find_if(kExports.begin(), kExports.end(), [&](const auto& kind) { return kind.name == name; });
  return found == kExports.end() ? nullptr : found;
}

ProcessInfo ProcessOf(const ExportedRun& run) {
  const ProcessInfo* first = FirstProcess(run.run.process_list);
  return first != nullptr ? *first : ProcessInfo{};
}

std::string TitleOf(const ExportedRun& run) {
  const Report& report = run.kernels;
  const std::string rank = run.run.processes > 1 ? std::to_string(run.run.processes) + " processes"
                                                 : "rank " + std::to_string(ProcessOf(run).rank);
  return absl::StrCat(rank, ": ", ModelName(report.run, report.process.list), ", ", std::string(ModeOf(report)), ", ",
                      GpuTitle(report.run));
}

}  // namespace rfinject::cli
