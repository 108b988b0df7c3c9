// File: time_order.h
//
// The times of a key's launches in the order in which a recording has them, as sums of equal pieces: two recordings
// with the same launches are compared piece by piece (cli/report/compare/in_order.h). They are the step sums of
// kMetricTimeOrder, a piece's number in the place of a step's.
#ifndef RFINJECT_CLI_PROFILE_TIME_ORDER_H_
#define RFINJECT_CLI_PROFILE_TIME_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cli/profile/profile.h"

namespace rfinject::cli {

// So many pieces of a key at most; of fewer launches each is one.
inline constexpr size_t kMostPieces = 32;

// How many of `launches` are in each piece, a power of two; the last piece may have fewer.
uint64_t LengthOfPieces(uint64_t launches);

// Adds the time of a key's next launch, of which `before` came before it.
void AddInOrder(uint64_t before, uint64_t ns, std::vector<StepSum>* pieces);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PROFILE_TIME_ORDER_H_
