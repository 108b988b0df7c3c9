#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cli/picture/memory.h"
#include "cli/report/rows/row.h"
#include "cli/text/units.h"
#include "cli/view/run_views.h"

namespace rfinject::cli {
namespace {

constexpr auto kPhases = std::to_array<TableLook>({
    {.column = "phase", .title = "allocated in", .left = true},
    {.column = "usually", .title = "usually", .priority = 1, .left = true},
    {.column = "bytes", .title = "bytes", .width = 8, .unit = "B"},
    {.column = "share", .title = "share", .width = 6},
});
constexpr auto kLayers = std::to_array<TableLook>({
    {.column = "name", .title = "layer", .left = true, .least_width = 16, .keep_end = true},
    {.column = "class", .title = "class", .priority = 1, .left = true},
    {.column = "phase", .title = "allocated in", .left = true},
    {.column = "bytes", .title = "bytes", .width = 8, .unit = "B"},
    {.column = "share", .title = "share", .width = 6},
});

std::string Bytes(uint64_t bytes) { return WithPrefix(static_cast<double>(bytes), "B"); }

// Boards are sold by powers of 1024.
std::string InBoth(uint64_t bytes) {
  return absl::StrFormat("%s (%.2f GiB)", Bytes(bytes), static_cast<double>(bytes) / (1 << 30));
}

std::string LayerText(const MemoryRow& row) {
  return row.model.empty() ? "(no layer)" : row.layer.empty() ? row.model : row.layer;
}

// Whether the program fits; empty where it does.
std::string RefusedText(const MemoryTable& table) {
  const MemoryRow& refused = table.refused;
  if (refused.bytes == 0) return {};
  std::string text = "It does not fit: " + InBoth(refused.bytes) + " more were asked for in " +
                     std::string(PhaseName(refused.phase));
  if (!refused.model.empty()) {
    text += " of " + LayerText(refused);
    if (!refused.class_name.empty()) text += " (" + refused.class_name + ")";
  }
  text += ", and the program was told that the memory is full";
  if (table.memory_bytes > 0) text += "; the device has " + InBoth(table.memory_bytes);
  return text + ".";
}

// What follows from the models alone, where allocations were not watched. Momentum and the two moments of Adam
// have the type and the shape of their parameters: torch/optim/sgd.py and adam.py make them with clone and
// zeros_like.
std::string LeastText(const MemoryTable& table) {
  if (table.parameter_bytes == 0) return {};
  constexpr uint64_t kWorthGiB = 10'000'000;
  const bool large = table.parameter_bytes >= kWorthGiB;
  std::string text = "At least " + (large ? InBoth(table.parameter_bytes) : Bytes(table.parameter_bytes)) +
                     " of parameters must fit";
  if (table.gradient_bytes == 0) return text + "; what a batch needs comes on top. ";
  return text + ", and in training " + Bytes(table.gradient_bytes) +
         " of gradients and what the optimizer keeps: nothing for SGD, " + Bytes(table.gradient_bytes) +
         " with momentum, " + Bytes(2 * table.gradient_bytes) +
         " for Adam. Activations come on top and grow with the batch. ";
}

std::string PeakText(const MemoryTable& table) {
  if (!table.known) {
    std::string text = "What lay in the memory is not known. " + LeastText(table) +
                       "All of it, by layer, is known where the program runs on a virtual GPU: `rfinject --estimate "
                       "GPU PROGRAM`, with a PyTorch that is built for CUDA";
    if (table.in_use_bytes > 0) {
      text += "; all processes together used at most " + InBoth(table.in_use_bytes) + " of the device";
    }
    return text + ".";
  }
  return "At the peak " + InBoth(table.allocated_bytes) + " were allocated, in step " + std::to_string(table.step) +
         (table.device > 0 ? " on device " + std::to_string(table.device) : "") + "; PyTorch's allocator held " +
         InBoth(table.reserved_bytes) + " for it, and that must fit. The parameters of all models are " +
         Bytes(table.parameter_bytes) + ".";
}

Data RefusedData(const MemoryRow& refused) {
  if (refused.bytes == 0) return Cell{};
  const bool in_layer = !refused.model.empty();
  return Data::Object()
      .Add("model", TextCell(refused.model))
      .Add("layer", in_layer ? Cell{refused.layer} : Cell{})
      .Add("phase", PhaseName(refused.phase))
      .Add("bytes", Cell{refused.bytes});
}

// How memory went over a step: of each point what the program was in, and bytes by the phase of the allocation.
Data StepData(const MemoryTable& table) {
  if (table.points.empty()) return Cell{};
  Data phases = Data::List(), bytes = Data::Object();
  for (const MemoryPoint& point : table.points) phases.Append(Data(PhaseName(point.phase)));
  for (size_t phase = 0; phase < kPhaseNames.size(); ++phase) {
    const auto of_phase = [phase](const MemoryPoint& point) { return point.bytes[phase]; };
    if (std::ranges::all_of(table.points, [&](const MemoryPoint& point) { return of_phase(point) == 0; })) continue;
    Data list = Data::List();
    for (const MemoryPoint& point : table.points) list.Append(Data(Cell{of_phase(point)}));
    bytes.Add(PhaseName(static_cast<Phase>(phase)), std::move(list));
  }
  return Data::Object()
      .Add("step", Cell{table.points_step})
      .Add("phases", std::move(phases))
      .Add("bytes", std::move(bytes));
}

Data MemoryData(const MemoryTable& table) {
  const auto known = [&](uint64_t value) { return table.known ? Cell{value} : Cell{}; };
  return Data::Object()
      .Add("device", table.title)
      .Add("allocated_bytes", known(table.allocated_bytes))
      .Add("reserved_bytes", known(table.reserved_bytes))
      .Add("step", known(table.step))
      .Add("device_index", known(table.device))
      .Add("parameter_bytes", Cell{table.parameter_bytes})
      .Add("in_use_bytes", KnownCount(table.in_use_bytes))
      .Add("memory_bytes", KnownCount(table.memory_bytes))
      .Add("refused", RefusedData(table.refused))
      .Add("over_step", StepData(table))
      .Add("phases", MemoryOf(table.phases))
      .Add("rows", MemoryOf(table.rows));
}

}  // namespace

std::vector<Section> MemorySections(const MemoryTable& table) {
  Section phases{.id = "memory", .heading = table.title + ": memory at the peak, by where it was allocated"};
  if (std::string refused = RefusedText(table); !refused.empty()) phases.lead.push_back({.text = std::move(refused)});
  phases.lead.push_back({.text = PeakText(table)});
  if (!table.known) return {std::move(phases)};
  phases.table = Table{.rows = MemoryOf(table.phases), .looks = {kPhases.begin(), kPhases.end()}};
  phases.table->rows.AddText("usually",
                             [&table](size_t row) { return std::string(UsuallyOf(table.phases[row].phase)); });
  if (!table.points.empty()) {
    phases.figures = {{Figure{.id = "memory", .lay_out = [&table](Medium medium) {
                                return Drawn{LayOutMemory(table, MemorySize(WideFigure(medium)))};
                              }}}};
  }
  Section layers;
  layers.table = Table{.rows = MemoryOf(table.rows), .looks = {kLayers.begin(), kLayers.end()}, .names = 3};
  layers.table->rows.AddText("name", [&table](size_t row) { return LayerText(table.rows[row]); });
  return {std::move(phases), std::move(layers)};
}

Document MemoryDocument(std::vector<MemoryTable> tables) {
  const auto owner = std::make_shared<const std::vector<MemoryTable>>(std::move(tables));
  Document document{.title = "rfinject report: memory", .owner = owner};
  for (const MemoryTable& table : *owner) {
    for (Section& section : MemorySections(table)) {
      for (std::vector<Figure>& row : section.figures) {
        for (Figure& figure : row) figure.id += "-" + std::to_string(document.lines.size() + 1);
      }
      document.sections.push_back(std::move(section));
    }
    document.lines.push_back(WithConstants({{"run", uint64_t{document.lines.size() + 1}},
                                            {"device", table.title},
                                            {"allocated_bytes", KnownCount(table.allocated_bytes)},
                                            {"reserved_bytes", KnownCount(table.reserved_bytes)}},
                                           MemoryOf(table.rows)));
  }
  document.data.Add("schema", "rfinject.memory/1").Add("runs", Data::ListOf(*owner, MemoryData));
  return document;
}

}  // namespace rfinject::cli
