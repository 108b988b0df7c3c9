// File: sim_time.cc
//
// The simulated GPU's clock, its streams and its queue. When a kernel runs is known when it is launched: after what
// is before it on its stream, and not before it was launched. So nothing has to run in the background, and a call
// that waits knows until when.
#include "integration_tests/simulated_gpu/sim_time.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace {

// README.md of the recording: the host runs 1,024 launches ahead, and then waits.
constexpr size_t kQueue = 1024;
constexpr uint64_t kVirtualStart = 1'700'000'000'000'000'000;
// pm/ranges.txt: 9.5 ms of the host for 377 launches.
constexpr uint64_t kLaunchNs = 25'000;
// A thread in real time sleeps when it is this far ahead, and wakes up late by less than that.
constexpr int64_t kMostAhead = 1'000'000;
constexpr int64_t kSpin = 60'000;
constexpr size_t kManyKernels = 4096;

std::atomic<bool> g_real{false}, g_costs{true};
std::atomic<uint64_t> g_virtual{kVirtualStart};
thread_local int64_t t_ahead = 0;  // of the machine's clock, in real time; below 0: it has slept for too long

int64_t Clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}
// As CUPTI's clock, but never set back.
int64_t Machine() {
  static const int64_t offset = Clock(CLOCK_REALTIME) - Clock(CLOCK_MONOTONIC);
  return Clock(CLOCK_MONOTONIC) + offset;
}
void Sleep(int64_t ns) {
  const timespec time = {ns / 1'000'000'000, ns % 1'000'000'000};
  nanosleep(&time, nullptr);
}
// Lets the machine come up to this thread.
void CatchUp() {
  const int64_t then = Machine() + t_ahead;
  if (t_ahead > kSpin) Sleep(t_ahead - kSpin);
  while (Machine() < then) {
  }
  t_ahead = std::max(then - Machine(), -kMostAhead);
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

void WaitForRoom(CUcontext context) {
  for (;;) {
    const uint64_t now = sim_now();
    uint64_t room_at = 0;
    {
      std::lock_guard lock(TheGpu().mutex);
      std::deque<uint64_t>& starts = ContextOf(context).starts;
      while (!starts.empty() && starts.front() <= now) starts.pop_front();
      if (starts.size() < kQueue) return;
      room_at = starts.front();
    }
    sim_wait_until(room_at);
  }
}

}  // namespace

void sim::Launch(const SimLaunch& launch, const std::function<SimSlow()>& begin,
                 const std::function<void(const SimLaunch&, const SimSpan*)>& run) {
  if (g_costs) sim_spend(kLaunchNs);
  CheckNothingHangs(launch.context, &launch.stream);
  WaitForRoom(launch.context);
  const SimSlow slow = begin();
  const auto longer = [slow](const SimKernel& kernel) { return kernel.ns * slow.times + slow.ns; };
  std::vector<SimSpan> spans;
  Released released;
  const uint64_t now = sim_now();
  {
    std::lock_guard lock(TheGpu().mutex);
    Context& context = ContextOf(launch.context);
    uint64_t start = std::max({now, context.barrier, context.streams[launch.stream]});
    context.starts.push_back(start);
    if (launch.kernel != nullptr && launch.kernel->waits_for != nullptr) {
      context.held.push_back({launch, start, run});
      return;
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
  run(launch, spans.data());
  Tell(released);
}

extern "C" {

void sim_set_time(int real, int costs) {
  g_real = real != 0;
  g_costs = costs != 0;
}
int sim_costs(void) { return g_costs ? 1 : 0; }

uint64_t sim_now(void) {
  if (!g_real) return g_virtual;
  return static_cast<uint64_t>(Machine() + std::max(t_ahead, int64_t{0}));
}

void sim_spend(uint64_t ns) {
  if (!g_real) {
    g_virtual += ns;
    return;
  }
  t_ahead += static_cast<int64_t>(ns);
  if (t_ahead > kMostAhead) CatchUp();
}

void sim_wait_until(uint64_t then) {
  if (!g_real) {
    for (uint64_t now = g_virtual; now < then && !g_virtual.compare_exchange_weak(now, then);) {
    }
    return;
  }
  t_ahead = std::max(t_ahead, static_cast<int64_t>(then) - Machine());
  if (t_ahead > kMostAhead) CatchUp();
}

void sim_settle(void) {
  if (g_real && t_ahead > 0) CatchUp();
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
