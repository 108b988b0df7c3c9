#include "cli/import/et/execution_trace.h"

#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cli/import/torch/words.h"

namespace rfinject::cli {
namespace {

using Value = rapidjson::Value;
using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

constexpr size_t kMostBytes = 512u << 20;
// Longer operands of a call are left out, as those of a recording are.
constexpr size_t kLongestOperandsOfCall = 64u << 10;

const Value& Nothing() {
  static const Value& nothing = *new Value(rapidjson::kArrayType);
  return nothing;
}

const Value& Member(const Value& object, const char* name) {
  const auto found = object.FindMember(name);
  return found == object.MemberEnd() ? Nothing() : found->value;
}

uint64_t NumberOf(const Value& value) { return value.IsUint64() ? value.GetUint64() : 0; }

// The three lists of what went in or came out. Chakra's dialect has them in one object, older ones as members of the
// node.
struct Lists {
  const Value *values, *shapes, *types, *strides;
};
Lists ListsOf(const Value& node, bool of_results) {
  const Value& both = Member(node, of_results ? "outputs" : "inputs");
  if (both.IsObject()) {
    return {&Member(both, "values"), &Member(both, "shapes"), &Member(both, "types"), &Member(both, "strides")};
  }
  return {&both, &Member(node, of_results ? "output_shapes" : "input_shapes"),
          &Member(node, of_results ? "output_types" : "input_types"), &Nothing()};
}

const Value& At(const Value& list, rapidjson::SizeType index) {
  return list.IsArray() && index < list.Size() ? list[index] : Nothing();
}

std::string_view TextOf(const Value& value) {
  return value.IsString() ? std::string_view(value.GetString(), value.GetStringLength()) : std::string_view();
}

// "Tensor(c10::Half)" is a tensor of c10::Half; nothing else is one.
std::string_view TensorType(std::string_view type) {
  if (!ConsumePrefix(&type, "Tensor(") || !type.ends_with(')')) return {};
  type.remove_suffix(1);
  return type;
}

bool IsTensorList(std::string_view type) { return type.starts_with("GenericList[Tensor("); }

// A scalar or a list of them, as the profiler's "Concrete Inputs" write it.
std::string Text(const Value& value) {
  if (value.IsBool()) return value.GetBool() ? "True" : "False";
  if (value.IsInt64()) return absl::StrCat(value.GetInt64());
  if (value.IsNumber()) return absl::StrCat(value.GetDouble());
  if (!value.IsArray()) return {};
  std::string text = "[";
  for (const Value& one : value.GetArray()) absl::StrAppend(&text, text.size() > 1 ? ", " : "", Text(one));
  return text + "]";
}

class ExecutionTraceBuilder {
 public:
  explicit ExecutionTraceBuilder(ExecutionTrace* trace) : trace_(*trace) {}

  void Add(const Value& node) {
    ExecutedCall call;
    call.id = NumberOf(Member(node, "id"));
    const std::string_view name = TextOf(Member(node, "name"));
    call.name = trace_.texts.NumberOf(name);
    // RecordScope::USER_SCOPE is 7; the observer's own nodes bear it as well.
    constexpr uint64_t kUserScope = 7;
    call.is_operator = ScopeOf(node) != kUserScope && !name.empty() && !name.starts_with("[pytorch|");
    parents_.push_back(NumberOf(node.HasMember("ctrl_deps") ? Member(node, "ctrl_deps") : Member(node, "parent")));
    if (call.is_operator) AddOperands(node, &call);
    trace_.calls.push_back(call);
  }

  // Calls stand in the file as they ended; here they stand as they began.
  void Finish() {
    std::vector<uint32_t> order(trace_.calls.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) {
      return std::pair(trace_.calls[a].id, a) < std::pair(trace_.calls[b].id, b);
    });
    std::vector<ExecutedCall> sorted;
    std::map<uint64_t, uint32_t> place;
    for (const uint32_t index : order) {
      ExecutedCall call = trace_.calls[index];
      const auto parent = place.find(parents_[index]);
      if (parent != place.end() && parents_[index] != call.id) call.parent = parent->second;
      place.emplace(call.id, static_cast<uint32_t>(sorted.size()));
      sorted.push_back(call);
    }
    trace_.calls = std::move(sorted);
  }

 private:
  static uint64_t ScopeOf(const Value& node) {
    if (node.HasMember("scope")) return NumberOf(Member(node, "scope"));
    const Value& attributes = Member(node, "attrs");
    if (!attributes.IsArray()) return 0;
    for (const Value& one : attributes.GetArray()) {
      if (one.IsObject() && TextOf(Member(one, "name")) == "scope") return NumberOf(Member(one, "value"));
    }
    return 0;
  }

  // A tensor's value is (its id, its storage's id, offset, elements, bytes of each, device).
  void NoteDevice(const Value& value, bool* host, bool* gpu) {
    if (!value.IsArray()) return;
    if (value.Size() >= 6 && value[value.Size() - 1].IsString()) {
      const bool on_host = TextOf(value[value.Size() - 1]).starts_with("cpu");
      (on_host ? *host : *gpu) = true;
      return;
    }
    for (const Value& one : value.GetArray()) NoteDevice(one, host, gpu);
  }

