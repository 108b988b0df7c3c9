#include "injector/python/compiled_code.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/compiled_code.h"
#include "collector/site.h"
#include "injector/python/graph_breaks.h"
#include "injector/python/modules.h"
#include "injector/python/parameter_layers.h"
#include "injector/python/python_frames.h"
#include "injector/python/ref.h"
#include "operators/generated_code.h"
#include "operators/op_call.h"

namespace rfinject {
namespace {

// A program that compiles more modules than this has no layers in the later ones.
constexpr size_t kMostModules = 4096;
// A call's code lies this many frames above the launch at most: Triton's and Inductor's launchers are in between, and
// what times a kernel in the first step.
constexpr size_t kMostFrames = 32;
// A row of more layers than this names the first of them only.
constexpr size_t kMostLayers = 4;

struct Call {
  // Source::DefineCompiledWork; 0: an operator. It is another one in another attachment.
  std::atomic<uint32_t> work{0};
  std::vector<GeneratedLayer> layers;
  // The layer in which the module runs, in the upper half, and that of this call, in the lower one; as many as a
  // network has blocks that share one module. Threads that launch fill the slots from the first on; two that fill one
  // at a time write the same or another pair, each of which is right.
  mutable std::array<std::atomic<uint64_t>, 64> resolved{};
};

struct Module {
  std::string path;
  uint32_t attachment = 0;      // in which it was read last
  std::vector<uint32_t> lines;  // of calls, ascending
  std::vector<Call> calls;
};

// Only the thread that holds the GIL adds modules; any thread reads them. They are never freed: threads may be in
// them until the very end.
std::array<std::atomic<Module*>, kMostModules> g_modules{};
constinit std::atomic<size_t> g_count{0};

struct Globals {
  Recorder* recorder = nullptr;
  Source* source = nullptr;
  PyObject* describe = nullptr;  // the function of kDescribe
  uint32_t attachment = 0;
  bool busy = false;  // our own code is being compiled
};
Globals g;
constinit std::atomic<bool> g_watching{false};

// What operators/generated_code.h takes as `graph`. All that it reads are plain attributes of Inductor's and
// torch.fx's objects. A size that is no int (a SymInt) is not looked at any further, because torch would guard it.
constexpr const char* kDescribe = R"(
def describe():
    import sys
    import re
    virtualized = sys.modules.get('torch._inductor.virtualized')
    scheduler = getattr(getattr(getattr(virtualized, 'V', None), 'graph', None), 'scheduler', None)
    short = {'float32': 'f32', 'float16': 'f16', 'bfloat16': 'bf16', 'float64': 'f64', 'bool': 'b8', 'int64': 'i64',
             'int32': 'i32', 'int16': 'i16', 'int8': 'i8', 'uint8': 'u8', 'complex64': 'c64', 'complex128': 'c128'}
    lines, places, done = [], {}, set()

    def place(node):
        if node.graph not in places:
            places[node.graph] = {other: i for i, other in enumerate(node.graph.nodes)}
            for other in node.graph.nodes:
                tell(other)
        return places[node.graph].get(node, 0)

    def tell(node):
        value = node.meta.get('val')
        sizes = tuple(getattr(value, 'shape', ('?',)))
        type = short.get(str(getattr(value, 'dtype', '')).rpartition('.')[2])
        text = '%' + node.name
        if type and all(isinstance(size, int) for size in sizes):
            text += ' : Tensor "%s%s"' % (type, list(sizes))
        if node.op == 'call_function' and hasattr(node.target, '_schema'):
            text += ' = call_function[target=torch.ops.%s](args = %s, kwargs = %s)' % (
                node.target, form(node.args), form(node.kwargs))
        lines.append(text.replace('\n', ' ').replace('\t', ' '))

    def form(value):
        if isinstance(value, (list, tuple)):
            return '[%s]' % ', '.join(map(form, value)) if isinstance(value, list) else '(%s,)' % ', '.join(map(form, value))
        if isinstance(value, dict):
            return '{%s}' % ', '.join('%s: %s' % (key, form(part)) for key, part in value.items())
        if hasattr(value, 'meta'):
            return '%' + value.name
        return str(value) if value is None or type(value) in (bool, int, float) else '?'

