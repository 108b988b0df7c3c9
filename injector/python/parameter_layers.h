// File: parameter_layers.h
//
// Which module each parameter belongs to, for the gradients of compiled code. The backward of a compiled module is
// one autograd node, and after it one node for each parameter (AccumulateGrad) keeps or adds up its gradient. Such a
// node knows its parameter.
#ifndef RFINJECT_INJECTOR_PYTHON_PARAMETER_LAYERS_H_
#define RFINJECT_INJECTOR_PYTHON_PARAMETER_LAYERS_H_

#include <cstdint>
#include <vector>

#include "collector/recorder.h"

namespace rfinject {

// A parameter and the layer of the module that has it. Where several modules have it, each may be told.
struct ParameterLayer {
  uintptr_t parameter = 0;  // address of the TensorImpl
  uint32_t layer = 0;
};

// Takes the place of what was told before. Called with the GIL held. May throw std::bad_alloc.
void SetParameterLayers(const std::vector<ParameterLayer>& layers, Recorder& recorder);

// Tells that compiled code runs in `layer`. Any thread.
void NoteCompiledLayer(uint32_t layer) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_PARAMETER_LAYERS_H_
