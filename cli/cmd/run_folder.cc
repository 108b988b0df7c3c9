#include "cli/cmd/run_folder.h"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cctype>
#include <string_view>

#include "absl/time/clock.h"
#include "cli/attach/job.h"
#include "cli/cmd/options.h"

namespace rfinject::cli {
namespace {

constexpr size_t kMaxName = 40;

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string Plain(std::string_view text) {
  std::string name;
  for (const char c : text.substr(0, kMaxName)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
    name += plain ? c : '_';
  }
  // A name that begins with a dot is hidden, and one with a dash is an option.
  while (!name.empty() && (name.front() == '.' || name.front() == '-')) name.erase(0, 1);
  return name.empty() ? "run" : name;
}

std::string OwnJob() { return LaunchersJob(&Variable); }

}  // namespace

std::string ScriptName(std::span<const std::string> words) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "-m" && i > 0 && i + 1 < words.size()) return Plain(words[i + 1]);
    if (words[i].ends_with(".py")) {
      const std::string name = FileName(words[i]);
      return Plain(std::string_view(name).substr(0, name.size() - 3));
    }
  }
  return words.empty() ? "run" : Plain(FileName(words[0]));
}

std::string RunFolderName(const std::string& folder, std::span<const std::string> words, absl::Time now,
                          int process) {
  const std::string script = ScriptName(words);
  if (const std::string job = OwnJob(); !job.empty()) return "job" + Plain(job) + "-" + script;
  const std::string time = absl::FormatTime("%Y%m%d-%H%M%S", now, absl::LocalTimeZone());
  const std::string name = time + "-" + script + "-" + std::to_string(process);
  std::string tried = name;
  struct stat status;
  for (int i = 2; ::lstat((folder + "/" + tried).c_str(), &status) == 0; ++i) tried = name + "-" + std::to_string(i);
  return tried;
}

std::string NewJobId() {
  if (!OwnJob().empty() || !Variable("RFINJECT_JOB").empty()) return {};
  utsname system{};
  const std::string host = ::uname(&system) == 0 ? system.nodename : "host";
  return Plain(host) + "." + std::to_string(::getpid()) + "." + std::to_string(absl::ToUnixSeconds(absl::Now()));
}

}  // namespace rfinject::cli
