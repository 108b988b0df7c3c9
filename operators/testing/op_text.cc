#include "operators/testing/op_text.h"

#include <sstream>
#include <stdexcept>
#include <utility>

#include "operators/types.h"

namespace rfinject::testing {
namespace {

std::vector<int64_t> Numbers(const std::string& text) {
  std::vector<int64_t> numbers;
  std::istringstream in(text);
  for (std::string number; std::getline(in, number, ',');) numbers.push_back(std::stoll(number));
  return numbers;
}

[[noreturn]] void Fail(const std::string& what) { throw std::invalid_argument("operator text: " + what); }

}  // namespace

void OpText::ParseTensor(const std::string& token) {
  const size_t open = token.find('[');
  const size_t close = token.find(']');
  if (open == std::string::npos || close == std::string::npos) Fail(token);
  const size_t colon = std::min(token.find(':'), open);
  const std::string_view name = std::string_view(token).substr(0, colon);
  const TypeFacts type =
      name == "f8" ? TypeFacts{.type = DType::kOther, .bytes = 1} : FindType(&TypeFacts::name, name);
  if (type.bytes == 0) Fail(token);
  TensorView tensor;
  if (const std::string format = token.substr(colon, open - colon); !format.empty()) {
    if (format != ":nhwc" && format != ":nchw") Fail(token);
    tensor.format = format == ":nhwc" ? MemoryFormat::kChannelsLast : MemoryFormat::kChannelsFirst;
  }
  tensor.dtype = type.type;
  tensor.element_size = type.bytes;
  tensor.numel = 1;
  for (int64_t size : Numbers(token.substr(open + 1, close - open - 1))) {
    tensor.numel *= static_cast<uint64_t>(size);
    if (tensor.rank < kMaxRank) {
      tensor.shape[tensor.rank++] = size;
    } else {
      tensor.shape[kMaxRank - 1] *= size;
    }
  }
  tensor.distinct = tensor.numel;
  tensor.storage = (uintptr_t{1} << 40) + tensors_.size();  // unique within the call, which is all that matters
  tensor.offset = 0;
  size_t at = close + 1;
  while (at < token.size()) {
    const char mark = token[at];
    if (token.compare(at, 2, "+?") == 0) {
      tensor.offset = -1;
      at += 2;
      continue;
    }
    if (mark == '=') {
      const std::vector<int64_t> numbers = Numbers(token.substr(at + 1));
      tensor.first_number = static_cast<uint32_t>(ints_.size());
      tensor.number_count = static_cast<uint32_t>(numbers.size());
      ints_.insert(ints_.end(), numbers.begin(), numbers.end());
      break;
    }
    size_t used = 0;
    const uint64_t number = std::stoull(token.substr(at + 1), &used);
    at += 1 + used;
    if (mark == '@') {
      tensor.storage = number;
    } else if (mark == '+') {
      tensor.offset = static_cast<int64_t>(number);
    } else if (mark == '/') {
      tensor.broadcast = true;
      tensor.distinct = number;
    } else if (mark == '*') {
      tensor.sparse = true;
      tensor.numel = tensor.distinct = number;
      tensor.index_bytes = number * tensor.rank * sizeof(int64_t);
    } else {
      Fail(token);
    }
  }
  tensors_.push_back(tensor);
}

Argument OpText::ParseArgument(const std::vector<std::string>& tokens, size_t& at) {
  const std::string& token = tokens[at++];
  Argument argument;
  if (token == "{") {
    argument.kind = Argument::Kind::kTensorList;
    argument.first = static_cast<uint16_t>(tensors_.size());
    for (; at < tokens.size() && tokens[at] != "}"; ++at) {
      ParseTensor(tokens[at]);
      ++argument.count;
    }
    if (at++ >= tokens.size()) Fail("list without end");
  } else if (token == "_") {
    argument.kind = Argument::Kind::kNone;
  } else if (token == "?") {
    argument.kind = Argument::Kind::kOther;
  } else if (token.find('[') != std::string::npos) {
    argument.kind = Argument::Kind::kTensor;
    argument.first = static_cast<uint16_t>(tensors_.size());
    argument.count = 1;
    ParseTensor(token);
  } else if (token[0] == 'i') {
    argument.kind = Argument::Kind::kInt;
    argument.integer = std::stoll(token.substr(1));
  } else if (token[0] == 'b') {
    argument.kind = Argument::Kind::kBool;
    argument.integer = std::stoll(token.substr(1));
  } else if (token[0] == 'd') {
    argument.kind = Argument::Kind::kDouble;
    argument.real = std::stod(token.substr(1));
  } else if (token[0] == 'I') {
    argument.kind = Argument::Kind::kIntList;
    argument.first = static_cast<uint16_t>(ints_.size());
    for (int64_t number : Numbers(token.substr(1))) ints_.push_back(number);
    argument.count = static_cast<uint16_t>(ints_.size() - argument.first);
  } else {
    Fail(token);
  }
  return argument;
}

OpText::OpText(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> tokens;
  for (std::string token; in >> token;) tokens.push_back(token);
  if (tokens.size() < 6 || tokens[1] != "(") Fail(std::string(text));
  name_ = tokens[0];
  size_t at = 2;
  while (at < tokens.size() && tokens[at] != ")") inputs_.push_back(ParseArgument(tokens, at));
  if (at + 2 >= tokens.size() || tokens[at + 1] != "->" || tokens[at + 2] != "(") Fail(std::string(text));
  at += 3;
  while (at < tokens.size() && tokens[at] != ")") outputs_.push_back(ParseArgument(tokens, at));
  if (at + 1 != tokens.size()) Fail(std::string(text));
}

OpCall OpText::call() const {
  OpCall call;
  call.name = name_;
  call.inputs = inputs_;
  call.outputs = outputs_;
  call.tensors = tensors_;
  call.ints = ints_;
  return call;
}

std::vector<OpNode> ReadOps(std::istream& input) {
  std::vector<OpNode> roots;
  std::vector<size_t> path;  // index of the last node of each depth
  for (std::string line; std::getline(input, line);) {
    if (line.empty() || line[0] == '#') continue;
    size_t used = 0;
    const size_t depth = std::stoul(line, &used);
    if (depth > path.size()) Fail("depth: " + line);
    path.resize(depth);
    std::vector<OpNode>* siblings = &roots;
    for (size_t index : path) siblings = &(*siblings)[index].children;
    siblings->push_back({OpText(std::string_view(line).substr(used)), {}});
    path.push_back(siblings->size() - 1);
  }
  return roots;
}

namespace {

// Whether `on_op` was called for the node or for something inside it.
bool ReplayNode(const OpNode& node, const std::function<void(const OpCall&)>& on_op) {
  const OpCall call = node.op.call();
  const OpKind kind = ClassifyOp(call.name);
  if (kind == OpKind::kFree) return false;
  bool inside = false;
  if (kind == OpKind::kLeafIfChildless) {
    for (const OpNode& child : node.children) inside = ReplayNode(child, on_op) || inside;
  }
  if (!inside) on_op(call);
  return true;
}

}  // namespace

void Replay(const std::vector<OpNode>& ops, const std::function<void(const OpCall&)>& on_op) {
  for (const OpNode& node : ops) ReplayNode(node, on_op);
}

}  // namespace rfinject::testing
