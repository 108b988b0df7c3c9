#include "collector/output_path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "collector/process_facts.h"

namespace rfinject {
namespace {

constexpr int kMaxLinks = 40;       // as the kernel's MAXSYMLINKS
constexpr int kMaxSuffix = 10'000;  // more files of one fixed name mean that something is wrong
constexpr std::string_view kExtension = ".rfx";
constexpr const char* kLatest = "latest";

// fstatat is a symbol of glibc from 2.33 on only; before, the header defined it.
bool StatAt(int folder, const char* name, int flags, struct stat* out) noexcept {
  return syscall(SYS_newfstatat, folder, name, out, flags) == 0;
}

class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  ~Descriptor() { Reset(-1); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const noexcept { return fd_; }
  void Reset(int fd) noexcept {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

constexpr int kFolderFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;

// Where a link in `folder` leads; false, with errno, when it must not be followed.
bool FollowLink(int folder, const std::string& name, std::string* target) {
  // The link itself is opened, so that what is judged is what is read.
  Descriptor link(openat(folder, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat in {};
  struct stat at {};
  if (link.get() < 0 || !StatAt(folder, "", AT_EMPTY_PATH, &in) || !StatAt(link.get(), "", AT_EMPTY_PATH, &at)) {
    return false;
  }
  const bool anybody_makes_links = (in.st_mode & S_ISVTX) != 0 && (in.st_mode & S_IWOTH) != 0;
  if (anybody_makes_links && at.st_uid != geteuid()) {
    errno = EACCES;
    return false;
  }
  char buffer[4096];
  const ssize_t size = readlinkat(link.get(), "", buffer, sizeof buffer);
  if (size < 0) return false;
  target->assign(buffer, static_cast<size_t>(size));
  return true;
}

// Opens the folder `path` (as O_PATH), and makes what is missing. It walks component by component, since only so it
// can see who made each link. Returns -1 and sets errno on failure.
int OpenFolder(std::string path) {
  Descriptor folder(open(!path.empty() && path[0] == '/' ? "/" : ".", kFolderFlags));
  int links = 0;
  while (folder.get() >= 0) {
    const size_t begin = path.find_first_not_of('/');
    if (begin == std::string::npos) return fcntl(folder.get(), F_DUPFD_CLOEXEC, 0);
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    path.erase(0, end);
    int next = openat(folder.get(), name.c_str(), kFolderFlags | O_NOFOLLOW);
    if (next < 0 && errno == ENOENT) {
      // Two ranks may make the same folder at once.
      if (mkdirat(folder.get(), name.c_str(), 0700) != 0 && errno != EEXIST) return -1;
      next = openat(folder.get(), name.c_str(), kFolderFlags | O_NOFOLLOW);
    }
    if (next >= 0) {
      folder.Reset(next);
      continue;
    }
    struct stat at {};
    const int error = errno;
    if (!StatAt(folder.get(), name.c_str(), AT_SYMLINK_NOFOLLOW, &at) || !S_ISLNK(at.st_mode)) {
      errno = error;
      return -1;
    }
    std::string target;
    if (++links > kMaxLinks) {
      errno = ELOOP;
      return -1;
    }
    if (!FollowLink(folder.get(), name, &target)) return -1;
    if (!target.empty() && target[0] == '/') folder.Reset(open("/", kFolderFlags));
    path.insert(0, target);
  }
  return -1;
}

bool IsFolder(const std::string& path) noexcept {
  struct stat at {};
  return StatAt(AT_FDCWD, path.c_str(), 0, &at) && S_ISDIR(at.st_mode);
}

std::string Substitute(std::string_view pattern, const OutputNames& names) {
  std::string result;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (pattern[i] != '%' || std::strchr("hprq%", next) == nullptr || next == '\0') {
      result += pattern[i];
      continue;
    }
    if (next == 'q') {
      const size_t close = pattern.find('}', i);
      if (i + 2 >= pattern.size() || pattern[i + 2] != '{' || close == std::string_view::npos) {
        result += pattern[i];
        continue;
      }
      const std::string variable(pattern.substr(i + 3, close - i - 3));
      const char* value = std::getenv(variable.c_str());
      if (value != nullptr) result += value;
      i = close;
      continue;
    }
    if (next == 'h') result += names.host;
    if (next == 'p') result += names.pid;
    if (next == 'r') result += names.rank.empty() ? "0" : names.rank;
    if (next == '%') result += '%';
    ++i;
  }
  return result;
}

}  // namespace

OutputNames CurrentOutputNames() {
  OutputNames names;
  utsname system{};
  if (uname(&system) == 0) names.host = system.nodename;
  std::ranges::replace(names.host, '/', '_');
  names.pid = std::to_string(getpid());
  uint32_t rank = 0;
  if (RankFromEnvironment(&rank)) names.rank = std::to_string(rank);
  return names;
}

std::string ExpandOutput(std::string_view pattern, const OutputNames& names) {
  std::string path = Substitute(pattern, names);
  if (path.empty() || path.back() == '/' || IsFolder(path)) {
    if (!path.empty() && path.back() != '/') path += '/';
    path += names.host + "." + names.pid;
    if (!names.rank.empty()) path += ".r" + names.rank;
    path += kExtension;
  }
  return path;
}

std::string EscapeOutput(std::string_view text) {
  std::string result;
  for (char c : text) {
    result += c;
    if (c == '%') result += '%';
  }
  return result;
}

int CreateOutputFile(std::string* path, std::string* error) {
  const size_t slash = path->rfind('/');
  const std::string folder_path = slash == std::string::npos ? "" : path->substr(0, slash + 1);
  const std::string name = slash == std::string::npos ? *path : path->substr(slash + 1);
  auto fail = [&](const std::string& what) {
    const int number = errno;
    *error = what + ": " + std::strerror(number);
    return -1;
  };
  if (name.empty() || name == "." || name == "..") {
    errno = EISDIR;
    return fail(*path);
  }
  Descriptor folder(OpenFolder(folder_path));
  if (folder.get() < 0) {
    const bool planted = errno == EACCES;
    fail(folder_path);
    if (planted) *error += " (or a link there that another user made)";
    return -1;
  }
  const bool has_extension = name.size() > kExtension.size() && name.ends_with(kExtension);
  const std::string stem = has_extension ? name.substr(0, name.size() - kExtension.size()) : name;
  for (int suffix = 0; suffix <= kMaxSuffix; ++suffix) {
    std::string tried = name;
    if (suffix > 0) tried = stem + "-" + std::to_string(suffix) + (has_extension ? std::string(kExtension) : "");
    // With O_EXCL a name that is there in any form, a dangling link included, is not used.
    const int fd =
        openat(folder.get(), tried.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_APPEND, 0600);
    if (fd >= 0) {
      *path = folder_path + tried;
      return fd;
    }
    if (errno != EEXIST) return fail(folder_path + tried);
  }
  return fail(*path);
}

bool LinkLatest(const std::string& file) {
  const size_t end = file.rfind('/');
  if (end == std::string::npos || end == 0) return false;
  const size_t begin = file.rfind('/', end - 1);
  if (begin == std::string::npos) return false;
  const std::string name = file.substr(begin + 1, end - begin - 1);
  if (name.empty() || name == "." || name == "..") return false;
  const Descriptor folder(OpenFolder(file.substr(0, begin + 1)));
  struct stat in {};
  if (folder.get() < 0 || !StatAt(folder.get(), "", AT_EMPTY_PATH, &in)) return false;
  // Anybody who may write there may put another link in the place of ours.
  if (in.st_uid != geteuid() || (in.st_mode & (S_IWGRP | S_IWOTH)) != 0) return false;
  struct stat old {};
  if (StatAt(folder.get(), kLatest, AT_SYMLINK_NOFOLLOW, &old) && !S_ISLNK(old.st_mode)) return false;
  // Ranks of several machines may do this at once.
  const OutputNames names = CurrentOutputNames();
  const std::string made = std::string(".") + kLatest + "." + names.host + "." + names.pid;
  if (symlinkat(name.c_str(), folder.get(), made.c_str()) != 0) return false;
  if (renameat(folder.get(), made.c_str(), folder.get(), kLatest) == 0) return true;
  unlinkat(folder.get(), made.c_str(), 0);
  return false;
}

}  // namespace rfinject
