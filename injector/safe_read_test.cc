#include "injector/safe_read.h"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iterator>
#include <string>

namespace rfinject {
namespace mock {

struct Base {
  virtual ~Base() = default;
  int value = 7;
};
struct MulBackward0 : Base {};
template <typename T>
struct CppNode : Base {};

}  // namespace mock

namespace {

TEST(SafeReadTest, ReadsWhatIsThere) {
  const std::string text = "some bytes";
  char copy[11] = {};
  EXPECT_EQ(SafeRead(reinterpret_cast<uintptr_t>(text.data()), copy, 10), 10u);
  EXPECT_EQ(copy, text);
}

TEST(SafeReadTest, NeverFaults) {
  char copy[64];
  EXPECT_EQ(SafeRead(0, copy, sizeof(copy)), 0u);
  EXPECT_EQ(SafeRead(8, copy, sizeof(copy)), 0u);
  EXPECT_EQ(SafeRead(0xdeadbeefdead0000u, copy, sizeof(copy)), 0u);
  EXPECT_EQ(SafeRead(UINTPTR_MAX - 8, copy, sizeof(copy)), 0u);
}

TEST(SafeReadTest, StopsAtAnUnmappedPage) {
  char* pages = static_cast<char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(munmap(pages + 4096, 4096), 0);
  char copy[512];
  EXPECT_EQ(SafeRead(reinterpret_cast<uintptr_t>(pages + 4096 - 100), copy, sizeof(copy)), 100u);
  const Snapshot snapshot = TakeSnapshot(reinterpret_cast<uintptr_t>(pages + 4096 - 12));
  EXPECT_EQ(snapshot.size, 12u);
  EXPECT_EQ(snapshot.Word(8), 0u);  // only half of it could be read
  munmap(pages, 4096);
}

// Ends this process at its next call of process_vm_readv, as strict sandboxes do.
bool ForbidProcessVmReadv() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = std::size(filter), .filter = filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(SafeReadDeathTest, ASandboxThatKillsForTheCallDoesNotSeeIt) {
  // The filter is for good and the answer is kept, so this has a process of its own that has read nothing before.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        char* pages =
            static_cast<char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        munmap(pages + 4096, 4096);
        if (!ForbidProcessVmReadv()) _exit(2);
        char copy[512];
        const bool right = SafeRead(reinterpret_cast<uintptr_t>(pages + 4096 - 100), copy, sizeof(copy)) == 100 &&
                           SafeRead(8192, copy, sizeof(copy)) == 0;
        _exit(right ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(SafeReadTest, ClassNamesOfLiveObjects) {
  const mock::MulBackward0 node;
  const mock::CppNode<int> custom;
  char name[64];
  ASSERT_TRUE(SafeClassName(reinterpret_cast<uintptr_t>(&node), name, sizeof(name)));
  EXPECT_STREQ(name, "MulBackward0");
  ASSERT_TRUE(SafeClassName(reinterpret_cast<uintptr_t>(&custom), name, sizeof(name)));
  EXPECT_STREQ(name, "CppNode");
  const uint64_t no_object[4] = {1, 2, 3, 4};
  EXPECT_FALSE(SafeClassName(reinterpret_cast<uintptr_t>(no_object), name, sizeof(name)));
  EXPECT_FALSE(SafeClassName(0, name, sizeof(name)));
  EXPECT_FALSE(SafeClassName(reinterpret_cast<uintptr_t>(&node), name, 4));  // does not fit
}

TEST(SafeReadTest, UnqualifiedNames) {
  char name[64];
  ASSERT_TRUE(UnqualifiedName("N5torch8autograd9generated20ConvolutionBackward0E", name, sizeof(name)));
  EXPECT_STREQ(name, "ConvolutionBackward0");
  ASSERT_TRUE(UnqualifiedName("6MyNode", name, sizeof(name)));
  EXPECT_STREQ(name, "MyNode");
  EXPECT_FALSE(UnqualifiedName("", name, sizeof(name)));
  EXPECT_FALSE(UnqualifiedName("NSt6vectorE", name, sizeof(name)));
  EXPECT_FALSE(UnqualifiedName("N5tor", name, sizeof(name)));
  EXPECT_FALSE(UnqualifiedName("N999999999999999999999x", name, sizeof(name)));
}

}  // namespace
}  // namespace rfinject
