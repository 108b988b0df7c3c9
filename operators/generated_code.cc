#include "operators/generated_code.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "operators/operands.h"
#include "operators/python_text.h"

namespace rfinject {
namespace {

using estimate::SaturatingAdd;
using estimate::SaturatingMultiply;
using python_text::Bracketed;
using python_text::CountWord;
using python_text::NameAt;
using python_text::ParseNumber;
using python_text::TakePart;
using python_text::Trim;

constexpr std::string_view kCompiler = "AsyncCompile()";
constexpr std::string_view kDefinition = " = async_compile.triton(";
constexpr std::string_view kSources = "Source Nodes: [";

// Splits at `separator`; an empty text has no parts.
std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; !text.empty() && at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// The names of a comment "Source Nodes: [b, a]", sorted, as "a,b"; nothing where it is another line.
std::optional<std::string> SourcesOf(std::string_view line) {
  const size_t at = line.find(kSources);
  if (!line.starts_with('#') || at == std::string_view::npos) return std::nullopt;
  std::string_view list = Bracketed(line.substr(at + kSources.size() - 1));
  std::set<std::string_view> names;
  while (!Trim(list).empty()) names.insert(TakePart(&list));
  std::string joined;
  for (const std::string_view name : names) (joined += joined.empty() ? "" : ",") += name;
  return joined;
}

// Whether each name of the list "a,b" is one of `all`, another such list.
bool AllAmong(std::string_view names, std::string_view all) {
  const std::vector<std::string_view> known = Split(all, ',');
  return std::ranges::all_of(Split(names, ','),
                             [&](auto name) { return std::ranges::find(known, name) != known.end(); });
}

// Bytes of an element that a pointer of Triton's type points to ("*fp32"); 0: it is no pointer, or not known.
uint64_t ElementSize(std::string_view type) {
  if (!type.starts_with('*')) return 0;
  type.remove_prefix(1);
  if (type.starts_with("fp8") || type == "i1" || type == "i8" || type == "u8") return 1;
  if (type == "fp16" || type == "bf16" || type == "i16" || type == "u16") return 2;
  if (type == "fp32" || type == "i32" || type == "u32") return 4;
  return type == "fp64" || type == "i64" || type == "u64" ? 8 : 0;
}

struct Parameter {
  std::string_view name;
  uint64_t element_size = 0;
  size_t loads = 0, stores = 0;  // places in the kernel's code
};

struct Kernel {
  std::string_view name;            // that it is launched by; a kernel of the program's own has another variable
  std::vector<Parameter> pointers;  // the first of its parameters
  std::vector<std::string_view> scalars;  // those behind them: sizes of its space, and offsets of random numbers
  std::vector<std::string_view> nodes;    // of the comment in front of it
  bool users = false;                     // a kernel of the program's own
  bool is_template = false;               // of Inductor's, by hand
  bool by_elements = false;               // each load and store in its code runs once for each element of its space
  uint32_t first_line = 0;                // of the first call of it; 0: there was none yet
};

constexpr auto kNowhere = std::string_view::npos;

// Reads a kernel's source text, which is a string in the module.
Kernel ReadKernel(std::string_view name, std::string_view body) {
  Kernel kernel;
  kernel.users = body.find("user_autotune") != std::string_view::npos;
  kernel.is_template = body.find("triton_heuristics.template") != std::string_view::npos;
  kernel.by_elements = !kernel.users && !kernel.is_template &&
                       body.find("combo_grid_meta") == std::string_view::npos &&
                       body.find("triton_heuristics.foreach") == std::string_view::npos;
  const size_t def = body.find("def " + std::string(name) + "(");
  const size_t meta = body.find("'signature': {");
  if (def == std::string_view::npos || meta == std::string_view::npos) return kernel;
  std::map<std::string_view, std::string_view> types;  // by name or, in older versions, by number
  std::string_view signature = Bracketed(body.substr(meta + 13));
  while (!Trim(signature).empty()) {
    const std::string_view part = TakePart(&signature);
    const size_t colon = part.find(": '");
    if (colon == std::string_view::npos) continue;
    std::string_view key = part.substr(0, colon);
    if (key.starts_with('\'') && key.size() > 2) key = key.substr(1, key.size() - 2);
    types[key] = part.substr(colon + 3, part.size() - colon - 4);
  }
  std::string_view parameters = Bracketed(body.substr(def + 4 + name.size()));
  const std::string_view code = body.substr(def);
  for (size_t i = 0; !Trim(parameters).empty(); ++i) {
    const std::string_view part = TakePart(&parameters);
    Parameter parameter{.name = NameAt(part)};
    auto type = types.find(parameter.name);
    if (type == types.end()) type = types.find(std::to_string(i));
    if (kernel.scalars.empty() && type != types.end()) parameter.element_size = ElementSize(type->second);
    if (parameter.element_size == 0) {
      if (part.find("tl.constexpr") != std::string_view::npos) break;
      kernel.scalars.push_back(parameter.name);
      continue;
    }
    parameter.loads =
        CountWord(code, "tl.load(", parameter.name) + CountWord(code, "tl.make_block_ptr(", parameter.name);
    parameter.stores = CountWord(code, "tl.store(", parameter.name);
    const size_t atomics = CountWord(code, "tl.atomic_add(", parameter.name);
    parameter.loads += atomics;
    parameter.stores += atomics;
    kernel.pointers.push_back(parameter);
  }
  return kernel;
}

// Which pointers a kernel stores through; all of them where its code does not say. The templates of flex_attention
// read the blocks of a mask.
uint64_t Written(const Kernel& kernel) {
  if (kernel.pointers.empty() || kernel.pointers.size() > 64) return UINT64_MAX;
  uint64_t written = kernel.by_elements ? 0 : UINT64_MAX;
  for (size_t i = 0; i < kernel.pointers.size(); ++i) {
    const Parameter& parameter = kernel.pointers[i];
    if (!kernel.by_elements) {
      const bool of_mask = parameter.name.ends_with("_NUM_BLKS") || parameter.name.ends_with("KV_IDX");
      if (of_mask) written &= ~(uint64_t{1} << i);
      continue;
    }
    const bool neither = parameter.loads == 0 && parameter.stores == 0;
    if (parameter.stores != 0 || neither) written |= uint64_t{1} << i;
  }
  return written;
}

// Inductor names the parameters of its templates (torch/_inductor/kernel/flex). `elements_of` says how many elements
// a buffer of the module has.
template <typename ElementsOf>
MaskBlocks MaskOf(const Kernel& kernel, std::string_view arguments, const ElementsOf& elements_of) {
  MaskBlocks mask;
  uint64_t in_part = 0, in_full = 0, indices = 0;
  for (size_t i = 0; i < kernel.pointers.size(); ++i) {
    const std::string_view name = kernel.pointers[i].name;
    const uint64_t elements = elements_of(TakePart(&arguments)).value_or(0);
    const auto note = [&](size_t which, uint64_t* count) {
      mask.counts[which] = static_cast<int>(i);
      *count = elements;
    };
    if (name == "arg_KV_NUM_BLKS") note(0, &in_part);
    if (name == "arg_FULL_KV_NUM_BLKS") note(1, &in_full);
    if (name == "arg_KV_IDX") indices = elements;
  }
  if (in_part == 0 || indices <= 1) return {};
  if (in_full != in_part) mask.counts[1] = -1;  // an empty one, where the program does not tell them apart
  mask.rows = in_part;
  mask.blocks = indices;
  return mask;
}

// The elements that a tensor of "(8, 64)" and "(64, 1)" has in memory; nothing where a size is no number.
std::optional<uint64_t> Elements(std::string_view sizes, std::string_view strides) {
  uint64_t elements = 1;
  sizes = Bracketed(sizes);
  strides = Bracketed(strides);
  while (!Trim(sizes).empty()) {
    uint64_t size = 0, stride = 1;
    const std::string_view part = TakePart(&sizes);
    if (part.empty()) continue;
    if (!ParseNumber(part, &size)) return std::nullopt;
    if (!Trim(strides).empty() && !ParseNumber(TakePart(&strides), &stride)) return std::nullopt;
    if (stride != 0) elements = SaturatingMultiply(elements, size);
  }
  return elements;
}

// What Inductor's own objects said of a kernel.
struct Scheduled {
  bool is_extern = false, used = false;
  std::string_view sources;
  std::vector<std::string_view> nodes, buffers, users;
};

class Reader {
 public:
  Reader(std::string_view source, std::string_view graph) : lines_(Split(source, '\n')) {
    for (const std::string_view line : Split(graph, '\n')) ReadGraphLine(line);
  }

