#include "operators/fx_nodes.h"

#include <cstddef>
#include <cstdlib>

#include "operators/python_text.h"
#include "operators/types.h"

namespace rfinject {
namespace {

using python_text::Bracketed;
using python_text::NameAt;
using python_text::ParseNumber;
using python_text::TakePart;
using python_text::Trim;

// Fills `*tensor` with "f32[256, 512][512, 1]cuda:0"; the strides may be missing. Returns false where a size is no
// number.
bool ParseTensor(std::string_view text, TensorView* tensor) {
  const size_t open = text.find('[');
  if (open == std::string_view::npos || text.find(']', open) == std::string_view::npos) return false;
  const std::string_view type = text.substr(0, open);
  const TypeFacts facts = FindType(&TypeFacts::name, type == "b8" ? "bool" : type);  // all other names are ours
  tensor->dtype = facts.type;
  tensor->element_size = facts.bytes;
  std::string_view sizes = Bracketed(text.substr(open));
  const std::string_view after = text.substr(open + sizes.size() + 2);
  std::string_view strides = after.starts_with('[') ? Bracketed(after) : std::string_view();
  tensor->rank = 0;
  tensor->numel = tensor->distinct = 1;
  while (!Trim(sizes).empty()) {
    uint64_t size = 0, stride = 1;
    if (!ParseNumber(TakePart(&sizes), &size)) return false;
    if (!strides.empty() && !ParseNumber(TakePart(&strides), &stride)) return false;
    if (__builtin_mul_overflow(tensor->numel, size, &tensor->numel)) return false;
    if (stride != 0) tensor->distinct *= size;
    if (stride == 0 && size > 1) tensor->broadcast = true;
    if (tensor->rank < kMaxRank) {
      tensor->shape[tensor->rank++] = static_cast<int64_t>(size);
    } else {
      tensor->shape[kMaxRank - 1] *= static_cast<int64_t>(size);
    }
  }
  return true;
}

// Reads a float as Python prints it ("0.5", "-1e-05"), to the last digits or so. std::from_chars of a double would
// draw code with an initialiser of its own into the injected library, and strtod depends on the program's locale.
bool ParseReal(std::string_view text, double* value) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  int64_t exponent = 0;
  if (const size_t at = text.find('e'); at != std::string_view::npos) {
    std::string_view power = text.substr(at + 1);
    if (power.starts_with('+')) power.remove_prefix(1);
    if (!ParseNumber(power, &exponent) || std::abs(exponent) > 400) return false;
    text = text.substr(0, at);
  }
  double digits = 0;
  bool any = false, fraction = false;
  for (const char c : text) {
    if (c == '.' && !fraction) {
      fraction = true;
      continue;
    }
    if (c < '0' || c > '9') return false;
    digits = 10 * digits + (c - '0');
    exponent -= fraction ? 1 : 0;
    any = true;
  }
  for (; exponent < 0; ++exponent) digits /= 10;
  for (; exponent > 0; --exponent) digits *= 10;
  *value = negative ? -digits : digits;
  return any;
}

}  // namespace

OpCall FxCall::call() const {
  OpCall made;
  made.name = op;
  made.inputs = inputs;
  made.outputs = outputs;
  made.tensors = tensors;
  made.ints = ints;
  return made;
}

void FxNodes::Read(std::string_view line) {
  line = Trim(line);
  if (!line.starts_with('%')) return;
  const std::string_view name = NameAt(line.substr(1));
  if (name.empty()) return;
  Node& node = nodes_.try_emplace(std::string(name)).first->second;
  std::string_view rest = line.substr(1 + name.size());
  constexpr std::string_view kTensor = " : Tensor \"";
  if (rest.starts_with(kTensor)) {
    rest.remove_prefix(kTensor.size());
    const size_t end = rest.find('"');
    if (end == std::string_view::npos) return;
    TensorView tensor;
    if (!node.known && ParseTensor(rest.substr(0, end), &tensor)) {
      node.tensor = tensor;
      node.known = true;
    }
    rest.remove_prefix(end + 1);
  }
  constexpr std::string_view kCall = "call_function[target=torch.ops.";
  const size_t call = rest.find(kCall);
  if (call == std::string_view::npos || !node.op.empty()) return;
  rest.remove_prefix(call + kCall.size());
  const std::string_view target = NameAt(rest, true);  // aten.mul.Tensor
  const size_t dot = target.find('.');
  if (dot == std::string_view::npos) return;
  const std::string_view in_space = target.substr(dot + 1);
  node.op = std::string(target.substr(0, dot)) + "::" + std::string(in_space.substr(0, in_space.find('.')));
  const size_t arguments = rest.find("(args = ");
  if (arguments != std::string_view::npos) node.arguments = rest.substr(arguments);
}

