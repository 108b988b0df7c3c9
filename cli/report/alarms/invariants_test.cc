// Each invariant on a run that breaks it the way published rooflines did, and on the mended run, where it is silent.

#include "cli/report/alarms/invariants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "cli/report/fold.h"
#include "cli/report/machine.h"
#include "cli/words/words.h"

namespace rfinject::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::Field;
using ::testing::Not;

struct Counter {
  const char* metric;
  uint64_t value;
};

class Invariants : public ::testing::Test {
 protected:
  Invariants() { SetGpu("A100-SXM4-40GB"); }

  void SetGpu(const char* name) {
    run_.key.source = SourceKind::kImported;
    run_.key.gpu = name;
    run_.devices = {DeviceInfo{.name = name, .chip = std::string(FindGpu(name)->chip)}};
    run_.steps.steps = 1;
  }

  // One launch of a kernel with these counters.
  void Launch(const std::string& kernel, Phase phase, std::initializer_list<Counter> counters) {
    LaunchKey key;
    key.kernel = kernel;
    key.phase = phase;
    key.layer = LayerKey{"VGG", "features.0"};
    key.grid = grid_;
    LaunchStats& stats = run_.launches[key];
    ++stats.launches;
    for (const Counter& counter : counters) {
      stats.metrics[counter.metric].Add(counter.value);
      profile_.metrics[counter.metric] = MetricInfo{.name = counter.metric, .unit = "", .scale = 1};
    }
  }

  std::vector<Alarm> Check() { return FoldRun(profile_, run_, MachineFor(run_), {}).alarms; }

  std::array<uint32_t, 3> grid_ = {108, 1, 1};  // of all launches; zeros where a file does not say it
  Profile profile_;
  cli::Run run_;
};

constexpr char kTime[] = "gpu__time_duration.sum";
constexpr char kRead[] = "dram__bytes_read.sum";
constexpr char kWrite[] = "dram__bytes_write.sum";
constexpr char kFfma[] = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum";
constexpr char kTf32[] = "sm__ops_path_tensor_src_tf32_dst_fp32_sparsity_off.sum";
constexpr char kTf32Sparse[] = "sm__ops_path_tensor_src_tf32_dst_fp32_sparsity_on.sum";
constexpr char kTensorKernel[] = "cutlass_tensorop_s1688fprop_optimized_tf32_128x128_nhwc";

auto Id(const char* id) { return Field(&Alarm::id, id); }
MATCHER_P(Causes, text, "") { return arg.causes.find(text) != std::string_view::npos; }
MATCHER_P(Says, text, "") { return arg.text.find(text) != std::string::npos; }

