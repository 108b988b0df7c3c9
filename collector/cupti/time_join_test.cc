#include "collector/cupti/time_join.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "collector/cupti/launch_keys.h"
#include "collector/testing/fake_recorder.h"

namespace rfinject::cupti {
namespace {

using ::rfinject::testing::FakeRecorder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Key = TimeJoin::Key;

TimeJoin::Launch Launch(uint32_t key, uint64_t ns) { return {key, ns, 7}; }

TimeJoin Join(std::span<const LaunchLog::Entry> entries, std::span<const KernelTimes::Record> records) {
  FakeRecorder recorder;
  LaunchKeys keys;
  const CapturedGraphs none(keys, recorder);
  return JoinTimes(entries, records, none, keys);
}

LaunchLog::Entry Entry(uint32_t key, uint32_t correlation_id, bool graph = false) {
  return {key, correlation_id, graph ? LaunchLog::kUnknownGraph : LaunchLog::kNoGraph, 7};
}

TEST(TimeJoin, NothingIsNothing) {
  const TimeJoin join = Join({}, {});
  EXPECT_THAT(join.launches, IsEmpty());
  EXPECT_THAT(join.keys, IsEmpty());
  EXPECT_EQ(join.strangers, 0u);
}

// Records come in the order in which buffers are full, not in that of the launches.
TEST(TimeJoin, RecordsFindTheirLaunchInWhateverOrder) {
  const std::vector<LaunchLog::Entry> entries = {Entry(0, 10), Entry(1, 11), Entry(0, 12)};
  const std::vector<KernelTimes::Record> records = {{12, 300}, {10, 100}, {11, 50}};
  const TimeJoin join = Join(entries, records);
  EXPECT_THAT(join.launches, ElementsAre(Launch(0, 300), Launch(0, 100), Launch(1, 50)));
  EXPECT_THAT(join.keys, ElementsAre(Key{0, 400, 2, false}, Key{1, 50, 1, false}));
  EXPECT_EQ(join.strangers, 0u);
}

TEST(TimeJoin, ALaunchWithoutARecordHasNoTime) {
  const std::vector<LaunchLog::Entry> entries = {Entry(0, 10), Entry(1, 11)};
  const std::vector<KernelTimes::Record> records = {{11, 50}};
  const TimeJoin join = Join(entries, records);
  EXPECT_THAT(join.keys, ElementsAre(Key{1, 50, 1, false}));
}

TEST(TimeJoin, RecordsOfNobodyAreCounted) {
  const std::vector<LaunchLog::Entry> entries = {Entry(0, 10), Entry(LaunchKeys::kNoKey, 11)};
  const std::vector<KernelTimes::Record> records = {{10, 100}, {11, 50}, {99, 7}};
  const TimeJoin join = Join(entries, records);
  EXPECT_THAT(join.launches, ElementsAre(Launch(0, 100)));
  EXPECT_EQ(join.strangers, 2u);  // one without a key, one that was never logged
}

// Correlation ids are 32 bits of a count: one that is used again belongs to the later launch.
TEST(TimeJoin, TheLaterOfTwoLaunchesWithOneIdCounts) {
  const std::vector<LaunchLog::Entry> entries = {Entry(0, 10), Entry(1, 10)};
  const std::vector<KernelTimes::Record> records = {{10, 100}};
  EXPECT_THAT(Join(entries, records).launches, ElementsAre(Launch(1, 100)));
}

// Two streams: the second kernel begins when the first runs, the third when both have ended.
TEST(TimeJoin, TimePassesOnTheGpuByIdleAndBusyLaunches) {
  const std::vector<LaunchLog::Entry> entries = {Entry(0, 10), Entry(1, 11), Entry(0, 12), Entry(2, 13)};
  const auto record = [](uint32_t id, uint64_t start, uint64_t ns) {
    KernelTimes::Record record;
    record.correlation_id = id;
    record.start_ns = start;
    record.ns = ns;
    return record;
  };
  const std::vector<KernelTimes::Record> records = {record(12, 1300, 50), record(10, 1000, 100),
                                                    record(11, 1050, 150), record(99, 1400, 100),
                                                    record(13, 1450, 100)};
  const TimeJoin join = Join(entries, records);
  const std::vector<GpuAdvance> advances =
      AdvancesOf(join, std::vector<Stretch>{{900, 1210}, {1250, 1280}, {1290, 1500}});
  ASSERT_EQ(advances.size(), 4u);
  const auto of = [&](uint64_t ns, uint32_t key) {
    for (size_t i = 0; i < advances.size(); ++i) {
      if (join.launches[i].ns == ns && join.launches[i].key == key) return advances[i];
    }
    return GpuAdvance();
  };
  EXPECT_FALSE(of(100, 0).known) << "what ran before the first is not known";
  EXPECT_EQ(of(100, 0).busy_ns, 100u);
  EXPECT_TRUE(of(150, 1).known);
  EXPECT_EQ(of(150, 1).idle_ns, 0u);
  EXPECT_EQ(of(150, 1).busy_ns, 100u);
  EXPECT_EQ(of(50, 0).idle_ns, 100u);
  EXPECT_EQ(of(50, 0).data_idle_ns, 50u);
  // What nobody launched has kept the GPU busy all the same.
  EXPECT_EQ(of(100, 2).idle_ns, 0u);
  EXPECT_EQ(of(100, 2).busy_ns, 50u);
}

TEST(TimeJoin, AGraphsKernelsAreOneLaunch) {
  const std::vector<LaunchLog::Entry> entries = {Entry(5, 20, true), Entry(0, 21), Entry(5, 22, true)};
  const std::vector<KernelTimes::Record> records = {{20, 10}, {21, 7}, {20, 30}, {22, 4}, {20, 2}};
  const TimeJoin join = Join(entries, records);
  EXPECT_THAT(join.launches, ElementsAre(Launch(0, 7), Launch(5, 42), Launch(5, 4)));
  EXPECT_THAT(join.keys, ElementsAre(Key{0, 7, 1, false}, Key{5, 46, 2, false}));
}

TEST(TimeJoin, AGraphWithoutAKeyIsOneStranger) {
  const std::vector<LaunchLog::Entry> entries = {Entry(LaunchKeys::kNoKey, 20, true)};
  const std::vector<KernelTimes::Record> records = {{20, 10}, {20, 30}};
  const TimeJoin join = Join(entries, records);
  EXPECT_THAT(join.launches, IsEmpty());
  EXPECT_EQ(join.strangers, 1u);
}

// A graph that was captured as gemm, a copy, relu, gemm, of two layers, and what it ran in the step.
class GraphTimes : public ::testing::Test {
 protected:
  GraphTimes() {
    gemm_ = Find("gemm", 1, 8);
    copy_ = Find("cuMemcpyAsync", 1, 0);
    relu_ = Find("relu", 2, 4);
    again_ = Find("gemm", 2, 8);
  }
  uint32_t Find(const char* kernel, uint32_t layer, uint32_t grid) {
    LaunchCall call;
    call.function = kernel;
    call.site.layer = layer;
    call.grid[0] = grid;
    const LaunchIdentity* identity = nullptr;
    return keys_.Find(call, kernel, recorder_, &identity);
  }
  // Makes it executable. Its nodes have numbers from 100 on, or none.
  void Make(bool numbers) {
    const CapturedGraphs::Node nodes[] = {
        {.key = gemm_}, {.key = copy_, .transfer = true}, {.key = relu_}, {.key = again_}};
    graphs_.BeginCapture();
    for (uint64_t i = 0; i < 4; ++i) {
      CapturedGraphs::Node node = nodes[i];
      node.id = numbers ? 10 + i : 0;
      graphs_.AddLaunch(numbers ? this : nullptr, node, Phase::kForward);
    }
    graphs_.EndCapture(this);
    CapturedGraphs::BeginInstantiate();
    for (uint64_t i = 0; i < 4 && numbers; ++i) graphs_.AddClone(nullptr, 100 + i, 10 + i);
    graphs_.EndInstantiate(&keys_, this);
    whole_ = Find("(CUDA graph)", 0, 0);
    number_ = graphs_.Define(&keys_, whole_, keys_.Identity(whole_)).number;
    ASSERT_NE(number_, 0u);
  }
  // What it ran, in the order of `kernels`; the numbers of the nodes, where records have any, are in the capture's.
  std::vector<KernelTimes::Record> Records(uint32_t correlation_id, const std::vector<uint32_t>& kernels,
                                           bool numbers) {
    std::vector<KernelTimes::Record> records;
    for (size_t i = 0; i < kernels.size(); ++i) {
      KernelTimes::Record record = {.correlation_id = correlation_id, .ns = 10 * (i + 1), .start_ns = 1000 + 100 * i};
      if (numbers) record.node_id = 100 + i;
      const LaunchIdentity identity = keys_.Identity(kernels[i]);
      record.transfer = kernels[i] == copy_;
      record.kernel = record.transfer ? 0 : identity.kernel;
      record.grid = identity.grid;
      record.block = identity.block;
      records.push_back(record);
    }
    return records;
  }
  TimeJoin JoinGraph(const std::vector<KernelTimes::Record>& records) {
    const std::vector<LaunchLog::Entry> entries = {{whole_, 20, number_, 7}};
    return JoinTimes(entries, records, graphs_, keys_);
  }