    # Autograd adds gradients up between its nodes: up to torch 2.9 the sum has the module of the node that ran before.
    # What a module writes into its buffers is copied at the graph's end, where 2.9 names the module that ran last.
    def modules(node):
        if str(node.target) == 'aten.copy_.default' and hasattr(node.args[1], 'meta'):
            node = node.args[1]
        if 'Gradient addition node' in (node.meta.get('stack_trace') or ''):
            return []
        return list((node.meta.get('fwd_nn_module_stack') or node.meta.get('nn_module_stack') or {}).values())

    def layer(node):
        stack = modules(node)
        if not stack or node.name in done:
            return
        done.add(node.name)
        path, kind = stack[-1][:2]
        # The module is what its forward calls self, or the object of a forward of torch's own, as nn.Sequential's is.
        root = re.match(r"[LG]\['[^']*'\](\.__self__)?", path)
        first = root.group() if root else stack[0][0]
        path = path[len(first):] if path.startswith(first) else ''
        path = re.sub(r"\._modules\['([^']*)'\]|\['([^']*)'\]|\[(\d+)\]", r'.\1\2\3', path).strip('.')
        name = getattr(kind, '__name__', None) or str(kind).rpartition('.')[2]
        lines.append('\t'.join(('layer', node.name, path, name)))

    def source(node):
        origin = node.meta.get('from_node')
        if origin:
            return getattr(origin[0], 'name', None) or origin[0][0]
        return node.name if node.meta.get('partitioner_tag') == 'is_backward' else None

    def origins(parts):
        nodes = {}
        for part in parts:
            for node in getattr(getattr(part, 'node', None), 'origins', ()):
                if node.op == 'call_function':
                    nodes[node] = place(node)
        return sorted(nodes, key=nodes.get)

    def users(parts):
        found = []
        for part in parts:
            for output in part.get_outputs():
                for use in output.users:
                    if hasattr(use.node, 'get_nodes'):
                        found += main(use.node.get_nodes())
        return found

    def nearest(nodes, links):
        found, todo, seen = [], list(nodes), set()
        for node in todo:
            for other in getattr(node, links):
                if other not in seen:
                    seen.add(other)
                    (found if modules(other) else todo).append(other)
        return sorted(found, key=place)

    # Passes of Inductor's make nodes without modules: seeds for all random numbers, products that they pad. Nodes of the
    # compiled module's own forward have none either, but a line of the program.
    def around(nodes):
        if any(node.meta.get('stack_trace') for node in nodes):
            return []
        return nearest(nodes, 'users') or nearest(nodes, 'all_input_nodes')

    def main(parts):
        only = [getattr(getattr(part, 'node', None), 'origin_node', None) for part in parts]
        return only if None not in only else origins(parts)

    def whole(sizes):
        return all(isinstance(size, int) or getattr(size, 'is_Integer', False) for size in sizes)

    for name, buffer in dict(getattr(virtualized.V.graph, 'name_to_buffer', None) or {}).items() if scheduler else ():
        layout = getattr(buffer, 'layout', None)
        sizes, strides = (tuple(getattr(layout, of, None) or ()) for of in ('size', 'stride'))
        if sizes and len(sizes) == len(strides) and whole(sizes) and whole(strides):
            lines.append('\t'.join(('buffer', name, '(%s, )' % ', '.join(map(str, sizes)),
                                    '(%s, )' % ', '.join(map(str, strides)))))
    kernels = [kernel for kernel in getattr(scheduler, 'nodes', ()) if 'Nop' not in type(kernel).__name__]
    origins_of = [origins(kernel.get_nodes()) for kernel in kernels]
    told = set().union(*origins_of)

    # Up to torch 2.6 a kernel's origins lack what stands before a view; no other kernel computes it.
    def with_inlined(nodes):
        found, seen = list(nodes), set(nodes)
        for node in found:
            for other in node.all_input_nodes:
                if other.op == 'call_function' and other not in told and other not in seen:
                    seen.add(other)
                    found.append(other)
        return sorted(found, key=place)

