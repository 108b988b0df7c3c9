#include "collector/cupti/captured_graphs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>

#include "collector/testing/fake_recorder.h"

namespace rfinject::cupti {
namespace {

using ::rfinject::testing::FakeRecorder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using Node = CapturedGraphs::Node;

class CapturedGraphsTest : public ::testing::Test {
 protected:
  uint32_t Key(const char* kernel, uint32_t layer, Phase phase = Phase::kForward) {
    LaunchCall call;
    call.function = kernel;
    call.site = {.layer = layer, .phase = phase};
    const LaunchIdentity* identity = nullptr;
    return keys_.Find(call, kernel, recorder_, &identity);
  }
  // Captures launches of `keys` into `graph`; their nodes have numbers from `first_id` on, or none (0).
  void Capture(const void* graph, const std::vector<uint32_t>& keys, uint64_t first_id) {
    graphs_.BeginCapture();
    for (size_t i = 0; i < keys.size(); ++i) {
      const uint64_t id = first_id != 0 ? first_id + i : 0;
      graphs_.AddLaunch(id != 0 ? graph : nullptr, {.id = id, .key = keys[i]}, keys_.Identity(keys[i]).site.phase);
    }
    graphs_.EndCapture(graph);
  }
  // Makes a graph executable; the clones of nodes from `first_id` on have numbers that are 1000 more.
  void Instantiate(const void* executable, const void* graph, uint64_t first_id, size_t nodes) {
    CapturedGraphs::BeginInstantiate();
    for (uint64_t id = first_id; id != 0 && id < first_id + nodes; ++id) graphs_.AddClone(nullptr, id + 1000, id);
    graphs_.EndInstantiate(executable, graph);
  }
  CapturedGraphs::Launch Launch(const void* executable) {
    CapturedGraphs::Launch launch = graphs_.Find(executable);
    if (launch.is_new) {
      LaunchCall call;
      call.function = executable;
      const LaunchIdentity* identity = nullptr;
      const uint32_t whole = keys_.Find(call, "(CUDA graph)", recorder_, &identity);
      launch = graphs_.Define(executable, whole, *identity);
    }
    if (launch.number != 0) {
      LaunchRecord record;
      record.identity.kernel = launch.number;
      record.launches = LaunchRecord::kGraph;
      recorder_.Record(record);
    }
    return launch;
  }
  std::map<std::string, uint32_t> Launched() {
    std::map<std::string, uint32_t> launches;
    for (const LaunchRecord& record : recorder_.records()) {
      launches[recorder_.Name(record.identity.kernel) + "@" + std::to_string(record.identity.site.layer)] +=
          record.launches;
    }
    return launches;
  }

