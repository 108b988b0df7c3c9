#include "injector/python/python_frames.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <string>
#include <vector>

#include "injector/python/ref.h"
#include "injector/python/type_slots.h"
#include "injector/safe_read.h"

namespace rfinject {
namespace {

// Where a thread's state has its innermost frame, and where a frame has its members; offsets in bytes on 64-bit
// builds with a GIL.
struct FrameLayout {
  int minor;         // of Python 3.minor
  size_t in_thread;  // of the frame, or of what points to it
  int in_indirect;   // in 3.11 and 3.12 the thread points to a _PyCFrame, which has the frame at this offset; -1: it
                     // has none
  size_t code, outer;   // pointers
  size_t instruction;   // of the one that runs
  int bytes_of_number;  // the instruction is an index in units of this many bytes; 0: it is a pointer into the code
  size_t locals;        // an array of pointers, the arguments first
};
// The numbers are those of Include/cpython/pystate.h, frameobject.h and internal/pycore_frame.h of each version.
constexpr FrameLayout kLayouts[] = {
    {8, 24, -1, 32, 24, 104, 1, 360}, {9, 24, -1, 32, 24, 104, 1, 360}, {10, 24, -1, 32, 24, 96, 2, 352},
    {11, 56, 8, 32, 48, 56, 0, 72},   {12, 56, 0, 0, 8, 56, 0, 72},     {13, 72, -1, 0, 8, 56, 0, 72},
    {14, 72, -1, 0, 8, 56, 0, 80},
};
// From Python 3.14 on the lowest bits of a reference hold marks.
constexpr uintptr_t kPointerMarks = 7;
constexpr size_t kObjectType = 8;  // of PyObject: its type

constexpr int kMostFrames = 256;
constexpr size_t kMostSteps = 1024;  // frames, and what the interpreter puts between them

struct Interpreter {
  FrameLayout layout{};
  // Where code objects have the names and, where an instruction is a pointer, their instructions.
  size_t file = 0, function = 0, instructions = 0;
  // Addresses of types.
  uintptr_t code_type = 0, text_type = 0;
  void* (*thread_state)() = nullptr;
  int (*line_of)(PyObject* code, int instruction) = nullptr;
  Py_ssize_t (*length)(PyObject* text) = nullptr;
  uint32_t (*character)(PyObject* text, Py_ssize_t at) = nullptr;
  int (*finalizing)() = nullptr;
};
Interpreter g;
std::atomic<bool> g_ready{false};

struct Folders {
  std::string main, library, torch;
  ProgramFolders views() const { return {main, library, torch}; }
};
Folders* g_folders = nullptr;  // leaked: threads may read it until the very end

struct RawFrame {
  PyObject* code;
  int instruction;  // its place in the code
  uintptr_t address;
  int line() const { return g.line_of(code, instruction); }
};

// Reads memory that may not be there, and returns 0 then. Takes a microsecond.
template <typename T>
T SafeAt(uintptr_t object, size_t offset) {
  T value{};
  return SafeReadValue(object + offset, &value) ? value : T{};
}

enum class Read : uint8_t { kDirectly, kSafely };

// Calls visit(RawFrame) for each frame of Python code of the calling thread, innermost first, until it returns false.
// kSafely is for a layout that may be wrong.
template <Read kRead, typename Visit>
void ForEachFrame(Visit visit) {
  const auto word = [](uintptr_t object, size_t offset) {
    return kRead == Read::kSafely ? SafeAt<uintptr_t>(object, offset) : Load<uintptr_t>(object + offset);
  };
  const auto thread = reinterpret_cast<uintptr_t>(g.thread_state());
  if (thread == 0) return;
  uintptr_t frame = word(thread, g.layout.in_thread);
  if (g.layout.in_indirect >= 0 && frame != 0) frame = word(frame, static_cast<size_t>(g.layout.in_indirect));
  int visited = 0;
  for (size_t step = 0; frame != 0 && visited < kMostFrames && step < kMostSteps; ++step) {
    const uintptr_t code = word(frame, g.layout.code) & ~kPointerMarks;
    // Between calls by C there are frames of the interpreter's own, with None for code.
    if (code != 0 && word(code, kObjectType) == g.code_type) {
      const uintptr_t at = word(frame, g.layout.instruction);
      const int instruction = g.layout.bytes_of_number > 0 ? static_cast<int32_t>(at) * g.layout.bytes_of_number
                                                           : static_cast<int>(at - (code + g.instructions));
      auto* object = reinterpret_cast<PyObject*>(code);
      if (!visit(RawFrame{object, instruction, frame})) return;
      ++visited;
    }
    frame = word(frame, g.layout.outer);
  }
}

// Copies a text of Python's, which does not change: the two functions of the interpreter that are called need no GIL.
void ReadText(PyObject* code, size_t offset, ShortText* text) {
  text->clear();
  const auto address = Load<uintptr_t>(reinterpret_cast<uintptr_t>(code) + offset);
  if (address == 0 || Load<uintptr_t>(address + kObjectType) != g.text_type) return;
  auto* object = reinterpret_cast<PyObject*>(address);
  const Py_ssize_t length = g.length(object);
  constexpr Py_ssize_t kMost = 480;
  for (Py_ssize_t i = std::max<Py_ssize_t>(0, length - kMost); i < length; ++i) text->Append(g.character(object, i));
}

// Returns the function's first argument. The frames must be known to be right, and the GIL held.
Ref FirstArgument(const PythonApi& python, const RawFrame& frame) {
  constexpr long long kVarArgs = 0x04;  // of co_flags: def f(*arguments)
  const Ref code = Ref::Borrow(python, frame.code);
  const bool named = code.Attribute("co_argcount").Integer(0) > 0;
  if (!named && (code.Attribute("co_flags").Integer(0) & kVarArgs) == 0) return {};
  const auto local = Load<uintptr_t>(frame.address + g.layout.locals) & ~kPointerMarks;
  Ref first = Ref::Borrow(python, reinterpret_cast<PyObject*>(local));
  if (first && first.Type().get() == python.PyCell_Type) first = Ref(python, python.PyCell_Get(first.get()));
  if (named || !first) return first;
  if (first.Type().get() != python.PyTuple_Type || python.PyTuple_Size(first.get()) == 0) return {};
  return Ref::Borrow(python, python.PyTuple_GetItem(first.get(), 0));
}

// --- At the beginning, with the GIL held.

// Returns the only place in `code` that holds `value`; 0 where there is none, or more than one.
size_t PlaceIn(PyObject* code, size_t size, PyObject* value) {
  size_t found = 0;
  for (size_t offset = 2 * sizeof(void*); offset + sizeof(void*) <= size; offset += sizeof(void*)) {
    if (Load<uintptr_t>(reinterpret_cast<uintptr_t>(code) + offset) != reinterpret_cast<uintptr_t>(value)) continue;
    if (found != 0) return 0;
    found = offset;
  }
  return found;
}

const char* g_trial = nullptr;  // why the last trial failed; null: it did not
bool g_arguments = false;       // arguments are where this version should have them; lines do not need that
int g_trials = 0;

// Whether FirstArgument() gives `first`, where locals may lie elsewhere.
bool IsFirstArgument(const PythonApi& python, const RawFrame& frame, PyObject* first) {
  constexpr int kCellsApart = 10;  // up to this version what another function uses is not where it was passed
  const uintptr_t local = SafeAt<uintptr_t>(frame.address, g.layout.locals) & ~kPointerMarks;
  if (local == 0) return g.layout.minor <= kCellsApart;
  const auto type = SafeAt<uintptr_t>(local, kObjectType);
  const bool holds = type == reinterpret_cast<uintptr_t>(python.PyCell_Type) ||
                     type == reinterpret_cast<uintptr_t>(python.PyTuple_Type);
  if (!holds && local != reinterpret_cast<uintptr_t>(first)) return false;
  return FirstArgument(python, frame).get() == first;
}

// What Python code is told of the calling thread's frames must be what we read; the innermost function was called
// with `first`.
const char* Compare(const PythonApi& python, PyObject* first) {
  Ref frame = Ref::Borrow(python, python.PyEval_GetFrame());
  Ref code = frame.Attribute("f_code");
  if (!code) return "frames have no code";
  const auto size = code.Type().Attribute("__basicsize__").Integer(0);
  if (size <= 0 || size > 1024) return "code objects have another layout in this Python";
  g.instructions = static_cast<size_t>(size);
  const size_t file = PlaceIn(code.get(), g.instructions, code.Attribute("co_filename").get());
  Ref name = code.Attribute("co_qualname");
  if (!name) name = code.Attribute("co_name");
  const size_t function = PlaceIn(code.get(), g.instructions, name.get());
  if (file == 0 || function == 0 || (g.file != 0 && (g.file != file || g.function != function))) {
    return "code objects have another layout in this Python";
  }
  g.file = file;
  g.function = function;
  bool alike = true;
  int compared = 0;
  ForEachFrame<Read::kSafely>([&](const RawFrame& raw) {
    if (!frame || frame.IsNone()) return false;
    // Frames of the interpreter's own have code from no file, and are hidden from Python code.
    if (frame.Attribute("f_code").get() != raw.code) return true;
    alike = frame.Attribute("f_lineno").Integer(-1) == raw.line();
    if (compared == 0 && !IsFirstArgument(python, raw, first)) g_arguments = false;
    frame = frame.Attribute("f_back");
    ++compared;
    return alike;
  });
  const bool all = !frame || frame.IsNone() || compared == kMostFrames;
  if (!alike || compared == 0 || !all) return "a thread's frames lie elsewhere in this Python";
  return nullptr;
}

const PythonApi* g_frames_python = nullptr;

PyObject* OnTrial(PyObject*, PyObject* first) {
  ++g_trials;
  if (const char* failure = Compare(*g_frames_python, first); failure != nullptr) g_trial = failure;
  return NewNone(*g_frames_python);
}

// The trial has a plain call, a call that comes back through C, a generator's call, and one in the middle of an
// expression of several lines; also an argument that an inner function uses, and a first one of `*arguments`.
constexpr const char* kTrialSource = R"(
def outer():
    def inner(first):

