// The JSON of a report, schema rfinject.report/1: an interface that only grows. Units are in the names. What has no
// value is null. Several reports are one object of schema rfinject.reports/1 that holds them.
#include <string>
#include <utility>
#include <vector>

#include "cli/emit/advice.h"
#include "cli/emit/emit.h"
#include "cli/emit/json_writer.h"
#include "cli/emit/words.h"
#include "cli/report/column.h"

namespace rfinject::cli {
namespace {

// The columns of machines; those that rows of this grouping never have are left out.
RowSet DataOf(const Report& report, By by, const std::vector<Row>& rows) {
  RowSet set;
  set.size = rows.size();
  AppendConstant("source", std::string(SourceName(report.run.source)), &set);
  for (Column& column : RowsOf(report, rows).columns) set.columns.push_back(std::move(column));
  std::erase_if(set.columns,
                [by](const Column& column) { return !column.info.data || !Keeps(by, column.info.name); });
  return set;
}

void WriteTristate(JsonWriter& json, std::string_view name, uint32_t value) {
  json.Key(name);
  value == 0 ? json.Null() : json.Bool(value == 2);
}

void WriteDevice(JsonWriter& json, const Report& report) {
  json.Key("device");
  json.BeginObject();
  json.Optional("name", report.device_name);
  json.Optional("roofs_of", report.machine.name);
  json.Key("dram_bytes_per_s");
  report.machine.name.empty() ? json.Null() : json.Number(report.machine.dram_bytes_per_s);
  json.Key("pcie_bytes_per_s");
  report.machine.pcie_bytes_per_s > 0 ? json.Number(report.machine.pcie_bytes_per_s) : json.Null();
  json.Key("nvlink_bytes_per_s");
  report.machine.nvlink_bytes_per_s > 0 ? json.Number(report.machine.nvlink_bytes_per_s) : json.Null();
  json.Key("sm_clock_hz");
  report.sm_hz > 0 ? json.Number(report.sm_hz) : json.Null();
  json.Optional("empirical_roofs_source", report.machine.empirical_source);
  json.Rows("devices", DevicesOf(report));
  json.EndObject();

  json.Rows("roofs", RoofsOf(report));
}

void WriteProcesses(JsonWriter& json, const Report& report) {
  json.Member("process_count", report.process_count);
  json.Key("processes");
  json.BeginArray();
  for (const ProcessInfo& process : report.processes) {
    json.BeginObject(/*one_line=*/true);
    json.Optional("host", process.host);
    json.Member("pid", uint64_t{process.pid});
    json.Member("rank", uint64_t{process.rank});
    json.Member("world_size", uint64_t{process.world_size});
    json.Optional("job_id", process.job_id);
    json.Key("start_unix_ns");
    process.start_unix_ns == 0 ? json.Null() : json.Count(static_cast<uint64_t>(process.start_unix_ns));
    json.Optional("rfinject_version", process.rfinject_version);
    json.Optional("python_version", process.python_version);
    json.Optional("torch_version", process.torch_version);
    json.Optional("torchvision_version", process.torchvision_version);
    json.Optional("cuda_version", process.cuda_version);
    json.Optional("cudnn_version", process.cudnn_version);
    json.Optional("driver_version", process.driver_version);
    json.Optional("cupti_version", process.cupti_version);
    json.Optional("tier_reason", process.tier_reason);
    json.Key("argv");
    json.BeginArray();
    for (const std::string& argument : process.argv) json.String(argument);
    json.EndArray();
    json.EndObject();
  }
  json.EndArray();
}

void WriteSummary(JsonWriter& json, const Report& report) {
  json.Key("summary");
  json.BeginObject();
  json.Key("headline");
  json.BeginArray();
  for (const std::string& line : HeadlineText(report)) json.String(line);
  json.EndArray();
  json.Member("samples", report.samples);
  json.Member("step_wall_time_ns", report.step_wall_ns);
  json.Member("step_gpu_time_ns", report.step_gpu_ns);
  const auto part = [&](std::string_view name, const std::optional<double>& ns) {
    json.Key(name);
    ns ? json.Number(*ns) : json.Null();
  };
  part("optimizer_step_wall_time_p50_ns", report.waits.wall.p50_ns);
  part("optimizer_step_wall_time_p95_ns", report.waits.wall.p95_ns);
  part("optimizer_step_gpu_busy_ns", report.waits.gpu_busy.mean_ns);
  part("optimizer_step_data_wait_ns", report.waits.data_wait.mean_ns);
  part("optimizer_step_gpu_wait_ns", report.waits.gpu_wait.mean_ns);
  if (report.step_ns > 0) {
    json.Member("step_host_time_ns", report.step_host_ns);
    json.Member("step_time_ns", report.step_ns);
    json.Member("step_bound", std::string_view(report.launch_bound() ? "launch" : "GPU"));
  }
  json.Member("shortest_launch_ns", report.shortest_launch_ns);
  json.Member("launch_floor_ns", report.launch_floor_ns);
  if (!report.own_calibration.empty()) json.Member("own_calibration", std::string_view(report.own_calibration));
  json.Key("memory_peak_bytes");
  report.memory_peak_bytes == 0 ? json.Null() : json.Count(report.memory_peak_bytes);
  json.Key("pm_sampling");
  if (report.pm_windows == 0) {
    json.Null();
  } else {
    json.BeginObject();
    json.Member("steps", report.pm_windows);
    json.Member("dram_bytes_per_step", report.pm_dram_bytes);
    json.Key("kernel_dram_bytes_per_step");
    report.kernel_dram_bytes_per_step > 0 ? json.Number(report.kernel_dram_bytes_per_step) : json.Null();
    json.Key("tensor_active_share");
    report.pm_tensor_share >= 0 ? json.Number(report.pm_tensor_share) : json.Null();
    json.EndObject();
  }
  json.Member("attributed_share", report.attributed_share);
  json.Member("unattributed_launches", report.unattributed_launches);
  json.Member("counters_share", report.counters_share);
  const auto ratio = [&](std::string_view name, double value) {
    json.Key(name);
    value > 0 ? json.Number(value) : json.Null();
  };
  ratio("backward_model_flop_per_forward_model_flop", report.backward_over_forward_model_flop);
  ratio("backward_flop_per_forward_flop", report.backward_over_forward_flop);
  ratio("backward_time_per_forward_time", report.backward_over_forward_time);
  json.Optional("theory", TheoryText(report));
  const std::vector<Row> total = {TotalRow(report)};
  RowSet sums = DataOf(report, report.by, total);
  std::erase_if(sums.columns,
                [](const Column& column) { return column.info.name == "source" || IsIdentity(column.info.name); });
  json.Members(sums, 0);
  json.EndObject();
}

void WriteReport(JsonWriter& json, const Report& report) {
  json.BeginObject();
  json.Member("schema", "rfinject.report/1");
  json.Member("source", SourceName(report.run.source));
  json.Optional("collector", report.run.collector);
  json.Optional("estimated_gpu", report.run.estimated_gpu);
  WriteDevice(json, report);
  json.Member("by", ByName(report.by));
  json.Member("steps", report.steps);
  json.Key("batch_size");
  report.run.batch_size == 0 ? json.Null() : json.Count(report.run.batch_size);
  json.Key("policy");
  json.BeginObject();
  WriteTristate(json, "matmul_tf32", report.run.policy.matmul_tf32);
  WriteTristate(json, "cudnn_tf32", report.run.policy.cudnn_tf32);
  WriteTristate(json, "cudnn_benchmark", report.run.policy.cudnn_benchmark);
  WriteTristate(json, "cudnn_deterministic", report.run.policy.cudnn_deterministic);
  json.Optional("autocast_dtype", report.run.policy.autocast_dtype);
  json.EndObject();
  json.Member("tier", TierOf(report.tier).letter);
  json.Member("tier_text", TierText(report.tier));
  json.Key("models");
  json.BeginArray();
  for (const ModelInfo& model : report.models) {
    json.BeginObject(/*one_line=*/true);
    json.Member("class", model.class_name);
    json.Member("parameters", model.parameters);
    json.Member("parameter_bytes", model.parameter_bytes);
    json.Member("trainable_parameters", model.trainable_parameters);
    json.EndObject();
  }
  json.EndArray();
  WriteProcesses(json, report);
  WriteSummary(json, report);
  WriteAdviceMember(json, report);
  json.Key("alarms");
  json.BeginArray();
  for (const Alarm& alarm : report.alarms) {
    json.BeginObject(/*one_line=*/true);
    json.Member("id", alarm.id);
    json.Member("text", AlarmText(alarm));
    json.Optional("causes", AlarmCauses(alarm));
    json.Optional("where", AlarmWhere(alarm));
    json.EndObject();
  }
  json.EndArray();
  json.Key("diagnostics");
  json.BeginArray();
  for (const DiagnosticInfo& diagnostic : DiagnosticsText(report)) {
    static constexpr std::string_view kSeverities[] = {"info", "warning", "error"};
    json.BeginObject(/*one_line=*/true);
    json.Member("severity",
                kSeverities[diagnostic.severity < 0 || diagnostic.severity > 2 ? 2 : diagnostic.severity]);
    json.Member("id", diagnostic.id);
    json.Member("text", diagnostic.text);
    json.Optional("remedy", diagnostic.remedy);
    json.EndObject();
  }
  json.EndArray();
  json.Key("drops");
  json.BeginArray();
  for (const auto& [what, count] : report.drops) {
    json.BeginObject(/*one_line=*/true);
    json.Member("what", what);
    json.Member("count", count);
    json.EndObject();
  }
  json.EndArray();
  json.Rows("phases", DataOf(report, By::kPhase, report.phases));
  json.Rows("rows", DataOf(report, report.by, report.rows));
  if (report.by == By::kLayer) json.Rows("layer_phases", DataOf(report, By::kLayer, report.layer_phases));
  if (report.by == By::kClass) json.Rows("group_phases", DataOf(report, By::kClass, report.group_phases));
  json.EndObject();
}

}  // namespace

void EmitJson(std::span<const Report> reports, std::ostream& out) {
  JsonWriter json(out);
  if (reports.size() == 1) {
    WriteReport(json, reports.front());
    return;
  }
  json.BeginObject();
  json.Member("schema", "rfinject.reports/1");
  json.Key("reports");
  json.BeginArray();
  for (const Report& report : reports) WriteReport(json, report);
  json.EndArray();
  json.EndObject();
}

}  // namespace rfinject::cli