  FakeRecorder recorder_;
  LaunchKeys keys_;
  CapturedGraphs graphs_{keys_, recorder_};
  char handles_[8] = {};  // whose addresses are graphs
  const void *const graph_ = &handles_[0], *const other_ = &handles_[1];
  const void *const executable_ = &handles_[2], *const second_ = &handles_[3];
};

TEST_F(CapturedGraphsTest, ALaunchOfAGraphIsTheLaunchesThatWereCaptured) {
  const uint32_t gemm = Key("gemm", 1), relu = Key("relu", 2);
  Capture(graph_, {gemm, relu, gemm}, 50);
  Capture(other_, {gemm}, 80);  // the same kernel in another graph
  Instantiate(executable_, graph_, 50, 3);
  Instantiate(second_, other_, 80, 1);
  const CapturedGraphs::Launch launch = Launch(executable_);
  ASSERT_NE(launch.number, 0u);
  EXPECT_FALSE(launch.optimizer);
  Launch(executable_);
  Launch(second_);
  EXPECT_THAT(Launched(), UnorderedElementsAre(Pair("gemm@1", 5), Pair("relu@2", 2)));
  const auto contents = graphs_.ContentsOf(launch.number);
  ASSERT_NE(contents, nullptr);
  EXPECT_TRUE(contents->by_id);
  EXPECT_FALSE(graphs_.TakeUnseen());
  EXPECT_THAT(contents->nodes, ElementsAre(Node{1050, gemm}, Node{1051, relu}, Node{1052, gemm}));
  EXPECT_EQ(graphs_.TakeReasons(), 0u);
}

TEST_F(CapturedGraphsTest, WithoutNumbersNothingIsLaunchedUntilItIsSettled) {
  for (const bool as_captured : {true, false}) {
    const uint32_t gemm = Key("gemm", 1), relu = Key("relu", 2);
    Capture(graph_, {gemm, relu}, 0);
    Instantiate(executable_, graph_, 0, 0);
    const size_t before = recorder_.records().size();
    const CapturedGraphs::Launch launch = Launch(executable_);
    Launch(executable_);
    EXPECT_EQ(recorder_.records().size(), before);
    EXPECT_FALSE(graphs_.ContentsOf(launch.number)->settled);
    EXPECT_TRUE(graphs_.TakeUnseen());
    Launch(executable_);
    EXPECT_FALSE(graphs_.TakeUnseen());
    graphs_.Settle(launch.number, as_captured);
    if (as_captured) {
      EXPECT_THAT(Launched(), UnorderedElementsAre(Pair("gemm@1", 3), Pair("relu@2", 3)));
      EXPECT_EQ(Launch(executable_).number, launch.number);
    } else {
      EXPECT_THAT(Launched(), UnorderedElementsAre(Pair("gemm@1", 4), Pair("relu@2", 4), Pair("(CUDA graph)@0", 3)));
      EXPECT_EQ(Launch(executable_).number, 0u);
      EXPECT_EQ(graphs_.TakeReasons(), CapturedGraphs::kOtherOrder);
    }
    graphs_.DestroyExecutable(executable_);
    graphs_.DestroyGraph(graph_);
  }
}

TEST_F(CapturedGraphsTest, WhatNobodySawCapturedStaysAGraph) {
  EXPECT_EQ(Launch(executable_).number, 0u);
  EXPECT_EQ(graphs_.TakeReasons(), CapturedGraphs::kNotSeen);
  // Two captures at a time, whose launches have no numbers.
  const uint32_t gemm = Key("gemm", 1);
  graphs_.BeginCapture();
  graphs_.BeginCapture();
  graphs_.AddLaunch(nullptr, {.key = gemm}, Phase::kForward);
  graphs_.EndCapture(graph_);
  graphs_.EndCapture(other_);
  Instantiate(executable_, graph_, 0, 0);
  EXPECT_EQ(Launch(executable_).number, 0u);
  EXPECT_EQ(graphs_.TakeReasons(), CapturedGraphs::kNotSeen);
  // With numbers they are told apart.
  graphs_.BeginCapture();
  graphs_.BeginCapture();
  graphs_.AddLaunch(other_, {.id = 7, .key = gemm}, Phase::kForward);
  graphs_.DestroyGraph(graph_);
  graphs_.AddLaunch(graph_, {.id = 8, .key = gemm}, Phase::kForward);
  graphs_.EndCapture(graph_);
  graphs_.EndCapture(other_);
  Instantiate(executable_, graph_, 8, 1);
  EXPECT_NE(Launch(executable_).number, 0u);
}

TEST_F(CapturedGraphsTest, WhatIsChangedAfterwardsStaysAGraph) {
  Capture(graph_, {Key("gemm", 1)}, 50);
  graphs_.RefuseGraph(graph_, CapturedGraphs::kConditional);
  Instantiate(executable_, graph_, 50, 1);
  EXPECT_EQ(Launch(executable_).number, 0u);
  EXPECT_EQ(graphs_.TakeReasons(), CapturedGraphs::kConditional);
  Capture(other_, {Key("gemm", 1)}, 70);
  Instantiate(second_, other_, 70, 1);
  EXPECT_NE(Launch(second_).number, 0u);
  graphs_.Change(second_);
  EXPECT_EQ(Launch(second_).number, 0u);
  EXPECT_EQ(graphs_.TakeReasons(), CapturedGraphs::kChanged);
  // An update as a whole gives it other nodes, whose numbers are not known.
  graphs_.Update(second_, other_);
  const CapturedGraphs::Launch updated = Launch(second_);
  ASSERT_NE(updated.number, 0u);
  EXPECT_FALSE(graphs_.ContentsOf(updated.number)->by_id);
}

TEST_F(CapturedGraphsTest, NodesThatNobodySawCapturedAreOfTheGraphsOwnRow) {
  graphs_.BeginCapture();
  graphs_.AddLaunch(graph_, {.id = 50, .key = Key("gemm", 1)}, Phase::kForward);
  graphs_.AddNode(graph_, 51, false);
  graphs_.AddNode(graph_, 52, true);  // a copy, which would be no row outside of a graph either
  graphs_.EndCapture(graph_);
  Instantiate(executable_, graph_, 50, 3);
  const CapturedGraphs::Launch launch = Launch(executable_);
  EXPECT_THAT(Launched(), UnorderedElementsAre(Pair("gemm@1", 1), Pair("(CUDA graph)@0", 1)));
  EXPECT_TRUE(graphs_.ContentsOf(launch.number)->has_row);
}

TEST_F(CapturedGraphsTest, AGraphHasARowOfItsOwnUntilItsKernelsWereCounted) {
  keys_.SetCounting(true);
  const uint32_t gemm = Key("gemm", 1);
  Capture(graph_, {gemm}, 50);
  for (int counted = 0; counted <= 1; ++counted) {
    if (counted > 0) keys_.NoteCounted(gemm);
    Instantiate(executable_, graph_, 50, 1);
    const CapturedGraphs::Launch launch = Launch(executable_);
    EXPECT_EQ(graphs_.ContentsOf(launch.number)->has_row, counted < 1);
    EXPECT_EQ(graphs_.TakeReasons(), counted < 1 ? CapturedGraphs::kHasRow : 0u);
    graphs_.DestroyExecutable(executable_);
  }
}

TEST_F(CapturedGraphsTest, AnOptimizersStepThatIsCapturedIsTheGraphs) {
  EXPECT_FALSE(graphs_.TakeOptimizerCaptured());
  for (const uint64_t id : {0, 50}) {
    Capture(graph_, {Key("gemm", 1), Key("sgd", 0, Phase::kOptimizer)}, id);
    EXPECT_TRUE(graphs_.TakeOptimizerCaptured());
    EXPECT_FALSE(graphs_.TakeOptimizerCaptured());
    Instantiate(executable_, graph_, id, 2);
    EXPECT_TRUE(Launch(executable_).optimizer);
    EXPECT_TRUE(Launch(executable_).optimizer);
    graphs_.DestroyGraph(graph_);
  }
}

TEST_F(CapturedGraphsTest, WhatIsDestroyedIsFreed) {
  const uint32_t gemm = Key("gemm", 1), relu = Key("relu", 1);
  for (int i = 0; i < 3000; ++i) {
    const uint64_t id = i % 2 == 0 ? 1 + 10 * static_cast<uint64_t>(i) : 0;
    Capture(graph_, {gemm, relu, gemm}, id);
    Instantiate(executable_, graph_, id, 3);
    graphs_.DestroyGraph(graph_);
    if (i % 3 != 0) Launch(executable_);
    graphs_.DestroyExecutable(executable_);
    if (i % 7 == 0) graphs_.Sweep();
  }
  graphs_.Sweep();
  EXPECT_EQ(graphs_.nodes(), 0u);
  EXPECT_EQ(recorder_.graph_members(), 0u);
  EXPECT_THAT(recorder_.drops(), IsEmpty());
}

TEST_F(CapturedGraphsTest, AStepThatIsReadLaterFindsWhatWasDestroyedInIt) {
  Capture(graph_, {Key("gemm", 1)}, 50);
  Instantiate(executable_, graph_, 50, 1);
  const CapturedGraphs::Launch launch = Launch(executable_);
  graphs_.DestroyExecutable(executable_);
  EXPECT_NE(graphs_.ContentsOf(launch.number), nullptr);
  graphs_.Sweep();
  EXPECT_EQ(graphs_.ContentsOf(launch.number), nullptr);
}

TEST_F(CapturedGraphsTest, AProgramThatCapturesOnAndOnDoesNotFillOurMemory) {
  std::vector<uint32_t> many(CapturedGraphs::kMaxNodes / 4, Key("gemm", 1));
  std::vector<char> handles(8);
  for (char& handle : handles) Capture(&handle, many, 0);
  EXPECT_LE(graphs_.nodes(), CapturedGraphs::kMaxNodes);
  Instantiate(executable_, &handles[7], 0, 0);
  EXPECT_EQ(Launch(executable_).number, 0u);
  EXPECT_NE(graphs_.TakeReasons() & CapturedGraphs::kNoRoom, 0u);
}

TEST_F(CapturedGraphsTest, ThreadsLaunchWhileOthersCapture) {
  Capture(graph_, {Key("gemm", 1)}, 50);
  Instantiate(executable_, graph_, 50, 1);
  const uint32_t number = Launch(executable_).number;
  std::thread capturing([&] {
    for (uint64_t i = 0; i < 300; ++i) {
      Capture(other_, {Key("relu", 2)}, 1'000'000 + i);
      Instantiate(second_, other_, 1'000'000 + i, 1);
      Launch(second_);
      graphs_.DestroyGraph(other_);
      graphs_.DestroyExecutable(second_);
      graphs_.Sweep();
    }
  });
  for (int i = 0; i < 3000; ++i) EXPECT_EQ(graphs_.Find(executable_).number, number);
  capturing.join();
  EXPECT_EQ(graphs_.nodes(), 2u);  // of the graph and of what is executable
}

}  // namespace
}  // namespace rfinject::cupti