std::string_view FxNodes::OperatorOf(std::string_view name) const {
  const auto node = nodes_.find(name);
  return node != nodes_.end() ? std::string_view(node->second.op) : std::string_view();
}

bool FxNodes::Computes(std::string_view name) const {
  const std::string_view op = OperatorOf(name);
  // A reshape that copies is a clone and a view in these graphs; newer versions write their views as reshapes.
  return !op.empty() && op != "aten::reshape" && ClassifyOp(op) != OpKind::kFree;
}

bool FxNodes::Find(std::string_view name, FxCall* call) const {
  const auto found = nodes_.find(name);
  if (found == nodes_.end() || found->second.op.empty()) return false;
  const Node& node = found->second;
  *call = FxCall();
  call->op = node.op;
  const auto tensor_of = [&](std::string_view text) -> const TensorView* {
    if (!text.starts_with('%')) return nullptr;
    const auto operand = nodes_.find(text.substr(1));
    return operand != nodes_.end() && operand->second.known ? &operand->second.tensor : nullptr;
  };
  const auto add_tensor = [&](const TensorView& tensor) {
    call->tensors.push_back(tensor);
    call->tensors.back().storage = call->tensors.size();  // each a memory of its own
    call->tensors.back().offset = 0;
    return static_cast<uint16_t>(call->tensors.size() - 1);
  };
  const auto argument_of = [&](std::string_view text) {
    Argument argument;
    int64_t integer = 0;
    double real = 0;
    if (const TensorView* tensor = tensor_of(text)) {
      argument = {.kind = Argument::Kind::kTensor, .first = add_tensor(*tensor), .count = 1};
    } else if (text == "None") {
      argument.kind = Argument::Kind::kNone;
    } else if (text == "True" || text == "False") {
      argument.kind = Argument::Kind::kBool;
      argument.integer = text == "True" ? 1 : 0;
    } else if (ParseNumber(text, &integer)) {
      argument.kind = Argument::Kind::kInt;
      argument.integer = integer;
    } else if (ParseReal(text, &real)) {
      argument.kind = Argument::Kind::kDouble;
      argument.real = real;
    } else if (text.starts_with('[') || text.starts_with('(')) {
      std::string_view list = Bracketed(text);
      const bool of_tensors = list.starts_with('%');
      argument.kind = of_tensors ? Argument::Kind::kTensorList : Argument::Kind::kIntList;
      argument.first = static_cast<uint16_t>(of_tensors ? call->tensors.size() : call->ints.size());
      while (!Trim(list).empty()) {
        const std::string_view part = TakePart(&list);
        if (const TensorView* tensor = tensor_of(part); of_tensors && tensor != nullptr) add_tensor(*tensor);
        if (!of_tensors) call->ints.push_back(ParseNumber(part, &integer) ? integer : 0);
      }
      argument.count =
          static_cast<uint16_t>((of_tensors ? call->tensors.size() : call->ints.size()) - argument.first);
    }
    return argument;
  };
  constexpr std::string_view kArguments = "(args = ";
  std::string_view text = node.arguments;
  if (text.starts_with(kArguments)) {
    text.remove_prefix(kArguments.size());
    std::string_view list = Bracketed(text);
    const size_t end = list.size() + 2;
    while (!Trim(list).empty()) call->inputs.push_back(argument_of(TakePart(&list)));
    // Those that are named stand behind the others, as they do in the operators' schemas.
    const size_t named = text.find("kwargs = {", end);
    if (named != std::string_view::npos) {
      list = Bracketed(text.substr(named + 9));
      while (!Trim(list).empty()) {
        const std::string_view pair = TakePart(&list);
        const size_t colon = pair.find(": ");
        if (colon != std::string_view::npos) call->inputs.push_back(argument_of(pair.substr(colon + 2)));
      }
    }
  }
  if (node.known) {
    call->outputs.push_back({.kind = Argument::Kind::kTensor, .first = add_tensor(node.tensor), .count = 1});
  }
  // An operator with several results says nothing of their shapes; the operands' are then enough for its rule.
  return node.known || !call->tensors.empty();
}

}  // namespace rfinject
