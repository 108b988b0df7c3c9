#include "cli/trace/run_files.h"

#include <sys/stat.h>
#include <unistd.h>

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

// The name that a link in `folder` has; empty where it is none of the folder.
std::filesystem::path NameInLink(const std::string& folder, std::string_view link) {
  std::error_code error;
  std::filesystem::path name = std::filesystem::read_symlink(std::filesystem::path(folder) / link, error);
  if (error || name.has_parent_path() || name == "." || name == "..") return {};
  return name;
}

std::filesystem::file_type FileTypeOf(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::symlink_status(path, error).type();
}

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
  const std::filesystem::path name = NameInLink(folder, kLatestLink);
  const std::filesystem::path run = std::filesystem::path(folder) / name;
  if (name.empty() || FileTypeOf(run) != std::filesystem::file_type::directory) return {};
  return run.string() + "/";
}

void NoteStarted(const std::string& folder, const std::string& name) {
  if (LatestRun(folder).empty()) return;
  const std::filesystem::path link = std::filesystem::path(folder) / kStartedLink;
  const std::filesystem::path made = link.string() + "-" + std::to_string(::getpid());
  std::error_code error;
  std::filesystem::create_symlink(name, made, error);
  if (!error) std::filesystem::rename(made, link, error);
  if (error) std::filesystem::remove(made, error);
}

std::string StartedWithoutTrace(const std::string& folder) {
  const std::filesystem::path name = NameInLink(folder, kStartedLink);
  const bool left_none = FileTypeOf(std::filesystem::path(folder) / name) == std::filesystem::file_type::not_found;
  return !name.empty() && left_none ? name.string() : std::string();
}

}  // namespace rfinject::cli
