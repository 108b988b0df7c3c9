#include "collector/virtual_gpu.h"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <type_traits>

#include "collector/estimate/virtual_board.h"
#include "collector/safe_write.h"
#include "collector/step_waits.h"
#include "gpus/gpus.h"

namespace rfinject {
namespace {

// A function of the driver, null until there is one. Start writes it when the driver is loaded, before the program
// has threads that use the GPU; any thread reads it. Relaxed: the driver's own state has its own lock.
template <typename Function>
class Door {
 public:
  constexpr explicit Door(const char* name) : name_(name) {}
  void Open(void* driver) { function_.store(reinterpret_cast<Function>(dlsym(driver, name_))); }
  Function Get() const { return function_.load(std::memory_order_relaxed); }
  // Calls the function; returns what it returns, or a value of nothing where there is none.
  template <typename... Arguments>
  auto operator()(Arguments... arguments) const {
    using Result = std::invoke_result_t<Function, Arguments...>;
    const Function function = Get();
    return function != nullptr ? function(arguments...) : Result();
  }

 private:
  const char* name_;
  std::atomic<Function> function_{nullptr};
};
// The last one is opened when all others are.
#define RFINJECT_VIRTUAL_DOORS(DOOR) \
  DOOR(launches)                     \
  DOOR(clock)                        \
  DOOR(capturing)                    \
  DOOR(captured)                     \
  DOOR(tell_captured)                \
  DOOR(observe)                      \
  DOOR(changed)                      \
  DOOR(say)                          \
  DOOR(tell)
#define RFINJECT_DEFINE(name) \
  constinit Door<decltype(&rfinject_virtual_gpu_##name)> g_##name("rfinject_virtual_gpu_" #name);
RFINJECT_VIRTUAL_DOORS(RFINJECT_DEFINE)
#undef RFINJECT_DEFINE

bool ReadClock(GpuClock* clock) noexcept {
  if (g_clock.Get() == nullptr || !UsesVirtualGpu()) return false;
  rfinject_virtual_clock now{};
  g_clock(&now);
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
  if (!HasEstimates(*gpu)) return "nothing is estimated for this GPU";
  std::optional<rfinject_virtual_board> board = estimate::VirtualBoardOf(*gpu);
  if (!board) return "it is not known how much memory this GPU has, so whether a program fits cannot be said";
  board->devices = devices;
  board->quiet = settings.verbosity < 0 ? 1 : 0;
  board->computes = settings.values == "all" ? 1 : 0;

  const std::string path = VirtualGpuFolder() + "/librfinject_virtual_gpu.so";
  if (!Exists(path)) return "this build of rfinject has none, for want of CUDA's headers; scripts/setup fetches them";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return dlerror();
  using Enter = const char* (*)(const char*, const rfinject_virtual_board*);
  const auto enter = reinterpret_cast<Enter>(dlsym(library, "rfinject_virtual_gpu_enter"));
  if (enter == nullptr) return "its library is of another version";
  if (const char* why = enter(torch_libraries.c_str(), &*board); why != nullptr) return why;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return "its driver is of another version";
  g_gpu_clock.store(&ReadClock);
#define RFINJECT_OPEN(name) g_##name.Open(driver);
  RFINJECT_VIRTUAL_DOORS(RFINJECT_OPEN)
#undef RFINJECT_OPEN
  return HasVirtualGpu() ? nullptr : "its driver is of another version";
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

bool HasVirtualGpu() noexcept { return g_tell.Get() != nullptr; }

bool UsesVirtualGpu() noexcept { return g_launches() != 0; }

bool VirtualGpuCaptures() noexcept { return g_capturing() != 0; }

bool VirtualGpuCaptured() noexcept { return g_captured() != 0; }

void TellVirtualGpuCaptured(uint64_t nanoseconds, uint64_t what) noexcept { g_tell_captured(nanoseconds, what); }

void ObserveVirtualGpu(const rfinject_virtual_observer* observer) noexcept { g_observe(observer); }

void TellVirtualGpuChanged(uintptr_t address, size_t bytes) noexcept { g_changed(address, bytes); }

void SayOfVirtualGpu(const char* text) noexcept { g_say(text); }

void TellVirtualGpu(uint64_t nanoseconds) noexcept { g_tell(nanoseconds); }

}  // namespace rfinject
