#include "cli/cmd/launch.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gpus/gpus.h"

namespace rfinject::cli {
namespace {

constexpr Option kLaunchOptions[] = {
    {"output", 'o', "PATH",
     "folder, or file pattern (NAME.rfx) for the traces: %h host, %p process id, %r rank,\n"
     "%q{ENV} a variable, %% a percent sign. Default: a new folder in rfinject-out/, which\n"
     "rfinject-out/latest names",
     kFiles},
    {"estimate", 0, "GPU", "needs no GPU: cost every operator on the roofs of this one (rfinject gpus)", kGpus},
    {"estimate-on", 0, "WHAT",
     "where the program runs meanwhile: virtual-gpu (no arithmetic is done,\n"
     "docs/use/VIRTUAL_GPU.md), cpu, or auto, the default: a virtual GPU if torch is a CUDA\n"
     "build and no driver is here",
     "auto cpu virtual-gpu"},
    {"values", 0, "WHAT",
     "what is computed on a virtual GPU: small, the default, what belongs to small tensors;\n"
     "all, everything, at the speed of the CPU and with as much of its memory; or none",
     "all none small"},
    {"virtual-gpus", 0, "N", "how many virtual GPUs the program sees; default 1, under torchrun one a process"},
    {"steps", 0, "N", "measure N steps of optimizers (an iteration may have several), then stop measuring"},
    {"skip", 0, "N", "leave the first N steps out"},
    {"start-stopped", 0, "", "measure nothing until rfinject.start() or `rfinject control PID start` says so"},
    {"kill", 0, "", "end the program politely after --steps"},
    {"overhead", 0, "PERCENT", "the budget for measuring; default 1"},
    {"max-size", 0, "MB", "of a trace, for long runs: written more seldom, never cut off; default 256, 0: any"},
    {"ranks", 0, "WHICH", "of a job of several processes, those that measure: all (default), or ranks like 0 or 0,8"},
    {"quiet", 'q', "", "no message from rfinject"},
    {"verbose", 'v', "", "more of them"},
};

// 12 or 12.5; between 0 and 100.
bool IsPercent(const std::string& text) {
  const size_t point = std::min(text.find('.'), text.size());
  uint64_t whole = 0, fraction = 0;
  if (!ParseNumber(text.substr(0, point), &whole) || whole > 100) return false;
  return point == text.size() || ParseNumber(text.substr(point + 1), &fraction);
}

bool IsReadableFile(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), R_OK) == 0;
}

std::string Resolved(const std::string& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  return error ? path : real.string();
}

// Whether an output pattern without a slash at its end is a folder all the same: "out", which is not there or is one,
// but not "out.rfx" or "out-%p".
bool NamesAFolder(const std::string& pattern) {
  if (pattern.ends_with('/') || pattern.ends_with(".rfx")) return false;
  if (pattern.find('%', pattern.rfind('/') + 1) != std::string::npos) return false;
  struct stat status;
  // A link to nothing is there.
  if (::stat(pattern.c_str(), &status) != 0) return ::lstat(pattern.c_str(), &status) != 0;
  return S_ISDIR(status.st_mode);
}

}  // namespace

std::span<const Option> LaunchOptions() { return kLaunchOptions; }

std::string FindLibrary(std::string* tried) {
  tried->clear();
  if (const std::string named = Variable("RFINJECT_LIBRARY"); !named.empty()) {
    if (IsReadableFile(named)) return Resolved(named);
    *tried = named + " (RFINJECT_LIBRARY)";
    return {};
  }
  std::error_code error;
  std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (self.empty()) {  // there is no /proc, as in a bare chroot
    const auto* started = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
    if (started != nullptr) self = Resolved(started);
  }
  const std::string folder = self.substr(0, self.rfind('/') + 1);
  for (const char* place : {"../lib/librfinject.so", "../lib/rfinject/librfinject.so"}) {
    if (IsReadableFile(folder + place)) return Resolved(folder + place);
    *tried += (tried->empty() ? "" : ", ") + folder + place;
  }
  return {};
}

