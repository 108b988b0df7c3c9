#include "injector/python/graph_breaks.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "injector/python/python_frames.h"
#include "injector/python/ref.h"

namespace rfinject {
namespace {

// A program that compiles the same lines again and again would fill the trace.
constexpr Py_ssize_t kMostBreaks = 4096;
constexpr size_t kMostOfReason = 240;  // bytes
constexpr size_t kMostOfName = 200;

struct Breaks {
  std::atomic<Recorder*> recorder{nullptr};
  // The rest is of the thread that holds the GIL.
  Py_ssize_t seen = 0;  // of the list
  Py_ssize_t told = 0;  // in all
  PyObject* crossing = nullptr;
  bool busy = false;  // our own code makes code objects
};
constinit Breaks g_breaks;

// The bytes of what the graph that Inductor compiles at the moment gives to the program, without what it keeps for
// the backward; nothing where a size is not a number.
constexpr const char* kCrossing = R"(
def crossing():
    import math
    import sys
    graph = getattr(getattr(sys.modules.get('torch._inductor.virtualized'), 'V', None), 'graph', None)
    if getattr(graph, 'is_backward', True) is not False:
        return ''
    output = next(iter(reversed(graph.module.graph.nodes)))
    results, size = output.args[0], 0
    for node in {results[i] for i in output.meta.get('user_visible_output_idxs', range(len(results)))}:
        if getattr(node, 'op', 'placeholder') == 'placeholder':
            continue
        value = node.meta.get('val')
        shape = getattr(value, 'shape', ())
        if not all(type(extent) is int for extent in shape):
            return ''
        if hasattr(value, 'dtype'):
            size += math.prod(shape) * value.dtype.itemsize
    return str(size)
)";

uint64_t BytesOfGraph(const PythonApi& python) {
  g_breaks.busy = true;
  if (g_breaks.crossing == nullptr) {
    std::string error;
    g_breaks.crossing = RunPython(python, kCrossing, &error).Item("crossing").release();
  }
  // A call that fails gives an empty Ref: another version of Inductor.
  const std::string text = Ref::Borrow(python, g_breaks.crossing).Call().Text();
  g_breaks.busy = false;
  uint64_t bytes = 0;
  for (const char digit : text) bytes = bytes * 10 + static_cast<uint64_t>(digit - '0');
  return bytes;
}

void CutTo(size_t most, std::string* text) {
  if (text->size() <= most) return;
  while (most > 0 && (static_cast<unsigned char>((*text)[most]) & 0xC0) == 0x80) --most;
  text->resize(most);
  *text += "...";
}

// Addresses of objects differ from process to process, and the reason tells breaks apart.
void DropAddresses(std::string* text) {
  constexpr std::string_view kAddress = " at 0x";
  for (size_t at = text->find(kAddress); at != std::string::npos; at = text->find(kAddress, at)) {
    const size_t end = text->find_first_not_of("0123456789abcdefABCDEF", at + kAddress.size());
    text->erase(at, std::min(end, text->size()) - at);
  }
}

// Torch's reason is one line, or, from 2.7 on, a line and paragraphs, of which the first is the explanation. A path
// in it is shown as the trace has paths.
std::string OneLine(const std::string& reason) {
  constexpr std::string_view kExplanation = "\n  Explanation: ";
  std::string line = reason.substr(0, reason.find('\n'));
  if (const size_t at = reason.find(kExplanation); at != std::string::npos) {
    const size_t begin = at + kExplanation.size();
    line += ": " + reason.substr(begin, reason.find('\n', begin) - begin);
  }
  DropAddresses(&line);
  const ProgramFolders folders = FoldersOfProgram();
  std::string shown;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool begins =
        line[i] == '/' && (i == 0 || std::string_view(" '\"(<=`").find(line[i - 1]) != std::string_view::npos);
    if (!begins) {
      shown += line[i];
      continue;
    }
    const size_t end = std::min(line.find_first_of(" '\",)>`", i), line.size());
    shown += ShownPath(std::string_view(line).substr(i, end - i), folders);
    i = end - 1;
  }
  CutTo(kMostOfReason, &shown);
  return shown;
}

