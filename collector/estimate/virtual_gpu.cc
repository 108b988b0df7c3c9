#include "collector/virtual_gpu.h"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "collector/estimate/virtual_board.h"
#include "collector/safe_write.h"
#include "collector/step_waits.h"
#include "gpus/gpus.h"

namespace rfinject {
namespace {

using Tell = decltype(&rfinject_virtual_gpu_tell);
constinit std::atomic<Tell> g_tell{nullptr};
using Launches = decltype(&rfinject_virtual_gpu_launches);
constinit std::atomic<Launches> g_launches{nullptr};

using Clock = decltype(&rfinject_virtual_gpu_clock);
constinit std::atomic<Clock> g_clock{nullptr};
using ObserveMemory = decltype(&rfinject_virtual_gpu_observe_memory);
constinit std::atomic<ObserveMemory> g_observe_memory{nullptr};
constinit std::atomic<MemoryObserver> g_memory_observer{nullptr};

// A function of the driver, by its name; null until there is one.
template <typename Function>
class Door {
 public:
  constexpr explicit Door(const char* name) : name_(name) {}
  void Open(void* driver) { function_.store(reinterpret_cast<Function>(dlsym(driver, name_))); }
  Function Get() const { return function_.load(std::memory_order_relaxed); }

 private:
  const char* name_;
  std::atomic<Function> function_{nullptr};
};
constinit Door<decltype(&rfinject_virtual_gpu_capturing)> g_capturing("rfinject_virtual_gpu_capturing");
constinit Door<decltype(&rfinject_virtual_gpu_captured)> g_captured("rfinject_virtual_gpu_captured");
constinit Door<decltype(&rfinject_virtual_gpu_tell_captured)> g_tell_captured("rfinject_virtual_gpu_tell_captured");
constinit Door<decltype(&rfinject_virtual_gpu_observe_replays)> g_observe_replays(
    "rfinject_virtual_gpu_observe_replays");
constinit Door<decltype(&rfinject_virtual_gpu_observe_loaded)> g_observe_loaded(
    "rfinject_virtual_gpu_observe_loaded");
constinit Door<decltype(&rfinject_virtual_gpu_observe_collectives)> g_observe_collectives(
    "rfinject_virtual_gpu_observe_collectives");
constinit Door<decltype(&rfinject_virtual_gpu_observe_names)> g_observe_names("rfinject_virtual_gpu_observe_names");
constinit std::atomic<KernelNameObserver> g_name_observer{nullptr};
constinit std::atomic<CollectiveObserver> g_collective_observer{nullptr};
constinit std::atomic<ReplayObserver> g_replay_observer{nullptr};
constinit std::atomic<LoadedLaunchObserver> g_loaded_observer{nullptr};

void OnReplay(uint64_t what) noexcept {
  if (const ReplayObserver observer = g_replay_observer.load(std::memory_order_acquire); observer != nullptr) {
    observer(what);
  }
}

void OnLoadedLaunch(const rfinject_virtual_loaded_launch* launch) noexcept {
  const LoadedLaunchObserver observer = g_loaded_observer.load(std::memory_order_acquire);
  if (observer == nullptr) return;
  observer({.kernel = launch->name,
            .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
            .block = {launch->block[0], launch->block[1], launch->block[2]},
            .shared_bytes = launch->shared_bytes,
            .device = static_cast<uint32_t>(launch->device),
            .words = {launch->words, launch->word_count}});
}

void OnKernelName(const char* name) noexcept {
  if (const KernelNameObserver observer = g_name_observer.load(std::memory_order_acquire); observer != nullptr) {
    observer(name);
  }
}

void OnCollective(const rfinject_virtual_collective* collective) noexcept {
  const CollectiveObserver observer = g_collective_observer.load(std::memory_order_acquire);
  if (observer == nullptr) return;
  observer({.kind = collective->kind,
            .ranks = collective->ranks > 0 ? static_cast<uint64_t>(collective->ranks) : 0,
            .bytes = collective->bytes,
            .send_bytes = collective->send_bytes,
            .receive_bytes = collective->receive_bytes});
}

void OnMemory(const rfinject_virtual_memory* memory) noexcept {
  const MemoryObserver observer = g_memory_observer.load(std::memory_order_acquire);
  if (observer == nullptr) return;
  observer({.device = static_cast<uint32_t>(memory->device),
            .address = memory->address,
            .bytes = memory->bytes,
            .reserved = memory->reserved,
            .refused = memory->refused != 0});
}

bool ReadClock(GpuClock* clock) noexcept {
  const Clock read = g_clock.load(std::memory_order_relaxed);
  if (read == nullptr || !UsesVirtualGpu()) return false;
  rfinject_virtual_clock now{};
  read(&now);
  *clock = {.skipped_ns = now.skipped_ns, .busy_ns = now.occupied_ns};
  return true;
}

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// Whether the kernel has NVIDIA's driver. Asking the driver itself would start it, and a process that has started it
// cannot fork workers that use it.
bool HasDriver() { return Exists("/dev/nvidiactl") || Exists("/dev/dxg"); }

// Whether torch has loaded CUDA's libraries, which then are NVIDIA's: torch/__init__.py opens this one for them.
bool HasTorch() {
  void* library = dlopen("libtorch_global_deps.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library != nullptr) dlclose(library);
  return library != nullptr;
}

// How many of `devices` the program may see. CUDA_VISIBLE_DEVICES is read as CUDA does it, up to the first entry that
// names no device.
int VisibleDevices(int devices) {
  const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (list == nullptr) return devices;
  int visible = 0;
  for (std::string_view rest = list; !rest.empty();) {
    const std::string_view entry = rest.substr(0, rest.find(','));
    rest.remove_prefix(entry.size() == rest.size() ? rest.size() : entry.size() + 1);
    const bool number = !entry.empty() && entry.find_first_not_of("0123456789") == std::string_view::npos;
    // A UUID names one device, whichever it is.
    if (!number && !entry.starts_with("GPU-")) break;
    if (number && std::atoi(std::string(entry).c_str()) >= devices) break;
    ++visible;
  }
  return visible;
}

// Returns as many devices as the user asked for, else one for each process that torchrun started on this machine.
int Devices(const Settings& settings) {
  if (settings.virtual_gpus != 0) return static_cast<int>(settings.virtual_gpus);
  const char* processes = std::getenv("LOCAL_WORLD_SIZE");
  const int count = processes != nullptr ? std::atoi(processes) : 0;
  return count > 0 ? count : 1;
}

// The folder of librfinject.so, which has the virtual GPU's below it.
std::string OwnFolder() {
  Dl_info own{};
  if (dladdr(reinterpret_cast<const void*>(&OwnFolder), &own) == 0 || own.dli_fname == nullptr) return {};
  const std::string path = own.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

// Starts the virtual GPU. Returns null, or why there is none.
const char* Start(const Settings& settings, const std::string& torch_libraries, int devices) {
  const Gpu* gpu = FindGpu(settings.estimate);
  if (gpu == nullptr) return "there is no such GPU in the table";
  std::optional<rfinject_virtual_board> board = estimate::VirtualBoardOf(*gpu);
  if (!board) return "it is not known how much memory this GPU has, so whether a program fits cannot be said";
  board->devices = devices;
  board->quiet = settings.verbosity < 0 ? 1 : 0;

  const std::string path = VirtualGpuFolder() + "/librfinject_virtual_gpu.so";
  if (!Exists(path)) return "this build of rfinject has none";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return dlerror();
  using Enter = const char* (*)(const char*, const rfinject_virtual_board*);
  const auto enter = reinterpret_cast<Enter>(dlsym(library, "rfinject_virtual_gpu_enter"));
  if (enter == nullptr) return "its library is of another version";
  if (const char* why = enter(torch_libraries.c_str(), &*board); why != nullptr) return why;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver != nullptr) {
    g_launches.store(reinterpret_cast<Launches>(dlsym(driver, "rfinject_virtual_gpu_launches")));
    g_capturing.Open(driver);
    g_captured.Open(driver);
    g_tell_captured.Open(driver);
    g_observe_replays.Open(driver);
    g_observe_loaded.Open(driver);
    g_observe_collectives.Open(driver);
    g_observe_names.Open(driver);
    g_clock.store(reinterpret_cast<Clock>(dlsym(driver, "rfinject_virtual_gpu_clock")));
    g_gpu_clock.store(&ReadClock);
    g_observe_memory.store(reinterpret_cast<ObserveMemory>(dlsym(driver, "rfinject_virtual_gpu_observe_memory")));
  }
  g_tell.store(driver != nullptr ? reinterpret_cast<Tell>(dlsym(driver, "rfinject_virtual_gpu_tell")) : nullptr);
  return g_tell.load() != nullptr ? nullptr : "its driver is of another version";
}

}  // namespace

void OfferVirtualGpu(const Settings& settings, const std::string& torch_libraries) noexcept try {
  if (settings.estimate.empty() || settings.estimate_on == "cpu" || HasVirtualGpu()) return;
  const bool wanted = settings.estimate_on == "virtual-gpu";
  if (!wanted && HasDriver()) return;
  if (!Exists(torch_libraries + "/libtorch_cuda.so")) {
    if (wanted) WriteLogLine("no virtual GPU: this torch is not a CUDA build; operators are run on the CPU");
    return;
  }
  const int devices = VisibleDevices(Devices(settings));
  if (devices == 0) return;  // the program's user wants it to see none
  const char* why = HasTorch() ? "torch's libraries were loaded before" : Start(settings, torch_libraries, devices);
  if (why == nullptr || settings.verbosity < 0) return;
  WriteLogLine("no virtual GPU: " + std::string(why) + "; operators are run on the CPU");
} catch (const std::exception&) {
  // There was no memory for a few paths; the program is about to fail by itself.
}

std::string VirtualGpuFolder() { return OwnFolder() + "virtual_gpu"; }

bool HasVirtualGpu() noexcept { return g_tell.load(std::memory_order_relaxed) != nullptr; }

bool UsesVirtualGpu() noexcept {
  const Launches launches = g_launches.load(std::memory_order_relaxed);
  return launches != nullptr && launches() != 0;
}

void ObserveVirtualMemory(MemoryObserver observer) noexcept {
  g_memory_observer.store(observer, std::memory_order_release);
  if (const ObserveMemory observe = g_observe_memory.load(); observe != nullptr) observe(&OnMemory);
}

bool VirtualGpuCaptures() noexcept {
  const auto capturing = g_capturing.Get();
  return capturing != nullptr && capturing() != 0;
}

bool VirtualGpuCaptured() noexcept {
  const auto captured = g_captured.Get();
  return captured != nullptr && captured() != 0;
}

void TellVirtualGpuCaptured(uint64_t nanoseconds, uint64_t what) noexcept {
  if (const auto tell = g_tell_captured.Get(); tell != nullptr) tell(nanoseconds, what);
}

void ObserveVirtualReplays(ReplayObserver observer) noexcept {
  g_replay_observer.store(observer, std::memory_order_release);
  if (const auto observe = g_observe_replays.Get(); observe != nullptr) observe(&OnReplay);
}

void ObserveVirtualLoadedLaunches(LoadedLaunchObserver observer) noexcept {
  g_loaded_observer.store(observer, std::memory_order_release);
  if (const auto observe = g_observe_loaded.Get(); observe != nullptr) observe(&OnLoadedLaunch);
}

void ObserveVirtualKernelNames(KernelNameObserver observer) noexcept {
  g_name_observer.store(observer, std::memory_order_release);
  if (const auto observe = g_observe_names.Get(); observe != nullptr) observe(&OnKernelName);
}

void ObserveVirtualCollectives(CollectiveObserver observer) noexcept {
  g_collective_observer.store(observer, std::memory_order_release);
  if (const auto observe = g_observe_collectives.Get(); observe != nullptr) observe(&OnCollective);
}

void TellVirtualGpu(uint64_t nanoseconds) noexcept {
  if (const Tell tell = g_tell.load(std::memory_order_relaxed); tell != nullptr) tell(nanoseconds);
}

}  // namespace rfinject
