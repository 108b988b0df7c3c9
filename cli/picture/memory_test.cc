#include "cli/picture/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace rfinject::cli {
namespace {

MemoryPoint At(Phase phase, uint64_t weights, uint64_t activations, uint64_t gradients) {
  MemoryPoint point{.phase = phase};
  point.bytes[static_cast<size_t>(Phase::kOther)] = weights;
  point.bytes[static_cast<size_t>(Phase::kForward)] = activations;
  point.bytes[static_cast<size_t>(Phase::kBackward)] = gradients;
  return point;
}

MemoryTable Table() {
  return {.title = "A100",
          .points_step = 3,
          .points = {At(Phase::kForward, 100, 50, 0), At(Phase::kForward, 100, 300, 0),
                     At(Phase::kBackward, 100, 200, 100), At(Phase::kOptimizer, 100, 0, 100)}};
}

// The blocks of a phase in the panel of memory, from the left.
std::vector<Box> BlocksOf(const Picture& picture, const std::string& css, const std::string& words) {
  std::vector<Box> boxes;
  for (const Block& block : picture.blocks) {
    if (block.css == css && block.title.find(words) != std::string::npos) boxes.push_back(block.box);
  }
  return boxes;
}

TEST(MemoryPicture, StacksWhatLiesThereUpToTheMost) {
  for (const double width : {1320.0, 420.0}) {
    const Picture picture = LayOutMemory(Table(), MemorySize(width));
    const std::vector<Box> weights = BlocksOf(picture, "bk h0", "allocated in other");
    const std::vector<Box> activations = BlocksOf(picture, "bk h1", "allocated in forward");
    const std::vector<Box> gradients = BlocksOf(picture, "bk h2", "allocated in backward");
    ASSERT_EQ(weights.size(), 4u);
    ASSERT_EQ(activations.size(), 3u);
    ASSERT_EQ(gradients.size(), 2u);
    // 400 bytes are the whole panel.
    const double panel = weights[1].height + activations[1].height;
    EXPECT_NEAR(weights[1].height, panel / 4, 1e-9);
    EXPECT_NEAR(activations[1].y, weights[1].y - activations[1].height, 1e-9);
    EXPECT_NEAR(activations[0].height, panel * 50 / 400, 1e-9);
    // Columns lie side by side and fill the panel.
    for (size_t i = 0; i + 1 < weights.size(); ++i) EXPECT_NEAR(weights[i].right(), weights[i + 1].x, 0.5);
    EXPECT_NEAR(weights[3].right(), picture.plot.right(), 1e-9);
    for (const Text& text : picture.texts) EXPECT_LE(text.box.right(), width) << text.text;
  }
}

TEST(MemoryPicture, SaysWhatThePointerIsOnAndWhatTheProgramIsIn) {
  const Picture picture = LayOutMemory(Table(), MemorySize(1320));
  EXPECT_EQ(BlocksOf(picture, "bk h1", "300 B allocated in forward: activations\nof 400 B, in forward").size(), 1u);
  const std::vector<Box> forward = BlocksOf(picture, "bk h1", "the program is in forward");
  ASSERT_EQ(forward.size(), 1u);
  EXPECT_NEAR(forward[0].width, picture.plot.width / 2, 1e-9);
  EXPECT_EQ(BlocksOf(picture, "bk h3", "the program is in optimizer").size(), 1u);
}

}  // namespace
}  // namespace rfinject::cli
