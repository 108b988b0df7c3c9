#include "cli/cmd/doctor_ask.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

namespace rfinject::cli {
namespace {

// The option of the kernel module, and what a reboot needs: NVIDIA, "ERR_NVGPUCTRPERM: Permission issue with
// Performance Counters". A capability: the same, and os_check_access of the driver's open kernel module, which asks
// for CAP_PERFMON from R565 on.
constexpr std::string_view kModule =
    "  On the machine with the GPU, for all of its users:\n"
    "    Please let users read the GPUs' performance counters. Put the line\n"
    "      options nvidia NVreg_RestrictProfilingToAdminUsers=0\n"
    "    into /etc/modprobe.d/nvidia-counters.conf, make the initramfs anew where the\n"
    "    driver is in it (update-initramfs -u, or dracut -f), and reboot.\n"
    "    It worked if /proc/driver/nvidia/params has \"RmProfilingAdminOnly: 0\".\n";
constexpr std::string_view kDocker =
    "  Docker, for one container:\n"
    "    Please start it with --cap-add=PERFMON (before driver R565: SYS_ADMIN), and\n"
    "    without a user namespace of its own (--userns=host).\n";
constexpr std::string_view kKubernetes =
    "  Kubernetes, for one container of a pod:\n"
    "    Please allow in its securityContext\n"
    "      capabilities: {add: [\"PERFMON\"]}\n"
    "    (before driver R565: \"SYS_ADMIN\").\n";
constexpr std::string_view kSlurm =
    "  Slurm, whose jobs have no capabilities:\n"
    "    Please set the option of the driver above on the nodes of one partition, or\n"
    "    of a feature that jobs can ask for (sbatch --constraint=counters).\n";

}  // namespace

std::string WhatToAsk(const MachineView& machine, std::span<const GpuFinding> findings) {
  const auto lacks = [](const GpuFinding& finding) { return finding.condition == ConditionId::kPermission; };
  if (std::ranges::none_of(findings, lacks)) return {};
  const auto is_set = [&](const char* name) { return machine.environment(name) != nullptr; };
  const auto exists = [&](const char* path) {
    std::error_code error;
    return std::filesystem::exists(machine.root + path, error);
  };
  struct Way {
    std::string_view text;
    bool here;
  };
  const std::array ways = {Way{kKubernetes, is_set("KUBERNETES_SERVICE_HOST")}, Way{kSlurm, is_set("SLURM_JOB_ID")},
                           Way{kDocker, exists("/.dockerenv") || exists("/run/.containerenv")}};
  std::string text =
      "\nCounters need a permission that only an administrator can give. Without it there\n"
      "are times, layers and estimates, and no FLOP and bytes. What to ask for, one of:\n";
  text += kModule;
  for (const bool here : {true, false}) {
    for (const Way& way : ways) text += way.here == here ? way.text : std::string_view();
  }
  return text;
}

}  // namespace rfinject::cli
