// File: value_results.h
//
// Gives an operator's results on the virtual GPU the values that a CPU kernel has computed, and notes which memory
// has its value.
#ifndef RFINJECT_VIRTUAL_GPU_VALUES_VALUE_RESULTS_H_
#define RFINJECT_VIRTUAL_GPU_VALUES_VALUE_RESULTS_H_

#include <cstdint>
#include <span>

#include "virtual_gpu/values/cpu_kernels.h"

namespace rfinject {

// Writes the kernel's results to where the operator's own are. Where `rows` is true, a result may have fewer rows
// (third dimension) than the operator's own, whose other rows stay as they are. Returns false where the two do not
// fit.
bool DeliverResults(const CpuKernels& kernels, const RawVector& from, std::span<const RawValue> to, bool partial);

// Notes that a tensor was computed, from what is known or from other values, which are made finite.
void NoteComputed(const CpuKernels& kernels, const RawValue& tensor, bool known);

// Notes that an operator would have changed the tensor, and was not computed.
void NoteChanged(const CpuKernels& kernels, const RawValue& tensor);

// Sets all elements of a tensor of truth values of at most `most` elements, whose values stay not known.
void SayAllAreTrue(const CpuKernels& kernels, const RawValue& tensor, uint64_t most);

}  // namespace rfinject

#endif  // RFINJECT_VIRTUAL_GPU_VALUES_VALUE_RESULTS_H_
