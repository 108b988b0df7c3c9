// `rfinject attach`: brings the library into processes that run already, and has it measure there.
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/attach/attachable.h"
#include "cli/attach/job.h"
#include "cli/attach/process.h"
#include "cli/cmd/attached.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/launch.h"
#include "cli/cmd/options.h"
#include "cli/cmd/run_folder.h"
#include "cli/cmd/streams.h"
#include "cli/trace/files.h"
#include "cli/trace/read.h"
#include "cli/trace/run_files.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kAttachUsage =
    "rfinject attach [options] PID...\n"
    "rfinject attach [options] --job NAME\n\n"
    "Begins to measure programs with PyTorch, in Python or C++, that run already and were started without rfinject.\n"
    "The step that runs is left out. `rfinject detach PID` ends it, and so do --steps and --for; the program then\n"
    "runs as before. A process is stopped for less than a millisecond. The PID of a launcher (torchrun, mpirun, srun,\n"
    "a script) stands for the ranks that it started. What is not done: code that torch.compile makes, other\n"
    "processors than x86-64 (docs/use/JOBS.md).";

// Those of `run` that mean the same here.
constexpr std::array<std::string_view, 8> kShared = {"output",   "skip",  "start-stopped", "overhead",
                                                     "max-size", "ranks", "quiet",         "verbose"};

// The library writes nothing on the program's standard error: its log is not ours.
constexpr std::string_view kSilent = "-1";

using Settings = std::vector<std::pair<std::string, std::string>>;

// As the library reads them (injector/attachment.h).
std::string Entries(const Settings& settings) {
  std::string text;
  for (const auto& [name, value] : settings) absl::StrAppend(&text, name, "=", value, std::string(1, '\0'));
  text += '\0';
  return text;
}

// Becomes the process's user for as long as it lives, where root attaches to another's process: what is made here is
// what the process writes into.
class AsUser {
 public:
  explicit AsUser(uid_t user) : before_(::geteuid()) { changed_ = user != before_ && ::seteuid(user) == 0; }
  ~AsUser() {
    if (changed_ && ::seteuid(before_) != 0) ::_exit(1);
  }
  AsUser(const AsUser&) = delete;
  AsUser& operator=(const AsUser&) = delete;

 private:
  const uid_t before_;
  bool changed_ = false;
};

// Sets RFINJECT_OUTPUT where the user named no output: a new folder, as `run` makes it. Returns the folder that
// traces go to.
absl::StatusOr<std::string> ChooseOutput(const ParsedOptions& parsed, const Attachable& first, Settings* settings) {
  const AsUser as_user(first.user());
  for (const auto& [name, value] : *settings) {
    if (name != "RFINJECT_OUTPUT") continue;
    absl::Status writable = PrepareFolder(PatternFolder(value));
    writable.Update(CheckOutputFile(value));
    if (!writable.ok()) return writable;
    if (const std::string note = TakenOutputNote(value); !note.empty() && !parsed.Has("quiet")) Complain(note);
    return value.ends_with('/') || value.find('%') != std::string::npos ? PatternFolder(value) : value;
  }
  const std::string folder = PatternFolder(AbsolutePattern(std::string(kRunsFolder) + "/"));
  if (absl::Status writable = PrepareFolder(folder); !writable.ok()) return writable;
  const std::vector<std::string> words =
      absl::StrSplit(ReadProcFile(absl::StrCat("/proc/", first.pid(), "/cmdline")), '\0', absl::SkipEmpty());
  const std::string name = RunFolderName(folder, words, absl::Now(), first.pid());
  NoteStarted(folder, name);
  settings->emplace_back("RFINJECT_OUTPUT", AbsolutePattern(std::string(kRunsFolder) + "/" + name + "/"));
  settings->emplace_back("RFINJECT_LATEST", "1");
  return folder + name + "/";
}

