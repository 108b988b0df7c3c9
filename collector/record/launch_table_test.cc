#include "collector/record/launch_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>
#include <vector>

namespace rfinject {
namespace {

// Tables are never destroyed; kept, so that the leak checker sees that it is meant.
LaunchTable& NewLaunchTable() {
  static auto* tables = new std::vector<LaunchTable*>;
  return *tables->emplace_back(new LaunchTable);
}

LaunchRecord Record(uint32_t kernel, std::vector<Sample> samples, uint32_t launches = 1) {
  LaunchRecord record;
  record.identity.kernel = kernel;
  record.launches = launches;
  for (const Sample& sample : samples) record.samples[record.sample_count++] = sample;
  return record;
}

struct Total {
  uint64_t launches = 0;
  std::map<uint32_t, MetricSum> metrics;
};

// Takes all increments, by key id.
std::map<uint32_t, Total> TakeAll(LaunchTable* table) {
  std::map<uint32_t, Total> all;
  while (table->TakeOne([&](uint32_t id, const LaunchTable::Key& key, auto metrics) {
    EXPECT_EQ(all.count(id), 0u) << "a key is taken once";
    all[id].launches = key.launches;
    metrics([&](const MetricSum& sum) { all[id].metrics[sum.metric] = sum; });
  })) {
  }
  EXPECT_FALSE(table->HasChanges());
  return all;
}

TEST(LaunchTable, TakesIncrementsOnce) {
  LaunchTable& table = NewLaunchTable();
  EXPECT_FALSE(table.HasChanges());
  table.Add(Record(1, {{kTime, 10}}));
  table.Add(Record(1, {{kTime, 20}, {kModelFlop, 5}}));
  table.Add(Record(2, {}, 3));
  auto all = TakeAll(&table);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].launches, 2u);
  EXPECT_EQ(all[1].metrics[kTime].n, 2u);
  EXPECT_TRUE(all[1].metrics[kTime].sum == 30 && all[1].metrics[kTime].sum_squares == 500);
  EXPECT_EQ(all[1].metrics[kTime].min, 10u);
  EXPECT_EQ(all[1].metrics[kTime].max, 20u);
  EXPECT_EQ(all[1].metrics[kModelFlop].n, 1u);
  EXPECT_EQ(all[2].launches, 3u);
  EXPECT_TRUE(TakeAll(&table).empty());

  // The next increments know nothing of the former ones, extrema included.
  table.Add(Record(1, {{kTime, 15}}, 0));
  all = TakeAll(&table);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[1].launches, 0u);
  EXPECT_EQ(all[1].metrics.size(), 1u) << "metrics without samples are left out";
  EXPECT_EQ(all[1].metrics[kTime].min, 15u);
  EXPECT_EQ(all[1].metrics[kTime].max, 15u);
}

TEST(LaunchTable, EveryPartOfTheIdentityCounts) {
  LaunchTable& table = NewLaunchTable();
  std::vector<LaunchIdentity> identities(14);
  for (LaunchIdentity& identity : identities) identity.kernel = 1;
  identities[0].kernel = 2;
  identities[1].signature = 2;
  identities[2].site.layer = 2;
  identities[3].site.op = 2;
  identities[4].site.node = 2;
  identities[5].site.phase = Phase::kBackward;
  identities[6].grid[0] = 2;
  identities[7].grid[1] = 2;
  identities[8].grid[2] = 2;
  identities[9].block[0] = 2;
  identities[10].block[2] = 2;
  identities[11].dynamic_shared_bytes = 2;
  identities[12].device = 2;
  for (int round = 0; round < 2; ++round) {
    for (const LaunchIdentity& identity : identities) {
      LaunchRecord record;
      record.identity = identity;
      table.Add(record);
    }
  }
  EXPECT_EQ(table.size(), identities.size());
  for (const auto& [id, total] : TakeAll(&table)) EXPECT_EQ(total.launches, 2u) << id;
}

TEST(LaunchTable, AgreesWithAMapOnRandomRecords) {
  LaunchTable& table = NewLaunchTable();
  std::mt19937_64 random(7);
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::map<uint32_t, MetricSum>> expected;
  for (int i = 0; i < 100'000; ++i) {
    LaunchRecord record;
    record.identity.kernel = static_cast<uint32_t>(random() % 40);
    record.identity.site.layer = static_cast<uint32_t>(random() % 30);
    record.identity.grid[0] = static_cast<uint32_t>(random() % 10);
    record.sample_count = static_cast<uint32_t>(random() % (kMaxSamplesPerRecord + 1));
    for (uint32_t s = 0; s < record.sample_count; ++s) {
      record.samples[s] = {static_cast<uint32_t>(1 + random() % 9), random() >> (random() % 64)};
    }
    auto& sums = expected[{record.identity.kernel, record.identity.site.layer, record.identity.grid[0]}];
    for (uint64_t alike = 1 + random() % 4; alike > 0; --alike) {
      for (uint32_t s = 0; s < record.sample_count; ++s) sums[record.samples[s].metric].Add(record.samples[s].value);
      table.Add(record);
    }
  }
  EXPECT_EQ(table.size(), expected.size());
  table.TakeOne([&](uint32_t, const LaunchTable::Key&, auto) {});  // taking one leaves the others
  size_t seen = 1;
  while (table.TakeOne([&](uint32_t, const LaunchTable::Key& key, auto metrics) {
    ++seen;
    const auto& sums = expected.at({key.identity.kernel, key.identity.site.layer, key.identity.grid[0]});
    size_t count = 0;
    metrics([&](const MetricSum& sum) {
      ++count;
      const MetricSum& wanted = sums.at(sum.metric);
      EXPECT_TRUE(sum.n == wanted.n && sum.sum == wanted.sum && sum.sum_squares == wanted.sum_squares &&
                  sum.min == wanted.min && sum.max == wanted.max);
    });
    EXPECT_EQ(count, sums.size());
  })) {
  }
  EXPECT_EQ(seen, expected.size());
}

