#include "collector/output_path.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "collector/testing/trace_content.h"

namespace rfinject {
namespace {

using ::rfinject::testing::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const OutputNames kAlone{"node7", "4711", ""};
const OutputNames kRanked{"node7", "4711", "3"};

TEST(ExpandOutput, Placeholders) {
  setenv("RECORDER_TEST_VALUE", "a%h b", 1);
  EXPECT_EQ(ExpandOutput("/x/%h-%p-%r.rfx", kRanked), "/x/node7-4711-3.rfx");
  EXPECT_EQ(ExpandOutput("/x/%r.rfx", kAlone), "/x/0.rfx");
  EXPECT_EQ(ExpandOutput("/x/100%%.rfx", kAlone), "/x/100%.rfx");
  EXPECT_EQ(ExpandOutput("/x/%q{RECORDER_TEST_VALUE}.rfx", kAlone), "/x/a%h b.rfx")
      << "a value is not expanded again";
  EXPECT_EQ(ExpandOutput("/x/[%q{RECORDER_TEST_NOT_SET}].rfx", kAlone), "/x/[].rfx");
}

TEST(ExpandOutput, WhatIsNoPlaceholderStays) {
  EXPECT_EQ(ExpandOutput("/x/%d%", kAlone), "/x/%d%");
  EXPECT_EQ(ExpandOutput("/x/%q", kAlone), "/x/%q");
  EXPECT_EQ(ExpandOutput("/x/%q{OPEN", kAlone), "/x/%q{OPEN");
  EXPECT_EQ(ExpandOutput("/x/%%%", kAlone), "/x/%%");
}

TEST(ExpandOutput, AFolderGetsAName) {
  EXPECT_EQ(ExpandOutput("/x/", kAlone), "/x/node7.4711.rfx");
  EXPECT_EQ(ExpandOutput("/x/", kRanked), "/x/node7.4711.r3.rfx");
  EXPECT_EQ(ExpandOutput("/x/%q{RECORDER_TEST_NOT_SET}/", kAlone), "/x//node7.4711.rfx");
  const TemporaryFolder folder;
  EXPECT_EQ(ExpandOutput(folder.path(), kAlone), folder.path() + "/node7.4711.rfx")
      << "one that exists needs no slash";
}

TEST(EscapeOutput, IsUndoneByExpand) {
  for (const char* text : {"plain", "100%", "%h%%p", "%q{HOME}", ""}) {
    EXPECT_EQ(ExpandOutput("/x/a" + EscapeOutput(text), kAlone), "/x/a" + std::string(text));
  }
}

TEST(CurrentOutputNames, AreThisProcesss) {
  EXPECT_EQ(CurrentOutputNames().pid, std::to_string(getpid()));
  EXPECT_FALSE(CurrentOutputNames().host.empty());
}

class CreateOutputFileTest : public ::testing::Test {
 protected:
  // The name that was used; empty when it failed.
  std::string Create(std::string path) {
    error_.clear();
    const int fd = CreateOutputFile(&path, &error_);
    if (fd < 0) return "";
    EXPECT_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    EXPECT_EQ(fcntl(fd, F_GETFL) & O_APPEND, O_APPEND);
    EXPECT_EQ(write(fd, "x", 1), 1);
    close(fd);
    return path;
  }
  mode_t Mode(const std::string& path) {
    struct stat at {};
    EXPECT_EQ(lstat(path.c_str(), &at), 0) << path;
    return at.st_mode & 07777;
  }
  // As a user who is not root, where the test runs as root.
  static int AsNobody(const std::function<bool()>& body) {
    const pid_t child = fork();
    if (child == 0) {
      if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(2);
      _exit(body() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  TemporaryFolder folder_;
  std::string error_;
};

TEST_F(CreateOutputFileTest, MakesFoldersAndFileForTheUserOnly) {
  const mode_t mask = umask(0);
  const std::string path = folder_.path() + "/a/b//c/t.rfx";
  EXPECT_EQ(Create(path), path);
  umask(mask);
  EXPECT_EQ(Mode(path), 0600u);
  EXPECT_EQ(Mode(folder_.path() + "/a"), 0700u);
  EXPECT_EQ(Mode(folder_.path() + "/a/b/c"), 0700u);
}

TEST_F(CreateOutputFileTest, NeverTouchesWhatIsThere) {
  const std::string path = folder_.path() + "/t.rfx";
  EXPECT_EQ(Create(path), path);
  EXPECT_EQ(Create(path), folder_.path() + "/t-1.rfx");
  EXPECT_EQ(Create(path), folder_.path() + "/t-2.rfx");
  EXPECT_EQ(Create(folder_.path() + "/plain"), folder_.path() + "/plain");
  EXPECT_EQ(Create(folder_.path() + "/plain"), folder_.path() + "/plain-1");
  EXPECT_EQ(Create(folder_.path() + "/.rfx"), folder_.path() + "/.rfx");
  EXPECT_EQ(Create(folder_.path() + "/.rfx"), folder_.path() + "/.rfx-1");
  EXPECT_EQ(::rfinject::testing::ReadFile(path), "x");
}

TEST_F(CreateOutputFileTest, ALinkInTheFilesPlaceIsNotFollowed) {
  const std::string target = folder_.path() + "/target";
  ASSERT_EQ(symlink(target.c_str(), (folder_.path() + "/t.rfx").c_str()), 0);
  EXPECT_EQ(Create(folder_.path() + "/t.rfx"), folder_.path() + "/t-1.rfx");
  EXPECT_NE(access(target.c_str(), F_OK), 0);
}

TEST_F(CreateOutputFileTest, LinksToFoldersAreFollowed) {
  ASSERT_EQ(mkdir((folder_.path() + "/real").c_str(), 0700), 0);
  ASSERT_EQ(symlink("real", (folder_.path() + "/relative").c_str()), 0);
  ASSERT_EQ(symlink((folder_.path() + "/relative").c_str(), (folder_.path() + "/absolute").c_str()), 0);
  EXPECT_NE(Create(folder_.path() + "/absolute/sub/t.rfx"), "") << error_;
  EXPECT_EQ(access((folder_.path() + "/real/sub/t.rfx").c_str(), F_OK), 0);
  ASSERT_EQ(symlink("loop", (folder_.path() + "/loop").c_str()), 0);
  EXPECT_EQ(Create(folder_.path() + "/loop/t.rfx"), "");
  EXPECT_THAT(error_, HasSubstr("Too many levels of symbolic links"));
}

TEST_F(CreateOutputFileTest, APlantedLinkIsNot) {
  const std::string shared = folder_.path() + "/shared";
  ASSERT_EQ(mkdir(shared.c_str(), 0700), 0);
  ASSERT_EQ(mkdir((folder_.path() + "/victim").c_str(), 0700), 0);
  ASSERT_EQ(symlink("../victim", (shared + "/link").c_str()), 0);
  // Our own link is fine even in a folder like /tmp.
  ASSERT_EQ(chmod(shared.c_str(), 01777), 0);
  EXPECT_NE(Create(shared + "/link/mine.rfx"), "") << error_;
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a link that belongs to somebody else";
  ASSERT_EQ(lchown((shared + "/link").c_str(), 65534, 65534), 0);
  EXPECT_EQ(Create(shared + "/link/t.rfx"), "");
  EXPECT_THAT(error_, HasSubstr("link there that another user made"));
  EXPECT_THAT(error_, HasSubstr(shared));
  // Where not everybody can make links, the owner of one does not matter.
  ASSERT_EQ(chmod(shared.c_str(), 0755), 0);
  EXPECT_NE(Create(shared + "/link/t.rfx"), "") << error_;
}

TEST_F(CreateOutputFileTest, RelativePathsStartHere) {
  char here[4096];
  ASSERT_NE(getcwd(here, sizeof here), nullptr);
  ASSERT_EQ(chdir(folder_.path().c_str()), 0);
  EXPECT_EQ(Create("sub/t.rfx"), "sub/t.rfx");
  EXPECT_EQ(Create("t.rfx"), "t.rfx");
  EXPECT_EQ(Create("sub/../u.rfx"), "sub/../u.rfx");
  ASSERT_EQ(chdir(here), 0);
  EXPECT_EQ(Mode(folder_.path() + "/sub/t.rfx"), 0600u);
  EXPECT_EQ(Mode(folder_.path() + "/u.rfx"), 0600u);
}

TEST_F(CreateOutputFileTest, SaysWhatIsWrong) {
  ASSERT_NE(Create(folder_.path() + "/file"), "");
  EXPECT_EQ(Create(folder_.path() + "/file/t.rfx"), "");
  EXPECT_THAT(error_, HasSubstr("Not a directory"));
  EXPECT_EQ(Create(folder_.path() + "/."), "");
  EXPECT_EQ(Create(folder_.path() + "/" + std::string(300, 'x')), "");
  EXPECT_THAT(error_, HasSubstr("File name too long"));
  EXPECT_EQ(Create("/proc/t.rfx"), "");
  EXPECT_THAT(error_, HasSubstr("/proc/t.rfx: "));
}

TEST_F(CreateOutputFileTest, AFolderWithoutPermission) {
  ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
  ASSERT_EQ(mkdir((folder_.path() + "/closed").c_str(), 0755), 0);
  EXPECT_EQ(AsNobody([&] {
              std::string path = folder_.path() + "/closed/t.rfx";
              std::string error;
              return geteuid() == 0 ||
                     (CreateOutputFile(&path, &error) < 0 && error.find("Permission denied") != std::string::npos);
            }),
            0);
  EXPECT_THAT(folder_.List(), ElementsAre("closed"));
}

class LinkLatestTest : public CreateOutputFileTest {
 protected:
  std::string Target() {
    char text[256];
    const ssize_t size = readlink((folder_.path() + "/out/latest").c_str(), text, sizeof text);
    return size < 0 ? "" : std::string(text, static_cast<size_t>(size));
  }
};

TEST_F(LinkLatestTest, NamesTheFolderOfTheLastRun) {
  ASSERT_NE(Create(folder_.path() + "/out/first/t.rfx"), "");
  EXPECT_TRUE(LinkLatest(folder_.path() + "/out/first/t.rfx"));
  EXPECT_EQ(Target(), "first");
  ASSERT_NE(Create(folder_.path() + "/out/second/t.rfx"), "");
  EXPECT_TRUE(LinkLatest(folder_.path() + "/out/second/t.rfx"));
  EXPECT_EQ(Target(), "second");
  EXPECT_FALSE(LinkLatest("t.rfx"));
  EXPECT_FALSE(LinkLatest(folder_.path() + "/out/../t.rfx"));
}

// What was there is replaced, wherever it led; a file or folder of that name is somebody's own.
TEST_F(LinkLatestTest, FollowsNothing) {
  ASSERT_NE(Create(folder_.path() + "/out/run/t.rfx"), "");
  const std::string link = folder_.path() + "/out/latest";
  ASSERT_EQ(mkdir((folder_.path() + "/victim").c_str(), 0700), 0);
  ASSERT_EQ(symlink("../victim", link.c_str()), 0);
  EXPECT_TRUE(LinkLatest(folder_.path() + "/out/run/t.rfx"));
  EXPECT_EQ(Target(), "run");
  EXPECT_NE(access((folder_.path() + "/victim/latest").c_str(), F_OK), 0);
  ASSERT_EQ(unlink(link.c_str()), 0);
  ASSERT_EQ(mkdir(link.c_str(), 0700), 0);
  EXPECT_FALSE(LinkLatest(folder_.path() + "/out/run/t.rfx"));
  struct stat status {};
  ASSERT_EQ(lstat(link.c_str(), &status), 0);
  EXPECT_TRUE(S_ISDIR(status.st_mode));
}

TEST_F(LinkLatestTest, NotWhereOthersMayWrite) {
  ASSERT_NE(Create(folder_.path() + "/out/run/t.rfx"), "");
  for (const mode_t mode : {01777u, 0770u}) {
    ASSERT_EQ(chmod((folder_.path() + "/out").c_str(), mode), 0);
    EXPECT_FALSE(LinkLatest(folder_.path() + "/out/run/t.rfx")) << mode;
    EXPECT_EQ(Target(), "");
  }
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a folder that belongs to somebody else";
  ASSERT_EQ(chmod((folder_.path() + "/out").c_str(), 0755), 0);
  ASSERT_EQ(chown((folder_.path() + "/out").c_str(), 65534, 65534), 0);
  EXPECT_FALSE(LinkLatest(folder_.path() + "/out/run/t.rfx"));
}

}  // namespace
}  // namespace rfinject
