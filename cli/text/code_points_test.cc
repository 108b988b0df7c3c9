#include "cli/text/code_points.h"

#include <gtest/gtest.h>

namespace rfinject::cli {
namespace {

TEST(ElideMiddle, KeepsBothEndsAndNeverCutsACharacter) {
  EXPECT_EQ(ElideMiddle("layer1.0.conv1", 20), "layer1.0.conv1");
  EXPECT_EQ(ElideMiddle("abcdefghij", 5), "ab…ij");
  EXPECT_EQ(ElideMiddle("ééééééé", 4), "é…éé");
  EXPECT_EQ(ElideStart("abcdefghij", 5), "…ghij");
  EXPECT_EQ(ElideStart("abc", 5), "abc");
}

}  // namespace
}  // namespace rfinject::cli
