#include "virtual_gpu/libraries/peers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

namespace rfinject::virtual_gpu {
namespace {

std::string Id(const char* test) { return std::string(test) + "-" + std::to_string(getpid()); }

// More than sockets hold: nobody may wait for another before it reads.
TEST(Peers, EverybodySendsMuchToEverybody) {
  constexpr int kRanks = 3;
  constexpr size_t kBytes = 5 << 20;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([rank] {
      Peers own(Id("much"), rank, kRanks);
      ASSERT_EQ(own.Listen(), "");
      for (int round = 0; round < 2; ++round) {
        std::vector<std::string> got(kRanks);
        std::vector<Outgoing> outgoing;
        std::vector<Awaited> awaited;
        for (int peer = 0; peer < kRanks; ++peer) {
          if (peer == rank) continue;
          outgoing.push_back({&own, peer, std::string(kBytes, static_cast<char>('a' + rank))});
          awaited.push_back({&own, peer, &got[static_cast<size_t>(peer)]});
        }
        ASSERT_EQ(Exchange(outgoing, awaited), "");
        for (int peer = 0; peer < kRanks; ++peer) {
          if (peer == rank) continue;
          EXPECT_EQ(got[static_cast<size_t>(peer)], std::string(kBytes, static_cast<char>('a' + peer)));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Both ends on one thread, as in a group of NCCL's; and a rank that sends to itself.
TEST(Peers, TwoRanksOfOneThread) {
  Peers first(Id("pair"), 0, 2), second(Id("pair"), 1, 2);
  ASSERT_EQ(first.Listen(), "");
  ASSERT_EQ(second.Listen(), "");
  std::string a, b, c, d;
  ASSERT_EQ(
      Exchange({{&first, 1, "one"}, {&first, 1, "two"}, {&second, 0, std::string(1 << 20, 'x')}, {&first, 0, ""}},
               {{&second, 0, &a}, {&second, 0, &b}, {&first, 1, &c}, {&first, 0, &d}}),
      "");
  EXPECT_EQ(a, "one");
  EXPECT_EQ(b, "two");
  EXPECT_EQ(c.size(), size_t{1} << 20);
  EXPECT_EQ(d, "");
}

TEST(Peers, WhoLeavesIsNamed) {
  Peers stays(Id("leaves"), 0, 2);
  ASSERT_EQ(stays.Listen(), "");
  std::string got;
  {
    Peers leaves(Id("leaves"), 1, 2);
    ASSERT_EQ(leaves.Listen(), "");
    ASSERT_EQ(Exchange({{&leaves, 0, "last"}}, {}), "");
  }
  EXPECT_EQ(Exchange({}, {{&stays, 1, &got}}), "");  // what was sent before still comes
  EXPECT_EQ(got, "last");
  EXPECT_EQ(Exchange({}, {{&stays, 1, &got}}), "rank 1 is gone");
}

TEST(Peers, AWaitCanBeStopped) {
  Peers own(Id("stop"), 0, 2);
  ASSERT_EQ(own.Listen(), "");
  std::thread stopper([&own] { own.Stop(); });
  std::string got;
  EXPECT_EQ(Exchange({}, {{&own, 1, &got}}), "the communicator was aborted");
  stopper.join();
}

TEST(Peers, AnAddressIsTakenOnce) {
  Peers first(Id("twice"), 0, 1), second(Id("twice"), 0, 1);
  EXPECT_EQ(first.Listen(), "");
  EXPECT_NE(second.Listen(), "");
}

}  // namespace
}  // namespace rfinject::virtual_gpu
