// File: reduce.h
//
// The arithmetic of collectives, for the few values that are known.
#ifndef RFINJECT_VIRTUAL_GPU_LIBRARIES_REDUCE_H_
#define RFINJECT_VIRTUAL_GPU_LIBRARIES_REDUCE_H_

#include <nccl.h>
#include <stddef.h>

namespace rfinject::virtual_gpu {

// The size of an element.
size_t Bytes(ncclDataType_t type);

// into[i] = into[i] (operation) other[i], for `count` elements. ncclAvg adds; Average divides at the end. Types of
// one byte that are no integers are left as they are.
void Reduce(ncclRedOp_t operation, ncclDataType_t type, size_t count, void* into, const void* other);
void Average(ncclDataType_t type, size_t count, int ranks, void* values);

}  // namespace rfinject::virtual_gpu

#endif  // RFINJECT_VIRTUAL_GPU_LIBRARIES_REDUCE_H_
