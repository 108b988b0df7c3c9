#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/cmd/commands.h"
#include "cli/cmd/load.h"
#include "cli/cmd/options.h"
#include "cli/cmd/print_report.h"
#include "cli/cmd/streams.h"
#include "cli/cmd/user_calibration.h"
#include "cli/emit/cell_text.h"
#include "cli/emit/code_points.h"
#include "cli/emit/csv_writer.h"
#include "cli/emit/json_writer.h"
#include "cli/report/fold.h"
#include "cli/report/machine.h"
#include "cli/report/run_list.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kUsage =
    "rfinject runs [TRACE|FOLDER...]\n\n"
    "The runs, oldest first: when, on what, how many ranks and steps, how long a step took, the command, and where "
    "the\n"
    "traces are. Without a name those in rfinject-out/. Ranks and restarts of one job are one run.";

constexpr Option kOptions[] = {
    {"format", 0, "FORMAT", "table (default), json or csv", "table json csv"}, kRawOption, kCalibrationOption};

// For each folder above a trace how many runs have traces in it, in whatever depth.
std::map<std::string, size_t> RunsAbove(const std::vector<LoadedRun>& runs) {
  std::map<std::string, size_t> counts;
  for (const LoadedRun& run : runs) {
    std::map<std::string, bool> seen;
    for (const std::string& file : run.of.files) {
      for (std::filesystem::path folder = std::filesystem::path(file).parent_path(); !folder.empty();
           folder = folder.parent_path()) {
        seen[folder.string()] = true;
        if (folder == folder.root_path()) break;
      }
    }
    for (const auto& [folder, yes] : seen) ++counts[folder];
  }
  return counts;
}

// What one would give to `report`: the folder, where it holds nothing but this run.
std::string PathOf(const RunFiles& run, const std::map<std::string, size_t>& runs_above) {
  const std::string& first = run.files.front();
  const std::string folder = std::filesystem::path(first).parent_path().string();
  const auto alone = runs_above.find(folder);
  const bool all_there = std::all_of(run.files.begin(), run.files.end(), [&](const std::string& file) {
    return std::filesystem::path(file).parent_path().string() == folder;
  });
  if (!folder.empty() && alone != runs_above.end() && alone->second == 1 && all_there) return folder + "/";
  return run.files.size() == 1 ? first : first + " and " + std::to_string(run.files.size() - 1) + " more";
}

void PrintTable(const RowSet& runs, const TableOptions& options, std::ostream& out) {
  TextGrid grid;
  grid.mark = "";
  const std::vector<const Column*> columns = ShownIn(runs, &ColumnInfo::table);
  for (const Column* column : columns) {
    grid.columns.push_back(GridColumnOf(column->info.table, column->info.name == "command" ? 12 : 0));
    if (column->info.kind == Kind::kText) grid.columns.back().gap = 2;
  }
  for (size_t i = 0; i < runs.size; ++i) {
    GridLine& line = grid.lines.emplace_back();
    for (const Column* column : columns) {
      line.cells.push_back(PrintableText(TableText(column->info, column->info.table, column->value(i))));
    }
  }
  WriteGrid(grid, options.width, options.color, out);
}

}  // namespace

VerbHelp RunsHelp() { return {kUsage, {std::begin(kOptions), std::end(kOptions)}, kFiles}; }

int RunsMain(Arguments arguments) {
  ParsedOptions parsed;
  if (const auto code = ParseOptions("runs", RunsHelp(), arguments, WordPolicy::kAnywhere, &parsed)) return *code;
  const std::string format = parsed.Value("format", "table");
  if (format != "table" && format != "csv" && format != "json") {
    return UsageError("runs", "--format " + format + ": there are table, json and csv");
  }
  const bool raw = parsed.Has(kRawOption.name);
  if (raw && format != "csv")
    return UsageError("runs", "--raw goes with --format csv; the other formats never change a text");
  const CsvTexts csv_texts = raw ? CsvTexts::kExact : CsvTexts::kForSpreadsheets;
  int code = 0;
  Calibration calibration;
  if (!ChooseCalibration(parsed, &calibration, &code)) return code;
  std::vector<std::string> paths = PathsOf(parsed.words);
  if (paths.empty()) paths = {std::string(kRunsFolder)};
  const LoadedRuns loaded = LoadRuns(paths, FolderMeans::kEveryRun);
  std::vector<RunLine> lines;
  const std::map<std::string, size_t> runs_above = RunsAbove(loaded.runs);
  for (const LoadedRun& run : loaded.runs) {
    for (const auto& [key, part] : run.profile.runs) {
      RunLine line =
          MakeRunLine(FoldRun(run.profile, part, MachineFor(part), {.by = By::kModel, .calibration = &calibration}),
                      part.ranks.size());
      line.path = PathOf(run.of, runs_above);
      line.start_unix_ns = run.of.start_unix_ns;
      line.argv = run.of.argv;
      lines.push_back(std::move(line));
    }
  }
  if (lines.empty()) return 1;
  std::stable_sort(lines.begin(), lines.end(),
                   [](const RunLine& a, const RunLine& b) { return a.start_unix_ns < b.start_unix_ns; });
  RowSet rows = RunRows(lines);
  std::ostringstream text;
  if (format == "table") {
    PrintTable(rows, TableOptionsFor(STDOUT_FILENO), text);
  } else if (format == "csv") {
    WriteCsv(std::vector<RowSet>{rows}, csv_texts, text);
  } else {
    JsonWriter json(text);
    json.BeginObject();
    json.Member("schema", "rfinject.runs/1");
    json.Rows("runs", rows);
    json.EndObject();
  }
  Print(std::move(text).str(), format == "table" ? Colors::kOurs : Colors::kNone);
  return loaded.damaged ? 1 : 0;
}

}  // namespace rfinject::cli
