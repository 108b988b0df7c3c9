#include "injector/python/door.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <new>
#include <string>

#include "collector/settings.h"
#include "collector/virtual_gpu.h"
#include "injector/attach.h"
#include "injector/python/compiled_code.h"
#include "injector/python/graph_breaks.h"
#include "injector/python/python_api.h"
#include "injector/python/ref.h"

namespace rfinject {
namespace {

enum class State : int {
  kClosed,     // no audit hook
  kWaiting,    // for the first import of torch
  kImporting,  // our own import of torch is running
  kWatching,   // torch is being imported in a way that we were not told of
  kDone,
};
// Zero-initialised: the library must not run initialisers of its own in every process.
constinit std::atomic<State> g_state{State::kClosed};
constinit std::atomic<bool> g_look_pending{false};

// The watcher looks once in this interval, and gives up after this many looks (an import that takes longer than ten
// minutes).
constexpr long kLookIntervalNs = 5'000'000;
constexpr int kMaxLooks = 120'000;

// --- The hook's memory.
//
// Before Python starts, PySys_AddAuditHook takes memory from the allocator that is then in use. PYTHONMALLOC=debug
// and -X dev install another one afterwards, with which the interpreter frees the hook at its end, and aborts. So we
// note where the hook lies, and at the end, if the allocators differ, keep that one block from being freed.

struct Allocator {  // PyMemAllocatorEx
  void* context;
  void* (*malloc)(void* context, size_t size);
  void* (*calloc)(void* context, size_t count, size_t size);
  void* (*realloc)(void* context, void* block, size_t size);
  void (*free)(void* context, void* block);
};
constexpr int kRawDomain = 0;  // PYMEM_DOMAIN_RAW

struct HookMemory {
  void (*get)(int domain, Allocator* allocator);
  void (*set)(int domain, Allocator* allocator);
  Allocator early;  // before Python started
  Allocator late;   // at its end
  void* block;      // the hook's
};
constinit HookMemory g_hook_memory{};

void* NoteBlock(void*, size_t size) {
  g_hook_memory.block = g_hook_memory.early.malloc(g_hook_memory.early.context, size);
  return g_hook_memory.block;
}
void KeepBlock(void*, void* block) {
  if (block != g_hook_memory.block) g_hook_memory.late.free(g_hook_memory.late.context, block);
}

void AddHookAndNoteItsMemory(void* add_audit_hook, PyAuditHook hook) noexcept {
  HookMemory& memory = g_hook_memory;
  memory.get = reinterpret_cast<void (*)(int, Allocator*)>(dlsym(RTLD_DEFAULT, "PyMem_GetAllocator"));
  memory.set = reinterpret_cast<void (*)(int, Allocator*)>(dlsym(RTLD_DEFAULT, "PyMem_SetAllocator"));
  const bool can_note = memory.get != nullptr && memory.set != nullptr;
  if (can_note) {
    memory.get(kRawDomain, &memory.early);
    Allocator noting = memory.early;
    noting.malloc = &NoteBlock;
    memory.set(kRawDomain, &noting);
  }
  reinterpret_cast<int (*)(PyAuditHook, void*)>(add_audit_hook)(hook, nullptr);
  if (can_note) memory.set(kRawDomain, &memory.early);
}

// Called when the interpreter is about to free its audit hooks, which is among the last things that it does.
void OnClearHooks() noexcept {
  HookMemory& memory = g_hook_memory;
  if (memory.block == nullptr || memory.late.free != nullptr) return;
  memory.get(kRawDomain, &memory.late);
  if (memory.late.free == memory.early.free) return;
  Allocator keeping = memory.late;
  keeping.free = &KeepBlock;
  // malloc and the others keep their context; only our free looks at its own.
  memory.set(kRawDomain, &keeping);
}

// --- Torch's import.

// Called with the GIL held. Attaches if torch's import is complete.
bool AttachIfImported(const PythonApi& python) {
  Ref torch = ImportedModule(python, "torch");
  if (!torch || torch.IsNone()) return false;
  if (torch.Attribute("__spec__").Attribute("_initializing").IsTrue()) return false;
  if (g_state.exchange(State::kDone) != State::kDone) AttachPython(python);
  return true;
}

int Look(void*) {
  g_look_pending.store(false);
  const PythonApi* python = GetPython();
  if (python != nullptr && g_state.load() != State::kDone) AttachIfImported(*python);
  return 0;
}

void RequestLook(const PythonApi& python) noexcept {
  if (g_look_pending.exchange(true)) return;
  if (python.Py_AddPendingCall(&Look, nullptr) != 0) g_look_pending.store(false);
}

void* Watch(void*) {
  for (int i = 0; i < kMaxLooks && g_state.load() == State::kWatching; ++i) {
    const timespec interval{0, kLookIntervalNs};
    nanosleep(&interval, nullptr);
    const PythonApi* python = GetPython();
    if (python == nullptr || python->Py_IsInitialized() == 0) break;
    RequestLook(*python);
  }
  return nullptr;
}

void StartWatching() noexcept {
  g_state.store(State::kWatching);
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);  // the program's handlers run on the program's threads
  pthread_t thread;
  if (pthread_create(&thread, nullptr, &Watch, nullptr) == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

// Returns the folders that the import of an audit event will search: sys.path, or null.
PyObject* SearchPath(const PythonApi& python, PyObject* arguments) {
  constexpr Py_ssize_t kPath = 2;  // module, filename, sys.path, …
  PyObject* path = python.PyTuple_Size(arguments) > kPath ? python.PyTuple_GetItem(arguments, kPath) : nullptr;
  return path != nullptr && Ref::Borrow(python, path).IsInstance(python.PyList_Type) ? path : nullptr;
}

// Triton links its launchers with the driver, and looks for it where the system keeps its libraries, if the
// environment (os.environ, which Python read when it started) does not say where it is.
void TellTriton(const PythonApi& python) {
  constexpr const char* kVariable = "TRITON_LIBCUDA_PATH";
  Ref os(python, python.PyImport_ImportModule("os"));
  Ref name(python, python.PyUnicode_FromString(kVariable));
  Ref folder(python, python.PyUnicode_FromString(VirtualGpuFolder().c_str()));
  if (os && name && folder) os.Attribute("environ").Attribute("setdefault").Call({name.get(), folder.get()});
  DropError(python);
}

// The folder of the torch that will be imported: the first one in the folders of sys.path, unless an importer finds
// it elsewhere.
std::string FolderOnPath(const PythonApi& python, PyObject* search_path) {
  const Py_ssize_t count = search_path != nullptr ? python.PyList_Size(search_path) : 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const char* folder = python.PyUnicode_AsUTF8(python.PyList_GetItem(search_path, i));
    if (folder == nullptr) {
      DropError(python);
      continue;
    }
    std::string package = (*folder != '\0' ? std::string(folder) : ".") + "/torch";
    if (access((package + "/__init__.py").c_str(), F_OK) == 0) return package;
  }
  return {};
}

// That of a torch whose own code already runs: its first statements import Python modules of its package, and only
// then its libraries.
std::string FolderOf(const PythonApi& python, const Ref& torch) {
  Ref path = torch.Attribute("__path__");
  if (!path.IsInstance(python.PyList_Type) || python.PyList_Size(path.get()) == 0) return {};
  return Ref::Borrow(python, python.PyList_GetItem(path.get(), 0)).Text();
}

// A virtual GPU must be in the process before torch's libraries are. `find` returns torch's folder.
template <typename Find>
void OfferVirtualGpuTo(const PythonApi& python, const Find& find) {
  if (GetSettings().estimate.empty()) return;
  try {
    const std::string package = find();
    if (package.empty()) return;
    OfferVirtualGpu(GetSettings(), package + "/lib");
    if (HasVirtualGpu()) TellTriton(python);
  } catch (const std::bad_alloc&) {
  }
}

// Called when an import of torch or of something below it is about to begin. Returns what the hook is to return: -1
// with the exception of a failed import, which the import statement then raises.
int OnTorchImport(const PythonApi& python, PyObject* search_path) {
  PyObject* modules = python.PyImport_GetModuleDict();
  PyObject* torch = modules != nullptr ? python.PyDict_GetItemString(modules, "torch") : nullptr;
  if (torch != nullptr) {
    // Torch's import has begun without an event, or before we came.
    if (!AttachIfImported(python) && g_state.load() == State::kWaiting) {
      OfferVirtualGpuTo(python, [&] { return FolderOf(python, Ref::Borrow(python, torch)); });
      StartWatching();
    }
    return 0;
  }
  State expected = State::kWaiting;
  if (!g_state.compare_exchange_strong(expected, State::kImporting)) return 0;
  OfferVirtualGpuTo(python, [&] { return FolderOnPath(python, search_path); });
  PyObject* module = python.PyImport_ImportModuleLevel("torch", nullptr, nullptr, nullptr, 0);
  if (module == nullptr) {
    g_state.store(State::kWaiting);
    return -1;
  }
  python.Py_DecRef(module);
  g_state.store(State::kDone);
  AttachPython(python);
  return 0;
}

int OnAudit(const char* event, PyObject* arguments, void*) {
  if (event[0] == 'c' && std::strcmp(event, "cpython._PySys_ClearAuditHooks") == 0) {
    // After a Ctrl-C that the program did not catch, Python kills itself with SIGINT next: no exit handler will run.
    FinishProcess("exit");
    OnClearHooks();
  }
  const State state = g_state.load(std::memory_order_relaxed);
  if (state == State::kDone && event[0] == 'c') {
    const bool compiles = std::strcmp(event, "compile") == 0;
    if (!compiles && std::strcmp(event, "code.__new__") != 0) return 0;
    const PythonApi* python = GetPython();
    if (python == nullptr) return 0;
    if (!compiles) OnCodeObject(*python);
    if (compiles && arguments != nullptr) OnPythonCompiles(*python, arguments);
    return 0;
  }
  if (state != State::kWaiting && state != State::kWatching) return 0;
  if (event[0] != 'i' || std::strcmp(event, "import") != 0) return 0;
  const PythonApi* python = GetPython();
  if (python == nullptr) return 0;
  PyObject* item = arguments != nullptr ? python->PyTuple_GetItem(arguments, 0) : nullptr;
  const char* name = item != nullptr ? python->PyUnicode_AsUTF8(item) : nullptr;
  if (name == nullptr) {
    DropError(*python);
    return 0;
  }
  if (state == State::kWatching) {
    AttachIfImported(*python);
    return 0;
  }
  const bool is_torch = std::strncmp(name, "torch", 5) == 0 && (name[5] == '\0' || name[5] == '.');
  return is_torch ? OnTorchImport(*python, SearchPath(*python, arguments)) : 0;
}

// Called on the main thread, with the GIL held.
int LookLate(void*) {
  const PythonApi* python = GetPython();
  if (python == nullptr) return 0;
  if (!AttachIfImported(*python)) {
    if (python->PySys_AddAuditHook(&OnAudit, nullptr) != 0) DropError(*python);
    State closed = State::kClosed;
    g_state.compare_exchange_strong(closed, State::kWaiting);
    if (ImportedModule(*python, "torch")) StartWatching();
  }
  return 0;
}

}  // namespace

void OpenEarlyDoor(void* add_audit_hook) noexcept {
  g_state.store(State::kWaiting);
  AddHookAndNoteItsMemory(add_audit_hook, &OnAudit);
}

void OpenLateDoor() noexcept {
  if (g_state.load() != State::kClosed) return;
  const PythonApi* python = GetPython();
  if (python != nullptr && python->Py_IsInitialized() != 0) python->Py_AddPendingCall(&LookLate, nullptr);
}

const char* TakeRunningPython() {
  const PythonApi* python = GetPython();
  if (python == nullptr || python->Py_IsInitialized() == 0) return "it runs no Python";
  Ref torch = ImportedModule(*python, "torch");
  if (!torch || torch.IsNone()) return "it has not imported torch";
  if (torch.Attribute("__spec__").Attribute("_initializing").IsTrue()) return "it is still importing torch";
  State closed = State::kClosed;
  return g_state.compare_exchange_strong(closed, State::kDone) ? nullptr : "it was started with rfinject";
}

bool DoorIsClosed() noexcept { return g_state.load(std::memory_order_relaxed) == State::kClosed; }

}  // namespace rfinject
