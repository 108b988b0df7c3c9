// OpenMetrics text, for the textfile collector of Prometheus' node_exporter: a gauge a column of reports, with the
// run and the phase as labels. Values are sums over the measured steps, which are a gauge, too.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/export/export.h"
#include "cli/report/facts/run.h"
#include "cli/report/facts/run_name.h"
#include "cli/report/facts/schemas.h"
#include "cli/report/rows/column.h"
#include "cli/text/cell_text.h"
#include "cli/text/code_points.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kPrefix = "rfinject_";

// A label's value, or a help text.
std::string Escaped(std::string_view text) {
  std::string result;
  for (const char c : PrintableText(text)) {
    if (c == '\\' || c == '"') result += '\\';
    result += c;
  }
  return result;
}

void AddLabel(std::string_view name, std::string_view value, std::string* labels) {
  if (value.empty()) return;
  *labels += (labels->empty() ? "" : ",") + std::string(name) + "=\"" + Escaped(value) + "\"";
}

class OpenMetricsExporter : public Exporter {
 public:
  explicit OpenMetricsExporter(WriteBytes write) : write_(std::move(write)) {}

  absl::Status Add(const ExportedRun& run) override {
    const Report& report = run.layers;
    const ProcessInfo process = ProcessOf(run);
    std::string labels;
    AddLabel("network", ModelName(report.run, report.process.list), &labels);
    AddLabel("mode", ModeOf(report), &labels);
    AddLabel("gpu", GpuTitle(report.run), &labels);
    AddLabel("source", SourceName(report.run.source), &labels);
    AddLabel("job", run.job, &labels);
    AddLabel("host", process.host, &labels);
    AddLabel("rank", run.run.processes == 1 ? std::to_string(process.rank) : "", &labels);
    AddLabel("batch_size", report.run.batch_size > 0 ? std::to_string(report.run.batch_size) : "", &labels);
    // This tells two runs apart that are alike in all other labels. The time when they began is no label, so that the
    // next run of a job continues the same series.
    AddLabel("run", std::to_string(++runs_), &labels);
    for (const ListedFact& listed : FactsIn(Schema::kOpenMetrics)) {
      if (listed.fact == nullptr) {
        Put(listed.name, "When the process began, ns since 1970", labels,
            KnownCount(static_cast<uint64_t>(std::max<int64_t>(process.start_unix_ns, 0))));
      } else {
        Put(listed.name, HelpOf(listed.fact->info), labels, listed.ValueIn(report));
      }
    }
    const RowSet phases = RowsOf(report, report.phases);
    for (const Column& column : phases.columns) {
      if (!column.info.data || column.info.kind == Kind::kText || !Keeps(By::kPhase, column.info.name)) continue;
      for (size_t i = 0; i < phases.size; ++i) {
        std::string of_phase = labels;
        AddLabel("phase", PhaseName(report.phases[i].phase), &of_phase);
        // A phase may be there once a model.
        AddLabel("model", report.phases[i].model, &of_phase);
        Put("phase_" + std::string(column.info.name), HelpOf(column.info), of_phase, column.value(i));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    for (const auto& [name, family] : families_) {
      const std::string full = std::string(kPrefix) + name;
      write_("# TYPE " + full + " gauge\n# HELP " + full + " " + Escaped(family.help) + "\n");
      write_(family.lines);
    }
    write_("# EOF\n");
    return absl::OkStatus();
  }

 private:
  struct Family {
    std::string help, lines;
  };

  static std::string HelpOf(const ColumnInfo& info) {
    const std::string_view what = info.title.empty() ? info.help : info.title;
    return std::string(what) + (info.unit.empty() ? "" : ", " + std::string(info.unit));
  }

  void Put(std::string_view name, const std::string& help, const std::string& labels, const Cell& cell) {
    if (!std::holds_alternative<uint64_t>(cell) && !std::holds_alternative<double>(cell)) return;
    const std::string value = NumberText(NumberIn(cell));
    if (value.empty()) return;
    Family& family = families_[std::string(name)];
    family.help = help;
    family.lines += std::string(kPrefix) + std::string(name) + "{" + labels + "} " + value + "\n";
  }

  const WriteBytes write_;
  std::map<std::string, Family> families_;
  uint64_t runs_ = 0;
};

}  // namespace

std::unique_ptr<Exporter> MakeOpenMetricsExporter(WriteBytes write) {
  return std::make_unique<OpenMetricsExporter>(std::move(write));
}

}  // namespace rfinject::cli
