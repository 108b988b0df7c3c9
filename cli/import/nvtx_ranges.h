// File: nvtx_ranges.h
//
// Makes places of launches from the ranges that a program marks with NVTX (torch.cuda.nvtx.range_push, emit_nvtx): it
// tells which ranges are steps, and the nested names of the others are a layer's path. It is pure; nsys_sqlite.cc
// reads the file.
#ifndef RFINJECT_CLI_IMPORT_NVTX_RANGES_H_
#define RFINJECT_CLI_IMPORT_NVTX_RANGES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

struct NvtxRange {
  int64_t thread = 0, start = 0, end = 0;  // ns
  std::string name;
};

// Whether a range of this name is a DataLoader making a batch, as torch itself calls it.
bool IsLoaderName(std::string_view name);
// Whether a range of this name is one repetition of the training loop: "step 3", "iteration_12", "ProfilerStep#4",
// "batch"; not "optimizer.step", which is a part of one.
bool IsStepName(std::string_view name);

// The phase that a range of this name marks ("forward", "validation epoch 3", "model.forward"); kOther for every
// other name, and for one that merely has such a word in it ("_forward_unimplemented_layer").
Phase PhaseOfRange(std::string_view name);

// Whether a range is that of an operator: of torch's, which it marks with ", seq = N" and ", op_id = N" behind the
// name (emit_nvtx); of a library's, whose name has its own in front ("flash_attn::_flash_attn_forward"); of a node of
// autograd; or of a call of NCCL. `text` is all of the range's.
bool IsOperatorRange(std::string_view text);
// The range's name, without what torch writes behind it.
std::string_view NameOfRange(std::string_view text);
// The phase that an operator says it belongs to: "aten::convolution_backward", "xformers_flash::flash_bwd".
Phase PhaseOfOperator(std::string_view name);

// Where a launch was made.
struct NvtxPlace {
  bool in_step = false;
  std::string path;             // names of the ranges inside the step, "block1.conv", without operators' and steps'
  std::string op;               // of the innermost range that is an operator's: "aten::conv2d"
  Phase phase = Phase::kOther;  // where a range is called after one
  friend bool operator==(const NvtxPlace&, const NvtxPlace&) = default;
};

// Follows the ranges of one thread after the other, and keeps only those that are open at one time.
class NvtxStack {
 public:
  // Ranges deeper than this are taken for part of the one around them: no program has such, and a file that is made
  // to have a million open ones at once would take time and memory by the square.
  static constexpr size_t kMostNested = 64;

  // `next` gives the ranges by thread, then by start, the outer one first of those with one start; false: no more.
  explicit NvtxStack(std::function<bool(NvtxRange*)> next) : next_(std::move(next)) {}

  // Where a call on `thread` at `time` was made. Calls come in the same order as ranges.
  NvtxPlace At(int64_t thread, int64_t time);

 private:
  std::function<bool(NvtxRange*)> next_;
  NvtxRange ahead_;
  bool has_ahead_ = false, ended_ = false;
  std::vector<NvtxRange> open_;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_NVTX_RANGES_H_
