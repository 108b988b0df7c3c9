// File: export.h
//
// Writes traces as files of other tools. An exporter is given one run after the other, as traces are read, and never
// holds more of them than its format requires.
//
//   const std::unique_ptr<Exporter> exporter = FindExport("sqlite")->make(write);
//   exporter->Add({path, job, run, reports...});
//   exporter->Finish();
#ifndef RFINJECT_CLI_EXPORT_EXPORT_H_
#define RFINJECT_CLI_EXPORT_EXPORT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "cli/profile/profile.h"
#include "cli/profile/step_span.h"
#include "cli/report/rows/row.h"

namespace rfinject::cli {

struct Report;

// What one trace says of one kind of run in it (training, validation): one rank, or those that were merged.
struct ExportedRun {
  std::string path;  // of the trace
  std::string job;   // what the ranks and restarts of one job share; empty: it stands alone
  const Run& run;
  const Report& layers;   // By::kLayer
  const Report& kernels;  // By::kKernel
  std::string trace_id;   // the least of those that the trace has (proto/FORMAT.md); empty: it has none
  // What only some kinds of export ask for (ExportKind); null and none elsewhere.
  const Report* lines = nullptr;         // By::kSource
  std::span<const StepSpan> steps = {};  // single steps, where the trace is one process's
};

// The process that an exported run is named for: the first of the run's; empty facts where no process says any.
ProcessInfo ProcessOf(const ExportedRun& run);

// "rank 3: resnet18, training, A100-SXM4-40GB".
std::string TitleOf(const ExportedRun& run);

class Exporter {
 public:
  virtual ~Exporter() = default;
  virtual absl::Status Add(const ExportedRun& run) = 0;
  virtual absl::Status Finish() = 0;
};

// Takes the bytes of the file, in their order.
using WriteBytes = std::function<void(std::string_view bytes)>;

struct ExportKind {
  std::string_view name;  // as --to has it
  std::string_view help;
  bool text = false;                  // a terminal may show it
  bool lines = false, steps = false;  // it asks for these of ExportedRun
  // What a run is folded by: layers, kernels and, where it asks for them, lines.
  std::span<const By> groupings() const {
    static constexpr By kAll[] = {By::kLayer, By::kKernel, By::kSource};
    return std::span(kAll).first(lines ? 3 : 2);
  }
  // Null: the Python package writes it, into a folder.
  std::unique_ptr<Exporter> (*make)(WriteBytes write) = nullptr;
};

// All formats of `rfinject export`.
std::span<const ExportKind> AllExports();
// nullptr when there is none of this name.
const ExportKind* FindExport(std::string_view name);

std::unique_ptr<Exporter> MakePerfettoExporter(WriteBytes write);
std::unique_ptr<Exporter> MakePprofExporter(WriteBytes write);
std::unique_ptr<Exporter> MakeSqliteExporter(WriteBytes write);
std::unique_ptr<Exporter> MakeOpenMetricsExporter(WriteBytes write);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EXPORT_EXPORT_H_
