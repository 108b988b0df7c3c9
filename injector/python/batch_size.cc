#include "injector/python/batch_size.h"

namespace rfinject {

uint64_t SamplesOfCall(const FirstInput& input, uint64_t loader_batch, bool sequence_first) noexcept {
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
