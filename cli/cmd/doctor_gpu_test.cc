#include "cli/cmd/doctor_gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "cli/cmd/doctor_ask.h"

namespace rfinject::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A machine in a folder: an H100 that everybody may measure, until a test changes it.
class DoctorGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = ::testing::TempDir() + "doctor_gpu_XXXXXX";
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    root_ = path;
    machine_.root = root_;
    machine_.environment = [this](const char* name) -> const char* {
      auto at = environment_.find(name);
      return at == environment_.end() ? nullptr : at->second.c_str();
    };
    machine_.run = [this](const std::vector<std::string>& words) -> std::optional<std::string> {
      std::string command;
      for (const std::string& word : words) command += (command.empty() ? "" : " ") + word;
      auto at = commands_.find(command);
      return at == commands_.end() ? std::nullopt : std::optional(at->second);
    };
    Write("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.00\nGCC version: 12\n");
    Write("/proc/driver/nvidia/params", "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 0\n");
    Write("/proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 3\n");
    Write("/dev/nvidia0", "");
    Write("/proc/self/status", "Name:\tdoctor\nCapInh:\t0000000000000000\nCapEff:\t0000000000000000\n");
    Write("/proc/self/uid_map", "         0          0 4294967295\n");
    Write("/proc/1/comm", "init\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  std::vector<ConditionId> Conditions(const std::vector<GpuFinding>& findings) {
    std::vector<ConditionId> ids;
    for (const GpuFinding& finding : findings) {
      if (!finding.condition) continue;
      ids.push_back(*finding.condition);
      // The sentence and the remedy are the table's.
      const Condition& condition = GetCondition(*finding.condition);
      EXPECT_THAT(finding.text, HasSubstr(std::string(condition.message)));
      EXPECT_EQ(finding.remedy, condition.remedy);
      EXPECT_FALSE(finding.good);
    }
    return ids;
  }
  std::vector<ConditionId> Gpus() { return Conditions(ExamineGpus(machine_)); }
  std::string TextOf(const std::string& what) {
    for (const GpuFinding& finding : ExamineGpus(machine_)) {
      if (finding.what == what) return finding.text;
    }
    return {};
  }

  std::string root_;
  MachineView machine_;
  std::map<std::string, std::string> environment_, commands_;
};

TEST_F(DoctorGpu, NothingStandsInTheWay) {
  for (const GpuFinding& finding : ExamineGpus(machine_)) EXPECT_TRUE(finding.good) << finding.text;
  EXPECT_EQ(TextOf("driver"), "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.00");
  EXPECT_EQ(TextOf("gpu"), "1 GPU: NVIDIA H100 80GB HBM3 (GH100)");
}

TEST_F(DoctorGpu, NoDriver) {
  std::filesystem::remove_all(root_ + "/proc/driver");
  const std::vector<GpuFinding> findings = ExamineGpus(machine_);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_THAT(findings[0].text, HasSubstr("no NVIDIA driver"));
  EXPECT_EQ(findings[0].remedy, "rfinject --estimate A100-SXM4-40GB PROGRAM");
}

TEST_F(DoctorGpu, ADriverWithoutANode) {
  std::filesystem::remove(root_ + "/dev/nvidia0");
  EXPECT_THAT(TextOf("gpu"), HasSubstr("no /dev/nvidia*"));
}

TEST_F(DoctorGpu, Wsl) {
  std::filesystem::remove_all(root_ + "/proc/driver");
  Write("/dev/dxg", "");
  EXPECT_THAT(Gpus(), ElementsAre(ConditionId::kWsl));
}

TEST_F(DoctorGpu, AdministratorsOnly) {
  Write("/proc/driver/nvidia/params", "RmProfilingAdminOnly: 1\n");
  EXPECT_THAT(Gpus(), ElementsAre(ConditionId::kPermission));
  EXPECT_THAT(TextOf("counters"), HasSubstr("FLOP and bytes are not measured"));
  Write("/proc/self/status", "CapEff:\t0000004000000000\n");  // bit 38
  EXPECT_THAT(Gpus(), IsEmpty());
  EXPECT_EQ(TextOf("counters"), "for administrators, which CAP_PERFMON makes us");
  Write("/proc/self/status", "CapEff:\t0000000000200000\n");  // bit 21
  EXPECT_EQ(TextOf("counters"), "for administrators, which CAP_SYS_ADMIN makes us");
  Write("/proc/self/uid_map", "0 1000 1\n");
  EXPECT_THAT(Gpus(), ElementsAre(ConditionId::kPermission));
  EXPECT_THAT(TextOf("counters"), HasSubstr("it may be that"));
}

