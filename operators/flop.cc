#include "operators/flop.h"

#include <algorithm>

#include "operators/linear_algebra.h"
#include "operators/operands.h"

namespace rfinject::estimate {
namespace {

FlopCount OnVector(uint64_t flop) { return {flop, 0, flop}; }
FlopCount OnMatrix(uint64_t flop) { return {flop, flop, 0}; }

uint64_t Product(uint64_t a, uint64_t b, uint64_t c = 1, uint64_t d = 1) {
  return SaturatingMultiply(SaturatingMultiply(a, b), SaturatingMultiply(c, d));
}

// How many elements of the weight each output element of a convolution (each input element of a transposed one) is
// multiplied with: the weight is [out, in/groups, kernel...], a transposed one's [in, out/groups, kernel...].
uint64_t WeightPerElement(const TensorView& weight) {
  const uint64_t first = Size(weight, 0);
  return first == 0 ? 0 : weight.numel / first;
}

bool NameHas(const OpCall& call, std::string_view part) { return call.name.find(part) != std::string_view::npos; }

// Those that are not generic say it in their names: cudnn_convolution(self, weight, …, benchmark, deterministic,
// allow_tf32) has booleans that mean something else.
bool IsTransposedForward(const OpCall& call) {
  if (NameHas(call, "transpose")) return true;
  const bool generic = call.name == "aten::convolution" || call.name == "aten::_convolution" ||
                       call.name == "aten::convolution_overrideable";
  return generic && Flag(call, 0);
}

uint64_t Convolution(const OpCall& call) {
  const TensorView* input = InputTensor(call, 0);
  const TensorView* weight = InputTensor(call, 1);
  const auto output = FirstTensors(call, call.outputs);
  if (input == nullptr || weight == nullptr || output.empty()) return 0;
  const uint64_t elements = IsTransposedForward(call) ? input->numel : output[0].numel;
  return Product(2, elements, WeightPerElement(*weight));
}

// convolution_backward(grad_output, input, weight, …): gradients of input, weight and bias. Which are computed is
// seen in the results: what output_mask leaves out comes back undefined.
uint64_t ConvolutionBackwardFlop(const OpCall& call) {
  const TensorView* grad = InputTensor(call, 0);
  const TensorView* input = InputTensor(call, 1);
  const TensorView* weight = InputTensor(call, 2);
  if (grad == nullptr || input == nullptr || weight == nullptr) return 0;
  const uint64_t elements = Flag(call, 0) ? input->numel : grad->numel;
  const uint64_t one = Product(2, elements, WeightPerElement(*weight));
  uint64_t sum = 0;
  for (size_t i = 0; i < 2 && i < call.outputs.size(); ++i) {
    if (!TensorsOf(call, call.outputs[i]).empty()) sum = SaturatingAdd(sum, one);
  }
  return sum;
}

// The FLOP of a*b where one of them is sparse: a multiply-add, 2, for each number that the sparse one holds and each
// column or row of the dense one. They run on the CUDA cores. Where both are sparse, which numbers meet is not
// known from their shapes; the count is then that of numbers that are spread evenly, 2 * numbers of a * numbers of b
// / columns of a.
uint64_t SparseProduct(const TensorView& a, const TensorView& b) {
  uint64_t products = 0;
  if (a.sparse && b.sparse) {
    products = Product(a.numel, b.numel) / std::max<uint64_t>(Size(a, -1), 1);
  } else if (a.sparse) {
    products = Product(a.numel, b.rank < 2 ? 1 : Size(b, -1));
  } else {
    products = Product(b.numel, a.rank < 2 ? 1 : Size(a, -2));
  }
  return Product(2, products);
}

// sparse_sampled_addmm(sparse, a, b): 2 * columns of a for each number of the sparse result.
uint64_t SampledProduct(const OpCall& call) {
  const TensorView* sparse = InputTensor(call, 0);
  const TensorView* left = InputTensor(call, 1);
  if (sparse == nullptr || left == nullptr) return 0;
  return Product(2, sparse->numel, Size(*left, -1));
}

// mm(a, b), bmm(a, b), addmm(c, a, b), …: the last two of the first three tensors are the matrices. An `out`
// argument comes after them.
FlopCount Matmul(const OpCall& call) {
  const bool adds = NameHas(call, "add");
  const TensorView* a = InputTensor(call, adds ? 1 : 0);
  const TensorView* b = InputTensor(call, adds ? 2 : 1);
  if (a == nullptr || b == nullptr) return {};
  if (a->sparse || b->sparse) return OnVector(SparseProduct(*a, *b));
  return OnMatrix(Product(2, a->numel, Size(*b, -1)));
}

uint64_t Linear(const OpCall& call) {
  const TensorView* input = InputTensor(call, 0);
  const TensorView* weight = InputTensor(call, 1);
  if (input == nullptr || weight == nullptr) return 0;
  return Product(2, input->numel, Size(*weight, 0));
}

// mv(matrix, v), addmv(c, matrix, v), dot(a, b).
uint64_t MatVec(const OpCall& call) {
  const TensorView* matrix = InputTensor(call, NameHas(call, "add") ? 1 : 0);
  return matrix == nullptr ? 0 : Product(2, matrix->numel);
}

// query [b, h, sq, d], key [b, h, sk, d], value [b, h, sk, dv]; `first` is the index of the query.
//   forward:  q k^T and p v, 2 b h sq sk (d + dv); the scores' scaling and softmax, 4 each
//   backward: dv, dp, dq, dk: twice the forward's products; the scores' gradient, 5 each. The fused kernels do not
//             keep the scores: they compute q k^T again, 2.5 times the forward when d = dv (Dao et al., arXiv
//             2205.14135, algorithm 4).
// Causal masks are not looked at: the full matrix is counted, as torch.utils.flop_counter does.
FlopCount Attention(const OpCall& call, size_t first, bool backward) {
  const TensorView* query = InputTensor(call, first);
  const TensorView* key = InputTensor(call, first + 1);
  const TensorView* value = InputTensor(call, first + 2);
  if (query == nullptr || key == nullptr || value == nullptr) return {};
  const uint64_t head_size = Size(*query, -1);
  const uint64_t rows = head_size == 0 ? 0 : query->numel / head_size;  // b h sq
  const uint64_t scores = Product(rows, Size(*key, -2));
  const uint64_t query_key = Product(2, scores, head_size);
  const uint64_t products = SaturatingAdd(query_key, Product(2, scores, Size(*value, -1)));
  FlopCount count;
  count.vector = Product(backward ? 5 : 4, scores);
  count.matrix = backward ? SaturatingMultiply(2, products) : products;
  count.model = SaturatingAdd(count.matrix, count.vector);
  if (backward) count.matrix = SaturatingAdd(count.matrix, query_key);
  return count;
}

// _native_multi_head_attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, …):
// query [batch, tokens, embed]. Self-attention only: the fast path takes nothing else.
FlopCount MultiHead(const OpCall& call) {
  const TensorView* query = InputTensor(call, 0);
  const TensorView* qkv = InputTensor(call, 5);
  const TensorView* projection = InputTensor(call, 7);
  if (query == nullptr || qkv == nullptr || projection == nullptr) return {};
  FlopCount count;
  const uint64_t rows = SaturatingAdd(Size(*qkv, 0), Size(*projection, 0));
  const uint64_t heads = call.inputs[4].integer > 0 ? static_cast<uint64_t>(call.inputs[4].integer) : 1;
  const uint64_t tokens = Size(*query, 1);
  count.matrix = SaturatingAdd(Product(2, query->numel, rows), Product(4, query->numel, tokens));
  count.vector = Product(4, Product(Size(*query, 0), heads), Product(tokens, tokens));
  count.model = SaturatingAdd(count.matrix, count.vector);
  return count;
}

// The weights of a recurrent layer: for each layer and direction the input's matrix, the recurrent one and the
// biases. They are the last list of _cudnn_rnn(input, weights[], …) and of lstm(input, hx[], weights[], …).
std::span<const TensorView> RnnWeights(const OpCall& call) {
  for (size_t i = call.inputs.size(); i-- > 0;) {
    if (call.inputs[i].kind == Argument::Kind::kTensorList) return TensorsOf(call, call.inputs[i]);
  }
  return {};
}

// Sequences come as [tokens, batch, features], as [batch, tokens, features] where the layer says so (its first
// boolean in cuDNN's operators, its fourth in lstm(…, has_biases, …, train, bidirectional, batch_first)), as [tokens,
// features], or packed: then the second argument has the sizes of the batches, one a time step.
uint64_t RnnTimeSteps(const OpCall& call) {
  const TensorView* input = InputTensor(call, 0);
  if (input == nullptr) return 0;
  const TensorView* sizes = InputTensor(call, 1);
  if (sizes != nullptr && sizes->rank == 1 && sizes->dtype == DType::kInt64) return sizes->numel;
  if (input->rank < 3) return Size(*input, 0);
  const size_t batch_first = NameHas(call, "_rnn") && !NameHas(call, "::rnn_") ? 0 : 3;
  return Size(*input, Flag(call, batch_first) ? 1 : 0);
}

// In a recurrent layer every matrix of weights is multiplied with every token, 2 FLOP per multiply-add; the gates'
// arithmetic, 3 per gate element (see the cells in op_table.cc), belongs to the recurrent matrices, which are every
// second one. The input is [tokens, batch, features] or [batch, tokens, features].
FlopCount Rnn(const OpCall& call, bool backward) {
  const TensorView* input = InputTensor(call, 0);
  if (input == nullptr || Size(*input, -1) == 0) return {};
  const uint64_t tokens = input->numel / Size(*input, -1);
  FlopCount count;
  bool recurrent = false;
  const auto add = [&](const TensorView& weight) {
    if (weight.rank != 2) return;
    count.matrix = SaturatingAdd(count.matrix, Product(2, tokens, weight.numel));
    if (recurrent) count.vector = SaturatingAdd(count.vector, Product(3, tokens, Size(weight, 0)));
    recurrent = !recurrent;
  };
  // mkldnn_rnn_layer(input, w_input, w_hidden, biases…, hx, …) has no list, but the two matrices one after the other.
  if (const auto weights = RnnWeights(call); !weights.empty()) {
    for (const TensorView& weight : weights) add(weight);
  } else {
    for (size_t i = 1; i <= 2; ++i) {
      if (const TensorView* weight = InputTensor(call, i)) add(*weight);
    }
  }
  if (backward) {
    count.matrix = SaturatingMultiply(2, count.matrix);
    count.vector = SaturatingMultiply(2, count.vector);
  }
  count.model = SaturatingAdd(count.matrix, count.vector);
  return count;
}

// Training: mean 1, variance 3, normalise 2; weight and bias 2. Evaluation: one scale and one shift per element,
// since statistics, weight and bias fold into two numbers a channel.
uint64_t BatchNormFlop(const OpCall& call) {
  const uint64_t elements = Elements(FirstTensors(call, call.inputs));
  if (!Flag(call, 0, NameHas(call, "with_update"))) return Product(2, elements);
  return Product(InputTensor(call, 1) != nullptr ? 8 : 6, elements);
}

// Layer and group norm: mean 1, variance 3, normalise 2; weight and bias 2.
uint64_t Normalise(const OpCall& call) {
  size_t tensors = 0;
  for (const Argument& argument : call.inputs) tensors += argument.kind == Argument::Kind::kTensor;
  return Product(tensors > 1 ? 8 : 6, Elements(FirstTensors(call, call.inputs)));
}

// (input, kernel_size, …), and (grad_output, input, kernel_size, …) for the backward. One number stands for all
// dimensions of the window.
uint64_t Window(const OpCall& call, size_t argument) {
  const auto sizes = IntsOf(call, argument);
  const size_t dimensions = NameHas(call, "3d") ? 3 : 2;
  uint64_t window = 1;
  for (size_t i = 0; i < dimensions; ++i) {
    const int64_t size = sizes.empty() ? 1 : sizes[std::min(i, sizes.size() - 1)];
    window = SaturatingMultiply(window, size < 0 ? 0 : static_cast<uint64_t>(size));
  }
  return window;
}

bool NumberIsOne(const OpCall& call, size_t index) {
  if (index >= call.inputs.size()) return true;  // the schema's default
  const Argument& argument = call.inputs[index];
  if (argument.kind == Argument::Kind::kInt) return argument.integer == 1;
  if (argument.kind == Argument::Kind::kDouble) return argument.real == 1.0;
  return false;
}

uint64_t NthTensorElements(const OpCall& call, size_t wanted) {
  for (const Argument& argument : call.inputs) {
    const auto tensors = TensorsOf(call, argument);
    if (tensors.empty()) continue;
    if (wanted == 0) return Elements(tensors);
    --wanted;
  }
  return 0;
}

uint64_t LastTensorElements(const OpCall& call) {
  for (size_t i = call.inputs.size(); i-- > 0;) {
    const auto tensors = TensorsOf(call, call.inputs[i]);
    if (!tensors.empty()) return Elements(tensors);
  }
  return 0;
}

FlopCount Count(const OpRule& rule, const OpCall& call) {
  switch (rule.flop) {
    case FlopRule::kNone:
      return {};
    case FlopRule::kPerResult:
      return OnVector(Product(rule.per, Elements(ResultTensors(call))));
    case FlopRule::kPerOperand:
      return OnVector(Product(rule.per, Elements(FirstTensors(call, call.inputs))));
    case FlopRule::kPerSecond:
      return OnVector(Product(rule.per, NthTensorElements(call, 1)));
    case FlopRule::kPerLast:
    case FlopRule::kPerLastIfFlag:
      return OnVector(Accumulates(rule, call) ? Product(rule.per, LastTensorElements(call)) : 0);
    case FlopRule::kSum: {
      const uint64_t operand = Elements(FirstTensors(call, call.inputs));
      const uint64_t result = Elements(FirstTensors(call, call.outputs));
      return OnVector(operand > result ? operand - result : 0);
    }
    case FlopRule::kScaledAdd:
      return OnVector(Product(NumberIsOne(call, 2) ? 1 : 2, Elements(ResultTensors(call))));
    case FlopRule::kAddProduct:
      return OnVector(Product(NumberIsOne(call, 3) ? 2 : 3, Elements(ResultTensors(call))));
    case FlopRule::kConvolution:
      return OnMatrix(Convolution(call));
    case FlopRule::kConvolutionBackward:
      return OnMatrix(ConvolutionBackwardFlop(call));
    case FlopRule::kMatmul:
      return Matmul(call);
    case FlopRule::kLinear:
      return OnMatrix(Linear(call));
    case FlopRule::kMatVec:
      return OnMatrix(MatVec(call));
    case FlopRule::kAttention:
      return Attention(call, 0, false);
    case FlopRule::kAttentionBackward:
      return Attention(call, 1, true);
    case FlopRule::kMultiHead:
      return MultiHead(call);
    case FlopRule::kRnn:
      return Rnn(call, false);
    case FlopRule::kRnnBackward:
      return Rnn(call, true);
    case FlopRule::kBatchNorm:
      return OnVector(BatchNormFlop(call));
    case FlopRule::kNormalise:
      return OnVector(Normalise(call));
    case FlopRule::kLinearAlgebra:
      return OnVector(LinearAlgebraFlop(call));
    case FlopRule::kSampledProduct:
      return OnVector(SampledProduct(call));
    case FlopRule::kPoolWindow:
      return OnVector(Product(Window(call, 1), Elements(ResultTensors(call))));
    case FlopRule::kPoolWindowBackward:
      return OnVector(Product(Window(call, 2), Elements(FirstTensors(call, call.inputs))));
  }
  return {};
}

}  // namespace

bool Accumulates(const OpRule& rule, const OpCall& call) noexcept {
  return rule.flop == FlopRule::kPerLast || (rule.flop == FlopRule::kPerLastIfFlag && Flag(call, 0));
}

bool IsComplex(DType dtype) noexcept {
  return dtype == DType::kComplexHalf || dtype == DType::kComplexFloat || dtype == DType::kComplexDouble;
}

bool IsFloating(DType dtype) noexcept {
  return dtype == DType::kHalf || dtype == DType::kBFloat16 || dtype == DType::kFloat || dtype == DType::kDouble ||
         IsComplex(dtype);
}

DType ResultType(const OpCall& call) noexcept {
  const auto results = ResultTensors(call);
  return results.empty() ? DType::kOther : results[0].dtype;
}

Recurrence CountRecurrence(const OpRule& rule, const OpCall& call) noexcept {
  Recurrence recurrence;
  if (rule.flop != FlopRule::kRnn && rule.flop != FlopRule::kRnnBackward) return recurrence;
  const TensorView* input = InputTensor(call, 0);
  const uint64_t time_steps = RnnTimeSteps(call);
  if (input == nullptr || time_steps == 0 || Size(*input, -1) == 0) return recurrence;
  const uint64_t tokens = input->numel / Size(*input, -1), batch = tokens / time_steps;
  uint64_t layers = 0;
  const TensorView* recurrent = nullptr;
  for (const TensorView& weight : RnnWeights(call)) {
    if (weight.rank != 2) continue;
    ++layers;
    if (layers == 2) recurrent = &weight;
  }
  layers /= 2;
  if (layers == 0 || recurrent == nullptr) return recurrence;
  const uint64_t gates = Product(batch, Size(*recurrent, 0)), state = Product(batch, Size(*recurrent, 1));
  const bool backward = rule.flop == FlopRule::kRnnBackward;
  recurrence.launches = Product(layers, time_steps);
  recurrence.product_flop = Product(2, batch, recurrent->numel);
  recurrence.gates_flop = Product(backward ? 6 : 3, gates);
  const uint64_t element = input->element_size;
  recurrence.product_bytes = Product(element, SaturatingAdd(recurrent->numel, SaturatingAdd(gates, state)));
  recurrence.gates_bytes = Product(element, SaturatingAdd(gates, Product(2, state)));
  return recurrence;
}

FlopCount CountFlop(const OpRule& rule, const OpCall& call) noexcept {
  // kOther is what FP8 arrives as, and only the FP8 product takes it.
  const DType dtype = ResultType(call);
  if (!IsFloating(dtype) && rule.unit != Unit::kFp8Matmul) return {};
  FlopCount count = Count(rule, call);
  if (IsComplex(dtype)) {
    count.model = SaturatingMultiply(4, count.model);
    count.matrix = SaturatingMultiply(4, count.matrix);
    count.vector = SaturatingMultiply(4, count.vector);
  }
  return count;
}

}  // namespace rfinject::estimate