  std::vector<GeneratedCall> Read() {
    // The shapes of what the module is given stand in a function behind the one that launches.
    for (const std::string_view line : lines_) {
      if (line.find(" = rand_strided(") != std::string_view::npos) ReadBuffer(Trim(line));
    }
    std::string sources;
    bool in_call = false;
    for (size_t i = 0; i < lines_.size(); ++i) {
      const std::string_view line = Trim(lines_[i]);
      if (line.starts_with("def ")) in_call = line.starts_with("def call(") || line.starts_with("def partition_");
      if (const auto names = SourcesOf(line)) {
        sources = *names;
        fragment_.clear();
      } else if (line.starts_with("#   %")) {
        ReadFragment(line.substr(4));
      } else if (line.find(kDefinition) != std::string_view::npos) {
        i = ReadDefinition(line, i);
        fragment_.clear();
      } else if (in_call && ReadCall(line, static_cast<uint32_t>(i + 1), sources)) {
        sources.clear();
      } else if (in_call) {
        ReadBuffer(line);
      }
    }
    return std::move(calls_);
  }

 private:
  void ReadGraphLine(std::string_view line) {
    if (line.starts_with('%')) return nodes_.Read(line);
    const auto fields = Split(line, '\t');
    const auto field = [&](size_t i) { return i < fields.size() ? fields[i] : std::string_view(); };
    if (field(0) == "layer") layers_[field(1)] = {std::string(field(2)), std::string(field(3))};
    if (field(0) == "buffer") {
      if (const auto elements = Elements(field(2), field(3))) results_[field(1)] = *elements;
    }
    if (field(0) != "kernel") return;
    scheduled_.push_back({.is_extern = field(1) == "extern",
                          .sources = field(2),
                          .nodes = Split(field(3), ','),
                          .buffers = Split(field(4), ','),
                          .users = Split(field(5), ',')});
  }

