// File: counters.h
//
// The hardware counters that we know, under CUPTI's names, and what one count of each stands for. What differs from
// chip to chip is in chips.h. The collector asks for these counters, the command reads them in traces and keeps them
// from other tools' files; a counter that is to be collected, kept or reported gets its line here.
//
// What the counters count, and where that is said:
//   smsp__sass_thread_inst_executed_op_…_pred_on   "thread instructions" (CUPTI's description of the metric); an FMA
//                         is one count and two FLOP. Half instructions are two lanes wide since Volta (HADD2, HMUL2,
//                         HFMA2), so one count is two or four FLOP: an upper bound, for scalar half code leaves a
//                         lane idle. With these factors CUPTI's own peaks give the data sheets' rates: GV100 has 64
//                         HFMA2 per SM and cycle, times 80 SMs, 1.53 GHz and 4 is 31.3 TFLOP/s. Blackwell's packed
//                         FP32 (FADD2, FMUL2, FFMA2) is two lanes wide as well.
//   sm__ops_path_tensor_…  "math ops executed in Tensor path" (the same descriptions), a multiply-add as two: FLOP
//                         already. GV100's .peak_sustained is 1024 per SM and cycle: 8 tensor cores x 64
//                         multiply-adds x 2, which times SMs and clock is the data sheet's 125 TFLOP/s. Without a
//                         suffix a counter is _sparsity_off plus _sparsity_on; the first alone is dense training and
//                         needs half the raw counters.
//
// Pure: no CUPTI, no input, no output.
#ifndef RFINJECT_GPUS_COUNTERS_H_
#define RFINJECT_GPUS_COUNTERS_H_

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "proto/wire/vocabulary.h"

