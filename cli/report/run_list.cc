#include "cli/report/run_list.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "absl/time/time.h"
#include "cli/report/facts/run_name.h"

namespace rfinject::cli {
namespace {

constexpr auto kRunColumns = std::to_array<ColumnOf<RunLine>>({
    {TextColumn("started", "When the run began, local time."),
     [](const RunLine& run) { return TextCell(StartText(run.start_unix_ns)); }},
    {CountColumn("start_unix_ns", "The same in ns since 1970."),
     [](const RunLine& run) {
       return run.start_unix_ns > 0 ? Cell{static_cast<uint64_t>(run.start_unix_ns)} : Cell{};
     }},
    {TextColumn("source", "measured, estimated or imported."),
     [](const RunLine& run) { return Cell{std::string(SourceName(run.source))}; }},
    {TextColumn("gpu", "The GPU, or the one that was estimated."),
     [](const RunLine& run) { return TextCell(run.gpu); }},
    {TextColumn("model", "Class name of the root module."), [](const RunLine& run) { return TextCell(run.model); }},
    {CountColumn("ranks", "Ranks of the job."), [](const RunLine& run) { return Cell{run.ranks}; }},
    {CountColumn("processes", "Processes that wrote a trace."),
     [](const RunLine& run) { return Cell{run.processes}; }},
    {CountColumn("steps", "Steps of one rank."), [](const RunLine& run) { return Cell{run.steps}; }},
    {UnitColumn("gpu_time_per_step_ns", "ns", "GPU time of a step; of an estimate the expected one."),
     [](const RunLine& run) { return KnownCell(run.gpu_ns); }},
    {UnitColumn("wall_time_per_step_ns", "ns", "A step by the clock; of what was measured."),
     [](const RunLine& run) { return KnownCell(run.wall_ns); }},
    {TextColumn("command", "The command of the run."),
     [](const RunLine& run) { return TextCell(CommandText(run.argv)); }},
    {TextColumn("path", "Its traces."), [](const RunLine& run) { return TextCell(run.path); }},
});

}  // namespace

RunLine MakeRunLine(const Report& report, uint64_t ranks) {
  RunLine line;
  line.model = ModelName(report.run, report.processes);
  line.gpu = GpuTitle(report.run);
  line.source = report.run.source;
  line.processes = report.process_count;
  line.ranks = std::max<uint64_t>(ranks, 1);
  line.steps = report.steps / line.ranks;
  line.gpu_ns = report.step_gpu_ns;
  // An estimate's wall time is the time of another machine.
  if (report.run.source == SourceKind::kMeasured) line.wall_ns = report.step_wall_ns;
  return line;
}

std::string StartText(int64_t start_unix_ns) {
  if (start_unix_ns <= 0) return {};
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixNanos(start_unix_ns), absl::LocalTimeZone());
}

std::string CommandText(std::span<const std::string> argv) {
  std::string text;
  for (const std::string& word : argv) {
    text += text.empty() ? "" : " ";
    const bool plain = !word.empty() && word.find_first_of(" \t\n\"'$\\;&|<>()*?") == std::string::npos;
    if (plain) {
      text += word;
      continue;
    }
    text += '\'';
    for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
    text += '\'';
  }
  return text;
}

const ProcessInfo* FirstProcess(std::span<const ProcessInfo> processes) {
  const auto first = std::ranges::min_element(processes, {}, &ProcessInfo::start_unix_ns);
  return first != processes.end() ? &*first : nullptr;
}

std::vector<std::string> DifferentCommands(std::span<const ProcessInfo> processes) {
  std::set<std::string> commands;
  for (const ProcessInfo& process : processes) {
    std::vector<std::string> words;
    bool worker = process.argv.empty();
    for (size_t i = 0; i < process.argv.size(); ++i) {
      const std::string& word = process.argv[i];
      worker = worker || word.starts_with("from multiprocessing.") || word == "--multiprocessing-fork";
      const std::string_view name = std::string_view(word).substr(0, word.find('='));
      if (name != "--local_rank" && name != "--local-rank") {
        words.push_back(word);
      } else if (name == word) {
        ++i;  // its value
      }
    }
    if (!worker) commands.insert(CommandText(words));
  }
  if (commands.size() < 2) return {};
  return {commands.begin(), commands.end()};
}

RowSet RunRows(std::span<const RunLine> lines) { return RowSetOf(kRunColumns, lines); }

}  // namespace rfinject::cli
