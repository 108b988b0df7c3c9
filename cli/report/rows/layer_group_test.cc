#include "cli/report/rows/layer_group.h"

#include <gtest/gtest.h>

namespace rfinject::cli {
namespace {

std::string GroupOf(const char* class_name, uint64_t parameters, const char* in, const char* out) {
  LayerInfo layer;
  layer.class_name = class_name;
  layer.parameters = parameters;
  layer.input_shape = in;
  layer.output_shape = out;
  return LayerGroup(layer);
}

TEST(LayerGroup, NamesConvolutionsWithTheirWindow) {
  EXPECT_EQ(GroupOf("Conv2d", 512 * 512 * 9, "f32[8,512,7,7]", "f32[8,512,7,7]"), "Conv2d 3x3 512->512");
  EXPECT_EQ(GroupOf("Conv2d", 64 * 3 * 49, "f32[8,3,224,224]", "f32[8,64,112,112]"), "Conv2d 7x7 3->64");
  EXPECT_EQ(GroupOf("Conv2d", 64 * 128 + 128, "f32[8,64,8,8]", "f32[8,128,8,8]"), "Conv2d 1x1 64->128");
  EXPECT_EQ(GroupOf("Conv2d", 96 * 25, "f32[8,96,8,8]", "f32[8,96,8,8]"), "Conv2d 5x5 96->96") << "one a channel";
}

TEST(LayerGroup, LeavesAWindowOutThatIsNoSquare) {
  EXPECT_EQ(GroupOf("Conv2d", 64 * 64 * 7, "f32[8,64,8,8]", "f32[8,64,8,8]"), "Conv2d 64->64");
  EXPECT_EQ(GroupOf("Conv1d", 64 * 64 * 3, "f32[8,64,100]", "f32[8,64,100]"), "Conv1d 64->64");
}

TEST(LayerGroup, NamesFeaturesOfTheRest) {
  EXPECT_EQ(GroupOf("Linear", 1, "f32[4,64,768]", "f32[4,64,3072]"), "Linear 768->3072");
  EXPECT_EQ(GroupOf("Linear", 1, "f32[4,768]", "f32[4,768]"), "Linear 768->768");
  EXPECT_EQ(GroupOf("LayerNorm", 1, "bf16[4,64,768]", "bf16[4,64,768]"), "LayerNorm 768");
  EXPECT_EQ(GroupOf("BatchNorm2d", 128, "f32[8,64,56,56]", "f32[8,64,56,56]"), "BatchNorm2d 64");
  EXPECT_EQ(GroupOf("Embedding", 1, "i64[4,64]", "f32[4,64,768]"), "Embedding 768");
  EXPECT_EQ(GroupOf("MultiheadAttention", 1, "", ""), "MultiheadAttention");
  EXPECT_EQ(GroupOf("Odd", 1, "f32[", "f32[x,y]"), "Odd");
  EXPECT_EQ(GroupOf("Conv2d", UINT64_MAX, "f32[1,18446744073709551615,1,1]", "f32[1,18446744073709551615,1,1]"),
            "Conv2d 18446744073709551615->18446744073709551615");
}

TEST(FirstParts, FoldsPaths) {
  EXPECT_EQ(FirstParts("h.0.attn.proj", 1), "h");
  EXPECT_EQ(FirstParts("h.0.attn.proj", 2), "h.0");
  EXPECT_EQ(FirstParts("h.0.attn.proj", 4), "h.0.attn.proj");
  EXPECT_EQ(FirstParts("h.0.attn.proj", 9), "h.0.attn.proj");
  EXPECT_EQ(FirstParts("h.0.attn.proj", 0), "h.0.attn.proj");
  EXPECT_EQ(FirstParts("", 3), "");
}

TEST(ShapeBytes, FollowFromTypeAndSizes) {
  EXPECT_EQ(ShapeBytes("f32[8,3,224,224]"), 8u * 3 * 224 * 224 * 4);
  EXPECT_EQ(ShapeBytes("bf16[7]"), 14u);
  EXPECT_EQ(ShapeBytes("i64[]"), 8u);
  EXPECT_EQ(ShapeBytes("f32[0,5]"), 0u);
  for (const char* bad : {"", "f32", "[3]", "f32[-1]", "x[3]", "f32[3", "f32[9999999999999999999]",
                          "f32[1000000000000,1000000000000]"}) {
    EXPECT_EQ(ShapeBytes(bad), 0u) << bad;
  }
}

}  // namespace
}  // namespace rfinject::cli