TEST_F(Invariants, ASoundRunRaisesNothing) {
  // 10 TFLOP/s of TF32 and 500 GB/s on an A100.
  Launch(kTensorKernel, Phase::kForward,
         {{kTime, 1'000'000}, {kRead, 300'000'000}, {kWrite, 200'000'000}, {kFfma, 1000}, {kTf32, 10'000'000'000}});
  EXPECT_THAT(Check(), ::testing::IsEmpty());
}

TEST_F(Invariants, R001AboveTheRoofOfMixedPrecision) {
  // Neither pipe nor memory alone is above its peak, but the FP32 part needs 0.9 ms and there were 0.5.
  SetGpu("V100-SXM2-16GB");
  Launch("volta_scudnn_128x64_relu_interior_nn_v1", Phase::kForward,
         {{kTime, 500'000}, {kRead, 1'000}, {kFfma, 7'065'000'000}});
  EXPECT_THAT(Check(), Contains(AllOf(Id("R001"), Causes("wrong precision"))));
}

TEST_F(Invariants, R002MoreTrafficThanTheMemoryCanCarry) {
  Launch("copy", Phase::kForward, {{kTime, 1'000'000}, {kRead, 2'000'000'000}});
  EXPECT_THAT(Check(), Contains(AllOf(Id("R002"), Causes("times of another"))));
}

TEST_F(Invariants, R003AUnitAboveItsPeak) {
  Launch("fma", Phase::kForward, {{kTime, 1'000'000}, {kRead, 1'000}, {kFfma, 20'000'000'000}});
  EXPECT_THAT(Check(), Contains(AllOf(Id("R003"), Says("FP32"))));
}

TEST_F(Invariants, R003AUnitThatTheGpuLacks) {
  SetGpu("V100-SXM2-16GB");
  profile_.metrics["rf.flop.tf32_tc"] = MetricInfo{.name = "rf.flop.tf32_tc", .unit = "FLOP"};
  Launch("gemm", Phase::kForward, {{kTime, 1'000'000}, {"rf.flop.tf32_tc", 1'000'000}});
  EXPECT_THAT(Check(), Contains(AllOf(Id("R003"), Says("does not have"))));
}

TEST_F(Invariants, R004TensorCoresForgotten) {
  // The VGG study on an A100: nine CUDA-core counters, convolutions on TF32 tensor cores.
  Launch(kTensorKernel, Phase::kForward, {{kTime, 1'000'000}, {kRead, 100'000'000}, {kFfma, 1'000'000}});
  EXPECT_THAT(Check(), Contains(AllOf(Id("R004"), Causes("sm__ops_path_tensor"))));
}

TEST_F(Invariants, R004WrongSourceType) {
  Launch(kTensorKernel, Phase::kForward, {{kTime, 1'000'000}, {kRead, 100'000'000}, {kFfma, 1'000'000}, {kTf32, 0}});
  EXPECT_THAT(Check(), Contains(AllOf(Id("R004"), Causes("another source type"))));
}

TEST_F(Invariants, R004IsSilentWhereNotAllCountersWereRead) {
  Launch(kTensorKernel, Phase::kForward, {{kTime, 1'000'000}, {kRead, 100'000'000}, {kFfma, 1'000'000}, {kTf32, 0}});
  EXPECT_THAT(Check(), Contains(Id("R004")));
  run_.kept.diagnostic.Add({.id = "too-few-steps", .text = "the program ended"});
  EXPECT_THAT(Check(), Each(Not(Id("R004"))));
}

TEST_F(Invariants, R004IsSilentForCudaCoreKernels) {
  for (const char* name : {"ampere_sgemm_128x64_nn", "cutlass_simt_sgemm_128x64", "vectorized_elementwise_kernel",
                           "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nchw_simt"}) {
    Launch(name, Phase::kForward, {{kTime, 1'000'000}, {kRead, 100'000'000}, {kFfma, 1'000'000}});
  }
  EXPECT_THAT(Check(), Each(Not(Id("R004"))));
}

// A recording has FLOP and bytes that follow from shapes, and no counter that could be missing.
TEST_F(Invariants, AlarmsOfCountersAreForRunsThatHaveSome) {
  Launch(kTensorKernel, Phase::kForward,
         {{"rf.time", 5'000'000}, {"rf.flop.fp32", 1'000'000}, {"rf.flop.fp16_tc", 0}, {"rf.dram_bytes", 0}});
  EXPECT_THAT(Check(), Each(AllOf(Not(Id("R004")), Not(Id("R012")))));
  run_.key.source = SourceKind::kMeasured;
  EXPECT_THAT(Check(), Contains(Id("R004")));
  EXPECT_THAT(Check(), Contains(Id("R012")));
}

TEST_F(Invariants, R004IsSilentForWhatStandsAroundAProduct) {
  run_.key.source = SourceKind::kMeasured;
  for (const char* name :
       {"cask_plugin__5x_cudnn::xmma__5x_cudnn::init_device_workspace_kernel<xmma…>",
        "sm90_xmma_wgrad_indexed_implicit_gemm_f32f32_tf32f32_f32_…_execute_split_k_kernel__5x_cudnn"}) {
    Launch(name, Phase::kBackward, {{kTime, 2'000}, {kRead, 100'000}, {kFfma, 1'000}, {kTf32, 0}});
  }
  EXPECT_THAT(Check(), Each(Not(Id("R004"))));
}

TEST_F(Invariants, R005ForwardAndBackward) {
  profile_.metrics["rf.model_flop"] = MetricInfo{.name = "rf.model_flop", .unit = "FLOP"};
  Launch("f", Phase::kForward, {{"rf.model_flop", 1'000}});
  // A first or a frozen layer needs one product where others need two.
  Launch("b", Phase::kBackward, {{"rf.model_flop", 1'000}});
  EXPECT_THAT(Check(), Each(Not(Id("R005"))));
  Launch("b", Phase::kBackward, {{"rf.model_flop", 1'000}});
  EXPECT_THAT(Check(), Each(Not(Id("R005"))));
  Launch("b", Phase::kBackward, {{"rf.model_flop", 1'000}});  // a forward was lost
  EXPECT_THAT(Check(), Contains(AllOf(Id("R005"), Causes("forward not attributed"))));
}

// What validation, a teacher and frozen layers do to the ratio of the whole says nothing about attribution.
TEST_F(Invariants, R005ForwardsWithoutABackward) {
  for (int i = 0; i < 10; ++i) Launch("f", Phase::kForward, {{"rf.model_flop", 1'000}});
  Launch("b", Phase::kBackward, {{"rf.model_flop", 2'000}});
  EXPECT_THAT(Check(), Each(Not(Id("R005"))));
}

TEST_F(Invariants, R005BackwardThatIsInNoLayer) {
  Launch("f", Phase::kForward, {{"rf.model_flop", 1'000}});
  Launch("b", Phase::kBackward, {{"rf.model_flop", 1'500}});
  LaunchStats& lost = run_.launches[LaunchKey{.phase = Phase::kBackward, .kernel = "b"}];
  lost.launches = 1;
  lost.metrics["rf.model_flop"].Add(500);
  EXPECT_THAT(Check(), Contains(AllOf(Id("R005"), Says("in no layer"))));
}

// A gradient penalty differentiates the backward, by nodes of another kind; attention computes its scores again.
TEST_F(Invariants, R005HealthyBackwardsOfMoreThanTwiceTheForward) {
  for (const char* op : {"aten::_scaled_dot_product_flash_attention", "aten::mm"}) {
    for (const bool twice : {false, true}) {
      run_.launches.clear();
      const auto add = [&](Phase phase, const char* node, uint64_t flop) {
        LaunchStats& stats =
            run_.launches[LaunchKey{.layer = {"Net", "layer"}, .phase = phase, .op = op, .node = node}];
        stats.launches = 1;
        stats.metrics["rf.model_flop"].Add(flop);
      };
      add(Phase::kForward, "", 1'000);
      add(Phase::kBackward, "AddmmBackward0", 2'000);
      add(Phase::kBackward, twice ? "MmBackward0" : "AddmmBackward0", 500);
      if (!twice && std::string_view(op) == "aten::mm") {
        EXPECT_THAT(Check(), Contains(Id("R005")));
      } else {
        EXPECT_THAT(Check(), Each(Not(Id("R005")))) << op << twice;
      }
    }
  }
}

class BackwardFlopOfLayers : public Invariants {
 protected:
  void Add(const char* layer, Phase phase, const char* op, uint64_t flop, uint64_t launches = 1,
           const char* node = "", const char* signature = "") {
    LaunchKey key{.layer = {layer[0] == 0 ? "" : "Net", layer}, .phase = phase, .op = op, .node = node};
    key.signature = signature;
    LaunchStats& stats = run_.launches[key];
    stats.launches += launches;
    stats.metrics["rf.model_flop"].Add(flop);
  }
};

// A loss in the training loop, functions without modules: what they ask for is in no layer, as they are.
TEST_F(BackwardFlopOfLayers, R005FunctionsOutsideOfModules) {
  Add("layer", Phase::kForward, "aten::mm", 1'000);
  Add("layer", Phase::kBackward, "aten::mm", 1'000);  // a first layer
  Add("", Phase::kOther, "aten::mm", 5'000);
  Add("", Phase::kBackward, "aten::mm", 10'000);
  EXPECT_THAT(Check(), Each(Not(Id("R005"))));
  // Differentiated twice (MAML), and no layer lacks anything.
  Add("layer", Phase::kBackward, "aten::mm", 1'000);
  Add("", Phase::kBackward, "aten::mm", 20'000);
  EXPECT_THAT(Check(), Each(Not(Id("R005"))));
}

TEST_F(BackwardFlopOfLayers, R005BackwardThatLostItsLayerBesideFunctions) {
  Add("layer", Phase::kForward, "aten::mm", 1'000);
  Add("", Phase::kOther, "aten::mm", 1'000);
  Add("", Phase::kBackward, "aten::mm", 4'000);
  EXPECT_THAT(Check(), Contains(AllOf(Id("R005"), Says("in no layer"))));
}

TEST_F(BackwardFlopOfLayers, R005ForwardThatLostItsLayer) {
  Add("layer", Phase::kForward, "aten::mm", 500);
  Add("", Phase::kOther, "aten::mm", 500);
  Add("layer", Phase::kBackward, "aten::mm", 2'000);
  EXPECT_THAT(Check(), Contains(Id("R005")));
}

// Profilers lose launches, and a recording that knows no layers has one sum of all.
TEST_F(BackwardFlopOfLayers, R005RecordingsWithoutLayers) {
  run_.key.source = SourceKind::kImported;
  LaunchKey key{.layer = {"recording", ""}, .phase = Phase::kForward, .op = "aten::addmm"};
  run_.launches[key].launches = 1;
  run_.launches[key].metrics["rf.model_flop"].Add(1'000);
  key.phase = Phase::kBackward;
  run_.launches[key].launches = 1;
  run_.launches[key].metrics["rf.model_flop"].Add(3'000);
  EXPECT_THAT(Check(), Contains(Id("R005")));
  run_.tier = kTierNamesOnly;
  EXPECT_THAT(Check(), Each(Not(Id("R005"))));
}

// Two heads, each with a backward of its own through the trunk.
TEST_F(BackwardFlopOfLayers, R005SeveralBackwardsOfOneForward) {
  Add("layer", Phase::kForward, "aten::addmm", 1'000, 3);
  Add("layer", Phase::kBackward, "aten::mm", 4'000, 12);
  Add("relu", Phase::kForward, "aten::relu_", 0, 3);
  Add("relu", Phase::kBackward, "aten::threshold_backward", 0, 6, "ReluBackward0");
  EXPECT_THAT(Check(), Each(Not(Id("R005"))));
}

TEST_F(BackwardFlopOfLayers, R005ProductsThatCountTwice) {
  Add("layer", Phase::kForward, "aten::addmm", 1'000, 3);
  Add("layer", Phase::kBackward, "aten::mm", 4'000, 12);
  Add("relu", Phase::kForward, "aten::relu_", 0, 3);
  Add("relu", Phase::kBackward, "aten::threshold_backward", 0, 3, "ReluBackward0");
  EXPECT_THAT(Check(), Contains(Id("R005")));
}

TEST_F(BackwardFlopOfLayers, R005RecomputationThatCountsAsBackward) {
  Add("layer", Phase::kForward, "aten::addmm", 1'000, 3, "", "f32[4] f32[8,8] f32[8,4]");
  Add("layer", Phase::kBackward, "aten::addmm", 1'000, 3, "", "f32[4] f32[8,8] f32[8,4]");
  Add("layer", Phase::kBackward, "aten::mm", 2'000, 6);
  Add("relu", Phase::kForward, "aten::gelu", 0, 3);
  Add("relu", Phase::kBackward, "aten::gelu_backward", 0, 6, "GeluBackward0");
  EXPECT_THAT(Check(), Contains(Id("R005")));
}

TEST_F(Invariants, R006RowsAddUp) {
  Launch("a", Phase::kForward, {{kTime, 1'000'000}, {kRead, 100'000'000}, {kFfma, 1'000'000}});
  Report report = FoldRun(profile_, run_, MachineFor(run_), {});
  EXPECT_THAT(report.alarms, Each(Not(Id("R006"))));
  report.rows[0].sums[Quantity::kDramBytes] /= 2;  // a row lost in a conversion
  EXPECT_THAT(CheckReport(CheckKeys(profile_, run_, report.machine, "GA100"), run_, report),
              Contains(AllOf(Id("R006"), Says("DRAM bytes"))));
}

TEST_F(Invariants, R007FlopThatDifferWithinAKey) {
  Launch(kTensorKernel, Phase::kForward, {{kTime, 1'000'000}, {kRead, 1'000'000}, {kTf32, 1'000'000}});
  Launch(kTensorKernel, Phase::kForward, {{kTime, 1'000'000}, {kRead, 1'100'000}, {kTf32, 1'000'000}});
  EXPECT_THAT(Check(), Each(Not(Id("R007"))));  // bytes may differ
  Launch(kTensorKernel, Phase::kForward, {{kTime, 1'000'000}, {kRead, 1'000'000}, {kTf32, 2'000'000}});
  EXPECT_THAT(Check(), Contains(AllOf(Id("R007"), Causes("too coarse"))));
}

TEST_F(Invariants, R007IsSilentWhereNeitherGridNorShapesTellLaunchesApart) {
  grid_ = {};  // torch.profiler's counters are by kernel name alone
  Launch("sgemm", Phase::kForward, {{kRead, 1'000'000}, {kFfma, 1'000'000}});
  Launch("sgemm", Phase::kForward, {{kRead, 1'000'000}, {kFfma, 2'000'000}});
  EXPECT_THAT(Check(), Each(Not(Id("R007"))));
}

TEST_F(Invariants, R008MoreKernelTimeThanWallTime) {
  run_.key.source = SourceKind::kMeasured;
  Launch("a", Phase::kForward, {{kTime, 5'000'000}, {kRead, 100'000'000}, {kFfma, 1'000'000}});
  run_.steps.duration_ns.Add(4'000'000);
  EXPECT_THAT(Check(), Contains(Id("R008")));
  run_.steps.duration_ns = Stat{};
  run_.steps.duration_ns.Add(6'000'000);
  EXPECT_THAT(Check(), Each(Not(Id("R008"))));
}

TEST_F(Invariants, R009FewerFlopThanAnyAlgorithmNeeds) {
  profile_.metrics["rf.model_flop"] = MetricInfo{.name = "rf.model_flop", .unit = "FLOP"};
  Launch("conv", Phase::kForward, {{kTime, 1'000'000}, {kRead, 1'000'000}, {kFfma, 100}, {"rf.model_flop", 1000}});
  EXPECT_THAT(Check(), Contains(AllOf(Id("R009"), Causes("not counted"))));
}

TEST_F(Invariants, R009LetsWinogradPass) {
  profile_.metrics["rf.model_flop"] = MetricInfo{.name = "rf.model_flop", .unit = "FLOP"};
  Launch("conv", Phase::kForward, {{kTime, 1'000'000}, {kRead, 1'000'000}, {kFfma, 150}, {"rf.model_flop", 1000}});
  EXPECT_THAT(Check(), Each(Not(Id("R009"))));
}

TEST_F(Invariants, R010ClockDrift) {
  constexpr char kClock[] = "sm__cycles_elapsed.avg.per_second";
  Launch("a", Phase::kForward, {{kTime, 1'000'000}, {kRead, 1'000'000}, {kClock, 1'410'000'000}});
  Launch("a", Phase::kForward, {{kTime, 1'000'000}, {kRead, 1'000'000}, {kClock, 1'395'000'000}});
  EXPECT_THAT(Check(), Each(Not(Id("R010"))));
  Launch("a", Phase::kForward, {{kTime, 1'000'000}, {kRead, 1'000'000}, {kClock, 1'095'000'000}});
  EXPECT_THAT(Check(), Contains(AllOf(Id("R010"), Causes("locked"))));
}

TEST_F(Invariants, R011SparseTensorWork) {
  Launch(kTensorKernel, Phase::kForward,
         {{kTime, 1'000'000}, {kRead, 1'000'000}, {kTf32, 1'000'000}, {kTf32Sparse, 1'000'000}});
  EXPECT_THAT(Check(), Contains(Id("R011")));
}

TEST_F(Invariants, R012ImpossibleCounts) {
  Launch("a", Phase::kForward, {{kTime, 1'000'000}, {kRead, UINT64_MAX - 5}});
  EXPECT_THAT(Check(), Contains(AllOf(Id("R012"), Causes("backwards"))));
}

TEST_F(Invariants, R012NoBytesInALongKernel) {
  Launch("a", Phase::kForward, {{kTime, 5'000'000}, {kRead, 0}, {kWrite, 0}, {kFfma, 1'000'000}});
  EXPECT_THAT(Check(), Contains(AllOf(Id("R012"), Causes("units"))));
}

TEST_F(Invariants, ManyAlarmsOfOneKindStayReadable) {
  for (int i = 0; i < 100; ++i) {
    Launch("copy" + std::to_string(i), Phase::kForward, {{kTime, 1'000'000}, {kRead, 2'000'000'000}});
  }
  const std::vector<Alarm> alarms = Check();
  EXPECT_EQ(std::count_if(alarms.begin(), alarms.end(), [](const Alarm& a) { return a.id == "R002"; }), 4);
  EXPECT_THAT(alarms, Contains(Says("97 more")));
}

}  // namespace
}  // namespace rfinject::cli
