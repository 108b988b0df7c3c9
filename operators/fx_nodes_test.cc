#include "operators/fx_nodes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>

#include "operators/flop.h"
#include "operators/op_table.h"

namespace rfinject {
namespace {

// The model FLOP of a node; 0 where it is no operator that is known.
uint64_t FlopOf(const FxNodes& nodes, const char* name) {
  FxCall call;
  if (!nodes.Find(name, &call)) return 0;
  const auto rule = estimate::FindOp(call.op);
  return rule ? estimate::CountFlop(*rule, call.call()).model : 0;
}

FxNodes Read(std::initializer_list<const char*> lines) {
  FxNodes nodes;
  for (const char* line : lines) nodes.Read(line);
  return nodes;
}

TEST(FxNodes, ANodeIsTheCallOfItsOperator) {
  const FxNodes nodes = Read({
      R"(%a : Tensor "f32[256, 512][512, 1]cuda:0" = PlaceHolder[target=a])",
      R"(%b : Tensor "f32[512, 10][10, 1]cuda:0" = PlaceHolder[target=b])",
      R"(%mm : Tensor "f32[256, 10][10, 1]cuda:0"[num_users=1] = call_function[target=torch.ops.aten.mm.default](args = (%a, %b), kwargs = {}))",
      R"(%sum_1 : Tensor "f32[1, 512][512, 1]cuda:0"[num_users=1] = call_function[target=torch.ops.aten.sum.dim_IntList](args = (%a, [0], True), kwargs = {}))",
      R"(%add : Tensor "f32[256, 512][512, 1]cuda:0" = call_function[target=torch.ops.aten.add.Tensor](args = (%a, %a), kwargs = {alpha: 2}))",
  });
  FxCall call;
  ASSERT_TRUE(nodes.Find("sum_1", &call));
  EXPECT_EQ(call.op, "aten::sum");
  ASSERT_EQ(call.inputs.size(), 3u);
  EXPECT_EQ(call.inputs[0].kind, Argument::Kind::kTensor);
  EXPECT_EQ(call.inputs[1].kind, Argument::Kind::kIntList);
  EXPECT_EQ(call.inputs[2].kind, Argument::Kind::kBool);
  ASSERT_EQ(call.tensors.size(), 2u);
  EXPECT_EQ(call.tensors[0].numel, 256u * 512u);
  EXPECT_EQ(call.tensors[1].shape[1], 512);
  EXPECT_EQ(FlopOf(nodes, "mm"), 2u * 256 * 512 * 10);
  EXPECT_EQ(FlopOf(nodes, "sum_1"), 255u * 512);
  EXPECT_EQ(FlopOf(nodes, "add"), 2u * 256 * 512);
}

TEST(FxNodes, FloatsAreReadAsPythonPrintsThem) {
  const FxNodes nodes = Read({
      R"(%x : Tensor "f32[8][1]cuda:0" = PlaceHolder[target=x])",
      R"(%y : Tensor "f32[8][1]cuda:0" = call_function[target=torch.ops.aten.mul.Tensor](args = (%x, 0.5, -1.25e-05, 1e+20, 1.0, nan, 1.2.3), kwargs = {}))",
  });
  FxCall call;
  ASSERT_TRUE(nodes.Find("y", &call));
  ASSERT_EQ(call.inputs.size(), 7u);
  EXPECT_DOUBLE_EQ(call.inputs[1].real, 0.5);
  EXPECT_DOUBLE_EQ(call.inputs[2].real, -1.25e-5);
  EXPECT_DOUBLE_EQ(call.inputs[3].real, 1e20);
  EXPECT_EQ(call.inputs[4].real, 1.0);
  EXPECT_NE(call.inputs[5].kind, Argument::Kind::kDouble);
  EXPECT_NE(call.inputs[6].kind, Argument::Kind::kDouble);
}

TEST(FxNodes, AnOperatorWithSeveralResultsIsKnownByItsOperands) {
  const FxNodes nodes = Read({
      R"(%x : Tensor "f16[8, 64][64, 1]cuda:0" = PlaceHolder[target=x])",
      R"(%var_mean : [num_users=2] = call_function[target=torch.ops.aten.var_mean.correction](args = (%x, [0]), kwargs = {correction: 0, keepdim: True}))",
  });
  EXPECT_EQ(FlopOf(nodes, "var_mean"), 4u * 8 * 64);
}

TEST(FxNodes, ShapesThatChangeAreNotKnown) {
  const FxNodes nodes = Read({
      R"(%x : Tensor "f32[s0, 64][64, 1]cuda:0" = PlaceHolder[target=x])",
      R"(%relu : Tensor "f32[s0, 64][64, 1]cuda:0" = call_function[target=torch.ops.aten.relu.default](args = (%x,), kwargs = {}))",
  });
  FxCall call;
  EXPECT_FALSE(nodes.Find("relu", &call));
  EXPECT_TRUE(nodes.Computes("relu"));
}

TEST(FxNodes, ViewsAndOtherLinesComputeNothing) {
  const FxNodes nodes = Read({
      R"(%v : Tensor "f32[8][1]cuda:0" = call_function[target=torch.ops.aten.view.default](args = (%x, [8]), kwargs = {}))",
      R"(%r : Tensor "f32[8][1]cuda:0" = call_function[target=torch.ops.aten.reshape.default](args = (%x, [8]), kwargs = {}))",
      R"(%getitem : Tensor "f32[8][1]cuda:0" = call_function[target=operator.getitem](args = (%x, 0), kwargs = {}))",
      "return %v",
      "%",
      R"(%broken : Tensor "f32[8)",
      R"(%open = call_function[target=torch.ops.aten.mul.Tensor](args = (%x, )",
  });
  EXPECT_FALSE(nodes.Computes("v"));
  EXPECT_FALSE(nodes.Computes("r"));
  EXPECT_FALSE(nodes.Computes("getitem"));
  EXPECT_FALSE(nodes.Computes("absent"));
  FxCall call;
  EXPECT_FALSE(nodes.Find("broken", &call));
  EXPECT_FALSE(nodes.Find("open", &call));
}

TEST(FxNodes, AnExpandedTensorHasFewerElementsInMemory) {
  const FxNodes nodes = Read({
      R"(%x : Tensor "f32[8, 64][0, 1]cuda:0" = PlaceHolder[target=x])",
      R"(%r : Tensor "f32[8, 64][64, 1]cuda:0" = call_function[target=torch.ops.aten.relu.default](args = (%x,), kwargs = {}))",
  });
  FxCall call;
  ASSERT_TRUE(nodes.Find("r", &call));
  EXPECT_TRUE(call.tensors[0].broadcast);
  EXPECT_EQ(call.tensors[0].distinct, 64u);
}

TEST(FxNodes, ATensorThatIsCutOffIsNotKnown) {
  FxNodes nodes;
  nodes.Read("%mul : Tensor \"f32[\" = call_function[target=torch.ops.aten.mul.Tensor](args = (%a, 2), kwargs = {})");
  EXPECT_EQ(nodes.OperatorOf("mul"), "aten::mul");
  FxCall call;
  EXPECT_FALSE(nodes.Find("mul", &call));
}

}  // namespace
}  // namespace rfinject
