#include "cli/report/facts/attribution.h"

#include <algorithm>
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

}  // namespace

void Attribution::Add(const LaunchKey& key, const LaunchStats& stats, double time_ns) {
  const bool outside = key.layer.model.empty();
  if (outside && key.phase == Phase::kOther) outside_ns_[UseOf(key.op.empty() ? key.kernel : key.op)] += time_ns;
  if (!NeedsLayer(key.phase)) return;
  const auto add = [&](Amount& to) { to.time_ns += time_ns, to.launches += stats.launches; };
  add(all_);
  if (!outside && !(tier_ == kTierNamesOnly && key.layer.path.empty())) add(of_layers_);
}

void Attribution::WriteTo(Report& report) const {
  constexpr size_t kOutsideOps = 3;
  if (all_.time_ns > 0) {
    report.attributed_share = of_layers_.time_ns / all_.time_ns;
  } else if (all_.launches > 0) {
    report.attributed_share = static_cast<double>(of_layers_.launches) / static_cast<double>(all_.launches);
  }
  report.unattributed_launches = all_.launches - of_layers_.launches;
  report.outside_ops = Longest(outside_ns_, kOutsideOps);
}

}  // namespace rfinject::cli
