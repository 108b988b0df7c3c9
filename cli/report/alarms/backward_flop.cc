#include "cli/report/alarms/backward_flop.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "cli/report/alarms/findings.h"
#include "cli/report/alarms/invariants.h"
#include "cli/report/keys/quantity.h"

namespace rfinject::cli {
namespace {

bool IsAttention(std::string_view op) { return op.find("attention") != op.npos; }

// Products of matrices and convolutions, for which the chain rule says how many more of them the backward has. What
// it needs for sums, norms and tables has no such rule. An operator without a name may be one.
bool IsProduct(std::string_view op) {
  if (op.empty() || IsAttention(op)) return true;
  for (const std::string_view part : {"mm", "conv", "linear", "matmul"}) {
    if (op.find(part) != op.npos) return true;
  }
  return false;
}

// "aten::native_layer_norm" for "NativeLayerNormBackward0"; empty where the name is not that of a derivative.
std::string OperatorOf(std::string_view node) {
  const size_t end = node.rfind("Backward");
  if (end == node.npos || end == 0) return {};
  std::string op = "aten::";
  for (size_t i = 0; i < end; ++i) {
    const auto letter = static_cast<unsigned char>(node[i]);
    if (i != 0 && std::isupper(letter) != 0) op += '_';
    op += static_cast<char>(std::tolower(letter));
  }
  return op;
}

struct Layer {
  double forward = 0, backward = 0;
  double again = 0;  // of the backward: operators of the forward that run again
  bool attention = false;
  // A gradient penalty has a backward of the backward, whose nodes are of another kind (MmBackward0 beside
  // AddmmBackward0, ConvolutionBackwardBackward0): how much that needs the forward does not say.
  std::set<std::string> nodes;

  double most() const { return attention ? kAttentionBackwardOverForward : kBackwardOverForwardHigh; }
  double excess() const { return std::max(0.0, backward - most() * forward); }
  bool judged() const { return forward > 0 && nodes.size() <= 1; }
};

struct Products {
  bool known = false;
  std::map<LayerKey, Layer> layers;
  double backward = 0;
  double forward_without_layer = 0, backward_without_layer = 0;
  // Of operators that are no products, in a layer: launches in the forward, and of their derivatives.
  std::map<std::pair<LayerKey, std::string>, std::pair<uint64_t, uint64_t>> others;

  void Add(const Run& run);
};

// The operator whose derivative `key` launches, which is one kernel each time (threshold_backward): it is named after
// the operator, or the node is.
std::array<std::string, 2> OperatorsOf(const LaunchKey& key) {
  const size_t end = key.op.find("_backward");
  if (end == key.op.npos) return {};
  return {OperatorOf(key.node), key.op.substr(0, end)};
}

void Products::Add(const Run& run) {
  std::set<std::tuple<LayerKey, std::string, std::string>> forwards;  // operators, with their operands
  for (const auto& [key, stats] : run.launches) {
    if (key.phase != Phase::kForward) continue;
    forwards.insert({key.layer, key.op, key.signature});
    if (IsProduct(key.op)) continue;
    const size_t in_place = key.op.ends_with('_') ? 1 : 0;
    others[{key.layer, key.op.substr(0, key.op.size() - in_place)}].first += stats.launches;
  }
  for (const auto& [key, stats] : run.launches) {
    const auto flop = stats.metrics.find(std::string(kMetricModelFlop));
    if (flop == stats.metrics.end()) continue;
    known = true;
    const bool in_backward = key.phase == Phase::kBackward;
    if (!IsProduct(key.op)) {
      if (!in_backward) continue;
      for (const std::string& op : OperatorsOf(key)) {
        const auto of = others.find({key.layer, op});
        if (of == others.end()) continue;
        of->second.second += stats.launches;
        break;
      }
      continue;
    }
    const double sum = static_cast<double>(flop->second.sum);
    if (key.layer.model.empty()) {
      // Functions in a training loop are in no layer, and in no phase that is known.
      if (key.phase == Phase::kForward || key.phase == Phase::kOther) forward_without_layer += sum;
      if (in_backward) backward_without_layer += sum;
    }
    Layer& layer = layers[key.layer];
    layer.attention |= IsAttention(key.op);
    if (key.phase == Phase::kForward) layer.forward += sum;
    if (!in_backward) continue;
    layer.nodes.insert(key.node);
    layer.backward += sum;
    backward += sum;
    // The gradient of a product is a plain product, so that one with a bias is one of the forward.
    const bool of_forward = key.op.find("addmm") != key.op.npos || key.op.find("baddbmm") != key.op.npos ||
                            key.op.find("linear") != key.op.npos || key.op == "aten::convolution";
    if (of_forward && forwards.contains({key.layer, key.op, key.signature})) layer.again += sum;
  }
}

// Whether several backwards of one forward (retain_graph, a gradient for each loss) explain what the layers have too
// much: each of these has a whole number of products, and the derivatives of some other operators ran several times,
// too.
bool RanSeveralTimes(const Products& products) {
  constexpr double kTolerance = 0.05;  // gradients of biases
  for (const auto& [key, layer] : products.layers) {
    if (key.model.empty() || !layer.judged() || layer.excess() <= kBackwardUnexplained * products.backward) continue;
    // Attention's backward is five products where the forward has two.
    const double ratio = layer.backward / layer.forward / (layer.attention ? 2.5 : 1);
    if (std::abs(ratio - std::round(ratio)) > kTolerance * ratio) return false;
  }
  return std::ranges::any_of(products.others, [](const auto& other) {
    const auto [forward, backward] = other.second;
    return forward != 0 && backward >= 2 * forward;
  });
}

}  // namespace

BackwardFlop CheckBackwardFlop(const Run& run) {
  Products products;
  products.Add(run);
  BackwardFlop result{.known = products.known, .findings = {}};
  // A recording may lack launches, at its ends or where the profiler lost some. Layer by layer that is seen; in the
  // one sum of a recording that knows no layers it is not told from a mistake.
  const bool one_sum = run.key.source == SourceKind::kImported && run.tier == kTierNamesOnly;
  if (!products.known || one_sum) return result;
  const double tolerated = kBackwardUnexplained * products.backward;
  // What layers' forwards may still need, and what the layers cannot have asked for.
  double wanted = 0, excess = 0;
  for (const auto& [key, layer] : products.layers) {
    if (key.model.empty()) continue;
    wanted += std::max(0.0, 2 * layer.forward - layer.backward);
    if (layer.judged()) excess += layer.excess();
  }
  // A product in no layer (a loss in the training loop, functions without modules) has its backward in no layer. What
  // the layers lack and no function asked for has lost its layer.
  const double functions = products.forward_without_layer;
  const double lost = std::min(wanted, products.backward_without_layer - 2 * functions);
  if (products.backward > 0 && lost > tolerated) {
    result.findings.push_back({0, AlarmOf(BackwardWithoutLayer{lost / products.backward})});
  }
  const double forward_lost = std::max(0.0, 2 * functions - products.backward_without_layer);
  const bool several = std::min(excess, forward_lost) <= tolerated && RanSeveralTimes(products);
  for (const auto& [key, layer] : products.layers) {
    if (key.model.empty() || !layer.judged()) continue;
    // A layer of some elements has a bias that is as much work as its product.
    if (layer.again <= tolerated && (several || layer.excess() <= tolerated)) continue;
    result.findings.push_back(
        {layer.backward, AlarmOf(OddBackward{layer.backward / layer.forward, false, layer.most()},
                                 AlarmPlace{key.model, key.path, Phase::kBackward, ""})});
  }
  return result;
}

}  // namespace rfinject::cli
