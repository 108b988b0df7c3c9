#include "cli/cmd/try_folder.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace rfinject::cli {
namespace {

absl::Status FolderFailed(const std::string& what) {
  return absl::FailedPreconditionError(what + ": " + std::strerror(errno));
}

bool WriteText(const char* path, const std::string& text) {
  const int file = ::open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool good = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(file);
  return good;
}

}  // namespace

absl::Status CopyOnWrite(const std::string& folder, const std::string& scratch) {
  if (scratch == folder || scratch.starts_with(folder + "/") || folder == "/") {
    return absl::FailedPreconditionError("the folder for temporary files lies in the working folder");
  }
  // The options of a mount have commas and colons between them.
  if ((folder + scratch).find_first_of(",:\\\"") != std::string::npos) {
    return absl::FailedPreconditionError(
        "the working folder's name has a comma, a colon, a quote or a backslash in it");
  }
  const uid_t user = ::getuid();
  const gid_t group = ::getgid();
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return FolderFailed("no namespace for users can be made here");
  // The program stays who it was.
  WriteText("/proc/self/setgroups", "deny");
  if (!WriteText("/proc/self/uid_map", absl::StrCat(user, " ", user, " 1")) ||
      !WriteText("/proc/self/gid_map", absl::StrCat(group, " ", group, " 1"))) {
    return FolderFailed("the namespace's user cannot be named");
  }
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return FolderFailed("no mount of one's own here");
  const std::string upper = scratch + "/upper", work = scratch + "/overlay";
  ::mkdir(upper.c_str(), 0700);
  ::mkdir(work.c_str(), 0700);
  const std::string options = absl::StrCat("lowerdir=", folder, ",upperdir=", upper, ",workdir=", work, ",userxattr");
  if (::mount("overlay", folder.c_str(), "overlay", 0, options.c_str()) != 0) {
    return FolderFailed("no overlay can be mounted over " + folder);
  }
  if (::chdir(folder.c_str()) != 0) return FolderFailed(folder);
  return absl::OkStatus();
}

absl::Status CanCopyOnWrite(const std::string& folder, const std::string& scratch) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return FolderFailed("pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    const absl::Status status = CopyOnWrite(folder, scratch);
    const std::string text(status.message());
    const ssize_t written = ::write(ends[1], text.data(), text.size());
    ::_exit(status.ok() && written >= 0 ? 0 : 1);
  }
  ::close(ends[1]);
  char text[512];
  const ssize_t size = child > 0 ? ::read(ends[0], text, sizeof text) : 0;
  ::close(ends[0]);
  int status = 1;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(size > 0 ? std::string(text, static_cast<size_t>(size))
                                                : "no process can be made");
}

}  // namespace rfinject::cli
