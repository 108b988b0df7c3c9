#include "cli/export/export.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/export/perfetto.pb.h"
#include "cli/export/pprof.pb.h"
#include "cli/report/fold.h"
#include "cli/testing/sample_profile.h"

namespace rfinject::cli {
namespace {

// What the exporter writes of the profile's runs.
std::string Exported(std::string_view kind, const Profile& profile) {
  std::string bytes;
  const auto exporter = FindExport(kind)->make([&bytes](std::string_view more) { bytes += more; });
  const auto machine = [](const Run&) { return testing::SampleA100(); };
  const std::vector<Report> layers = FoldProfile(profile, machine, {.by = By::kLayer});
  const std::vector<Report> kernels = FoldProfile(profile, machine, {.by = By::kKernel});
  for (size_t i = 0; i < kernels.size(); ++i) {
    EXPECT_TRUE(exporter->Add({"a.rfx", "", profile.runs.at(kernels[i].run), layers[i], kernels[i]}).ok());
  }
  EXPECT_TRUE(exporter->Finish().ok());
  return bytes;
}

std::string Unzipped(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 16 + MAX_WBITS), Z_OK);
  std::string text(64 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return text;
}

// The functions of each sample, innermost first.
std::vector<std::vector<std::string>> Stacks(const pprof::Profile& profile) {
  std::vector<std::vector<std::string>> stacks;
  for (const auto& sample : profile.sample()) {
    stacks.emplace_back();
    for (const uint64_t location : sample.location_id()) {
      const auto& function = profile.function(static_cast<int>(location) - 1);  // as numbered by the exporter
      stacks.back().push_back(profile.string_table(static_cast<int>(function.name())));
    }
  }
  return stacks;
}

// The run of a sample with one more launch key, in no layer.
Profile WithLaunch(const std::string& kernel, std::shared_ptr<const NativeStackInfo> stack) {
  Profile profile = testing::SampleResNet18(testing::SampleA100(), 1);
  Run& run = profile.runs.begin()->second;
  LaunchStats stats = run.launches.begin()->second;
  stats.stack = std::move(stack);
  LaunchKey key;
  key.op = "aten::mm";
  key.kernel = kernel;
  run.launches[key] = stats;
  return profile;
}

TEST(Pprof, NativeFramesStandBetweenLayerAndOperator) {
  const auto stack = std::make_shared<NativeStackInfo>(
      NativeStackInfo{{.module = "/lib/libnet.so", .build_id = "", .function = "Net::project(int)", .offset = 1},
                      {.module = "/bin/train", .build_id = "", .function = "main", .offset = 2}});
  pprof::Profile profile;
  ASSERT_TRUE(profile.ParseFromString(Unzipped(Exported("pprof", WithLaunch("gemm", stack)))));
  bool found = false;
  for (const std::vector<std::string>& names : Stacks(profile)) {
    if (names.front() != "gemm") continue;
    found = true;
    ASSERT_EQ(names.size(), 7u);
    EXPECT_EQ((std::vector<std::string>(names.begin(), names.begin() + 5)),
              (std::vector<std::string>{"gemm", "aten::mm", "Net::project(int)", "main", "in no layer"}));
  }
  EXPECT_TRUE(found);
}

TEST(Pprof, NumbersOfTextsAndFunctionsAreThere) {
  pprof::Profile profile;
  ASSERT_TRUE(profile.ParseFromString(Unzipped(Exported("pprof", WithLaunch("k", nullptr)))));
  EXPECT_EQ(profile.string_table(0), "");
  for (const auto& sample : profile.sample()) {
    EXPECT_EQ(sample.value_size(), profile.sample_type_size());
    for (const uint64_t location : sample.location_id()) {
      EXPECT_GE(location, 1u);
      EXPECT_LE(location, static_cast<uint64_t>(profile.location_size()));
    }
  }
}

TEST(Perfetto, WhatIsZeroIsWritten) {
  perfetto::Trace trace;
  ASSERT_TRUE(trace.ParseFromString(Exported("perfetto", WithLaunch("k", nullptr))));
  size_t zeros = 0;
  for (const auto& packet : trace.packet()) {
    if (!packet.has_track_event()) continue;
    EXPECT_TRUE(packet.has_timestamp());
    if (packet.track_event().type() != perfetto::TrackEvent::COUNTER) continue;
    EXPECT_TRUE(packet.track_event().has_double_counter_value());
    zeros += packet.track_event().double_counter_value() == 0 ? 1 : 0;
  }
  EXPECT_GE(zeros, 3u);  // the counters' last values
}

// Names come from programs that we do not know.
TEST(Exports, TextsAreOneLineOfGoodUtf8) {
  const Profile profile = WithLaunch("a\"b\\c\n# TYPE evil gauge\xff\x1b[31m", nullptr);
  for (const ExportKind& kind : AllExports()) {
    if (kind.make == nullptr) continue;
    std::string bytes = Exported(kind.name, profile);
    if (kind.name == "pprof") bytes = Unzipped(bytes);
    EXPECT_EQ(bytes.find("\n# TYPE evil"), std::string::npos) << kind.name;
    EXPECT_EQ(bytes.find("\x1b[31m"), std::string::npos) << kind.name;
  }
}

TEST(Exports, TheSameTwice) {
  const Profile profile = testing::SampleMeasured(testing::SampleA100());
  for (const ExportKind& kind : AllExports()) {
    if (kind.make == nullptr) continue;
    EXPECT_EQ(Exported(kind.name, profile), Exported(kind.name, profile));
  }
}

}  // namespace
}  // namespace rfinject::cli
