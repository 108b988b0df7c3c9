#include "cli/attach/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rfinject::cli {
namespace {

template <typename Number>
bool Parse(std::string_view text, int base, Number* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value, base);
  return error == std::errc() && end == text.data() + text.size();
}

// Cuts off and returns what stands before the first `end`, which goes, too; all of it where there is none.
std::string_view TakeUpTo(char end, std::string_view* text) {
  const std::string_view taken = text->substr(0, text->find(end));
  text->remove_prefix(std::min(taken.size() + 1, text->size()));
  return taken;
}

// Whether the kernel begins this call again by itself when the thread was stopped in it (signal(7): those that are
// not here may fail with EINTR), so that the program does not notice.
bool IsBegunAgain(int64_t call) {
  constexpr int64_t kCalls[] = {SYS_futex, SYS_nanosleep, SYS_clock_nanosleep, SYS_ppoll,
                                SYS_wait4, SYS_waitid,    SYS_pselect6,
#ifdef SYS_poll
                                SYS_poll,  SYS_select,
#endif
                                SYS_flock};
  return call == -1 || std::find(std::begin(kCalls), std::end(kCalls), call) != std::end(kCalls);
}

}  // namespace

// Not by a stream: those throw where the process ends between opening and reading.
std::string ReadProcFile(const std::string& path) {
  std::string text;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  std::array<char, 16 << 10> piece;
  for (ssize_t size = 0;;) {
    do {
      size = ::read(fd, piece.data(), piece.size());
    } while (size < 0 && errno == EINTR);
    if (size < 0) text.clear();
    if (size <= 0) break;
    text.append(piece.data(), static_cast<size_t>(size));
  }
  ::close(fd);
  return text;
}

std::vector<Mapping> ParseMappings(std::string_view text) {
  std::vector<Mapping> mappings;
  while (!text.empty()) {
    // 7f00-7f10 r-xp 00001000 fe:00 1234   /path with spaces
    std::string_view line = TakeUpTo('\n', &text);
    Mapping mapping;
    std::string_view range = TakeUpTo(' ', &line);
    const std::string_view rights = TakeUpTo(' ', &line), offset = TakeUpTo(' ', &line);
    (void)TakeUpTo(' ', &line);  // the device
    (void)TakeUpTo(' ', &line);  // the file's number
    const std::string_view begin = TakeUpTo('-', &range);
    if (rights.size() < 4 || !Parse(begin, 16, &mapping.begin) || !Parse(range, 16, &mapping.end) ||
        !Parse(offset, 16, &mapping.offset)) {
      continue;
    }
    mapping.readable = rights[0] == 'r';
    mapping.writable = rights[1] == 'w';
    mapping.executable = rights[2] == 'x';
    mapping.path = line.substr(std::min(line.find_first_not_of(' '), line.size()));
    mappings.push_back(std::move(mapping));
  }
  return mappings;
}

std::string_view FileName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

const Mapping* FindFile(const std::vector<Mapping>& mappings, std::initializer_list<std::string_view> names) {
  for (const Mapping& mapping : mappings) {
    const std::string_view file = FileName(mapping.path);
    const bool found =
        std::any_of(names.begin(), names.end(), [file](std::string_view name) { return file.starts_with(name); });
    if (found && mapping.offset == 0) return &mapping;
  }
  return nullptr;
}

const Mapping* MappingAt(const std::vector<Mapping>& mappings, uint64_t address) {
  const auto found = std::find_if(mappings.begin(), mappings.end(), [address](const Mapping& mapping) {
    return address >= mapping.begin && address < mapping.end;
  });
  return found != mappings.end() ? &*found : nullptr;
}

ProcessStatus ParseProcessStatus(std::string_view text) {
  ProcessStatus status;
  while (!text.empty()) {
    std::string_view line = TakeUpTo('\n', &text);
    const std::string_view name = TakeUpTo(':', &line);
    line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
    if (name == "State" && !line.empty()) status.state = line[0];
    if (name == "PPid") (void)Parse(line, 10, &status.parent);
    if (name == "TracerPid") (void)Parse(line, 10, &status.tracer);
    if (name == "NSpid") (void)Parse(line.substr(line.rfind('\t') + 1), 10, &status.own_number);
    if (name == "SigIgn") (void)Parse(line, 16, &status.ignored_signals);
    if (name == "CapEff") (void)Parse(line, 16, &status.capabilities);
    if (name == "Seccomp") status.filtered = line == "2";
    if (name == "x86_Thread_features") status.shadow_stack = line.find("shstk") != line.npos;
    if (name == "Uid") {
      (void)TakeUpTo('\t', &line);  // the real one
      (void)Parse(TakeUpTo('\t', &line), 10, &status.user);
    }
  }
  return status;
}

int64_t ParseSystemCall(std::string_view text) {
  int64_t call = -1;
  return Parse(TakeUpTo(' ', &text), 10, &call) ? call : -1;
}

std::vector<pid_t> ThreadsToStop(pid_t pid) {
  std::array<std::vector<pid_t>, 2> threads;  // those that do not notice, the others
  std::error_code error;
  const std::string tasks = absl::StrCat("/proc/", pid, "/task");
  for (std::filesystem::directory_iterator it(tasks, error), end; !error && it != end; it.increment(error)) {
    pid_t thread = 0;
    if (!Parse(it->path().filename().string(), 10, &thread)) continue;
    const std::string folder = it->path().string();
    const char state = ParseProcessStatus(ReadProcFile(folder + "/status")).state;
    if (state != 'R' && state != 'S') continue;
    const bool unnoticed = IsBegunAgain(ParseSystemCall(ReadProcFile(folder + "/syscall")));
    threads[unnoticed ? 0 : 1].push_back(thread);
  }
  threads[0].insert(threads[0].end(), threads[1].begin(), threads[1].end());
  return threads[0];
}

}  // namespace rfinject::cli