// "forward" of "torch_dynamo_resume_in_forward_at_8", which is what Dynamo calls the rest of a function up to 2.6.
std::string FunctionName(std::string name) {
  constexpr std::string_view kResumed = "torch_dynamo_resume_in_";
  if (name.starts_with(kResumed)) {
    name.erase(0, kResumed.size());
    name.resize(std::min(name.rfind("_at_"), name.size()));
  }
  CutTo(kMostOfName, &name);
  return name;
}

// The innermost line of the program, as for launches; else the innermost of all.
void NamePlace(const PythonApi& python, const Ref& stack, trace::GraphBreak* graph_break) {
  if (!stack.IsInstance(python.PyList_Type)) return;
  const ProgramFolders folders = FoldersOfProgram();
  Ref chosen;
  for (Py_ssize_t i = python.PyList_Size(stack.get()); i > 0; --i) {
    Ref frame = Ref::Borrow(python, python.PyList_GetItem(stack.get(), i - 1));
    const bool of_program = OwnerOfFile(frame.Attribute("filename").Text(), folders) == FileOwner::kProgram;
    if (!chosen || of_program) chosen = std::move(frame);
    if (of_program) break;
  }
  if (!chosen) return;
  graph_break->file = ShownPath(chosen.Attribute("filename").Text(), folders);
  CutTo(kMostOfName, &graph_break->file);
  const long long line = chosen.Attribute("lineno").Integer(0);
  graph_break->line = line > 0 && line < UINT32_MAX ? static_cast<uint32_t>(line) : 0;
  graph_break->function = FunctionName(chosen.Attribute("name").Text());
}

// Dynamo's list; empty where Dynamo was not imported. Looks things up in dicts, so that nothing is imported or run.
Ref ListOfBreaks(const PythonApi& python) {
  Ref list = ImportedModule(python, "torch._dynamo.utils").Dict().Item("graph_break_reasons");
  return list.IsInstance(python.PyList_Type) ? std::move(list) : Ref();
}

bool HasNew(const PythonApi& python, const Ref& list) {
  if (!list) return false;
  const Py_ssize_t size = python.PyList_Size(list.get());
  if (size < g_breaks.seen) g_breaks.seen = 0;  // torch._dynamo.reset()
  return size > g_breaks.seen;
}

// `bytes` cross the last one.
void TellNew(const PythonApi& python, const Ref& list, uint64_t bytes) {
  Recorder& recorder = *g_breaks.recorder.load(std::memory_order_relaxed);
  for (const Py_ssize_t size = python.PyList_Size(list.get()); g_breaks.seen < size; ++g_breaks.seen) {
    if (++g_breaks.told > kMostBreaks) {
      recorder.CountDrop("graph breaks");
      continue;
    }
    Ref reason = Ref::Borrow(python, python.PyList_GetItem(list.get(), g_breaks.seen));
    trace::GraphBreak graph_break{.count = 1, .bytes = g_breaks.seen + 1 == size ? bytes : 0};
    graph_break.reason = OneLine(reason.Attribute("reason").Text());
    NamePlace(python, reason.Attribute("user_stack"), &graph_break);
    recorder.Keep(std::move(graph_break));
  }
}

void Read(const PythonApi& python, bool graph_loaded) try {
  if (g_breaks.recorder.load(std::memory_order_acquire) == nullptr || g_breaks.busy) return;
  const Ref list = ListOfBreaks(python);
  if (HasNew(python, list)) TellNew(python, list, graph_loaded ? BytesOfGraph(python) : 0);
} catch (const std::exception&) {
  g_breaks.recorder.load(std::memory_order_relaxed)->CountDrop("graph breaks");
}

}  // namespace

void WatchGraphBreaks(Recorder& recorder) noexcept {
  g_breaks.seen = g_breaks.told = 0;  // another trace, where the process is attached to again
  g_breaks.recorder.store(&recorder, std::memory_order_release);
}

void OnCodeObject(const PythonApi& python) { Read(python, /*graph_loaded=*/false); }
void OnGraphLoaded(const PythonApi& python) { Read(python, /*graph_loaded=*/true); }

}  // namespace rfinject
