#include "virtual_gpu/libraries/reduce.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace rfinject::virtual_gpu {
namespace {

template <typename T>
T Of(ncclRedOp_t operation, ncclDataType_t type, T a, T b) {
  Reduce(operation, type, 1, &a, &b);
  return a;
}

TEST(Reduce, HalfPrecisionRoundsToEven) {
  const auto sum = [](uint16_t a, uint16_t b) { return Of(ncclSum, ncclFloat16, a, b); };
  EXPECT_EQ(sum(0x3c00, 0x4000), 0x4200);  // 1 + 2
  EXPECT_EQ(sum(0x6800, 0x3c00), 0x6800);  // 2048 + 1: halfway, and 2048 is the even one
  EXPECT_EQ(sum(0x6801, 0x3c00), 0x6802);  // 2050 + 1: halfway, and 2052 is
  EXPECT_EQ(sum(0x7bff, 0x7bff), 0x7c00);  // the largest twice: infinity
  EXPECT_EQ(sum(0x0001, 0x0001), 0x0002);  // the smallest
  EXPECT_EQ(sum(0x03ff, 0x0001), 0x0400);  // the smallest with a leading one
  EXPECT_EQ(sum(0x3bff, 0x1000), 0x3c00);  // carries into the exponent
  EXPECT_EQ(sum(0xbc00, 0x3c00), 0x0000);  // -1 + 1
  EXPECT_EQ(Of<uint16_t>(ncclMax, ncclFloat16, 0xbc00, 0x3c00), 0x3c00);
  EXPECT_EQ(Of<uint16_t>(ncclProd, ncclFloat16, 0xc000, 0x4200), 0xc600);  // -2 * 3
}

TEST(Reduce, BrainPrecisionRoundsToEven) {
  const auto sum = [](uint16_t a, uint16_t b) { return Of(ncclSum, ncclBfloat16, a, b); };
  EXPECT_EQ(sum(0x3f80, 0x4000), 0x4040);  // 1 + 2
  EXPECT_EQ(sum(0x4380, 0x3f80), 0x4380);  // 256 + 1: halfway, and 256 is the even one
  EXPECT_EQ(sum(0x4381, 0x3f80), 0x4382);  // 258 + 1
}

TEST(Reduce, WholeNumbersWrapAround) {
  EXPECT_EQ(Of<uint8_t>(ncclSum, ncclUint8, 200, 100), 44);
  EXPECT_EQ(Of<int8_t>(ncclSum, ncclInt8, 100, 100), -56);
  EXPECT_EQ(Of<int64_t>(ncclSum, ncclInt64, INT64_MAX, 1), INT64_MIN);
  EXPECT_EQ(Of<int32_t>(ncclMin, ncclInt32, -3, 2), -3);
  EXPECT_EQ(Of<int64_t>(ncclProd, ncclInt64, -3, 5), -15);
  // More than a double holds.
  EXPECT_EQ(Of<int64_t>(ncclSum, ncclInt64, (int64_t{1} << 53) + 1, 1), (int64_t{1} << 53) + 2);
}

TEST(Reduce, AveragesAfterAdding) {
  float values[] = {9, 1};
  Average(ncclFloat32, 2, 4, values);
  EXPECT_EQ(values[0], 2.25f);
  int32_t whole[] = {9};
  Average(ncclInt32, 1, 4, whole);
  EXPECT_EQ(whole[0], 2);
}

}  // namespace
}  // namespace rfinject::virtual_gpu