// The settings, but for the output.
absl::StatusOr<Settings> ChooseSettings(const ParsedOptions& parsed) {
  absl::StatusOr<LaunchVariables> made = MakeVariables(parsed);
  if (!made.ok()) return made.status();
  if (!made->note.empty() && !parsed.Has("quiet")) Complain(made->note);
  Settings settings = std::move(made->settings);
  // Who is attached to is decided here.
  std::erase_if(settings, [](const auto& setting) { return setting.first == "RFINJECT_RANKS"; });
  // What has no GPU runs on the CPU: a virtual one has to be there before PyTorch is.
  if (parsed.Has("estimate")) settings.emplace_back("RFINJECT_ESTIMATE_ON", "cpu");
  if (!parsed.Has("quiet") && !parsed.Has("verbose")) settings.emplace_back("RFINJECT_LOG", kSilent);
  if (parsed.Has("for")) {
    absl::Duration time;
    uint64_t seconds = 0;
    const std::string text = parsed.Value("for");
    if (ParseNumber(text, &seconds) && seconds <= INT_MAX)
      time = absl::Seconds(seconds);
    else if (!absl::ParseDuration(text, &time))
      time = absl::ZeroDuration();
    if (time < absl::Seconds(1))
      return absl::InvalidArgumentError("--for wants a time like 60s or 5m, not '" + text + "'");
    settings.emplace_back("RFINJECT_SECONDS", absl::StrCat(absl::ToInt64Seconds(time)));
  }
  return settings;
}

// Whether the library lies at the same place for the process, whose root may be a container's.
bool SeesLibrary(const Attachable& process, const std::string& library) {
  struct stat here, there;
  return ::stat(library.c_str(), &here) == 0 &&
         ::stat(absl::StrCat("/proc/", process.pid(), "/root", library).c_str(), &there) == 0 &&
         here.st_size == there.st_size;
}

FindVariable VariablesOf(pid_t pid) { return InEnvironment(ReadProcFile(absl::StrCat("/proc/", pid, "/environ"))); }

// Opens all of them, before anything is done to one, but for the ranks that are not to be measured.
bool OpenAll(const std::vector<Target>& targets, const std::string& ranks, const std::string& library,
             std::vector<Attachable>* processes) {
  const std::vector<std::string> wanted = absl::StrSplit(ranks, ',', absl::SkipEmpty());
  for (const Target target : targets) {
    const std::string rank = RankOf(VariablesOf(target.pid));
    const bool all = wanted.empty() || ranks == "all" || rank.empty();
    if (!all && std::find(wanted.begin(), wanted.end(), rank) == wanted.end()) continue;
    absl::StatusOr<Attachable> process = Attachable::Open(target.pid);
    if (!Succeeded(process.status())) return false;
    if (process->library().empty() && !SeesLibrary(*process, library)) {
      Complain(absl::StrCat("process ", target.pid, " does not see ", library,
                            ", being in a container: run rfinject there "
                            "(docker exec, or nsenter --target ",
                            target.pid, " --mount --pid)"));
      return false;
    }
    processes->push_back(*std::move(process));
  }
  if (processes->empty()) Complain("none of the processes is of the ranks " + ranks);
  return !processes->empty();
}

// The parent of torch.multiprocessing.spawn's processes, which have no variables of a launcher's, only waits for
// them.
std::string NoteOfChildren(pid_t pid) {
  constexpr size_t kMostNamed = 8;
  const std::vector<Process> all = ListProcesses();
  std::vector<pid_t> with_torch;
  for (const Process& child : all) {
    if (child.parent != pid) continue;
    for (const pid_t rank : RanksBelow(all, child.pid)) with_torch.push_back(rank);
  }
  if (with_torch.empty() || with_torch.size() > kMostNamed) return {};
  return absl::StrCat("; of the processes that it started these have PyTorch: ", absl::StrJoin(with_torch, " "));
}

// Attaches to one; says what was done, or why not.
bool Attach(const Attachable& process, const std::string& library, const std::string& entries,
            const ParsedOptions& parsed, absl::Duration patience, const std::string& output) {
  const std::string& path = process.library().empty() ? library : process.library();
  if (const absl::Status status = process.CallLibrary(path, "rfinject_attach", &entries, patience); !status.ok()) {
    Complain(absl::StrCat(std::string(status.message()), NoteOfChildren(process.pid())));
    return false;
  }
  if (parsed.Has("quiet")) return true;
  const std::string rank = RankOf(VariablesOf(process.pid()));
  Complain(absl::StrCat("attached to process ", process.pid(), rank.empty() ? "" : absl::StrCat(" (rank ", rank, ")"),
                        "; the trace goes to ", output,
                        parsed.Has("report") ? "" : absl::StrCat("; 'rfinject detach ", process.pid(), "' ends it")));
  return true;
}

