// File: vocabulary.h
//
// The words that the injected library writes and the command reads: phases, precisions and the names of the
// quantities that both know. Numbers here are part of the trace format (see ../FORMAT.md): add, never change.
#ifndef RFINJECT_PROTO_WIRE_VOCABULARY_H_
#define RFINJECT_PROTO_WIRE_VOCABULARY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "proto/rfinject/v1/trace.schema.h"

namespace rfinject {

using Phase = trace::Phase;  // of trace.proto
inline constexpr std::array<std::string_view, 8> kPhaseNames = {"other", "forward",       "backward",  "optimizer",
                                                                "data",  "communication", "recompute", "eval"};

// The units that a FLOP can run on: number format and path. `kFp16` and `kBf16` are scalar (CUDA core) arithmetic,
// `…Tensor` is the tensor cores' dense rate.
enum class Precision : uint8_t {
  kFp64 = 0,
  kFp32 = 1,
  kFp16 = 2,
  kTf32Tensor = 3,
  kFp16Tensor = 4,
  kBf16Tensor = 5,
  kFp8Tensor = 6,
  kFp64Tensor = 7,
  kInt8Tensor = 8,  // operations on integers, counted as FLOP are
};
inline constexpr size_t kPrecisionCount = 9;
// The precisions as they are written in the names of columns and metrics ("flop_tf32_tc", "rf.flop.tf32_tc").
inline constexpr std::array<std::string_view, kPrecisionCount> kPrecisionNames = {
    "fp64", "fp32", "fp16", "tf32_tc", "fp16_tc", "bf16_tc", "fp8_tc", "fp64_tc", "int8_tc"};
// The precisions as they are written in sentences.
inline constexpr std::array<std::string_view, kPrecisionCount> kPrecisionTitles = {
    "FP64", "FP32", "FP16", "TF32 tensor", "FP16 tensor", "BF16 tensor", "FP8 tensor", "FP64 tensor", "INT8 tensor"};

// Run.collector of the estimator where the program ran on a virtual GPU.
inline constexpr std::string_view kVirtualGpuCollector = "virtual-gpu";

// The name of a device begins with this where rfinject's own tests made up its counters and times.
inline constexpr std::string_view kSimulatedDevice = "Simulated ";

// Names of Metric messages that are not a hardware metric's own name.
inline constexpr std::string_view kMetricTime = "rf.time";  // ns of GPU time
// ns, of measured runs: nothing ran on the GPU before the launch began, since what was before it had ended.
inline constexpr std::string_view kMetricIdleBefore = "rf.idle_before";
inline constexpr std::string_view kMetricModelFlop = "rf.model_flop";  // FLOP, 2 per multiply-add
// FLOP of the model's that multiply matrices or filters, and what of these a mask hides (causal attention).
inline constexpr std::string_view kMetricProductFlop = "rf.product_flop";
inline constexpr std::string_view kMetricHiddenFlop = "rf.hidden_flop";
inline constexpr std::string_view kMetricDramBytes = "rf.dram_bytes";              // byte, read + write
inline constexpr std::string_view kMetricCompulsoryBytes = "rf.compulsory_bytes";  // byte, each operand once
// Of a recording: how much of its operator's call a launch does, in parts of kWholeCall. An operator of several
// kernels has its work divided among them, and the parts of one call add up to a whole.
inline constexpr std::string_view kMetricCallPart = "rf.call_part";
inline constexpr uint64_t kWholeCall = uint64_t{1} << 20;
// Of a recording: ns of GPU time by pieces of a key's launches, in their order (cli/profile/time_order.h).
inline constexpr std::string_view kMetricTimeOrder = "rf.time_order";
// Executed FLOP by precision and path, "rf.flop.<kPrecisionNames>".
inline constexpr std::array<std::string_view, kPrecisionCount> kMetricFlop = {
    "rf.flop.fp64",    "rf.flop.fp32",   "rf.flop.fp16",    "rf.flop.tf32_tc", "rf.flop.fp16_tc",
    "rf.flop.bf16_tc", "rf.flop.fp8_tc", "rf.flop.fp64_tc", "rf.flop.int8_tc"};

// What a GPU of the kind executes, by the definition of the operator: of launches whose operators a measured process
// has observed, whose executed FLOP are counted.
inline constexpr std::array<std::string_view, kPrecisionCount> kMetricCallFlop = {
    "rf.call_flop.fp64",    "rf.call_flop.fp32",    "rf.call_flop.fp16",
    "rf.call_flop.tf32_tc", "rf.call_flop.fp16_tc", "rf.call_flop.bf16_tc",
    "rf.call_flop.fp8_tc",  "rf.call_flop.fp64_tc", "rf.call_flop.int8_tc"};

// Of the executed FLOP in FP16, those of HFMA2, with which the compiler also moves constants.
inline constexpr std::string_view kMetricHalfFma = "rf.flop.fp16.fma";

// Of estimates on a virtual GPU: bytes that leave the GPU, in one direction.
inline constexpr std::string_view kMetricPcieBytes = "rf.pcie_bytes";
inline constexpr std::string_view kMetricNvlinkBytes = "rf.nvlink_bytes";
// What this begins with counts the launches of one kernel below an estimated operator; its name follows, as a
// programmer reads it ("rf.kernel:void at::native::…").
inline constexpr std::string_view kMetricKernelPrefix = "rf.kernel:";

}  // namespace rfinject

#endif  // RFINJECT_PROTO_WIRE_VOCABULARY_H_