        return probe(first)
    inner(outer)
    list(map(inner, ['0']))
    def generate():
        yield 1
        yield (2,
               inner(generate))
    for _ in generate():
        pass
    def used(first):
        probe(first)
        return lambda: first
    used(inner)
    def several(*all, **named):
        probe(all[0])
    several(used, 0, name=1)
outer()
)";
constexpr int kTrialCalls = 5;

bool TryFrames(const PythonApi& python, const char** why) {
  g_frames_python = &python;
  g_trial = nullptr;
  g_trials = 0;
  g_arguments = true;
  static PyMethodDef method = {"probe", &OnTrial, kMethO, nullptr};
  const Ref probe(python, python.PyCFunction_NewEx(&method, nullptr, nullptr));
  if (!probe) {
    DropError(python);
    *why = "no memory";
    return false;
  }
  // Names of functions are global to what they are defined in.
  std::string error;
  const Ref space = RunPython(python, kTrialSource, &error, {{"probe", probe.get()}});
  if (g_trial == nullptr && (!space || g_trials != kTrialCalls)) g_trial = "Python code to compare with did not run";
  *why = g_trial;
  return g_trial == nullptr;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

// Returns the folder that a module was loaded from; empty where it has no file.
std::string FolderOfModule(const PythonApi& python, const char* name) {
  return FolderOf(ImportedModule(python, name).Dict().Item("__file__").Text());
}

void FindFolders(const PythonApi& python) {
  auto* folders = new Folders;
  folders->library = FolderOfModule(python, "os");
  folders->torch = FolderOfModule(python, "torch");
  folders->main = FolderOfModule(python, "__main__");
  if (folders->main.empty() || folders->main.front() != '/') {
    // Before Python 3.9 __file__ is what was typed; without a script the program's folder is where it was started.
    char here[PATH_MAX];
    if (getcwd(here, sizeof(here)) != nullptr) {
      folders->main = folders->main.empty() ? std::string(here) : std::string(here) + "/" + folders->main;
    }
  }
  g_folders = folders;
}

bool IsBelow(std::string_view path, std::string_view folder) {
  return !folder.empty() && path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

bool Has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

void ShortText::Append(uint32_t c) {
  if (size_ + 4 > text_.size()) return;
  const auto add = [this](uint32_t byte) { text_[size_++] = static_cast<char>(byte); };
  if (c >= 0xD800 && c < 0xE000) c = 0xFFFD;  // half a pair: a byte of a path that was no UTF-8
  if (c < 0x80) {
    add(c);
  } else if (c < 0x800) {
    add(0xC0 | c >> 6);
    add(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    add(0xE0 | c >> 12);
    add(0x80 | (c >> 6 & 0x3F));
    add(0x80 | (c & 0x3F));
  } else {
    add(0xF0 | c >> 18);
    add(0x80 | (c >> 12 & 0x3F));
    add(0x80 | (c >> 6 & 0x3F));
    add(0x80 | (c & 0x3F));
  }
}

ProgramFolders FoldersOfProgram() noexcept {
  return g_ready.load(std::memory_order_acquire) ? g_folders->views() : ProgramFolders();
}

FileOwner OwnerOfFile(std::string_view path, const ProgramFolders& folders) noexcept {
  if (path.empty()) return FileOwner::kMachinery;
  if (path.front() == '<') {
    // These names stand for code that people typed and that is in no file; "<frozen importlib>", "<eval_with_key>.1"
    // and so on do not.
    for (const std::string_view typed : {"<stdin>", "<string>", "<ipython-input-", "<python-input-"}) {
      if (path.starts_with(typed)) return FileOwner::kProgram;
    }
    return FileOwner::kMachinery;
  }
  if (IsBelow(path, folders.torch) || Has(path, "/torchinductor_")) return FileOwner::kMachinery;
  if (Has(path, "/site-packages/") || Has(path, "/dist-packages/")) {
    // Torch brings these packages along.
    for (const std::string_view own : {"-packages/torch/", "-packages/functorch/", "-packages/triton/"}) {
      if (Has(path, own)) return FileOwner::kMachinery;
    }
    return FileOwner::kPackage;
  }
  return IsBelow(path, folders.library) ? FileOwner::kMachinery : FileOwner::kProgram;
}

std::string_view ShownPath(std::string_view path, const ProgramFolders& folders) noexcept {
  if (IsBelow(path, folders.main)) return path.substr(folders.main.size() + 1);
  const size_t last = path.rfind('/');
  if (last == std::string_view::npos || last == 0) return path;
  const size_t before = path.rfind('/', last - 1);
  return before == std::string_view::npos ? path : path.substr(before + 1);
}

bool InitPythonFrames(const PythonApi& python, const char** why) {
  if (g_ready.load(std::memory_order_acquire)) return true;
  if (IsFreeThreaded(python)) {
    *why = "a Python without a GIL";
    return false;
  }
  const std::string_view version = python.Py_GetVersion();
  for (const FrameLayout& layout : kLayouts) {
    const std::string name = "3." + std::to_string(layout.minor) + ".";
    if (version.starts_with(name)) g.layout = layout;
  }
  if (g.layout.minor == 0) {
    *why = "a version of Python whose frames are not known";
    return false;
  }
  g.code_type = reinterpret_cast<uintptr_t>(python.PyCode_Type);
  g.text_type = reinterpret_cast<uintptr_t>(python.PyUnicode_Type);
  g.thread_state = python.PyGILState_GetThisThreadState;
  g.line_of = python.PyCode_Addr2Line;
  g.length = python.PyUnicode_GetLength;
  g.character = python.PyUnicode_ReadChar;
  for (const char* name : {"Py_IsFinalizing", "_Py_IsFinalizing"}) {
    if (g.finalizing == nullptr) g.finalizing = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, name));
  }
  if (g.finalizing == nullptr) {
    *why = "this Python does not say when the interpreter ends";
    return false;
  }
  if (!TryFrames(python, why)) return false;
  FindFolders(python);
  g_ready.store(true, std::memory_order_release);
  return true;
}

bool CallsAreKnown() noexcept { return g_ready.load(std::memory_order_acquire) && g_arguments; }

std::vector<PythonCall> CallsOfThread(const PythonApi& python, size_t most) {
  std::vector<PythonCall> calls;
  if (!CallsAreKnown()) return calls;
  ForEachFrame<Read::kDirectly>([&](const RawFrame& frame) {
    if (calls.size() == most) return false;
    calls.push_back({Ref::Borrow(python, frame.code), FirstArgument(python, frame)});
    return true;
  });
  return calls;
}

bool FileName::Is(std::string_view path) const noexcept {
  if (path.size() != length_) return false;
  for (size_t i = length_; i > 0; --i) {
    if (character_(text_, static_cast<Py_ssize_t>(i - 1)) != static_cast<unsigned char>(path[i - 1])) return false;
  }
  return true;
}

uint32_t LineInFile(size_t most, bool (*is_wanted)(void* context, const FileName& file), void* context) noexcept {
  if (!g_ready.load(std::memory_order_acquire) || g.finalizing() != 0) return 0;
  uint32_t line = 0;
  ForEachFrame<Read::kDirectly>([&](const RawFrame& frame) {
    const auto address = Load<uintptr_t>(reinterpret_cast<uintptr_t>(frame.code) + g.file);
    if (address != 0 && Load<uintptr_t>(address + kObjectType) == g.text_type) {
      auto* text = reinterpret_cast<PyObject*>(address);
      if (is_wanted(context, FileName(static_cast<size_t>(g.length(text)), g.character, text))) {
        line = static_cast<uint32_t>(std::max(0, frame.line()));
        return false;
      }
    }
    return --most > 0;
  });
  return line;
}

bool ReadProgramLine(ProgramLine* line) noexcept {
  // An interpreter that ends frees the states of threads that are still there.
  if (!g_ready.load(std::memory_order_acquire) || g.finalizing() != 0) return false;
  const ProgramFolders folders = g_folders->views();
  RawFrame package{};
  RawFrame own{};
  ShortText path;
  ForEachFrame<Read::kDirectly>([&](const RawFrame& frame) {
    ReadText(frame.code, g.file, &path);
    switch (OwnerOfFile(path.view(), folders)) {
      case FileOwner::kProgram:
        own = frame;
        return false;
      case FileOwner::kPackage:
        if (package.code == nullptr) package = frame;
        break;
      case FileOwner::kMachinery:
        break;
    }
    return true;
  });
  const RawFrame& found = own.code != nullptr ? own : package;
  if (found.code == nullptr) return false;
  const int at = found.line();
  if (at <= 0) return false;
  ReadText(found.code, g.file, &path);
  line->file.Assign(ShownPath(path.view(), folders));
  ReadText(found.code, g.function, &line->function);
  line->line = static_cast<uint32_t>(at);
  return true;
}

}  // namespace rfinject
