#include <algorithm>
#include <filesystem>
#include <system_error>

#include "cli/cmd/commands.h"
#include "cli/cmd/load.h"
#include "cli/cmd/options.h"
#include "cli/cmd/output_file.h"
#include "cli/import/file_name.h"
#include "cli/import/ncu_csv.h"
#include "cli/import/nsys_sqlite.h"
#include "cli/trace/encode.h"
#include "gpus/gpus.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kUsage =
    "rfinject import ncu|nsys [options] FILE|FOLDER... -o TRACE\n\n"
    "Makes a trace of what other profilers wrote, one run a file: the CSV of Nsight Compute (ncu --csv, pages raw "
    "and\n"
    "details) or the SQLite export of Nsight Systems (times only). The model and the GPU are taken from a file's "
    "name,\n"
    "resnet18_v100.csv, unless options say them.";

constexpr Option kOptions[] = {
    {"output", 'o', "TRACE", "the trace to write; created 0600"},
    {"gpu", 0, "NAME", "what it ran on, a row of `rfinject gpus`"},
    {"model", 0, "NAME", "what ran"},
    {"times", 0, "FILE", "with ncu: times of the same kernels from this nsys export, undisturbed by ncu"},
    {"decimal", 0, "MARK", "point or comma, for files that do not tell which they use"},
};

// The files of `words`, folders replaced by what is in them with that ending, sorted.
std::string FindFiles(const std::vector<char*>& words, std::string_view ending, std::vector<std::string>* files) {
  namespace fs = std::filesystem;
  for (const char* word : words) {
    std::error_code error;
    if (!fs::is_directory(word, error)) {
      files->emplace_back(word);
      continue;
    }
    std::vector<std::string> found;
    for (fs::directory_iterator entry(word, error), end; !error && entry != end; entry.increment(error)) {
      if (entry->path().extension() == ending && entry->is_regular_file(error)) found.push_back(entry->path());
    }
    if (error) return std::string(word) + ": " + error.message();
    if (found.empty()) return std::string(word) + ": no *" + std::string(ending) + " in this folder";
    std::sort(found.begin(), found.end());
    files->insert(files->end(), found.begin(), found.end());
  }
  return {};
}

std::string UnknownGpu(const std::string& name) {
  std::array<const Gpu*, 3> nearest{};
  std::string text = name + ": no such GPU; nearest are";
  for (const Gpu* gpu : NearestGpus(name, nearest)) text += " " + std::string(gpu->name);
  return text + " (rfinject gpus lists all)";
}

}  // namespace

int ImportMain(Arguments arguments) {
  ParsedOptions parsed;
  if (const auto code = ParseOptions("import", kUsage, kOptions, arguments, WordPolicy::kAnywhere, &parsed))
    return *code;
  const std::string_view tool = parsed.words.empty() ? "" : parsed.words[0];
  if (tool != "ncu" && tool != "nsys") return UsageError("import", "say what to import: ncu or nsys");
  parsed.words.erase(parsed.words.begin());
  if (parsed.words.empty()) return UsageError("import", "no file is named");
  const std::string output = parsed.Value("output");
  if (output.empty()) return UsageError("import", "-o TRACE is missing");
  NcuOptions options;
  options.model = parsed.Value("model");
  options.gpu = parsed.Value("gpu");
  if (!options.gpu.empty()) {
    const Gpu* gpu = FindGpu(options.gpu);
    if (gpu == nullptr) return UsageError("import", UnknownGpu(options.gpu));
    options.gpu = gpu->name;
  }
  const std::string decimal = parsed.Value("decimal");
  if (!decimal.empty() && decimal != "point" && decimal != "comma") {
    return UsageError("import", "--decimal " + decimal + ": there are point and comma");
  }
  if (!decimal.empty()) options.decimal = decimal == "comma" ? DecimalMark::kComma : DecimalMark::kPoint;
  const std::string times = parsed.Value("times");
  if (!times.empty() && tool == "nsys") return UsageError("import", "--times goes with ncu");

  std::vector<std::string> files;
  if (const std::string error = FindFiles(parsed.words, tool == "ncu" ? ".csv" : ".sqlite", &files); !error.empty()) {
    Complain(error);
    return 1;
  }
  if (!times.empty() && files.size() > 1) return UsageError("import", "--times goes with one ncu file");
  OutputFile file;
  if (const std::string error = file.Open(output); !error.empty()) {
    Complain(output + ": cannot be written: " + error);
    return 1;
  }

  Profile profile;
  Progress progress("importing");
  for (size_t i = 0; i < files.size(); ++i) {
    progress.Show(i, files.size());
    NcuOptions named = options;
    const NamedRun name = RunOfFileName(files[i]);
    if (named.model.empty()) named.model = name.model;
    if (named.gpu.empty()) named.gpu = name.gpu;
    ImportResult result = tool == "ncu" ? ImportNcuCsv(files[i], named) : ImportNsysSqlite(files[i], named);
    if (!times.empty()) result = JoinTimes(std::move(result), ImportNsysSqlite(times, named));
    if (!result.error.empty()) {
      Complain(result.error);
      return 1;
    }
    if (options.gpu.empty() && !name.other_gpus.empty()) {
      std::string text = files[i] + ": taken as " + name.gpu + "; --gpu says it if it was";
      for (size_t k = 0; k < name.other_gpus.size(); ++k) text += (k == 0 ? " " : " or ") + name.other_gpus[k];
      Complain(text);
    }
    for (const std::string& warning : result.warnings) Complain(warning);
    if (const absl::Status status = profile.Merge(std::move(result.profile)); !status.ok()) {
      Complain(files[i] + ": " + std::string(status.message()));
      return 1;
    }
  }
  const absl::Status written = WriteTrace(profile, [&](const void* data, size_t size) {
    const std::string error = file.Write(data, size);
    return error.empty() ? absl::OkStatus() : absl::UnavailableError(error);
  });
  const std::string error = written.ok() ? file.Commit() : std::string(written.message());
  if (!error.empty()) {
    Complain(output + ": cannot be written: " + error);
    return 1;
  }
  return 0;
}

}  // namespace rfinject::cli
