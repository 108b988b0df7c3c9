#include "cli/report/facts/run.h"

#include <array>
#include <set>
#include <string>

#include "absl/strings/str_join.h"
#include "cli/report/facts/run_name.h"
#include "cli/report/report.h"

namespace rfinject::cli {
namespace {

// A rate over all measured steps: over the wall time of what was measured; over a step's time by the clock where the
// host's time is given; else over GPU time, which is the upper bound of what wall time gives.
struct SampleRate {
  double per_s = 0;  // 0: unknown
  std::string_view over;
};

SampleRate SampleRateOf(const Report& report) {
  const double wall_ns = report.clock.measured_wall_ns() * static_cast<double>(report.steps.count);
  const bool given = report.queue.host_of == HostTime::kGiven;
  const double time_ns = wall_ns > 0 ? wall_ns
                         : given     ? report.queue.step_ns * report.steps.divisor()
                                     : report.total.sums.time_ns();
  if (report.steps.samples == 0 || !(time_ns > 0)) return {};
  return {static_cast<double>(report.steps.samples) / time_ns * 1e9, wall_ns > 0 ? "wall_time"
                                                                     : given     ? "step_time"
                                                                                 : "gpu_time"};
}

constexpr auto kRunFacts = std::to_array<FactOf<Report>>({
    {TextColumn("source", "measured, estimated or imported."),
     [](const Report& report) { return Cell{std::string(SourceName(report.run.source))}; }},
    {TextColumn("model", "Class name of the root module."),
     [](const Report& report) { return Cell{ModelName(report.run, report.process.list)}; }},
    {TextColumn("gpu", "The GPU, or the one that was estimated."),
     [](const Report& report) { return Cell{GpuTitle(report.run)}; }},
    {TextColumn("roofs_of", "The GPU of the table whose roofs count.", "Roofs of"),
     [](const Report& report) { return TextCell(report.machine.name); }, "the GPU is in no table (rfinject gpus)"},
    {TextColumn("collector", "What collected the numbers.", "Collector"),
     [](const Report& report) { return TextCell(report.run.collector); }},
    {TextColumn("policy", "What differs from the defaults: TF32, autocast and the like."),
     [](const Report& report) {
       const std::string& autocast = report.run.policy.autocast_dtype;
       return TextCell(autocast.empty() ? "" : "autocast " + autocast);
     }},
    {TextColumn("mode", "training, validation of what trains, or inference."),
     [](const Report& report) { return TextCell(ModeOf(report)); }},
    {TextColumn("trains", "training or inference."),
     [](const Report& report) { return Cell{std::string(report.run.training ? "training" : "inference")}; }},
    {TextColumn("short_mode").ShownOnly(),
     [](const Report& report) { return Cell{std::string(report.run.training ? "train" : "infer")}; }},
    {CountColumn("batch_size", "Samples that most steps have.", "Batch"),
     [](const Report& report) { return KnownCount(report.run.batch_size); }},
    {PlainColumn("samples_per_s", "Samples over the time that samples_per_s_over names."),
     [](const Report& report) { return KnownCell(SampleRateOf(report).per_s); },
     "an input does not tell its batch, or nothing was timed"},
    {TextColumn("samples_per_s_over", "wall_time, step_time (with --host-us) or gpu_time."),
     [](const Report& report) { return TextCell(SampleRateOf(report).over); }},
    {CountColumn("alarms", "How many alarms were raised."),
     [](const Report& report) { return Cell{uint64_t{report.alarms.size()}}; }},
    {TextColumn("alarm_ids", "Which they are."),
     [](const Report& report) {
       return TextCell(
           absl::StrJoin(AlarmIds(report), " ", [](std::string* out, std::string_view id) { out->append(id); }));
     }},
});

}  // namespace

std::span<const FactOf<Report>> RunFacts() { return kRunFacts; }

std::set<std::string_view> AlarmIds(const Report& report) {
  std::set<std::string_view> ids;
  for (const Alarm& alarm : report.alarms) ids.insert(alarm.id);
  return ids;
}

std::string_view ModeOf(const Report& report) {
  return report.steps.validation ? "validation" : report.run.training ? "training" : "inference";
}

}  // namespace rfinject::cli
