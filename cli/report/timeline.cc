#include "cli/report/timeline.h"

#include <algorithm>
#include <array>
#include <map>

#include "cli/report/machine.h"
#include "cli/report/rows/row.h"
#include "cli/text/units.h"

namespace rfinject::cli {
namespace {

constexpr auto kKernelColumns = std::to_array<ColumnOf<TimelineKernel>>({
    {UnitColumn("start_ns", "ns", "When it began, from the beginning of the step."),
     [](const TimelineKernel& kernel) { return Cell{kernel.start_ns}; }},
    {UnitColumn("duration_ns", "ns", "How long it ran.").Additive(),
     [](const TimelineKernel& kernel) { return Cell{kernel.duration_ns}; }},
    {CountColumn("lane", "Its stream, in the order in which streams first run something."),
     [](const TimelineKernel& kernel) { return Cell{uint64_t{kernel.lane}}; }},
    {TextColumn("model", "Class name of the root module; empty for what is in no layer."),
     [](const TimelineKernel& kernel) { return TextCell(kernel.model); }},
    {TextColumn("phase", "What it was for."),
     [](const TimelineKernel& kernel) { return TextCell(PhaseName(kernel.phase)); }},
    {TextColumn("layer", "Qualified name of the module; the root's is empty."),
     [](const TimelineKernel& kernel) { return TextCell(kernel.layer); }},
    {TextColumn("op", "The operator that launched it."),
     [](const TimelineKernel& kernel) { return TextCell(kernel.op); }},
    {TextColumn("kernel", "The kernel's name."),
     [](const TimelineKernel& kernel) { return TextCell(kernel.kernel); }},
    {UnitColumn("dram_bytes", "B", "DRAM bytes in its time, by samples.").Additive(),
     [](const TimelineKernel& kernel) { return KnownCell(kernel.dram_bytes); }},
});

// What samples say of the time from `begin` to `end`, in parts of `part_ns`.
double BytesIn(const Timeline& timeline, double part_ns, double begin, double end) {
  double bytes = 0;
  for (auto i = static_cast<size_t>(begin / part_ns); i < timeline.parts.size(); ++i) {
    const double from = std::max(begin, static_cast<double>(i) * part_ns);
    const double to = std::min(end, static_cast<double>(i + 1) * part_ns);
    if (!(to > from)) break;
    bytes += timeline.parts[i].dram_bytes_per_s * (to - from) * 1e-9;
  }
  return bytes;
}

void AddParts(const StepTimelineInfo& info, const Run& run, Timeline* timeline) {
  double cycles_per_us = 0;  // of all SMs
  for (const DeviceInfo& device : run.devices) {
    if (device.index != info.device) continue;
    cycles_per_us = static_cast<double>(device.sm_count) * static_cast<double>(device.sm_clock_khz) * 1e-3;
  }
  for (size_t i = 0; i < info.sampled_ns.size(); ++i) {
    TimelinePart& part = timeline->parts.emplace_back();
    part.sampled = info.sampled_ns[i] > 0;
    part.dram_bytes_per_s = 1e6 * static_cast<double>(info.dram_mb_per_s[i]);
    if (!(cycles_per_us > 0)) continue;
    part.tensor_share = std::min(1.0, static_cast<double>(info.tensor_cycles_per_us[i]) / cycles_per_us);
    timeline->has_tensor = timeline->has_tensor || part.tensor_share > 0;
  }
}

void AddKernels(const StepTimelineInfo& info, Timeline* timeline) {
  std::map<uint32_t, size_t> lanes;
  const double part_ns = timeline->period_ns / static_cast<double>(std::max<size_t>(timeline->parts.size(), 1));
  double until = 0, sampled_ns = 0;
  for (size_t i = 0; i < info.key.size(); ++i) {
    const LaunchKey& key = info.launched[info.key[i]];
    TimelineKernel& kernel = timeline->kernels.emplace_back();
    kernel.start_ns = static_cast<double>(info.start_ns[i]);
    kernel.duration_ns = static_cast<double>(info.duration_ns[i]);
    kernel.lane = lanes.try_emplace(info.stream[i], lanes.size()).first->second;
    kernel.phase = key.phase;
    kernel.model = key.layer.model;
    kernel.layer = key.layer.path;
    kernel.op = key.op;
    kernel.kernel = key.kernel;
    const double end = kernel.start_ns + kernel.duration_ns;
    kernel.dram_bytes = BytesIn(*timeline, part_ns, kernel.start_ns, end);
    const double from = std::max(kernel.start_ns, until), to = std::min(end, timeline->period_ns);
    if (to > from) timeline->busy_ns += to - from;
    for (auto p = static_cast<size_t>(from / part_ns); to > from && p < timeline->parts.size(); ++p) {
      const double begin = std::max(from, static_cast<double>(p) * part_ns);
      const double part_end = std::min(to, static_cast<double>(p + 1) * part_ns);
      if (!(part_end > begin)) break;
      if (timeline->parts[p].sampled) sampled_ns += part_end - begin;
    }
    until = std::max(until, end);
  }
  timeline->streams = lanes.size();
  if (timeline->busy_ns > 0) timeline->sampled_share = sampled_ns / timeline->busy_ns;
}

void AddLayers(Timeline* timeline) {
  for (const TimelineKernel& kernel : timeline->kernels) {
    const size_t colons = kernel.op.rfind("::");
    const std::string op = colons == std::string::npos ? kernel.op : kernel.op.substr(colons + 2);
    const std::string name = !kernel.layer.empty()   ? kernel.layer
                             : !kernel.model.empty() ? kernel.model
                             : !op.empty()           ? op
                                                     : std::string(PhaseName(kernel.phase));
    const double end = kernel.start_ns + kernel.duration_ns;
    TimelineLayer* const last = timeline->layers.empty() ? nullptr : &timeline->layers.back();
    if (last != nullptr && last->name == name && last->phase == kernel.phase) {
      last->end_ns = std::max(last->end_ns, end);
    } else {
      timeline->layers.push_back({kernel.start_ns, end, kernel.phase, name});
    }
  }
  // A layer's band ends where the next one's begins, also where their kernels overlap.
  for (size_t i = 0; i + 1 < timeline->layers.size(); ++i) {
    timeline->layers[i].end_ns = std::min(timeline->layers[i].end_ns, timeline->layers[i + 1].start_ns);
  }
}

}  // namespace

Timeline TimelineOf(const Run& run) {
  Timeline timeline{.title = run.key.gpu.empty() ? "a GPU without a name" : run.key.gpu};
  if (run.timelines.empty()) return timeline;
  const StepTimelineInfo& info = run.timelines.begin()->second;
  if (info.period_ns == 0) return timeline;
  timeline.step = info.step;
  timeline.device = info.device;
  timeline.windows = info.windows;
  timeline.period_ns = static_cast<double>(info.period_ns);
  timeline.dram_bytes_per_s = MachineFor(run).dram_bytes_per_s;
  AddParts(info, run, &timeline);
  AddKernels(info, &timeline);
  AddLayers(&timeline);
  return timeline;
}

RowSet KernelsOf(std::span<const TimelineKernel> kernels) { return RowSetOf(kKernelColumns, kernels); }

std::string TimelineText(const Timeline& timeline) {
  if (!timeline.known()) {
    return "Nothing is known of single moments of a step: the trace has no step that was timed and sampled whole";
  }
  return "Step " + Grouped(timeline.step) + ", " + Duration(timeline.period_ns) + ", in which the GPU was busy for " +
         Percent(timeline.busy_ns / timeline.period_ns) + "; bandwidth from " +
         Counted(timeline.windows, "window", "windows") + " of samples, which cover " +
         Percent(timeline.sampled_share) + " of that";
}

}  // namespace rfinject::cli