  void ReadFragment(std::string_view line) {
    nodes_.Read(line);
    if (line.find(" = call_function[") != std::string_view::npos) fragment_.push_back(NameAt(line.substr(1)));
  }

  // Returns the last line of the definition that begins on line `i`.
  size_t ReadDefinition(std::string_view line, size_t i) {
    const std::string_view variable = NameAt(line);
    std::string_view name = line.substr(line.find(kDefinition) + kDefinition.size());
    name = NameAt(name.substr(std::min<size_t>(1, name.size())));  // behind a quotation mark
    const char* const begin = line.data();
    size_t last = i;
    while (last + 1 < lines_.size() && !lines_[last].starts_with("''', device_str=")) ++last;
    const char* const end = lines_[last].data();
    if (end <= begin) return i;
    Kernel kernel = ReadKernel(name, std::string_view(begin, static_cast<size_t>(end - begin)));
    kernel.name = name;
    kernel.nodes = fragment_;
    kernels_[variable] = std::move(kernel);
    return last;
  }

  // Reads a line that makes a buffer, or says how large one is.
  void ReadBuffer(std::string_view line) {
    const auto note = [this](std::string_view name, std::string_view sizes, std::string_view strides) {
      if (const auto elements = Elements(sizes, strides)) {
        buffers_[name] = *elements;
      } else {
        buffers_.erase(name);
      }
    };
    if (line.starts_with("assert_size_stride_grouped(")) {
      std::string_view list = Bracketed(line.substr(26));
      std::string_view names = Bracketed(TakePart(&list)), sizes = Bracketed(TakePart(&list));
      std::string_view strides = Bracketed(TakePart(&list));
      while (!Trim(names).empty()) {
        const std::string_view name = TakePart(&names), size = TakePart(&sizes);
        if (!name.empty()) note(name, size, TakePart(&strides));
      }
      return;
    }
    if (line.starts_with("assert_size_stride(") || line.starts_with("assert_tensor_metadata(")) {
      std::string_view list = Bracketed(line.substr(line.find('(')));
      const std::string_view name = TakePart(&list), sizes = TakePart(&list);
      return note(name, sizes, TakePart(&list));
    }
    const std::string_view name = NameAt(line);
    if (name.empty() || !line.substr(name.size()).starts_with(" = ")) return;
    const std::string_view value = line.substr(name.size() + 3);
    const std::string_view function = NameAt(value, true);
    if (function.starts_with("empty_strided") || function == "rand_strided") {
      std::string_view list = Bracketed(value.substr(function.size()));
      const std::string_view sizes = TakePart(&list);
      note(name, sizes, TakePart(&list));
    } else if (const auto elements = ElementsOf(value.substr(0, value.find(';')))) {
      buffers_[name] = *elements;
    }
  }

