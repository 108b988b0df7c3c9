#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/launch.h"
#include "cli/cmd/load.h"
#include "cli/cmd/options.h"
#include "cli/cmd/output_file.h"
#include "cli/cmd/progress.h"
#include "cli/import/file_name.h"
#include "cli/import/formats.h"
#include "cli/import/nsys/join_times.h"
#include "cli/import/nsys/nsys_sqlite.h"
#include "cli/trace/encode.h"
#include "gpus/gpus.h"

namespace rfinject::cli {
namespace {

// The files of `words`, folders replaced by what is in them with the format's endings, sorted. Fails with the folder
// that cannot be listed or has none.
absl::StatusOr<std::vector<std::string>> FindFiles(const std::vector<std::string>& words,
                                                   const ImportFormat& format) {
  std::vector<std::string> files;
  for (const std::string& word : words) {
    if (const std::string remedy = OtherProfileRemedy(word); !remedy.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(word, ": ", remedy));
    }
    std::error_code error;
    if (!std::filesystem::is_directory(word, error)) {
      files.emplace_back(word);
      continue;
    }
    absl::StatusOr<std::vector<std::string>> found = FilesToImport(word, &format);
    if (!found.ok()) return found.status();
    if (found->empty())
      return absl::NotFoundError(absl::StrCat(word, ": no *", std::string(format.endings[0]), " in this folder"));
    files.insert(files.end(), found->begin(), found->end());
  }
  return files;
}

// What the options say of the files. Those that another format wants are refused.
absl::StatusOr<ImportOptions> ReadOptions(const ParsedOptions& parsed, const ImportFormat& format) {
  const auto refuse = [](const std::string& why) { return absl::InvalidArgumentError(why); };
  constexpr std::pair<std::string_view, std::string_view> kOfOneFormat[] = {
      {"times", "ncu"}, {"names", "torch"}, {"shapes", "torch"}, {"estimate", "et"}};
  for (const auto& [option, of] : kOfOneFormat) {
    if (parsed.Has(option) && format.name != of) {
      return refuse("--" + std::string(option) + " goes with " + std::string(of));
    }
  }
  ImportOptions options;
  options.model = parsed.Value("model");
  options.gpu = parsed.Value("gpu");
  options.estimate = parsed.Value("estimate");
  if (format.name == "et" && options.estimate.empty()) return refuse("et wants --estimate GPU");
  for (std::string* name : {&options.gpu, &options.estimate}) {
    if (name->empty()) continue;
    const Gpu* gpu = FindBoard(*name);
    if (gpu == nullptr) return refuse(UnknownGpu(*name));
    *name = gpu->name;
  }
  const std::string decimal = parsed.Value("decimal");
  if (!decimal.empty() && decimal != "point" && decimal != "comma") {
    return refuse("--decimal " + decimal + ": there are point and comma");
  }
  if (!decimal.empty()) options.decimal = decimal == "comma" ? DecimalMark::kComma : DecimalMark::kPoint;
  options.execution_trace = parsed.Value("shapes");
  if (const std::string names = parsed.Value("names"); !names.empty()) {
    Loaded loaded = LoadTraces({names});
    if (loaded.damaged || loaded.files == 0) return absl::UnavailableError("");
    options.names = std::make_shared<const Profile>(std::move(loaded.profile));
  }
  return options;
}

}  // namespace

VerbHelp ImportHelp() {
  // What each file may be comes from the table of formats.
  static const std::string& usage = *new std::string([] {
    std::string text =
        "rfinject import FORMAT [options] FILE|FOLDER... -o TRACE\n\n"
        "Makes a trace of what other profilers wrote, one run a file. FORMAT is one of\n";
    for (const ImportFormat& format : ImportFormats()) {
      absl::StrAppendFormat(&text, "  %-6s%s\n", format.name, format.what);
    }
    return text +
           "The model, and the GPU where a file does not tell, are taken from its name, resnet18_v100.csv, "
           "unless options\nsay them. Every command that takes traces takes such files, too, as they are.";
  }());
  return {
      usage,
      {{"output", 'o', "TRACE", "the trace to write; created 0600", kFiles},
       kForceOption,
       {"gpu", 0, "NAME", "what it ran on, a row of `rfinject gpus`", kGpus},
       {"model", 0, "NAME", "what ran"},
       {"names", 0, "TRACE", "with torch: qualified names of layers from a trace of the same program (--estimate)",
        kFiles},
       {"shapes", 0, "FILE",
        "with torch: operands that the recording lacks, from an execution trace of the same program", kFiles},
       {"estimate", 0, "GPU", "with et: the GPU to estimate the program for", kGpus},
       {"times", 0, "FILE", "with ncu: times of the same kernels from this nsys export, undisturbed by ncu", kFiles},
       {"decimal", 0, "MARK", "point or comma, for files that do not tell which they use", "point comma"}},
      kFiles};
}

int ImportMain(const ParsedOptions& parsed) {
  const ImportFormat* format = parsed.words.empty() ? nullptr : FindImportFormat(parsed.words[0]);
  if (format == nullptr) return UsageError("import", "say what to import: " + ImportFormatNames());
  const std::vector<std::string> words(parsed.words.begin() + 1, parsed.words.end());
  if (words.empty()) return UsageError("import", "no file is named");
  const std::string output = parsed.Value("output");
  if (output.empty()) return UsageError("import", "-o TRACE is missing");
  absl::StatusOr<ImportOptions> read = ReadOptions(parsed, *format);
  if (absl::IsInvalidArgument(read.status())) return UsageError("import", std::string(read.status().message()));
  if (!read.ok()) return 1;  // it was said
  const ImportOptions options = *std::move(read);
  const std::string times = parsed.Value("times");

  const absl::StatusOr<std::vector<std::string>> files = FindFiles(words, *format);
  if (!files.ok()) {
    Complain(std::string(files.status().message()));
    return 1;
  }
  if (!times.empty() && files->size() > 1) return UsageError("import", "--times goes with one ncu file");
  if (!options.execution_trace.empty() && files->size() > 1)
    return UsageError("import", "--shapes goes with one file");
  Replace replace{.any = parsed.Has(kForceOption.name), .inputs = *files};
  if (!times.empty()) replace.inputs.push_back(times);
  OutputFile file;
  if (!Succeeded(file.Open(output, replace))) return 1;

  Profile profile;
  Progress progress("importing");
  for (size_t i = 0; i < files->size(); ++i) {
    const std::string& path = (*files)[i];
    progress.Show(i, files->size());
    absl::StatusOr<Imported> imported = ImportFile(*format, path, options);
    if (!times.empty()) imported = JoinTimes(std::move(imported), ImportNsysSqlite(times, options));
    if (!imported.ok()) {
      Complain(std::string(imported.status().message()));
      return 1;
    }
    for (const std::string& warning : imported->warnings) Complain(warning);
    if (const absl::Status status = profile.Merge(std::move(imported->profile)); !status.ok()) {
      Complain(absl::StrCat(path, ": ", status.message()));
      return 1;
    }
  }
  const absl::Status made =
      WriteTrace(profile, [&](const void* data, size_t size) { return file.Write(data, size); });
  if (!Succeeded(file.Commit(made))) return 1;
  return 0;
}

}  // namespace rfinject::cli
