#include "collector/record/graph_launches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "collector/record/testing/recorder_fixture.h"

namespace rfinject {
namespace {

using ::rfinject::testing::TraceContent;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

LaunchIdentity Kernel(uint32_t kernel) {
  LaunchIdentity identity;
  identity.kernel = kernel;
  return identity;
}
const GraphMember kTwoOfThem[] = {{.identity = Kernel(1), .launches = 2}, {.identity = Kernel(2), .launches = 1}};

std::map<uint32_t, uint64_t> Launched(GraphLaunches* graphs, uint32_t graph, uint64_t step = 0) {
  std::map<uint32_t, uint64_t> launches;
  graphs->Launch(graph, step, [&](const LaunchRecord& one) { launches[one.identity.kernel] += one.launches; });
  return launches;
}

TEST(GraphLaunches, ALaunchIsWhatIsInTheGraph) {
  GraphLaunches graphs;
  const uint32_t graph = graphs.Define(kTwoOfThem, Kernel(9), true);
  ASSERT_NE(graph, 0u);
  EXPECT_THAT(Launched(&graphs, graph), UnorderedElementsAre(std::pair(1, 2), std::pair(2, 1)));
  EXPECT_FALSE(graphs.Launch(graph + 1, 0, [](const LaunchRecord&) {}));
}

TEST(GraphLaunches, WhatIsNotSettledIsKeptBackStepByStep) {
  for (const bool by_members : {true, false}) {
    GraphLaunches graphs;
    const uint32_t graph = graphs.Define(kTwoOfThem, Kernel(9), false);
    for (const uint64_t step : {4, 4, 5}) EXPECT_THAT(Launched(&graphs, graph, step), IsEmpty());
    EXPECT_THAT(graphs.Unsettled(), ElementsAre(graph));
    std::map<std::pair<uint64_t, uint32_t>, uint64_t> kept;
    graphs.Settle(graph, by_members, [&](uint64_t step, const LaunchRecord& one) {
      kept[{step, one.identity.kernel}] += one.launches;
    });
    using At = std::pair<uint64_t, uint32_t>;
    if (by_members) {
      EXPECT_THAT(kept, UnorderedElementsAre(std::pair(At{4, 1}, 4), std::pair(At{4, 2}, 2), std::pair(At{5, 1}, 2),
                                             std::pair(At{5, 2}, 1)));
      EXPECT_THAT(Launched(&graphs, graph), UnorderedElementsAre(std::pair(1, 2), std::pair(2, 1)));
    } else {
      EXPECT_THAT(kept, UnorderedElementsAre(std::pair(At{4, 9}, 2), std::pair(At{5, 9}, 1)));
      EXPECT_THAT(Launched(&graphs, graph), UnorderedElementsAre(std::pair(9, 1)));
    }
    EXPECT_THAT(graphs.Unsettled(), IsEmpty());
  }
}

TEST(GraphLaunches, AGraphIsKnownUntilNoRingCanHoldALaunchOfIt) {
  GraphLaunches graphs;
  const uint32_t graph = graphs.Define(kTwoOfThem, Kernel(9), true);
  graphs.Forget(graph, 7);
  EXPECT_THAT(graphs.GoneBefore(7), IsEmpty());
  EXPECT_THAT(Launched(&graphs, graph), UnorderedElementsAre(std::pair(1, 2), std::pair(2, 1)));
  EXPECT_THAT(graphs.GoneBefore(8), ElementsAre(graph));
  graphs.Erase(graph);
  EXPECT_EQ(graphs.members(), 0u);
  EXPECT_THAT(graphs.GoneBefore(9), IsEmpty());
}

TEST(GraphLaunches, AProgramThatCapturesOnAndOnDoesNotFillOurMemory) {
  GraphLaunches graphs;
  const std::vector<GraphMember> many(GraphLaunches::kMaxMembers / 2, GraphMember{.identity = Kernel(1)});
  const uint32_t first = graphs.Define(many, Kernel(9), true);
  ASSERT_NE(graphs.Define(many, Kernel(9), true), 0u);
  EXPECT_EQ(graphs.Define(kTwoOfThem, Kernel(9), true), 0u);
  graphs.Erase(first);
  EXPECT_NE(graphs.Define(kTwoOfThem, Kernel(9), true), 0u);
}

// --- In a trace.

std::map<std::string, uint64_t> LaunchesByKernel(const TraceContent& trace) {
  std::map<std::string, uint64_t> launches;
  for (const auto& [id, key] : trace.keys) launches[trace.names.at(key.key.kernel())] += key.launches;
  return launches;
}

TEST_F(TraceRecorderTest, ARecordOfAGraphIsItsLaunchesInTheStepsThatEnded) {
  Recorder& r = recorder();
  r.Activate();
  LaunchIdentity gemm, relu, whole;
  gemm.kernel = r.Intern("gemm");
  relu.kernel = r.Intern("relu");
  whole.kernel = r.Intern("(CUDA graph)");
  const GraphMember members[] = {{.identity = gemm, .launches = 2}, {.identity = relu}};
  const uint32_t certain = r.DefineGraph(members, whole, true);
  const uint32_t held = r.DefineGraph(members, whole, false), never = r.DefineGraph(members, whole, false);
  const auto launch = [&](uint32_t graph) {
    LaunchRecord record;
    record.identity.kernel = graph;
    record.launches = LaunchRecord::kGraph;
    r.Record(record);
  };
  for (int step = 0; step < 3; ++step) {
    launch(certain);
    launch(held);
    launch(never);
    if (step == 2) r.ForgetGraph(certain);
    r.EndStep(1);
  }
  r.WriteNow();
  r.SettleGraph(held, true);
  const TraceContent trace = FinishedTrace();
  EXPECT_THAT(LaunchesByKernel(trace),
              UnorderedElementsAre(std::pair("gemm", 12), std::pair("relu", 6), std::pair("(CUDA graph)", 3)));
  EXPECT_THAT(trace.drops, IsEmpty());
}

}  // namespace
}  // namespace rfinject