bool HasEnded(pid_t pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; }

// Waits until every process has closed its trace, or is gone.
void WaitForTraces(const std::vector<pid_t>& pids, const std::string& output) {
  constexpr absl::Duration kLook = absl::Milliseconds(200);
  for (;; absl::SleepFor(kLook)) {
    size_t finished = 0;
    std::error_code error;
    std::vector<std::string> files = {output};
    if (std::filesystem::is_directory(output, error)) {
      files.clear();
      for (std::filesystem::directory_iterator it(output, error), end; !error && it != end; it.increment(error)) {
        files.push_back(it->path().string());
      }
    }
    for (const std::string& file : files) {
      FileSource source;
      if (IsTraceFile(file) && source.Open(file).ok() && ReadTrace(source).finished) ++finished;
    }
    const size_t gone = static_cast<size_t>(std::count_if(pids.begin(), pids.end(), HasEnded));
    if (finished >= pids.size() || gone == pids.size()) return;
  }
}

}  // namespace

VerbHelp AttachHelp() {
  VerbHelp help = {
      kAttachUsage,
      {kJobOption,
       {"estimate", 0, "GPU", "needs no GPU: cost every operator on the roofs of this one", kGpus},
       {"steps", 0, "N", "measure N whole steps of optimizers, then detach"},
       {"for", 0, "TIME", "detach when the first step ends after so long: 60s, 5m, or a number of seconds"},
       {"report", 0, "", "wait for the end of --steps or --for, then print the summary"},
       kWaitOption}};
  for (const Option& option : LaunchOptions()) {
    if (std::find(kShared.begin(), kShared.end(), option.name) != kShared.end()) help.options.push_back(option);
  }
  return help;
}

int AttachMain(const ParsedOptions& parsed) {
  absl::Duration patience;
  std::vector<Target> targets;
  if (const int code = ReadAttachWords("attach", parsed, &targets, &patience)) return code;
  if (parsed.Has("report") && !parsed.Has("steps") && !parsed.Has("for")) {
    return UsageError("attach", "--report waits for the end of --steps N or --for TIME, which is missing");
  }
  absl::StatusOr<Settings> settings = ChooseSettings(parsed);
  if (!settings.ok()) return UsageError("attach", std::string(settings.status().message()));
  std::string tried;
  const std::string library = FindLibrary(&tried);
  if (library.empty()) {
    Complain("librfinject.so is not at " + tried);
    return 2;
  }
  std::vector<Attachable> processes;
  if (!OpenAll(targets, parsed.Value("ranks"), library, &processes)) return 1;
  // The ranks of a launcher have the launcher's.
  const std::string job = LaunchersJob(VariablesOf(processes.front().pid())).empty() ? NewJobId() : "";
  if (!job.empty()) settings->emplace_back("RFINJECT_JOB", job);
  const absl::StatusOr<std::string> output = ChooseOutput(parsed, processes.front(), &*settings);
  if (!output.ok()) {
    Complain(absl::StrCat("the output cannot be written: ", std::string(output.status().message())));
    return 2;
  }
  const std::string entries = Entries(*settings);
  // What goes wrong with one is no reason to leave out those behind it.
  std::vector<pid_t> attached;
  for (const Attachable& process : processes) {
    if (Attach(process, library, entries, parsed, patience, *output)) attached.push_back(process.pid());
  }
  const int code = attached.size() == processes.size() ? 0 : 1;
  if (!parsed.Has("report") || attached.empty()) return code;
  WaitForTraces(attached, *output);
  std::string word = *output;
  char* words[] = {word.data()};
  const int reported = RunVerb("report", Arguments(words));
  return reported != 0 ? reported : code;
}

}  // namespace rfinject::cli
