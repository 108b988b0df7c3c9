// File: time_join_test.cc
#include "collector/cupti/time_join.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "collector/cupti/counted_context.h"
#include "collector/cupti/launch_keys.h"

namespace rfinject::cupti {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Launch = TimeJoin::Launch;
using Key = TimeJoin::Key;

LaunchLog::Entry Entry(uint32_t key, uint32_t correlation_id, bool graph = false) {
  return {key, correlation_id, 0, OwnerOf({}, graph)};
}

TEST(TimeJoin, NothingIsNothing) {
  const TimeJoin join = JoinTimes({}, {});
  EXPECT_THAT(join.launches, IsEmpty());
  EXPECT_THAT(join.keys, IsEmpty());
  EXPECT_EQ(join.strangers, 0u);
}

// Records come in the order in which buffers are full, not in that of the launches.
TEST(TimeJoin, RecordsFindTheirLaunchInWhateverOrder) {
  const std::vector<LaunchLog::Entry> entries = {Entry(0, 10), Entry(1, 11), Entry(0, 12)};
  const std::vector<KernelTimes::Record> records = {{12, 300}, {10, 100}, {11, 50}};
  const TimeJoin join = JoinTimes(entries, records);
  EXPECT_THAT(join.launches, ElementsAre(Launch{0, 300}, Launch{0, 100}, Launch{1, 50}));
  EXPECT_THAT(join.keys, ElementsAre(Key{0, 400, 2}, Key{1, 50, 1}));
  EXPECT_EQ(join.strangers, 0u);
}

TEST(TimeJoin, ALaunchWithoutARecordHasNoTime) {
  const std::vector<LaunchLog::Entry> entries = {Entry(0, 10), Entry(1, 11)};
  const std::vector<KernelTimes::Record> records = {{11, 50}};
  const TimeJoin join = JoinTimes(entries, records);
  EXPECT_THAT(join.keys, ElementsAre(Key{1, 50, 1}));
}

TEST(TimeJoin, RecordsOfNobodyAreCounted) {
  const std::vector<LaunchLog::Entry> entries = {Entry(0, 10), Entry(LaunchKeys::kNoKey, 11)};
  const std::vector<KernelTimes::Record> records = {{10, 100}, {11, 50}, {99, 7}};
  const TimeJoin join = JoinTimes(entries, records);
  EXPECT_THAT(join.launches, ElementsAre(Launch{0, 100}));
  EXPECT_EQ(join.strangers, 2u);  // one without a key, one that was never logged
}

// Correlation ids are 32 bits of a count: one that is used again belongs to the later launch.
TEST(TimeJoin, TheLaterOfTwoLaunchesWithOneIdCounts) {
  const std::vector<LaunchLog::Entry> entries = {Entry(0, 10), Entry(1, 10)};
  const std::vector<KernelTimes::Record> records = {{10, 100}};
  EXPECT_THAT(JoinTimes(entries, records).launches, ElementsAre(Launch{1, 100}));
}

TEST(TimeJoin, AGraphsKernelsAreOneLaunch) {
  const std::vector<LaunchLog::Entry> entries = {Entry(5, 20, true), Entry(0, 21), Entry(5, 22, true)};
  const std::vector<KernelTimes::Record> records = {{20, 10}, {21, 7}, {20, 30}, {22, 4}, {20, 2}};
  const TimeJoin join = JoinTimes(entries, records);
  EXPECT_THAT(join.launches, ElementsAre(Launch{0, 7}, Launch{5, 42}, Launch{5, 4}));
  EXPECT_THAT(join.keys, ElementsAre(Key{0, 7, 1}, Key{5, 46, 2}));
}

TEST(TimeJoin, AGraphWithoutAKeyIsOneStranger) {
  const std::vector<LaunchLog::Entry> entries = {Entry(LaunchKeys::kNoKey, 20, true)};
  const std::vector<KernelTimes::Record> records = {{20, 10}, {20, 30}};
  const TimeJoin join = JoinTimes(entries, records);
  EXPECT_THAT(join.launches, IsEmpty());
  EXPECT_EQ(join.strangers, 1u);
}

TEST(BusyNs, CountsWhatRunsAtTheSameTimeOnce) {
  EXPECT_EQ(BusyNs({}), 0u);
  const std::vector<KernelTimes::Record> records = {
      {.correlation_id = 1, .ns = 10, .start_ns = 100}, {.correlation_id = 2, .ns = 10, .start_ns = 50},
      {.correlation_id = 3, .ns = 4, .start_ns = 103},  {.correlation_id = 4, .ns = 10, .start_ns = 105},
      {.correlation_id = 5, .ns = 5, .start_ns = 60},
  };
  EXPECT_EQ(BusyNs(records), 15u + 15u);
}

}  // namespace
}  // namespace rfinject::cupti
