// Ranges of emit_nvtx(record_shapes=True), in the text that PyTorch gives them.
#include "cli/import/nsys/nvtx_operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <map>
#include <string>

#include "cli/import/nsys/nsys_sqlite.h"
#include "operators/flop.h"

namespace rfinject::cli {
namespace {

using testing::HasSubstr;

TEST(NvtxOperatorText, IsParsedWithWhatItHas) {
  const NvtxOperator all = ParseNvtxOperator(
      "aten::addmm, seq = 12, op_id = 40, sizes = [[4], [2, 3], [3, 4], [], []], input_op_ids = [(0,-1), (38,0)]");
  EXPECT_EQ(all.name, "aten::addmm");
  EXPECT_EQ(all.sequence, 12);
  EXPECT_EQ(all.sizes, "[[4], [2, 3], [3, 4], [], []]");
  const NvtxOperator older = ParseNvtxOperator("aten::mm, seq = 3, sizes = [[2, 3], [3, 4]]");
  EXPECT_EQ(older.sizes, "[[2, 3], [3, 4]]");
  const NvtxOperator node = ParseNvtxOperator("autograd::engine::evaluate_function: AddmmBackward0, op_id = 9");
  EXPECT_EQ(node.name, "autograd::engine::evaluate_function: AddmmBackward0");
  EXPECT_EQ(node.sequence, TorchSpan::kNone);
  EXPECT_EQ(node.sizes, "");
  EXPECT_EQ(ParseNvtxOperator("encoder").name, "encoder");
  // A text that is cut has no shapes rather than wrong ones.
  EXPECT_EQ(ParseNvtxOperator("aten::mm, seq = 3, sizes = [[2, 3], [3, 4").sizes, "");
  EXPECT_EQ(ParseNvtxOperator("aten::mm, seq = x, sizes = [[2, -3], [3, 4]]").sizes, "");
}

TEST(NvtxOperatorText, KernelsSayTheTypeOfTheirOperands) {
  EXPECT_EQ(OperandsOfKernel("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn"), DType::kBFloat16);
  EXPECT_EQ(OperandsOfKernel("volta_h884gemm_64x64_ldg8_nn"), DType::kHalf);
  EXPECT_EQ(OperandsOfKernel("void at::native::vectorized_elementwise_kernel<4, Functor<c10::Half>>"), DType::kHalf);
  EXPECT_EQ(OperandsOfKernel("volta_sgemm_64x64_tn"), DType::kFloat);
  EXPECT_EQ(OperandsOfKernel("nvjet_sm90_sss_tf32_128x256_64x3"), DType::kFloat);
}

// An export of nsys, row by row.
class Export {
 public:
  Export() {
    sql_ =
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, "
        "blockX INTEGER, blockY INTEGER, blockZ INTEGER, demangledName INTEGER, correlationId INTEGER);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER);"
        "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER);"
        "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT);"
        "INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA A100-SXM4-40GB');";
  }
  void Range(int thread, int start, int end, const std::string& text) {
    sql_ += "INSERT INTO NVTX_EVENTS VALUES (" + std::to_string(start) + "," + std::to_string(end) + ",59,'" + text +
            "'," + std::to_string(thread) + ");";
  }
  // Called at `call`, which runs at `start` for `ns`.
  void Kernel(int thread, int call, int start, int ns, const std::string& name) {
    const std::string number = std::to_string(++kernels_);
    sql_ += "INSERT INTO StringIds VALUES (" + number + ",'" + name + "');" +
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (" + std::to_string(call) + "," +
            std::to_string(call + 1) + "," + std::to_string(thread) + "," + number + ");" +
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" + std::to_string(start) + "," +
            std::to_string(start + ns) + ",8,1,1,128,1,1," + number + "," + number + ");";
  }
  Imported Import() {
    char path[] = "/tmp/nvtx_operators_test.XXXXXX";
    close(mkstemp(path));
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open(path, &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql_.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
    absl::StatusOr<Imported> imported = ImportNsysSqlite(path, {});
    unlink(path);
    EXPECT_TRUE(imported.ok()) << imported.status();
    return imported.ok() ? *std::move(imported) : Imported{};
  }

 private:
  std::string sql_;
  int kernels_ = 0;
};

uint64_t Of(const LaunchStats& stats, std::string_view metric) {
  const auto found = stats.metrics.find(std::string(metric));
  return found == stats.metrics.end() ? 0 : static_cast<uint64_t>(found->second.sum);
}

// One step of a convolution and a linear layer, forward on the program's thread, backward on autograd's.
TEST(NsysWithShapes, HasTheFlopOfItsClosedForm) {
  constexpr int kMain = 7, kEngine = 9;
  Export file;
  file.Range(kMain, 0, 10'000, "step 0");
  file.Range(kMain, 10, 100, "stem");
  file.Range(kMain, 20, 90,
             "aten::conv2d, seq = 10, op_id = 1, sizes = [[8, 3, 32, 32], [16, 3, 3, 3], [16], [], [], [], []], "
             "input_op_ids = [(0,-1), (0,-1), (0,-1), (0,-1), (0,-1), (0,-1), (0,-1)]");
  file.Range(kMain, 30, 80,
             "aten::cudnn_convolution, seq = 10, op_id = 2, sizes = [[8, 3, 32, 32], [16, 3, 3, 3], [], [], [], []], "
             "input_op_ids = [(0,-1), (0,-1), (0,-1), (0,-1), (0,-1), (0,-1)]");
  file.Kernel(kMain, 40, 1000, 5, "void cudnn::ops::nchwToNhwcKernel<float, float>(float*)");
  file.Kernel(kMain, 50, 1010, 50, "ampere_scudnn_128x64_relu_medium_nn_v1");
  file.Range(kMain, 200, 300, "head");
  file.Range(kMain, 210, 290,
             "aten::addmm, seq = 12, op_id = 5, sizes = [[10], [8, 16384], [16384, 10], [], []], input_op_ids = "
             "[(0,-1), (4,0), (0,-1), (0,-1), (0,-1)]");
  file.Kernel(kMain, 220, 1100, 20, "ampere_sgemm_32x32_sliced1x4_tn");
  const std::string engine = "autograd::engine::evaluate_function: ";
  file.Range(kEngine, 400, 500, engine + "AddmmBackward0, seq = 12, op_id = 7, sizes = [[8, 10]]");
  file.Range(kEngine, 410, 490, "AddmmBackward0, seq = 12, op_id = 8, sizes = [[8, 10]]");
  file.Range(kEngine, 420, 450,
             "aten::mm, op_id = 9, sizes = [[8, 10], [10, 16384]], input_op_ids = [(7,0), (0,-1)]");
  file.Kernel(kEngine, 430, 1200, 21, "ampere_sgemm_128x32_nn");
  file.Range(kEngine, 500, 600, engine + "ConvolutionBackward0, seq = 10, op_id = 11, sizes = [[8, 16, 32, 32]]");
  file.Range(kEngine, 510, 590, "ConvolutionBackward0, seq = 10, op_id = 12, sizes = [[8, 16, 32, 32]]");
  file.Range(
      kEngine, 520, 580,
      "aten::convolution_backward, op_id = 13, sizes = [[8, 16, 32, 32], [8, 3, 32, 32], [16, 3, 3, 3], [], [], "
      "[], [], [], [], [], []], input_op_ids = [(10,0)]");
  file.Kernel(kEngine, 530, 1300, 60, "cutlass_cudnn::Kernel<cutlass_tensorop_s1688wgrad_optimized_tf32_128x128>");
  file.Range(kEngine, 600, 650, engine + "torch::autograd::AccumulateGrad, op_id = 14, sizes = [[16, 3, 3, 3]]");
  const Imported imported = file.Import();
  ASSERT_EQ(imported.profile.runs.size(), 1u);
  const cli::Run& run = imported.profile.runs.begin()->second;
  EXPECT_TRUE(run.key.training);
  std::map<std::string, uint64_t> flop, bytes;
  for (const auto& [key, stats] : run.launches) {
    const std::string place = key.layer.path + (key.phase == Phase::kBackward ? " backward " : " forward ") + key.op;
    flop[place] += Of(stats, kMetricModelFlop);
    bytes[place] += Of(stats, kMetricCompulsoryBytes);
  }
  constexpr uint64_t kConvolution = 2ull * 8 * 16 * 32 * 32 * 3 * 3 * 3, kProduct = 2ull * 8 * 16384 * 10;
  // The convolution's result is as large as its gradient; of an image nobody asks the gradient.
  const std::map<std::string, uint64_t> expected = {{"stem forward aten::cudnn_convolution", kConvolution},
                                                    {"head forward aten::addmm", kProduct},
                                                    {"head backward aten::mm", kProduct},
                                                    {"stem backward aten::convolution_backward", kConvolution}};
  EXPECT_EQ(flop, expected);
  EXPECT_EQ(bytes.at("head backward aten::mm"), 4u * (8 * 10 + 10 * 16384 + 8 * 16384));
  std::string said;
  for (const DiagnosticInfo& diagnostic : run.kept.diagnostic) said += diagnostic.text;
  EXPECT_THAT(said, HasSubstr("NVTX ranges have no types"));
  // All time is there, and the work at the longest kernel only.
  for (const auto& [key, stats] : run.launches) {
    if (key.kernel.find("nchwToNhwc") == std::string::npos) continue;
    EXPECT_EQ(Of(stats, kMetricTime), 5u);
    EXPECT_EQ(Of(stats, kMetricModelFlop), 0u);
  }
}

// Operands of FP8 have a byte an element, and the product has two.
TEST(NsysWithShapes, AProductOfEightBits) {
  Export file;
  file.Range(7, 0, 100, "aten::_scaled_mm, seq = 1, op_id = 1, sizes = [[64, 32], [32, 16], [], []]");
  file.Kernel(7, 50, 1000, 5, "nvjet_sm90_qqtst_128x256_128x4_2x1_v_bz_coopA_NNT");
  const Imported imported = file.Import();
  const LaunchStats& stats = imported.profile.runs.begin()->second.launches.begin()->second;
  EXPECT_EQ(Of(stats, kMetricModelFlop), 2u * 64 * 32 * 16);
  EXPECT_EQ(Of(stats, kMetricCompulsoryBytes), 64u * 32 + 32 * 16 + 2 * 64 * 16);
}

// Inside of the network the input has a gradient, which the next node of the backward takes. In half precision a list
// of tensors is joined.
TEST(NsysWithShapes, TheNextNodeShowsWhatTheBackwardReturned) {
  Export file;
  file.Range(9, 0, 100,
             "autograd::engine::evaluate_function: ConvolutionBackward0, seq = 4, sizes = [[8, 16, 32, 32]]");
  file.Range(9, 10, 90,
             "aten::convolution_backward, sizes = [[8, 16, 32, 32], [8, 3, 32, 32], [16, 3, 3, 3], [], []]");
  file.Kernel(9, 20, 1000, 60, "cudnn_dgrad_engine_f16f16");
  file.Range(9, 100, 200, "autograd::engine::evaluate_function: ReluBackward0, seq = 3, sizes = [[8, 3, 32, 32]]");
  file.Range(7, 0, 50, "aten::cat, seq = 1, op_id = 1, sizes = [[2, 3], [4, 3], []]");
  file.Kernel(7, 20, 2000, 60, "void at::native::CatArrayBatchedCopy<c10::Half, unsigned int, 2, 128, 1>");
  const Imported imported = file.Import();
  std::map<std::string, uint64_t> flop, bytes;
  for (const auto& [key, stats] : imported.profile.runs.begin()->second.launches) {
    flop[key.op] += Of(stats, kMetricModelFlop);
    bytes[key.op] += Of(stats, kMetricCompulsoryBytes);
  }
  EXPECT_EQ(flop["aten::convolution_backward"], 2 * 2ull * 8 * 16 * 32 * 32 * 3 * 3 * 3);
  EXPECT_EQ(bytes["aten::cat"], 2u * 2 * (6 + 12));
}

// NCCL's kernels are a phase, and what they do not share with others is a wait.
TEST(NsysWithShapes, CommunicationThatNothingHides) {
  Export file;
  for (int step = 0; step < 2; ++step) {
    file.Range(7, step * 1000, step * 1000 + 900, "step");
    file.Kernel(7, step * 1000 + 10, step * 1000 + 100, 200, "sgemm" + std::to_string(step));
    file.Kernel(7, step * 1000 + 20, step * 1000 + 250, 150, "ncclDevKernel_AllReduce(ncclDevKernelArgs)");
  }
  const Imported imported = file.Import();
  const cli::Run& run = imported.profile.runs.begin()->second;
  EXPECT_EQ(static_cast<uint64_t>(run.step_times.at(0).exposed_communication_ns.sum()), 2 * 100u);
  uint64_t communication = 0;
  for (const auto& [key, stats] : run.launches) {
    if (key.phase == Phase::kCommunication) communication += Of(stats, kMetricTime);
  }
  EXPECT_EQ(communication, 300u);
}

}  // namespace
}  // namespace rfinject::cli