namespace {

// An option that wants one of a few words, and its variable.
struct WordOption {
  const char* name;
  const char* variable;
  std::array<std::string_view, 3> words;
  const char* wanted;
};
constexpr WordOption kWordOptions[] = {
    {"estimate-on", "RFINJECT_ESTIMATE_ON", {"auto", "cpu", "virtual-gpu"}, "auto, cpu or virtual-gpu"},
    {"values", "RFINJECT_VALUES", {"small", "all", "none"}, "small, all or none"},
};

absl::Status Wants(const ParsedOptions& options, std::string_view name, const std::string& what) {
  return absl::InvalidArgumentError("--" + std::string(name) + " wants " + what + ", not '" + options.Value(name) +
                                    "'");
}

absl::Status CheckVirtualGpus(const ParsedOptions& options) {
  constexpr uint64_t kMost = 64;
  uint64_t number = 0;
  if (!ParseNumber(options.Value("virtual-gpus"), &number) || number == 0 || number > kMost) {
    return Wants(options, "virtual-gpus", "a number from 1 to 64");
  }
  const bool estimates = options.Has("estimate") || !Variable("RFINJECT_ESTIMATE").empty();
  // A default of the user's is for those runs that it fits.
  if (!estimates && !options.defaults.contains("virtual-gpus")) {
    return absl::InvalidArgumentError("--virtual-gpus goes with --estimate GPU, which says of which kind they are");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LaunchVariables> MakeVariables(const ParsedOptions& options) {
  LaunchVariables variables;
  const auto set = [&](const char* name, const std::string& value) { variables.settings.emplace_back(name, value); };

  const std::string output = options.Value("output");
  if (options.Has("output") && output.empty()) return absl::InvalidArgumentError("--output wants a path");
  if (!output.empty()) set("RFINJECT_OUTPUT", AbsolutePattern(output) + (NamesAFolder(output) ? "/" : ""));

  if (options.Has("estimate")) {
    const std::string name = options.Value("estimate");
    const Gpu* gpu = FindBoard(name);
    if (gpu == nullptr) return absl::InvalidArgumentError("--estimate " + UnknownGpu(name));
    if (!HasEstimates(*gpu)) {
      return absl::InvalidArgumentError("--estimate " + name +
                                        ": nothing is estimated for AMD's GPUs; rfinject reads recordings of them");
    }
    if (FindGpu(name) == nullptr) {
      variables.note = "--estimate " + name + " is " + std::string(gpu->name) + " (rfinject gpus lists all)";
    }
    set("RFINJECT_ESTIMATE", std::string(gpu->name));
  }
  for (const auto& [name, variable, words, wanted] : kWordOptions) {
    if (!options.Has(name)) continue;
    const std::string word = options.Value(name);
    if (std::find(words.begin(), words.end(), word) == words.end()) return Wants(options, name, wanted);
    set(variable, word);
  }
  // A number, which the library gets without leading zeros.
  const auto set_number = [&](const char* name, const char* variable, const char* what) {
    uint64_t number = 0;
    if (!options.Has(name)) return absl::OkStatus();
    if (!ParseNumber(options.Value(name), &number)) return Wants(options, name, what);
    set(variable, std::to_string(number));
    return absl::OkStatus();
  };
  absl::Status status;
  if (options.Has("virtual-gpus")) status = CheckVirtualGpus(options);
  status.Update(set_number("virtual-gpus", "RFINJECT_VIRTUAL_GPUS", "a number"));
  status.Update(set_number("steps", "RFINJECT_STEPS", "a number of steps"));
  status.Update(set_number("skip", "RFINJECT_SKIP", "a number of steps"));
  if (options.Has("kill")) {
    if (!options.Has("steps")) {
      status.Update(absl::InvalidArgumentError("--kill ends the program after --steps N, which is missing"));
    }
    set("RFINJECT_KILL", "1");
  }
  if (options.Has("start-stopped")) set("RFINJECT_START_STOPPED", "1");
  if (options.Has("overhead")) {
    if (!IsPercent(options.Value("overhead"))) status.Update(Wants(options, "overhead", "a percentage"));
    set("RFINJECT_OVERHEAD", options.Value("overhead"));
  }
  status.Update(set_number("max-size", "RFINJECT_MAX_SIZE", "a number of MB"));
  if (options.Has("ranks")) {
    const std::string ranks = options.Value("ranks");
    for (const std::string& rank : std::vector<std::string>(absl::StrSplit(ranks, ','))) {
      uint64_t number = 0;
      if (ranks != "all" && (!ParseNumber(rank, &number) || number > UINT32_MAX)) {
        status.Update(Wants(options, "ranks", "all, or ranks like 0,3"));
      }
    }
    set("RFINJECT_RANKS", ranks);
  }
  if (options.Has("quiet") && options.Has("verbose")) {
    status.Update(absl::InvalidArgumentError("-q and -v exclude each other"));
  }
  if (options.Has("quiet")) set("RFINJECT_LOG", "-1");
  if (options.Has("verbose")) set("RFINJECT_LOG", "1");
  if (!status.ok()) return status;
  return variables;
}

absl::Status AddLibrary(LaunchVariables* variables) {
  std::string tried;
  variables->library = FindLibrary(&tried);
  if (variables->library.empty()) return absl::NotFoundError("librfinject.so is not at " + tried);
  if (variables->library.find_first_of(": \t\n") != std::string::npos) {
    return absl::FailedPreconditionError(
        variables->library + ": LD_PRELOAD cannot hold a path with a space or a colon in it; move the library");
  }
  return absl::OkStatus();
}

std::string PrependPreload(const std::string& library, const std::string& existing) {
  if (existing.empty()) return library;
  return existing == library || existing.starts_with(library + ":") ? existing : library + ":" + existing;
}

std::string AbsolutePattern(const std::string& pattern) {
  std::error_code error;
  const std::string here = std::filesystem::current_path(error).string();
  if (pattern.starts_with('/') || error) return pattern;
  return absl::StrCat(absl::StrReplaceAll(here, {{"%", "%%"}}), here.ends_with('/') ? "" : "/", pattern);
}

std::string PatternFolder(const std::string& pattern) {
  std::string folder;  // with its slash
  std::string part;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '%') {
      if (i + 1 >= pattern.size() || pattern[i + 1] != '%') break;
      ++i;
    }
    part += pattern[i];
    if (pattern[i] == '/') {
      folder += part;
      part.clear();
    }
  }
  return folder;
}

absl::Status CheckOutputFile(const std::string& pattern) {
  struct stat status;
  if (pattern.empty() || pattern.find('%') != std::string::npos || ::lstat(pattern.c_str(), &status) != 0) {
    return absl::OkStatus();
  }
  const auto refused = [&](const char* what) {
    return absl::FailedPreconditionError(pattern + ": is " + what + "; name a new file, or a folder");
  };
  if (S_ISLNK(status.st_mode)) {
    // One to a folder is the folder.
    const bool folder = ::stat(pattern.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
    return folder ? absl::OkStatus() : refused("a link, and traces are not written through links");
  }
  if (S_ISFIFO(status.st_mode)) return refused("a pipe");
  if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)) return refused("a device");
  if (S_ISSOCK(status.st_mode)) return refused("a socket");
  return absl::OkStatus();
}

