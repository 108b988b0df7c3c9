#include "cli/attach/job.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/attach/process.h"

namespace rfinject::cli {
namespace {

bool ToPid(std::string_view text, pid_t* pid) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *pid);
  return error == std::errc() && end == text.data() + text.size() && *pid > 0;
}

// Whether it runs in a step of Slurm's that has several tasks: a batch script runs in one of a single task.
bool IsSlurmTask(const FindVariable& variable) {
  std::string tasks = variable("SLURM_STEP_NUM_TASKS");
  if (tasks.empty()) tasks = variable("SLURM_NTASKS");
  return std::atoi(tasks.c_str()) > 1;
}

// What launchers tell a rank, all of it: it differs from rank to rank, and between a rank and its launcher.
std::string Place(const std::string& environment) {
  const FindVariable variable = InEnvironment(environment);
  std::string place;
  if (RankOf(variable).empty()) return place;
  for (const char* name : {"TORCHELASTIC_RUN_ID", "RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                           "SLURM_STEP_ID", "SLURM_PROCID"}) {
    absl::StrAppend(&place, variable(name), "\n");
  }
  return place;
}

const Process* Find(const std::vector<Process>& all, pid_t pid) {
  const auto found = std::find_if(all.begin(), all.end(), [pid](const Process& one) { return one.pid == pid; });
  return found != all.end() ? &*found : nullptr;
}

struct Ranks {
  const std::vector<Process>& all;
  const HasTorch& has_torch;
  std::set<pid_t> seen = {};  // while /proc was read a number may have been given again

  std::vector<const Process*> Below(const Process& root) {
    std::vector<const Process*> found, launched;
    if (!seen.insert(root.pid).second) return found;
    for (const Process& child : all) {
      if (child.parent != root.pid) continue;
      const std::vector<const Process*> below = Below(child);
      found.insert(found.end(), below.begin(), below.end());
    }
    const std::string place = Place(root.environment);
    std::copy_if(found.begin(), found.end(), std::back_inserter(launched), [&place](const Process* one) {
      const std::string theirs = Place(one->environment);
      return !theirs.empty() && theirs != place;
    });
    if (!launched.empty()) return launched;
    if (has_torch(root.pid)) return {&root};
    return found;
  }
};

// The ranks of these processes and what they started, by rank.
std::vector<pid_t> RanksBelowAny(const std::vector<Process>& all, const std::set<pid_t>& roots,
                                 const HasTorch& has_torch) {
  Ranks ranks{all, has_torch};
  std::vector<const Process*> found;
  for (const Process& one : all) {
    if (roots.count(one.pid) == 0 || roots.count(one.parent) != 0) continue;
    const std::vector<const Process*> below = ranks.Below(one);
    found.insert(found.end(), below.begin(), below.end());
  }
  std::vector<std::pair<int, pid_t>> sorted;
  for (const Process* one : found) {
    sorted.emplace_back(std::atoi(RankOf(InEnvironment(one->environment)).c_str()), one->pid);
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<pid_t> pids;
  for (const auto& [rank, pid] : sorted) pids.push_back(pid);
  return pids;
}

}  // namespace

FindVariable InEnvironment(std::string environment) {
  environment.insert(0, 1, '\0');
  return [text = std::move(environment)](const char* name) -> std::string {
    const std::string wanted = absl::StrCat(std::string(1, '\0'), name, "=");
    const size_t begin = text.find(wanted);
    if (begin == text.npos) return {};
    return text.substr(begin + wanted.size(), text.find('\0', begin + 1) - begin - wanted.size());
  };
}

std::string LaunchersJob(const FindVariable& variable) {
  if (std::string id = variable("TORCHELASTIC_RUN_ID"); !id.empty() && !variable("RANK").empty()) {
    return id != "none" ? id : variable("MASTER_PORT");
  }
  if (std::string id = variable("PMIX_NAMESPACE"); !id.empty()) return id;
  if (IsSlurmTask(variable) && !variable("SLURM_STEP_ID").empty() && !variable("SLURM_PROCID").empty()) {
    return variable("SLURM_JOB_ID") + "." + variable("SLURM_STEP_ID");
  }
  return {};
}

std::string RankOf(const FindVariable& variable) {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
    if (std::string rank = variable(name); !rank.empty()) return rank;
  }
  return IsSlurmTask(variable) ? variable("SLURM_PROCID") : std::string();
}

std::vector<Process> ListProcesses() {
  std::vector<Process> all;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    Process process;
    if (!ToPid(it->path().filename().string(), &process.pid)) continue;
    const std::string folder = it->path().string();
    process.parent = ParseProcessStatus(ReadProcFile(folder + "/status")).parent;
    process.environment = ReadProcFile(folder + "/environ");
    all.push_back(std::move(process));
  }
  return all;
}

std::vector<pid_t> ProcessesBelow(const std::vector<Process>& all, pid_t root) {
  std::vector<pid_t> below = {root};
  std::set<pid_t> seen = {root};
  for (size_t i = 0; i < below.size(); ++i) {
    for (const Process& one : all) {
      if (one.parent == below[i] && seen.insert(one.pid).second) below.push_back(one.pid);
    }
  }
  return below;
}

bool HasTorchInMemory(pid_t pid) {
  return ReadProcFile(absl::StrCat("/proc/", pid, "/maps")).find("/libtorch_cpu.so") != std::string::npos;
}

std::vector<pid_t> RanksBelow(const std::vector<Process>& all, pid_t root, const HasTorch& has_torch) {
  return RanksBelowAny(all, {root}, has_torch);
}

std::vector<pid_t> RanksOfJob(const std::vector<Process>& all, std::string_view name, const HasTorch& has_torch) {
  const auto members = [&all](std::string_view job) {
    std::set<pid_t> found;
    for (const Process& one : all) {
      const FindVariable variable = InEnvironment(one.environment);
      if (LaunchersJob(variable) == job || variable("SLURM_JOB_ID") == job) found.insert(one.pid);
    }
    return found;
  };
  if (name.empty()) return {};
  if (std::vector<pid_t> ranks = RanksBelowAny(all, members(name), has_torch); !ranks.empty()) return ranks;
  pid_t pid = 0;
  const Process* const process = ToPid(name, &pid) ? Find(all, pid) : nullptr;
  if (process == nullptr) return {};
  const std::string job = LaunchersJob(InEnvironment(process->environment));
  return job.empty() ? RanksBelow(all, pid, has_torch) : RanksBelowAny(all, members(job), has_torch);
}

}  // namespace rfinject::cli
