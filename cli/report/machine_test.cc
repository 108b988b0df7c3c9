#include "cli/report/machine.h"

#include <gtest/gtest.h>

namespace rfinject::cli {
namespace {

TEST(MachineFor, AnEstimatesGpuIsTheOneEstimatedOn) {
  cli::Run run;
  run.key.estimated_gpu = "V100-SXM2-16GB";
  run.devices = {{.name = "NVIDIA A100-SXM4-40GB"}};
  const Machine machine = MachineFor(run);
  EXPECT_EQ(machine.name, "V100-SXM2-16GB");
  EXPECT_EQ(machine.peak[static_cast<size_t>(Precision::kFp32)], 15.7e12);
  EXPECT_EQ(machine.dram_bytes_per_s, 900e9);
}

TEST(MachineFor, ASliceOfAGpuHasNoKnownRoofs) {
  cli::Run run;
  run.key.gpu = "NVIDIA A100-SXM4-40GB";
  run.devices = {{.name = "NVIDIA A100-SXM4-40GB"}};
  EXPECT_EQ(MachineFor(run).name, "A100-SXM4-40GB");
  run.devices[0].mig = true;
  EXPECT_EQ(MachineFor(run).name, "");
}

}  // namespace
}  // namespace rfinject::cli
