#include "collector/process_facts.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <system_error>

#include "collector/read_file.h"
#include "collector/settings.h"
#include "collector/sync.h"

namespace rfinject {
namespace {

bool NumberFrom(const char* variable, uint32_t* value) noexcept {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text < '0' || *text > '9') return false;
  char* end = nullptr;
  errno = 0;
  const unsigned long long number = std::strtoull(text, &end, 10);
  if (*end != '\0' || errno != 0 || number > UINT32_MAX) return false;
  *value = static_cast<uint32_t>(number);
  return true;
}

bool FirstNumberFrom(std::initializer_list<const char*> variables, uint32_t* value) noexcept {
  for (const char* variable : variables) {
    if (NumberFrom(variable, value)) return true;
  }
  return false;
}

// The rest of the line after `key`, without blanks, quotes and colons around it.
std::string ValueAfter(std::string_view text, std::string_view key) {
  size_t at = text.find(key);
  while (at != std::string_view::npos && at != 0 && text[at - 1] != '\n') at = text.find(key, at + 1);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  text = text.substr(0, text.find('\n'));
  constexpr std::string_view kAround = " \t\":=";
  const size_t begin = text.find_first_not_of(kAround);
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(kAround) - begin + 1));
}

bool SlurmTasks(uint32_t* tasks) noexcept {
  return FirstNumberFrom({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}, tasks) && *tasks > 1;
}

}  // namespace

int ThreadsOfProcess() noexcept {
  const int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char buffer[1024];
  ssize_t size = 0;
  do {
    size = read(fd, buffer, sizeof buffer - 1);
  } while (size < 0 && errno == EINTR);
  close(fd);
  if (size <= 0) return 0;
  buffer[size] = '\0';
  // The second field is a name in brackets and may hold blanks and brackets; num_threads is the 20th (proc(5)).
  const char* at = std::strrchr(buffer, ')');
  for (int field = 2; at != nullptr && field < 20; ++field) {
    at = std::strchr(at + 1, ' ');
  }
  return at != nullptr ? std::atoi(at) : 0;
}

bool RankFromEnvironment(uint32_t* rank) noexcept {
  if (FirstNumberFrom({"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"}, rank)) return true;
  uint32_t tasks = 0;
  return SlurmTasks(&tasks) && NumberFrom("SLURM_PROCID", rank);
}

bool RankMeasures(std::string_view ranks) noexcept {
  uint32_t rank = 0;
  if (ranks.empty() || ranks == "all" || !RankFromEnvironment(&rank)) return true;
  while (!ranks.empty()) {
    const std::string_view one = ranks.substr(0, ranks.find(','));
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), number);
    if (error == std::errc() && end == one.data() + one.size() && number == rank) return true;
    ranks.remove_prefix(std::min(one.size() + 1, ranks.size()));
  }
  return false;
}

std::string NewTraceId() {
  std::array<uint8_t, 16> bits{};
  // The kernel's random numbers are taken, so that no state of the program's generators moves; by a system call,
  // because libc's function is newer than the oldest libc that we run on.
  constexpr unsigned kDoNotWait = 1;  // GRND_NONBLOCK
  if (syscall(SYS_getrandom, bits.data(), bits.size(), kDoNotWait) != static_cast<long>(bits.size())) {
    // The kernel is old or has just started, and gives none. Take what no other process has at this time.
    const uint64_t parts[2] = {static_cast<uint64_t>(UnixNs()),
                               static_cast<uint64_t>(getpid()) << 32 ^ reinterpret_cast<uintptr_t>(&bits)};
    std::memcpy(bits.data(), parts, sizeof parts);
  }
  std::string id;
  for (const uint8_t byte : bits) {
    id += "0123456789abcdef"[byte >> 4];
    id += "0123456789abcdef"[byte & 15];
  }
  return id;
}

std::string JobFromEnvironment(std::string_view host) {
  const auto text = [](const char* variable) {
    const char* value = std::getenv(variable);
    return std::string(value != nullptr ? value : "");
  };
  // torchrun says "none" where the user gave no --rdzv-id.
  std::string torchrun = text("TORCHELASTIC_RUN_ID");
  if (torchrun == "none") torchrun.clear();
  // Each node of a job has a `rfinject` command of its own, and only torchrun's id is the same on all nodes.
  uint32_t groups = 0;
  if (!torchrun.empty() && NumberFrom("GROUP_WORLD_SIZE", &groups) && groups > 1) return torchrun;
  const Settings& settings = GetSettings();
  if (std::string ours = settings.attached ? settings.job : text("RFINJECT_JOB"); !ours.empty()) return ours;
  if (!torchrun.empty()) return torchrun;
  if (std::string slurm = text("SLURM_JOB_ID"); !slurm.empty()) {
    // An allocation can hold several jobs, one after the other: srun numbers them. What a batch script starts without
    // srun has no number, so such jobs cannot be told apart.
    const std::string step = text("SLURM_STEP_ID");
    uint32_t tasks = 0;
    if (SlurmTasks(&tasks) && !step.empty()) return slurm + "." + step;
    return slurm;
  }
  if (std::string mpi = text("PMIX_NAMESPACE"); !mpi.empty()) return mpi;
  // torchrun has no id, but all of its workers are on this machine: they and their restarts have one parent.
  uint32_t world = 0, local = 0;
  if (!text("TORCHELASTIC_RUN_ID").empty() && NumberFrom("WORLD_SIZE", &world) &&
      NumberFrom("LOCAL_WORLD_SIZE", &local) && world == local) {
    return "torchrun." + std::string(host) + "." + std::to_string(getppid());
  }
  return {};
}

RunFacts ReadProcessFacts() {
  RunFacts run;
  ProcessFacts& facts = run.process;
  facts.rfinject_version = RFINJECT_VERSION;
  facts.pid = static_cast<uint32_t>(getpid());
  utsname system{};
  if (uname(&system) == 0) {
    facts.host = system.nodename;
    facts.os = std::string(system.sysname) + " " + system.release + " " + system.machine;
  }
  const std::string distribution = ValueAfter(ReadFile("/etc/os-release", 16 << 10), "PRETTY_NAME");
  if (!distribution.empty()) facts.os += ", " + distribution;
  // The first processor's entry stands within the first few kilobytes.
  facts.cpu = ValueAfter(ReadFile("/proc/cpuinfo", 8 << 10), "model name");
  if (facts.cpu.empty()) facts.cpu = system.machine;

  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) facts.cpus = static_cast<uint32_t>(CPU_COUNT(&allowed));
  if (facts.cpus == 0) facts.cpus = static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  struct sysinfo memory {};
  if (sysinfo(&memory) == 0) facts.memory_bytes = uint64_t{memory.totalram} * memory.mem_unit;

  // What is beyond the first 64 KiB of a command line identifies nothing any more.
  const std::string command = ReadFile("/proc/self/cmdline", 64 << 10);
  for (size_t begin = 0; begin < command.size();) {
    const size_t end = std::min(command.find('\0', begin), command.size());
    facts.argv.push_back(command.substr(begin, end - begin));
    begin = end + 1;
  }

  if (RankFromEnvironment(&facts.rank)) {
    run.rank = {facts.rank};
    FirstNumberFrom({"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"},
                    &facts.local_rank);
    if (!FirstNumberFrom({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}, &facts.world_size)) {
      SlurmTasks(&facts.world_size);
    }
  }
  facts.job_id = JobFromEnvironment(facts.host);
  return run;
}

}  // namespace rfinject
