// Traces that were cut off, changed, or written by something else: what is whole before the damage counts.

#include "cli/trace/damage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/testing/small_trace.h"
#include "cli/testing/trace_bytes.h"
#include "cli/trace/read.h"
#include "proto/rfinject/v1/trace.pb.h"
#include "proto/wire/framing.h"

namespace rfinject::cli {
namespace {

using testing::AddName;
using testing::AddTwoLaunches;
using testing::AppendFrame;
using testing::Definitions;
using testing::EmptyTrace;
using testing::End;
using testing::Read;
using testing::Statistics;
using testing::Trace;

TEST(Damage, CutAtEveryByteItKeepsEveryWholeChunk) {
  const std::vector<std::function<void(v1::Chunk&)>> chunks = {Definitions, Statistics, Statistics, Statistics, End};
  const std::vector<uint8_t> whole = Trace(chunks);
  std::vector<size_t> ends;  // of the header and of each chunk
  for (size_t n = 0; n <= chunks.size(); ++n) {
    ends.push_back(Trace({chunks.begin(), chunks.begin() + static_cast<std::ptrdiff_t>(n)}).size());
  }
  for (size_t cut = 0; cut <= whole.size(); ++cut) {
    const TraceContents contents = Read({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut)});
    size_t expected = 0;
    while (expected < chunks.size() && ends[expected + 1] <= cut) ++expected;
    ASSERT_EQ(contents.chunks, expected) << cut;
    ASSERT_EQ(contents.usable, cut >= ends[0]) << cut;
    const bool clean = std::find(ends.begin(), ends.end(), cut) != ends.end();
    ASSERT_EQ(!contents.status.ok(), !clean) << cut;
    if (!contents.status.ok()) {
      ASSERT_LE(DamageOffset(contents.status), cut);
      if (contents.usable) {
        ASSERT_EQ(DamageOffset(contents.status), ends[expected]) << cut;
      }
      ASSERT_FALSE(DamageReason(contents.status).empty());
    }
    const uint64_t launches = expected < 2 ? 0 : 2 * std::min<size_t>(expected - 1, 3);
    uint64_t found = 0;
    for (const auto& [key, run] : contents.profile.runs) {
      for (const auto& [launch, stats] : run.launches) found += stats.launches;
    }
    ASSERT_EQ(found, launches) << cut;
  }
}

TEST(Damage, EveryFlippedBitIsNoticed) {
  const std::vector<uint8_t> whole = Trace({Definitions, Statistics, End});
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    // The minor version is for people only, but the header's checksum covers it all the same.
    std::vector<uint8_t> bytes = whole;
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    ASSERT_FALSE(Read(bytes).status.ok()) << bit;
  }
}

void ExpectRefused(const std::function<void(v1::Chunk&)>& bad, const std::string& reason) {
  std::vector<uint8_t> bytes = Trace({Definitions, Statistics});
  const size_t good_size = bytes.size();
  bytes = Trace({Definitions, Statistics, bad, Statistics});
  const TraceContents contents = Read(bytes);
  ASSERT_FALSE(contents.status.ok()) << reason;
  EXPECT_NE(DamageReason(contents.status).find(reason), std::string::npos) << DamageReason(contents.status);
  EXPECT_GE(DamageOffset(contents.status), good_size + 16);
  EXPECT_LT(DamageOffset(contents.status), bytes.size());
  EXPECT_EQ(contents.chunks, 2u);
  // Nothing of the bad chunk may count, not even what came before the mistake in it.
  EXPECT_EQ(contents.profile, Read(Trace({Definitions, Statistics})).profile);
}

