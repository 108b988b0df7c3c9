#include "collector/record/launch_ring.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace rfinject {
namespace {

using PushResult = LaunchRing::PushResult;

LaunchRecord Numbered(uint64_t number, uint32_t samples) {
  LaunchRecord record;
  record.identity.kernel = static_cast<uint32_t>(number);
  record.identity.grid = {1, 2, static_cast<uint32_t>(number)};
  record.sample_count = samples;
  for (uint32_t s = 0; s < samples && s < kMaxSamplesPerRecord; ++s) record.samples[s] = {s + 1, number * 10 + s};
  return record;
}

void ExpectNumbered(const LaunchRecord& record, uint64_t number, uint32_t samples) {
  ASSERT_EQ(record.identity, Numbered(number, samples).identity);
  ASSERT_EQ(record.sample_count, samples);
  for (uint32_t s = 0; s < samples; ++s) {
    ASSERT_EQ(record.samples[s].metric, s + 1);
    ASSERT_EQ(record.samples[s].value, number * 10 + s);
  }
}

bool AnyPosition(const RingPosition&, bool) { return true; }
void NoStep(const StepRecord&) { FAIL() << "a step where there was none"; }

// Records of all sizes, over the ring's end many times.
TEST(LaunchRing, GivesBackWhatWentIn) {
  LaunchRing* ring = LaunchRing::Create();
  uint64_t in = 0;
  uint64_t out = 0;
  for (int round = 0; round < 500; ++round) {
    for (int i = 0; i < 997; ++i, ++in) ASSERT_NE(ring->Push(Numbered(in, in % 7)), PushResult::kDropped);
    while (ring->Drain(
        64,
        [&](const LaunchRecord& record, const RingPosition&) {
          ExpectNumbered(record, out, out % 7);
          ++out;
        },
        NoStep, AnyPosition)) {
    }
    ASSERT_EQ(out, in);
  }
  EXPECT_EQ(ring->drops(), 0u);
}

TEST(LaunchRing, DropsWhenFullAndGoesOnWhenThereIsRoom) {
  LaunchRing* ring = LaunchRing::Create();
  uint64_t pushed = 0;
  bool half_full_seen = false;
  for (PushResult result; (result = ring->Push(Numbered(pushed, 0))) != PushResult::kDropped; ++pushed) {
    const bool passes_a_quarter = (pushed + 1) % (LaunchRing::kUnits / 16) == 0;
    const bool half = pushed + 1 >= LaunchRing::kUnits / 8;
    ASSERT_EQ(result == PushResult::kHalfFull, passes_a_quarter && half) << pushed;
    half_full_seen |= result == PushResult::kHalfFull;
  }
  EXPECT_TRUE(half_full_seen);
  EXPECT_EQ(pushed, LaunchRing::kUnits / 4);
  EXPECT_EQ(ring->drops(), 1u);
  EXPECT_EQ(ring->Push(StepRecord{}), PushResult::kDropped);
  EXPECT_EQ(ring->drops(), 1u) << "a step is no launch";
  uint64_t seen = 0;
  EXPECT_TRUE(ring->Drain(
      4, [&](const LaunchRecord& record, const RingPosition&) { ExpectNumbered(record, seen++, 0); }, NoStep,
      AnyPosition));
  EXPECT_EQ(seen, 1u);
  EXPECT_NE(ring->Push(Numbered(pushed, 0)), PushResult::kDropped);
  EXPECT_EQ(ring->Push(Numbered(0, 0)), PushResult::kDropped);
  EXPECT_EQ(ring->drops(), 2u);
}

// Small records up to the last unit, wherever in the memory the ring begins: none touches one that is not read yet.
TEST(LaunchRing, AFullRingIsWhole) {
  LaunchRing* ring = LaunchRing::Create();
  uint64_t in = 0, out = 0;
  const auto on_launch = [&](const LaunchRecord& record, const RingPosition&) { ExpectNumbered(record, out++, 0); };
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 777; ++i) ring->Push(Numbered(in++, 0));
    ring->Drain(LaunchRing::kUnits, on_launch, NoStep, AnyPosition);
    while (ring->Push(Numbered(in, 0)) != PushResult::kDropped) ++in;
    ring->Drain(LaunchRing::kUnits, on_launch, NoStep, AnyPosition);
    ASSERT_EQ(out, in);
  }
}

TEST(LaunchRing, CarriesStepsInOrder) {
  LaunchRing* ring = LaunchRing::Create();
  ring->Push(Numbered(1, 6));
  const StepRecord step{.index = 3, .start_unix_ns = -5, .duration_ns = 7, .samples = 8, .measured = true};
  ring->Push(step);
  ring->Push(Numbered(2, 1));
  std::vector<uint64_t> order;
  const auto on_launch = [&](const LaunchRecord& record, const RingPosition&) {
    order.push_back(record.identity.kernel);
  };
  const auto on_step = [&](const StepRecord& read) {
    EXPECT_EQ(read.index, step.index);
    EXPECT_EQ(read.start_unix_ns, step.start_unix_ns);
    EXPECT_EQ(read.duration_ns, step.duration_ns);
    EXPECT_EQ(read.samples, step.samples);
    EXPECT_TRUE(read.measured);
    order.push_back(100);
  };
  EXPECT_FALSE(ring->Drain(1'000'000, on_launch, on_step, AnyPosition));
  EXPECT_EQ(order, (std::vector<uint64_t>{1, 100, 2}));
}

