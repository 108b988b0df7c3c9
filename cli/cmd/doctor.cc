// `rfinject doctor`: tries what `run` needs, one thing a line, each with the line that mends it.
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/defaults.h"
#include "cli/cmd/doctor_ask.h"
#include "cli/cmd/doctor_file.h"
#include "cli/cmd/doctor_gpu.h"
#include "cli/cmd/launch.h"
#include "cli/cmd/options.h"
#include "cli/cmd/subprocess.h"
#include "cli/cmd/user_calibration.h"
#include "cli/report/fold.h"
#include "cli/report/machine.h"
#include "cli/text/code_points.h"
#include "cli/text/units.h"
#include "cli/trace/files.h"
#include "cli/trace/read.h"
#include "cli/words/words.h"
#include "gpus/gpus.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kDoctorUsage =
    "rfinject doctor [--python PYTHON]\n"
    "rfinject doctor FILE...\n\n"
    "What works on this machine and what does not, with the line that mends it. Trains a tiny model under rfinject "
    "in a\n"
    "temporary folder. Exit code 1 when programs cannot be profiled at all; a missing GPU is no reason for that.\n"
    "Of a FILE that another tool wrote (a recording, an export): what it lacks. Exit code 1 when its sums cannot be\n"
    "trusted.";

// Forward and backward in named layers, two steps of an optimizer; small enough for any machine.
constexpr const char* kTinyTraining = R"(
import torch
model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 2))
loss = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    loss(model(torch.randn(2, 3, 8, 8)), torch.tensor([0, 1])).backward()
    optimizer.step()
print(torch.__version__)
)";

enum class Grade : uint8_t { kGood, kNote, kBad };

class Findings {
 public:
  void Add(Grade verdict, const std::string& what, const std::string& text, const std::string& remedy = {}) {
    static constexpr const char* kMarks[] = {"ok", "note", "BAD"};
    const std::string line = absl::StrFormat("%-4s  %-9s %s", kMarks[static_cast<size_t>(verdict)], what, text);
    Print(absl::StrCat(absl::StripTrailingAsciiWhitespace(PrintableText(line)), "\n"));
    if (!remedy.empty()) Print("                mend it: " + PrintableText(remedy) + "\n");
    FinishOutput(0);  // each finding takes a while, and is shown when it is there
    bad_ = bad_ || verdict == Grade::kBad;
  }
  bool bad() const { return bad_; }

 private:
  bool bad_ = false;
};

std::string FirstLine(const std::string& text) {
  const size_t begin = text.find_first_not_of("\n ");
  return begin == std::string::npos ? std::string() : text.substr(begin, text.find('\n', begin) - begin);
}

// A folder of our own that goes away with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const std::string base = Variable("TMPDIR");
    path_ = (base.empty() ? "/tmp" : base) + "/rfinject-doctor-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~TemporaryFolder() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The library, found and accepted by the loader.
bool CheckLibrary(Findings& findings, std::string* library) {
  std::string tried;
  *library = FindLibrary(&tried);
  if (library->empty()) {
    findings.Add(Grade::kBad, "library", "librfinject.so is not at " + tried,
                 "keep lib/ beside bin/ as it was built, or set RFINJECT_LIBRARY to where it is");
    return false;
  }
  const SubprocessResult result =
      RunSubprocess({"/bin/true"}, {{"LD_PRELOAD", *library}, {"RFINJECT_DISABLE", "1"}}, 20);
  if (result.code != 0 || !result.errors.empty()) {
    const std::string why =
        result.errors.empty() ? "exit code " + std::to_string(result.code) : FirstLine(result.errors);
    findings.Add(Grade::kBad, "library", *library + " does not load: " + why,
                 "it needs x86-64 Linux with glibc 2.28 or newer; build it on this machine with scripts/build");
    return false;
  }
  findings.Add(Grade::kGood, "library", *library);
  return true;
}

// Runs a program without the library.
SubprocessResult RunPlain(const std::vector<std::string>& words, int timeout_s) {
  return RunSubprocess(words, {{"LD_PRELOAD", ""}}, timeout_s);
}

