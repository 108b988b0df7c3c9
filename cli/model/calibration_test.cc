#include "cli/model/calibration.h"

#include <gtest/gtest.h>

namespace rfinject::cli {
namespace {

TEST(Calibration, GivesTheGpusOwnValueElseThatOfAnyGpu) {
  std::string error;
  const auto calibration = Calibration::Parse(
      "gpu,family,parameter,value,unit,rows,provenance\n"
      "# a comment\n"
      "*,softmax,share,0.5,1,,medians\n"
      "T4,softmax,share,0.75,1,100,fitted\r\n",
      error);
  ASSERT_TRUE(calibration) << error;
  EXPECT_EQ(calibration->Get("T4", "softmax", "share"), 0.75);
  EXPECT_EQ(calibration->Get("L4", "softmax", "share"), 0.5);
  EXPECT_EQ(calibration->Own("L4", "softmax", "share"), std::nullopt);
  EXPECT_EQ(calibration->Get("T4", "softmax", "reread"), std::nullopt);
}

TEST(Calibration, RefusesWhatIsNoNumberAndNamesTheLine) {
  for (const char* line : {"T4,softmax,share,fast", "T4,softmax,share", "T4,softmax,share,", "T4,softmax,share,nan",
                           ",softmax,share,1", "T4,softmax,share,1x"}) {
    std::string error;
    EXPECT_FALSE(Calibration::Parse(std::string("# first\n") + line, error)) << line;
    EXPECT_NE(error.find("line 2"), std::string::npos) << line;
  }
}

TEST(Calibration, TheShippedTableHasEveryFamilyForAnUnknownGpu) {
  const Calibration& shipped = Calibration::Shipped();
  for (const char* family : {"linear_fp32", "linear_tensor", "bmm_fp32", "bmm_tensor", "conv_fp32", "conv_fp32_dgrad",
                             "conv_fp32_wgrad", "conv_tensor", "conv_tensor_dgrad", "conv_tensor_wgrad",
                             "elementwise", "softmax", "layer_norm", "rms_norm", "batch_norm"}) {
    for (const char* size : {"short", "middle", "long"}) {
      const auto low = shipped.Own("*", family, std::string("low_") + size);
      const auto high = shipped.Own("*", family, std::string("high_") + size);
      ASSERT_TRUE(low && high) << family << " " << size;
      EXPECT_GT(*low, 0) << family;
      EXPECT_LT(*low, *high) << family;
    }
  }
}

}  // namespace
}  // namespace rfinject::cli
