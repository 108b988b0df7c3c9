#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/view/run_views.h"

namespace rfinject::cli {
namespace {

constexpr auto kStackLooks = std::to_array<TableLook>({
    {.column = "caller", .title = "called by", .left = true, .least_width = 16, .most_width = 60},
    {.column = "phase", .title = "phase", .left = true},
    {.column = "launches", .title = "launches, all", .priority = 1},
    {.column = "step_time_ns", .title = "time"},
});

// The kernels on one line, then the frames from the innermost on.
std::vector<std::string> Below(const StackRow& row) {
  constexpr size_t kKernels = 3;
  std::string kernels;
  for (size_t i = 0; i < std::min(row.kernels.size(), kKernels); ++i) {
    kernels += (i > 0 ? ", " : "") + row.kernels[i];
  }
  if (row.kernels.size() > kKernels) kernels += ", and " + std::to_string(row.kernels.size() - kKernels) + " more";
  std::vector<std::string> lines = {"runs " + kernels};
  if (!row.stack) return lines;
  for (const NativeFrameInfo& frame : *row.stack) lines.push_back("  " + FrameText(frame));
  return lines;
}

Data StackData(const StackTable& table) {
  return Data::Object()
      .Add("device", table.title)
      .Add("steps", Cell{table.steps})
      .Add("stacks", StacksOf(table.rows));
}

}  // namespace

Section StackSection(const std::vector<StackRow>& rows, uint64_t steps) {
  Section section{.id = "stacks"};
  if (rows.empty()) {
    section.lead.push_back({.text = "Everything is in a layer."});
    return section;
  }
  section.table = Table{.rows = StacksOf(rows), .looks = {kStackLooks.begin(), kStackLooks.end()}, .names = 2};
  RowSet& set = section.table->rows;
  std::erase_if(set.columns, [](const Column& column) { return column.info.name == "caller"; });
  set.AddText("caller", [&rows](size_t row) { return rows[row].stack ? rows[row].caller : "(no stack)"; });
  set.columns.push_back({UnitColumn("step_time_ns", "ns").Additive(),
                         [&rows, steps](size_t row) { return Cell{StepTimeOf(rows[row], steps)}; }});
  section.table->below = [&rows](size_t row) { return Below(rows[row]); };
  return section;
}

Document StackDocument(std::vector<StackTable> tables) {
  const auto owner = std::make_shared<const std::vector<StackTable>>(std::move(tables));
  Document document{.title = "rfinject report: stacks", .owner = owner};
  for (const StackTable& one : *owner) {
    Section section = StackSection(one.rows, one.steps);
    section.heading = one.title + ": in no layer, by native stack, a step";
    document.sections.push_back(std::move(section));
    document.lines.push_back(
        WithConstants({{"run", uint64_t{document.lines.size() + 1}}, {"device", one.title}, {"steps", one.steps}},
                      StacksOf(one.rows)));
  }
  document.data.Add("schema", "rfinject.stacks/1").Add("runs", Data::ListOf(*owner, StackData));
  return document;
}

}  // namespace rfinject::cli
