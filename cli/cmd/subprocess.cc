#include "cli/cmd/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

namespace rfinject::cli {
namespace {

constexpr size_t kMostKept = 64 << 10;

// Appends what there is; false at the end.
bool Drain(int fd, std::string& into) {
  char buffer[4096];
  const ssize_t count = ::read(fd, buffer, sizeof buffer);
  if (count < 0 && errno == EINTR) return true;
  if (count <= 0) return false;
  if (into.size() < kMostKept) into.append(buffer, static_cast<size_t>(count));
  return true;
}

}  // namespace

SubprocessResult RunSubprocess(const std::vector<std::string>& words,
                               const std::vector<std::pair<std::string, std::string>>& environment, int timeout_s,
                               const std::string& folder, const std::function<bool()>& in_child) {
  SubprocessResult result;
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0) return result;
  if (::pipe2(err, O_CLOEXEC) != 0) {
    ::close(out[0]);
    ::close(out[1]);
    return result;
  }
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // Ctrl-C ends us, and not another process group
    const int null = ::open("/dev/null", O_RDONLY);
    ::dup2(null, STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    for (const auto& [name, value] : environment) {
      value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
    }
    if (!folder.empty() && ::chdir(folder.c_str()) != 0) ::_exit(127);
    if (in_child && !in_child()) ::_exit(127);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(out[1]);
  ::close(err[1]);
  if (child > 0) {
    ::setpgid(child, child);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(timeout_s);
    struct pollfd fds[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      const int ready = left.count() <= 0 ? 0 : ::poll(fds, 2, static_cast<int>(left.count()));
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) {
        result.timed_out = true;
        ::kill(-child, SIGKILL);
        break;
      }
      if (fds[0].revents != 0 && !Drain(out[0], result.output)) fds[0].fd = -1;
      if (fds[1].revents != 0 && !Drain(err[0], result.errors)) fds[1].fd = -1;
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!result.timed_out) result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  ::close(out[0]);
  ::close(err[0]);
  return result;
}

std::string LastLine(std::string_view text) {
  text = text.substr(0, text.find_last_not_of("\n ") + 1);
  return std::string(text.substr(text.rfind('\n') + 1));
}

}  // namespace rfinject::cli
