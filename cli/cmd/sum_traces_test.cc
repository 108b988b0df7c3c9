#include "cli/cmd/sum_traces.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/testing/sample_profile.h"
#include "cli/testing/trace_bytes.h"

namespace rfinject::cli {
namespace {

// Two sums at once, of enough files that every processor has some: what comes out is what one after the other gives.
// The thread sanitizer looks at it, too.
TEST(SumTraces, AddsEachFileToItsSum) {
  std::string folder = ::testing::TempDir() + "sum_traces_XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  constexpr size_t kFiles = 60;
  std::vector<Profile> expected(2);
  std::vector<FileToAdd> files;
  for (size_t i = 0; i < kFiles; ++i) {
    Profile profile = testing::SampleMeasured(i % 3 == 0 ? testing::SampleV100() : testing::SampleA100());
    profile.trace_ids = {"trace-" + std::to_string(i)};
    files.push_back({folder + "/" + std::to_string(i) + ".rfx", i % 2});
    const std::vector<uint8_t> bytes = testing::WrittenTrace(profile);
    std::ofstream(files.back().path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    ASSERT_TRUE(expected[i % 2].Merge(std::move(profile)).ok());
  }
  files.push_back(files.front());  // counts once
  const std::vector<Loaded> sums = SumTraces(files, 2);
  std::filesystem::remove_all(folder);
  ASSERT_EQ(sums.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(sums[i].files, kFiles / 2);
    EXPECT_FALSE(sums[i].damaged);
    EXPECT_TRUE(sums[i].profile == expected[i]);
  }
}

}  // namespace
}  // namespace rfinject::cli
