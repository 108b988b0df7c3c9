// File: operands.h
//
// Makes an operator's call, as the cost model wants it, of what a recording says of it: "Input Dims", "Input type",
// and, where the dialect has them, "Input Strides" and "Concrete Inputs".
#ifndef RFINJECT_CLI_IMPORT_TORCH_OPERANDS_H_
#define RFINJECT_CLI_IMPORT_TORCH_OPERANDS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "operators/op_call.h"

namespace rfinject::cli {

// A call with the arrays that it refers to.
class RecordedCall {
 public:
  // `text` is TorchRecording::operands' for this call. A list of tensors has no type in a recording; `list_type` is
  // taken. A call whose text is no such thing has no arguments.
  RecordedCall(std::string name, std::string_view text, DType list_type);
  // A call of another name with tensors of this one.
  RecordedCall(std::string name, const std::vector<TensorView>& tensors);

  // Valid until the call is changed.
  OpCall call() const;
  const std::string& name() const { return name_; }

  // The arguments.
  size_t size() const { return inputs_.size(); }
  const Argument& operator[](size_t index) const { return inputs_[index]; }
  // The tensor at `index`; null where there is none.
  const TensorView* Tensor(size_t index) const;
  // Whether the first argument, what an operator works on, is a tensor, or a list of them, that the file tells of.
  bool HasFirst() const;
  // The numbers at `index`: of a list, or the one that stands there. Empty where the file does not say them.
  std::vector<int64_t> Integers(size_t index) const;
  // Says of an argument whose value the file has not that it is this.
  void AssumeBool(size_t index, bool value);

  // Whether the text says what was returned, as that of an execution trace does; then the results are there.
  bool knows_results() const { return knows_results_; }

  // Appends a result.
  void AddResult(const TensorView& tensor);
  void AddNoResult();  // one that was not asked for

 private:
  void AddTensor(Argument* argument, const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                 std::string_view type);

  std::string name_;
  std::vector<Argument> inputs_, outputs_;
  std::vector<TensorView> tensors_;
  std::vector<int64_t> ints_;
  bool knows_results_ = false;
};

// A tensor that lies in memory of its own. Of more than kMaxRank dimensions the last ones are folded into one.
TensorView TensorOf(DType type, const std::vector<int64_t>& shape);

// "float", "c10::BFloat16", "long int": the type of a tensor of torch's name; kOther for every other word. `bytes` is
// set to an element's.
DType DTypeOfName(std::string_view name, uint64_t* bytes);
// torch's name of a type that recordings have: "c10::BFloat16" of kBFloat16.
std::string_view NameOfDType(DType type);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_OPERANDS_H_
