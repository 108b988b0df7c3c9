#include "cli/report/rows/repeated_blocks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rfinject::cli {
namespace {

Row LayerRow(const std::string& layer, const std::string& class_name, double time_ns, uint64_t parameters = 0) {
  Row row;
  row.model = "Net";
  row.layer = layer;
  row.class_name = class_name;
  row.parameters = parameters;
  row.output_shape = "f32[8,64]";
  row.phase = Phase::kForward;
  row.sums.launches = 1;
  row.sums[Quantity::kTime] = time_ns;
  row.sums[Quantity::kDramBytes] = 10;
  row.time_share = time_ns / 1000;
  row.time = {.trust = Trust::kByStep, .relative = 0.1};
  return row;
}

TEST(WithoutNumbers, LeavesTheNumbersOfBlocksOpen) {
  EXPECT_EQ(WithoutNumbers("h.11.attn"), "h.*.attn");
  EXPECT_EQ(WithoutNumbers("Block_3.Linear_7"), "Block_*.Linear_*");
  EXPECT_EQ(WithoutNumbers("layer1.0.conv1"), "layer1.*.conv1");
  EXPECT_EQ(WithoutNumbers("h.0.ln_1"), "h.*.ln_1");
  EXPECT_EQ(WithoutNumbers(""), "");
}

TEST(FindRepeatedBlocks, AddsEqualLayersUp) {
  const std::vector<Row> rows = {LayerRow("h.0.act", "GELU", 100), LayerRow("wte", "Embedding", 50, 7),
                                 LayerRow("h.1.act", "GELU", 300)};
  const RepeatedBlocks found = FindRepeatedBlocks(rows);
  ASSERT_EQ(found.groups.size(), 1u);
  EXPECT_EQ(found.group_of, (std::vector<int64_t>{0, -1, 0}));
  const Row& group = found.groups.front();
  EXPECT_EQ(group.layer, "h.*.act");
  EXPECT_EQ(group.layers, 2u);
  EXPECT_EQ(group.sums.time_ns(), 400);
  EXPECT_DOUBLE_EQ(group.time_share, 0.4);
  EXPECT_DOUBLE_EQ(group.derived.bandwidth_bytes_per_s, 20 / 400e-9);
}

TEST(FindRepeatedBlocks, TellsLayersApartThatAreNotEqual) {
  Row backward = LayerRow("h.1.act", "GELU", 1), larger = LayerRow("h.2.act", "GELU", 1), other = backward;
  backward.phase = Phase::kBackward;
  larger.output_shape = "f32[8,128]";
  other.model = "Critic";
  other.phase = Phase::kForward;
  for (const Row& row : {backward, larger, other, LayerRow("h.1.act", "ReLU", 1), LayerRow("h.1.act", "GELU", 1, 5),
                         LayerRow("h.1.drop", "GELU", 1)}) {
    EXPECT_TRUE(FindRepeatedBlocks(std::vector<Row>{LayerRow("h.0.act", "GELU", 1), row}).groups.empty())
        << row.layer;
  }
  // What is in no layer, and the model itself.
  EXPECT_TRUE(FindRepeatedBlocks(std::vector<Row>{LayerRow("", "", 1), LayerRow("", "", 1)}).groups.empty());
}

TEST(FindRepeatedBlocks, KeepsTheNumbersThatAllHave) {
  const std::vector<Row> rows = {LayerRow("stages.2.blocks.0.norm", "LayerNorm", 1),
                                 LayerRow("stages.2.blocks.10.norm", "LayerNorm", 1)};
  EXPECT_EQ(FindRepeatedBlocks(rows).groups.at(0).layer, "stages.2.blocks.*.norm");
}

TEST(FindRepeatedBlocks, SaysWhatThePartsOfASequenceAre) {
  const std::vector<Row> rows = {LayerRow("features.1", "ReLU", 1), LayerRow("features.4", "ReLU", 1)};
  EXPECT_EQ(FindRepeatedBlocks(rows).groups.at(0).layer, "features.* ReLU");
  const std::vector<Row> alone = {LayerRow("0", "Linear", 1), LayerRow("2", "Linear", 1)};
  EXPECT_EQ(FindRepeatedBlocks(alone).groups.at(0).layer, "* Linear");
}

TEST(FindRepeatedBlocks, GoesByTheWorkWhereOutputsAreNotKnown) {
  std::vector<Row> rows = {LayerRow("Net/Block_0.Conv2d_0", "Conv2d", 1),
                           LayerRow("Net/Block_1.Conv2d_0", "Conv2d", 2),
                           LayerRow("Net/Block_2.Conv2d_0", "Conv2d", 1)};
  for (Row& row : rows) {
    row.output_shape.clear();
    row.sums[FlopIn(Precision::kFp32)] = 7;
  }
  rows[2].sums[FlopIn(Precision::kFp32)] = 8;
  const RepeatedBlocks found = FindRepeatedBlocks(rows);
  ASSERT_EQ(found.groups.size(), 1u);
  EXPECT_EQ(found.groups[0].layer, "Net/Block_*.Conv2d_0");
  EXPECT_EQ(found.group_of, (std::vector<int64_t>{0, 0, -1}));
}

TEST(FindRepeatedBlocks, HasAnIntervalWhereAllHaveOne) {
  std::vector<Row> rows = {LayerRow("h.0.act", "GELU", 100), LayerRow("h.1.act", "GELU", 300)};
  rows[1].time.relative = 0.3;
  const Knowledge known = FindRepeatedBlocks(rows).groups.at(0).time;
  EXPECT_EQ(known.trust, Trust::kByStep);
  EXPECT_DOUBLE_EQ(known.relative, 0.25);  // 10 of 100 and 90 of 300
  rows[1].time = {.trust = Trust::kFewSteps, .lacks = 0.4};
  const Knowledge lacking = FindRepeatedBlocks(rows).groups.at(0).time;
  EXPECT_EQ(lacking.trust, Trust::kFewSteps);
  EXPECT_EQ(lacking.relative, 0);
  EXPECT_DOUBLE_EQ(lacking.lacks, 0.3);
}

}  // namespace
}  // namespace rfinject::cli