  // The elements of what an expression stands for: a buffer, or a part of one under another shape.
  std::optional<uint64_t> ElementsOf(std::string_view expression) const {
    expression = Trim(expression);
    constexpr std::string_view kView = "reinterpret_tensor(";
    if (expression.starts_with(kView)) {
      std::string_view list = Bracketed(expression.substr(kView.size() - 1));
      TakePart(&list);
      const std::string_view sizes = TakePart(&list);
      return Elements(sizes, TakePart(&list));
    }
    const auto known = buffers_.find(expression);
    if (known != buffers_.end()) return known->second;
    const auto result = results_.find(expression);
    return result != results_.end() ? std::optional(result->second) : std::nullopt;
  }

  // Reads a line that calls a kernel or an operator; returns whether it is one.
  bool ReadCall(std::string_view line, uint32_t number, const std::string& sources) {
    if (line.starts_with('#') || line.starts_with("assert") || line.starts_with("del ")) return false;
    GeneratedCall call;
    call.line = number;
    const auto kernel = kernels_.find(NameAt(line));
    constexpr std::string_view kRun = ".run(";
    if (kernel != kernels_.end() && line.substr(kernel->first.size()).starts_with(kRun)) {
      call.kernel = kernel->second.name;
      call.written = Written(kernel->second);
      const std::string_view arguments = Bracketed(line.substr(kernel->first.size() + kRun.size() - 1));
      call.mask = MaskOf(kernel->second, arguments, [this](std::string_view name) { return ElementsOf(name); });
      CountBytes(kernel->second, arguments, &call);
      Attribute(FindScheduled(line, sources, false), &kernel->second, &call);
      calls_.push_back(std::move(call));
      return true;
    }
    const bool is_operator = line.find("extern_kernels.") != std::string_view::npos ||
                             line.find("torch.ops.") != std::string_view::npos || line.starts_with("aten.");
    if (!is_operator) return false;
    AttributeOperator(line, FindScheduled(line, sources, true), &call);
    calls_.push_back(std::move(call));
    ReadBuffer(line);
    return true;
  }

  // A place of the kernel's code that loads does so at most once for each element of its space, so a gather from a
  // large table reads no more than that.
  void CountBytes(const Kernel& kernel, std::string_view arguments, GeneratedCall* call) const {
    std::map<std::string_view, uint64_t> read, written;  // by the argument's text: the same memory counts once
    uint64_t space = 1;
    std::vector<std::pair<const Parameter*, std::string_view>> pointers;
    for (const Parameter& parameter : kernel.pointers) pointers.emplace_back(&parameter, TakePart(&arguments));
    for (size_t i = 0; kernel.by_elements && !Trim(arguments).empty(); ++i) {
      const std::string_view part = TakePart(&arguments);
      uint64_t size = 0;
      if (part.find('=') != std::string_view::npos) continue;
      if (i < kernel.scalars.size() && !kernel.scalars[i].ends_with("numel")) continue;
      if (!ParseNumber(part, &size)) return;
      space = SaturatingMultiply(space, size);
    }
    for (const auto& pointer : pointers) {
      const Parameter* const parameter = pointer.first;
      const std::string_view argument = pointer.second;
      const auto elements = ElementsOf(argument);
      if (!elements) return;
      const auto touched = [&](size_t places) {
        const uint64_t most = kernel.by_elements ? SaturatingMultiply(places, space) : *elements;
        return SaturatingMultiply(std::min(*elements, most), parameter->element_size);
      };
      const bool neither = parameter->loads == 0 && parameter->stores == 0;
      const bool output = parameter->name.starts_with("out_ptr") || parameter->name.starts_with("in_out_ptr");
      if (parameter->loads != 0 || (neither && !output)) {
        uint64_t& bytes = read[argument];
        bytes = std::max(bytes, touched(std::max<size_t>(1, parameter->loads)));
      }
      if (parameter->stores != 0 || (neither && output)) {
        uint64_t& bytes = written[argument];
        bytes = std::max(bytes, touched(std::max<size_t>(1, parameter->stores)));
      }
    }
    for (const auto& [argument, bytes] : read) call->bytes = SaturatingAdd(call->bytes, bytes);
    for (const auto& [argument, bytes] : written) call->bytes = SaturatingAdd(call->bytes, bytes);
    call->bytes_known = !kernel.pointers.empty();
  }

