#include "cli/report/facts/device.h"

#include <array>

namespace rfinject::cli {
namespace {

constexpr auto kDeviceFacts = std::to_array<FactOf<Device>>({
    {TextColumn("device", "The GPU's name, as its driver says it.", "GPU"),
     [](const Device& device) { return TextCell(device.name); }},
    {UnitColumn("sm_clock_hz", "Hz", "Mean clock of the SMs while counters ran.",
                "SM clock, mean while counters ran"),
     [](const Device& device) { return KnownCell(device.sm_hz); }, "no counters of cycles were read"},
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

std::span<const FactOf<Device>> DeviceFacts() { return kDeviceFacts; }

}  // namespace rfinject::cli
