#include "cli/emit/html/page_columns.h"

#include <algorithm>
#include <array>

#include "cli/report/picture_data.h"

namespace rfinject::cli {
namespace {

// In the order of the page's table; columns that are not here come last, under their own names. Those with "per_step"
// in their names are the page's own, because people think in steps.
constexpr auto kLooks = std::to_array<Look>({
    {"layer", "Layer", ValueKind::kText},
    {"phase", "Phase", ValueKind::kText},
    {"op", "Operator", ValueKind::kText},
    {"time_share", "Time share", ValueKind::kShare, "%", 100, true},
    {"time_per_step_ns", "GPU time a step", ValueKind::kUnit, "s", 1e-9, true},
    {"attainable_share", "Of attainable", ValueKind::kShare, "%", 100},
    {"slack_per_step_ns", "Slack a step", ValueKind::kUnit, "s", 1e-9, true},
    {"bound", "Bound by", ValueKind::kText},
    {"oi_flop_per_byte", "OI", ValueKind::kPlain, "FLOP/B"},
    {"performance_flop_per_s", "Performance", ValueKind::kUnit, "FLOP/s"},
    {"attainable_flop_per_s", "Attainable", ValueKind::kUnit, "FLOP/s"},
    {"bandwidth_bytes_per_s", "DRAM bandwidth", ValueKind::kUnit, "B/s"},
    {"kernel", "Kernel", ValueKind::kText},
    {"launches", "Launches", ValueKind::kCount, "", 1, true},
    {"time_ns", "GPU time, all steps", ValueKind::kUnit, "s", 1e-9, true},
    {"flop", "FLOP", ValueKind::kUnit, "FLOP", 1, true},
    {"model_flop", "Model FLOP", ValueKind::kUnit, "FLOP", 1, true},
    {"executed_flop_per_model_flop", "FLOP / model FLOP", ValueKind::kPlain},
    {"flop_reason", "FLOP explained by", ValueKind::kText},
    {"counters_of", "FLOP and bytes of", ValueKind::kText},
    {"dram_bytes", "DRAM bytes", ValueKind::kUnit, "B", 1, true},
    {"compulsory_bytes", "Compulsory bytes", ValueKind::kUnit, "B", 1, true},
    {"dram_bytes_per_compulsory_byte", "DRAM / compulsory bytes", ValueKind::kPlain},
    {"l2_bytes", "L2 bytes", ValueKind::kUnit, "B", 1, true},
    {"l1_bytes", "L1 bytes", ValueKind::kUnit, "B", 1, true},
    {"oi_l2_flop_per_byte", "OI of L2", ValueKind::kPlain, "FLOP/B"},
    {"oi_l1_flop_per_byte", "OI of L1", ValueKind::kPlain, "FLOP/B"},
    {"flop_fp64", "FLOP in FP64", ValueKind::kUnit, "FLOP", 1, true},
    {"flop_fp32", "FLOP in FP32", ValueKind::kUnit, "FLOP", 1, true},
    {"flop_fp16", "FLOP in FP16", ValueKind::kUnit, "FLOP", 1, true},
    {"flop_tf32_tc", "FLOP in TF32 tensor", ValueKind::kUnit, "FLOP", 1, true},
    {"flop_fp16_tc", "FLOP in FP16 tensor", ValueKind::kUnit, "FLOP", 1, true},
    {"flop_bf16_tc", "FLOP in BF16 tensor", ValueKind::kUnit, "FLOP", 1, true},
    {"flop_fp8_tc", "FLOP in FP8 tensor", ValueKind::kUnit, "FLOP", 1, true},
    {"flop_fp64_tc", "FLOP in FP64 tensor", ValueKind::kUnit, "FLOP", 1, true},
    {"flop_mma_tc", "FLOP over the mma path", ValueKind::kUnit, "FLOP", 1, true},
    {"least_compute_time_ns", "Least compute time", ValueKind::kUnit, "s", 1e-9, true},
    {"least_memory_time_ns", "Least memory time", ValueKind::kUnit, "s", 1e-9, true},
    {"least_time_ns", "Least time", ValueKind::kUnit, "s", 1e-9, true},
    {"slack_ns", "Slack, all steps", ValueKind::kUnit, "s", 1e-9, true},
    {"time_with_counters_ns", "GPU time with counters", ValueKind::kUnit, "s", 1e-9, true},
    {"time_ci95_relative", "Time ±, 95 %", ValueKind::kShare, "%", 100},
    {"dram_bytes_ci95_relative", "Bytes ±, 95 %", ValueKind::kShare, "%", 100},
    {"model", "Model", ValueKind::kText},
    {"class", "Class", ValueKind::kText},
    {"parameters", "Parameters", ValueKind::kCount},
    {"parameter_bytes", "Parameters, bytes", ValueKind::kUnit, "B"},
    {"input_shape", "Input", ValueKind::kText},
    {"input_bytes", "Input, bytes", ValueKind::kUnit, "B"},
    {"output_shape", "Output", ValueKind::kText},
    {"output_bytes", "Output, bytes", ValueKind::kUnit, "B"},
    {"signature", "Signature", ValueKind::kText},
});

}  // namespace

std::vector<PageColumn> PageColumns(bool several_models) {
  std::vector<Column> columns(IdentityColumns().begin(), IdentityColumns().end());
  columns.insert(columns.end(), NumberColumns().begin(), NumberColumns().end());
  columns.push_back({"time_per_step_ns",
                     [](const Report& report, const Row& row) { return Cell{PerStep(report, row.sums.time_ns)}; }});
  columns.push_back({"slack_per_step_ns", [](const Report& report, const Row& row) {
                       return report.machine.name.empty() ? Cell{} : Cell{PerStep(report, row.derived.slack_ns)};
                     }});
  std::vector<PageColumn> page;
  for (const Look& look : kLooks) {
    const auto column =
        std::find_if(columns.begin(), columns.end(), [&](const Column& c) { return c.name == look.name; });
    if (column == columns.end()) continue;
    page.push_back({look, column->cell});
    columns.erase(column);
  }
  for (const Column& column : columns) page.push_back({{column.name, column.name}, column.cell});
  if (several_models) {  // without it the layers' names are not unique
    const auto model =
        std::find_if(page.begin(), page.end(), [](const PageColumn& column) { return column.look.name == "model"; });
    std::rotate(page.begin() + 1, model, model + 1);
  }
  return page;
}

}  // namespace rfinject::cli