// A tiny training program under rfinject, estimated on some GPU: what attribution would reach here.
void CheckPython(Findings& findings, const std::string& library, const std::string& python, bool chosen) {
  const SubprocessResult version =
      RunPlain({python, "-c", "import sys; print(sys.executable, sys.version.split()[0])"}, 60);
  if (version.code != 0) {
    findings.Add(
        Grade::kBad, "python",
        python + " does not run" + (version.errors.empty() ? std::string() : ": " + LastLine(version.errors)),
        "rfinject doctor --python /path/to/the/python/that/trains");
    return;
  }
  findings.Add(Grade::kGood, "python", FirstLine(version.output));
  const SubprocessResult torch =
      RunPlain({python, "-c", "import torch; print(torch.__version__, torch.__file__)"}, 120);
  if (torch.code != 0) {
    findings.Add(chosen ? Grade::kBad : Grade::kNote, "torch", "this Python has none: " + LastLine(torch.errors),
                 "rfinject doctor --python /path/to/a/python/with/torch");
    return;
  }
  findings.Add(Grade::kGood, "torch", FirstLine(torch.output));

  TemporaryFolder folder;
  if (folder.path().empty()) {
    findings.Add(Grade::kBad, "training", std::string("no temporary folder: ") + std::strerror(errno),
                 "set TMPDIR to a folder that can be written");
    return;
  }
  const SubprocessResult run = RunSubprocess({python, "-c", kTinyTraining},
                                             {{"LD_PRELOAD", PrependPreload(library, Variable("LD_PRELOAD"))},
                                              {"RFINJECT_OUTPUT", folder.path() + "/out/"},
                                              {"RFINJECT_ESTIMATE", "A100-SXM4-40GB"},
                                              {"RFINJECT_DISABLE", ""},
                                              {"RFINJECT_STEPS", ""},
                                              {"RFINJECT_SKIP", ""},
                                              {"RFINJECT_KILL", ""}},
                                             180, folder.path());
  const auto failed = [&findings](const std::string& text) {
    findings.Add(Grade::kBad, "training", text, "run it with RFINJECT_LOG=debug and report what it says");
  };
  if (run.timed_out) return failed("a tiny training program did not end within 3 minutes under rfinject");
  if (run.code != 0) {
    return failed("a tiny training program failed under rfinject (" + std::to_string(run.code) +
                  "): " + LastLine(run.errors));
  }
  const absl::StatusOr<std::vector<std::string>> files = FindTraces(folder.path() + "/out");
  if (!files.ok()) {
    return failed("a tiny training program ran and wrote no trace" +
                  (run.errors.empty() ? std::string() : ": " + LastLine(run.errors)));
  }
  FileSource source;
  TraceContents contents;
  contents.status = source.Open(files->front());
  if (contents.status.ok()) contents = ReadTrace(source);
  if (!contents.status.ok() || contents.profile.runs.empty()) {
    return failed("its trace cannot be read" +
                  (contents.status.ok() ? std::string() : ": " + std::string(contents.status.message())));
  }
  const Run& traced = contents.profile.runs.begin()->second;
  const Report report = FoldRun(contents.profile, traced, MachineFor(traced), {});
  const std::string reason = traced.process_list.empty() ? std::string() : traced.process_list.front().tier_reason;
  const std::string text =
      "tier " + TierText(report.process.tier) + (reason.empty() ? std::string() : " (" + reason + ")");
  findings.Add(traced.tier >= 1 && traced.tier <= 3 ? Grade::kGood : Grade::kNote, "layers", text);
  if (report.total.sums.launches == 0) {
    findings.Add(Grade::kNote, "estimate", "no operator was estimated: operands could not be read in this torch");
  } else {
    findings.Add(report.attribution.without_layer == 0 ? Grade::kGood : Grade::kNote, "estimate",
                 Grouped(report.total.sums.launches) + " operators seen, " + Percent(report.attribution.share) +
                     " of forward and backward time has a layer");
  }
}

void AddAll(const std::vector<GpuFinding>& list, Findings& findings) {
  for (const GpuFinding& finding : list) {
    findings.Add(finding.good ? Grade::kGood : Grade::kNote, finding.what, finding.text, finding.remedy);
  }
}

MachineView ThisMachine() {
  MachineView machine;
  machine.environment = [](const char* name) -> const char* { return ::getenv(name); };
  machine.run = [](const std::vector<std::string>& words) -> std::optional<std::string> {
    const SubprocessResult result = RunPlain(words, 20);
    return result.code == 0 ? std::optional(result.output) : std::nullopt;
  };
  return machine;
}