  FakeRecorder recorder_;
  LaunchKeys keys_;
  CapturedGraphs graphs_{keys_, recorder_};
  uint32_t gemm_ = 0, copy_ = 0, relu_ = 0, again_ = 0, whole_ = 0, number_ = 0;
};

TEST_F(GraphTimes, NodesHaveTheTimesOfTheirNumbersInWhateverOrder) {
  Make(true);
  std::vector<KernelTimes::Record> records = Records(20, {gemm_, copy_, relu_, again_}, true);
  std::swap(records[0], records[3]);
  const TimeJoin join = JoinGraph(records);
  EXPECT_THAT(join.launches,
              ElementsAre(Launch(again_, 40), Launch(copy_, 20), Launch(relu_, 30), Launch(gemm_, 10)));
  EXPECT_THAT(join.checks, IsEmpty());
}

TEST_F(GraphTimes, WithoutNumbersTheOrderOfTheirStartTells) {
  for (const bool numbers : {false, true}) {  // of the nodes; records have none
    Make(numbers);
    std::vector<KernelTimes::Record> records = Records(20, {gemm_, copy_, relu_, again_}, false);
    std::swap(records[0], records[3]);  // a buffer may come late
    const TimeJoin join = JoinGraph(records);
    EXPECT_THAT(join.launches,
                ElementsAre(Launch(gemm_, 10), Launch(copy_, 20), Launch(relu_, 30), Launch(again_, 40)));
    ASSERT_EQ(join.checks.size(), numbers ? 0u : 1u);
    if (!numbers) {
      EXPECT_EQ(join.checks[0], (TimeJoin::Check{number_, true}));
    }
    graphs_.DestroyGraph(this);
  }
}

TEST_F(GraphTimes, AnythingElseThanWhatWasCapturedIsTheGraphsAsAWhole) {
  for (const bool numbers : {false, true}) {
    Make(numbers);
    const std::vector<KernelTimes::Record> as_captured = Records(20, {gemm_, copy_, relu_, again_}, false);
    std::vector<std::vector<KernelTimes::Record>> wrong = {
        Records(20, {gemm_, copy_, again_, relu_}, false),         // another order
        Records(20, {gemm_, copy_, relu_}, false),                 // a kernel too few
        Records(20, {gemm_, copy_, relu_, again_, relu_}, false),  // one too many
        Records(20, {gemm_, relu_, relu_, again_}, false),         // another kind
        as_captured,
        as_captured,
        as_captured,
    };
    ++wrong[4][2].grid[1];
    ++wrong[5][3].block[0];
    wrong[6][0].kernel = 0;  // a name that was never launched
    for (const std::vector<KernelTimes::Record>& records : wrong) {
      uint64_t all = 0;
      for (const KernelTimes::Record& record : records) all += record.ns;
      const TimeJoin join = JoinGraph(records);
      EXPECT_THAT(join.launches, ElementsAre(Launch(whole_, all)));
      EXPECT_THAT(join.checks, ElementsAre(TimeJoin::Check{number_, false}));
    }
    graphs_.DestroyGraph(this);
  }
}

TEST_F(GraphTimes, OneLaunchThatDiffersIsEnough) {
  Make(false);
  std::vector<KernelTimes::Record> records = Records(20, {gemm_, copy_, relu_, again_}, false);
  for (KernelTimes::Record record : Records(21, {gemm_, copy_, again_, relu_}, false)) records.push_back(record);
  for (KernelTimes::Record record : Records(22, {gemm_, copy_, relu_, again_}, false)) records.push_back(record);
  const std::vector<LaunchLog::Entry> entries = {
      {whole_, 20, number_, 7}, {whole_, 21, number_, 7}, {whole_, 22, number_, 7}};
  const TimeJoin join = JoinTimes(entries, records, graphs_, keys_);
  EXPECT_THAT(join.launches, ElementsAre(Launch(whole_, 100), Launch(whole_, 100), Launch(whole_, 100)));
  EXPECT_THAT(join.checks, ElementsAre(TimeJoin::Check{number_, false}));
}

// What ran is in order of time, each with its launch, on one clock.
TEST(TimeJoin, WhatRanIsByStart) {
  const std::vector<LaunchLog::Entry> entries = {Entry(3, 10), Entry(5, 20, true)};
  const std::vector<KernelTimes::Record> records = {{.correlation_id = 20, .ns = 10, .start_ns = 300},
                                                    {.correlation_id = 10, .ns = 5, .start_ns = 100},
                                                    {.correlation_id = 20, .ns = 20, .start_ns = 200},
                                                    {.correlation_id = 99, .ns = 1, .start_ns = 250}};
  const TimeJoin join = Join(entries, records);
  ASSERT_EQ(join.ran.size(), 4u);
  EXPECT_EQ(join.ran[0].start_ns, 100u);
  EXPECT_EQ(join.ran[1].end_ns, 220u);
  EXPECT_EQ(join.ran[1].launch, join.ran[3].launch);
  EXPECT_EQ(join.launches[join.ran[1].launch].ns, 30u);
  EXPECT_EQ(join.ran[2].launch, TimeJoin::kNoLaunch);
}

// Ten launches, whose kernels of 100 ns run one after the other.
TEST(LaunchesBehind, AreThoseThatWaitWhenTheHostHasLaunchedAll) {
  std::vector<LaunchLog::Entry> entries;
  std::vector<KernelTimes::Record> records;
  for (uint32_t i = 0; i < 10; ++i) {
    entries.push_back(Entry(0, i + 1));
    records.push_back({.correlation_id = i + 1, .ns = 100, .start_ns = 5000 + 100 * i});
  }
  const TimeJoin join = Join(entries, records);
  // The first came late, as behind a wait for data, and the GPU has done all when the host has launched the last.
  EXPECT_EQ(LaunchesBehind(join, 6000, 5000), 0u);
  EXPECT_EQ(LaunchesBehind(join, 5650, 5000), 3u);
  // The host had launched all before the first began, and as many before these as take 5,000 ns.
  EXPECT_EQ(LaunchesBehind(join, 1000, 5000), 50u);
}

}  // namespace
}  // namespace rfinject::cupti
