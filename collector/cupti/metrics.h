// File: metrics.h
//
// Which hardware metrics answer our questions on a chip. The names differ from chip to chip and from CUPTI to CUPTI
// (GH100 counts tensor FLOP by instruction family, GB100 renames them), so they are chosen from the list that the
// CUPTI at hand gives, by the parts of their names. Pure: no CUPTI, no I/O.
//
// What the counters count (checked against per-SM peaks that CUPTI reports and the datasheets of V100, A100, H100):
//   sm__ops_path_tensor_*            FLOP on the tensor path; a multiply-add counts 2. Without a suffix it is
//                                    _sparsity_off + _sparsity_on; the first alone is dense training and needs half
//                                    the raw counters.
//   smsp__sass_thread_inst_executed_op_{f,d}{add,mul,fma}_pred_on   thread instructions: 1, 1 and 2 FLOP each
//   smsp__sass_thread_inst_executed_op_h{add,mul,fma}_pred_on       from Volta on only packed forms exist, two lanes
//                                    each: 2, 2 and 4 FLOP. An upper bound: code that uses one lane wastes the other.
//   smsp__sass_thread_inst_executed_op_f{add,mul,fma}2_pred_on      Blackwell's packed FP32: 2, 2 and 4 FLOP
#ifndef RFINJECT_COLLECTOR_CUPTI_METRICS_H_
#define RFINJECT_COLLECTOR_CUPTI_METRICS_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proto/wire/vocabulary.h"

namespace rfinject::cupti {

// What every hardware group carries.
enum class BaseQuantity : uint8_t { kDramRead, kDramWrite, kTime, kCycles, kL2Bytes, kL1Bytes };  // byte, ns, cycle
struct BaseMetric {
  std::string_view name;  // with its roll-up
  BaseQuantity quantity;
};
// In falling order of importance. GB202 and its sisters have the …_op_… names for DRAM.
inline constexpr std::array<BaseMetric, 8> kBaseMetrics = {{{"dram__bytes_read.sum", BaseQuantity::kDramRead},
                                                            {"dram__bytes_op_read.sum", BaseQuantity::kDramRead},
                                                            {"dram__bytes_write.sum", BaseQuantity::kDramWrite},
                                                            {"dram__bytes_op_write.sum", BaseQuantity::kDramWrite},
                                                            {"gpu__time_duration.sum", BaseQuantity::kTime},
                                                            {"gpc__cycles_elapsed.max", BaseQuantity::kCycles},
                                                            {"lts__t_bytes.sum", BaseQuantity::kL2Bytes},
                                                            {"l1tex__t_bytes.sum", BaseQuantity::kL1Bytes}}};

// A metric whose value times `flop` is executed FLOP of one precision and path.
struct FlopMetric {
  std::string name;  // with its roll-up: "….sum"
  Precision precision = Precision::kFp32;
  uint32_t flop = 1;  // FLOP per count
  friend bool operator==(const FlopMetric&, const FlopMetric&) = default;
};

struct ChipMetrics {
  std::vector<std::string> base;       // in falling order of importance
  std::vector<FlopMetric> scalar;      // SASS metrics: CUDA cores, by patching the kernel
  std::vector<FlopMetric> tensor;      // hardware counters, the dense path, likeliest in training first
  std::vector<FlopMetric> sparse;      // the sparse path of the same: any count but 0 means that `tensor` is short
  std::vector<std::string> uncounted;  // paths that no Precision stands for (int8, fp4): not measured
  std::vector<std::string> clocks;     // riders: taken along where they cost nothing
};

// Chooses from the base metric names (without roll-up) of `chip` ("GV100"; empty: by the names alone).
//
// CUPTI before 12.2 update 2 has no sm__ops_path_tensor_*. There instructions on the tensor pipe are all there is,
// and only on GV100 does one of them stand for a number of FLOP: its one kind, HMMA.884, does 512 (2 instructions an
// SM and cycle, at 1024 FLOP). Elsewhere the kinds differ (4096, 2048, 512 on GA100) and `tensor` stays empty.
ChipMetrics SelectMetrics(std::span<const std::string> names, std::string_view chip = {});

// SASS metrics are counted by code patched into the kernel. They share no pass with hardware counters, and a step
// with them has no times worth keeping.
bool IsSassMetric(std::string_view name);

// "dram__bytes_read.sum" is "dram__bytes_read".
std::string_view BaseName(std::string_view name);

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_METRICS_H_
