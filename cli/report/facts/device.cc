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
    {TextColumn("own_calibration", "What measured the GPU that was estimated, where the user did."),
     [](const Device& device) { return TextCell(device.own_calibration); }},
});

}  // namespace

std::span<const FactOf<Device>> DeviceFacts() { return kDeviceFacts; }

}  // namespace rfinject::cli
