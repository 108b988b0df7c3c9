// `rfinject export`: traces as files of other tools.
#include "cli/export/export.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/load.h"
#include "cli/cmd/options.h"
#include "cli/cmd/output_file.h"
#include "cli/cmd/progress.h"
#include "cli/cmd/shared_options.h"
#include "cli/cmd/user_calibration.h"
#include "cli/report/fold.h"
#include "cli/report/machine.h"
#include "cli/trace/frames.h"
#include "cli/trace/step_spans.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kExportUsage =
    "rfinject export --to KIND [options] [TRACE|FOLDER...] -o FILE\n\n"
    "Traces as a file of another tool: a step for Perfetto, a profile for pprof, a database, gauges for Prometheus\n"
    "(docs/use/IMPORT_AND_EXPORT.md). Each trace is a process of its own, ranks are not added up; `rfinject merge`\n"
    "does that. Without a name it is the latest run in rfinject-out/; a folder is its newest run, with --all every\n"
    "run in it.";

std::vector<std::string_view> Kinds() {
  std::vector<std::string_view> names;
  for (const ExportKind& kind : AllExports()) names.push_back(kind.name);
  return names;
}

// Exports what one trace holds.
absl::Status ExportTrace(const std::string& path, const std::string& job, const Profile& profile,
                         const Calibration& calibration, const ExportKind& to, Exporter* exporter) {
  std::vector<StepSpan> steps;
  if (FileSource source; to.steps && source.Open(path).ok()) steps = ReadStepSpans(source);
  for (const auto& [key, run] : profile.runs) {
    const std::vector<Report> reports =
        FoldRunBy(profile, run, MachineFor(run), {.calibration = &calibration}, to.groupings());
    ExportedRun exported{.path = path,
                         .job = job,
                         .run = run,
                         .layers = reports[0],
                         .kernels = reports[1],
                         .trace_id = profile.trace_ids.empty() ? "" : *profile.trace_ids.begin()};
    if (to.lines) exported.lines = &reports[2];
    if (!reports[0].steps.validation) exported.steps = run.step_spans.empty() ? steps : run.step_spans;
    const absl::Status status = exporter->Add(exported);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// The program for the Python beside the command. That runs isolated (-I), so that it imports no file of the working
// folder.
constexpr const char* kParquetProgram =
    "import sys\n"
    "try:\n"
    "    from rfinject.parquet import main\n"
    "except ImportError:\n"
    "    sys.exit('rfinject: --to parquet needs the Python package: pip install \"rfinject[parquet]\"')\n"
    "sys.exit(main(sys.argv[1:]))\n";

// Becomes rfinject.parquet of the environment that this command was installed into. Returns the exit code of a
// failure.
int BecomePythonExport(const std::vector<std::string>& paths, const std::string& output,
                       const ParsedOptions& parsed) {
  if (parsed.Has(kLimitOption.name)) {
    return UsageError("export", "--limit does not go with --to parquet, which has the limits that it has by default");
  }
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string python = self.parent_path() / "python3";
  std::vector<std::string> words = {python, "-I", "-c", kParquetProgram, "-o", output};
  if (parsed.Has("all")) words.emplace_back("--all");
  if (parsed.Has(kForceOption.name)) words.emplace_back("--force");
  words.emplace_back("--");
  words.insert(words.end(), paths.begin(), paths.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  if (!error) {
    ::setenv("RFINJECT_COMMAND", self.c_str(), 1);
    ::execv(python.c_str(), arguments.data());
  }
  Complain("--to parquet needs the Python package, and there is no " + python +
           ": pip install \"rfinject[parquet]\", and use the command that it brings");
  return 1;
}

struct MeantTrace {
  std::string path, job;
};

// Returns the traces that are meant, each once.
std::vector<MeantTrace> MeantTraces(const std::vector<std::string>& paths, bool all, LoadedRuns* unreadable) {
  std::vector<std::string> files;
  std::map<std::string, std::string> job_of;
  for (const std::string& path : paths) {
    const std::vector<RunFiles> runs = FindRuns({path}, unreadable);
    std::error_code error;
    const bool newest = !all && std::filesystem::is_directory(path, error);
    for (size_t i = newest && !runs.empty() ? runs.size() - 1 : 0; i < runs.size(); ++i) {
      for (const std::string& file : runs[i].files) {
        if (job_of.emplace(file, runs[i].job).second) files.push_back(file);
      }
    }
    if (newest && runs.size() > 1) {
      Complain(absl::StrCat(path, ": the newest of ", runs.size(), " runs; --all exports every one"));
    }
  }
  std::vector<MeantTrace> traces;
  for (std::string& file : FullestFirst(std::move(files))) {
    std::string& job = job_of[file];
    traces.push_back({std::move(file), std::move(job)});
  }
  return traces;
}

}  // namespace

VerbHelp ExportHelp() {
  static const auto* const kKindsHelp =
      new std::string(absl::StrJoin(AllExports(), ";\n", [](std::string* out, const ExportKind& kind) {
        absl::StrAppend(out, std::string(kind.name), ": ", std::string(kind.help));
      }));
  return {kExportUsage,
          {{"to", 0, "KIND", *kKindsHelp, ChoicesOf(Kinds())},
           {"output", 'o', "FILE", "the file to write; created 0600", kFiles},
           kForceOption,
           {"all", 0, "", "every run in a folder, not its newest"},
           kLimitOption,
           kCalibrationOption},
          kFiles};
}

int ExportMain(const ParsedOptions& parsed) {
  const std::vector<std::string_view> kinds = Kinds();
  if (!parsed.Has("to")) return UsageError("export", "say what to export to: --to " + std::string(ChoicesOf(kinds)));
  OptionReader reader(parsed);
  const ExportKind& to = AllExports()[reader.Word("to", kinds, kinds.front())];
  const std::string output = parsed.Value("output");
  if ((output.empty() || output == "-") && !to.text) {
    reader.Refuse("-o FILE is missing: " + std::string(to.name) + " is no text for a terminal");
  }
  const Limits limits = reader.Limit();
  const Calibration calibration = reader.CalibrationOption();
  if (!reader.ok()) return Refused("export", reader.status());
  const std::vector<std::string> paths = PathsOrNewestRun("export", parsed);
  if (paths.empty()) return 2;
  if (to.make == nullptr) return BecomePythonExport(paths, output, parsed);
  const bool to_file = !output.empty() && output != "-";
  OutputFile file;
  if (to_file && !Succeeded(file.Open(output, ReplaceOf(parsed, paths)))) return 1;
  absl::Status written;
  const std::unique_ptr<Exporter> exporter = to.make([&](std::string_view bytes) {
    if (!to_file) {
      Print(bytes);
    } else if (written.ok()) {
      written = file.Write(bytes.data(), bytes.size());
    }
  });

  LoadedRuns unreadable;
  const std::vector<MeantTrace> traces = MeantTraces(paths, parsed.Has("all"), &unreadable);
  bool damaged = unreadable.damaged;
  bool any = false;
  absl::Status status;
  std::set<std::string> ids;
  const auto add = [&](const MeantTrace& trace, Profile profile) {
    // The file is a copy, or a merged trace beside its parts, whose sums would count twice.
    bool known = false;
    for (const std::string& id : profile.trace_ids) known = !ids.insert(id).second || known;
    if (known) {
      Complain(trace.path + ": not exported: what is in it is in a trace before it");
      return;
    }
    ApplyLimits(limits, &profile);
    any = any || !profile.runs.empty();
    if (status.ok()) status = ExportTrace(trace.path, trace.job, profile, calibration, to, exporter.get());
  };
  {
    Progress progress("exporting trace");
    for (size_t i = 0; i < traces.size() && status.ok() && written.ok(); ++i) {
      progress.Show(i + 1, traces.size());
      Loaded loaded = LoadTraces({traces[i].path});
      damaged = damaged || loaded.damaged;
      add(traces[i], std::move(loaded.profile));
    }
  }
  for (LoadedRun& run : unreadable.runs) add({run.of.files.front(), run.of.job}, std::move(run.profile));
  if (!any) {
    if (!damaged) Complain("there is nothing to export");
    return 1;
  }
  if (status.ok()) status = exporter->Finish();
  if (status.ok()) status = std::move(written);
  if (to_file) {
    if (!Succeeded(file.Commit(status))) return 1;
  } else if (!Succeeded(status) || FinishOutput(0) != 0) {
    return 1;
  }
  return damaged ? 1 : 0;
}

}  // namespace rfinject::cli