TEST(Damage, RefusesWhatWasNeverDefined) {
  const auto with_launches = [](auto fill) {
    return [fill](v1::Chunk& chunk) {
      Statistics(chunk);
      fill(chunk);
    };
  };
  ExpectRefused(with_launches([](v1::Chunk& chunk) { chunk.add_stats()->set_key(99); }), "launch key 99");
  ExpectRefused(with_launches([](v1::Chunk& chunk) {
                  v1::KeyStats* stats = chunk.add_stats();
                  stats->set_key(1);
                  stats->add_metric()->set_metric(77);
                }),
                "metric 77");
  ExpectRefused(with_launches([](v1::Chunk& chunk) {
                  v1::LaunchKey* key = chunk.add_key();
                  key->set_id(5);
                  key->set_layer(66);
                }),
                "layer 66");
  ExpectRefused(with_launches([](v1::Chunk& chunk) {
                  v1::LaunchKey* key = chunk.add_key();
                  key->set_id(5);
                  key->set_kernel(55);
                }),
                "name 55");
  ExpectRefused(with_launches([](v1::Chunk& chunk) { chunk.add_step()->set_run(44); }), "run 44");
  ExpectRefused(with_launches([](v1::Chunk& chunk) {
                  v1::Layer* layer = chunk.add_layer();
                  layer->set_id(7);
                  layer->set_model(33);
                }),
                "model 33");
}

TEST(Damage, RefusesWhatIsDefinedTwiceDifferently) {
  ExpectRefused([](v1::Chunk& chunk) { AddName(chunk, 1, "aten::other"); }, "name 1 is defined twice");
  ExpectRefused(
      [](v1::Chunk& chunk) {
        v1::Metric* metric = chunk.add_metric();
        metric->set_id(1);
        metric->set_name("rf.time");
        metric->set_unit("s");
      },
      "metric 1 is defined twice");
  ExpectRefused(
      [](v1::Chunk& chunk) {
        v1::Metric* metric = chunk.add_metric();
        metric->set_id(2);
        metric->set_name("rf.time");
        metric->set_unit("ns");
      },
      "same name");
  ExpectRefused(
      [](v1::Chunk& chunk) {
        v1::LaunchKey* key = chunk.add_key();
        key->set_id(1);
        key->set_layer(1);
      },
      "launch key 1 is defined twice");
  ExpectRefused(
      [](v1::Chunk& chunk) {
        v1::Layer* layer = chunk.add_layer();
        layer->set_id(2);
        layer->set_path("conv2");
      },
      "layer 2 is defined twice");
  // The same again is no contradiction.
  EXPECT_TRUE(Read(Trace({Definitions, Definitions})).status.ok());
}

TEST(Damage, LaunchesThatRepeatThoseBefore) {
  const auto same = [](v1::Chunk& chunk) { AddTwoLaunches(chunk)->set_min(1000); };
  const auto again = [](v1::Chunk& chunk) {
    v1::RepeatedLaunches* repeated = chunk.add_repeated_launches();
    repeated->add_gap(0);
    repeated->add_keys(1);
    repeated->add_launches(5);
  };
  const TraceContents contents = Read(Trace({Definitions, same, again, again}));
  ASSERT_TRUE(contents.status.ok()) << contents.status;
  const LaunchStats& launches = contents.profile.runs.begin()->second.launches.begin()->second;
  EXPECT_EQ(launches.launches, 12u);
  EXPECT_EQ(launches.metrics.at("rf.time"), Stat::Same(1000, 12));
  ExpectRefused(again, "which differ");
  const auto changed = [&](auto change) {
    return [&again, change](v1::Chunk& chunk) {
      again(chunk);
      change(*chunk.mutable_repeated_launches(0));
    };
  };
  ExpectRefused(changed([](v1::RepeatedLaunches& one) { one.add_gap(1); }), "without a number");
  const auto reason = [&](auto change) {
    return std::string(DamageReason(Read(Trace({Definitions, same, changed(change)})).status));
  };
  EXPECT_EQ(reason([](v1::RepeatedLaunches& one) { one.set_gap(0, UINT32_MAX); }),
            "launch key 4294967296 is used and was never defined");
  EXPECT_EQ(reason([](v1::RepeatedLaunches& one) { one.set_keys(0, 65); }),
            "a range of repeated launches is longer than any should be");
}

