// `rfinject control`: starts and stops the measuring of a job that runs, by a file beside each of its traces
// (collector/record/control_file.h has the other side).
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/attach/job.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/options.h"
#include "cli/cmd/streams.h"
#include "cli/trace/files.h"
#include "cli/trace/read.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kControlUsage =
    "rfinject control PID start|stop|status\n\n"
    "Starts and stops the measuring of a running job: the process, and all that it started, as far as they write\n"
    "traces. What ran while it was stopped is in no sum, and reports say how many steps that were. It takes effect\n"
    "between two steps, a second later at most; the job is neither signalled nor held up.";

constexpr std::array<std::string_view, 3> kActions = {"start", "stop", "status"};
// Jobs look once a second, those of one thread at the end of a step.
constexpr absl::Duration kPatience = absl::Seconds(5);
constexpr absl::Duration kLookAgain = absl::Milliseconds(20);

struct Job {
  pid_t pid;
  std::string trace;  // as the process knows it
  std::string path;   // as we reach it, whatever its mounts are
  uid_t owner;
};

std::string ProcFolder(pid_t pid) { return absl::StrCat("/proc/", pid); }

// Numbers among the names in a folder of /proc.
std::vector<pid_t> NumbersIn(const std::string& folder) {
  std::vector<pid_t> numbers;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    uint64_t number = 0;
    if (ParseNumber(it->path().filename().string(), &number) && number <= INT_MAX) {
      numbers.push_back(static_cast<pid_t>(number));
    }
  }
  return numbers;
}

// What the process holds open to write to, and begins as a trace does.
void AddTraces(pid_t pid, std::vector<Job>* jobs) {
  const std::string folder = ProcFolder(pid) + "/fd/";
  for (const pid_t number : NumbersIn(folder)) {
    const std::string link = absl::StrCat(folder, number);
    struct stat how, what;
    if (::lstat(link.c_str(), &how) != 0 || (how.st_mode & S_IWUSR) == 0) continue;
    if (::stat(link.c_str(), &what) != 0 || !S_ISREG(what.st_mode) || what.st_nlink == 0 || !IsTraceFile(link))
      continue;
    std::error_code error;
    const std::string trace = std::filesystem::read_symlink(link, error).string();
    if (error || !trace.starts_with('/')) continue;
    jobs->push_back({pid, trace, ProcFolder(pid) + "/root" + trace, what.st_uid});
  }
}

std::string ControlPath(const Job& job) { return job.path + ".control"; }

// Writes the word as a file that appears whole, that belongs to the job's user, and that only this user may read.
absl::Status Ask(const Job& job, std::string_view action) {
  const auto failed = [&job] {
    return absl::Status(absl::ErrnoToStatusCode(errno),
                        absl::StrCat(job.trace, ".control: cannot be written: ", std::strerror(errno)));
  };
  const std::string text = std::string(action) + "\n";
  std::string part = ControlPath(job) + ".XXXXXX";
  const int fd = ::mkostemp(part.data(), O_CLOEXEC);  // 0600
  if (fd < 0) return failed();
  absl::Status status;
  // An administrator asks in the name of the job's user, because the job ignores files of others.
  if (::geteuid() != job.owner && ::fchown(fd, job.owner, static_cast<gid_t>(-1)) != 0) status = failed();
  if (status.ok() && ::write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) status = failed();
  ::close(fd);
  if (status.ok() && ::rename(part.c_str(), ControlPath(job).c_str()) != 0) status = failed();
  if (!status.ok()) ::unlink(part.c_str());
  return status;
}

bool IsTaken(const Job& job) { return ::access(ControlPath(job).c_str(), F_OK) != 0; }

void PrintStatus(const Job& job) {
  FileSource source;
  if (!Succeeded(source.Open(job.path))) return;
  // The job may be writing its next frame: what is whole counts, and the rest is no damage.
  const TraceContents contents = ReadTrace(source);
  uint64_t steps = 0, stopped = 0;
  uint32_t measuring = 0;
  for (const auto& [key, run] : contents.profile.runs) {
    steps += run.steps.steps;
    for (const ProcessInfo& process : run.process_list) {
      stopped = process.stopped_steps;
      measuring = process.measuring;
    }
  }
  std::string line = absl::StrCat("process ", job.pid, ": ", measuring == 1 ? "stopped" : "measuring", ", ", steps,
                                  steps == 1 ? " step measured" : " steps measured");
  if (stopped > 0) absl::StrAppend(&line, ", ", stopped, " left out");
  if (!IsTaken(job)) absl::StrAppend(&line, "; a request waits for the end of a step");
  Print(absl::StrCat(line, "; ", job.trace, "\n"));
}

}  // namespace

VerbHelp ControlHelp() { return {kControlUsage, {}, ChoicesOf(kActions)}; }

int ControlMain(const ParsedOptions& parsed) {
  if (parsed.words.size() != 2) return UsageError("control", "two words are wanted: PID, and start, stop or status");
  uint64_t pid = 0;
  if (!ParseNumber(parsed.words[0], &pid) || pid == 0 || pid > INT_MAX) {
    return UsageError("control", absl::StrCat("'", parsed.words[0], "' is no number of a process"));
  }
  const auto* const action = std::find(kActions.begin(), kActions.end(), parsed.words[1]);
  if (action == kActions.end()) {
    return UsageError("control", absl::StrCat("'", parsed.words[1], "': there are start, stop and status"));
  }
  const std::string folder = ProcFolder(static_cast<pid_t>(pid));
  if (::access(folder.c_str(), F_OK) != 0) {
    Complain(absl::StrCat("there is no process ", pid));
    return 1;
  }
  std::vector<Job> jobs;
  for (const pid_t one : ProcessesBelow(ListProcesses(), static_cast<pid_t>(pid))) AddTraces(one, &jobs);
  if (jobs.empty()) {
    Complain(::access((folder + "/fd").c_str(), R_OK) != 0
                 ? absl::StrCat("process ", pid, " is another user's")
                 : absl::StrCat("process ", pid, " and what it started write no trace, or none yet"));
    return 1;
  }
  if (*action == "status") {
    for (const Job& job : jobs) PrintStatus(job);
    return 0;
  }
  for (const Job& job : jobs) {
    if (!Succeeded(Ask(job, *action))) return 1;
  }
  const absl::Time deadline = absl::Now() + kPatience;
  for (const Job& job : jobs) {
    while (!IsTaken(job) && absl::Now() < deadline) absl::SleepFor(kLookAgain);
    const bool starts = *action == "start";
    Print(absl::StrCat("process ", job.pid,
                       !IsTaken(job) ? ": has not looked yet; it will when a step ends"
                       : starts      ? ": measures from its next step on"
                                     : ": measures no further step",
                       "\n"));
  }
  return 0;
}

}  // namespace rfinject::cli
