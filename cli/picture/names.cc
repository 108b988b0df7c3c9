#include "cli/picture/names.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/report/facts/run_name.h"
#include "cli/report/rows/kernel_name.h"
#include "cli/text/code_points.h"
#include "cli/text/units.h"

namespace rfinject::cli {

namespace {

// A kernel's, or an operator's, which lose their namespace here: "convolution".
std::string ShortName(std::string_view name) {
  std::string text = ShortKernelName(name);
  if (const size_t scope = text.rfind("::"); scope != std::string::npos && text.find('<') == std::string::npos) {
    text.erase(0, scope + 2);
  }
  return text;
}

}  // namespace

std::string RowName(const Row& row, const Report& report) {
  constexpr size_t kMost = 32, kMostOfTwo = 20;
  const bool with_model = report.run.models.size() > 1 && !row.model.empty();
  const auto path = [&](size_t most) {
    const std::string layer = ElideStart(row.layer, most);
    return with_model ? ElideMiddle(row.model, 16) + " " + layer : layer;
  };
  switch (report.by) {
    case By::kPhase:
      return !row.phase   ? "(no phase)"
             : with_model ? absl::StrFormat("%s %s", row.model, PhaseName(row.phase))
                          : std::string(PhaseName(row.phase));
    case By::kOp:
      return row.op.empty() ? "(no operator)" : ElideMiddle(row.op, kMost);
    case By::kKernel: {
      const std::string kernel = ElideMiddle(ShortName(row.op.empty() ? row.kernel : row.op), kMostOfTwo);
      if (!row.layer.empty() && !kernel.empty()) return path(kMostOfTwo) + ": " + kernel;
      if (!row.kernel.empty()) return ElideMiddle(ShortName(row.kernel), kMost);
      break;
    }
    case By::kSource:
      if (!row.line.empty()) return ElideStart(row.line, kMost);
      break;
    case By::kModel:
    case By::kLayer:
    case By::kClass:
      break;
  }
  if (row.layers > 0) {
    const std::string name = !row.layer.empty()  ? path(kMost)
                             : row.group.empty() ? std::string("(no class)")
                                                 : ElideMiddle(row.group, kMost);
    return row.layers > 1 ? absl::StrFormat("%s x%d", name, row.layers) : name;
  }
  if (report.by != By::kModel && !row.layer.empty()) return path(kMost);
  if (!row.model.empty()) return ElideMiddle(row.model, kMost);
  return row.phase ? std::string(PhaseName(row.phase)) : "(no layer)";
}

std::string MarkLabel(const Row& row, const Report& report) {
  std::string name = RowName(row, report);
  if (report.by == By::kPhase || !row.phase || name == PhaseName(row.phase)) return name;
  return absl::StrFormat("%s %s", name,
                         row.phase == Phase::kForward    ? "fwd"
                         : row.phase == Phase::kBackward ? "bwd"
                                                         : PhaseName(row.phase));
}

std::string ReportTitle(const Report& report) {
  const std::string title = ModelName(report.run, report.process.list);
  const std::string& device = report.device.name.empty() ? report.run.gpu : report.device.name;
  return device.empty() ? title : title + " on " + device;
}

std::string DocumentTitle(std::string_view what, std::span<const Report> reports) {
  std::string title(what);
  for (const Report& report : reports) title += (&report == reports.data() ? ": " : "; ") + ReportTitle(report);
  return title;
}

std::string SourceTitle(const Report& report) {
  switch (report.run.source) {
    case SourceKind::kMeasured:
      return report.device.simulated() ? "SIMULATED by a test" : "MEASURED by hardware counters";
    case SourceKind::kEstimated:
      return "ESTIMATED from tensor shapes";
    case SourceKind::kImported:
      return "IMPORTED from another tool";
    case SourceKind::kNone:
    case SourceKind::kUnspecified:
      break;
  }
  return "NOT MEASURED: no counters";
}

std::string ReportSubtitle(const Report& report) {
  std::vector<std::string> facts;
  if (report.run.batch_size > 0) facts.push_back("batch " + Grouped(report.run.batch_size));
  const PolicyInfo& policy = report.run.policy;
  const auto on_off = [](uint32_t state) { return state == 2 ? "on" : "off"; };
  std::string tf32;
  if (policy.cudnn_tf32 != 0) tf32 += std::string("convolution ") + on_off(policy.cudnn_tf32);
  if (policy.matmul_tf32 != 0) tf32 += std::string(tf32.empty() ? "" : ", ") + "matmul " + on_off(policy.matmul_tf32);
  if (!tf32.empty()) facts.push_back("TF32: " + tf32);
  if (!policy.autocast_dtype.empty()) facts.push_back("autocast " + policy.autocast_dtype);
  if (report.steps.count > 0) facts.push_back(Counted(report.steps.count, "step", "steps"));
  if (report.process.count > 1) facts.push_back(Grouped(report.process.count) + " processes");
  std::set<std::string> torch, rfinject, cuda;
  for (const ProcessInfo& process : report.process.list) {
    if (!process.torch_version.empty()) torch.insert(process.torch_version);
    if (!process.rfinject_version.empty()) rfinject.insert(process.rfinject_version);
    if (!process.cuda_version.empty()) cuda.insert(process.cuda_version);
  }
  for (const auto& [name, versions] : {std::pair<const char*, const std::set<std::string>&>{"torch ", torch},
                                       {"CUDA ", cuda},
                                       {"rfinject ", rfinject}}) {
    if (!versions.empty()) facts.push_back(name + absl::StrJoin(versions, "/"));
  }
  for (const DiagnosticInfo& diagnostic : report.kept.diagnostic) {
    if (diagnostic.id == "limit") facts.push_back(diagnostic.text);
  }
  return absl::StrJoin(facts, " · ");
}

}  // namespace rfinject::cli
