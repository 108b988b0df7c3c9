#include "injector/python/batch_size.h"

#include <gtest/gtest.h>

#include <vector>

namespace rfinject {
namespace {

struct Case {
  std::vector<long long> shape;
  bool floating = true, direct = true;
  uint64_t loader_batch = 0;
  bool sequence_first = false;
};

uint64_t Of(const Case& one) {
  return SamplesOfCall({one.shape, one.floating, one.direct}, one.loader_batch, one.sequence_first);
}

TEST(BatchSize, OfInputsWithOneDimensionThatCanBeIt) {
  EXPECT_EQ(Of({{8, 3, 32, 32}}), 8u);
  EXPECT_EQ(Of({{2, 3, 16, 112, 112}}), 2u);
  EXPECT_EQ(Of({{8, 16}}), 8u);
  EXPECT_EQ(Of({.shape = {12, 1024}, .floating = false}), 12u) << "tokens";
}

TEST(BatchSize, IsNotSaidWhereItMayBeAnotherDimension) {
  EXPECT_EQ(Of({.shape = {35, 20}, .floating = false, .sequence_first = true}), 0u) << "tokens of an LSTM";
  EXPECT_EQ(Of({{35, 20, 200}}), 0u);
  EXPECT_EQ(Of({{3, 224, 224}}), 0u) << "a picture";
  EXPECT_EQ(Of({.shape = {3, 224, 224}, .direct = false}), 0u) << "a list of pictures";
  EXPECT_EQ(Of({{}}), 0u);
  EXPECT_EQ(Of({{7}}), 0u);
}

TEST(BatchSize, IsTheLoaders) {
  EXPECT_EQ(Of({.shape = {8, 50, 200}, .loader_batch = 8}), 8u);
  EXPECT_EQ(Of({.shape = {5, 50, 200}, .loader_batch = 8}), 5u) << "the last batch";
  EXPECT_EQ(Of({.shape = {8, 77}, .floating = false, .loader_batch = 8, .sequence_first = true}), 8u);
  EXPECT_EQ(Of({.shape = {35, 20}, .floating = false, .loader_batch = 20, .sequence_first = true}), 0u);
  EXPECT_EQ(Of({.shape = {3, 224, 224}, .direct = false, .loader_batch = 4}), 0u);
  EXPECT_EQ(Of({.shape = {16, 3, 32, 32}, .loader_batch = 8}), 16u) << "two views of each";
}

}  // namespace
}  // namespace rfinject
