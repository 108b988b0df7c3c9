#include "collector/estimate/compiled_work.h"

#include <cstddef>
#include <exception>
#include <span>
#include <string_view>

#include "operators/cost.h"
#include "operators/flop.h"
#include "operators/op_call.h"
#include "operators/operands.h"

namespace rfinject::estimate {
namespace {

constexpr int64_t kLockWaitNs = 1'000'000'000;

// What Inductor puts between operators, none of which is arithmetic on floating point numbers: conversions, counting
// up, and random numbers, whose integers are not counted in eager operators either.
bool IsBetweenOperators(std::string_view name) {
  return name == "prims::convert_element_type" || name == "prims::iota" || name == "prims::device_put" ||
         name.starts_with("prims::inductor_");
}

}  // namespace

void CompiledCost::LeaveBlocks(uint64_t left, const Gpu& gpu) noexcept {
  if (left >= mask.blocks) return;
  const auto hidden = [&](uint64_t flop) {
    const auto part = static_cast<long double>(mask.blocks - left) / static_cast<long double>(mask.blocks);
    return static_cast<uint64_t>(static_cast<long double>(flop) * part);
  };
  hidden_flop = SaturatingAdd(hidden_flop, hidden(masked_products));
  for (size_t p = 0; p < kPrecisionCount; ++p) executed_flop[p] -= hidden(masked_flop[p]);
  SetBytes(bytes, gpu);
}

void CompiledCost::SetBytes(uint64_t amount, const Gpu& gpu) noexcept {
  bytes = amount;
  time_ns = EstimateTimeNs(executed_flop, amount, gpu);
}

uint32_t CompiledKernels::Define(const CompiledWork& work, const Gpu& gpu, PrecisionPolicy policy,
                                 UnknownOperators& unknown) noexcept try {
  CompiledCost cost;
  cost.kernel = recorder_.Intern(work.kernel);
  cost.flop_known = work.why_no_flop.empty();
  cost.bytes_known = work.bytes_known;
  cost.written = work.written;
  // Half of a sum would look like one.
  for (const OpCall& node : cost.flop_known ? work.nodes : std::span<const OpCall>()) {
    if (IsBetweenOperators(node.name)) continue;
    const Cost one = EstimateCost(node, gpu, policy);
    if (!one.kernel) continue;
    if (!one.known && IsFloating(ResultType(node))) unknown.Note(node.name);
    cost.model_flop = SaturatingAdd(cost.model_flop, one.model_flop);
    cost.product_flop = SaturatingAdd(cost.product_flop, one.product_flop);
    cost.hidden_flop = SaturatingAdd(cost.hidden_flop, one.hidden_flop);
    for (size_t p = 0; p < kPrecisionCount; ++p) {
      cost.executed_flop[p] = SaturatingAdd(cost.executed_flop[p], one.executed_flop[p]);
    }
    if (work.mask != nullptr && node.name.find("flex_attention") != std::string_view::npos) {
      cost.mask = *work.mask;
      cost.masked_products = one.product_flop;
      cost.masked_flop = one.executed_flop;
    }
  }
  cost.SetBytes(work.bytes, gpu);
  if (!lock_.LockFor(kLockWaitNs)) return 0;
  const HeldLock held(lock_);
  costs_.push_back(cost);
  return static_cast<uint32_t>(costs_.size());
} catch (const std::exception&) {
  recorder_.CountDrop("costs of compiled kernels");
  return 0;
}

CompiledCost CompiledKernels::Find(uint32_t number, uint32_t kernel) noexcept {
  if (number == 0 || !lock_.LockFor(kLockWaitNs)) return {};
  const HeldLock held(lock_);
  if (number > costs_.size() || costs_[number - 1].kernel != kernel) return {};
  return costs_[number - 1];
}

}  // namespace rfinject::estimate