    for kernel, all_nodes in zip(kernels, origins_of):
        parts = kernel.get_nodes()
        if type(getattr(kernel, 'node', None)).__name__ == 'MultiOutput':
            continue  # one of an operator's results: no call
        extern = 'Extern' in type(kernel).__name__
        nodes = main(parts) if extern else with_inlined(all_nodes)
        later = [] if any(map(modules, all_nodes)) else around(all_nodes) if all_nodes else users(parts)
        for node in nodes + later:
            place(node)
            layer(node)
        names = [name for part in parts for name in part.get_buffer_names()]
        # What writes into a buffer has a name of its own, which the code does not say.
        names += [name for part in parts for output in getattr(part, 'get_outputs', list)()
                  for name in getattr(output, 'get_mutations', list)() if name.startswith('buf')]
        lines.append('\t'.join((
            'kernel', 'extern' if extern else 'triton',
            ','.join(sorted({name for name in map(source, all_nodes) if name})),
            ','.join(node.name for node in nodes), ','.join(names), ','.join(node.name for node in later))))
    return '\n'.join(lines)
)";

// Returns what Inductor's objects say of the graph that it compiles at the moment; empty where it compiles none.
std::string DescribeGraph(const PythonApi& python) {
  if (g.describe == nullptr) {
    std::string error;
    g.describe = RunPython(python, kDescribe, &error).Item("describe").release();
    if (g.describe == nullptr) return {};
  }
  // A call that fails gives an empty Ref: another version of Inductor, whose kernels then have no layers.
  return Ref::Borrow(python, g.describe).Call().Text();
}

uint32_t DefineWork(const GeneratedCall& call) {
  std::vector<OpCall> nodes;
  nodes.reserve(call.nodes.size());
  for (const FxCall& node : call.nodes) nodes.push_back(node.call());
  return g.source->DefineCompiledWork({.kernel = call.kernel,
                                       .nodes = nodes,
                                       .bytes_known = call.bytes_known,
                                       .bytes = call.bytes,
                                       .written = call.written,
                                       .why_no_flop = call.why_no_flop,
                                       .mask = &call.mask});
}

// "layer1.0.bn1 + layer1.0.relu", below the path of the layer in which the module runs.
std::string JoinedPath(const std::string& around, const std::vector<GeneratedLayer>& layers) {
  std::string joined;
  for (size_t i = 0; i < std::min(layers.size(), kMostLayers); ++i) {
    std::string path = around;
    if (!path.empty() && !layers[i].path.empty()) path += '.';
    path += layers[i].path;
    // The root's own path is empty; within a list it needs a name.
    if (path.empty() && layers.size() > 1) path = layers[i].class_name;
    if (!joined.empty()) joined += " + ";
    joined += path;
  }
  if (layers.size() > kMostLayers) joined += " + " + std::to_string(layers.size() - kMostLayers) + " more";
  return joined;
}

// The layer of a call whose module runs in `around`; `around` where that says no more.
uint32_t Resolve(const Call& call, uint32_t around) {
  if (around == 0 || call.layers.empty()) return around;
  const auto pair = static_cast<uint64_t>(around) << 32;
  for (const auto& slot : call.resolved) {
    const uint64_t known = slot.load(std::memory_order_relaxed);
    if (known >> 32 == around) return static_cast<uint32_t>(known);
    if (known == 0) break;
  }
  LayerDefinition definition;
  if (!g.recorder->FindLayer(around, &definition)) return around;
  LayerDefinition layer;
  layer.model = definition.model;
  layer.path = JoinedPath(definition.path, call.layers);
  layer.parent = around;
  layer.training = definition.training;
  for (size_t i = 0; i < std::min(call.layers.size(), kMostLayers); ++i) {
    (layer.class_name += i == 0 ? "" : " + ") += call.layers[i].class_name;
  }
  uint32_t id = layer.path == definition.path ? around : g.recorder->DefineLayer(layer);
  if (id == 0) id = around;
  for (auto& slot : call.resolved) {
    uint64_t empty = 0;
    if (slot.compare_exchange_strong(empty, pair | id, std::memory_order_relaxed)) break;
  }
  return id;
}

// The module that was added last of those for which `is` is true; null: none.
template <typename Predicate>
Module* FindModule(Predicate is) {
  for (size_t i = g_count.load(std::memory_order_acquire); i > 0; --i) {
    Module* const one = g_modules[i - 1].load(std::memory_order_relaxed);
    if (is(*one)) return one;
  }
  return nullptr;
}

CompiledPlace PlaceOfThread(uint32_t layer) noexcept try {
  const Module* found = nullptr;
  const auto is_generated = [](void* module, const FileName& file) {
    const Module* const one = FindModule([&](const Module& known) { return file.Is(known.path); });
    if (one != nullptr) *static_cast<const Module**>(module) = one;
    return one != nullptr;
  };
  const uint32_t line = LineInFile(kMostFrames, is_generated, static_cast<void*>(&found));
  if (line == 0) return {.work = 0, .layer = layer};
  const auto at = std::ranges::lower_bound(found->lines, line);
  if (at == found->lines.end() || *at != line) return {.work = 0, .layer = layer};
  const Call& call = found->calls[static_cast<size_t>(at - found->lines.begin())];
  NoteCompiledLayer(layer);
  return {.work = call.work.load(std::memory_order_relaxed), .layer = Resolve(call, layer)};
} catch (const std::exception&) {
  g.recorder->CountDrop("layers of compiled code");
  return {.work = 0, .layer = layer};
}

void DefineWorks(const std::vector<GeneratedCall>& calls, Module* module) {
  module->attachment = g.attachment;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (!calls[i].kernel.empty()) module->calls[i].work.store(DefineWork(calls[i]), std::memory_order_relaxed);
  }
}

