#include "cli/report/run_list.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "absl/time/time.h"
#include "cli/report/run_name.h"

namespace rfinject::cli {
namespace {

constexpr auto kRunColumns = std::to_array<ColumnOf<RunLine>>({
    {{.name = "started", .help = "When the run began, local time.", .kind = Kind::kText},
     [](const RunLine& run) { return TextCell(StartText(run.start_unix_ns)); }},
    {{.name = "start_unix_ns", .help = "The same in ns since 1970.", .kind = Kind::kCount},
     [](const RunLine& run) {
       return run.start_unix_ns > 0 ? Cell{static_cast<uint64_t>(run.start_unix_ns)} : Cell{};
     }},
    {{.name = "source", .help = "measured, estimated or imported.", .kind = Kind::kText},
     [](const RunLine& run) { return Cell{std::string(SourceName(run.source))}; }},
    {{.name = "gpu", .help = "The GPU, or the one that was estimated.", .kind = Kind::kText},
     [](const RunLine& run) { return TextCell(run.gpu); }},
    {{.name = "model", .help = "Class name of the root module.", .kind = Kind::kText},
     [](const RunLine& run) { return TextCell(run.model); }},
    {{.name = "ranks", .help = "Ranks of the job.", .kind = Kind::kCount},
     [](const RunLine& run) { return Cell{run.ranks}; }},
    {{.name = "processes", .help = "Processes that wrote a trace.", .kind = Kind::kCount},
     [](const RunLine& run) { return Cell{run.processes}; }},
    {{.name = "steps", .help = "Steps of one rank.", .kind = Kind::kCount},
     [](const RunLine& run) { return Cell{run.steps}; }},
    {{.name = "gpu_time_per_step_ns",
      .help = "GPU time of a step; of an estimate the expected one.",
      .kind = Kind::kUnit,
      .unit = "ns"},
     [](const RunLine& run) { return KnownCell(run.gpu_ns); }},
    {{.name = "wall_time_per_step_ns",
      .help = "A step by the clock; of what was measured.",
      .kind = Kind::kUnit,
      .unit = "ns"},
     [](const RunLine& run) { return KnownCell(run.wall_ns); }},
    {{.name = "command", .help = "The command of the run.", .kind = Kind::kText},
     [](const RunLine& run) { return TextCell(CommandText(run.argv)); }},
    {{.name = "path", .help = "Its traces.", .kind = Kind::kText},
     [](const RunLine& run) { return TextCell(run.path); }},
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
  const auto first =
      std::min_element(processes.begin(), processes.end(),
                       [](const ProcessInfo& a, const ProcessInfo& b) { return a.start_unix_ns < b.start_unix_ns; });
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

RowSet RunRows(std::span<const RunLine> lines) {
  RowSet set;
  set.size = lines.size();
  Append(
      std::span<const ColumnOf<RunLine>>(kRunColumns), [lines](size_t i) -> const RunLine& { return lines[i]; },
      &set);
  return set;
}

}  // namespace rfinject::cli
