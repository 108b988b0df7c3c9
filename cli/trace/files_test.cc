#include "cli/trace/files.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace rfinject::cli {
namespace {

namespace fs = std::filesystem;

class TraceFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "rfinject-trace-files-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }
  void Touch(const std::string& path) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << "x";
  }
  fs::path root_;
};

TEST_F(TraceFiles, ATraceIsKnownByItsBeginning) {
  fs::create_directories(root_ / "folder.rfx");
  std::ofstream(root_ / "trace") << "RFINJECT and more";
  std::ofstream(root_ / "short.rfx") << "RFINJEC";
  std::ofstream(root_ / "other.rfx") << "RFINJECS and more";
  ASSERT_EQ(::mkfifo((root_ / "fifo.rfx").c_str(), 0600), 0);
  fs::create_symlink("trace", root_ / "link");
  EXPECT_TRUE(IsTraceFile(root_ / "trace"));
  EXPECT_TRUE(IsTraceFile(root_ / "link"));
  for (const char* other : {"folder.rfx", "short.rfx", "other.rfx", "fifo.rfx", "none"}) {
    EXPECT_FALSE(IsTraceFile(root_ / other)) << other;
  }
}

TEST_F(TraceFiles, AFoldersTracesAreFoundBelowAndSorted) {
  Touch("b.rfx");
  Touch("a/z.rfx");
  Touch("a/deep/er.rfx");
  Touch("a/notes.txt");
  const auto files = FindTraces(root_.string());
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(*files, (std::vector<std::string>{(root_ / "a/deep/er.rfx").string(), (root_ / "a/z.rfx").string(),
                                              (root_ / "b.rfx").string()}));
}

TEST_F(TraceFiles, LinksWithinFoldersAreNotFollowed) {
  Touch("real/one.rfx");
  fs::create_directory(root_ / "in");
  Touch("in/own.rfx");
  fs::create_symlink(root_ / "real/one.rfx", root_ / "in/link.rfx");
  fs::create_directory_symlink(root_, root_ / "in/loop");
  auto files = FindTraces((root_ / "in").string());
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(*files, std::vector<std::string>{(root_ / "in/own.rfx").string()});
  // A link that the user names is meant.
  files = FindTraces((root_ / "in/link.rfx").string());
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->size(), 1u);
}

TEST_F(TraceFiles, SaysWhatIsNotThere) {
  EXPECT_EQ(FindTraces((root_ / "none").string()).status().message(), "no such file or folder");
  const absl::Status empty = FindTraces(root_.string()).status();
  EXPECT_NE(empty.message().find("no traces"), absl::string_view::npos) << empty;
}

}  // namespace
}  // namespace rfinject::cli
