// File: work.h
//
// What the operators of a recording had to compute and to move, by the table of operators that estimates use.
#ifndef RFINJECT_CLI_IMPORT_TORCH_WORK_H_
#define RFINJECT_CLI_IMPORT_TORCH_WORK_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "cli/import/torch/call_tree.h"
#include "cli/import/torch/operands.h"
#include "cli/import/torch/recording.h"
#include "cli/model/call_parts.h"
#include "operators/flop.h"

namespace rfinject::cli {

struct OperatorWork {
  std::string op;          // the operator, by its name of today
  std::string signature;   // types and shapes of its operands; empty where they are not known
  std::string_view lacks;  // why there are no FLOP and bytes; empty where there are
  estimate::FlopCount flop;
  estimate::Unit unit{};  // of the products
  DType type = DType::kOther;
  uint64_t bytes = 0;  // compulsory
  bool given = false;  // FLOP and bytes are what the file says, and not of a rule
  CallShape shape;     // but for `multiplies`, which FLOP say
  CallShape Shape() const {
    CallShape whole = shape;
    whole.multiplies = flop.matrix > 0;
    return whole;
  }
};

// Answers for one operator after the other. Each distinct operator is looked at once.
class WorkTable {
 public:
  WorkTable(const TorchRecording& recording, const TorchWindow& window, const CallTree& tree);

  // The work of the operator in span `span`. The reference stays valid.
  const OperatorWork& Of(uint32_t span);

 private:
  OperatorWork Make(uint32_t span, const std::vector<int64_t>& gradient, const std::vector<int64_t>& next) const;
  RecordedCall CallOf(uint32_t span) const;
  std::vector<int64_t> ShapeOfGradient(uint32_t span) const;
  std::vector<int64_t> ShapeBehind(uint32_t span, const std::vector<int64_t>& wanted) const;
  std::vector<int64_t> FirstShape(uint32_t span) const;

  const TorchRecording& recording_;
  const TorchWindow& window_;
  const CallTree& tree_;
  DType list_type_;
  std::vector<std::tuple<int64_t, int64_t, uint32_t>> gradients_;  // sequence, start, span; ascending
  std::vector<uint32_t> position_;                                 // of each span in CallTree::order
  // By name, operands and, of operators that ran inside of one that says more, that one's operands.
  using Key = std::tuple<uint32_t, uint32_t, uint32_t>;
  std::map<Key, bool> needs_seen_;
  std::map<std::tuple<Key, std::vector<int64_t>, std::vector<int64_t>>, OperatorWork> works_;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_WORK_H_