// What was launched in the step that runs stays in the ring until the reader may have it.
TEST(LaunchRing, SaysWhereEachRecordWasLaunched) {
  LaunchRing* ring = LaunchRing::Create();
  const std::vector<RingPosition> positions = {{0, 0}, {0, 0}, {1, 0}, {1, 1}, {2, 1}};
  for (size_t i = 0; i < positions.size(); ++i) {
    ASSERT_TRUE(ring->MoveTo(positions[i]));
    ring->Push(Numbered(i, 1));
  }
  std::vector<RingPosition> seen;
  const auto on_launch = [&](const LaunchRecord& record, const RingPosition& position) {
    ExpectNumbered(record, seen.size(), 1);
    seen.push_back(position);
  };
  const auto until = [](uint64_t step) {
    return [step](const RingPosition& position, bool) { return position.step <= step; };
  };
  EXPECT_FALSE(ring->Drain(1'000'000, on_launch, NoStep, until(1)));
  EXPECT_EQ(seen.size(), 4u);
  EXPECT_FALSE(ring->Drain(1'000'000, on_launch, NoStep, until(1)));
  EXPECT_EQ(seen.size(), 4u);
  EXPECT_FALSE(ring->Drain(1'000'000, on_launch, NoStep, until(2)));
  EXPECT_EQ(seen, positions);
}

// So that a reader who would rather wait for the end of a step knows when it may not.
TEST(LaunchRing, SaysWhenAPositionTakesHalfOfTheRing) {
  LaunchRing* ring = LaunchRing::Create();
  ASSERT_TRUE(ring->MoveTo({0, 0}));
  ring->Push(Numbered(0, 0));
  ASSERT_TRUE(ring->MoveTo({1, 0}));
  bool asked = false, half_full = false;
  const auto wait = [&](const RingPosition&, bool half) {
    asked = true;
    half_full = half;
    return false;
  };
  const auto on_launch = [](const LaunchRecord&, const RingPosition&) {};
  uint64_t units = 5;  // of the mark
  for (; units + 4 < LaunchRing::kUnits / 2; units += 4) ring->Push(Numbered(0, 0));
  EXPECT_FALSE(ring->Drain(1'000'000, on_launch, NoStep, wait));
  EXPECT_TRUE(asked);
  EXPECT_FALSE(half_full);
  ring->Push(Numbered(0, 0));
  EXPECT_FALSE(ring->Drain(1'000'000, on_launch, NoStep, wait));
  EXPECT_TRUE(half_full);
}

// A caller's mistake must not be taken for a step, or read past the record.
TEST(LaunchRing, TooManySamplesAreCut) {
  LaunchRing* ring = LaunchRing::Create();
  constexpr uint32_t kMost = kMaxSamplesPerRecord;
  for (uint32_t count : {kMost + 1, 1000u, UINT32_MAX}) {
    LaunchRecord record = Numbered(4, kMost);
    record.sample_count = count;
    ring->Push(record);
    int seen = 0;
    ring->Drain(
        100,
        [&](const LaunchRecord& read, const RingPosition&) {
          ExpectNumbered(read, 4, kMost);
          ++seen;
        },
        NoStep, AnyPosition);
    EXPECT_EQ(seen, 1);
  }
}

TEST(LaunchRing, HasOneProducerAtATime) {
  LaunchRing* ring = LaunchRing::Create();
  EXPECT_FALSE(ring->TryAcquire()) << "a new ring is its maker's";
  ring->Push(Numbered(1, 0));
  ring->Release();
  std::thread([&] {
    EXPECT_TRUE(ring->TryAcquire());
    EXPECT_FALSE(ring->TryAcquire());
    ring->Push(Numbered(2, 0));
    ring->Release();
  }).join();
  uint64_t seen = 0;
  ring->Drain(
      100, [&](const LaunchRecord& record, const RingPosition&) { ExpectNumbered(record, ++seen, 0); }, NoStep,
      AnyPosition);
  EXPECT_EQ(seen, 2u) << "what the former producer left is not lost";
}

TEST(LaunchRing, ProducerAndConsumerAtTheSameTime) {
  LaunchRing* ring = LaunchRing::Create();
  constexpr uint64_t kRecords = 300'000;
  std::thread producer([&] {
    for (uint64_t i = 0; i < kRecords; ++i) {
      while (ring->Push(Numbered(i, i % 7)) == PushResult::kDropped) std::this_thread::yield();
    }
  });
  uint64_t seen = 0;
  while (seen < kRecords) {
    ring->Drain(
        8192,
        [&](const LaunchRecord& record, const RingPosition&) {
          ExpectNumbered(record, seen, seen % 7);
          ++seen;
        },
        NoStep, AnyPosition);
    std::this_thread::yield();
  }
  producer.join();
}

}  // namespace
}  // namespace rfinject
