#include "collector/cupti/metrics.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>

#include "gpus/chips.h"
#include "gpus/counters.h"

namespace rfinject::cupti {
namespace {

constexpr std::string_view kOff = "_sparsity_off";
constexpr std::string_view kOn = "_sparsity_on";

bool ConsumePrefix(std::string_view* text, std::string_view prefix) {
  if (text->substr(0, prefix.size()) != prefix) return false;
  text->remove_prefix(prefix.size());
  return true;
}

bool ConsumeSuffix(std::string_view* text, std::string_view suffix) {
  if (text->size() < suffix.size() || text->substr(text->size() - suffix.size()) != suffix) return false;
  text->remove_suffix(suffix.size());
  return true;
}

// A tensor metric by the parts of its name: sm__ops_path_tensor_[op_OP_]src_SRC[_dst_DST][_sparsity_{off,on}].
struct TensorName {
  std::string op, src, dst;
};

enum class Sparsity { kTotal, kOff, kOn };

bool ParseTensorName(std::string_view name, TensorName* parts, Sparsity* sparsity) {
  if (!ConsumePrefix(&name, kTensorOpsPrefix)) return false;
  if (name.find("_realtime") != std::string_view::npos) return false;  // those are PM sampling's
  *sparsity = ConsumeSuffix(&name, kOff)  ? Sparsity::kOff
              : ConsumeSuffix(&name, kOn) ? Sparsity::kOn
                                          : Sparsity::kTotal;
  if (ConsumePrefix(&name, "op_")) {
    size_t end = name.find("_src_");
    if (end == std::string_view::npos) return false;
    parts->op = name.substr(0, end);
    name.remove_prefix(end + 1);
  }
  if (!ConsumePrefix(&name, "src_")) return false;
  size_t dst = name.find("_dst_");
  parts->src = name.substr(0, dst);
  if (dst != std::string_view::npos) parts->dst = name.substr(dst + 5);
  return true;
}

// Returns the precision that a source type counts as; nothing for a path for which Precision has no value.
std::optional<Precision> PrecisionOf(std::string_view src) {
  if (src == "tf32") return Precision::kTf32Tensor;
  if (src == "fp16") return Precision::kFp16Tensor;
  if (src == "fp16_bf16_tf32") return Precision::kFp16Tensor;  // Turing: one name, but it only has fp16
  if (src == "bf16") return Precision::kBf16Tensor;
  if (src == "fp64") return Precision::kFp64Tensor;
  // Blackwell's f8f6f4 instructions run all three formats at one rate, and one counter counts them.
  if (src == "fp8" || src == "fp4_fp6_fp8") return Precision::kFp8Tensor;
  return std::nullopt;
}

// The position in the order in which training uses the paths, so that the first group alone answers most jobs:
// PyTorch's default is TF32 convolutions, fp16 accumulating in fp32 is classic AMP, bf16 is what newer jobs use.
int Likelihood(const FlopMetric& metric) {
  switch (metric.precision) {
    case Precision::kTf32Tensor:
      return 0;
    case Precision::kFp16Tensor:
      return metric.name.find("_dst_fp16") != std::string::npos ? 3 : 1;
    case Precision::kBf16Tensor:
      return 2;
    case Precision::kFp64Tensor:
      return 4;
    default:
      return 5;
  }
}

struct Variants {
  bool off = false, on = false;
};

// The metrics of one source type, by instruction family ("" stands for all families together), then by destination
// type.
using Family = std::map<std::string, std::map<std::string, Variants>>;

void SelectTensorByName(const std::map<std::string, Family>& sources, ChipMetrics* metrics) {
  for (const auto& [src, family] : sources) {
    const auto precision = PrecisionOf(src);
    if (!precision) continue;  // int8, fp4: not measured
    auto has_off = [](const auto& destinations) {
      return std::any_of(destinations.begin(), destinations.end(), [](const auto& d) { return d.second.off; });
    };
    // The sums over all families are the fewest metrics, and are taken if they come with the dense half; else the
    // single families are taken, if those come with it; else there is only the total.
    auto whole = family.find("");
    bool by_family = false;
    if (whole == family.end()) {
      by_family = true;
    } else if (!has_off(whole->second)) {
      by_family = std::any_of(family.begin(), family.end(),
                              [&](const auto& f) { return !f.first.empty() && has_off(f.second); });
    }
    for (const auto& [op, destinations] : family) {
      if (op.empty() == by_family) continue;
      bool split = destinations.size() > 1 || destinations.begin()->first != "";
      for (const auto& [dst, variants] : destinations) {
        if (split && dst.empty()) continue;  // the sum of the others
        std::string name(kTensorOpsPrefix);
        if (!op.empty()) name += "op_" + op + "_";
        name += "src_" + src;
        if (!dst.empty()) name += "_dst_" + dst;
        metrics->tensor.push_back({name + (variants.off ? std::string(kOff) : "") + ".sum", *precision, 1});
        if (variants.off && variants.on) metrics->sparse.push_back({name + std::string(kOn) + ".sum", *precision, 1});
      }
    }
  }
}

// Takes the tensor terms of the chip's formula in place of those chosen by name, if this CUPTI has all of the dense
// ones.
void SelectTensorByFormula(std::string_view chip, const std::unordered_set<std::string_view>& known,
                           ChipMetrics* metrics) {
  std::vector<FlopMetric> tensor, sparse;
  for (const FlopTerm& term : FlopFormula(chip)) {
    if (IsSassMetric(term.metric)) continue;
    const bool has = known.count(BaseName(term.metric)) != 0;
    if (!has && !term.sparse) return;
    if (has) {
      (term.sparse ? sparse : tensor)
          .push_back({std::string(term.metric), term.precision, static_cast<uint32_t>(term.flop_per_count)});
    }
  }
  if (tensor.empty()) return;
  metrics->tensor = std::move(tensor);
  metrics->sparse = std::move(sparse);
}

void SortByLikelihood(std::vector<FlopMetric>* metrics) {
  std::sort(metrics->begin(), metrics->end(), [](const FlopMetric& a, const FlopMetric& b) {
    return std::pair(Likelihood(a), a.name) < std::pair(Likelihood(b), b.name);
  });
}

}  // namespace

bool IsSassMetric(std::string_view name) { return name.find("_sass_") != std::string_view::npos; }

std::string_view BaseName(std::string_view name) { return name.substr(0, name.find('.')); }

ChipMetrics SelectMetrics(std::span<const std::string> names, std::string_view chip) {
  ChipMetrics metrics;
  std::unordered_set<std::string_view> known(names.begin(), names.end());
  std::optional<BaseQuantity> last;
  for (const BaseMetric& metric : kBaseMetrics) {
    if (last == metric.quantity || known.count(BaseName(metric.name)) == 0) continue;
    metrics.base.emplace_back(metric.name);
    last = metric.quantity;
  }
  for (std::string_view name : kClockMetrics) {
    if (known.count(BaseName(name)) != 0) metrics.clocks.emplace_back(name);
  }

  for (const std::span<const FlopTerm> terms :
       {std::span<const FlopTerm>(kScalarFlop), std::span<const FlopTerm>(kPackedFp32Flop)}) {
    for (const FlopTerm& term : terms) {
      if (known.count(BaseName(term.metric)) == 0) continue;
      metrics.scalar.push_back(
          {std::string(term.metric), term.precision, static_cast<uint32_t>(term.flop_per_count)});
    }
  }

  std::map<std::string, Family> sources;
  for (const std::string& name : names) {
    TensorName parts;
    Sparsity sparsity;
    if (!ParseTensorName(name, &parts, &sparsity)) continue;
    Variants& variants = sources[parts.src][parts.op][parts.dst];
    variants.off |= sparsity == Sparsity::kOff;
    variants.on |= sparsity == Sparsity::kOn;
  }
  SelectTensorByName(sources, &metrics);
  SelectTensorByFormula(chip, known, &metrics);
  SortByLikelihood(&metrics.tensor);
  SortByLikelihood(&metrics.sparse);
  const auto instruction_flop = static_cast<uint32_t>(FlopPerTensorInstruction(chip));
  if (metrics.tensor.empty() && instruction_flop != 0 && known.count(BaseName(kTensorInstructionsMetric)) != 0) {
    metrics.tensor.push_back({std::string(kTensorInstructionsMetric), Precision::kFp16Tensor, instruction_flop});
  }
  return metrics;
}

}  // namespace rfinject::cupti
