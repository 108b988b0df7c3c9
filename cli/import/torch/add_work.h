// File: add_work.h
//
// Puts what operators had to do (work.h) beside the times of their kernels, and says for which it is not known.
#ifndef RFINJECT_CLI_IMPORT_TORCH_ADD_WORK_H_
#define RFINJECT_CLI_IMPORT_TORCH_ADD_WORK_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/import/torch/work.h"
#include "cli/model/call_parts.h"
#include "cli/profile/profile.h"
#include "gpus/gpus.h"

namespace rfinject::cli {

// What is known of the GPU that a recording is of.
struct WorkedGpu {
  const Gpu* chip = nullptr;   // a board with its chip; null: not known
  const Gpu* board = nullptr;  // itself; null: not known
};

// Adds a part of an operator's work to the launch of one of its kernels. A kernel without work has zeros, for every
// launch has a sample, so that its mean is that of its launches. The unit is that of the operands' type where the
// GPU has it; where a type has several units, the kernel's name says which. Bytes that the board's memory cannot have
// moved in the kernel's time lay in a cache.
void AddWork(const OperatorWork& work, const WorkPart& part, const KernelOfCall& kernel, const WorkedGpu& gpu,
             LaunchStats* stats);

// Takes the zeros from keys none of whose launches has work: what such a kernel moves, no operator's shapes tell, and
// nothing counted it.
void ForgetIdleWork(Run* run);

// Says what the metrics that AddWork() adds to are, and that of times.
void DefineWork(Profile* profile);

// What is said of FLOP and bytes that AddWork() added.
inline constexpr std::string_view kWorkOfShapes =
    "times are those of the recording; FLOP and bytes are computed from the shapes in it, with each operand moved once, "
    "at most as fast as memory is: they are what the model asks for, not what the GPU counted";

// The GPU's time of operators whose work is not known, by operator and reason.
class LackingWork {
 public:
  void Add(const OperatorWork& work, uint64_t ns) { ns_[{work.op, work.lacks}] += ns; }
  // "no FLOP and no bytes for 3.2 % of the GPU's time. aten::sort: there is no rule for it (2 %)"; empty where all is
  // known.
  std::string Text(uint64_t total_ns) const;

 private:
  std::map<std::pair<std::string, std::string_view>, uint64_t> ns_;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_ADD_WORK_H_
