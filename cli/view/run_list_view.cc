// The list of runs.
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "cli/view/compare_views.h"

namespace rfinject::cli {
namespace {

constexpr auto kRunListLooks = std::to_array<TableLook>({
    {.column = "started", .title = "started", .priority = 3, .left = true},
    {.column = "source", .title = "source", .priority = 6, .left = true, .gap = 2},
    {.column = "gpu", .title = "GPU", .priority = 1, .left = true, .gap = 2},
    {.column = "model", .title = "model", .priority = 5, .left = true, .gap = 2},
    {.column = "ranks", .title = "ranks", .priority = 2},
    {.column = "steps", .title = "steps"},
    {.column = "gpu_time_per_step_ns", .title = "GPU a step"},
    {.column = "wall_time_per_step_ns", .title = "wall a step", .priority = 4},
    {.column = "command", .title = "command", .left = true, .least_width = 12, .gap = 2},
    {.column = "path", .title = "traces", .left = true, .gap = 2},
});

}  // namespace

Document RunListDocument(std::vector<RunLine> lines) {
  const auto owner = std::make_shared<const std::vector<RunLine>>(std::move(lines));
  Document document{.title = "rfinject runs", .owner = owner};
  document.sections.push_back(
      {.id = "runs", .table = Table{.rows = RunRows(*owner), .looks = {kRunListLooks.begin(), kRunListLooks.end()}}});
  document.data.Add("schema", "rfinject.runs/1").Add("runs", RunRows(*owner));
  document.lines = {RunRows(*owner)};
  return document;
}

}  // namespace rfinject::cli
