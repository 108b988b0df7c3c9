#include "operators/flop.h"

#include <algorithm>
#include <cmath>

#include "operators/attention.h"
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

// A convolution in which each channel has filters of its own leaves nothing to tensor cores, which multiply channels
// by channels: torch's own kernels and cuDNN's run on CUDA cores (ATen, native/Convolution.cpp, is_depthwise).
FlopCount OnUnitFor(const TensorView& input, const TensorView& weight, uint64_t flop) {
  return Size(input, 1) > 1 && Size(weight, 1) == 1 ? OnVector(flop) : OnMatrix(flop);
}

FlopCount Convolution(const OpCall& call) {
  const TensorView* input = InputTensor(call, 0);
  const TensorView* weight = InputTensor(call, 1);
  const auto output = FirstTensors(call, call.outputs);
  if (input == nullptr || weight == nullptr || output.empty()) return {};
  const uint64_t elements = IsTransposedForward(call) ? input->numel : output[0].numel;
  return OnUnitFor(*input, *weight, Product(2, elements, WeightPerElement(*weight)));
}

// convolution_backward(grad_output, input, weight, …): gradients of input, weight and bias. Which are computed is
// seen in the results: what output_mask leaves out comes back undefined.
FlopCount ConvolutionBackwardFlop(const OpCall& call) {
  const TensorView* grad = InputTensor(call, 0);
  const TensorView* input = InputTensor(call, 1);
  const TensorView* weight = InputTensor(call, 2);
  if (grad == nullptr || input == nullptr || weight == nullptr) return {};
  const uint64_t elements = Flag(call, 0) ? input->numel : grad->numel;
  const uint64_t one = Product(2, elements, WeightPerElement(*weight));
  uint64_t sum = 0;
  for (size_t i = 0; i < 2 && i < call.outputs.size(); ++i) {
    if (!TensorsOf(call, call.outputs[i]).empty()) sum = SaturatingAdd(sum, one);
  }
  return OnUnitFor(*input, *weight, sum);
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

// _grouped_mm(a, b, offsets): products of several matrices. Where both are three-dimensional, they are a batch's.
// Else the groups divide the rows of a, the columns of b or what is summed over (both two-dimensional), and each
// element of a two-dimensional operand belongs to one group.
uint64_t GroupedMatmul(const OpCall& call) {
  const TensorView* a = InputTensor(call, 0);
  const TensorView* b = InputTensor(call, 1);
  if (a == nullptr || b == nullptr || a->rank < 2 || b->rank < 2) return 0;
  const bool by_columns = a->rank > b->rank;
  return by_columns ? Product(2, b->numel, Size(*a, -2)) : Product(2, a->numel, Size(*b, -1));
}

// Convention, whatever the library does: 5 N log2 N for N complex numbers, half of it where one side is real (Van
// Loan, "Computational Frameworks for the Fast Fourier Transform"; FFTW counts so, fftw.org/speed/method.html). N is
// the product of the dimensions that are transformed, of the real side where there is one.
uint64_t FftFlop(const OpCall& call) {
  const auto results = FirstTensors(call, call.outputs);
  const TensorView* input = InputTensor(call, 0);
  if (input == nullptr || results.empty()) return 0;
  const bool complex = IsComplex(input->dtype) && IsComplex(results[0].dtype);
  const TensorView& side = IsComplex(input->dtype) ? results[0] : *input;
  double n = 1;
  for (const int64_t dimension : IntsOf(call, 1)) n *= static_cast<double>(Size(side, static_cast<int>(dimension)));
  if (!(n > 1)) return 0;
  // Of long double, because glibc has given those of double a newer version, which old systems lack.
  const auto log2 = static_cast<double>(std::log2(static_cast<long double>(n)));
  return static_cast<uint64_t>(std::llround((complex ? 5.0 : 2.5) * static_cast<double>(side.numel) * log2));
}

// The elements of a vector for each pair of vectors of which a distance is taken: _cdist_forward(a, b, p),
// _cdist_backward(gradient, a, b, p, distance), _pdist_forward(a, p), _pdist_backward(gradient, a, p, distance). By
// ATen's native/cuda/DistanceKernel.cu: a difference, its square and a sum; the gradient times the difference over
// the distance, and a sum, in pdist two. Without the square where p is 1; a maximum is no FLOP.
uint64_t DistanceFlop(const OpCall& call) {
  const bool backward = NameHas(call, "backward"), of_two = NameHas(call, "cdist");
  const TensorView* vectors = InputTensor(call, backward ? 1 : 0);
  const auto pairs = backward ? FirstTensors(call, call.inputs) : FirstTensors(call, call.outputs);
  if (vectors == nullptr || pairs.empty()) return 0;
  const auto p = std::ranges::find(call.inputs, Argument::Kind::kDouble, &Argument::kind);
  const double norm = p == call.inputs.end() ? 2 : p->real;
  const uint64_t forward = norm == 1 ? 2 : std::isinf(norm) ? 1 : 3;
  return Product(backward ? (of_two ? 4 : 5) : forward, pairs[0].numel, Size(*vectors, -1));
}

// _embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, …), mode 0 a sum, 1
// a mean, 2 a maximum: rows of a bag are added up, and a mean divides each result. Backward each row's gradient is
// added to the table's; that of weights is a product of two rows each.
uint64_t EmbeddingBagFlop(const OpCall& call) {
  const uint64_t elements = LookedUp(call);
  if (NameHas(call, "per_sample_weights")) return Product(2, elements);
  if (NameHas(call, "backward")) return elements;
  constexpr size_t kMode = 4, kWeights = 6;
  const int64_t mode = kMode < call.inputs.size() ? call.inputs[kMode].integer : 0;
  if (mode > 1) return 0;
  const uint64_t results = Elements(FirstTensors(call, call.outputs));
  const uint64_t sums = mode == 1 ? elements : elements - std::min(elements, results);
  return InputTensor(call, kWeights) != nullptr ? SaturatingAdd(sums, elements) : sums;
}

// mv(matrix, v), addmv(c, matrix, v), dot(a, b).
uint64_t MatVec(const OpCall& call) {
  const TensorView* matrix = InputTensor(call, NameHas(call, "add") ? 1 : 0);
  return matrix == nullptr ? 0 : Product(2, matrix->numel);
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
      return Convolution(call);
    case FlopRule::kConvolutionBackward:
      return ConvolutionBackwardFlop(call);
    case FlopRule::kMatmul:
      return Matmul(call);
    case FlopRule::kLinear:
      return OnMatrix(Linear(call));
    case FlopRule::kGroupedMatmul:
      return OnMatrix(GroupedMatmul(call));
    case FlopRule::kMatVec:
      return OnMatrix(MatVec(call));
    case FlopRule::kAttention:
      return AttentionFlop(call, false);
    case FlopRule::kAttentionBackward:
      return AttentionFlop(call, true);
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
    case FlopRule::kFft:
      return OnVector(FftFlop(call));
    case FlopRule::kDistance:
      return OnVector(DistanceFlop(call));
    case FlopRule::kEmbeddingBag:
      return OnVector(EmbeddingBagFlop(call));
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

uint64_t LookedUp(const OpCall& call) noexcept {
  const TensorView* rows = InputTensor(call, 0);
  const TensorView* indices = InputTensor(call, NameHas(call, "per_sample_weights") ? 2 : 1);
  return rows == nullptr || indices == nullptr ? 0 : Product(indices->numel, Size(*rows, -1));
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
  // kOther is what FP8 arrives as, and only its product takes it; a product of INT8 has integers as its result.
  const DType dtype = ResultType(call);
  if (!IsFloating(dtype) && rule.unit != Unit::kFp8Matmul && rule.unit != Unit::kInt8Matmul) return {};
  FlopCount count = Count(rule, call);
  // Attention says itself what of it are products. Some products run on the CUDA cores, such as depthwise
  // convolutions.
  if (count.products == 0) count.products = count.matrix;
  if (count.products == 0 && rule.unit != Unit::kVector) count.products = count.vector;
  if (IsComplex(dtype) && rule.flop != FlopRule::kFft) {
    count.model = SaturatingMultiply(4, count.model);
    count.matrix = SaturatingMultiply(4, count.matrix);
    count.vector = SaturatingMultiply(4, count.vector);
    count.products = SaturatingMultiply(4, count.products);
  }
  return count;
}

}  // namespace rfinject::estimate
