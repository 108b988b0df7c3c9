#include "cli/attach/call_stub.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#ifdef __x86_64__

namespace rfinject::cli {
namespace {

// What the stub calls in place of the loader's functions. They use registers of vectors, as those do.
int g_opened = 0;
const char* g_refusal = nullptr;  // of the library's function
bool g_has_function = true;
volatile double g_numbers[8];

const char* Function(const char* argument) {
  EXPECT_STREQ(argument, "argument");
  for (volatile double& number : g_numbers) number = number + 1.5;
  return g_refusal;
}
void* Open(const char* path, int flags) {
  EXPECT_STREQ(path, "path");
  EXPECT_EQ(flags, 2);
  for (volatile double& number : g_numbers) number = number * 2;
  ++g_opened;
  return &g_opened;
}
void* Find(void* library, const char* name) {
  EXPECT_EQ(library, &g_opened);
  EXPECT_STREQ(name, "name");
  return g_has_function ? reinterpret_cast<void*>(&Function) : nullptr;
}
const char* Error() { return "no such function"; }

// Takes arguments in all registers that hold some, and on the stack.
std::string Join(int a, long b, short c, char d, const char* e, unsigned f, double g, float h, double i, double j,
                 double k, double l, double m, double n, int o, double p) {
  char text[200];
  std::snprintf(text, sizeof text, "%d %ld %d %c %s %u %g %g %g %g %g %g %g %g %d %g", a, b, c, d, e, f, g,
                static_cast<double>(h), i, j, k, l, m, n, o, p);
  return text;
}
constexpr char kJoined[] = "1 2 3 d e 6 7.5 8.5 9.5 10.5 11.5 12.5 13.5 14.5 15 16.5";

class CallStub : public testing::Test {
 protected:
  void SetUp() override {
    g_opened = 0, g_refusal = "", g_has_function = true;
    data_.open = reinterpret_cast<uint64_t>(&Open);
    data_.find = reinterpret_cast<uint64_t>(&Find);
    data_.error = reinterpret_cast<uint64_t>(&Error);
    data_.path = reinterpret_cast<uint64_t>("path");
    data_.name = reinterpret_cast<uint64_t>("name");
    data_.argument = reinterpret_cast<uint64_t>("argument");
    data_.process = getpid();
    SetVectors(&data_);
    ASSERT_GT(data_.vectors_size, 512u) << "no XSAVE: attaching is refused on such a processor";
    const std::string code = MakeStub(reinterpret_cast<uint64_t>(&data_), {0, reinterpret_cast<uint64_t>(&Join)});
    ASSERT_EQ(code.size(), StubSize() + 2 * kStubEntry);
    size_ = code.size();
    code_ = static_cast<char*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(code_, MAP_FAILED);
    std::memcpy(code_, code.data(), size_);
    ASSERT_EQ(mprotect(code_, size_, PROT_READ | PROT_EXEC), 0);
    join_ = reinterpret_cast<decltype(&Join)>(code_ + StubSize() + kStubEntry);
  }
  void TearDown() override {
    if (code_ != nullptr) munmap(code_, size_);
  }
  std::string Call() const {
    return join_(1, 2, 3, 'd', "e", 6, 7.5, 8.5F, 9.5, 10.5, 11.5, 12.5, 13.5, 14.5, 15, 16.5);
  }

  StubData data_{};
  char* code_ = nullptr;
  size_t size_ = 0;
  decltype(&Join) join_ = nullptr;
};

TEST_F(CallStub, CallsTheLibraryOnceAndTheFunctionAlways) {
  EXPECT_EQ(Call(), kJoined);
  EXPECT_EQ(data_.state, kSucceeded);
  EXPECT_STREQ(data_.message, "");
  EXPECT_EQ(Call(), kJoined);
  EXPECT_EQ(g_opened, 1);
}

TEST_F(CallStub, IsClaimedByOneThread) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this] {
      for (int call = 0; call < 1000; ++call) EXPECT_EQ(Call(), kJoined);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(g_opened, 1);
}

TEST_F(CallStub, TellsWhatTheLibrarySays) {
  const std::string refusal(2 * kMostOfMessage, 'x');
  g_refusal = refusal.c_str();
  EXPECT_EQ(Call(), kJoined);
  EXPECT_EQ(data_.state, kFailed);
  EXPECT_EQ(data_.message, refusal.substr(0, kMostOfMessage));
}

TEST_F(CallStub, TellsWhatTheLoaderSays) {
  g_has_function = false;
  EXPECT_EQ(Call(), kJoined);
  EXPECT_EQ(data_.state, kFailed);
  EXPECT_STREQ(data_.message, "no such function");
}

TEST_F(CallStub, DoesNothingInAnotherProcess) {
  data_.process = getppid();
  EXPECT_EQ(Call(), kJoined);
  EXPECT_EQ(data_.state, kWaits);
  EXPECT_EQ(data_.taken_back, 1);  // so that the next calls need not ask again
  EXPECT_EQ(g_opened, 0);
}

TEST_F(CallStub, DoesNothingWhenItIsTakenBack) {
  data_.taken_back = 1;
  EXPECT_EQ(Call(), kJoined);
  EXPECT_EQ(data_.state, kWaits);
  EXPECT_EQ(g_opened, 0);
}

}  // namespace
}  // namespace rfinject::cli

#endif
