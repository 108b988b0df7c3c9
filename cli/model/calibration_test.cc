#include "cli/model/calibration.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cli/model/expected.h"
#include "gpus/gpus.h"

namespace rfinject::cli {
namespace {

TEST(Calibration, GivesTheGpusOwnValueElseItsChipsElseThatOfAnyGpu) {
  std::string error;
  const auto calibration = Calibration::Parse(
      "gpu,family,parameter,value,unit,rows,provenance\n"
      "# a comment\n"
      "*,softmax,share,0.5,1,,medians\n"
      "GH100,softmax,share,0.6,1,,of all boards\n"
      "H200-SXM-141GB,softmax,share,0.7,1,,fitted\n"
      "T4,softmax,share,0.75,1,100,fitted\r\n",
      error);
  ASSERT_TRUE(calibration) << error;
  EXPECT_EQ(calibration->Get(*FindGpu("T4"), "softmax", "share"), 0.75);
  EXPECT_EQ(calibration->Get(*FindGpu("L4"), "softmax", "share"), 0.5);
  EXPECT_EQ(calibration->Get(*FindGpu("H100-SXM5-80GB"), "softmax", "share"), 0.6);
  EXPECT_EQ(calibration->Get(*FindGpu("H200-SXM-141GB"), "softmax", "share"), 0.7);
  EXPECT_EQ(calibration->OfBoardOrChip(*FindGpu("L4"), "softmax", "share"), std::nullopt);
  EXPECT_EQ(calibration->Own("L4", "softmax", "share"), std::nullopt);
  EXPECT_EQ(calibration->Get(*FindGpu("T4"), "softmax", "reread"), std::nullopt);
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

constexpr char kOwn[] =
    "# Made by rfinject calibrate\n"
    "gpu,family,parameter,value,unit,rows,provenance\n"
    "T4,gpu,memory_share,0.7,1,2,today; on my desk\n"
    "T4,fp32,burst_ms,0,ms,2,today; on my desk\n"
    "T4,conv_fp32_dgrad,winograd_fused,1.5,1,1,today; on my desk\n"
    "T4,softmax,rows,2,rows,2,today; on my desk\n";

TEST(Calibration, AnOwnFileStandsAboveTheTableForItsGpus) {
  Calibration own = Calibration::Shipped();
  std::string error;
  ASSERT_TRUE(own.AddOwn(kOwn, error)) << error;
  EXPECT_EQ(own.Get(*FindGpu("T4"), "gpu", "memory_share"), 0.7);
  EXPECT_EQ(own.Get(*FindGpu("T4"), "fp32", "burst_ms"), 0);
  EXPECT_EQ(own.OwnSource("T4"), "today; on my desk");
  EXPECT_EQ(own.OwnSource("L4"), "");
  for (const char* parameter : {"share", "stride_slope"}) {
    EXPECT_EQ(own.Get(*FindGpu("T4"), "fp32", parameter),
              Calibration::Shipped().Get(*FindGpu("T4"), "fp32", parameter));
  }
  EXPECT_EQ(own.Get(*FindGpu("L4"), "gpu", "memory_share"),
            Calibration::Shipped().Get(*FindGpu("L4"), "gpu", "memory_share"));
}

TEST(Calibration, AnOwnFileIsTakenWholeOrNotAtAll) {
  for (const char* line :
       {"T4,gpu,memory_share,0", "T4,gpu,memory_share,-1", "T4,gpu,memory_share,1e9", "T4,gpu,memory_share,nan",
        "T4,gpu,memory_share,", "T4,gpu,share,1", "T4,fp32,rate,1", "T4,conv_fp32,tile_edge,10", "T4,conv_fp32,rate",
        "T4,convolution,rate,1", "T4,softmax,rows,0", "T4,fp32,burst_ms,-1", "*,gpu,memory_share,1",
        "Z80,gpu,memory_share,1"}) {
    Calibration own = Calibration::Shipped();
    std::string error;
    EXPECT_FALSE(own.AddOwn(std::string(kOwn) + line + "\n", error)) << line;
    EXPECT_NE(error.find("line 7"), std::string::npos) << line << ": " << error;
    EXPECT_EQ(own.Get(*FindGpu("T4"), "gpu", "memory_share"),
              Calibration::Shipped().Get(*FindGpu("T4"), "gpu", "memory_share"));
    EXPECT_EQ(own.OwnSource("T4"), "");
  }
}

// Whatever somebody's editor makes of a file, estimates stay finite.
TEST(Calibration, WhatIsTakenOfADamagedFileGivesTimes) {
  uint32_t random = 1;
  const auto next = [&random](size_t below) {
    random = random * 1664525 + 1013904223;
    return static_cast<size_t>(random >> 8) % below;
  };
  size_t taken = 0;
  Calibration own = Calibration::Shipped();  // which a file that is not taken does not change
  for (int i = 0; i < 2000; ++i) {
    std::string text = kOwn;
    for (size_t changes = 1 + next(3); changes > 0; --changes) {
      const size_t at = next(text.size());
      switch (next(3)) {
        case 0:
          text[at] = static_cast<char>(next(256));
          break;
        case 1:
          text.erase(at, next(20));
          break;
        default:
          text.insert(at, std::string_view("9,\n.-e0").substr(next(8), 2));
      }
    }
    std::string error;
    if (!own.AddOwn(text, error)) {
      EXPECT_NE(error, "");
      continue;
    }
    ++taken;
    const double seconds =
        ExpectedTimes(*FindGpu("T4"), own).Of({.kind = OperatorKind::kElementwise, .bytes = 1e9}).expected_s;
    ASSERT_TRUE(seconds > 0 && seconds < 1000) << text;
    own = Calibration::Shipped();
  }
  EXPECT_GT(taken, 20u);
}

}  // namespace
}  // namespace rfinject::cli
