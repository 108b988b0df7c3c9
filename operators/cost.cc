#include "operators/cost.h"

#include <algorithm>

#include "operators/bytes.h"
#include "operators/flop.h"
#include "operators/op_table.h"
#include "operators/operands.h"

namespace rfinject::estimate {
namespace {

// Nanoseconds for `amount` at `rate` per second, rounded up so that amount/time is never above rate. long double has
// the 64 bits that the integers have.
uint64_t CeilNs(uint64_t amount, double rate) {
  if (amount == 0) return 0;
  if (!(rate > 0)) return UINT64_MAX;
  const long double exact = static_cast<long double>(amount) * 1e9L / static_cast<long double>(rate);
  if (exact >= static_cast<long double>(UINT64_MAX)) return UINT64_MAX;
  uint64_t ns = static_cast<uint64_t>(exact);
  while (static_cast<long double>(ns) * static_cast<long double>(rate) < static_cast<long double>(amount) * 1e9L)
    ++ns;
  return ns;
}

// The longer of CeilNs and the floor, which most operators of a small model do not reach: to see that takes a tenth
// of the time of a division in long double. The margin is many times what rounding to double is worth.
uint64_t CeilNsOrFloor(uint64_t amount, double rate) {
  constexpr double kMargin = 1 - 1e-9;
  if (static_cast<double>(amount) * 1e9 < rate * (static_cast<double>(kLaunchFloorNs) * kMargin))
    return kLaunchFloorNs;
  return std::max(kLaunchFloorNs, CeilNs(amount, rate));
}

}  // namespace

uint64_t EstimateTimeNs(const std::array<uint64_t, kPrecisionCount>& executed_flop, uint64_t dram_bytes,
                        const Gpu& gpu) noexcept {
  uint64_t ns = CeilNsOrFloor(dram_bytes, gpu.dram_bytes_per_s);
  for (size_t p = 0; p < kPrecisionCount; ++p) ns = std::max(ns, CeilNsOrFloor(executed_flop[p], gpu.peak[p]));
  return ns;
}

uint64_t EstimateTransferNs(uint64_t bytes, double bytes_per_s) noexcept { return CeilNsOrFloor(bytes, bytes_per_s); }

Cost EstimateCost(const OpCall& call, const Gpu& gpu, PrecisionPolicy policy) noexcept {
  Cost cost;
  const auto found = FindOp(call.name);
  cost.known = found.has_value();
  const OpRule rule = found.value_or(OpRule{});
  if (rule.kind == OpKind::kFree) return cost;
  const bool leaf = call.launched || (!call.children_counted && !IsViewOrQuery(call));
  if (rule.kind == OpKind::kLeafIfChildless && !leaf) return cost;

  const Traffic traffic = CountBytes(rule, call);
  cost.compulsory_bytes = SaturatingAdd(traffic.read, traffic.write);
  cost.dram_bytes = cost.compulsory_bytes;
  // An operator that reads and writes nothing has empty tensors, and launches nothing.
  if (cost.compulsory_bytes == 0 && !call.launched) return cost;
  cost.kernel = true;
  if (rule.bytes == BytesRule::kCopy && call.crosses_devices) {
    // The host converts types before the copy, or the GPU after it, so that as many bytes travel as are written
    // (aten/src/ATen/native/cuda/Copy.cu). On the GPU's side they are written once, or read once.
    cost.pcie_bytes = cost.compulsory_bytes = cost.dram_bytes = traffic.write;
    cost.time_ns =
        std::max(EstimateTransferNs(cost.pcie_bytes, gpu.pcie_bytes_per_s), EstimateTimeNs({}, cost.dram_bytes, gpu));
    return cost;
  }

  FlopCount flop = CountFlop(rule, call);
  const DType dtype = ResultType(call);
  if (const Recurrence steps = CountRecurrence(rule, call); steps.launches != 0) {
    const auto repeat = [&](std::string_view kernel, Unit unit, uint64_t amount, uint64_t bytes) {
      RepeatedCost one{.kernel = kernel,
                       .launches = steps.launches,
                       .flop = amount,
                       .product = unit != Unit::kVector,
                       .precision = UnitFor(unit, dtype, gpu, policy),
                       .bytes = bytes};
      std::array<uint64_t, kPrecisionCount> executed{};
      executed[static_cast<size_t>(one.precision)] = amount;
      one.time_ns = EstimateTimeNs(executed, bytes, gpu);
      return one;
    };
    cost.repeated = {repeat(": a time step's product", rule.unit, steps.product_flop, steps.product_bytes),
                     repeat(": a time step's gates", Unit::kVector, steps.gates_flop, steps.gates_bytes)};
    const auto take = [&](uint64_t& from, uint64_t each) {
      from -= std::min(from, SaturatingMultiply(each, steps.launches));
    };
    take(flop.matrix, steps.product_flop);
    take(flop.products, steps.product_flop);
    take(flop.vector, steps.gates_flop);
    flop.model = SaturatingAdd(flop.matrix, flop.vector);
  }
  cost.model_flop = flop.model;
  cost.product_flop = flop.products;
  cost.hidden_flop = flop.hidden;
  const auto add = [&](Unit unit, uint64_t amount) {
    uint64_t& slot = cost.executed_flop[static_cast<size_t>(UnitFor(unit, dtype, gpu, policy))];
    slot = SaturatingAdd(slot, amount);
  };
  if (flop.matrix != 0) add(rule.unit, flop.matrix);
  if (flop.vector != 0) add(Unit::kVector, flop.vector);
  cost.time_ns = EstimateTimeNs(cost.executed_flop, cost.dram_bytes, gpu);
  return cost;
}

}  // namespace rfinject::estimate
