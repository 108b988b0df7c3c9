#include "cli/cmd/user_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "cli/cmd/options.h"
#include "cli/cmd/text_file.h"

namespace rfinject::cli {

std::string UserConfigFolder() {
  std::string folder = Variable("XDG_CONFIG_HOME");
  const std::string home = Variable("HOME");
  if (folder.starts_with('/')) return folder;
  return home.starts_with('/') ? home + "/.config" : "";
}

UserFile ReadUserFile(const std::string& path, size_t most_kib, WhoseFile whose) {
  UserFile file;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    file.exists = errno != ENOENT && errno != ENOTDIR;
    file.ignored = std::strerror(errno);
    return file;
  }
  file.exists = true;
  const size_t most = most_kib << 10;
  struct stat status;
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    file.ignored = "it is no plain file";
  } else if (whose == WhoseFile::kOwn && status.st_uid != ::geteuid() && status.st_uid != 0) {
    file.ignored = "it is another user's";
  } else if (whose == WhoseFile::kOwn && (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    file.ignored = "others may write to it (chmod go-w)";
  } else if (!ReadUpTo(fd, most + 1, &file.text)) {
    file.ignored = std::strerror(errno);
  } else if (file.text.size() > most) {
    file.ignored = "it is larger than " + std::to_string(most_kib) + " KiB";
  }
  ::close(fd);
  return file;
}

}  // namespace rfinject::cli
