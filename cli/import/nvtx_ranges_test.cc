#include "cli/import/nvtx_ranges.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace rfinject::cli {
namespace {

TEST(NvtxRangesTest, APhaseIsWhatANameSaysAndNotWhatItHasInIt) {
  const std::pair<const char*, Phase> kNames[] = {
      {"forward", Phase::kForward},
      {"Forward 3", Phase::kForward},
      {"model.forward", Phase::kForward},
      {"## forward ##", Phase::kForward},
      {"forward_pass", Phase::kForward},
      {"backward pass", Phase::kBackward},
      {"optimizer_step", Phase::kOptimizer},
      {"Optimizer.step#SGD.step", Phase::kOptimizer},
      {"validation epoch 2", Phase::kEval},
      {"_forward_unimplemented_layer", Phase::kOther},
      {"RegisterPostBackwardFunction", Phase::kOther},
      {"forwarder", Phase::kOther},
      {"", Phase::kOther},
  };
  for (const auto& [name, phase] : kNames) EXPECT_EQ(PhaseOfRange(name), phase) << name;
}

TEST(NvtxRangesTest, OperatorsSayTheirOwnPhase) {
  const std::pair<const char*, Phase> kNames[] = {
      {"aten::convolution_backward", Phase::kBackward},
      {"aten::_log_softmax_backward_data", Phase::kBackward},
      {"flash_attn::_flash_attn_forward", Phase::kForward},
      {"xformers_flash::flash_bwd", Phase::kBackward},
      {"FSDP::pre_forward (encoder.block.14.layer.0)", Phase::kForward},
      {"FSDP::post_backward (a::forward)", Phase::kBackward},
      {"AddmmBackward0", Phase::kBackward},
      {"autograd::engine::evaluate_function: AddmmBackward0", Phase::kBackward},
      {"torch::autograd::AccumulateGrad", Phase::kBackward},
      {"aten::mm", Phase::kOther},
      {"FSDP::all_gather", Phase::kOther},
  };
  for (const auto& [name, phase] : kNames) EXPECT_EQ(PhaseOfOperator(name), phase) << name;
  for (const char* text : {"aten::mm", "FlashAttnFunc, seq = 5, op_id = 7", "detach_, op_id = 3", "MmBackward0",
                           "ncclGroupEnd", "mine::op"}) {
    EXPECT_TRUE(IsOperatorRange(text)) << text;
  }
  for (const char* text : {"forward", "block1.conv", "layer, 3", ""}) EXPECT_FALSE(IsOperatorRange(text)) << text;
  EXPECT_EQ(NameOfRange("aten::mm, op_id = 7"), "aten::mm");
  EXPECT_EQ(NameOfRange("layer, 3"), "layer, 3");
}

// What is around an operator says its phase before its own name does: a recomputation runs forwards in the backward.
TEST(NvtxRangesTest, TheInnermostOperatorIsTheLaunchs) {
  const NvtxRange kRanges[] = {{1, 0, 100, "backward"},
                               {1, 10, 90, "m.fc"},
                               {1, 20, 80, "aten::linear"},
                               {1, 30, 40, "flash_attn::_flash_attn_forward"}};
  size_t next = 0;
  NvtxStack stack([&](NvtxRange* range) {
    if (next == std::size(kRanges)) return false;
    *range = kRanges[next++];
    return true;
  });
  EXPECT_EQ(stack.At(1, 15), (NvtxPlace{.path = "m.fc", .phase = Phase::kBackward}));
  EXPECT_EQ(stack.At(1, 35),
            (NvtxPlace{.path = "m.fc", .op = "flash_attn::_flash_attn_forward", .phase = Phase::kBackward}));
  EXPECT_EQ(stack.At(1, 50), (NvtxPlace{.path = "m.fc", .op = "aten::linear", .phase = Phase::kBackward}));
}

}  // namespace
}  // namespace rfinject::cli