TEST_F(DoctorGpu, AClockThatIsHeldDown) {
  const std::string before = "    Clocks\n        Graphics                                       : 345 MHz\n";
  const auto say = [&](const char* set, const char* reason) {
    commands_["nvidia-smi -q"] =
        before + "    Clocks Event Reasons\n        Applications Clocks Setting                    : " + reason +
        "\n    Applications Clocks\n        Graphics                                       : " + set +
        "\n    Default Applications Clocks\n        Graphics                                       : 1980 MHz\n";
  };
  say("1980 MHz", "Not Active");
  EXPECT_EQ(TextOf("clock"), "");
  say("1980 MHz", "Active");
  EXPECT_THAT(TextOf("clock"), HasSubstr("holds the GPU's clock: what is measured"));
  say("1095 MHz", "Not Active");
  EXPECT_THAT(TextOf("clock"), HasSubstr("at 1095 MHz, by default it is 1980 MHz"));
}

// Word for word, and what holds where the program runs first.
TEST_F(DoctorGpu, WhatToAskTheAdministratorFor) {
  EXPECT_EQ(WhatToAsk(machine_, ExamineGpus(machine_)), "");
  Write("/proc/driver/nvidia/params", "RmProfilingAdminOnly: 1\n");
  const auto ask = [this] { return WhatToAsk(machine_, ExamineGpus(machine_)); };
  const std::string text = ask();
  for (const char* words :
       {"options nvidia NVreg_RestrictProfilingToAdminUsers=0\n", "--cap-add=PERFMON", "R565: SYS_ADMIN",
        "capabilities: {add: [\"PERFMON\"]}", "Slurm", "RmProfilingAdminOnly: 0"}) {
    EXPECT_THAT(text, HasSubstr(words));
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  const auto first_is = [&](const char* first) {
    const std::string now = ask();
    for (const char* way : {"  Docker", "  Kubernetes", "  Slurm"}) {
      if (std::string_view(way) != first) {
        EXPECT_LT(now.find(first), now.find(way)) << now;
      }
    }
  };
  environment_["SLURM_JOB_ID"] = "17";
  first_is("  Slurm");
  environment_.clear();
  Write("/.dockerenv", "");
  first_is("  Docker");
  environment_["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
  first_is("  Kubernetes");
}

TEST_F(DoctorGpu, ADriverThatDoesNotSay) {
  Write("/proc/driver/nvidia/params", "ResmanDebugLevel: 4294967295\n");
  EXPECT_THAT(TextOf("counters"), HasSubstr("does not say"));
  EXPECT_THAT(Gpus(), IsEmpty());
}

TEST_F(DoctorGpu, Mig) {
  environment_["CUDA_VISIBLE_DEVICES"] = "MIG-1a2b";
  EXPECT_THAT(Gpus(), ElementsAre(ConditionId::kMig));
  environment_.clear();
  commands_["nvidia-smi -q"] = "    MIG Mode\n        Current                           : Disabled\n";
  EXPECT_THAT(Gpus(), IsEmpty());
  commands_["nvidia-smi -q"] =
      "    Persistence Mode : Enabled\n    MIG Mode\n        Current                           : Enabled\n"
      "        Pending                           : Enabled\n";
  EXPECT_THAT(Gpus(), ElementsAre(ConditionId::kMig));
}

TEST_F(DoctorGpu, VirtualGpu) {
  commands_["nvidia-smi -q"] =
      "    GPU Virtualization Mode\n        Virtualization Mode               : Pass-Through\n";
  EXPECT_THAT(Gpus(), IsEmpty());
  commands_["nvidia-smi -q"] = "    GPU Virtualization Mode\n        Virtualization Mode               : VGPU\n";
  EXPECT_THAT(Gpus(), ElementsAre(ConditionId::kVgpu));
}

TEST_F(DoctorGpu, ConfidentialComputing) {
  commands_["nvidia-smi conf-compute -f"] = "CC status: OFF\n";
  EXPECT_THAT(Gpus(), IsEmpty());
  commands_["nvidia-smi conf-compute -f"] = "CC status: ON\n";
  EXPECT_THAT(Gpus(), ElementsAre(ConditionId::kConfidential));
  commands_["nvidia-smi conf-compute -d"] = "DevTools Mode: ON\n";
  EXPECT_THAT(Gpus(), IsEmpty());
}

TEST_F(DoctorGpu, Mps) {
  environment_["CUDA_MPS_PIPE_DIRECTORY"] = "/tmp/mps";
  EXPECT_THAT(Gpus(), ElementsAre(ConditionId::kMps));
  environment_.clear();
  Write("/proc/77/comm", "nvidia-cuda-mps\n");
  EXPECT_THAT(Gpus(), ElementsAre(ConditionId::kMps));
  EXPECT_THAT(TextOf("mps"), HasSubstr("nvidia-cuda-mps (process 77) runs"));
}

TEST_F(DoctorGpu, DcgmHoldsCountersBeforeHopper) {
  Write("/proc/42/comm", "nv-hostengine\n");
  EXPECT_THAT(Gpus(), IsEmpty());
  EXPECT_THAT(TextOf("dcgm"), HasSubstr("process 42"));
  Write("/proc/driver/nvidia/gpus/0000:02:00.0/information", "Model: \t\t NVIDIA A100-SXM4-40GB\n");
  EXPECT_THAT(Gpus(), ElementsAre(ConditionId::kBusy));
}

TEST_F(DoctorGpu, CuptiAndPerfworks) {
  const std::vector<std::string> candidates = {"/wheel/lib/libcupti.so.12", "/toolkit/lib64/libcupti.so.13"};
  EXPECT_THAT(Conditions(ExamineCupti(machine_, candidates)), ElementsAre(ConditionId::kNoCupti));
  Write("/toolkit/lib64/libcupti.so.13", "…cuptiRangeProfilerEnable…");
  EXPECT_THAT(Conditions(ExamineCupti(machine_, candidates)), ElementsAre(ConditionId::kNoPerfworks));
  Write("/toolkit/lib64/libnvperf_host.so", std::string((1u << 20) - 2, 'x') + "GH100");  // over a block's end
  const std::vector<GpuFinding> good = ExamineCupti(machine_, candidates);
  EXPECT_THAT(Conditions(good), IsEmpty());
  ASSERT_EQ(good.size(), 3u);
  EXPECT_EQ(good[0].text, "/toolkit/lib64/libcupti.so.13");
  EXPECT_EQ(good[1].text, "/toolkit/lib64/libnvperf_host.so");
  EXPECT_THAT(good[2].text, HasSubstr("GH100"));
  Write("/toolkit/lib64/libnvperf_host.so", "GA100");
  EXPECT_THAT(Conditions(ExamineCupti(machine_, candidates)), ElementsAre(ConditionId::kUnknownChip));
  // The wheel's comes first, and has the legacy profiler only, which needs more of Perfworks.
  Write("/wheel/lib/libcupti.so.12", "…cuptiProfilerBeginSession…");
  Write("/wheel/lib/libnvperf_host.so", "GH100");
  EXPECT_THAT(Conditions(ExamineCupti(machine_, candidates)), ElementsAre(ConditionId::kNoPerfworks));
  Write("/wheel/lib/libnvperf_host.so", "NVPW_CUDA_MetricsEvaluator_Initialize GH100");
  EXPECT_THAT(Conditions(ExamineCupti(machine_, candidates)), IsEmpty());
  Write("/wheel/lib/libcupti.so.12", "…cuptiActivityEnable…");
  EXPECT_THAT(Conditions(ExamineCupti(machine_, candidates)), ::testing::Contains(ConditionId::kCuptiTooOld));
}

}  // namespace
}  // namespace rfinject::cli