std::string TakenOutputNote(const std::string& pattern) {
  struct stat status;
  if (pattern.empty() || pattern.find('%') != std::string::npos) return {};
  if (::lstat(pattern.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return pattern + " is there and stays; the trace gets a name with a number beside it";
}

absl::Status PrepareFolder(const std::string& folder) {
  const auto failed = [](const std::string& of, int error) {
    return absl::Status(absl::ErrnoToStatusCode(error), of + ": " + std::strerror(error));
  };
  if (folder.empty()) return absl::OkStatus();
  for (size_t end = 1; end != std::string::npos;) {
    end = folder.find('/', end);
    const std::string above = folder.substr(0, end);
    if (end != std::string::npos) ++end;
    if (above.empty()) continue;
    if (::mkdir(above.c_str(), 0700) != 0 && errno != EEXIST) {
      const int error = errno;
      struct stat status;
      // Folders far above may be none of ours to make (EROFS, EACCES) and exist all the same.
      if (::stat(above.c_str(), &status) == 0) continue;
      return failed(above, error);
    }
  }
  struct stat status;
  if (::stat(folder.c_str(), &status) != 0) return failed(folder, errno);
  if (!S_ISDIR(status.st_mode)) return absl::FailedPreconditionError(folder + ": is not a folder");
  // access() alone says yes to root on a read-only file system and on /proc.
  std::string probe = folder + "/.rfinject.XXXXXX";
  const int fd = ::mkostemp(probe.data(), O_CLOEXEC);
  if (fd < 0) return failed(folder, errno);
  ::close(fd);
  ::unlink(probe.c_str());
  return absl::OkStatus();
}

}  // namespace rfinject::cli
