#include "cli/model/match_gpu.h"

#include <gtest/gtest.h>

#include <string>

namespace rfinject::cli {
namespace {

std::string Match(std::string_view name, uint64_t memory_bytes = 0) {
  const Gpu* gpu = MatchGpu(name, memory_bytes);
  return gpu == nullptr ? std::string() : std::string(gpu->name);
}

// Names as cudaGetDeviceProperties and nvidia-smi give them.
TEST(MatchGpu, DevicesAsTheDriverNamesThem) {
  EXPECT_EQ(Match("NVIDIA A100-SXM4-40GB"), "A100-SXM4-40GB");
  EXPECT_EQ(Match("NVIDIA A100-SXM4-80GB"), "A100-SXM4-80GB");
  EXPECT_EQ(Match("A100-SXM4-40GB"), "A100-SXM4-40GB");
  EXPECT_EQ(Match("NVIDIA A100-PCIE-40GB"), "A100-PCIe-40GB");
  EXPECT_EQ(Match("NVIDIA A100 80GB PCIe"), "A100-PCIe-80GB");
  EXPECT_EQ(Match("Tesla V100-SXM2-16GB"), "V100-SXM2-16GB");
  EXPECT_EQ(Match("Tesla V100-SXM2-32GB"), "V100-SXM2-32GB");
  EXPECT_EQ(Match("Tesla V100-DGXS-32GB"), "V100-DGXS-32GB");
  EXPECT_EQ(Match("Tesla V100-DGXS-16GB"), "V100-DGXS-16GB");
  EXPECT_EQ(Match("Tesla V100-PCIE-16GB"), "V100-PCIe");
  EXPECT_EQ(Match("Tesla V100-PCIE-32GB"), "V100-PCIe");
  EXPECT_EQ(Match("Tesla V100S-PCIE-32GB"), "V100S-PCIe-32GB");
  EXPECT_EQ(Match("Tesla P100-PCIE-12GB"), "P100-PCIe-12GB");
  EXPECT_EQ(Match("Tesla P100-SXM2-16GB"), "P100-SXM2-16GB");
  EXPECT_EQ(Match("Tesla T4"), "T4");
  EXPECT_EQ(Match("NVIDIA A10"), "A10");
  EXPECT_EQ(Match("NVIDIA L4"), "L4");
  EXPECT_EQ(Match("NVIDIA GeForce RTX 3090"), "RTX3090");
  EXPECT_EQ(Match("NVIDIA GeForce RTX 4090"), "RTX4090");
  EXPECT_EQ(Match("NVIDIA H100 80GB HBM3"), "H100-SXM5-80GB");
  EXPECT_EQ(Match("NVIDIA H100 PCIe"), "H100-PCIe-80GB");
  EXPECT_EQ(Match("NVIDIA H100 NVL"), "H100-NVL-94GB");
  EXPECT_EQ(Match("NVIDIA H200"), "H200-SXM-141GB");
  EXPECT_EQ(Match("NVIDIA H200 NVL"), "H200-NVL-141GB");
  EXPECT_EQ(Match("NVIDIA B200"), "B200-SXM-180GB");
  EXPECT_EQ(Match("NVIDIA B300 SXM6 AC"), "B300-SXM-288GB");
}

TEST(MatchGpu, WhatTheNameLeavesOpenTheMemorySettles) {
  EXPECT_EQ(Match("NVIDIA A100-SXM4", 42298834944), "A100-SXM4-40GB");
  EXPECT_EQ(Match("NVIDIA A100-SXM4", 85049933824), "A100-SXM4-80GB");
}

// Other GPUs must not borrow roofs that are not theirs.
TEST(MatchGpu, CousinsDoNotMatch) {
  for (const char* name :
       {"Tesla V100-SXM3-32GB", "NVIDIA A10G", "NVIDIA GeForce RTX 3090 Ti", "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA L40G", "NVIDIA A100-SXM-64GB", "NVIDIA GH200 480GB",
        "NVIDIA H800 PCIe", "NVIDIA A800-SXM4-40GB", "Tesla V100-SXM2-32GB-LS", "NVIDIA H100 80GB HBM2e",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "", "NVIDIA", "AMD Radeon Graphics", "AMD Instinct MI100"}) {
    EXPECT_EQ(Match(name), "") << name;
  }
}

TEST(MatchGpu, KnowsTheNamesOfAmdsDriver) {
  EXPECT_EQ(Match("AMD Instinct MI210"), "MI210-64GB");
  EXPECT_EQ(Match("AMD Instinct MI250X"), "MI250X-OAM-64GB");
  EXPECT_EQ(Match("AMD Instinct MI300X"), "MI300X-OAM-192GB");
  EXPECT_EQ(Match("AMD Instinct MI300X VF"), "MI300X-OAM-192GB");
  EXPECT_EQ(Match("AMD Instinct MI325X"), "MI325X-OAM-256GB");
}

TEST(MatchGpu, EveryRowMatchesItself) {
  for (const Gpu& gpu : AllGpus()) {
    EXPECT_EQ(Match(gpu.name), gpu.name);
    EXPECT_EQ(Match("NVIDIA " + std::string(gpu.name)), gpu.name);
  }
}

}  // namespace
}  // namespace rfinject::cli
