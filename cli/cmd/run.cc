// `rfinject [run]`: sets the environment and becomes the program. There is no parent process, so that exit code,
// signals, terminal and job control are the program's own; only --report needs one.
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>

#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/launch.h"
#include "cli/cmd/load.h"
#include "cli/cmd/needed_libraries.h"
#include "cli/cmd/options.h"
#include "cli/cmd/run_folder.h"
#include "cli/cmd/shared_options.h"
#include "cli/cmd/user_calibration.h"
#include "cli/import/file_name.h"
#include "cli/report/fold.h"
#include "cli/report/machine.h"
#include "cli/trace/files.h"
#include "cli/trace/run_files.h"
#include "cli/view/report_view.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kRunUsage =
    "rfinject [run] [options] [--] PROGRAM [ARGS...]\n\n"
    "Runs PROGRAM as if nothing were there and writes a trace for every training process in it. Options end at the "
    "first\n"
    "word that is none; everything from there on is the program's. The exit code is the program's own, 127 when "
    "there is\n"
    "no such program, 126 when it cannot be run, 2 for a mistake in the options.";

constexpr int kCannotRun = 126;
constexpr int kNotFound = 127;

// Finds the file that execvp would take, beforehand, so that nothing is created for a program that does not exist.
// Returns 0 with the file in `*found`, or the exit code with the reason in `*why`.
int FindProgram(const std::string& name, std::string* found, std::string* why) {
  if (name.empty()) {
    *why = "the program's name is empty";
    return kNotFound;
  }
  const auto check = [](const std::string& path) {
    struct stat status;
    if (::stat(path.c_str(), &status) != 0) return errno;
    if (S_ISDIR(status.st_mode)) return EISDIR;
    return ::access(path.c_str(), X_OK) == 0 ? 0 : errno;
  };
  if (name.find('/') != std::string::npos) {
    const int error = check(name);
    *found = name;
    if (error == 0) return 0;
    *why = error == ENOENT ? "no such program" : std::strerror(error);
    return error == ENOENT || error == ENOTDIR ? kNotFound : kCannotRun;
  }
  const char* variable = std::getenv("PATH");
  const std::string path = variable != nullptr ? variable : "/bin:/usr/bin";  // execvp's own default
  int found_error = ENOENT;
  for (const std::string& folder : std::vector<std::string>(absl::StrSplit(path, ':'))) {
    *found = (folder.empty() ? "." : folder) + "/" + name;
    const int error = check(*found);
    if (error == 0) return 0;
    if (error == EACCES) found_error = EACCES;
  }
  *why = found_error == EACCES ? "permission denied" : "no such program in PATH";
  return found_error == EACCES ? kCannotRun : kNotFound;
}

// Some words that are no program were meant as something else.
std::string Suggestion(const std::string& word) {
  const std::string_view verb = Nearest(word, VerbNames());
  if (!verb.empty()) return "; did you mean 'rfinject " + std::string(verb) + "'?";
  std::error_code error;
  if (word.ends_with(".py") && std::filesystem::is_regular_file(word, error)) {
    return "; did you mean 'rfinject python " + word + "'?";
  }
  if (const std::string remedy = OtherProfileRemedy(word); !remedy.empty()) return "; " + remedy;
  if ((word.size() > 4 && word.ends_with(".rfx")) || std::filesystem::is_directory(word, error))
    return "; did you mean 'rfinject report " + word + "'?";
  return {};
}

int ProgramFailed(const std::string& program, int code, const std::string& why) {
  Complain(program.empty() ? why : program + ": " + why + Suggestion(program));
  return code;
}

void SetVariables(const LaunchVariables& variables, bool quiet) {
  for (const auto& [name, value] : variables.settings) ::setenv(name.c_str(), value.c_str(), 1);
  ::setenv("LD_PRELOAD", PrependPreload(variables.library, Variable("LD_PRELOAD")).c_str(), 1);
  const std::string injection = Variable("CUDA_INJECTION64_PATH");
  if (injection.empty()) {
    ::setenv("CUDA_INJECTION64_PATH", variables.library.c_str(), 1);
  } else if (variables.library != injection && !quiet) {
    Complain("CUDA_INJECTION64_PATH is set to " + injection + " and stays so; that tool may hold the GPU's counters");
  }
}