namespace rfinject {

inline constexpr std::string_view kDramReadMetric = "dram__bytes_read.sum";
inline constexpr std::string_view kDramWriteMetric = "dram__bytes_write.sum";
// The names of the same two counters on GB202 and its relatives.
inline constexpr std::string_view kDramOpReadMetric = "dram__bytes_op_read.sum";
inline constexpr std::string_view kDramOpWriteMetric = "dram__bytes_op_write.sum";
inline constexpr std::string_view kDramTotalMetric = "dram__bytes.sum";
inline constexpr std::string_view kDramRateMetric = "dram__bytes.sum.per_second";
inline constexpr std::string_view kGpuTimeMetric = "gpu__time_duration.sum";
// One kernel has one duration: its other roll-ups (.max, .avg, .min) and ncu's other name for it have the same value.
inline constexpr std::string_view kGpuTimePrefix = "gpu__time_duration.";
inline constexpr std::string_view kGpuTimeUserMetric = "gpu__time_duration_measure_user.sum";
inline constexpr std::string_view kGpuCyclesMetric = "gpc__cycles_elapsed.max";
inline constexpr std::string_view kL2BytesMetric = "lts__t_bytes.sum";
inline constexpr std::string_view kL1BytesMetric = "l1tex__t_bytes.sum";
inline constexpr std::string_view kSmClockMetric = "sm__cycles_elapsed.avg.per_second";
inline constexpr std::string_view kDramClockMetric = "dram__cycles_elapsed.avg.per_second";
// The names of all counters of operations on the tensor path begin with this.
inline constexpr std::string_view kTensorOpsPrefix = "sm__ops_path_tensor_";
// The counter of instructions on the tensor pipe, which CUPTI before 12.2 update 2 has instead of operations.
inline constexpr std::string_view kTensorInstructionsMetric = "sm__inst_executed_pipe_tensor.sum";

// What ncu's raw page says of the board beside its counters.
inline constexpr std::string_view kBoardNameAttribute = "device__attribute_display_name";
inline constexpr std::string_view kBoardMemoryAttribute = "device__attribute_total_memory";
inline constexpr std::string_view kBoardSmsAttribute = "device__attribute_multiprocessor_count";

// For how many cycles the tensor pipes of all SMs worked: 0 in a kernel without tensor instructions.
inline constexpr std::string_view kTensorCyclesMetric = "sm__pipe_tensor_cycles_active.sum";

// The counters of DRAM's reads and writes in each spelling; a chip has one. Where both of one spelling were counted
// their sum is the traffic, which kDramTotalMetric also counts.
struct DramCounters {
  std::string_view read, write;
};
inline constexpr std::array<DramCounters, 2> kDramCounters = {
    {{kDramReadMetric, kDramWriteMetric}, {kDramOpReadMetric, kDramOpWriteMetric}}};

// What other tools' files have beside FLOP, in falling order of importance. Where several counters count the same
// quantity, the first that the chip has is taken.
enum class BaseQuantity : uint8_t { kDramRead, kDramWrite, kTime, kCycles, kL2Bytes, kL1Bytes };
struct BaseMetric {
  std::string_view name;
  BaseQuantity quantity;
  std::string_view unit;
};
inline constexpr std::array<BaseMetric, 8> kBaseMetrics = {{
    {kDramReadMetric, BaseQuantity::kDramRead, "byte"},
    {kDramOpReadMetric, BaseQuantity::kDramRead, "byte"},
    {kDramWriteMetric, BaseQuantity::kDramWrite, "byte"},
    {kDramOpWriteMetric, BaseQuantity::kDramWrite, "byte"},
    {kGpuTimeMetric, BaseQuantity::kTime, "ns"},
    {kGpuCyclesMetric, BaseQuantity::kCycles, "cycle"},
    {kL2BytesMetric, BaseQuantity::kL2Bytes, "byte"},
    {kL1BytesMetric, BaseQuantity::kL1Bytes, "byte"},
}};

// Clocks, which the collector counts where they cost nothing.
inline constexpr std::array<std::string_view, 2> kClockMetrics = {kSmClockMetric, kDramClockMetric};

// One counter's part in the executed FLOP of a kernel.
struct FlopTerm {
  std::string_view metric;  // as CUPTI names it, with ".sum"
  Precision precision;
  double flop_per_count;
  // A term of the metric set that stands for FLOP on 2:4 sparse operands. It is no executed arithmetic in the dense
  // sense; alarm R011 expects it to be 0.
  bool sparse = false;
  // Counted over the legacy mma.sync path of a chip that has a faster one (chips.h, Chip::legacy_share).
  bool legacy_path = false;
};

// FLOP of the CUDA cores.
inline constexpr std::array<FlopTerm, 9> kScalarFlop = {{
    {"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", Precision::kFp32, 1},
    {"smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", Precision::kFp32, 1},
    {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", Precision::kFp32, 2},
    {"smsp__sass_thread_inst_executed_op_hadd_pred_on.sum", Precision::kFp16, 2},
    {"smsp__sass_thread_inst_executed_op_hmul_pred_on.sum", Precision::kFp16, 2},
    {"smsp__sass_thread_inst_executed_op_hfma_pred_on.sum", Precision::kFp16, 4},
    {"smsp__sass_thread_inst_executed_op_dadd_pred_on.sum", Precision::kFp64, 1},
    {"smsp__sass_thread_inst_executed_op_dmul_pred_on.sum", Precision::kFp64, 1},
    {"smsp__sass_thread_inst_executed_op_dfma_pred_on.sum", Precision::kFp64, 2},
}};
// Blackwell's data-centre chips have these as well.
inline constexpr std::array<FlopTerm, 3> kPackedFp32Flop = {{
    {"smsp__sass_thread_inst_executed_op_fadd2_pred_on.sum", Precision::kFp32, 2},
    {"smsp__sass_thread_inst_executed_op_fmul2_pred_on.sum", Precision::kFp32, 2},
    {"smsp__sass_thread_inst_executed_op_ffma2_pred_on.sum", Precision::kFp32, 4},
}};

// Other tools' counters that count what a chip's own counters do.
struct AlternativeCounter {
  FlopTerm term;
  // The counter that it replaces. Empty: it replaces all of the chip's own counters of its precision, because it
  // holds dense and sparse work of all instruction families together.
  std::string_view stands_for;
};
// ncu's spellings with the lanes of packed instructions and the two FLOP of a multiply-add multiplied in, from the
// sections of Nsight Compute (SpeedOfLight_HierarchicalSingleRooflineChart.section and the like), and the totals.
inline constexpr std::array<AlternativeCounter, 12> kAlternativeCounters = {{
    {{"derived__smsp__sass_thread_inst_executed_op_hadd_pred_on_x2.sum", Precision::kFp16, 1}, kScalarFlop[3].metric},
    {{"derived__smsp__sass_thread_inst_executed_op_hmul_pred_on_x2.sum", Precision::kFp16, 1}, kScalarFlop[4].metric},
    {{"derived__smsp__sass_thread_inst_executed_op_hfma_pred_on_x4.sum", Precision::kFp16, 1}, kScalarFlop[5].metric},
    {{"derived__smsp__sass_thread_inst_executed_op_ffma_pred_on_x2.sum", Precision::kFp32, 1}, kScalarFlop[2].metric},
    {{"derived__smsp__sass_thread_inst_executed_op_dfma_pred_on_x2.sum", Precision::kFp64, 1}, kScalarFlop[8].metric},
    // The older form of hfma has a factor of 2 where the hardware does 4 FLOP.
    {{"derived__smsp__sass_thread_inst_executed_op_hfma_pred_on_x2.sum", Precision::kFp16, 2}, kScalarFlop[5].metric},
    {{"sm__ops_path_tensor_src_bf16_dst_fp32.sum", Precision::kBf16Tensor, 1}, {}},
    {{"sm__ops_path_tensor_src_fp16.sum", Precision::kFp16Tensor, 1}, {}},
    {{"sm__ops_path_tensor_src_fp16_dst_fp16.sum", Precision::kFp16Tensor, 1}, {}},
    {{"sm__ops_path_tensor_src_fp16_dst_fp32.sum", Precision::kFp16Tensor, 1}, {}},
    {{"sm__ops_path_tensor_src_tf32_dst_fp32.sum", Precision::kTf32Tensor, 1}, {}},
    {{"sm__ops_path_tensor_src_fp8.sum", Precision::kFp8Tensor, 1}, {}},
}};

// Counters that no formula needs, but that are kept from other tools' files: they tell that tensor cores ran where
// their operations were not counted.
inline constexpr std::array<std::string_view, 3> kTensorInstructionMetrics = {
    kTensorInstructionsMetric, "sm__inst_executed_pipe_tensor_op_hmma.sum",
    "sm__inst_executed_pipe_tensor_op_gmma.sum"};

}  // namespace rfinject

#endif  // RFINJECT_GPUS_COUNTERS_H_
