// File: bytes.h
//
// The compulsory traffic of one operator: what it would move if every operand were read once and every result written
// once, with nothing left in a cache before or after.
#ifndef RFINJECT_OPERATORS_BYTES_H_
#define RFINJECT_OPERATORS_BYTES_H_

#include <cstdint>

#include "operators/op_call.h"
#include "operators/op_table.h"

namespace rfinject::estimate {

struct Traffic {
  uint64_t read = 0;   // bytes
  uint64_t write = 0;  // bytes
};

// Bytes of `call` under `rule`; saturates at UINT64_MAX.
//  * An operand counts with the elements that lie in memory; elements that a broadcast (a stride of 0) repeats count
//  once.
//  * The same tensor given twice (x*x) is read once. Different parts of one storage (q, k and v of one projection)
//    are different tensors.
//  * In-place: read once, written once. An `out` argument is written only.
Traffic CountBytes(const OpRule& rule, const OpCall& call) noexcept;

// True when everything that the operator returns lies in its first operand's storage, and its name is not that of an
// in-place operator: a view, or a conversion that had nothing to do. Also true when it returns no tensor at all and
// changes none.
bool IsViewOrQuery(const OpCall& call) noexcept;

}  // namespace rfinject::estimate

#endif  // RFINJECT_OPERATORS_BYTES_H_
