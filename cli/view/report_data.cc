// The JSON of a report, schema rfinject.report/1: an interface that only grows. Units are in the names. What has no
// value is null.
#include <string>
#include <utility>
#include <vector>

#include "cli/view/advice_view.h"
#include "cli/view/report_view.h"
#include "cli/words/words.h"

namespace rfinject::cli {
namespace {

// The columns of machines; those that rows of this grouping never have are left out.
RowSet DataOf(const Report& report, By by, const std::vector<Row>& rows) {
  RowSet set = WithConstants({{"source", std::string(SourceName(report.run.source))}}, RowsOf(report, rows));
  std::erase_if(set.columns,
                [by](const Column& column) { return !column.info.data || !Keeps(by, column.info.name); });
  return set;
}

// A setting of the program: 0 is unknown, 1 off, 2 on.
Cell Tristate(uint32_t value) { return value == 0 ? Cell{} : Cell{value == 2}; }

Data DeviceData(const Report& report) {
  const Machine& machine = report.machine;
  return Data::Object()
      .Add("name", TextCell(report.device_name))
      .Add("roofs_of", TextCell(machine.name))
      .Add("dram_bytes_per_s", machine.name.empty() ? Cell{} : Cell{machine.dram_bytes_per_s})
      .Add("pcie_bytes_per_s", KnownCell(machine.pcie_bytes_per_s))
      .Add("nvlink_bytes_per_s", KnownCell(machine.nvlink_bytes_per_s))
      .Add("sm_clock_hz", KnownCell(report.sm_hz))
      .Add("empirical_roofs_source", TextCell(machine.empirical_source))
      .Add("devices", DevicesOf(report));
}

Data ProcessData(const ProcessInfo& process) {
  return Data::Object(/*one_line=*/true)
      .Add("host", TextCell(process.host))
      .Add("pid", Cell{uint64_t{process.pid}})
      .Add("rank", Cell{uint64_t{process.rank}})
      .Add("world_size", Cell{uint64_t{process.world_size}})
      .Add("job_id", TextCell(process.job_id))
      .Add("start_unix_ns", KnownCount(static_cast<uint64_t>(process.start_unix_ns)))
      .Add("rfinject_version", TextCell(process.rfinject_version))
      .Add("python_version", TextCell(process.python_version))
      .Add("torch_version", TextCell(process.torch_version))
      .Add("torchvision_version", TextCell(process.torchvision_version))
      .Add("cuda_version", TextCell(process.cuda_version))
      .Add("cudnn_version", TextCell(process.cudnn_version))
      .Add("driver_version", TextCell(process.driver_version))
      .Add("cupti_version", TextCell(process.cupti_version))
      .Add("tier_reason", TextCell(process.tier_reason))
      .Add("argv", Data::ListOf(process.argv));
}

Data PmSamplingData(const Report& report) {
  if (report.pm_windows == 0) return Cell{};
  return Data::Object()
      .Add("steps", Cell{report.pm_windows})
      .Add("dram_bytes_per_step", Cell{report.pm_dram_bytes})
      .Add("kernel_dram_bytes_per_step", KnownCell(report.kernel_dram_bytes_per_step))
      .Add("tensor_active_share", report.pm_tensor_share >= 0 ? Cell{report.pm_tensor_share} : Cell{});
}

Data SummaryData(const Report& report) {
  const StepWaits& waits = report.waits;
  Data data = Data::Object();
  data.Add("headline", Data::ListOf(HeadlineText(report)))
      .Add("samples", Cell{report.samples})
      .Add("step_wall_time_ns", Cell{report.step_wall_ns})
      .Add("step_gpu_time_ns", Cell{report.step_gpu_ns})
      .Add("optimizer_step_wall_time_p50_ns", KnownCell(waits.wall.p50_ns))
      .Add("optimizer_step_wall_time_p95_ns", KnownCell(waits.wall.p95_ns))
      .Add("optimizer_step_gpu_busy_ns", KnownCell(waits.gpu_busy.mean_ns))
      .Add("optimizer_step_data_wait_ns", KnownCell(waits.data_wait.mean_ns))
      .Add("optimizer_step_gpu_wait_ns", KnownCell(waits.gpu_wait.mean_ns));
  if (report.step_ns > 0) {
    data.Add("step_host_time_ns", Cell{report.step_host_ns})
        .Add("step_time_ns", Cell{report.step_ns})
        .Add("step_bound", report.launch_bound() ? "launch" : "GPU")
        .Add("step_gpu_waits_share", Cell{report.gpu_waits_share})
        .Add("step_host_of", HostTimeName(report.step_host_of));
  }
  data.Add("shortest_launch_ns", Cell{report.shortest_launch_ns})
      .Add("launch_floor_ns", Cell{report.launch_floor_ns})
      .Add("launch_interval_ns", Cell{report.launch_interval.ns})
      .Add("launch_interval_of", HostTimeName(report.launch_interval.of));
  if (!report.own_calibration.empty()) data.Add("own_calibration", report.own_calibration);
  data.Add("memory_peak_bytes", KnownCount(report.memory_peak_bytes))
      .Add("pm_sampling", PmSamplingData(report))
      .Add("attributed_share", Cell{report.attributed_share})
      .Add("unattributed_launches", Cell{report.unattributed_launches})
      .Add("counters_share", Cell{report.counters_share})
      .Add("backward_model_flop_per_forward_model_flop", KnownCell(report.backward_over_forward_model_flop))
      .Add("backward_flop_per_forward_flop", KnownCell(report.backward_over_forward_flop))
      .Add("backward_time_per_forward_time", KnownCell(report.backward_over_forward_time))
      .Add("theory", TextCell(TheoryText(report)));
  const std::vector<Row> total = {TotalRow(report)};
  RowSet sums = DataOf(report, report.by, total);
  std::erase_if(sums.columns,
                [](const Column& column) { return column.info.name == "source" || IsIdentity(column.info.name); });
  data.AddRow(sums, 0);
  return data;
}

Data ModelData(const ModelInfo& model) {
  return Data::Object(/*one_line=*/true)
      .Add("class", model.class_name)
      .Add("parameters", Cell{model.parameters})
      .Add("parameter_bytes", Cell{model.parameter_bytes})
      .Add("trainable_parameters", Cell{model.trainable_parameters});
}

Data AlarmData(const Alarm& alarm) {
  return Data::Object(/*one_line=*/true)
      .Add("id", alarm.id)
      .Add("text", alarm.text)
      .Add("causes", TextCell(alarm.causes))
      .Add("where", TextCell(AlarmWhere(alarm)));
}

Data DiagnosticData(const DiagnosticInfo& diagnostic) {
  static constexpr std::string_view kSeverities[] = {"info", "warning", "error"};
  return Data::Object(/*one_line=*/true)
      .Add("severity", kSeverities[static_cast<size_t>(diagnostic.severity)])
      .Add("id", diagnostic.id)
      .Add("text", diagnostic.text)
      .Add("remedy", TextCell(diagnostic.remedy));
}

Data DropData(const trace::Drop& drop) {
  return Data::Object(/*one_line=*/true).Add("what", drop.what).Add("count", Cell{drop.count});
}

Data GraphBreakData(const trace::GraphBreak& place) {
  return Data::Object(/*one_line=*/true)
      .Add("file", TextCell(place.file))
      .Add("line", KnownCount(place.line))
      .Add("function", TextCell(place.function))
      .Add("reason", TextCell(place.reason))
      .Add("count", Cell{place.count})
      .Add("bytes", KnownCount(place.bytes));
}

}  // namespace

Data ReportData(const Report& report) {
  const PolicyInfo& policy = report.run.policy;
  Data policy_data = Data::Object()
                         .Add("matmul_tf32", Tristate(policy.matmul_tf32))
                         .Add("cudnn_tf32", Tristate(policy.cudnn_tf32))
                         .Add("cudnn_benchmark", Tristate(policy.cudnn_benchmark))
                         .Add("cudnn_deterministic", Tristate(policy.cudnn_deterministic))
                         .Add("autocast_dtype", TextCell(policy.autocast_dtype));
  Data data = Data::Object();
  data.Add("schema", "rfinject.report/1")
      .Add("source", SourceName(report.run.source))
      .Add("collector", TextCell(report.run.collector))
      .Add("estimated_gpu", TextCell(report.run.estimated_gpu))
      .Add("device", DeviceData(report))
      .Add("roofs", RoofsOf(report))
      .Add("by", ByName(report.by))
      .Add("steps", Cell{report.steps})
      .Add("batch_size", KnownCount(report.run.batch_size))
      .Add("policy", std::move(policy_data))
      .Add("tier", TierOf(report.tier).letter)
      .Add("tier_text", TierText(report.tier))
      .Add("models", Data::ListOf(report.models, ModelData))
      .Add("process_count", Cell{report.process_count})
      .Add("processes", Data::ListOf(report.processes, ProcessData))
      .Add("summary", SummaryData(report))
      .Add("advice", ShownAdviceData(report))
      .Add("alarms", Data::ListOf(report.alarms, AlarmData))
      .Add("diagnostics", Data::ListOf(DiagnosticsText(report), DiagnosticData))
      .Add("drops", Data::ListOf(report.kept.drop, DropData));
  // Added later than the others, and only there for what was compiled.
  if (!report.kept.graph_break.empty()) {
    data.Add("graph_breaks", Data::ListOf(report.kept.graph_break, GraphBreakData));
  }
  data.Add("phases", DataOf(report, By::kPhase, report.phases)).Add("rows", DataOf(report, report.by, report.rows));
  if (report.by == By::kLayer) data.Add("layer_phases", DataOf(report, By::kLayer, report.layer_phases));
  if (report.by == By::kClass) data.Add("group_phases", DataOf(report, By::kClass, report.group_phases));
  return data;
}

}  // namespace rfinject::cli
