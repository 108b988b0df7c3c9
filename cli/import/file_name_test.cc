#include "cli/import/file_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rfinject::cli {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;

TEST(RunOfFileName, ModelAndGpu) {
  NamedRun run = RunOfFileName("/data/resnet18_v100.csv");
  EXPECT_EQ(run.model, "resnet18");
  EXPECT_EQ(run.gpu, "V100-SXM2-16GB");
  EXPECT_THAT(run.other_gpus, Contains("V100-PCIe"));
  run = RunOfFileName("A100-SXM4-40GB vgg11_bn.ncu.csv");
  EXPECT_EQ(run.model, "vgg11_bn");
  EXPECT_EQ(run.gpu, "A100-SXM4-40GB");
  EXPECT_THAT(run.other_gpus, IsEmpty());
  run = RunOfFileName("alexnet.t4.sqlite");
  EXPECT_EQ(run.model, "alexnet");
  EXPECT_EQ(run.gpu, "T4");
}

TEST(RunOfFileName, NoGpu) {
  NamedRun run = RunOfFileName("profile.csv");
  EXPECT_EQ(run.model, "profile");
  EXPECT_EQ(run.gpu, "");
  EXPECT_EQ(RunOfFileName("resnet18_a1000.csv").gpu, "");  // not a word of it
  EXPECT_EQ(RunOfFileName("v100.csv").model, "program");
  EXPECT_EQ(RunOfFileName("").model, "program");
}

TEST(OtherProfileRemedyTest, NamesWhatWritesSomethingThatIsRead) {
  for (const char* name : {"a/b.nsys-rep", "x.qdrep", "x.ncu-rep"}) {
    EXPECT_NE(OtherProfileRemedy(name), "") << name;
  }
  for (const char* name : {"x.json.gz", "x.csv", "pftrace", "x.rfx", ""})
    EXPECT_EQ(OtherProfileRemedy(name), "") << name;
}

}  // namespace
}  // namespace rfinject::cli
