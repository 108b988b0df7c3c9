// What an operator's name says beyond the rows of the table: namespaces, in-place and foreach forms, and what runs
// inside of others.
#include <algorithm>
#include <span>
#include <utility>

#include "operators/op_table.h"

namespace rfinject::estimate {
namespace {

constexpr std::string_view kAten = "aten::";
constexpr std::string_view kHigherOrder = "higher_order::";  // in compiled code alone
constexpr std::string_view kForeach = "_foreach_";

// The operators of these namespaces are not the GPU's. Collectives are bound by the interconnect, which the table of
// GPUs does not have: no estimate is better than a wrong one.
constexpr std::string_view kFreeNamespaces[] = {"c10d::", "_c10d_functional::", "profiler::", "prim::"};

using Pair = std::pair<std::string_view, std::string_view>;

// What stands beside `name`; empty where the table does not have it.
std::string_view Second(std::span<const Pair> table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &Pair::first);
  return found != table.end() ? found->second : std::string_view();
}

}  // namespace

std::optional<OpRule> FindOp(std::string_view name) noexcept {
  for (std::string_view prefix : kFreeNamespaces) {
    if (name.starts_with(prefix)) return OpRule{prefix, OpKind::kFree};
  }
  if (name.starts_with(kHigherOrder)) {
    const OpRule* rule = FindRow(name.substr(kHigherOrder.size()));
    return rule != nullptr ? std::optional(*rule) : std::nullopt;
  }
  if (!name.starts_with(kAten)) return std::nullopt;
  name.remove_prefix(kAten.size());
  if (const OpRule* rule = FindRow(name)) return *rule;
  const bool foreach = name.starts_with(kForeach);
  if (foreach) name.remove_prefix(kForeach.size());
  const OpRule* rule = FindRow(name);
  if (rule == nullptr && name.ends_with('_')) {
    name.remove_suffix(1);
    rule = FindRow(name);
  }
  if (rule == nullptr) return std::nullopt;
  OpRule found = *rule;
  // On the CPU each element of the list is an operator; on CUDA the whole list takes a few launches, and is counted
  // as one.
  if (foreach) found.kind = OpKind::kAtomic;
  return found;
}

}  // namespace rfinject::estimate

namespace rfinject {

std::string_view TangentProductOf(std::string_view name) noexcept {
  // The products by which the formulas of these operators in torch's derivatives.yaml multiply by tangents.
  constexpr estimate::Pair kProducts[] = {{"aten::mm", "aten::mm"},      {"aten::addmm", "aten::mm"},
                                          {"aten::bmm", "aten::bmm"},    {"aten::baddbmm", "aten::bmm"},
                                          {"aten::addbmm", "aten::bmm"}, {"aten::mv", "aten::mv"},
                                          {"aten::addmv", "aten::mv"},   {"aten::dot", "aten::dot"},
                                          {"aten::vdot", "aten::vdot"},  {"aten::convolution", "aten::convolution"}};
  return estimate::Second(kProducts, name);
}

std::string_view FusedBackwardOf(std::string_view name) noexcept {
  constexpr estimate::Pair kFused[] = {{"aten::lstm", "aten::lstm_backward"},
                                       {"aten::gru", "aten::gru_backward"},
                                       {"aten::rnn_tanh", "aten::rnn_tanh_backward"},
                                       {"aten::rnn_relu", "aten::rnn_relu_backward"}};
  return estimate::Second(kFused, name);
}

OpKind ClassifyOp(std::string_view name) noexcept {
  const auto rule = estimate::FindOp(name);
  return rule ? rule->kind : OpKind::kLeafIfChildless;
}

bool IsCopy(std::string_view name) noexcept {
  const auto rule = estimate::FindOp(name);
  return rule && rule->bytes == estimate::BytesRule::kCopy;
}

}  // namespace rfinject