// Where a libcupti could come from, torch's own first: the process's torch decides in the end.
std::vector<std::string> CuptiCandidates(const std::string& python) {
  const SubprocessResult wheels =
      RunPlain({python, "-c",
                "import glob, os, sys\n"
                "for p in sys.path:\n"
                "    for f in glob.glob(os.path.join(p, 'nvidia', '*', 'lib', 'libcupti.so.*')): print(f)\n"},
               60);
  std::vector<std::string> candidates = absl::StrSplit(wheels.output, '\n', absl::SkipEmpty());
  std::error_code error;
  for (const char* place :
       {"/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu"}) {
    for (std::filesystem::directory_iterator it(place, error), end; !error && it != end; it.increment(error)) {
      if (it->path().filename().string().rfind("libcupti.so.", 0) == 0) candidates.push_back(it->path().string());
    }
    error.clear();
  }
  return candidates;
}

void CheckInjection(Findings& findings) {
  const std::string injection = Variable("CUDA_INJECTION64_PATH");
  if (injection.empty()) return;
  findings.Add(Grade::kNote, "injection",
               "CUDA_INJECTION64_PATH is set to " + injection + ": only one tool can hold the counters",
               "unset CUDA_INJECTION64_PATH");
}

// The user's own calibration.
void SayCalibration(Findings& findings) {
  const std::string path = UserCalibrationPath();
  const absl::StatusOr<std::string> text = ReadCalibration(path, WhoseFile::kOwn);
  if (path.empty() || absl::IsNotFound(text.status())) return;
  Calibration own;
  std::string error, gpus;
  if (!text.ok()) {
    findings.Add(Grade::kNote, "estimates", std::string(text.status().message()));
  } else if (!own.AddOwn(*text, error)) {
    findings.Add(Grade::kNote, "estimates", path + " is not used: " + error, "rfinject calibrate, without the file");
  } else {
    for (const Gpu& gpu : AllGpus()) {
      if (!own.OwnSource(gpu.name).empty()) gpus += (gpus.empty() ? "" : ", ") + std::string(gpu.name);
    }
    findings.Add(Grade::kGood, "estimates", path + ": expected times of " + (gpus.empty() ? "no GPU" : gpus));
  }
}

// Where options come from that no command line says: files, and the environment.
void SayDefaults(Findings& findings) {
  const absl::StatusOr<std::vector<DefaultsFile>> files = ReadDefaultsFiles();
  if (!files.ok()) return;  // it was said when the options were read
  for (const DefaultsFile& file : *files) {
    if (!file.ignored.empty()) {
      findings.Add(Grade::kNote, "defaults", file.path + " is not used: " + file.ignored);
      continue;
    }
    std::string text = file.path + ":";
    for (const Default& one : file.defaults) {
      text += " " + one.verb + " --" + one.option + (one.value.empty() ? "" : "=" + one.value) + ",";
    }
    text.pop_back();
    findings.Add(Grade::kGood, "defaults", text);
  }
  std::string variables;
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (!text.starts_with("RFINJECT_")) continue;
    variables += " " + std::string(text);
    names.emplace_back(text.substr(0, text.find('=')));
  }
  if (!variables.empty()) findings.Add(Grade::kNote, "variables", "set here:" + variables);
  for (const std::string& name : UnknownVariables(names)) {
    findings.Add(Grade::kNote, "variables", name + " is no option's", "`rfinject VERB -h` has the options");
  }
}

}  // namespace

VerbHelp DoctorHelp() {
  return {kDoctorUsage, {{"python", 0, "PYTHON", "the interpreter to try; default python3", kPrograms}}, kFiles};
}

int DoctorMain(const ParsedOptions& parsed) {
  if (!parsed.words.empty()) return ExamineFiles(parsed.words);
  const std::string python = parsed.Value("python", "python3");
  Findings findings;
  std::string library;
  if (CheckLibrary(findings, &library)) CheckPython(findings, library, python, parsed.Has("python"));
  const MachineView machine = ThisMachine();
  const std::vector<GpuFinding> gpus = ExamineGpus(machine);
  AddAll(gpus, findings);
  AddAll(ExamineCupti(machine, CuptiCandidates(python)), findings);
  CheckInjection(findings);
  SayCalibration(findings);
  SayDefaults(findings);
  Print(WhatToAsk(machine, gpus));
  return findings.bad() ? 1 : 0;
}

}  // namespace rfinject::cli
