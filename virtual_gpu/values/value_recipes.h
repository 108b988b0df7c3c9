// File: value_recipes.h
//
// Fused operators of CUDA's that no single operator of the CPU's computes: each is a sequence of the CPU's here. Used
// where all values are computed.
#ifndef RFINJECT_VIRTUAL_GPU_VALUES_VALUE_RECIPES_H_
#define RFINJECT_VIRTUAL_GPU_VALUES_VALUE_RECIPES_H_

#include <span>
#include <string_view>

#include "virtual_gpu/values/cpu_kernels.h"

namespace rfinject {

// Computes an operator from its arguments, and writes to its results. Returns false where that cannot be done; what
// the results hold is not known then.
using ValueRecipe = bool (*)(const CpuKernels& kernels, std::span<const RawValue> arguments,
                             std::span<const RawValue> results);

// cuDNN's recurrent layers and their backward (recurrent_recipe.cc).
bool RecurrentLayers(const CpuKernels& kernels, std::span<const RawValue> arguments,
                     std::span<const RawValue> results);
bool RecurrentLayersBackward(const CpuKernels& kernels, std::span<const RawValue> arguments,
                             std::span<const RawValue> results);

// `name` is "aten::_fused_rms_norm_backward". Returns null where there is none.
ValueRecipe RecipeFor(std::string_view name);

// The same for operators that the CPU has, and is slow at. Where a shortcut returns false it has written nothing.
ValueRecipe ShortcutFor(std::string_view name);

}  // namespace rfinject

#endif  // RFINJECT_VIRTUAL_GPU_VALUES_VALUE_RECIPES_H_
