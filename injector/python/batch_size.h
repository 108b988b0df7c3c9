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
inline uint64_t SamplesOfCall(const FirstInput& input, uint64_t loader_batch, bool sequence_first) noexcept {
  if (input.shape.empty() || input.shape[0] <= 0) return 0;
  const auto leading = static_cast<uint64_t>(input.shape[0]);
  // The last batch of a data set may be smaller. In a container there may be single pictures, which begin with their
  // channels.
  if (loader_batch != 0 && (leading == loader_batch || (input.direct && leading < loader_batch && !sequence_first))) {
    return leading;
  }
  if (!input.direct) return 0;
  switch (input.shape.size()) {
    case 2:
      // Features of samples; or tokens, which may lie in either order.
      return input.floating || !sequence_first ? leading : 0;
    case 4:
    case 5:
      return input.floating ? leading : 0;  // pictures, and films
    default:
      return 0;  // a single picture, or sequences of either order
  }
}

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_BATCH_SIZE_H_
