// File: values.h
//
// Small tensors have their values on the virtual GPU. Its memory is the host's, and no kernel runs there: so when an
// operator has launched its kernels, its CPU kernel computes the same on that memory, where all operands and results
// are small. Loops that end on a loss that is not a number, gradient scalers, argument checks and masks then do what
// they do on a GPU.
//
// Where all values are wanted (--values all), there is no limit: the program then takes as long as on the CPU.
// Operators of CUDA's libraries are computed by others of the CPU's (value_substitutes.h), products of halves as
// products of floats.
//
// Otherwise what comes from a large tensor is not computed: it is zeros, and its memory is noted as not known. Small
// results of such operands are computed as if those were zeros, are not known either, and are made finite, because a
// program that looks for numbers that are not must find none. How random numbers are drawn follows the seed and the
// offset of CUDA's generator, and takes nothing from the CPU's.
#ifndef RFINJECT_VIRTUAL_GPU_VALUES_VALUES_H_
#define RFINJECT_VIRTUAL_GPU_VALUES_VALUES_H_

#include "injector/torch/layouts.h"
#include "injector/torch/operator_calls.h"
#include "injector/torch/symbols.h"

// The one function of librfinject_values.so, which lies beside the virtual GPU's driver and is opened by its path.
//
// Has the values of small tensors computed from now on, or where `every` is true those of all tensors; the program is
// then told of each operator that is not. `listen` is ListenToOperators of the library that watches torch. Returns
// null, or why that cannot be done (a literal). Must be called once at most, in a process that has a virtual GPU.
extern "C" const char* rfinject_virtual_gpu_compute_values(const rfinject::TorchSymbols& symbols,
                                                           const rfinject::TorchLayouts& layouts, bool every,
                                                           decltype(&rfinject::ListenToOperators) listen);

#endif  // RFINJECT_VIRTUAL_GPU_VALUES_VALUES_H_
