// The JSON of a report, schema rfinject.report/1: an interface that only grows. Units are in the names. What has no
// value is null.
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/report/facts/schemas.h"
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
      .Add("name", TextCell(report.device.name))
      .Add("roofs_of", TextCell(machine.name))
      .Add("dram_bytes_per_s", machine.name.empty() ? Cell{} : Cell{machine.dram_bytes_per_s})
      .Add("pcie_bytes_per_s", KnownCell(machine.pcie_bytes_per_s))
      .Add("nvlink_bytes_per_s", KnownCell(machine.nvlink_bytes_per_s))
      .Add("sm_clock_hz", KnownCell(report.device.sm_hz))
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

// The facts with this name and a point before their own, as an object; nothing where none is known.
Data MembersData(const Report& report, std::string_view object) {
  Data members = Data::Object();
  bool any = false;
  for (const RunFact& fact : AllRunFacts()) {
    const std::string_view name = fact.info.name;
    if (!name.starts_with(object) || name.substr(object.size(), 1) != ".") continue;
    Cell cell = fact.value(report);
    any = any || !std::holds_alternative<std::monostate>(cell);
    members.Add(name.substr(object.size() + 1), std::move(cell));
  }
  return any ? std::move(members) : Data(Cell{});
}

Data SummaryData(const Report& report) {
  Data data = Data::Object();
  data.Add("headline", Data::ListOf(HeadlineText(report)));
  for (const ListedFact& listed : FactsIn(Schema::kSummary)) {
    if (listed.name == "theory") {
      data.Add("theory", TextCell(TheoryText(report)));
    } else if (listed.fact == nullptr) {
      data.Add(listed.name, MembersData(report, listed.name));
    } else {
      const Cell cell = listed.ValueIn(report);
      if (listed.unknown != Unknown::kLeftOut || !std::holds_alternative<std::monostate>(cell))
        data.Add(listed.name, cell);
    }
  }
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

// What is merely kept of a run, by the names of the schema. An amount of 0 is not known, but for a count.
template <typename Record>
Data KeptData(const Record& record) {
  Data data = Data::Object(/*one_line=*/true);
  trace::ForEachField(&record, [&data](std::string_view name, const auto* field) {
    if constexpr (std::is_same_v<decltype(field), const std::string*>) {
      data.Add(name, TextCell(*field));
    } else if (name == "count") {
      data.Add(name, Cell{static_cast<uint64_t>(*field)});
    } else if (name != "run") {
      data.Add(name, KnownCount(static_cast<uint64_t>(*field)));
    }
  });
  return data;
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
      .Add("steps", Cell{report.steps.count})
      .Add("batch_size", KnownCount(report.run.batch_size))
      .Add("policy", std::move(policy_data))
      .Add("tier", TierOf(report.process.tier).letter)
      .Add("tier_text", TierText(report.process.tier))
      .Add("models", Data::ListOf(report.process.models, ModelData))
      .Add("process_count", Cell{report.process.count})
      .Add("processes", Data::ListOf(report.process.list, ProcessData))
      .Add("summary", SummaryData(report))
      .Add("advice", ShownAdviceData(report))
      .Add("alarms", Data::ListOf(report.alarms, AlarmData))
      .Add("diagnostics", Data::ListOf(DiagnosticsText(report), DiagnosticData))
      .Add("drops", Data::ListOf(report.kept.drop, KeptData<trace::Drop>));
  // Added later than the others, and only there where the run has them.
  trace::ForEachList(
      [&data]<typename Record>(const std::vector<Record>* list) {
        constexpr bool kAbove = std::is_same_v<Record, DiagnosticInfo> || std::is_same_v<Record, trace::Drop>;
        if (kAbove || list->empty()) return;
        data.Add(std::string(trace::kKeptName<Record>) + "s", Data::ListOf(*list, KeptData<Record>));
      },
      &report.kept);
  data.Add("phases", DataOf(report, By::kPhase, report.phases)).Add("rows", DataOf(report, report.by, report.rows));
  if (report.by == By::kLayer) data.Add("layer_phases", DataOf(report, By::kLayer, report.layer_phases));
  if (report.by == By::kClass) data.Add("group_phases", DataOf(report, By::kClass, report.group_phases));
  return data;
}

}  // namespace rfinject::cli
