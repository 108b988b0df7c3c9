#include "cli/report/facts/attribution.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace rfinject::cli {
namespace {

// Returns what an operator outside of all models is for, where its name tells; else the name.
std::string UseOf(const std::string& op) {
  const auto has = [&op](std::string_view part) { return op.find(part) != std::string::npos; };
  const auto is = [&op](std::string_view name) {
    return op.ends_with(name) && op.size() > name.size() && (op[op.size() - name.size() - 1] == ':');
  };
  if (has("::_amp_")) return "gradient scaling";
  if (has("_loss") || has("log_softmax") || has("binary_cross_entropy") || has("kl_div")) return "loss";
  if (is("norm") || is("linalg_vector_norm") || is("_foreach_norm")) return "clip_grad_norm";
  if (is("zero_") || is("_foreach_zero_")) return "zero_grad";
  return op;
}

// The operators that take longest, at most `most`; of equal ones the first by name.
std::vector<std::string> Longest(const absl::flat_hash_map<std::string, double>& ns, size_t most) {
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [op, time_ns] : ns) order.emplace_back(-time_ns, op);
  std::sort(order.begin(), order.end());
  if (order.size() > most) order.resize(most);
  std::vector<std::string> names;
  for (auto& [time_ns, op] : order) names.push_back(std::move(op));
  return names;
}

// Whether launches of this phase are those of a model's layers.
bool NeedsLayer(Phase phase) {
  return phase == Phase::kForward || phase == Phase::kBackward || phase == Phase::kRecompute || phase == Phase::kEval;
}

constexpr auto kAttributionFacts = std::to_array<FactOf<Attribution>>({
    {ShareColumn("attributed_share", "Part of the forward's and backward's GPU time that has a layer."),
     [](const Attribution& of) { return Cell{of.share}; }},
    {CountColumn("unattributed_launches", "Launches of forward and backward without a layer."),
     [](const Attribution& of) { return Cell{of.without_layer}; }},
    {ShareColumn("counters_share", "Part of the GPU time of kernels whose FLOP and bytes are known."),
     [](const Attribution& of) { return Cell{of.counters_share}; }},
});

}  // namespace

std::span<const FactOf<Attribution>> AttributionFacts() { return kAttributionFacts; }

void AttributionCollector::Add(const LaunchKey& key, const LaunchStats& stats, const KeyQuantities& quantities) {
  const double time_ns = quantities.sums.time_ns();
  constant_moves_ += quantities.constant_moves;
  if (!quantities.has_time) untimed_launches_ += stats.launches, ++untimed_keys_;
  // Inductor's names of what it makes: pointwise work, reductions of two kinds, templates, several in one.
  compiled_ |= key.kernel.starts_with("triton_") && key.kernel.find("_fused_") != std::string::npos;
  if (key.kernel.starts_with("Memcpy ")) {  // "Memcpy HtoD (Pinned -> Device)"
    if (key.kernel.find("Pinned") != std::string::npos) pinned_ns_ += time_ns;
    if (key.kernel.find("Pageable") != std::string::npos) pageable_ns_ += time_ns;
  }
  const bool outside = key.layer.model.empty();
  if (outside && key.phase == Phase::kOther) outside_ns_[UseOf(key.op.empty() ? key.kernel : key.op)] += time_ns;
  if (!NeedsLayer(key.phase)) return;
  const auto add = [&](Amount& to) { to.time_ns += time_ns, to.launches += stats.launches; };
  add(all_);
  // Where only names are known, a launch of the model itself has no layer.
  if (!outside && !(run_.tier == kTierNamesOnly && key.layer.path.empty())) add(of_layers_);
}

Attribution AttributionCollector::Found(const Sums& total) const {
  constexpr size_t kOutsideOps = 3;
  Attribution found{.without_layer = all_.launches - of_layers_.launches,
                    .outside_ops = Longest(outside_ns_, kOutsideOps),
                    .compiled = compiled_,
                    .pinned = pinned_ns_ > pageable_ns_,
                    .constant_moves = constant_moves_};
  if (all_.time_ns > 0) {
    found.share = of_layers_.time_ns / all_.time_ns;
  } else if (all_.launches > 0) {
    found.share = static_cast<double>(of_layers_.launches) / static_cast<double>(all_.launches);
  }
  if (total.time_ns() > 0) {
    found.counters_share = total.time_with_counters_ns() / total.time_ns();
    if (run_.key.source == SourceKind::kMeasured) {
      found.untimed_launches = untimed_launches_;
      found.untimed_keys = untimed_keys_;
    }
  }
  return found;
}

}  // namespace rfinject::cli
