#include "cli/emit/columns.h"

#include <array>
#include <charconv>
#include <cmath>

#include "cli/report/theory.h"

namespace rfinject::cli {
namespace {

Cell Text(const std::string& text) { return text.empty() ? Cell{} : Cell{text}; }
Cell Known(uint64_t value) { return value > 0 ? Cell{value} : Cell{}; }
// A ratio whose divisor is 0 has no value.
Cell Ratio(double value, double divisor) { return divisor > 0 ? Cell{value} : Cell{}; }

template <size_t kIndex>
Cell Flop(const Report&, const Row& row) {
  return row.sums.flop[kIndex];
}

constexpr auto kIdentity = std::to_array<Column>({
    {"model", [](const Report&, const Row& row) { return Text(row.model); }},
    {"phase", [](const Report&, const Row& row) { return Text(row.phase); }},
    {"layer",
     [](const Report& report, const Row& row) {
       // The root's own path is the empty one, which is not the same as none.
       const bool kept = report.by == By::kLayer || report.by == By::kKernel;
       return kept && !row.model.empty() ? Cell{row.layer} : Text(row.layer);
     }},
    {"op", [](const Report&, const Row& row) { return Text(row.op); }},
    {"kernel", [](const Report&, const Row& row) { return Text(row.kernel); }},
    {"signature", [](const Report&, const Row& row) { return Text(row.signature); }},
    {"class", [](const Report&, const Row& row) { return Text(row.class_name); }},
    {"input_shape", [](const Report&, const Row& row) { return Text(row.input_shape); }},
    {"output_shape", [](const Report&, const Row& row) { return Text(row.output_shape); }},
    {"parameters", [](const Report&, const Row& row) { return Cell{row.parameters}; }},
    {"parameter_bytes", [](const Report&, const Row& row) { return Cell{row.parameter_bytes}; }},
    {"input_bytes", [](const Report&, const Row& row) { return Known(ShapeBytes(row.input_shape)); }},
    {"output_bytes", [](const Report&, const Row& row) { return Known(ShapeBytes(row.output_shape)); }},
});

constexpr auto kNumbers = std::to_array<Column>({
    {"launches", [](const Report&, const Row& row) { return Cell{row.sums.launches}; }},
    {"time_ns", [](const Report&, const Row& row) { return Cell{row.sums.time_ns}; }},
    {"flop", [](const Report&, const Row& row) { return Cell{row.sums.total_flop()}; }},
    {"flop_fp64", Flop<0>},
    {"flop_fp32", Flop<1>},
    {"flop_fp16", Flop<2>},
    {"flop_tf32_tc", Flop<3>},
    {"flop_fp16_tc", Flop<4>},
    {"flop_bf16_tc", Flop<5>},
    {"flop_fp8_tc", Flop<6>},
    {"flop_fp64_tc", Flop<7>},
    {"flop_mma_tc",
     [](const Report&, const Row& row) {
       const double flop = row.sums.total_legacy_flop();
       return Ratio(flop, flop);
     }},
    {"model_flop", [](const Report&, const Row& row) { return Cell{row.sums.model_flop}; }},
    {"dram_bytes", [](const Report&, const Row& row) { return Cell{row.sums.dram_bytes}; }},
    {"compulsory_bytes", [](const Report&, const Row& row) { return Cell{row.sums.compulsory_bytes}; }},
    {"l2_bytes", [](const Report&, const Row& row) { return Ratio(row.sums.l2_bytes, row.sums.l2_bytes); }},
    {"l1_bytes", [](const Report&, const Row& row) { return Ratio(row.sums.l1_bytes, row.sums.l1_bytes); }},
    {"least_compute_time_ns",
     [](const Report& report, const Row& row) {
       return report.machine.name.empty() ? Cell{} : Cell{row.sums.least_compute_ns};
     }},
    {"least_memory_time_ns",
     [](const Report& report, const Row& row) {
       return report.machine.name.empty() ? Cell{} : Cell{row.sums.least_memory_ns};
     }},
    {"least_time_ns",
     [](const Report& report, const Row& row) {
       return report.machine.name.empty() ? Cell{} : Cell{row.sums.least_ns};
     }},
    {"time_with_counters_ns", [](const Report&, const Row& row) { return Cell{row.sums.time_with_counters_ns}; }},
    {"time_share", [](const Report&, const Row& row) { return Cell{row.time_share}; }},
    {"time_ci95_relative", [](const Report&, const Row& row) { return Ratio(row.time_ci, row.time_ci); }},
    {"dram_bytes_ci95_relative", [](const Report&, const Row& row) { return Ratio(row.bytes_ci, row.bytes_ci); }},
    {"oi_flop_per_byte",
     [](const Report&, const Row& row) { return Ratio(row.derived.oi_flop_per_byte, row.sums.dram_bytes); }},
    {"oi_l2_flop_per_byte",
     [](const Report&, const Row& row) { return Ratio(row.sums.total_flop() / row.sums.l2_bytes, row.sums.l2_bytes); }},
    {"oi_l1_flop_per_byte",
     [](const Report&, const Row& row) { return Ratio(row.sums.total_flop() / row.sums.l1_bytes, row.sums.l1_bytes); }},
    {"performance_flop_per_s",
     [](const Report&, const Row& row) { return Ratio(row.derived.performance_flop_per_s, row.sums.time_ns); }},
    {"bandwidth_bytes_per_s",
     [](const Report&, const Row& row) { return Ratio(row.derived.bandwidth_bytes_per_s, row.sums.time_ns); }},
    {"attainable_flop_per_s",
     [](const Report&, const Row& row) { return Ratio(row.derived.attainable_flop_per_s, row.sums.least_ns); }},
    {"attainable_share",
     [](const Report& report, const Row& row) {
       return report.machine.name.empty() ? Cell{} : Ratio(row.derived.attainable_share, row.sums.time_ns);
     }},
    {"slack_ns",
     [](const Report& report, const Row& row) {
       return report.machine.name.empty() ? Cell{} : Ratio(row.derived.slack_ns, row.sums.time_ns);
     }},
    {"bound",
     [](const Report&, const Row& row) {
       return row.sums.least_ns > 0 ? Cell{std::string(row.derived.memory_bound ? "memory" : "compute")} : Cell{};
     }},
    {"executed_flop_per_model_flop",
     [](const Report&, const Row& row) { return Ratio(row.derived.executed_over_model, row.sums.model_flop); }},
    {"flop_reason", [](const Report&, const Row& row) { return Text(std::string(ReasonOf(row))); }},
    {"dram_bytes_per_compulsory_byte",
     [](const Report&, const Row& row) {
       return row.sums.compulsory_bytes > 0 ? Cell{row.sums.dram_bytes / row.sums.compulsory_bytes} : Cell{};
     }},
    {"counters_of", [](const Report&, const Row& row) { return Text(row.counters_shared ? "layer" : ""); }},
    {"ideal_time_ns", [](const Report&, const Row& row) { return Ratio(row.sums.ideal_ns, row.sums.ideal_ns); }},
    {"time_low_ns", [](const Report&, const Row& row) { return Ratio(row.sums.low_ns, row.sums.low_ns); }},
    {"time_high_ns", [](const Report&, const Row& row) { return Ratio(row.sums.high_ns, row.sums.high_ns); }},
});

}  // namespace

std::span<const Column> IdentityColumns() { return kIdentity; }
std::span<const Column> NumberColumns() { return kNumbers; }

std::string NumberText(double value) {
  if (!std::isfinite(value)) return {};
  char text[64];
  constexpr double kExactIntegers = 9007199254740992;  // 2^53
  const std::to_chars_result result = value == std::floor(value) && std::abs(value) <= kExactIntegers
                                          ? std::to_chars(text, text + sizeof text, static_cast<int64_t>(value))
                                          : std::to_chars(text, text + sizeof text, value);
  return {text, result.ptr};
}

}  // namespace rfinject::cli
