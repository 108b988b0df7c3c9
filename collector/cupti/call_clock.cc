#include "collector/cupti/call_clock.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string_view>

#include "collector/sync.h"

namespace rfinject::cupti {
namespace {

constinit std::atomic<uint64_t> g_programs_ns{0}, g_our_ns{0};
__thread bool t_ours = false;
constinit bool g_log = false;
const Api* g_real = nullptr;  // as it was before

// Whether a call only computes: a launch on another thread does not wait for it.
constexpr bool OnlyComputes(std::string_view name) {
  return name.starts_with("cuptiProfilerHost") || name.starts_with("NVPW_") ||
         name.find("CounterData") != std::string_view::npos || name == "cuptiGetVersion" ||
         name == "cuptiGetGraphNodeId" || name == "cuptiGetDeviceId";
}

void Note(const char* name, bool counts, int64_t begin, int64_t result) noexcept {
  const int64_t ns = MonotonicNs() - begin;
  if (counts) (t_ours ? g_our_ns : g_programs_ns).fetch_add(static_cast<uint64_t>(ns), std::memory_order_relaxed);
  if (!g_log) return;
  char line[160];
  const int size =
      snprintf(line, sizeof line, "%s %ld %lld %lld %lld\n", name, syscall(SYS_gettid), static_cast<long long>(begin),
               static_cast<long long>(ns), static_cast<long long>(result));
  if (size <= 0) return;
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, static_cast<size_t>(size));
}

template <auto member, typename Function>
struct Timed;
template <auto member, typename Result, typename... Arguments>
struct Timed<member, Result (*)(Arguments...)> {
  static constinit inline const char* name = nullptr;
  static constinit inline bool counts = false;
  static Result Call(Arguments... arguments) {
    const int64_t begin = MonotonicNs();
    const Result result = (g_real->*member)(arguments...);
    Note(name, counts, begin, static_cast<int64_t>(result));
    return result;
  }
};

}  // namespace

void TimeCalls(Api* api, bool log) {
  if (g_real != nullptr) return;
  g_real = new Api(*api);
  g_log = log;
#define RFINJECT_TIME(function, ...)                             \
  if (api->function != nullptr) {                                \
    using OfIt = Timed<&Api::function, decltype(Api::function)>; \
    OfIt::name = #function;                                      \
    OfIt::counts = !OnlyComputes(#function);                     \
    api->function = &OfIt::Call;                                 \
  }
  RFINJECT_TIME(cuCtxSynchronize)
  RFINJECT_CUPTI_FUNCTIONS(RFINJECT_TIME)
  RFINJECT_OWN_RECORDS_FUNCTIONS(RFINJECT_TIME)
#undef RFINJECT_TIME
}

void ThisThreadIsOurs() noexcept { t_ours = true; }
uint64_t ProgramsCallNs() noexcept { return g_programs_ns.load(std::memory_order_relaxed); }
uint64_t OurCallNs() noexcept { return g_our_ns.load(std::memory_order_relaxed); }

}  // namespace rfinject::cupti