TEST(Damage, RefusesWhatContradictsItself) {
  ExpectRefused([](v1::Chunk& chunk) { chunk.add_name()->set_text("no id"); }, "without an id");
  ExpectRefused(
      [](v1::Chunk& chunk) {
        v1::MetricStats* metric = chunk.add_stats()->add_metric();
        chunk.mutable_stats(0)->set_key(1);
        metric->set_metric(1);
        metric->set_n(1);
        metric->set_min(2);
        metric->set_max(1);
      },
      "minimum is above its maximum");
  ExpectRefused(
      [](v1::Chunk& chunk) {
        v1::LaunchKey* key = chunk.add_key();
        key->set_id(2);
        for (uint32_t i = 0; i < 4; ++i) key->add_grid(i);
      },
      "more than three dimensions");
  ExpectRefused(
      [](v1::Chunk& chunk) {
        v1::Metric* metric = chunk.add_metric();
        metric->set_id(2);
        metric->set_name("x");
        metric->set_scale(-1);
      },
      "impossible scale");
  ExpectRefused([](v1::Chunk& chunk) { chunk.add_diagnostic()->set_text(std::string(kMaxRecordSize, 'x')); },
                "longer than any should be");
}

TEST(Damage, HostileSizesAreRefusedBeforeMemoryIsTaken) {
  std::vector<uint8_t> bytes = EmptyTrace();
  // Chunk.name with a length of 2^63.
  AppendFrame(bytes, 0, std::string_view("\x12\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11));
  const TraceContents contents = Read(bytes);
  ASSERT_FALSE(contents.status.ok());
  EXPECT_EQ(DamageOffset(contents.status), 32u);
  EXPECT_NE(DamageReason(contents.status).find("beyond the end"), std::string::npos);
}

TEST(Damage, MoreKeysThanMemoryAreRefused) {
  std::vector<uint8_t> bytes = EmptyTrace();
  v1::Chunk chunk;
  AddName(chunk, 1, std::string(100000, 'n'));
  for (uint32_t id = 1; id <= 10000; ++id) {
    v1::LaunchKey* key = chunk.add_key();
    key->set_id(id);
    key->set_kernel(1);  // each key's name would be a copy of 100 KB in a Profile
  }
  AppendFrame(bytes, 0, chunk.SerializeAsString());
  MemorySource source(bytes);
  const TraceContents contents = ReadTrace(source, 100u << 20);
  ASSERT_FALSE(contents.status.ok());
  EXPECT_NE(DamageReason(contents.status).find("memory"), std::string::npos);
}

TEST(Damage, HeadersThatAreNotOurs) {
  const auto reason = [](std::vector<uint8_t> bytes) {
    const TraceContents contents = Read(bytes);
    EXPECT_FALSE(contents.usable);
    return std::string(DamageReason(contents.status));
  };
  EXPECT_EQ(reason({}), "the file is empty");
  EXPECT_EQ(reason({'P', 'K', 3, 4}), "not a trace of rfinject");
  std::vector<uint8_t> newer = EmptyTrace();
  newer[8] = wire::kFormatMajor + 1;
  const uint32_t crc = wire::Crc32c(newer.data(), 12);
  for (int i = 0; i < 4; ++i) newer[12 + static_cast<size_t>(i)] = static_cast<uint8_t>(crc >> (8 * i));
  EXPECT_NE(reason(newer).find("format " + std::to_string(wire::kFormatMajor + 1)), std::string::npos);
  EXPECT_NE(reason(newer).find("use a newer rfinject"), std::string::npos);
  std::vector<uint8_t> damaged = EmptyTrace();
  damaged[13] ^= 1;
  EXPECT_NE(reason(damaged).find("checksum"), std::string::npos);
}

}  // namespace
}  // namespace rfinject::cli
