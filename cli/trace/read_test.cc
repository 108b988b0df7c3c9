#include "cli/trace/read.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "cli/testing/sample_profile.h"
#include "cli/testing/small_trace.h"
#include "cli/testing/trace_bytes.h"
#include "cli/trace/damage.h"
#include "cli/trace/decode.h"
#include "proto/rfinject/v1/trace.pb.h"
#include "proto/wire/framing.h"

namespace rfinject::cli {
namespace {

using testing::AddTwoLaunches;
using testing::AppendFrame;
using testing::Definitions;
using testing::EmptyTrace;
using testing::End;
using testing::Read;
using testing::Statistics;
using testing::Trace;

TEST(TraceReader, ReadsWhatAProcessWrites) {
  const TraceContents contents = Read(Trace({Definitions, Statistics, Statistics, End}));
  ASSERT_TRUE(contents.status.ok()) << contents.status;
  EXPECT_TRUE(contents.finished);
  EXPECT_EQ(contents.chunks, 4u);
  ASSERT_EQ(contents.profile.runs.size(), 1u);
  const auto& [key, run] = *contents.profile.runs.begin();
  EXPECT_EQ(key.source, SourceKind::kEstimated);
  EXPECT_EQ(key.gpu, "A100-SXM4-40GB");
  EXPECT_EQ(key.policy.cudnn_tf32, 2u);
  EXPECT_EQ(key.models, std::vector<std::string>{"ResNet"});
  EXPECT_EQ(key.parameters, 100u);  // ResNet-50 is a ResNet too, and must not be added to this one
  EXPECT_EQ(run.tier, 2);
  EXPECT_EQ(run.unfinished, 0u);
  ASSERT_EQ(run.process_list.size(), 1u);
  EXPECT_EQ(run.process_list[0].argv, (std::vector<std::string>{"python3", "main.py"}));
  ASSERT_EQ(run.launches.size(), 1u);
  const auto& [launch, stats] = *run.launches.begin();
  EXPECT_EQ(launch.layer, (LayerKey{"ResNet", "conv1"}));
  EXPECT_EQ(launch.phase, Phase::kBackward);
  EXPECT_EQ(stats.launches, 4u);
  EXPECT_EQ(stats.metrics.at("rf.time"),
            (Stat{.n = 4, .sum = 60, .sum_squares = 1000, .min = 10, .max = 20, .shared_sums = 2}));
  EXPECT_EQ(run.steps.steps, 2u);
  EXPECT_EQ(run.steps.samples, 16u);
  EXPECT_LT(run.layers.at({"ResNet", ""}).order, run.layers.at({"ResNet", "conv1"}).order);
}

TEST(TraceReader, DefinitionsMayComeAfterTheirUseWithinAChunk) {
  // Fields of a message have no order: a chunk is one piece.
  v1::Chunk definitions, statistics;
  Definitions(definitions);
  Statistics(statistics);
  std::vector<uint8_t> bytes = EmptyTrace();
  AppendFrame(bytes, 0, statistics.SerializeAsString() + definitions.SerializeAsString());
  EXPECT_TRUE(Read(bytes).status.ok());
}

TEST(TraceReader, FactsAreAddedFieldByField) {
  const TraceContents contents = Read(Trace({Definitions, [](v1::Chunk& chunk) {
                                               v1::Run* run = chunk.add_run();
                                               run->set_id(1);
                                               run->mutable_process()->set_torch_version("2.6.0");
                                               run->mutable_policy()->set_matmul_tf32(1);
                                               run->set_batch_size(16);
                                               v1::Layer* layer = chunk.add_layer();
                                               layer->set_id(2);
                                               layer->set_input_shape("f32[8,3,224,224]");
                                             }}));
  ASSERT_TRUE(contents.status.ok()) << contents.status;
  const auto& [key, run] = *contents.profile.runs.begin();
  EXPECT_EQ(key.policy.matmul_tf32, 1u);
  EXPECT_EQ(key.policy.cudnn_tf32, 2u);
  EXPECT_EQ(key.batch_size, 16u);
  EXPECT_EQ(run.process_list[0].host, "node1");
  EXPECT_EQ(run.process_list[0].argv.size(), 2u);
  EXPECT_EQ(run.process_list[0].torch_version, "2.6.0");
  EXPECT_EQ(run.layers.at({"ResNet", "conv1"}).input_shape, "f32[8,3,224,224]");
  EXPECT_EQ(run.layers.at({"ResNet", "conv1"}).class_name, "Conv2d");
  EXPECT_EQ(run.unfinished, 1u);  // no End
}

TEST(TraceReader, TwoModelsOfOneClassStayTwo) {
  const TraceContents contents = Read(Trace({Definitions, Statistics, [](v1::Chunk& chunk) {
                                               for (uint32_t id : {2u, 3u, 4u}) {
                                                 v1::Model* model = chunk.add_model();
                                                 model->set_id(id);
                                                 model->set_class_name(id == 2 ? "ResNet" : "Loss");
                                                 if (id == 2) model->set_parameters(7);
                                                 v1::Layer* layer = chunk.add_layer();
                                                 layer->set_id(id + 10);
                                                 layer->set_model(id);
                                               }
                                             }}));
  ASSERT_TRUE(contents.status.ok()) << contents.status;
  const auto& [key, run] = *contents.profile.runs.begin();
  EXPECT_EQ(key.models, (std::vector<std::string>{"ResNet", "ResNet (2)"}));
  // A loss without parameters that is made anew is the same one.
  EXPECT_EQ(run.models.size(), 3u);
  EXPECT_TRUE(run.layers.contains({"ResNet (2)", ""}));
}

TEST(TraceReader, ArmedStepsDoNotCountAsTime) {
  const TraceContents contents = Read(Trace({Definitions, [](v1::Chunk& chunk) {
                                               for (uint32_t group : {0u, 1u}) {
                                                 v1::Step* step = chunk.add_step();
                                                 step->set_measured(true);
                                                 step->set_duration_ns(group == 0 ? 100 : 9999);
                                                 step->set_armed_group(group);
                                               }
                                               chunk.add_step()->set_duration_ns(7);  // skipped by --skip
                                             }}));
  const StepSums& steps = contents.profile.runs.begin()->second.steps;
  EXPECT_EQ(steps.steps, 2u);
  EXPECT_EQ(steps.armed, 1u);
  EXPECT_EQ(steps.duration_ns.n, 1u);
  EXPECT_EQ(steps.duration_ns.max, 100u);
}

// Of a long run the first steps come one by one, the later ones as sums; the loop's period is that of the first.
TEST(TraceReader, StepsThatAreSumsCountWithTheOthers) {
  const TraceContents contents = Read(Trace({Definitions,
                                             [](v1::Chunk& chunk) {
                                               for (uint32_t i = 0; i < 40; ++i) {
                                                 v1::Step* step = chunk.add_step();
                                                 step->set_index(i);
                                                 step->set_measured(true);
                                                 step->set_duration_ns(100);
                                                 step->set_samples(8);
                                                 step->set_calls(1);
                                                 step->set_kind(1 + i % 2);
                                               }
                                             },
                                             [](v1::Chunk& chunk) {
                                               v1::RunSteps* sums = chunk.mutable_step_stats()->add_run();
                                               sums->set_run(1);
                                               sums->set_steps(60);
                                               sums->set_samples(480);
                                               sums->set_calls(60);
                                               sums->set_armed(1);
                                               v1::MetricStats* duration = sums->mutable_duration_ns();
                                               duration->set_n(59);
                                               duration->set_sum(59 * 200);
                                               duration->set_sum_squares(59 * 200 * 200);
                                               duration->set_min(200);
                                               duration->set_max(200);
                                             }}));
  ASSERT_TRUE(contents.status.ok()) << contents.status;
  const StepSums& steps = contents.profile.runs.begin()->second.steps;
  EXPECT_EQ(steps.steps, 100u);
  EXPECT_EQ(steps.samples, 800u);
  EXPECT_EQ(steps.calls, 100u);
  EXPECT_EQ(steps.armed, 1u);
  EXPECT_EQ(steps.iterations, 50u);
  EXPECT_EQ(steps.duration_ns.n, 99u);
  EXPECT_EQ(steps.duration_ns.max, 200u);
}

v1::Step* AddStep(v1::Chunk& chunk, uint64_t index, uint32_t kind, uint64_t samples, bool measured = true) {
  v1::Step* step = chunk.add_step();
  step->set_index(index);
  step->set_measured(measured);
  step->set_duration_ns(100);
  step->set_samples(samples);
  step->set_calls(1);
  step->set_kind(kind);
  return step;
}

// A trainer's check of its validation: the first steps were batches, and their launch keys have the first ids.
TEST(TraceReader, WhatRanBeforeTheTrainingIsValidation) {
  v1::LaunchKey forward;
  const TraceContents contents = Read(Trace({[&](v1::Chunk& chunk) {
                                               Definitions(chunk);
                                               chunk.mutable_key(0)->set_phase(v1::PHASE_FORWARD);
                                               forward = chunk.key(0);
                                               AddTwoLaunches(chunk)->set_min(1000);
                                               AddStep(chunk, 0, 7, 10);
                                             },
                                             [&](v1::Chunk& chunk) {
                                               chunk.add_run()->set_id(1);
                                               chunk.mutable_run(0)->set_untrained_steps(2);
                                               chunk.mutable_run(0)->set_untrained_keys(1);
                                               AddStep(chunk, 1, 7, 10);
                                               v1::LaunchKey* key = chunk.add_key();
                                               *key = forward;
                                               key->set_id(2);
                                               v1::KeyStats* stats = chunk.add_stats();
                                               stats->set_key(2);
                                               stats->set_launches(5);
                                               for (uint64_t i = 2; i < 6; ++i) AddStep(chunk, i, 3, i == 5 ? 2 : 4);
                                             }}));
  ASSERT_TRUE(contents.status.ok()) << contents.status;
  ASSERT_EQ(contents.profile.runs.size(), 2u);
  for (const auto& [key, run] : contents.profile.runs) {
    const bool validation = run.launches.begin()->first.phase == Phase::kEval;
    EXPECT_EQ(run.steps.steps, validation ? 2u : 4u);
    EXPECT_EQ(run.steps.samples, validation ? 20u : 14u);
    EXPECT_EQ(key.batch_size, validation ? 10u : 4u);
    ASSERT_EQ(run.launches.size(), 1u);
    EXPECT_EQ(run.launches.begin()->second.launches, validation ? 2u : 5u);
  }
}

// Two optimizers in turns, and a window of three steps: the third is in no complete iteration.
TEST(TraceReader, AWindowThatCutsAnIterationLosesThePart) {
  const auto window = [](uint64_t steps) {
    return Read(Trace({Definitions, [steps](v1::Chunk& chunk) {
                         v1::KeyStats* stats = chunk.add_stats();
                         stats->set_key(1);
                         stats->set_launches(10 * steps);
                         v1::MetricStats* time = stats->add_metric();
                         time->set_metric(1);
                         time->set_n(10 * steps);
                         time->set_min(1000);
                         for (uint64_t i = 0; i < steps; ++i) {
                           v1::StepLaunches* launches = chunk.add_step_launches();
                           launches->set_step(i);
                           launches->add_gap(0);
                           launches->add_keys(1);
                           launches->add_launches(10);
                         }
                         for (uint64_t i = 0; i < 8; ++i) AddStep(chunk, i, 1 + i % 2, 4, i < steps);
                       }}));
  };
  for (const auto [steps, left, iterations] :
       {std::array<uint64_t, 3>{1, 1, 0}, {2, 2, 1}, {3, 2, 1}, {4, 4, 2}, {7, 6, 3}}) {
    const TraceContents contents = window(steps);
    ASSERT_TRUE(contents.status.ok()) << contents.status;
    const auto& run = contents.profile.runs.begin()->second;
    EXPECT_EQ(run.steps.steps, left) << steps;
    EXPECT_EQ(run.steps.samples, 4 * left);
    EXPECT_EQ(run.steps.iterations, iterations);
    const LaunchStats& launches = run.launches.begin()->second;
    EXPECT_EQ(launches.launches, 10 * left);
    EXPECT_EQ(launches.metrics.at("rf.time"), Stat::Same(1000, 10 * left));
    EXPECT_EQ(run.kept.diagnostic.size(), steps == left && steps > 1 ? 0u : 1u) << steps;
  }
}

// A program without --steps that ends inside of an iteration says at its end what its last steps launched.
TEST(TraceReader, AProgramThatCutsAnIterationLosesThePart) {
  for (const bool known : {false, true}) {
    const TraceContents contents = Read(Trace({Definitions,
                                               [](v1::Chunk& chunk) {
                                                 v1::KeyStats* stats = chunk.add_stats();
                                                 stats->set_key(1);
                                                 stats->set_launches(101);
                                                 for (uint64_t i = 0; i < 101; ++i)
                                                   AddStep(chunk, i, 1 + i % 2, 4, true);
                                               },
                                               [known](v1::Chunk& chunk) {
                                                 if (!known) return;
                                                 v1::StepLaunches* launches = chunk.add_step_launches();
                                                 launches->set_step(100);
                                                 launches->add_gap(0);
                                                 launches->add_keys(1);
                                                 launches->add_launches(1);
                                               }}));
    ASSERT_TRUE(contents.status.ok()) << contents.status;
    const auto& run = contents.profile.runs.begin()->second;
    EXPECT_EQ(run.steps.steps, known ? 100u : 101u);
    EXPECT_EQ(run.steps.iterations, 50u);
    EXPECT_EQ(run.launches.begin()->second.launches, known ? 100u : 101u);
    EXPECT_EQ(run.kept.diagnostic.size(), known ? 1u : 0u);
  }
}

// What a process waited for behind its last step lengthens the sums and is no step.
TEST(TraceReader, WaitsBehindTheLastStepAreInTheMean) {
  const TraceContents contents = Read(Trace({Definitions,
                                             [](v1::Chunk& chunk) {
                                               for (uint64_t i = 0; i < 4; ++i) {
                                                 v1::Step* step = chunk.add_step();
                                                 step->set_index(i);
                                                 step->set_run(1);
                                                 step->set_measured(true);
                                                 step->set_duration_ns(100);
                                                 step->set_gpu_wait_ns(i == 0 ? 0 : 80);
                                                 step->set_watched(2);
                                               }
                                             },
                                             [](v1::Chunk& chunk) {
                                               v1::RunSteps* steps = chunk.mutable_step_stats()->add_run();
                                               steps->set_run(1);
                                               v1::RankSteps* behind = chunk.mutable_step_stats()->add_rank();
                                               behind->set_run(1);
                                               behind->mutable_wall_ns()->set_sum(80);
                                               behind->mutable_gpu_wait_ns()->set_sum(80);
                                             }}));
  ASSERT_TRUE(contents.status.ok()) << contents.status;
  const auto& run = contents.profile.runs.begin()->second;
  EXPECT_EQ(run.steps.steps, 4u);
  const StepTimes& times = run.step_times.begin()->second;
  EXPECT_EQ(times.gpu_wait_ns.mean_ns(), 80.0);
  EXPECT_EQ(times.wall_ns.mean_ns(), 120.0);
}

// The first step compiled, which was known only after some of it was written.
TEST(TraceReader, AStepThatIsNotMeasuredLosesItsLaunches) {
  const TraceContents contents = Read(Trace({Definitions, [](v1::Chunk& chunk) {
                                               v1::KeyStats* stats = chunk.add_stats();
                                               stats->set_key(1);
                                               stats->set_launches(700 + 2);
                                               v1::MetricStats* time = stats->add_metric();
                                               time->set_metric(1);
                                               time->set_n(700 + 2);
                                               time->set_min(1000);
                                               v1::StepLaunches* launches = chunk.add_step_launches();
                                               launches->set_step(0);
                                               launches->add_gap(0);
                                               launches->add_keys(1);
                                               launches->add_launches(700);
                                               for (uint64_t i = 0; i < 3; ++i) AddStep(chunk, i, 1, 4, i > 0);
                                             }}));
  ASSERT_TRUE(contents.status.ok()) << contents.status;
  const auto& run = contents.profile.runs.begin()->second;
  EXPECT_EQ(run.steps.steps, 2u);
  EXPECT_EQ(run.launches.begin()->second.launches, 2u);
  EXPECT_EQ(run.launches.begin()->second.metrics.at("rf.time"), Stat::Same(1000, 2));
}

// A window of 48 steps. Every third has kernel times, which makes it longer, and the last dozen are a
// tenth longer.
TEST(TraceReader, TwoSpeedsAreSeenBetweenStepsThatTimingMadeLonger) {
  const TraceContents contents = Read(Trace({Definitions, [](v1::Chunk& chunk) {
                                               for (uint64_t i = 0; i < 48; ++i) {
                                                 const bool timed = i % 3 == 0;
                                                 v1::Step* step = chunk.add_step();
                                                 step->set_index(i);
                                                 step->set_measured(true);
                                                 step->set_duration_ns((i < 36 ? 1'000'000 : 1'100'000) +
                                                                       (timed ? 80'000 : 0) + i * 7919 % 5000);
                                                 if (!timed) continue;
                                                 v1::SampledStep* sampled = chunk.add_sampled_step();
                                                 sampled->set_run(1);
                                                 sampled->set_step(i);
                                                 sampled->set_metric(1);
                                                 if (i == 0) sampled->add_key(1);
                                                 sampled->add_change(i == 0 ? 2 : 0);  // folded: a code of 1
                                               }
                                             }}));
  ASSERT_TRUE(contents.status.ok()) << contents.status;
  EXPECT_EQ(contents.profile.runs.begin()->second.steps.two_speeds, 1u);
}

// The first steps of a program are left out, as they make plans and allocate; those of a window behind skipped steps
// are steps like any other.
TEST(TraceReader, ASlowStepBeforeTheFirstSampleCountsWhereStepsWereSkipped) {
  for (const uint64_t skipped : {0u, 10u}) {
    const TraceContents contents =
        Read(Trace({Definitions, [skipped](v1::Chunk& chunk) {
                      for (uint64_t i = 0; i < 48; ++i) {
                        const bool timed = i >= 8 && i % 4 == 0;
                        v1::Step* step = chunk.add_step();
                        step->set_index(skipped + i);
                        step->set_measured(true);
                        step->set_duration_ns((i == 3 ? 1'500'000 : 1'000'000) + i * 7919 % 5000);
                        if (!timed) continue;
                        v1::SampledStep* sampled = chunk.add_sampled_step();
                        sampled->set_run(1);
                        sampled->set_step(skipped + i);
                        sampled->set_metric(1);
                        if (i == 8) sampled->add_key(1);
                        sampled->add_change(i == 8 ? 2 : 0);
                      }
                    }}));
    ASSERT_TRUE(contents.status.ok()) << contents.status;
    EXPECT_EQ(contents.profile.runs.begin()->second.steps.slow, skipped > 0 ? 1u : 0u);
  }
}

TEST(TraceReader, WindowsOfPmSamplingAreSummed) {
  const TraceContents contents = Read(Trace({Definitions, [](v1::Chunk& chunk) {
                                               for (uint64_t i : {1u, 2u}) {
                                                 v1::PmWindow* window = chunk.add_pm_window();
                                                 window->set_run(1);
                                                 window->set_duration_ns(1000 * i);
                                                 window->set_dram_read_bytes(20 * i);
                                                 window->set_dram_write_bytes(3 * i);
                                                 window->set_has_tensor(i == 2);
                                                 window->set_tensor_active_ns(i == 2 ? 500 : 0);
                                                 window->add_bin_dram_bytes(23 * i);
                                               }
                                             }}));
  ASSERT_TRUE(contents.status.ok()) << contents.status;
  const StepSums& steps = contents.profile.runs.begin()->second.steps;
  EXPECT_EQ(steps.pm_dram_bytes.n, 2u);
  EXPECT_EQ(steps.pm_dram_bytes.sum, 69u);
  EXPECT_EQ(steps.pm_duration_ns.sum, 3000u);
  EXPECT_EQ(steps.pm_tensor_active_ns.n, 1u);
  EXPECT_EQ(steps.pm_tensor_active_ns.sum, 500u);
  EXPECT_EQ(steps.steps, 0u);
}

// How a step's bytes were spread over it is kept for the first few windows, in any order of merging.
TEST(TraceReader, WindowsOfPmSamplingKeepTheirBins) {
  const auto windows = [](uint64_t first, uint64_t count) {
    return Read(Trace({Definitions,
                       [=](v1::Chunk& chunk) {
                         for (uint64_t step = first; step < first + count; ++step) {
                           v1::PmWindow* window = chunk.add_pm_window();
                           window->set_step(step);
                           window->set_bin_ns(100);
                           window->add_bin_dram_bytes(10 * step);
                           window->add_bin_tensor_permille(500);
                         }
                       }}))
        .profile;
  };
  const Profile few = windows(5, 2), many = windows(7, 100);
  const cli::Run& run = few.runs.begin()->second;
  ASSERT_EQ(run.pm_windows.size(), 2u);
  EXPECT_EQ(run.pm_windows[1].step, 6u);
  EXPECT_EQ(run.pm_windows[1].bin_dram_bytes, std::vector<uint64_t>{60});
  EXPECT_EQ(run.pm_windows[1].bin_tensor_permille, std::vector<uint32_t>{500});
  Profile ab = few, ba = many;
  ASSERT_TRUE(ab.Merge(many).ok());
  ASSERT_TRUE(ba.Merge(few).ok());
  EXPECT_EQ(ab, ba);
  const cli::Run& merged = ab.runs.begin()->second;
  ASSERT_EQ(merged.pm_windows.size(), kMaxPmWindowsKept);
  EXPECT_EQ(merged.pm_windows.front().step, 5u);
  EXPECT_EQ(merged.pm_windows.back().step, 5 + kMaxPmWindowsKept - 1);
  EXPECT_EQ(merged.steps.pm_dram_bytes.n, 102u) << "the sums count all";
}

TEST(TraceReader, TheCollectorsVersionsSurviveMerging) {
  const auto version = [](const char* text) {
    return Read(Trace({Definitions,
                       [=](v1::Chunk& chunk) {
                         v1::Run* run = chunk.add_run();
                         run->set_id(1);
                         run->set_collector_version(text);
                       }}))
        .profile;
  };
  Profile merged = version("13.0");
  ASSERT_TRUE(merged.Merge(version("12.6")).ok());
  ASSERT_EQ(merged.runs.size(), 1u) << "another version is no other kind of run";
  EXPECT_EQ(merged.runs.begin()->second.collector_versions, (std::set<std::string>{"12.6", "13.0"}));
  EXPECT_EQ(Read(testing::WrittenTrace(merged)).profile, merged);
}

TEST(TraceReader, BytesThatAreNotUtf8BecomeReplacementCharacters) {
  std::vector<uint8_t> bytes = EmptyTrace();
  AppendFrame(bytes, 0,
              std::string_view("\x0A\x0A\x08\x01\x22\x06\x22\x04\x61\xFF\xC3\x62", 12));  // Run.process.argv
  const TraceContents contents = Read(bytes);
  ASSERT_TRUE(contents.status.ok()) << contents.status;
  EXPECT_EQ(contents.profile.runs.begin()->second.process_list[0].argv[0],
            "a\xEF\xBF\xBD\xEF\xBF\xBD"
            "b");
}

TEST(TraceReader, RecordsOfANewerMinorVersionAreSkipped) {
  std::vector<uint8_t> bytes = Trace({Definitions, Statistics});
  AppendFrame(bytes, 2, std::string_view("\xF2\x07\x03new\xF8\x07\x05", 9));  // fields 126 and 127
  const TraceContents contents = Read(bytes);
  EXPECT_TRUE(contents.status.ok()) << contents.status;
  EXPECT_EQ(contents.chunks, 3u);
}

TEST(TraceReader, SamplesThatAreAllTheSame) {
  const TraceContents contents = Read(Trace({Definitions, Statistics, [](v1::Chunk& chunk) {
                                               Statistics(chunk);
                                               v1::MetricStats* metric = chunk.mutable_stats(0)->mutable_metric(0);
                                               metric->Clear();
                                               metric->set_metric(1);
                                               metric->set_n(5);
                                               metric->set_min(1000);
                                             }}));
  ASSERT_TRUE(contents.status.ok()) << contents.status;
  const auto& run = contents.profile.runs.begin()->second;
  ASSERT_EQ(run.launches.size(), 1u);
  const Stat wanted{.n = 7, .sum = 5030, .sum_squares = 5'000'500, .min = 10, .max = 1000, .shared_sums = 1};
  EXPECT_EQ(run.launches.begin()->second.metrics.at("rf.time"), wanted);
  EXPECT_EQ(Stat::Same(UINT64_MAX, 3).sum_squares, ~Uint128{0});
  EXPECT_EQ(Stat::Same(0, 3), (Stat{.n = 3, .min = 0}));
}

// What is added by number is what Profile::Merge makes of whole Profiles, in any order and in any shares.
void ExpectAddedAsMerged(const std::vector<std::vector<uint8_t>>& all) {
  Profile expected;
  std::vector<std::vector<uint8_t>> traces;  // those whose metrics agree
  for (const std::vector<uint8_t>& trace : all) {
    MemorySource source(trace);
    if (expected.Merge(ReadTrace(source).profile).ok()) traces.push_back(trace);
  }
  ASSERT_GE(traces.size(), 6u);
  Decoder decoder;
  for (const size_t shares : {1, 2, 5}) {
    for (const bool backwards : {false, true}) {
      std::vector<Accumulator> sums(shares);
      for (size_t i = 0; i < traces.size(); ++i) {
        MemorySource source(traces[backwards ? traces.size() - 1 - i : i]);
        TraceRecords records = ReadRecords(source, &decoder);
        std::move(records.applier).AddTo(&sums[i % shares]);
      }
      Profile sum;
      for (Accumulator& one : sums) ASSERT_TRUE(sum.Merge(std::move(one).Take()).ok());
      EXPECT_EQ(sum, expected) << shares << " shares" << (backwards ? ", backwards" : "");
      EXPECT_EQ(testing::WrittenTrace(sum), testing::WrittenTrace(expected));
    }
  }
}

TEST(Accumulator, AddsAsProfilesAreMerged) {
  std::vector<std::vector<uint8_t>> random, measured;
  for (uint64_t seed = 1; seed <= 60; ++seed) random.push_back(testing::WrittenTrace(testing::RandomProfile(seed)));
  for (int i = 0; i < 3; ++i) {
    measured.push_back(testing::WrittenTrace(testing::SampleMeasured(testing::SampleA100())));
    measured.push_back(testing::WrittenTrace(testing::SampleMeasured(testing::SampleV100())));
  }
  ExpectAddedAsMerged(random);
  ExpectAddedAsMerged(measured);
}

}  // namespace
}  // namespace rfinject::cli
