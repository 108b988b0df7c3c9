#include "cli/report/facts/device.h"

#include <algorithm>
#include <array>

#include "cli/text/units.h"

namespace rfinject::cli {
namespace {

constexpr auto kDeviceFacts = std::to_array<FactOf<Device>>({
    {TextColumn("device", "The GPU's name, as its driver says it.", "GPU"),
     [](const Device& device) { return TextCell(device.name); }},
    {UnitColumn("sm_clock_hz", "Hz", "Mean clock of the SMs while counters ran.",
                "SM clock, mean while counters ran"),
     [](const Device& device) { return KnownCell(device.sm_hz); }, "no counters of cycles were read"},
    {UnitColumn("sm_clock_low_hz", "Hz", "The lowest mean clock of a window in which the GPU was sampled."),
     [](const Device& device) { return KnownCell(device.clock.low_hz); }, "no cycles were sampled"},
    {UnitColumn("sm_clock_high_hz", "Hz", "The highest."),
     [](const Device& device) { return KnownCell(device.clock.high_hz); }, "no cycles were sampled"},
    {TextColumn("other_gpu", "The GPU of --on."), [](const Device& device) { return TextCell(device.other.name); },
     "--on GPU was not given"},
    {UnitColumn("other_gpu_step_ns", "ns", "What a step is expected to take on that GPU."),
     [](const Device& device) { return KnownCell(device.other.step_ns); },
     "--on GPU was not given, or no operators are known"},
    {UnitColumn("other_gpu_step_low_ns", "ns", "Lower end of its 80 % interval."),
     [](const Device& device) { return KnownCell(device.other.low_ns); },
     "--on GPU was not given, or no operators are known"},
    {UnitColumn("other_gpu_step_high_ns", "ns", "Upper end of its 80 % interval."),
     [](const Device& device) { return KnownCell(device.other.high_ns); },
     "--on GPU was not given, or no operators are known"},
    {PlainColumn("over_usual",
                 "The time of the step's operators over what they are expected to take on this GPU, with --on."),
     [](const Device& device) { return KnownCell(device.other.over_usual); },
     "--on GPU was not given, or no operators are known"},
    {TextColumn("own_calibration", "What measured the GPU that was estimated, where the user did."),
     [](const Device& device) { return TextCell(device.own_calibration); }},
});

}  // namespace

SampledClock SampledClockOf(const Run& run) {
  SampledClock clock;
  for (const DeviceInfo& device : run.devices) {
    clock.boost_hz = std::max(clock.boost_hz, static_cast<double>(device.sm_clock_khz) * 1e3);
  }
  double sum = 0;
  for (const trace::SampledWindow& window : run.kept.sampled_window) {
    if (window.gpu_clock_khz == 0) continue;
    const double hz = window.gpu_clock_khz * 1e3;
    clock.low_hz = clock.windows == 0 ? hz : std::min(clock.low_hz, hz);
    clock.high_hz = std::max(clock.high_hz, hz);
    sum += hz;
    ++clock.windows;
  }
  if (clock.windows > 0) clock.mean_hz = sum / static_cast<double>(clock.windows);
  return clock;
}

std::string ClockText(const Device& device) {
  const SampledClock& clock = device.clock;
  if (!clock.below()) return {};
  const std::string most = ", of " + WithPrefix(clock.boost_hz, "Hz") + " that it can run at";
  if (clock.held()) {
    return "The GPU's clock stood at " + WithPrefix(clock.mean_hz, "Hz") + most + ": somebody holds it (nvidia-smi " +
           "-lgc or -ac, undone by -rgc and -rac). The roofs are of the full clock";
  }
  return "The GPU ran at " + WithPrefix(clock.low_hz, "Hz") + " to " + WithPrefix(clock.high_hz, "Hz") + most +
         ": its power or its heat is at a limit. The roofs are of the full clock";
}

std::span<const FactOf<Device>> DeviceFacts() { return kDeviceFacts; }

}  // namespace rfinject::cli
