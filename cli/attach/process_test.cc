#include "cli/attach/process.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace rfinject::cli {
namespace {

TEST(ReadProcFile, IsEmptyWhereNothingCanBeRead) {
  EXPECT_EQ(ReadProcFile("/proc/self/mem"), "");  // opens; nothing lies at address 0
  EXPECT_EQ(ReadProcFile("/proc/self/nothing"), "");
  EXPECT_FALSE(ReadProcFile("/proc/self/maps").empty());
}

TEST(ParseMappings, TakesLinesOfTheKernels) {
  const std::vector<Mapping> mappings = ParseMappings(
      "00400000-0065d000 r--p 00000000 fe:00 1234                               /usr/bin/python3.11\n"
      "0065d000-00801000 r-xp 0025d000 fe:00 1234                               /usr/bin/python3.11\n"
      "7f0000000000-7f0000021000 rw-p 00000000 00:00 0 \n"
      "7f1000000000-7f1000001000 r--p 00000000 fe:00 77   /a folder/libc.so.6 (deleted)\n"
      "7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]\n");
  ASSERT_EQ(mappings.size(), 5u);
  EXPECT_EQ(mappings[0].begin, 0x400000u);
  EXPECT_EQ(mappings[0].end, 0x65d000u);
  EXPECT_EQ(mappings[0].path, "/usr/bin/python3.11");
  EXPECT_TRUE(mappings[0].readable && !mappings[0].writable && !mappings[0].executable);
  EXPECT_EQ(mappings[1].offset, 0x25d000u);
  EXPECT_TRUE(mappings[1].executable);
  EXPECT_EQ(mappings[2].path, "");
  EXPECT_TRUE(mappings[2].writable);
  EXPECT_EQ(mappings[3].path, "/a folder/libc.so.6 (deleted)");
  EXPECT_EQ(mappings[4].path, "[stack]");
}

TEST(ParseMappings, LeavesOutWhatIsNone) {
  EXPECT_TRUE(ParseMappings("").empty());
  EXPECT_TRUE(ParseMappings("\n\nnothing\n1-2\n1-2 r\nx-2 r--p 0 0 0\n1+2 r--p 00 0 0\n").empty());
}

TEST(FindFile, TakesTheFirstPieceOfAFile) {
  const std::vector<Mapping> mappings = {{.begin = 1, .end = 2, .offset = 9, .path = "/lib/libc.so.6"},
                                         {.begin = 3, .end = 4, .offset = 0, .path = "/lib/libc.so.6"},
                                         {.begin = 5, .end = 6, .offset = 0, .path = "/lib/libcrypt.so"}};
  EXPECT_EQ(FindFile(mappings, {"libm.so", "libc.so"}), &mappings[1]);
  EXPECT_EQ(FindFile(mappings, {"libtorch"}), nullptr);
  EXPECT_EQ(MappingAt(mappings, 5), &mappings[2]);
  EXPECT_EQ(MappingAt(mappings, 4), nullptr);
}

TEST(ParseProcessStatus, TakesWhatIsNeeded) {
  const ProcessStatus status = ParseProcessStatus(
      "Name:\tTracerPid:\nState:\tT (stopped)\nPPid:\t7\nTracerPid:\t42\nUid:\t1000\t1001\t1000\t1000\n"
      "SigIgn:\t0000000001001010\nCapEff:\t0000000000080000\nSeccomp:\t2\nx86_Thread_features:\tshstk wrss \n");
  EXPECT_EQ(status.state, 'T');
  EXPECT_EQ(status.parent, 7);
  EXPECT_EQ(status.tracer, 42);
  EXPECT_EQ(status.user, 1001u);
  EXPECT_EQ(status.ignored_signals, 0x1001010u);
  EXPECT_EQ(status.capabilities, uint64_t{1} << 19);
  EXPECT_TRUE(status.filtered);
  EXPECT_TRUE(status.shadow_stack);
  EXPECT_EQ(ParseProcessStatus("").state, '?');
  EXPECT_FALSE(ParseProcessStatus("x86_Thread_features:\t\n").shadow_stack);
}

TEST(ParseSystemCall, TellsCallsFromCode) {
  EXPECT_EQ(ParseSystemCall("202 0x7f 0x80 0x0 0x0 0x0 0x0 0x7ffd 0x7f10\n"), 202);
  EXPECT_EQ(ParseSystemCall("running\n"), -1);
  EXPECT_EQ(ParseSystemCall(""), -1);
}

TEST(ThreadsToStop, KnowsThisThread) {
  const std::vector<pid_t> threads = ThreadsToStop(getpid());
  EXPECT_NE(std::find(threads.begin(), threads.end(), getpid()), threads.end());
  EXPECT_TRUE(ThreadsToStop(0).empty());
}

TEST(ParseProcessStatus, TakesTheInnermostNumber) {
  EXPECT_EQ(ParseProcessStatus("NSpid:\t4711\t12\t1\n").own_number, 1);
  EXPECT_EQ(ParseProcessStatus("NSpid:\t4711\n").own_number, 4711);
  EXPECT_EQ(ParseProcessStatus("NSpid:\n").own_number, 0);
}

TEST(ParseProcessStatus, UnderstandsThisProcess) {
  const ProcessStatus status = ParseProcessStatus(ReadProcFile("/proc/self/status"));
  EXPECT_EQ(status.state, 'R');
  EXPECT_EQ(status.user, geteuid());
}

}  // namespace
}  // namespace rfinject::cli
