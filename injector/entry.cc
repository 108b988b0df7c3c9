// The library's outermost functions: what the loader, the CUDA driver and libc call. They must be next to free in a
// process that is not ours, and harmless in every process.

#include <dlfcn.h>
#include <link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "injector/attach.h"
#include "injector/python/door.h"

namespace {

using ExitFunction = void (*)(int);
// Plain data: the constructor must not depend on the order of initialisers, and there should be none.
constinit ExitFunction g_next_exit = nullptr;
constinit ExitFunction g_next_Exit = nullptr;
constinit bool g_inert = false;

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

[[gnu::constructor]] void Load() noexcept {
  g_next_exit = reinterpret_cast<ExitFunction>(dlsym(RTLD_NEXT, "_exit"));
  g_next_Exit = reinterpret_cast<ExitFunction>(dlsym(RTLD_NEXT, "_Exit"));
  // Every Python since 3.8 exports it, in static and shared builds; nothing else does.
  if (void* add_audit_hook = dlsym(RTLD_DEFAULT, "PySys_AddAuditHook"); add_audit_hook != nullptr) {
    g_inert = Disabled() || IsSecondCopy();
    // Opened by a running interpreter (or by the CUDA driver inside it): the late door is the driver's to open.
    auto is_initialized = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "Py_IsInitialized"));
    if (!g_inert && is_initialized != nullptr && is_initialized() == 0) rfinject::OpenEarlyDoor(add_audit_hook);
    return;
  }
  // A program that is linked with libtorch; its initialisers have run, since a preloaded library's run last.
  if (dlsym(RTLD_DEFAULT, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE") != nullptr) {
    g_inert = Disabled() || IsSecondCopy();
    if (!g_inert) rfinject::AttachLibtorch();
  }
}

[[gnu::destructor]] void Unload() noexcept { rfinject::FinishProcess("exit"); }

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
  rfinject::OpenLateDoor();
  return 1;
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
