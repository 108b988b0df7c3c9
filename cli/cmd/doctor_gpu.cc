#include "cli/cmd/doctor_gpu.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "cli/cmd/text_file.h"
#include "cli/model/match_gpu.h"
#include "gpus/gpus.h"

namespace rfinject::cli {
namespace {

// Empty where it cannot be read.
std::string TextOf(const std::string& path) { return ReadTextFile(path).value_or(""); }

std::string UpToLineBreak(const std::string& text) { return text.substr(0, text.find('\n')); }

// Names in a folder, sorted; empty when it cannot be read.
std::vector<std::string> Entries(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// "NAME:   VALUE" or "NAME  : VALUE" of a line in a file of the driver or of nvidia-smi; empty when there is none.
// `after`: only lines behind that text.
std::string ValueOf(std::string_view text, std::string_view name, std::string_view after = {}) {
  text.remove_prefix(std::min(text.find(after), text.size()));
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    absl::string_view rest = absl::StripLeadingAsciiWhitespace(line);
    if (!absl::ConsumePrefix(&rest, std::string(name))) continue;
    rest = absl::StripLeadingAsciiWhitespace(rest);
    if (absl::ConsumePrefix(&rest, ":")) return std::string(absl::StripAsciiWhitespace(rest));
  }
  return {};
}

GpuFinding Good(std::string what, std::string text) {
  return {.good = true, .what = std::move(what), .text = std::move(text)};
}

// `certain`: the machine says so itself. Otherwise it only may be the case, and the line says that.
GpuFinding Bad(std::string what, ConditionId id, const std::string& detail, bool certain) {
  const Condition& condition = GetCondition(id);
  std::string text = certain ? "" : "it may be that ";
  text += condition.message;
  if (!detail.empty()) text += ": " + detail;
  if (certain) text += LossText(condition.loss);
  return {.what = std::move(what), .text = std::move(text), .remedy = std::string(condition.remedy), .condition = id};
}

// The model names of the machine's GPUs, by the driver's own files.
std::vector<std::string> Models(const MachineView& machine) {
  std::vector<std::string> models;
  const std::string folder = machine.root + "/proc/driver/nvidia/gpus";
  for (const std::string& bus : Entries(folder)) {
    models.push_back(ValueOf(TextOf(folder + "/" + bus + "/information"), "Model"));
  }
  return models;
}

// The first process whose name begins with one of `names` (the kernel keeps 15 characters): "nv-hostengine (process
// 7)".
std::string RunningProcess(const MachineView& machine, std::initializer_list<std::string_view> names) {
  for (const std::string& entry : Entries(machine.root + "/proc")) {
    if (entry.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string name = UpToLineBreak(TextOf(machine.root + "/proc/" + entry + "/comm"));
    for (std::string_view wanted : names) {
      if (!name.empty() && name.rfind(wanted.substr(0, 15), 0) == 0) return name + " (process " + entry + ")";
    }
  }
  return {};
}

void ExaminePermission(const MachineView& machine, std::vector<GpuFinding>* findings) {
  const std::string restricted = ValueOf(TextOf(machine.root + "/proc/driver/nvidia/params"), "RmProfilingAdminOnly");
  if (restricted.empty()) {
    findings->push_back(
        {.what = "counters", .text = "the driver does not say who may read counters (no RmProfilingAdminOnly)"});
    return;
  }
  if (restricted == "0") {
    findings->push_back(Good("counters", "open to every user (RmProfilingAdminOnly: 0)"));
    return;
  }
  const uint64_t capabilities =
      std::strtoull(ValueOf(TextOf(machine.root + "/proc/self/status"), "CapEff").c_str(), nullptr, 16);
  constexpr uint64_t kSysAdmin = uint64_t{1} << 21, kPerfmon = uint64_t{1} << 38;
  const char* held = (capabilities & kPerfmon) != 0    ? "CAP_PERFMON"
                     : (capabilities & kSysAdmin) != 0 ? "CAP_SYS_ADMIN"
                                                       : nullptr;
  if (held == nullptr) {
    findings->push_back(Bad("counters", ConditionId::kPermission,
                            "RmProfilingAdminOnly is 1, and we have neither CAP_PERFMON nor CAP_SYS_ADMIN", true));
    return;
  }
  // The driver asks for the capability in the initial user namespace, whose map is the whole range onto itself.
  const std::string map = TextOf(machine.root + "/proc/self/uid_map");
  uint64_t inside = 0, outside = 0, count = 0;
  if (std::sscanf(map.c_str(), "%lu %lu %lu", &inside, &outside, &count) == 3 &&
      (inside != 0 || outside != 0 || count < 4294967295u)) {
    findings->push_back(
        Bad("counters", ConditionId::kPermission, std::string(held) + " holds in this user namespace only", false));
    return;
  }
  findings->push_back(Good("counters", std::string("for administrators, which ") + held + " makes us"));
}

// Whether somebody holds the clock below what the GPU could run at, as far as nvidia-smi tells. Of clocks that are
// locked (nvidia-smi -lgc) it says nothing: a report of a measured run does (facts/device.h).
void ExamineClock(const std::string& smi, std::vector<GpuFinding>* findings) {
  const std::string set = ValueOf(smi, "Graphics", "\n    Applications Clocks");
  const std::string usual = ValueOf(smi, "Graphics", "\n    Default Applications Clocks");
  const bool lowered = !set.empty() && !usual.empty() && set != usual;
  std::string reason = ValueOf(smi, "Applications Clocks Setting");
  if (!lowered && reason != "Active") return;
  findings->push_back({.what = "clock",
                       .text = "an administrator holds the GPU's clock" +
                               (lowered ? " at " + set + ", by default it is " + usual : "") +
                               ": what is measured is of that clock, the roofs are of the boost clock",
                       .remedy = "nvidia-smi -rac, and -rgc for clocks that are locked, on the host"});
}

void ExamineSharing(const MachineView& machine, std::vector<GpuFinding>* findings) {
  // nvidia-smi knows what the driver's files do not say. Without it those conditions show when a program runs.
  const std::string smi = machine.run({"nvidia-smi", "-q"}).value_or("");
  ExamineClock(smi, findings);
  const char* visible = machine.environment("CUDA_VISIBLE_DEVICES");
  if (visible != nullptr && std::string_view(visible).substr(0, 4) == "MIG-") {
    findings->push_back(Bad("mig", ConditionId::kMig, std::string("CUDA_VISIBLE_DEVICES=") + visible, false));
  } else if (ValueOf(smi, "Current", "MIG Mode") == "Enabled") {
    findings->push_back(Bad("mig", ConditionId::kMig, "MIG mode is enabled", false));
  }
  const std::string virtualization = ValueOf(smi, "Virtualization Mode");
  if (virtualization == "VGPU") {
    findings->push_back(Bad("vgpu", ConditionId::kVgpu, "nvidia-smi says Virtualization Mode: VGPU", false));
  }
  const std::string confidential = machine.run({"nvidia-smi", "conf-compute", "-f"}).value_or("");
  if (ValueOf(confidential, "CC status") == "ON") {
    const std::string devtools = machine.run({"nvidia-smi", "conf-compute", "-d"}).value_or("");
    if (ValueOf(devtools, "DevTools Mode") != "ON") {
      findings->push_back(Bad("cc", ConditionId::kConfidential, "nvidia-smi says CC status: ON", true));
    }
  }
  const char* mps = nullptr;
  for (const char* name : {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_MPS_PIPE_DIRECTORY"}) {
    const char* value = machine.environment(name);
    if (mps == nullptr && value != nullptr && *value != '\0') mps = name;
  }
  const std::string daemon = RunningProcess(machine, {"nvidia-cuda-mps"});
  if (!daemon.empty() || mps != nullptr) {
    findings->push_back(Bad("mps", ConditionId::kMps,
                            daemon.empty() ? std::string(mps) + " is set" : daemon + " runs", !daemon.empty()));
  }
  const std::string monitor = RunningProcess(machine, {"nv-hostengine", "dcgm-exporter"});
  if (monitor.empty()) return;
  // On Hopper and later GPUs, DCGM reads a unit of its own (NVIDIA/DCGM, issue 62).
  const std::vector<std::string> models = Models(machine);
  if (!models.empty() && std::all_of(models.begin(), models.end(), [](const std::string& model) {
        const Gpu* gpu = MatchGpu(model);
        return gpu != nullptr && gpu->cc_major >= 9;
      })) {
    findings->push_back(Good("dcgm", monitor + " runs, which takes no counters from us on these GPUs"));
  } else {
    findings->push_back(Bad("dcgm", ConditionId::kBusy, monitor + " runs", false));
  }
}

bool Contains(const std::string& path, std::string_view text) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> block(size_t{1} << 20);
  size_t kept = 0;
  while (file.good()) {
    file.read(block.data() + kept, static_cast<std::streamsize>(block.size() - kept));
    const size_t have = kept + static_cast<size_t>(file.gcount());
    if (std::string_view(block.data(), have).find(text) != std::string_view::npos) return true;
    kept = std::min(have, text.size() - 1);
    std::copy(block.data() + have - kept, block.data() + have, block.data());
  }
  return false;
}

}  // namespace

std::vector<GpuFinding> ExamineGpus(const MachineView& machine) {
  std::vector<GpuFinding> findings;
  std::error_code error;
  const std::string version = TextOf(machine.root + "/proc/driver/nvidia/version");
  if (version.empty() && std::filesystem::exists(machine.root + "/dev/dxg", error)) {
    return {Good("driver", "the Windows driver (WSL)"),
            Bad("counters", ConditionId::kWsl, "/dev/dxg is there", false)};
  }
  if (version.empty()) {
    return {{.what = "gpu",
             .text = "no NVIDIA driver on this machine: nothing can be measured, only estimated",
             .remedy = "rfinject --estimate A100-SXM4-40GB PROGRAM"}};
  }
  findings.push_back(Good("driver", UpToLineBreak(version)));
  const std::vector<std::string> models = Models(machine);
  bool nodes = false;
  for (int i = 0; i < 64 && !nodes; ++i) {
    nodes = ::access((machine.root + "/dev/nvidia" + std::to_string(i)).c_str(), R_OK | W_OK) == 0;
  }
  if (models.empty() || !nodes) {
    findings.push_back({.what = "gpu",
                        .text = std::to_string(models.size()) + " GPUs, and no /dev/nvidia* that we may open",
                        .remedy = "docker run --gpus all, or ask for a GPU from the scheduler"});
  } else {
    std::string text = std::to_string(models.size()) + (models.size() == 1 ? " GPU: " : " GPUs: ") + models.front();
    const Gpu* gpu = MatchGpu(models.front());
    text += gpu != nullptr ? " (" + std::string(gpu->chip) + ")" : ", which gpus.csv has no roofs for";
    findings.push_back(Good("gpu", text));
  }
  ExaminePermission(machine, &findings);
  ExamineSharing(machine, &findings);
  return findings;
}

std::vector<GpuFinding> ExamineCupti(const MachineView& machine, const std::vector<std::string>& candidates) {
  std::vector<GpuFinding> findings;
  std::error_code error;
  const auto found = std::find_if(candidates.begin(), candidates.end(), [&](const std::string& path) {
    return std::filesystem::exists(machine.root + path, error);
  });
  if (found == candidates.end()) {
    return {Bad("cupti", ConditionId::kNoCupti, {}, true)};
  }
  findings.push_back(Good("cupti", *found));
  const std::filesystem::path file = machine.root + *found;
  // Without the one (before 12.6 update 2) the legacy profiler counts, which plans with Perfworks.
  const bool range_profiler = Contains(file, "cuptiRangeProfilerEnable");
  if (!range_profiler && !Contains(file, "cuptiProfilerBeginSession")) {
    findings.push_back(Bad("cupti", ConditionId::kCuptiTooOld, *found, true));
  }
  std::filesystem::path perfworks;
  const std::filesystem::path real = std::filesystem::canonical(file, error);
  for (const std::filesystem::path& folder :
       {file.parent_path(), real.parent_path(), real.parent_path() / "../../../lib64"}) {
    if (perfworks.empty() && std::filesystem::exists(folder / "libnvperf_host.so", error)) {
      perfworks = folder / "libnvperf_host.so";
    }
  }
  if (perfworks.empty()) {
    findings.push_back(Bad("perfworks", ConditionId::kNoPerfworks, *found, true));
    return findings;
  }
  const std::string shown = perfworks.string().substr(machine.root.size());
  if (!range_profiler && !Contains(perfworks, "NVPW_CUDA_MetricsEvaluator_Initialize")) {
    findings.push_back(Bad("perfworks", ConditionId::kNoPerfworks, shown, true));
    return findings;
  }
  findings.push_back(Good("perfworks", shown));
  // The library carries the names of the chips that it knows. (To ask it, a libcupti would have to be loaded, and
  // CUPTI 13.2 does not survive that on a machine without a driver.)
  std::vector<std::string_view> seen;
  for (const std::string& model : Models(machine)) {
    const Gpu* gpu = MatchGpu(model);
    if (gpu == nullptr || std::find(seen.begin(), seen.end(), gpu->chip) != seen.end()) continue;
    seen.push_back(gpu->chip);
    if (Contains(perfworks, gpu->chip)) {
      findings.push_back(Good("chip", std::string(gpu->chip) + " is known to it"));
    } else {
      findings.push_back(Bad("chip", ConditionId::kUnknownChip, std::string(gpu->chip), true));
    }
  }
  return findings;
}

}  // namespace rfinject::cli
