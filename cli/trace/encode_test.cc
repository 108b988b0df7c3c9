#include "cli/trace/encode.h"

#include <gtest/gtest.h>

#include <vector>

#include "cli/testing/sample_profile.h"
#include "cli/trace/damage.h"
#include "cli/trace/read.h"
#include "proto/rfinject/v1/trace.pb.h"

namespace rfinject::cli {
namespace {

std::vector<uint8_t> Written(const Profile& profile) {
  std::vector<uint8_t> bytes;
  const absl::Status status = WriteTrace(profile, [&](const void* data, size_t size) {
    const auto* begin = static_cast<const uint8_t*>(data);
    bytes.insert(bytes.end(), begin, begin + size);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return bytes;
}

TraceContents ReadBack(const std::vector<uint8_t>& bytes) {
  MemorySource source(bytes);
  return ReadTrace(source);
}

TEST(WriteTrace, ReadingBackGivesTheSameProfile) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const Profile profile = testing::RandomProfile(seed);
    const TraceContents contents = ReadBack(Written(profile));
    ASSERT_TRUE(contents.status.ok()) << seed << " " << contents.status;
    ASSERT_TRUE(contents.finished);
    ASSERT_EQ(contents.profile, profile) << seed;
  }
}

TEST(WriteTrace, TheSampleRunsSurviveToo) {
  for (const Profile& profile :
       {testing::SampleResNet18(testing::SampleV100()), testing::SampleMeasured(testing::SampleA100())}) {
    EXPECT_EQ(ReadBack(Written(profile)).profile, profile);
  }
}

TEST(WriteTrace, EqualProfilesGiveEqualBytes) {
  Profile a = testing::RandomProfile(3), b = testing::RandomProfile(4);
  Profile ab = a, ba = b;
  ASSERT_TRUE(ab.Merge(b).ok());
  ASSERT_TRUE(ba.Merge(a).ok());
  EXPECT_EQ(Written(ab), Written(ba));
}

TEST(WriteTrace, ManyKeysTakeManyFrames) {
  Profile profile = testing::RandomProfile(5);
  cli::Run& run = profile.runs.begin()->second;
  for (int i = 0; i < 40000; ++i) {
    LaunchKey key;
    key.kernel = "kernel with a name of some length, number " + std::to_string(i);
    LaunchStats& stats = run.launches[key];
    stats.launches = 1;
    stats.metrics["rf.flop.fp32"].Add(static_cast<uint64_t>(i));
  }
  const TraceContents contents = ReadBack(Written(profile));
  EXPECT_GT(contents.chunks, 2u);
  EXPECT_EQ(contents.profile, profile);
}

// Everybody else reads traces with protobuf: what we write must be what the schema says.
TEST(WriteTrace, FramesHoldValidChunks) {
  const std::vector<uint8_t> bytes = Written(testing::SampleMeasured(testing::SampleA100()));
  MemorySource source(bytes);
  FrameReader frames(source);
  v1::Chunk all;
  while (frames.Next()) {
    v1::Chunk chunk;
    ASSERT_TRUE(chunk.ParseFromArray(frames.payload().data(), static_cast<int>(frames.payload().size())));
    all.MergeFrom(chunk);
  }
  ASSERT_TRUE(frames.status().ok());
  ASSERT_EQ(all.model_size(), 2);
  EXPECT_EQ(all.model(1).class_name(), "ResNet");
  EXPECT_EQ(all.model(1).parameters(), 11689512u);
  EXPECT_EQ(all.key_size(), all.stats_size());
  EXPECT_TRUE(all.has_end());
  EXPECT_TRUE(all.GetReflection()->GetUnknownFields(all).empty());
  for (const v1::Layer& layer : all.layer()) {
    if (layer.path() == "layer1.0.conv1") {
      EXPECT_EQ(layer.class_name(), "Conv2d");
      EXPECT_EQ(layer.parameters(), 36864u);
      EXPECT_EQ(layer.input_shape(), "f32[8,64,56,56]");
      EXPECT_TRUE(layer.training());
      return;
    }
  }
  FAIL() << "no layer1.0.conv1";
}

TEST(WriteTrace, SaysThatTheSinkFailed) {
  int calls = 0;
  const absl::Status status = WriteTrace(testing::RandomProfile(1), [&](const void*, size_t) {
    return ++calls < 2 ? absl::OkStatus() : absl::UnavailableError("no space");
  });
  EXPECT_EQ(status.message(), "no space");
}

}  // namespace
}  // namespace rfinject::cli