// AddressSanitizer's run time as a shared library ends a program in which another library was loaded before it, as
// ours is. It need not come before ours: we define nothing that it replaces but _exit, and ours calls the next one.
// If the user sets that check, the setting stays.
void LetAddressSanitizerStart(const std::string& program) {
  constexpr std::string_view kCheck = "verify_asan_link_order";
  const std::vector<std::string> needed = NeededLibraries(program);
  if (std::none_of(needed.begin(), needed.end(), [](const std::string& name) {
        return name.starts_with("libasan.so") || name.starts_with("libclang_rt.asan");
      })) {
    return;
  }
  std::string options = Variable("ASAN_OPTIONS");
  if (options.find(kCheck) != std::string::npos) return;
  if (!options.empty()) options += ':';
  options.append(kCheck).append("=0");
  ::setenv("ASAN_OPTIONS", options.c_str(), 1);
}

// Files below `folder` that begin as a trace does, with what would change if they were written to.
using Files = std::map<std::string, std::pair<uintmax_t, int64_t>>;
Files TracesBelow(const std::string& folder) {
  namespace fs = std::filesystem;
  Files files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    struct stat status;
    if (::lstat(it->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (!IsTraceFile(it->path())) continue;
    const int64_t changed = static_cast<int64_t>(status.st_mtim.tv_sec) * 1000000000 + status.st_mtim.tv_nsec;
    files.emplace(it->path().string(), std::pair(static_cast<uintmax_t>(status.st_size), changed));
  }
  return files;
}

volatile sig_atomic_t g_child = 0;

// SIGINT and SIGQUIT come from the terminal to the whole group, the program included; these come to us alone.
constexpr int kForwarded[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

void Forward(int signal) {
  if (g_child > 0) ::kill(g_child, signal);
}

// Runs the program as a child. Its wait status, or -1 with errno.
int RunChild(char* const* words) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, &before);
  const pid_t child = ::fork();
  if (child < 0) return -1;
  if (child == 0) {
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    ::execvp(words[0], words);
    ::_exit(errno == ENOENT ? kNotFound : kCannotRun);
  }
  g_child = child;
  struct sigaction action {};
  action.sa_handler = Forward;
  action.sa_flags = SA_RESTART;
  for (const int signal : kForwarded) {
    struct sigaction old;
    // What our caller has us ignore (nohup), the program ignores too.
    if (::sigaction(signal, nullptr, &old) == 0 && old.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
  }
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGQUIT, &action, nullptr);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  g_child = 0;
  return status;
}

// Ends as the program ended: the caller must see the same signal.
int EndAs(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const int signal = WTERMSIG(status);
  const struct rlimit no_core = {0, 0};  // one core file is enough, and it is the program's
  ::setrlimit(RLIMIT_CORE, &no_core);
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  ::sigaction(signal, &action, nullptr);
  sigset_t one;
  ::sigemptyset(&one);
  ::sigaddset(&one, signal);
  ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
  ::raise(signal);
  return 128 + signal;
}

// `prepared` is the part of `folder` that was there when the program started.
void PrintReport(const std::string& folder, const std::string& prepared, const Files& before,
                 const Calibration& calibration, bool quiet) {
  std::vector<std::string> written;
  for (const auto& [path, state] : TracesBelow(folder)) {
    const auto old = before.find(path);
    if (old == before.end() || old->second != state) written.push_back(path);
  }
  if (written.empty()) {
    struct stat status;
    if (::stat(prepared.c_str(), &status) != 0 && errno == ENOENT) {
      Complain("no trace is left: " + folder + " was removed while the program ran");
    } else {
      Complain("no trace was written below " + folder +
               ": if the program trained, 'rfinject doctor' tells what works here");
    }
    return;
  }
  std::vector<Report> reports;
  for (const LoadedRun& run : LoadRuns(written, FolderMeans::kEveryRun).runs) {
    for (Report& report : FoldProfile(run.profile, MachineFor, {.calibration = &calibration}))
      reports.push_back(std::move(report));
  }
  const Document document = ReportDocument(std::move(reports));
  if (!document.nothing.empty()) return Complain(document.nothing);
  // Standard output is the program's.
  std::ostringstream table;
  const Format* const format = FindFormat(kDefaultFormat);
  (void)format->write(document, WriteOptionsFor(STDERR_FILENO), table);
  PrintError(std::move(table).str(), Colors::kOurs);
  if (quiet) return;
  // Without a path it would be the latest run here.
  std::error_code error;
  const bool latest = std::filesystem::equivalent(folder, LatestRun(std::string(kRunsFolder)), error);
  std::string next = "rfinject report";
  if (!latest && written.size() > 3) {
    next += " " + folder;
  } else if (!latest) {
    for (const std::string& path : written) next += " " + path;
  }
  Complain("more: " + next + " --by kernel, or --format html -o report.html");
}

}  // namespace

