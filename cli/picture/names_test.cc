#include "cli/picture/names.h"

#include <gtest/gtest.h>

#include <string>

namespace rfinject::cli {
namespace {

TEST(RowName, IsWhatTheRowDiffersIn) {
  Report report;
  const auto name = [&](const Row& row, By by) {
    report.by = by;
    return RowName(row, report);
  };
  Row row;
  row.model = "Net", row.layer = "a.b", row.op = "aten::relu", row.kernel = "void ns::relu_kernel<float>(float*)";
  EXPECT_EQ(name(row, By::kLayer), "a.b");
  EXPECT_EQ(name(row, By::kKernel), "a.b: relu");
  EXPECT_EQ(name(row, By::kOp), "aten::relu");
  row.layer.clear();
  EXPECT_EQ(name(row, By::kLayer), "Net");
  EXPECT_EQ(name(row, By::kKernel), "relu_kernel");
  row = Row{};
  EXPECT_EQ(name(row, By::kLayer), "(no layer)");
  row.phase = Phase::kOptimizer;
  EXPECT_EQ(name(row, By::kLayer), "optimizer");
}

TEST(RowName, NamesTheModelWhereThereAreSeveral) {
  Report report;
  report.run.models = {"Generator", "Discriminator"};
  Row row;
  row.model = "Generator", row.layer = "features.0";
  EXPECT_EQ(RowName(row, report), "Generator features.0");
}

TEST(RowName, KeepsTheEndOfALongPath) {
  Row row;
  row.model = "Net", row.layer = "encoder.layers.encoder_layer_11.self_attention.out_proj";
  EXPECT_TRUE(RowName(row, Report{}).ends_with("self_attention.out_proj"));
}

}  // namespace
}  // namespace rfinject::cli
