// Launches empty kernels through the driver API, as fast as a host can, for bench/launch_cost: a library that a
// Python program calls inside a module's forward, so that launches have a layer, on the context that torch has made.
//
// It sees the driver and the CUPTI that the process has loaded, real or not, and is linked with none.
#include <cuda.h>
#include <cupti.h>
#include <dlfcn.h>
#include <time.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace {

constexpr const char* kEmptyKernel =
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry rfinject_empty() { ret; }\n";
// The queue of a GPU has some thousand places. A host that waits in it would measure the GPU.
constexpr int kLaunchesAtOnce = 256;

template <typename Function>
Function Find(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver != nullptr ? reinterpret_cast<Function>(dlsym(driver, name)) : nullptr;
}

// What PyTorch is linked with.
template <typename Function>
Function FindCupti(const char* name) {
  for (const char* library : {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11"}) {
    void* const cupti = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    if (cupti != nullptr) return reinterpret_cast<Function>(dlsym(cupti, name));
  }
  return nullptr;
}
#define RFINJECT_CALL(name) Find<decltype(&::name)>(#name)

CUcontext g_context = nullptr;
CUfunction g_empty = nullptr;

int64_t ThreadNs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

bool Launch(CUstream stream) {
  static const auto launch = RFINJECT_CALL(cuLaunchKernel);
  return launch(g_empty, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr) == CUDA_SUCCESS;
}

// The thread's processor time of `count` calls, ns; negative where one failed.
template <typename Call>
int64_t TimeOf(int count, CUstream stream, const Call& call) {
  int64_t sum = 0;
  while (count > 0) {
    const int now = count < kLaunchesAtOnce ? count : kLaunchesAtOnce;
    const int64_t begin = ThreadNs();
    for (int i = 0; i < now; ++i) {
      if (!call()) return -1;
    }
    sum += ThreadNs() - begin;
    if (RFINJECT_CALL(cuStreamSynchronize)(stream) != CUDA_SUCCESS) return -1;
    count -= now;
  }
  return sum;
}

// Threads that stay, as those of a program that launches do.
class Crew {
 public:
  // Each of `threads` threads calls `work` once.
  void Run(int threads, std::function<void()> work) {
    std::unique_lock lock(mutex_);
    for (; threads_ < threads; ++threads_) std::thread(&Crew::Stay, this, threads_, turn_).detach();
    work_ = std::move(work);
    wanted_ = working_ = threads;
    ++turn_;
    begin_.notify_all();
    done_.wait(lock, [this] { return working_ == 0; });
  }

 private:
  void Stay(int number, int turn) {
    for (std::unique_lock lock(mutex_);;) {
      begin_.wait(lock, [&] { return turn_ != turn; });
      turn = turn_;
      if (number >= wanted_) continue;
      lock.unlock();
      work_();
      lock.lock();
      if (--working_ == 0) done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable begin_, done_;
  std::function<void()> work_;
  int threads_ = 0, wanted_ = 0, working_ = 0, turn_ = 0;
};

// A graph of so many empty kernels, captured as a program captures its own.
CUgraphExec GraphOf(int nodes, CUstream stream) {
  static std::map<int, CUgraphExec> known;
  const auto [at, is_new] = known.try_emplace(nodes, nullptr);
  if (!is_new) return at->second;
  CUgraph graph = nullptr;
  if (RFINJECT_CALL(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS) return nullptr;
  for (int i = 0; i < nodes; ++i) Launch(stream);
  if (RFINJECT_CALL(cuStreamEndCapture)(stream, &graph) != CUDA_SUCCESS) return nullptr;
  RFINJECT_CALL(cuGraphInstantiateWithFlags)(&at->second, graph, 0);
  return at->second;
}

}  // namespace

// Takes the calling thread's current context. Returns 0, or the driver's error.
extern "C" __attribute__((visibility("default"))) int launch_loop_open() {
  CUmodule module = nullptr;
  if (RFINJECT_CALL(cuCtxGetCurrent) == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (const CUresult result = RFINJECT_CALL(cuCtxGetCurrent)(&g_context); result != CUDA_SUCCESS) return result;
  if (const CUresult result = RFINJECT_CALL(cuModuleLoadData)(&module, kEmptyKernel); result != CUDA_SUCCESS) {
    return result;
  }
  return RFINJECT_CALL(cuModuleGetFunction)(&g_empty, module, "rfinject_empty");
}

// Has CUPTI call an empty function at each launch, as whoever wants to hear of launches must. Returns 0 or CUPTI's
// error.
extern "C" __attribute__((visibility("default"))) int launch_loop_subscribe() {
  const auto subscribe = FindCupti<decltype(&cuptiSubscribe)>("cuptiSubscribe");
  const auto enable = FindCupti<decltype(&cuptiEnableCallback)>("cuptiEnableCallback");
  if (subscribe == nullptr || enable == nullptr) return CUPTI_ERROR_NOT_INITIALIZED;
  static CUpti_SubscriberHandle subscriber = nullptr;
  const auto nothing = [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {};
  int result = subscribe(&subscriber, nothing, nullptr);
  for (const CUpti_CallbackId call :
       {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch}) {
    if (result == CUPTI_SUCCESS) result = enable(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, call);
  }
  return result;
}

// Processor time (ns) that a launch takes on its thread, of `count` on each of `threads` threads, whose streams are
// their own; on one thread, the calling one. Negative: a call failed.
extern "C" __attribute__((visibility("default"))) double launch_loop_eager(int threads, int count) {
  std::atomic<int64_t> sum{0};
  std::atomic<bool> failed{false};
  const auto run = [&] {
    CUstream stream = nullptr;
    RFINJECT_CALL(cuCtxSetCurrent)(g_context);
    if (RFINJECT_CALL(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) failed = true;
    // A thread's first launch makes what its others use.
    if (!Launch(stream) || RFINJECT_CALL(cuStreamSynchronize)(stream) != CUDA_SUCCESS) failed = true;
    const int64_t ns = TimeOf(count, stream, [stream] { return Launch(stream); });
    if (ns < 0) failed = true;
    sum += ns;
    RFINJECT_CALL(cuStreamDestroy_v2)(stream);
  };
  if (threads == 1) {
    run();
  } else {
    static Crew* const crew = new Crew;  // its threads are not ended
    crew->Run(threads, run);
  }
  return failed ? -1 : static_cast<double>(sum) / threads / count;
}

// The same of `count` launches of a graph of `nodes` kernels.
extern "C" __attribute__((visibility("default"))) double launch_loop_graph(int nodes, int count) {
  static CUstream stream = [] {
    CUstream made = nullptr;
    RFINJECT_CALL(cuStreamCreate)(&made, CU_STREAM_NON_BLOCKING);
    return made;
  }();
  const CUgraphExec graph = GraphOf(nodes, stream);
  if (graph == nullptr) return -1;
  static const auto launch = RFINJECT_CALL(cuGraphLaunch);
  const int64_t ns = TimeOf(count, stream, [&] { return launch(graph, stream) == CUDA_SUCCESS; });
  return static_cast<double>(ns) / count;
}