void Load(const PythonApi& python, std::string_view source, const std::string& path) {
  const size_t index = g_count.load(std::memory_order_relaxed);
  if (index == kMostModules) return g.recorder->CountDrop("modules of compiled code");
  const std::string graph = DescribeGraph(python);
  Module* const known = FindModule([&](const Module& one) { return one.path == path; });
  // Code that comes out of Inductor's cache again says less than when it was made in this process.
  if (graph.empty() && known != nullptr && known->attachment == g.attachment) return;
  const std::vector<GeneratedCall> calls = ReadGeneratedCode(source, graph);
  std::vector<uint32_t> lines;
  for (const GeneratedCall& call : calls) lines.push_back(call.line);
  if (known != nullptr && known->attachment != g.attachment && known->lines == lines) {
    DefineWorks(calls, known);
    return;
  }
  TellParameterLayers();
  auto* module = new Module;
  module->path = path;
  module->lines = std::move(lines);
  module->calls = std::vector<Call>(calls.size());
  for (size_t i = 0; i < calls.size(); ++i) module->calls[i].layers = calls[i].layers;
  DefineWorks(calls, module);
  g_modules[index].store(module, std::memory_order_relaxed);
  g_count.store(index + 1, std::memory_order_release);
  g_compiled_place.store(&PlaceOfThread, std::memory_order_release);
}

}  // namespace

void WatchCompiledCode(Recorder& recorder, Source& source) noexcept {
  g.recorder = &recorder;
  g.source = &source;
  ++g.attachment;
  // What is known of modules is of the former trace and its source.
  for (size_t i = 0; i < g_count.load(std::memory_order_relaxed); ++i) {
    for (Call& call : g_modules[i].load(std::memory_order_relaxed)->calls) {
      call.work.store(0, std::memory_order_relaxed);
      for (auto& slot : call.resolved) slot.store(0, std::memory_order_relaxed);
    }
  }
  g_watching.store(source.wants_compiled_code(), std::memory_order_release);
}

bool ReadCompiledModule(const PythonApi& python, std::string_view source, const std::string& path) {
  if (!g_watching.load(std::memory_order_acquire) || !IsGeneratedCode(source)) return false;
  g.busy = true;
  try {
    Load(python, source, path);
  } catch (const std::exception&) {
    g.recorder->CountDrop("modules of compiled code");
  }
  g.busy = false;
  return true;
}

void NoteStepCompiles() noexcept {
  // What is validated is in no step.
  if (CurrentSite().phase != Phase::kEval) g.recorder->NoteCompilation();
}

void OnPythonCompiles(const PythonApi& python, PyObject* arguments) try {
  if (!g_watching.load(std::memory_order_acquire) || g.busy || python.PyTuple_Size(arguments) < 2) return;
  Ref source = Ref::Borrow(python, python.PyTuple_GetItem(arguments, 0));
  if (source.Type().Attribute("__name__").Text() == "bytes") source = source.Attribute("decode").Call();
  if (!source.IsInstance(python.PyUnicode_Type)) return;
  const char* text = python.PyUnicode_AsUTF8(source.get());
  if (text == nullptr) return DropError(python);
  if (!IsGeneratedCode(text)) return;
  NoteStepCompiles();
  OnGraphLoaded(python);
  const Ref path = Ref::Borrow(python, python.PyTuple_GetItem(arguments, 1));
  if (path.IsInstance(python.PyUnicode_Type)) ReadCompiledModule(python, text, path.Text());
} catch (const std::exception&) {
  // There was no memory for a text of the module's.
}

}  // namespace rfinject
