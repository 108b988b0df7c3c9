// The library's outermost functions: what the loader, the CUDA driver and libc call. They must cost next to nothing
// in a process that does not train, and be harmless in every process.

#include <dlfcn.h>
#include <link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "collector/last_words.h"
#include "collector/safe_write.h"
#include "collector/settings.h"
#include "injector/attach.h"
#include "injector/attachment.h"
#include "injector/python/door.h"

namespace {

using ExitFunction = void (*)(int);
// This is plain data: the constructor must not depend on the order of initialisers, so there should be none.
constinit ExitFunction g_next_exit = nullptr;
constinit ExitFunction g_next_Exit = nullptr;
constinit bool g_inert = false;
constinit bool g_watching = false;        // Python or libtorch has been found
constinit bool g_libtorch_waits = false;  // in a C++ program that ran already

bool Disabled() noexcept {
  const char* value = std::getenv("RFINJECT_DISABLE");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

// LD_PRELOAD and CUDA_INJECTION64_PATH may name two copies of this library: the one that the loader lists first
// works, the other does nothing.
struct Copies {
  const char* name;
  uintptr_t own_base;
  bool other_first;
};

const char* BaseName(const char* path) noexcept {
  const char* slash = std::strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

int LookAtObject(dl_phdr_info* info, size_t, void* data) noexcept {
  auto* copies = static_cast<Copies*>(data);
  if (info->dlpi_name == nullptr) return 0;
  if (info->dlpi_addr == copies->own_base) return 1;
  if (std::strcmp(BaseName(info->dlpi_name), copies->name) == 0) copies->other_first = true;
  return copies->other_first ? 1 : 0;
}

bool IsSecondCopy() noexcept {
  Dl_info own;
  if (dladdr(reinterpret_cast<const void*>(&IsSecondCopy), &own) == 0 || own.dli_fname == nullptr) return false;
  Copies copies{BaseName(own.dli_fname), reinterpret_cast<uintptr_t>(own.dli_fbase), false};
  dl_iterate_phdr(&LookAtObject, &copies);
  return copies.other_first;
}

// The loader lists objects in the order in which it loaded them: those of a program's start, preloaded ones first,
// with the C library behind them, and then what was opened later.
struct Order {
  uintptr_t own_base;
  bool c_library = false;  // seen so far
};

int LookForOwnPlace(dl_phdr_info* info, size_t, void* data) noexcept {
  auto* order = static_cast<Order*>(data);
  if (info->dlpi_addr == order->own_base) return 1;
  order->c_library =
      order->c_library || (info->dlpi_name != nullptr && std::strncmp(BaseName(info->dlpi_name), "libc.so", 7) == 0);
  return 0;
}

// Whether the program ran already when this library was opened.
bool OpenedLater() noexcept {
  Dl_info own;
  if (dladdr(reinterpret_cast<const void*>(&OpenedLater), &own) == 0) return false;
  Order order{reinterpret_cast<uintptr_t>(own.dli_fbase)};
  return dl_iterate_phdr(&LookForOwnPlace, &order) == 1 && order.c_library;
}

bool HasLibtorch() noexcept {
  return dlsym(RTLD_DEFAULT, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE") != nullptr;
}

[[gnu::constructor]] void Load() noexcept {
  g_next_exit = reinterpret_cast<ExitFunction>(dlsym(RTLD_NEXT, "_exit"));
  g_next_Exit = reinterpret_cast<ExitFunction>(dlsym(RTLD_NEXT, "_Exit"));
  // Every Python since 3.8 exports it, in static and shared builds; nothing else does.
  if (void* add_audit_hook = dlsym(RTLD_DEFAULT, "PySys_AddAuditHook"); add_audit_hook != nullptr) {
    g_inert = Disabled() || IsSecondCopy();
    // The library was opened by a running interpreter, or by the CUDA driver inside it, which calls
    // InitializeInjection next.
    auto is_initialized = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "Py_IsInitialized"));
    g_watching = true;
    if (!g_inert && is_initialized != nullptr && is_initialized() == 0) rfinject::OpenEarlyDoor(add_audit_hook);
    return;
  }
  // The program is linked with libtorch. Libtorch's initialisers have run, since those of a preloaded library run
  // last. Where our library was opened later, the CUDA driver calls InitializeInjection next, or `rfinject attach`
  // rfinject_attach.
  if (HasLibtorch()) {
    g_inert = Disabled() || IsSecondCopy();
    g_watching = true;
    g_libtorch_waits = OpenedLater();
    if (!g_inert && !g_libtorch_waits) rfinject::AttachLibtorch();
  }
}

// What a process has loaded that we would have measured, if it had been there when this library was loaded.
struct Unseen {
  bool python = false;
  bool torch = false;
};

int LookForTorch(dl_phdr_info* info, size_t, void* data) noexcept {
  auto* unseen = static_cast<Unseen*>(data);
  if (info->dlpi_name == nullptr) return 0;
  const char* name = BaseName(info->dlpi_name);
  unseen->python = unseen->python || std::strncmp(name, "libpython", 9) == 0;
  unseen->torch = unseen->torch || std::strncmp(name, "libtorch_cpu.so", 15) == 0;
  return 0;
}

Unseen LoadedLater() noexcept {
  Unseen unseen;
  dl_iterate_phdr(&LookForTorch, &unseen);
  return unseen;
}

// A program that opens libpython itself (dlopen, plug-ins of other programs) brings it after our constructor has
// looked, and nothing tells us of it but the CUDA driver. The user who waits for its trace is told why there is none.
void ExplainUnseenTorch() noexcept {
  if (g_inert || g_watching || !rfinject::DoorIsClosed() || Disabled()) return;
  const Unseen unseen = LoadedLater();
  if (!unseen.python || !unseen.torch || rfinject::GetSettings().verbosity < 0) return;
  rfinject::WriteLogLine(
      "no trace: this program opened libpython itself, after rfinject had looked for it; link the program with "
      "libpython, or put libpython in front of rfinject's library in LD_PRELOAD");
}

[[gnu::destructor]] void Unload() noexcept {
  rfinject::FinishProcess("exit");
  if (!g_inert) rfinject::ExplainNoTrace();
  ExplainUnseenTorch();
}

[[noreturn]] void LeaveNow(ExitFunction next, int status) noexcept {
  if (next != nullptr) next(status);
  for (;;) syscall(SYS_exit_group, status);
}

}  // namespace

// Called by the CUDA driver, on the thread that initialises it, for CUDA_INJECTION64_PATH. Returns 1: anything else
// makes the driver fail the program's cuInit.
extern "C" [[gnu::visibility("default")]] int InitializeInjection() noexcept {
  if (g_inert || Disabled() || IsSecondCopy()) return 1;
  // The hardware source subscribes here when it has to be ready before the first context.
  // A program that opens libtorch itself had none when our constructor looked.
  if (!g_watching && HasLibtorch() && !LoadedLater().python) g_watching = g_libtorch_waits = true;
  if (std::exchange(g_libtorch_waits, false)) rfinject::AttachLibtorch();
  rfinject::OpenLateDoor();
  return 1;
}

// Called by the interpreter with the GIL held, or where a C++ program calls libtorch, because `rfinject attach` and
// `rfinject detach` asked for it (attachment.h). Returns an empty text, or why nothing has changed.
extern "C" [[gnu::visibility("default")]] const char* rfinject_attach(const char* settings) {
  if (Disabled()) return "RFINJECT_DISABLE=1 is set in it";
  if (g_inert || IsSecondCopy()) return "another copy of rfinject's library is in it";
  const char* why = rfinject::AttachRunning(settings);
  return why != nullptr ? why : "";
}

extern "C" [[gnu::visibility("default")]] const char* rfinject_detach() {
  const char* why = rfinject::DetachRunning();
  return why != nullptr ? why : "";
}

// os._exit, and the end of every multiprocessing child: no exit handler runs there, so the trace is closed here.
extern "C" [[gnu::visibility("default")]] void _exit(int status) {
  rfinject::FinishProcess("_exit");
  LeaveNow(g_next_exit, status);
}

extern "C" [[gnu::visibility("default")]] void _Exit(int status) noexcept {
  rfinject::FinishProcess("_exit");
  LeaveNow(g_next_Exit, status);
}