  void AddOperands(const Value& node, ExecutedCall* call) {
    bool host = false, gpu = false;
    const Lists inputs = ListsOf(node, false), results = ListsOf(node, true);
    const std::string operands =
        absl::StrCat(Shapes(inputs), "\n", Types(inputs), "\n", Strides(inputs), "\n", Values(inputs, &host, &gpu),
                     "\n", Shapes(results), "\n", Types(results));
    Values(results, &host, &gpu);
    call->on_host = host && !gpu;
    call->crosses_devices = host && gpu;
    trace_.uses_gpu = trace_.uses_gpu || gpu;
    if (operands.size() <= kLongestOperandsOfCall) call->operands = trace_.operands.NumberOf(operands);
  }

  static void Sizes(const Value& shape, Writer* out) {
    out->StartArray();
    if (shape.IsArray()) {
      for (const Value& size : shape.GetArray()) out->Int64(size.IsInt64() ? size.GetInt64() : 0);
    }
    out->EndArray();
  }

  template <typename Write>
  static std::string List(const Lists& lists, Write write) {
    rapidjson::StringBuffer buffer;
    Writer out(buffer);
    out.StartArray();
    const rapidjson::SizeType count = lists.types->IsArray() ? lists.types->Size() : 0;
    for (rapidjson::SizeType i = 0; i < count; ++i) write(i, TextOf((*lists.types)[i]), &out);
    out.EndArray();
    return {buffer.GetString(), buffer.GetSize()};
  }

  static std::string Shapes(const Lists& lists) {
    return List(lists, [&lists](rapidjson::SizeType i, std::string_view type, Writer* out) {
      const Value& shape = At(*lists.shapes, i);
      if (IsTensorList(type) && shape.IsArray()) {
        out->StartArray();
        for (const Value& one : shape.GetArray()) Sizes(one, out);
        out->EndArray();
      } else {
        Sizes(TensorType(type).empty() ? Nothing() : shape, out);
      }
    });
  }
  static std::string Types(const Lists& lists) {
    return List(lists, [](rapidjson::SizeType /*i*/, std::string_view type, Writer* out) {
      const std::string_view tensor = TensorType(type);
      const std::string_view word = !tensor.empty()      ? tensor
                                    : IsTensorList(type) ? "TensorList"
                                    : type == "None"     ? ""
                                                         : "Scalar";
      out->String(word.data(), static_cast<rapidjson::SizeType>(word.size()));
    });
  }
  static std::string Strides(const Lists& lists) {
    return List(lists, [&lists](rapidjson::SizeType i, std::string_view type, Writer* out) {
      const Value& strides = At(*lists.strides, i);
      const bool plain = !TensorType(type).empty() && strides.IsArray() && !strides.Empty() && !strides[0].IsArray();
      Sizes(plain ? strides : Nothing(), out);
    });
  }
  std::string Values(const Lists& lists, bool* host, bool* gpu) {
    return List(lists, [&](rapidjson::SizeType i, std::string_view type, Writer* out) {
      const Value& value = At(*lists.values, i);
      const bool tensors = !TensorType(type).empty() || IsTensorList(type);
      if (tensors) NoteDevice(value, host, gpu);
      const std::string text = tensors ? std::string() : Text(value);
      out->String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
    });
  }

  ExecutionTrace& trace_;
  std::vector<uint64_t> parents_;
};

}  // namespace

bool LooksLikeExecutionTrace(std::string_view beginning) {
  return Contains(beginning, "\"schema\"") &&
         (Contains(beginning, "\"nodes\"") || Contains(beginning, "\"start_ts\"")) &&
         !Contains(beginning, "\"traceEvents\"") && !Contains(beginning, "\"schemaVersion\"");
}

absl::StatusOr<ExecutionTrace> ReadExecutionTrace(ByteStream& bytes) {
  std::string text;
  constexpr size_t kPart = 64u << 10;
  for (size_t size = 0;;) {
    text.resize(size + kPart);
    const size_t got = bytes.Read(text.data() + size, kPart);
    text.resize(size += got);
    if (got == 0) break;
    if (size > kMostBytes) return absl::InvalidArgumentError("an execution trace of more than 512 MiB");
  }
  if (!bytes.status().ok()) return bytes.status();
  rapidjson::Document json;
  json.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseNanAndInfFlag>(text.data(), text.size());
  if (json.HasParseError()) {
    return absl::InvalidArgumentError(absl::StrCat("byte ", json.GetErrorOffset(), ": this is not JSON"));
  }
  const Value& nodes = json.IsObject() ? Member(json, "nodes") : Nothing();
  if (!nodes.IsArray() || nodes.Empty()) return absl::InvalidArgumentError("JSON without nodes: no execution trace");
  ExecutionTrace trace;
  ExecutionTraceBuilder builder(&trace);
  for (const Value& node : nodes.GetArray()) {
    if (node.IsObject()) builder.Add(node);
  }
  builder.Finish();
  return trace;
}

}  // namespace rfinject::cli
