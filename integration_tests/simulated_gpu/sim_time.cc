// File: sim_time.cc
//
// The simulated GPU's clock, its streams and its queue. When a kernel runs is known when it is launched: after what
// is before it on its stream, and not before it was launched. So nothing has to run in the background, and a call
// that waits knows until when.
#include "integration_tests/simulated_gpu/sim_time.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "integration_tests/simulated_gpu/sim_costs.h"

namespace {

// README.md of the recording: the host runs 1,024 launches ahead, and then waits.
constexpr size_t kQueue = 1024;
constexpr int64_t kVirtualStart = 1'700'000'000'000'000'000;
constexpr uint64_t kLaunchNs = sim::CostOf("a launch").ns;
constexpr int64_t kMostAhead = 1'000'000;  // of the machine, before a thread sleeps
constexpr size_t kManyKernels = 4096;

// By the kernel's own functions, because a program may give its collector this clock in the place of the machine's.
int64_t Clock(clockid_t clock) {
  timespec now{};
  syscall(SYS_clock_gettime, clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::atomic<int> g_real{0};  // how often as long as the machine's time it takes; 0: virtual time
std::atomic<bool> g_costs{true};
std::atomic<uint64_t> g_held_until{0};                // launches, by a call of CUPTI's
std::atomic<int64_t> g_begin{0}, g_machine_begin{0};  // of real time, and the machine's monotonic clock then
std::atomic<int64_t> g_program{kVirtualStart};        // how far the threads that launch have come
thread_local int64_t t_time = 0;                      // of this thread; in real time without its processor time
thread_local bool t_launches = false;
thread_local uint64_t t_waited = 0;  // for room in the queue
thread_local int64_t t_looked = 0;   // when this thread last looked at the machine's time: `t_ahead` ahead of it
thread_local int64_t t_ahead = 0;

// What this thread has computed.
int64_t Computed() { return g_real != 0 ? Clock(CLOCK_THREAD_CPUTIME_ID) : 0; }

void SetTime(int64_t time, int64_t computed) {
  t_time = time - computed;
  if (!t_launches) return;
  for (int64_t program = g_program; program < time && !g_program.compare_exchange_weak(program, time);) {
  }
}
int64_t OwnTime() { return t_time + Computed(); }
// Nobody looks at an earlier time than the program has come to.
int64_t Time() { return std::max(OwnTime(), g_program.load()); }
// In real time a thread sleeps until the machine has come up to it. How late it wakes up is not counted.
void GoOnAt(int64_t time) {
  SetTime(time, Computed());
  // A thread gets further ahead by no more than its own time has gone on. Each look is a call of the kernel.
  if (g_real == 0 || (t_looked != 0 && t_ahead + (time - t_looked) * g_real <= kMostAhead)) return;
  t_looked = time;
  t_ahead = (time - g_begin) * g_real - (Clock(CLOCK_MONOTONIC) - g_machine_begin);
  if (t_ahead <= kMostAhead) return;
  const timespec sleep = {t_ahead / 1'000'000'000, t_ahead % 1'000'000'000};
  syscall(SYS_nanosleep, &sleep, nullptr);
  SetTime(time, Computed());
  t_ahead = 0;
}

// A kernel that waits for one that was not launched yet.
struct Held {
  SimLaunch launch;
  uint64_t start;
  std::function<void(const SimLaunch&, const SimSpan*)> run;
};

struct Context {
  int device = 0;
  uint64_t barrier = 0, idle_at = 0;
  std::map<CUstream, uint64_t> streams;  // when each is idle
  std::deque<uint64_t> starts;           // of the launches in the queue
  std::vector<Held> held;
};

struct Device {
  struct Busy {
    const SimKernel* kernel;
    SimSpan span;
  };
  std::vector<Busy> busy;
  uint64_t keep_from = 0;
};

struct Gpu {
  std::mutex mutex;
  std::map<CUcontext, Context> contexts;
  std::map<int, Device> devices;
};
Gpu& TheGpu() {
  static auto* const gpu = new Gpu;
  return *gpu;
}

Context& ContextOf(CUcontext context) {  // the mutex is held
  const auto [at, added] = TheGpu().contexts.try_emplace(context);
  if (added) at->second.device = sim_device_of(context);
  return at->second;
}

void Occupy(Context& context, CUstream stream, const SimKernel* kernel, SimSpan span) {
  uint64_t& idle = context.streams[stream];
  idle = std::max(idle, span.end);
  context.idle_at = std::max(context.idle_at, span.end);
  Device& device = TheGpu().devices[context.device];
  if (device.keep_from == 0 && device.busy.size() > kManyKernels) {
    const uint64_t now = sim_now();
    std::erase_if(device.busy, [now](const Device::Busy& one) { return one.span.end <= now; });
  }
  if (kernel != nullptr) device.busy.push_back({kernel, span});
}

// Lets the kernels go that wait for one which ends at `end`; all of them where `kernel` is null, which would hang.
using Released = std::vector<std::pair<Held, SimSpan>>;
Released Release(Context& context, const SimKernel* kernel, uint64_t end) {
  Released released;
  for (auto at = context.held.begin(); at != context.held.end();) {
    const SimKernel& waiting = *at->launch.kernel;
    if (kernel != nullptr && waiting.waits_for != kernel) {
      ++at;
      continue;
    }
    const SimSpan span = {at->start, std::max(at->start + waiting.ns, end)};
    Occupy(context, at->launch.stream, &waiting, span);
    released.emplace_back(std::move(*at), span);
    at = context.held.erase(at);
  }
  return released;
}
void Tell(const Released& released) {
  for (const auto& [held, span] : released) held.run(held.launch, &span);
}

// Something waits for all of the context, or the stream, and so for kernels that wait for what is not launched.
void CheckNothingHangs(CUcontext context, const CUstream* stream) {
  Released released;
  {
    std::lock_guard lock(TheGpu().mutex);
    Context& one = ContextOf(context);
    const bool hangs = std::any_of(one.held.begin(), one.held.end(), [stream](const Held& held) {
      return stream == nullptr || held.launch.stream == *stream;
    });
    if (hangs) released = Release(one, nullptr, 0);
  }
  for (const auto& [held, span] : released) {
    sim_violation((std::string("hangs: ") + held.launch.kernel->name + " waits for what waits for it").c_str());
  }
  Tell(released);
}

// When there is room in the context's queue.
uint64_t RoomAt(CUcontext context, uint64_t now) {
  std::lock_guard lock(TheGpu().mutex);
  std::deque<uint64_t>& starts = ContextOf(context).starts;
  while (!starts.empty() && starts.front() <= now) starts.pop_front();
  return starts.size() < kQueue ? now : starts[starts.size() - kQueue];
}

}  // namespace

void sim::Launch(const SimLaunch& launch, const std::function<SimSlow()>& begin,
                 const std::function<void(const SimLaunch&, const SimSpan*)>& run) {
  t_launches = true;
  const uint64_t begin_at = sim_now();
  CheckNothingHangs(launch.context, &launch.stream);
  const uint64_t launched_at = begin_at + (g_costs ? kLaunchNs : 0), room_at = RoomAt(launch.context, begin_at);
  t_waited += room_at - std::min(room_at, launched_at);
  const uint64_t now = std::max({launched_at, room_at, g_held_until.load()});
  const SimSlow slow = begin();
  const auto longer = [slow](const SimKernel& kernel) { return kernel.ns * slow.times + slow.ns; };
  std::vector<SimSpan> spans;
  Released released;
  {
    std::lock_guard lock(TheGpu().mutex);
    Context& context = ContextOf(launch.context);
    uint64_t start = std::max({now, context.barrier, context.streams[launch.stream]});
    context.starts.push_back(start);
    if (launch.kernel != nullptr && launch.kernel->waits_for != nullptr) {
      context.held.push_back({launch, start, run});
      return GoOnAt(static_cast<int64_t>(now));
    }
    const auto add = [&](const SimKernel* kernel, uint64_t transfer_ns) {
      const SimSpan span = {start, start + (kernel != nullptr ? longer(*kernel) : transfer_ns)};
      Occupy(context, launch.stream, kernel, span);
      spans.push_back(span);
      start = span.end;
      if (kernel == nullptr) return;
      for (auto& one : Release(context, kernel, span.end)) released.push_back(std::move(one));
    };
    if (launch.graph == nullptr) add(launch.kernel, launch.transfer_ns);
    for (size_t i = 0; launch.graph != nullptr && i < launch.graph->count; ++i) {
      add(launch.graph->nodes[i].kernel, launch.graph->nodes[i].transfer_ns);
    }
  }
  GoOnAt(static_cast<int64_t>(now));
  run(launch, spans.data());
  Tell(released);
  SetTime(static_cast<int64_t>(now), Computed());  // what this simulation has computed is not counted
}

extern "C" {

void sim_set_time(int real, int costs) {
  g_real = real;
  g_costs = costs != 0;
  if (real != 0) g_program = Clock(CLOCK_REALTIME);
  g_begin = g_program.load();
  g_machine_begin = Clock(CLOCK_MONOTONIC);
  SetTime(g_program, Computed());
}
int sim_costs(void) { return g_costs ? 1 : 0; }

uint64_t sim_now(void) { return static_cast<uint64_t>(Time()); }
void sim_spend(uint64_t ns) { GoOnAt(Time() + static_cast<int64_t>(ns)); }
void sim_wait_until(uint64_t then) { GoOnAt(std::max(Time(), static_cast<int64_t>(then))); }

uint64_t sim_own_now(void) { return static_cast<uint64_t>(OwnTime()); }
void sim_compute_until(uint64_t then) { GoOnAt(static_cast<int64_t>(then)); }

uint64_t sim_waited(void) { return t_waited; }

void sim_hold_until(uint64_t then) {
  for (uint64_t until = g_held_until; until < then && !g_held_until.compare_exchange_weak(until, then);) {
  }
}

void sim_barrier(CUcontext context, uint64_t ns) {
  CheckNothingHangs(context, nullptr);
  const uint64_t now = sim_now();
  std::lock_guard lock(TheGpu().mutex);
  Context& one = ContextOf(context);
  one.idle_at = one.barrier = std::max({now, one.barrier, one.idle_at}) + ns;
}

uint64_t sim_idle_at(CUcontext context) {
  CheckNothingHangs(context, nullptr);
  std::lock_guard lock(TheGpu().mutex);
  return ContextOf(context).idle_at;
}
uint64_t sim_stream_idle_at(CUcontext context, CUstream stream) {
  CheckNothingHangs(context, &stream);
  std::lock_guard lock(TheGpu().mutex);
  return ContextOf(context).streams[stream];
}

void sim_keep_from(int device, uint64_t from) {
  std::lock_guard lock(TheGpu().mutex);
  Device& one = TheGpu().devices[device];
  one.keep_from = from;
  if (from == 0) return;
  std::erase_if(one.busy, [from](const Device::Busy& busy) { return busy.span.end <= from; });
}

void sim_kernels_between(int device, uint64_t from, uint64_t to,
                         void (*tell)(void* user, const SimKernel* kernel, SimSpan span), void* user) {
  std::lock_guard lock(TheGpu().mutex);
  for (const Device::Busy& busy : TheGpu().devices[device].busy) {
    if (busy.span.start < to && busy.span.end > from) tell(user, busy.kernel, busy.span);
  }
}
}