TEST(LaunchTable, WhatRepeatsWhatWasTakenBefore) {
  LaunchTable& table = NewLaunchTable();
  const auto repeats = [&](std::initializer_list<LaunchRecord> records) {
    for (const LaunchRecord& record : records) table.Add(record);
    bool all = true;
    while (table.TakeOne([&](uint32_t, const LaunchTable::Key& key, auto) { all = all && key.repeats; })) {
    }
    return all;
  };
  const LaunchRecord both = Record(1, {{kTime, 10}, {kModelFlop, 5}});
  EXPECT_FALSE(repeats({both, both}));  // nothing was taken before
  EXPECT_TRUE(repeats({both}));
  EXPECT_TRUE(repeats({both, both, both}));
  EXPECT_FALSE(repeats({both, Record(1, {{kTime, 10}})}));  // a launch without a sample
  EXPECT_FALSE(repeats({Record(1, {{kTime, 10}})}));
  EXPECT_TRUE(repeats({both}));
  EXPECT_FALSE(repeats({Record(1, {{kTime, 10}, {kModelFlop, 6}})}));
  EXPECT_FALSE(repeats({both}));  // several values have been taken
  // A metric that comes later.
  EXPECT_FALSE(repeats({Record(2, {{kTime, 10}})}));
  EXPECT_FALSE(repeats({Record(2, {{kTime, 10}, {kModelFlop, 5}})}));
  EXPECT_TRUE(repeats({Record(2, {{kTime, 10}, {kModelFlop, 5}})}));
  // Values that are marks in the table.
  for (const uint64_t mark : {MetricSum::kNoneTaken, MetricSum::kSeveral}) {
    EXPECT_FALSE(repeats({Record(4, {{kTime, mark}})}));
    EXPECT_FALSE(repeats({Record(4, {{kTime, mark}})}));
  }
  EXPECT_FALSE(repeats({Record(5, {})}));  // no metric
  EXPECT_FALSE(repeats({Record(5, {})}));
}

TEST(MetricSum, SaturatesInsteadOfWrapping) {
  MetricSum sum;
  sum.sum = ~Uint128{0} - 5;
  sum.Add(3);
  EXPECT_TRUE(sum.sum == ~Uint128{0} - 2);
  sum.Add(3);
  EXPECT_TRUE(sum.sum == ~Uint128{0});
  sum.Add(UINT64_MAX);
  EXPECT_TRUE(sum.sum == ~Uint128{0});
}

TEST(MetricSum, ManyAreAsManyTimesOne) {
  for (const uint64_t value : {uint64_t{0}, uint64_t{3}, uint64_t{1} << 40, UINT64_MAX}) {
    MetricSum at_once, one_by_one;
    at_once.Add(value, 5);
    for (int i = 0; i < 5; ++i) one_by_one.Add(value);
    EXPECT_TRUE(at_once.n == 5 && at_once.min == value && at_once.max == value);
    EXPECT_TRUE(at_once.sum == one_by_one.sum && at_once.sum_squares == one_by_one.sum_squares) << value;
  }
  MetricSum endless;
  endless.Add(UINT64_MAX, UINT64_MAX);
  EXPECT_TRUE(endless.sum == Uint128{UINT64_MAX} * UINT64_MAX && endless.sum_squares == ~Uint128{0});
}

// Beyond the limits, layer, phase and operator are kept as long as there is room at all.
TEST(LaunchTable, IsBounded) {
  LaunchTable& table = NewLaunchTable();
  LaunchRecord record;
  for (uint32_t i = 0; i < LaunchTable::kMaxKeys; ++i) {
    record.identity.signature = i + 1;
    ASSERT_EQ(table.Add(record), LaunchTable::AddResult::kOk);
  }
  record.identity.signature = 1;
  EXPECT_EQ(table.Add(record), LaunchTable::AddResult::kOk) << "known keys stay exact";
  record.identity.signature = UINT32_MAX;
  for (uint32_t layer = 0; layer < LaunchTable::kMaxKeys; ++layer) {
    record.identity.site.layer = layer;
    ASSERT_EQ(table.Add(record), LaunchTable::AddResult::kCoarsened);
  }
  record.identity.site.layer = LaunchTable::kMaxKeys;
  EXPECT_EQ(table.Add(record), LaunchTable::AddResult::kTooMany);
  record.identity.site.layer = 5;
  EXPECT_EQ(table.Add(record), LaunchTable::AddResult::kCoarsened);
  EXPECT_EQ(table.size(), 2 * LaunchTable::kMaxKeys);
}

}  // namespace
}  // namespace rfinject