  // Kernels are called in the order in which they are scheduled, so the first one that fits is meant. Comments of a
  // backward name all nodes, some of them or none, as the version has it.
  Scheduled* FindScheduled(std::string_view line, std::string_view sources, bool is_extern) {
    Scheduled* by_sources = nullptr;
    for (Scheduled& candidate : scheduled_) {
      if (candidate.used || candidate.is_extern != is_extern) continue;
      if (!AllAmong(sources, candidate.sources)) continue;
      if (std::ranges::any_of(candidate.buffers, [&](auto name) { return CountWord(line, "", name) != 0; })) {
        candidate.used = true;
        return &candidate;
      }
      if (by_sources == nullptr && !sources.empty() && candidate.sources == sources) by_sources = &candidate;
    }
    if (by_sources != nullptr) by_sources->used = true;
    return by_sources;
  }

  // Gives the call of an operator its layers. Of the nodes, those count that are the operator; others say where its
  // operands come from.
  void AttributeOperator(std::string_view line, const Scheduled* scheduled, GeneratedCall* call) {
    if (scheduled == nullptr) return;
    for (const bool is_operator : {true, false}) {
      for (const std::string_view name : scheduled->nodes) {
        const std::string_view op = nodes_.OperatorOf(name);
        if (is_operator && (op.empty() || CountWord(line, ".", op.substr(op.find("::") + 2)) == 0)) continue;
        if (is_operator) {
          counted_.insert(name);
          unfinished_.insert(name);
        }
        AddLayer(name, call);
      }
      if (!call->layers.empty()) return;
    }
    for (const std::string_view name : scheduled->users) AddLayer(name, call);
  }

  // Gives the call of a kernel its nodes and layers.
  void Attribute(const Scheduled* scheduled, Kernel* kernel, GeneratedCall* call) {
    std::span<const std::string_view> names;
    if (scheduled != nullptr) {
      names = scheduled->nodes;
    } else if (kernel->first_line != 0) {
      // Another call of the same code does as much as the first.
      const auto first = std::ranges::find(calls_, kernel->first_line, &GeneratedCall::line);
      call->nodes = first->nodes;
      call->why_no_flop = first->why_no_flop;
      return;
    } else {
      names = kernel->nodes;
    }
    if (kernel->first_line == 0) kernel->first_line = call->line;
    if (kernel->users) call->why_no_flop = "a kernel of the program's own";
    for (const std::string_view name : names) {
      if (!nodes_.Computes(name)) continue;
      // Kernels around it prepare what it needs.
      const bool prepares = !kernel->is_template && nodes_.OperatorOf(name).find("flex_attention") != kNowhere;
      if (prepares || !counted_.insert(name).second) {
        if (prepares || unfinished_.erase(name) != 0) AddLayer(name, call);
        continue;
      }
      AddLayer(name, call);
      FxCall node;
      if (nodes_.Find(name, &node)) {
        call->nodes.push_back(std::move(node));
      } else if (call->why_no_flop.empty()) {
        call->why_no_flop = "shapes that change, or that the module does not say";
      }
    }
    // One that only ends a reduction is of the layer of the reduction, which is the last node.
    for (size_t i = names.size(); i > 0 && call->layers.empty(); --i) AddLayer(names[i - 1], call);
    if (scheduled == nullptr) return;
    for (size_t i = 0; i < scheduled->users.size() && call->layers.empty(); ++i) AddLayer(scheduled->users[i], call);
  }

  void AddLayer(std::string_view node, GeneratedCall* call) const {
    const auto layer = layers_.find(node);
    if (layer == layers_.end()) return;
    if (std::ranges::find(call->layers, layer->second) == call->layers.end()) call->layers.push_back(layer->second);
  }

  std::vector<std::string_view> lines_;
  FxNodes nodes_;
  std::map<std::string_view, GeneratedLayer> layers_;  // by node
  std::vector<Scheduled> scheduled_;
  std::map<std::string_view, Kernel> kernels_;
  std::map<std::string_view, uint64_t> buffers_;  // elements
  std::map<std::string_view, uint64_t>
      results_;                             // elements of buffers that are not in buffers_, as Inductor has them
  std::vector<std::string_view> fragment_;  // nodes of the last comment
  std::set<std::string_view> counted_;
  // Those that the call of an operator has computed. The first kernel behind it that has one, too, computes the rest:
  // a convolution's bias, and its gradient.
  std::set<std::string_view> unfinished_;
  std::vector<GeneratedCall> calls_;
};

}  // namespace

bool IsGeneratedCode(std::string_view source) noexcept { return source.find(kCompiler) != std::string_view::npos; }

std::vector<GeneratedCall> ReadGeneratedCode(std::string_view source, std::string_view graph) {
  return Reader(source, graph).Read();
}

}  // namespace rfinject