VerbHelp RunHelp() {
  VerbHelp help = {kRunUsage, {LaunchOptions().begin(), LaunchOptions().end()}, kPrograms};
  help.options.push_back({"report", 0, "", "print the summary table on standard error when the program has ended"});
  help.options.push_back(kCalibrationOption);
  return help;
}

int RunProgram(const ParsedOptions& parsed) {
  if (parsed.words.empty()) return UsageError("run", "no program is named");
  const bool quiet = parsed.Has("quiet");

  Calibration calibration;  // of the summary
  if (parsed.Has("report")) {
    absl::StatusOr<Calibration> chosen = ChosenCalibration(parsed);
    if (!chosen.ok()) return Refused("run", chosen.status());
    calibration = *std::move(chosen);
  }
  absl::StatusOr<LaunchVariables> made = MakeVariables(parsed);
  if (!made.ok()) return UsageError("run", std::string(made.status().message()));
  LaunchVariables& variables = *made;
  std::string program, why;
  if (const int code = FindProgram(parsed.words[0], &program, &why)) return ProgramFailed(parsed.words[0], code, why);

  if (!Succeeded(AddLibrary(&variables))) return 2;
  if (!variables.note.empty() && !parsed.Has("quiet")) Complain(variables.note);

  const std::string set_already = Variable("RFINJECT_OUTPUT");
  std::string pattern = set_already.empty() ? "" : AbsolutePattern(set_already);
  for (const auto& [name, value] : variables.settings) {
    if (name == "RFINJECT_OUTPUT") pattern = value;
  }
  std::string folder = PatternFolder(pattern);
  // Unless the user names an output, a run has a folder of its own, so that no other run is added to it. The program
  // makes the folder when it trains; a program that does not train leaves none.
  const bool own_folder = pattern.empty();
  if (own_folder) folder = PatternFolder(AbsolutePattern(std::string(kRunsFolder) + "/"));
  absl::Status writable = PrepareFolder(folder);
  if (writable.ok()) writable = CheckOutputFile(pattern);
  if (!writable.ok()) {
    Complain("the output cannot be written: " + std::string(writable.message()));
    return 2;
  }
  if (const std::string note = TakenOutputNote(pattern); !note.empty() && !quiet) Complain(note);
  const std::string prepared = folder;
  if (own_folder) {
    const std::string name = RunFolderName(folder, parsed.words, absl::Now(), ::getpid()), run = name + "/";
    NoteStarted(folder, name);
    folder += run;
    pattern = AbsolutePattern(std::string(kRunsFolder) + "/" + run);
    variables.settings.emplace_back("RFINJECT_OUTPUT", pattern);
    variables.settings.emplace_back("RFINJECT_LATEST", "1");
  } else if (parsed.Has("output")) {
    ::unsetenv("RFINJECT_LATEST");  // of a command of ours that this one runs under
  }
  if (const std::string job = NewJobId(); !job.empty()) variables.settings.emplace_back("RFINJECT_JOB", job);
  SetVariables(variables, quiet);
  LetAddressSanitizerStart(program);

  std::vector<char*> words;
  for (const std::string& word : parsed.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  if (!parsed.Has("report")) {
    if (parsed.Has("verbose")) {
      Complain("traces go to " + pattern + "; then: rfinject report " + folder);
    }
    // This process becomes the program, so nothing of it is left when the program ends; the library then says what
    // was measured (collector/last_words.h).
    ::setenv("RFINJECT_LAUNCHED", std::to_string(::getpid()).c_str(), 1);
    ::execvp(words[0], words.data());
    const int error = errno;
    return ProgramFailed(words[0], error == ENOENT ? kNotFound : kCannotRun, std::strerror(error));
  }
  ::unsetenv("RFINJECT_LAUNCHED");  // the summary says it all
  const Files before = TracesBelow(folder);
  const int status = RunChild(words.data());
  if (status == -1) return ProgramFailed(words[0], kCannotRun, std::strerror(errno));
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !quiet)
    Complain("the program was killed; where the kernel did it for lack of memory, dmesg says 'Out of memory'");
  PrintReport(folder, prepared, before, calibration, quiet);
  return EndAs(status);
}

}  // namespace rfinject::cli
