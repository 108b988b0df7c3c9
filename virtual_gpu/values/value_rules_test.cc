#include "virtual_gpu/values/value_rules.h"

#include <gtest/gtest.h>

#include "virtual_gpu/values/value_substitutes.h"

namespace rfinject {
namespace {

TEST(ValueRules, TheNamespaceMakesNoDifference) {
  EXPECT_TRUE(ValueRuleOf("aten::mm", false).product);
  EXPECT_TRUE(ValueRuleOf("mm", false).product);
  EXPECT_FALSE(ValueRuleOf("aten::mul", false).product);
}

TEST(ValueRules, WhatDrawsOrMeansSomethingElseOnTheCpuIsNeverComputed) {
  for (const char* name :
       {"aten::native_dropout", "aten::_scaled_dot_product_flash_attention", "aten::_cudnn_rnn", "aten::empty",
        "aten::resize_", "aten::_local_scalar_dense", "aten::_fft_c2c", "aten::transpose", "aten::squeeze_"}) {
    EXPECT_TRUE(ValueRuleOf(name, false).never) << name;
  }
  for (const char* name : {"aten::add", "aten::native_batch_norm", "aten::randperm", "aten::masked_select"}) {
    EXPECT_FALSE(ValueRuleOf(name, false).never) << name;
  }
}

TEST(ValueRules, WhereEveryValueIsWantedLittleIsLeftAlone) {
  for (const char* name : {"aten::native_dropout", "aten::_scaled_dot_product_flash_attention", "aten::_fft_c2c",
                           "aten::cudnn_batch_norm", "aten::mm"}) {
    EXPECT_FALSE(ValueRuleOf(name, true).never) << name;
  }
  for (const char* name : {"aten::empty", "aten::resize_", "aten::_local_scalar_dense", "aten::transpose"}) {
    EXPECT_TRUE(ValueRuleOf(name, true).never) << name;
  }
  EXPECT_TRUE(ValueRuleOf("aten::_convolution", true).covers);
  EXPECT_FALSE(ValueRuleOf("aten::_convolution", false).covers);
  // Its backward uses what runs inside it.
  EXPECT_FALSE(ValueRuleOf("aten::_scaled_dot_product_attention_math", true).covers);
  EXPECT_TRUE(ValueRuleOf("aten::mm", true).wide);
  EXPECT_FALSE(ValueRuleOf("aten::mm", false).wide);
}

TEST(ValueSubstitutes, OperandsComeFromArgumentsThatAreThere) {
  const Substitute* norm = SubstituteFor("aten::cudnn_batch_norm_backward");
  ASSERT_NE(norm, nullptr);
  EXPECT_EQ(norm->op, "native_batch_norm_backward");
  // The gradient comes first here, and second there.
  EXPECT_EQ(norm->operands[0], 1);
  EXPECT_EQ(norm->operands[1], 0);
  EXPECT_TRUE(norm->Uses(7));
  EXPECT_FALSE(norm->Uses(8)) << "cuDNN's reserve";
  EXPECT_EQ(SubstituteFor("aten::mm"), nullptr);
  EXPECT_EQ(SubstituteFor("mylib::_softmax"), nullptr);
}

TEST(ValueRules, WhatReadsItsOwnResults) {
  EXPECT_TRUE(ValueRuleOf("aten::nonzero", false).counts);
  EXPECT_TRUE(ValueRuleOf("aten::_unique2", false).counts);
  EXPECT_TRUE(ValueRuleOf("aten::_sparse_sparse_matmul", false).counts);
  EXPECT_TRUE(ValueRuleOf("aten::_coalesce", false).merges);
  EXPECT_TRUE(ValueRuleOf("aten::equal", false).compares);
  EXPECT_FALSE(ValueRuleOf("aten::eq", false).compares);
  EXPECT_TRUE(ValueRuleOf("aten::all", false).all);
  EXPECT_TRUE(ValueRuleOf("aten::tril_indices", false).makes);
}

TEST(ValueRules, FactorsAreComputedAsAWhole) {
  EXPECT_TRUE(ValueRuleOf("aten::linalg_lu", false).whole);
  EXPECT_TRUE(ValueRuleOf("aten::linalg_lstsq", false).whole);
  EXPECT_FALSE(ValueRuleOf("aten::linalg_lu_factor_ex", false).whole);
  // Row numbers that are zeros lie outside of the matrix.
  EXPECT_TRUE(ValueRuleOf("aten::lu_unpack", false).exact);
  EXPECT_TRUE(ValueRuleOf("aten::_convert_indices_from_coo_to_csr", false).exact);
  EXPECT_TRUE(ValueRuleOf("aten::linalg_lu_solve", false).exact);
}

TEST(ValueRules, RandomOperatorsHaveAGenerator) {
  EXPECT_TRUE(ValueRuleOf("aten::normal_", false).random);
  EXPECT_TRUE(ValueRuleOf("aten::randperm", false).random);
  EXPECT_FALSE(ValueRuleOf("aten::add_", false).random);
}

TEST(ValueRules, WhichArgumentsAreWrittenTo) {
  EXPECT_EQ(ValueRuleOf("aten::add", false).writes, 0u);
  EXPECT_EQ(ValueRuleOf("aten::add_", false).writes, 0b1u);
  EXPECT_EQ(ValueRuleOf("aten::transpose_", false).writes, 0u);
  EXPECT_EQ(ValueRuleOf("aten::_amp_update_scale_", false).writes, 0b11u);
  // (weights, gradients, averages, averages of squares, largest of these, steps): gradients stay as they are.
  EXPECT_EQ(ValueRuleOf("aten::_fused_adamw_", false).writes, 0b11101u);
  EXPECT_EQ(ValueRuleOf("aten::_fused_sgd_", false).writes, 0b101u);
  // Running mean and variance.
  EXPECT_EQ(ValueRuleOf("aten::native_batch_norm", false).writes, 0b11000u);
}

}  // namespace
}  // namespace rfinject
