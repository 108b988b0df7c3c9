// The JSON of a report, schema rfinject.report/1: an interface that only grows. Units are in the names. What has no
// value is null. Several reports are one object of schema rfinject.reports/1 that holds them.
#include <string>
#include <vector>

#include "cli/emit/columns.h"
#include "cli/emit/emit.h"
#include "cli/emit/json_writer.h"

namespace rfinject::cli {
namespace {

std::string_view ByName(By by) {
  switch (by) {
    case By::kModel:
      return "model";
    case By::kPhase:
      return "phase";
    case By::kLayer:
      return "layer";
    case By::kOp:
      return "op";
    case By::kKernel:
      return "kernel";
  }
  return "";
}

// Which identity columns a row keeps; the others would be null in every row.
bool Keeps(By by, std::string_view column) {
  if (column == "model" || column == "phase") return true;
  switch (by) {
    case By::kModel:
      return column == "parameters" || column == "parameter_bytes";
    case By::kPhase:
      return false;
    case By::kOp:
      return column == "op";
    case By::kLayer:
      return column != "op" && column != "kernel" && column != "signature";
    case By::kKernel:
      return true;
  }
  return true;
}

void WriteRows(JsonWriter& json, std::string_view name, const Report& report, By by, const std::vector<Row>& rows) {
  json.Key(name);
  json.BeginArray();
  for (const Row& row : rows) {
    json.BeginObject(/*one_line=*/true);
    json.Member("source", SourceName(report.run.source));
    for (const Column& column : IdentityColumns()) {
      if (!Keeps(by, column.name)) continue;
      json.Key(column.name);
      json.CellValue(column.cell(report, row));
    }
    for (const Column& column : NumberColumns()) {
      json.Key(column.name);
      json.CellValue(column.cell(report, row));
    }
    json.EndObject();
  }
  json.EndArray();
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
  json.Key("sm_clock_hz");
  report.sm_hz > 0 ? json.Number(report.sm_hz) : json.Null();
  json.Optional("empirical_roofs_source", report.machine.empirical_source);
  json.EndObject();

  json.Key("roofs");
  json.BeginArray();
  for (const RoofLine& roof : report.roofs) {
    json.BeginObject(/*one_line=*/true);
    json.Member("label", roof.label);
    json.Optional("precision", roof.peak_flop_per_s > 0
                                   ? std::string(kPrecisionNames[static_cast<size_t>(roof.precision)])
                                   : std::string());
    json.Optional("path", roof.path);
    json.Member("level", roof.level);
    json.Member("kind", roof.kind);
    const auto known = [&](std::string_view name, double value) {
      json.Key(name);
      value > 0 ? json.Number(value) : json.Null();
    };
    known("peak_flop_per_s", roof.peak_flop_per_s);
    known("bytes_per_s", roof.bytes_per_s);
    known("ridge_flop_per_byte", roof.ridge_flop_per_byte);
    json.Key("used");
    json.Bool(roof.used);
    json.EndObject();
  }
  json.EndArray();
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
  for (const std::string& line : report.headline) json.String(line);
  json.EndArray();
  json.Member("samples", report.samples);
  json.Member("step_wall_time_ns", report.step_wall_ns);
  json.Member("step_gpu_time_ns", report.step_gpu_ns);
  json.Member("shortest_launch_ns", report.shortest_launch_ns);
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
    report.steps > 0 && report.total.dram_bytes > 0
        ? json.Number(report.total.dram_bytes / static_cast<double>(report.steps))
        : json.Null();
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
  json.Optional("theory", report.theory);
  Row total;
  total.sums = report.total;
  total.derived = report.total_derived;
  total.time_share = report.total.time_ns > 0 ? 1 : 0;
  for (const Column& column : NumberColumns()) {
    json.Key(column.name);
    json.CellValue(column.cell(report, total));
  }
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
  json.Member("tier", report.tier_text.substr(0, report.tier_text.find(':')));
  json.Member("tier_text", report.tier_text);
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
  json.Key("alarms");
  json.BeginArray();
  for (const Alarm& alarm : report.alarms) {
    json.BeginObject(/*one_line=*/true);
    json.Member("id", alarm.id);
    json.Member("text", alarm.text);
    json.Optional("causes", alarm.causes);
    json.Optional("where", alarm.where);
    json.EndObject();
  }
  json.EndArray();
  json.Key("diagnostics");
  json.BeginArray();
  for (const DiagnosticInfo& diagnostic : report.diagnostics) {
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
  WriteRows(json, "phases", report, By::kPhase, report.phases);
  WriteRows(json, "rows", report, report.by, report.rows);
  if (report.by == By::kLayer) WriteRows(json, "layer_phases", report, By::kLayer, report.layer_phases);
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
