// File: compiled_work.h
//
// CompiledKernels keeps what each call of a kernel that torch.compile made costs, from what the generated code says
// of it (collector/compiled_code.h).
#ifndef RFINJECT_COLLECTOR_ESTIMATE_COMPILED_WORK_H_
#define RFINJECT_COLLECTOR_ESTIMATE_COMPILED_WORK_H_

#include <array>
#include <cstdint>
#include <deque>

#include "collector/compiled_code.h"
#include "collector/estimate/unknown_operators.h"
#include "collector/recorder.h"
#include "collector/sync.h"
#include "gpus/gpus.h"
#include "operators/generated_code.h"
#include "operators/precision.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::estimate {

struct CompiledCost {
  uint32_t kernel = 0;  // Intern()
  bool flop_known = false, bytes_known = false;
  // Of its operators, as the table of operators counts them: Cost has the same.
  uint64_t model_flop = 0, product_flop = 0, hidden_flop = 0;
  std::array<uint64_t, kPrecisionCount> executed_flop{};
  uint64_t written = UINT64_MAX;  // CompiledWork::written
  uint64_t bytes = 0;
  uint64_t time_ns = 0;  // the least that the roofs allow
  // Of the attention in it, which computes the blocks that a mask leaves.
  MaskBlocks mask;
  uint64_t masked_products = 0;
  std::array<uint64_t, kPrecisionCount> masked_flop{};

  // Leaves out what the mask leaves out: `left` of all mask.blocks are computed.
  void LeaveBlocks(uint64_t left, const Gpu& gpu) noexcept;
  void SetBytes(uint64_t amount, const Gpu& gpu) noexcept;
};

class CompiledKernels {
 public:
  explicit CompiledKernels(Recorder& recorder) : recorder_(recorder) {}

  // Returns a number for it, from 1; 0 where memory ran out.
  uint32_t Define(const CompiledWork& work, const Gpu& gpu, PrecisionPolicy policy,
                  UnknownOperators& unknown) noexcept;
  // What that call costs; nothing is known of 0, and of a launch of another kernel.
  CompiledCost Find(uint32_t number, uint32_t kernel) noexcept;

 private:
  Recorder& recorder_;
  Mutex lock_;
  std::deque<CompiledCost> costs_ RFINJECT_GUARDED_BY(lock_);
};

}  // namespace rfinject::estimate

#endif  // RFINJECT_COLLECTOR_ESTIMATE_COMPILED_WORK_H_
