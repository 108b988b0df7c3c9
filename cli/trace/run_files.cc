#include "cli/trace/run_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "cli/trace/files.h"
#include "cli/trace/frames.h"
#include "cli/trace/workers.h"

namespace rfinject::cli {
namespace {

// Returns false where the trace does not tell.
bool ReadOrigin(const std::string& path, const Profile& profile, RunFiles* run) {
  if (profile.runs.empty()) return false;
  const ProcessInfo* first = nullptr;
  uint64_t processes = 0;
  for (const auto& [key, part] : profile.runs) {
    processes += part.processes;
    for (const ProcessInfo& process : part.process_list) {
      if (process.start_unix_ns == 0) continue;
      if (first == nullptr || process.start_unix_ns < first->start_unix_ns) first = &process;
    }
    if (first == nullptr && !part.process_list.empty()) first = &part.process_list.front();
  }
  run->files = {path};
  if (first != nullptr) {
    run->argv = first->argv;
    run->start_unix_ns = first->start_unix_ns;
    if (processes == 1) run->job = first->job_id;
  }
  if (struct stat status; run->start_unix_ns == 0 && ::stat(path.c_str(), &status) == 0) {
    run->start_unix_ns = ChangedUnixNs(status);
  }
  return true;
}

void ReadBeginning(const std::string& path, TraceBeginnings::One* one) {
  FileSource source;
  if (!source.Open(path).ok()) return;
  Profile runs;
  one->identity = IdentityOf(source, &runs);
  one->says_run = ReadOrigin(path, runs, &one->run);
}

}  // namespace

const TraceBeginnings::One& TraceBeginnings::Of(const std::string& path) {
  const auto [known, is_new] = known_.try_emplace(path);
  if (is_new) ReadBeginning(path, &known->second);
  return known->second;
}

void TraceBeginnings::ReadAhead(const std::vector<std::string>& paths) {
  std::vector<std::pair<const std::string*, One*>> unknown;
  for (const std::string& path : paths) {
    const auto [known, is_new] = known_.try_emplace(path);
    if (is_new) unknown.emplace_back(&known->first, &known->second);
  }
  ForEach(unknown.size(), WorkersFor(unknown.size()),
          [&](size_t i, size_t) { ReadBeginning(*unknown[i].first, unknown[i].second); });
}

std::vector<RunFiles> GroupByRun(const std::vector<std::string>& files, TraceBeginnings* beginnings,
                                 std::vector<std::string>* unknown) {
  std::vector<RunFiles> runs;
  std::map<std::string, size_t> by_job;
  beginnings->ReadAhead(files);
  for (const std::string& file : files) {
    const TraceBeginnings::One& beginning = beginnings->Of(file);
    if (!beginning.says_run) {
      unknown->push_back(file);
      continue;
    }
    const RunFiles& one = beginning.run;
    const auto [known, is_new] =
        one.job.empty() ? std::pair(by_job.end(), true) : by_job.emplace(one.job, runs.size());
    if (is_new) {
      runs.push_back(one);
      continue;
    }
    RunFiles& run = runs[known->second];
    run.files.push_back(file);
    if (one.start_unix_ns < run.start_unix_ns) {
      run.start_unix_ns = one.start_unix_ns;
      run.argv = one.argv;
    }
  }
  for (RunFiles& run : runs) std::sort(run.files.begin(), run.files.end());
  std::stable_sort(runs.begin(), runs.end(), [](const RunFiles& a, const RunFiles& b) {
    return std::pair(a.start_unix_ns, a.files.front()) < std::pair(b.start_unix_ns, b.files.front());
  });
  return runs;
}

std::string LatestRun(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path target = fs::read_symlink(fs::path(folder) / kLatestLink, error);
  if (error || target.empty() || target.has_parent_path() || target == "." || target == "..") return {};
  const fs::path run = fs::path(folder) / target;
  if (fs::symlink_status(run, error).type() != fs::file_type::directory) return {};
  return run.string() + "/";
}

}  // namespace rfinject::cli
