#include "cli/report/advice/chains.h"

#include <algorithm>
#include <array>
#include <string>

#include "cli/report/advice/signature_shapes.h"

namespace rfinject::cli {
namespace {

// Operators that torch.compile's kernels compute element by element, without "_" and "_backward" behind, between
// spaces.
constexpr std::string_view kElementwise =
    " abs add addcdiv addcmul ceil clamp clamp_min copy cos div elu eq erf exp floor ge gelu gt hardsigmoid hardswish "
    "hardtanh le leaky_relu lerp log log1p logical_not lt masked_fill maximum minimum mul native_dropout ne neg pow "
    "reciprocal relu rsqrt rsub sigmoid silu sin softplus sqrt sub tanh threshold where _to_copy ";
// Those that end such a kernel, or begin the next one, whose loop goes over the same elements.
constexpr std::string_view kReductions = " sum mean var var_mean amax amin _softmax _log_softmax ";
// What names of products, convolutions and attention have in them.
constexpr std::array<std::string_view, 5> kProducts = {"mm", "conv", "linear", "attention", "rnn"};

bool IsAmong(std::string_view names, std::string_view op) {
  return names.find(std::string(" ").append(op).append(" ")) != names.npos;
}

std::string_view WithoutPass(std::string_view op) {
  for (const std::string_view end : {"_backward_data", "_backward", "_"}) {
    if (op.size() > end.size() && op.ends_with(end)) return op.substr(0, op.size() - end.size());
  }
  return op;
}

}  // namespace

void ElementwiseChains::Add(const LaunchKey& key, std::string_view op, double launches, double ns) {
  const bool counts = key.phase == Phase::kForward || key.phase == Phase::kBackward ||
                      key.phase == Phase::kRecompute || key.phase == Phase::kEval;
  if (!counts || key.layer.model.empty() || launches <= 0) return;
  if (key.node.find("AccumulateGrad") != std::string::npos) return;
  const std::string_view name = WithoutPass(op);
  const bool reduces = IsAmong(kReductions, name);
  const bool product = std::ranges::any_of(kProducts, [op](auto part) { return op.find(part) != op.npos; });
  if (!product && !reduces && !IsAmong(kElementwise, name)) return;
  Chain& chain = chains_[{key.layer, key.phase}];
  chain.parted = chain.parted || product;
  if (product) return;
  double bytes = 0;
  for (const SignatureShape& shape : ShapesOf(key.signature)) {
    bytes = std::max(bytes, shape.elements * shape.element_bytes);
  }
  chain.launches[std::string(name)] += launches;
  chain.ns += ns;
  chain.bytes = std::max(chain.bytes, bytes);
  chain.reduces = chain.reduces || reduces;
}

// A model without parameters is a loss, which is not compiled with the model.
bool ElementwiseChains::IsOne(const LayerKey& layer, const Chain& chain, const Run& run) {
  if (chain.parted || chain.launches.empty()) return false;
  const auto model = run.models.find(layer.model);
  if (model == run.models.end() || model->second.parameters == 0) return false;
  const std::string below = layer.path.empty() ? "" : layer.path + ".";
  const auto child = run.layers.upper_bound({layer.model, below});
  return child == run.layers.end() || child->first.model != layer.model || !child->first.path.starts_with(below);
}

ElementwiseChains::Times ElementwiseChains::Find(const Run& run, const WhatIf& what_if) const {
  Times all;
  for (const auto& [place, chain] : chains_) {
    if (!IsOne(place.first, chain, run)) continue;
    double launches = 0, calls = chain.launches.begin()->second;
    for (const auto& [op, times] : chain.launches) {
      launches += times;
      calls = std::min(calls, times);
    }
    if (launches < 2 * calls) continue;
    const bool backward = place.second == Phase::kBackward;
    double ns = what_if.Elementwise((backward ? 3 : 2) * chain.bytes);
    // The gradients of a layer's own weights are sums over what a kernel of its own reads again.
    const auto layer = run.layers.find(place.first);
    const bool weights = layer != run.layers.end() && layer->second.parameters > 0;
    if (backward && chain.reduces && weights) ns += what_if.Elementwise(2 * chain.bytes);
    all.launches += launches;
    all.ns += chain.ns;
    all.fused_ns += std::min(chain.ns, calls * ns);
  }
  return all;
}

}  // namespace rfinject::cli
