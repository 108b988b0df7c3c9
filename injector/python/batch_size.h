// File: batch_size.h
//
// How many samples a call of a model has: which is known from a DataLoader that the program asked, or from an input
// of which only one dimension can be the batch. It is pure.
#ifndef RFINJECT_INJECTOR_PYTHON_BATCH_SIZE_H_
#define RFINJECT_INJECTOR_PYTHON_BATCH_SIZE_H_

#include <cstdint>
#include <span>

namespace rfinject {

// The first tensor among the arguments of a call.
struct FirstInput {
  std::span<const long long> shape;
  bool floating = false;  // its type
  bool direct = false;    // it is an argument itself, and not in a list or another container
};

// Returns the samples of a call, 0 where they are not known. `loader_batch` is the batch size of the DataLoader that
// was asked last, 0 where none was. `sequence_first` says that the model has a layer of torch's whose inputs begin
// with the sequence (batch_first=False).
uint64_t SamplesOfCall(const FirstInput& input, uint64_t loader_batch, bool sequence_first) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_BATCH_SIZE_H_
