#include "cli/cmd/attached.h"

#include <algorithm>
#include <climits>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/attach/job.h"
#include "cli/cmd/streams.h"

namespace rfinject::cli {
namespace {

void Add(pid_t pid, bool named, std::vector<Target>* targets) {
  const bool there = std::any_of(targets->begin(), targets->end(), [pid](Target one) { return one.pid == pid; });
  if (!there) targets->push_back({pid, named});
}

}  // namespace

int ReadAttachWords(std::string_view verb, const ParsedOptions& parsed, std::vector<Target>* targets,
                    absl::Duration* patience) {
  uint64_t seconds = 5;
  if (parsed.Has("wait") && (!ParseNumber(parsed.Value("wait"), &seconds) || seconds > INT_MAX)) {
    return UsageError(verb, "--wait wants a number of seconds, not '" + parsed.Value("wait") + "'");
  }
  *patience = absl::Seconds(seconds);
  std::vector<pid_t> pids;
  for (const std::string& word : parsed.words) {
    uint64_t pid = 0;
    if (!ParseNumber(word, &pid) || pid == 0 || pid > INT_MAX) {
      return UsageError(verb, absl::StrCat("'", word, "' is no number of a process"));
    }
    pids.push_back(static_cast<pid_t>(pid));
  }
  if (pids.empty() && !parsed.Has("job")) return UsageError(verb, "no process is named");
  const std::vector<Process> all = ListProcesses();
  for (const pid_t pid : pids) {
    const std::vector<pid_t> ranks = RanksBelow(all, pid);
    if (ranks.empty()) Add(pid, true, targets);  // which will say what is wrong with it
    for (const pid_t rank : ranks) Add(rank, rank == pid, targets);
  }
  if (parsed.Has("job")) {
    const std::vector<pid_t> ranks = RanksOfJob(all, parsed.Value("job"));
    if (ranks.empty()) {
      Complain(absl::StrCat("no process with PyTorch on this machine is one of job '", parsed.Value("job"),
                            "' (Slurm's number, torchrun's --rdzv-id, PMIx's namespace, or a PID of it)"));
      return 1;
    }
    for (const pid_t rank : ranks) Add(rank, false, targets);
  }
  return 0;
}

}  // namespace rfinject::cli
