#include "injector/torch/value_rules.h"

#include <gtest/gtest.h>

namespace rfinject {
namespace {

TEST(ValueRules, TheNamespaceMakesNoDifference) {
  EXPECT_TRUE(ValueRuleOf("aten::mm").product);
  EXPECT_TRUE(ValueRuleOf("mm").product);
  EXPECT_FALSE(ValueRuleOf("aten::mul").product);
}

TEST(ValueRules, WhatDrawsOrMeansSomethingElseOnTheCpuIsNeverComputed) {
  for (const char* name :
       {"aten::native_dropout", "aten::_scaled_dot_product_flash_attention", "aten::_cudnn_rnn", "aten::empty",
        "aten::resize_", "aten::_local_scalar_dense", "aten::_fft_c2c", "aten::transpose", "aten::squeeze_"}) {
    EXPECT_TRUE(ValueRuleOf(name).never) << name;
  }
  for (const char* name : {"aten::add", "aten::native_batch_norm", "aten::randperm", "aten::masked_select"}) {
    EXPECT_FALSE(ValueRuleOf(name).never) << name;
  }
}

TEST(ValueRules, WhatReadsItsOwnResults) {
  EXPECT_TRUE(ValueRuleOf("aten::nonzero").counts);
  EXPECT_TRUE(ValueRuleOf("aten::_unique2").counts);
  EXPECT_TRUE(ValueRuleOf("aten::_sparse_sparse_matmul").counts);
  EXPECT_TRUE(ValueRuleOf("aten::_coalesce").merges);
  EXPECT_TRUE(ValueRuleOf("aten::equal").compares);
  EXPECT_FALSE(ValueRuleOf("aten::eq").compares);
  EXPECT_TRUE(ValueRuleOf("aten::all").all);
  EXPECT_TRUE(ValueRuleOf("aten::tril_indices").makes);
}

TEST(ValueRules, FactorsAreComputedAsAWhole) {
  EXPECT_TRUE(ValueRuleOf("aten::linalg_lu").whole);
  EXPECT_TRUE(ValueRuleOf("aten::linalg_lstsq").whole);
  EXPECT_FALSE(ValueRuleOf("aten::linalg_lu_factor_ex").whole);
  // Row numbers that are zeros lie outside of the matrix.
  EXPECT_TRUE(ValueRuleOf("aten::lu_unpack").exact);
  EXPECT_TRUE(ValueRuleOf("aten::_convert_indices_from_coo_to_csr").exact);
  EXPECT_TRUE(ValueRuleOf("aten::linalg_lu_solve").exact);
}

TEST(ValueRules, RandomOperatorsHaveAGenerator) {
  EXPECT_TRUE(ValueRuleOf("aten::normal_").random);
  EXPECT_TRUE(ValueRuleOf("aten::randperm").random);
  EXPECT_FALSE(ValueRuleOf("aten::add_").random);
}

TEST(ValueRules, WhichArgumentsAreWrittenTo) {
  EXPECT_EQ(ValueRuleOf("aten::add").writes, 0u);
  EXPECT_EQ(ValueRuleOf("aten::add_").writes, 0b1u);
  EXPECT_EQ(ValueRuleOf("aten::transpose_").writes, 0u);
  EXPECT_EQ(ValueRuleOf("aten::_amp_update_scale_").writes, 0b11u);
  // (weights, gradients, averages, averages of squares, largest of these, steps): gradients stay as they are.
  EXPECT_EQ(ValueRuleOf("aten::_fused_adamw_").writes, 0b11101u);
  EXPECT_EQ(ValueRuleOf("aten::_fused_sgd_").writes, 0b101u);
  // Running mean and variance.
  EXPECT_EQ(ValueRuleOf("aten::native_batch_norm").writes, 0b11000u);
}

}  // namespace
}  // namespace rfinject
