#include "cli/report/facts/memory.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "cli/report/rows/row.h"
#include "proto/wire/saturating_add.h"
#include "proto/wire/stat.h"

namespace rfinject::cli {
namespace {

constexpr auto kMemoryColumns = std::to_array<ColumnOf<MemoryRow>>({
    {TextColumn("model", "Class name of the root module; empty for what was allocated in no layer."),
     [](const MemoryRow& row) { return TextCell(row.model); }},
    {TextColumn("layer", "Qualified name of the module that allocated; the root's is empty."),
     [](const MemoryRow& row) { return row.model.empty() ? Cell{} : Cell{row.layer}; }},
    {TextColumn("class", "Class name of the layer."), [](const MemoryRow& row) { return TextCell(row.class_name); }},
    {TextColumn("phase", "The phase in which it was allocated."),
     [](const MemoryRow& row) { return TextCell(PhaseName(row.phase)); }},
    {UnitColumn("bytes", "B", "Bytes that were allocated when most were.").Additive(),
     [](const MemoryRow& row) { return Cell{row.bytes}; }},
    {ShareColumn("share", "Of all bytes that were allocated then.").Additive(),
     [](const MemoryRow& row) { return Cell{row.share}; }},
});

constexpr auto kMemoryFacts = std::to_array<FactOf<DeviceMemory>>({
    {UnitColumn("memory_peak_bytes", "B", "The most device memory that was in use.",
                "GPU memory in use, peak (all processes)"),
     [](const DeviceMemory& memory) { return KnownCount(memory.peak_bytes); }, "the driver was not asked"},
});

}  // namespace

std::span<const FactOf<DeviceMemory>> MemoryFacts() { return kMemoryFacts; }

std::string_view UsuallyOf(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "activations";
    case Phase::kRecompute:
      return "activations made again";
    case Phase::kBackward:
      return "gradients";
    case Phase::kOptimizer:
      return "the optimizer's state";
    case Phase::kOther:
      return "parameters, buffers, inputs, the loss";
    case Phase::kData:
      return "inputs";
    case Phase::kCommunication:
    case Phase::kEval:
      break;
  }
  return {};
}

RowSet MemoryOf(std::span<const MemoryRow> rows) { return RowSetOf(kMemoryColumns, rows); }

MemoryTable FoldMemory(const Run& run) {
  MemoryTable table;
  table.title = run.key.gpu.empty() ? "a GPU without a name" : run.key.gpu;
  table.in_use_bytes = run.steps.memory_peak_bytes;
  for (const auto& [name, model] : run.models) {
    wire::SaturatingAdd(&table.parameter_bytes, model.parameter_bytes);
    if (model.parameters == 0) continue;
    const uint64_t trained = std::min(model.trainable_parameters, model.parameters);
    wire::SaturatingAdd(&table.gradient_bytes,
                        static_cast<uint64_t>(wire::Uint128{model.parameter_bytes} * trained / model.parameters));
  }
  const MemoryPeakInfo& peak = run.memory_peak;
  table.known = !peak.parts.empty();
  table.allocated_bytes = peak.allocated_bytes;
  table.reserved_bytes = peak.reserved_bytes;
  table.step = peak.step;
  table.points_step = peak.point_step;
  for (size_t i = 0; i < peak.point_phase.size(); ++i) {
    MemoryPoint point;
    if (peak.point_phase[i] < kPhaseNames.size()) point.phase = static_cast<Phase>(peak.point_phase[i]);
    const auto bytes = std::span(peak.point_bytes).subspan(i * point.bytes.size(), point.bytes.size());
    std::ranges::copy(bytes, point.bytes.begin());
    table.points.push_back(point);
  }
  table.device = peak.device;
  for (const DeviceInfo& device : run.devices) {
    if (table.memory_bytes == 0 || device.index == peak.device) table.memory_bytes = device.memory_bytes;
  }
  const auto row_of = [&run](const MemoryPlace& place, uint64_t bytes) {
    MemoryRow row{.model = place.layer.model, .layer = place.layer.path, .phase = place.phase, .bytes = bytes};
    const auto layer = run.layers.find(place.layer);
    if (layer != run.layers.end()) row.class_name = layer->second.class_name;
    return row;
  };
  if (peak.refused_bytes > 0) table.refused = row_of(peak.refused_in, peak.refused_bytes);
  double all = 0;
  for (const auto& [place, bytes] : peak.parts) all += static_cast<double>(bytes);
  const auto share = [all](uint64_t bytes) { return all > 0 ? static_cast<double>(bytes) / all : 0; };
  std::map<Phase, uint64_t> phases;
  for (const auto& [place, bytes] : peak.parts) {
    phases[place.phase] += bytes;
    MemoryRow row = row_of(place, bytes);
    row.share = share(bytes);
    table.rows.push_back(std::move(row));
  }
  for (const auto& [phase, bytes] : phases)
    table.phases.push_back({.phase = phase, .bytes = bytes, .share = share(bytes)});
  std::ranges::stable_sort(table.phases, std::ranges::greater{}, &MemoryRow::bytes);
  std::ranges::stable_sort(table.rows, std::ranges::greater{}, &MemoryRow::bytes);
  return table;
}

}  // namespace rfinject::cli
