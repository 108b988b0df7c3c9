#include "virtual_gpu/driver/host_memory.h"

#include <gtest/gtest.h>

namespace rfinject::virtual_gpu {
namespace {

TEST(HostMemory, NumbersStandBehindTheirNames) {
  const char* const text = "MemTotal:       24689728 kB\nMemAvailable:   1234 kB\ninactive_file 77\n";
  EXPECT_EQ(NumberOf(text, "MemAvailable"), 1234u);
  EXPECT_EQ(NumberOf(text, "inactive_file"), 77u);
  EXPECT_EQ(NumberOf(text, "inactive"), UINT64_MAX);
  EXPECT_EQ(NumberOf("max\n", "max"), UINT64_MAX);
}

TEST(HostMemory, ThisHostHasSome) { EXPECT_GT(HostBytesLeft(), 0u); }

}  // namespace
}  // namespace rfinject::virtual_gpu
