#include "injector/layer_stack.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace rfinject {
namespace {

// Stands for torch: a counter per thread, and thread numbers from one counter.
thread_local uint64_t t_sequence = 0;
thread_local uint64_t t_id = 0;
thread_local uint64_t t_node = 0;
std::atomic<uint64_t> g_next_id{0};

uint64_t Peek() { return t_sequence; }
uint64_t ThreadId() {
  if (t_id == 0) t_id = ++g_next_id;
  return t_id;
}
uint64_t RunningNode() { return t_node; }

struct Node {
  uint64_t thread;
  uint64_t sequence;
};
Node NewNode() { return {ThreadId(), t_sequence++}; }

uint32_t Owner(const Node& node) { return OwnerOf(node.thread, node.sequence, nullptr); }
bool Forgotten(const Node& node) {
  bool forgotten = false;
  OwnerOf(node.thread, node.sequence, &forgotten);
  return forgotten;
}

class LayerStackTest : public testing::Test {
 protected:
  void SetUp() override { SetSequenceFunctions({.peek = Peek, .thread_id = ThreadId, .running_node = RunningNode}); }
};

void OnNewThread(const std::function<void()>& body) { std::thread(body).join(); }

TEST_F(LayerStackTest, TopFollowsEntersAndLeaves) {
  OnNewThread([] {
    EXPECT_EQ(CurrentLayer().depth, 0u);
    LeaveLayer();  // one too many is ignored
    EnterLayer(1);
    EnterLayer(2);
    EXPECT_EQ(CurrentLayer().layer, 2u);
    EXPECT_EQ(CurrentLayer().depth, 2u);
    LeaveLayer();
    EXPECT_EQ(CurrentLayer().layer, 1u);
    EXPECT_EQ(CurrentLayer().entered, 1u);
    LeaveLayer();
    EXPECT_EQ(CurrentLayer().layer, 0u);
    EXPECT_EQ(EnterCount(), 2u);
  });
}

TEST_F(LayerStackTest, NodesBelongToTheInnermostLayerOfTheirBirth) {
  OnNewThread([] {
    const Node before = NewNode();
    EnterLayer(1);
    const Node in_one = NewNode();
    EnterLayer(2);
    const Node in_two = NewNode();
    const Node also_in_two = NewNode();
    LeaveLayer();
    const Node back_in_one = NewNode();
    EnterLayer(3);  // bears no node
    LeaveLayer();
    LeaveLayer();
    const Node after = NewNode();
    EXPECT_EQ(Owner(before), 0u);
    EXPECT_EQ(Owner(in_one), 1u);
    EXPECT_EQ(Owner(in_two), 2u);
    EXPECT_EQ(Owner(also_in_two), 2u);
    EXPECT_EQ(Owner(back_in_one), 1u);
    EXPECT_EQ(Owner(after), 0u);
    EXPECT_FALSE(Forgotten(after));
  });
}

TEST_F(LayerStackTest, ThreadsWithEqualNumbersAreKeptApart) {
  std::vector<Node> nodes;
  for (uint32_t layer = 1; layer <= 3; ++layer) {
    OnNewThread([&] {
      EnterLayer(layer);
      nodes.push_back(NewNode());
      LeaveLayer();
    });
  }
  EXPECT_EQ(nodes[0].sequence, nodes[2].sequence);
  for (uint32_t layer = 1; layer <= 3; ++layer) EXPECT_EQ(Owner(nodes[layer - 1]), layer);
}

TEST_F(LayerStackTest, DeepRecursionCountsWithoutKeeping) {
  OnNewThread([] {
    for (uint32_t i = 1; i <= kMaxDepth + 10; ++i) EnterLayer(i);
    EXPECT_EQ(CurrentLayer().depth, kMaxDepth + 10);
    EXPECT_EQ(CurrentLayer().layer, kMaxDepth);
    for (uint32_t i = 0; i < kMaxDepth + 9; ++i) LeaveLayer();
    EXPECT_EQ(CurrentLayer().layer, 1u);
  });
}

TEST_F(LayerStackTest, OldNodesAreForgottenAndSaySo) {
  OnNewThread([] {
    EnterLayer(1);
    const Node old = NewNode();
    LeaveLayer();
    for (size_t i = 0; i < kRingEntries / 2; ++i) {  // two entries each
      EnterLayer(2);
      NewNode();
      LeaveLayer();
      NewNode();
    }
    EnterLayer(3);
    const Node young = NewNode();
    LeaveLayer();
    EXPECT_EQ(Owner(old), 0u);
    EXPECT_TRUE(Forgotten(old));
    EXPECT_EQ(Owner(young), 3u);
    EXPECT_FALSE(Forgotten(young));
  });
}

TEST_F(LayerStackTest, ForwardWithoutNodesLeavesNoTrace) {
  OnNewThread([] {
    EnterLayer(1);
    const Node node = NewNode();
    LeaveLayer();
    for (size_t i = 0; i < 2 * kRingEntries; ++i) {
      EnterLayer(2);
      EnterLayer(3);
      LeaveLayer();
      LeaveLayer();
    }
    EXPECT_EQ(Owner(node), 1u);
    EXPECT_EQ(Owner(NewNode()), 0u);
  });
}

TEST_F(LayerStackTest, NodeIntervalsOwnWhatIsBornInBackward) {
  OnNewThread([] {
    MarkNodeInterval(5);
    const Node first = NewNode();
    const uint64_t between = t_sequence;
    const Node second = NewNode();  // born before we looked: the mark reaches back
    MarkNodeInterval(6, between);
    EXPECT_EQ(LayerOfNextNode(), 6u);
    MarkNodeInterval(0);
    EXPECT_EQ(Owner(first), 5u);
    EXPECT_EQ(Owner(second), 6u);
    EXPECT_EQ(Owner(NewNode()), 0u);
    EnterLayer(7);
    const Node third = NewNode();
    MarkNodeInterval(8, 0);  // never reaches behind the last entry
    EXPECT_EQ(Owner(first), 5u);
    EXPECT_EQ(Owner(third), 8u);
    LeaveLayer();
  });
}

TEST_F(LayerStackTest, FramesRememberTheNodeTheyWereEnteredIn) {
  OnNewThread([] {
    EnterLayer(1);
    EXPECT_EQ(CurrentLayer().node, 0u);
    t_node = 77;
    EXPECT_EQ(CurrentLayer().node, 0u);
    EnterLayer(2);
    EXPECT_EQ(CurrentLayer().node, 77u);
    LeaveLayer();
    LeaveLayer();
  });
}

TEST_F(LayerStackTest, ThreadsThatEndedKeepTheirNodesForAWhile) {
  std::vector<Node> nodes;
  for (uint32_t i = 1; i <= 1500; ++i) {
    OnNewThread([&] {
      EnterLayer(i);
      nodes.push_back(NewNode());
      LeaveLayer();
    });
  }
  EXPECT_TRUE(Forgotten(nodes[0]));
  EXPECT_EQ(Owner(nodes[0]), 0u);
  for (uint32_t i = 1500 - 1000; i < 1500; ++i) ASSERT_EQ(Owner(nodes[i]), i + 1);
}

TEST_F(LayerStackTest, WithoutSequenceFunctionsTheStackStillWorks) {
  SetSequenceFunctions({});
  OnNewThread([] {
    EnterLayer(4);
    EXPECT_EQ(CurrentLayer().layer, 4u);
    const Node node = NewNode();
    LeaveLayer();
    EXPECT_EQ(Owner(node), 0u);
  });
}

TEST_F(LayerStackTest, AForkedChildKeepsItsOwnThreadOnly) {
  Node other;
  OnNewThread([&] {
    EnterLayer(9);
    other = NewNode();
    LeaveLayer();
  });
  EnterLayer(1);
  const Node mine = NewNode();
  const pid_t child = fork();
  if (child == 0) {
    ResetLayerStackAfterFork();
    EnterLayer(2);
    const Node young = NewNode();
    LeaveLayer();
    const bool good = Owner(mine) == 1 && Owner(young) == 2 && Owner(other) == 0 && CurrentLayer().layer == 1;
    _exit(good ? 0 : 1);
  }
  LeaveLayer();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(Owner(other), 9u);
}

// One writer laps its ring while readers ask for nodes that it has published: an answer is right or "forgotten".
TEST_F(LayerStackTest, ReadersOfALivingRingNeverGetAWrongOwner) {
  std::atomic<uint64_t> published{0};
  std::atomic<uint64_t> writer_id{0};
  std::atomic<bool> done{false};
  std::atomic<uint64_t> wrong{0};
  std::atomic<uint64_t> answered{0};
  const auto layer_of = [](uint64_t sequence) { return static_cast<uint32_t>(sequence % 1000 + 1); };
  std::thread writer([&] {
    writer_id = ThreadId();
    for (uint64_t i = 0; i < 3 * kRingEntries || answered.load(std::memory_order_relaxed) < 50000; ++i) {
      EnterLayer(layer_of(t_sequence));
      NewNode();
      published.store(t_sequence, std::memory_order_release);
      LeaveLayer();
    }
    done = true;
  });
  std::vector<std::thread> readers;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    readers.emplace_back([&, seed] {
      uint64_t random = seed;
      while (!done.load(std::memory_order_relaxed)) {
        const uint64_t count = published.load(std::memory_order_acquire);
        if (count == 0) continue;
        random = random * 6364136223846793005u + 1442695040888963407u;
        // Mostly near the ring's end, where the writer is about to arrive (two entries for each node).
        const uint64_t back =
            (random >> 60) == 0 ? (random >> 33) % (kRingEntries + 64) : kRingEntries / 2 - 8 + (random >> 33) % 16;
        if (back >= count) continue;
        const uint64_t sequence = count - 1 - back;
        bool forgotten = false;
        const uint32_t owner = OwnerOf(writer_id, sequence, &forgotten);
        if (!forgotten && owner != layer_of(sequence)) ++wrong;
        if (!forgotten) ++answered;
      }
    });
  }
  writer.join();
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0u);
}

// Threads start, leave rings behind and get old ones back while readers keep asking.
TEST_F(LayerStackTest, ReadersSurviveTheReuseOfRings) {
  std::atomic<bool> done{false};
  std::atomic<uint64_t> wrong{0};
  const uint64_t first = g_next_id + 1;
  std::thread reader([&] {
    uint64_t random = 1;
    while (!done.load(std::memory_order_relaxed)) {
      const uint64_t last = g_next_id;
      if (last < first) continue;
      random = random * 6364136223846793005u + 1442695040888963407u;
      const uint64_t id = first + (random >> 33) % (last - first + 1);
      bool forgotten = false;
      const uint32_t owner = OwnerOf(id, 0, &forgotten);
      if (owner != 0 && owner != id) ++wrong;
    }
  });
  for (int i = 0; i < 2500; ++i) {
    OnNewThread([&] {
      EnterLayer(static_cast<uint32_t>(ThreadId()));
      NewNode();
      LeaveLayer();
      NewNode();
    });
  }
  done = true;
  reader.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace rfinject
