// cuDNN's recurrent layers, by the CPU's operators for them. The backward runs the forward again and asks the CPU's
// autograd for its derivatives.
#include <array>
#include <cstdint>
#include <vector>

#include "virtual_gpu/values/value_cook.h"
#include "virtual_gpu/values/value_recipes.h"

namespace rfinject {
namespace {

// The operands of both operators, by what they are.
struct Layers {
  RawValue input, weights, first_hidden, first_cell, weight_stride;
  int64_t mode;  // cudnnRNNMode_t
  RawValue count, batch_first, dropout, train, bidirectional, batch_sizes;
};

constexpr int64_t kLstm = 2;
constexpr std::array<const char*, 4> kNames = {"aten::rnn_relu.input", "aten::rnn_tanh.input", "aten::lstm.input",
                                               "aten::gru.input"};

// Between layers the CPU would draw from the program's generator, and sequences of several lengths come in another
// form.
bool IsComputable(const CpuKernels& kernels, const Layers& layers) {
  const bool drops = kernels.Real(layers.dropout) != 0 && (layers.train.payload & 1) != 0 &&
                     static_cast<int64_t>(layers.count.payload) > 1;
  const bool packed = kernels.IsList(layers.batch_sizes) && layers.batch_sizes.payload != 0 &&
                      kernels.Elements(layers.batch_sizes)->size() != 0;
  return !drops && !packed && layers.mode >= 0 && layers.mode < static_cast<int64_t>(kNames.size()) &&
         kernels.IsList(layers.weights) && layers.weights.payload != 0;
}

// The operands as tensors of the CPU.
struct Taken {
  RawValue input, hidden, cell;
  std::vector<RawValue> weights;
};

Taken Take(const CpuKernels& kernels, Cook* cook, const Layers& layers) {
  Taken taken = {cook->Take(layers.input), cook->Take(layers.first_hidden), cook->TakeIfThere(layers.first_cell), {}};
  const RawVector* list = kernels.Elements(layers.weights);
  for (const RawValue* weight = list->begin; weight != list->end; ++weight)
    taken.weights.push_back(cook->Take(*weight));
  return taken;
}

// Output, last hidden state and last cell, which only LSTMs have.
std::array<RawValue, 3> Run(const CpuKernels& kernels, Cook* cook, const Layers& layers, const Taken& taken) {
  if (!cook->good()) return {kernels.None(), kernels.None(), kernels.None()};
  RawValue state = taken.hidden;
  if (layers.mode == kLstm) {
    const std::array<RawValue, 2> both = {taken.hidden, taken.cell};
    state = cook->List(layers.weights, both.data(), both.size());
  }
  const RawValue weights = cook->List(layers.weights, taken.weights.data(), taken.weights.size());
  // A layer has as many tensors: two matrices, a projection, and two biases.
  const bool biases = static_cast<int64_t>(layers.weight_stride.payload) >= 4;
  return cook->CallForAll(kNames[static_cast<size_t>(layers.mode)],
                          {taken.input, state, weights, kernels.Boolean(biases), layers.count, layers.dropout,
                           layers.train, layers.bidirectional, layers.batch_first});
}

// While one lives, the thread's operators are noted for a backward.
class Gradients {
 public:
  explicit Gradients(const CpuKernels& kernels) : kernels_(kernels), before_(kernels.SetGradients(true)) {}
  ~Gradients() { kernels_.SetGradients(before_); }
  Gradients(const Gradients&) = delete;
  Gradients& operator=(const Gradients&) = delete;

 private:
  const CpuKernels& kernels_;
  bool before_;
};

}  // namespace

// (input, weight, weight_stride0, weight_buf, hx, cx, mode, hidden_size, proj_size, num_layers, batch_first, dropout,
// train, bidirectional, batch_sizes, dropout_state)
bool RecurrentLayers(const CpuKernels& kernels, std::span<const RawValue> in, std::span<const RawValue> out) {
  if (in.size() != 16 || out.size() < 3) return false;
  const Layers layers = {in[0], in[1],  in[4],  in[5],  in[2],  static_cast<int64_t>(in[6].payload),
                         in[9], in[10], in[11], in[12], in[13], in[14]};
  if (!IsComputable(kernels, layers)) return false;
  Cook cook(kernels);
  const std::array<RawValue, 3> results = Run(kernels, &cook, layers, Take(kernels, &cook, layers));
  cook.Give(results[0], out[0]);
  cook.Give(results[1], out[1]);
  if (layers.mode == kLstm) cook.Give(results[2], out[2]);
  return cook.good();
}

// (input, weight, weight_stride0, weight_buf, hx, cx, output, grad_output, grad_hy, grad_cy, mode, hidden_size,
// proj_size, num_layers, batch_first, dropout, train, bidirectional, batch_sizes, dropout_state, reserve,
// output_mask)
bool RecurrentLayersBackward(const CpuKernels& kernels, std::span<const RawValue> in, std::span<const RawValue> out) {
  if (in.size() != 22 || out.size() != 4) return false;
  const Layers layers = {in[0],  in[1],  in[4],  in[5],  in[2],  static_cast<int64_t>(in[10].payload),
                         in[13], in[14], in[15], in[16], in[17], in[18]};
  if (!IsComputable(kernels, layers)) return false;
  Cook cook(kernels);
  const Gradients wanted(kernels);
  const Taken taken = Take(kernels, &cook, layers);
  const auto follow = [&](const RawValue& tensor) {
    if (kernels.IsTensor(tensor)) cook.Call("aten::requires_grad_", {tensor, kernels.Boolean(true)});
  };
  follow(taken.input);
  follow(taken.hidden);
  follow(taken.cell);
  for (const RawValue& weight : taken.weights) follow(weight);
  const std::array<RawValue, 3> results = Run(kernels, &cook, layers, taken);
  const size_t states = layers.mode == kLstm ? 3 : 2;
  for (size_t i = 0; i < states; ++i) {  // what they find adds up
    if (!kernels.IsTensor(in[7 + i])) continue;
    const RawValue grad = cook.Take(in[7 + i]);
    cook.CallForAll("aten::_backward", {results[i], cook.List(layers.weights, nullptr, 0), grad,
                                        kernels.Boolean(true), kernels.Boolean(false)});
  }
  const auto give = [&](const RawValue& leaf, const RawValue& to) {
    if (cook.good() && kernels.IsTensor(to)) cook.Give(kernels.GradientOf(leaf), to);
  };
  give(taken.input, out[0]);
  give(taken.hidden, out[1]);
  if (layers.mode == kLstm) give(taken.cell, out[2]);
  if (cook.good() && kernels.IsList(out[3]) && out[3].payload != 0) {
    const RawVector* list = kernels.Elements(out[3]);
    for (size_t i = 0; i < list->size() && i < taken.weights.size(); ++i) give(taken.weights[i], list->begin[i]);
  }
  return cook.good();
}

}  // namespace rfinject
