#include "operators/op_table.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace rfinject::estimate {
namespace {

TEST(OpTableTest, Kinds) {
  EXPECT_EQ(ClassifyOp("aten::convolution"), OpKind::kAtomic);
  EXPECT_EQ(ClassifyOp("aten::convolution_backward"), OpKind::kAtomic);
  EXPECT_EQ(ClassifyOp("aten::native_batch_norm"), OpKind::kAtomic);
  EXPECT_EQ(ClassifyOp("aten::conv2d"), OpKind::kLeafIfChildless);
  EXPECT_EQ(ClassifyOp("aten::linear"), OpKind::kLeafIfChildless);
  EXPECT_EQ(ClassifyOp("aten::_batch_norm_impl_index"), OpKind::kLeafIfChildless);
  EXPECT_EQ(ClassifyOp("aten::scaled_dot_product_attention"), OpKind::kLeafIfChildless);
  EXPECT_EQ(ClassifyOp("aten::reshape"), OpKind::kLeafIfChildless);
  EXPECT_EQ(ClassifyOp("aten::view"), OpKind::kFree);
  EXPECT_EQ(ClassifyOp("aten::empty"), OpKind::kFree);
  // Nothing is known about it, so what runs inside is looked at.
  EXPECT_EQ(ClassifyOp("mine::op"), OpKind::kLeafIfChildless);
  EXPECT_EQ(ClassifyOp("autograd::engine::evaluate_function: ConvolutionBackward0"), OpKind::kLeafIfChildless);
  EXPECT_EQ(ClassifyOp("aten::"), OpKind::kLeafIfChildless);
  EXPECT_EQ(ClassifyOp(""), OpKind::kLeafIfChildless);
  EXPECT_EQ(ClassifyOp("view"), OpKind::kLeafIfChildless) << "no namespace";
}

TEST(OpTableTest, InPlaceFormsShareTheFunctionalRow) {
  EXPECT_EQ(FindOp("aten::mul_")->per, FindOp("aten::mul")->per);
  EXPECT_EQ(ClassifyOp("aten::mul_"), OpKind::kAtomic);
  EXPECT_EQ(ClassifyOp("aten::squeeze_"), OpKind::kFree);
  // fill_ is listed itself, so that it may differ from fill.
  EXPECT_EQ(ClassifyOp("aten::fill"), OpKind::kLeafIfChildless);
  EXPECT_EQ(ClassifyOp("aten::fill_"), OpKind::kAtomic);
}

TEST(OpTableTest, ListsAreOneKernel) {
  EXPECT_EQ(ClassifyOp("aten::_foreach_add_"), OpKind::kAtomic);
  EXPECT_EQ(FindOp("aten::_foreach_add_")->flop, FlopRule::kScaledAdd);
  EXPECT_EQ(ClassifyOp("aten::_foreach_copy_"), OpKind::kAtomic);
  EXPECT_EQ(FindOp("aten::_foreach_copy_")->bytes, BytesRule::kCopy);
  EXPECT_EQ(ClassifyOp("aten::_foreach_clone"), OpKind::kAtomic);
  EXPECT_EQ(ClassifyOp("aten::_foreach_norm"), OpKind::kAtomic);
  EXPECT_FALSE(FindOp("aten::_foreach_no_such_thing_"));
}

TEST(OpTableTest, OnlyCopiesAreTransfers) {
  for (const char* name : {"aten::copy_", "aten::_foreach_copy_"}) EXPECT_TRUE(IsCopy(name)) << name;
  for (const char* name : {"aten::mul", "aten::fill_", "aten::cat", "aten::no_such_thing"}) {
    EXPECT_FALSE(IsCopy(name)) << name;
  }
}

TEST(OpTableTest, CollectivesAreNotEstimated) {
  EXPECT_EQ(ClassifyOp("c10d::allreduce_"), OpKind::kFree);
  EXPECT_EQ(ClassifyOp("_c10d_functional::all_reduce"), OpKind::kFree);
}

TEST(OpTableTest, RowsAreConsistent) {
  for (const OpRule& row : AllOps()) {
    SCOPED_TRACE(std::string(row.name));
    EXPECT_FALSE(row.name.starts_with("aten::"));
    if (row.kind == OpKind::kFree) {
      EXPECT_EQ(row.flop, FlopRule::kNone);
    }
    const bool matrix = row.flop >= FlopRule::kConvolution && row.flop <= FlopRule::kRnnBackward;
    if (!matrix) {
      EXPECT_EQ(row.unit, Unit::kVector);
    }
    const bool needs_factor = row.flop == FlopRule::kPerResult || row.flop == FlopRule::kPerOperand ||
                              row.flop == FlopRule::kPerSecond || row.flop == FlopRule::kPerLast ||
                              row.flop == FlopRule::kPerLastIfFlag;
    EXPECT_EQ(row.per != 0, needs_factor);
  }
}

// testdata/operators_seen.txt: every ATen operator that ran in one training step of the networks and optimizers that
// it names. Each has a row: none was classified by accident.
TEST(OpTableTest, KnowsEveryOperatorThatWasSeen) {
  std::ifstream file(RFINJECT_OPERATORS_TESTDATA "/operators_seen.txt");
  ASSERT_TRUE(file);
  size_t seen = 0;
  for (std::string name; std::getline(file, name);) {
    if (name.empty() || name[0] == '#') continue;
    EXPECT_TRUE(FindOp(name)) << name;
    ++seen;
  }
  EXPECT_GT(seen, 200u);
}

}  // namespace
}  // namespace rfinject::estimate
