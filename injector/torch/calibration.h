// File: calibration.h
//
// Learns the memory layouts of the torch in this process by running a few tiny CPU operators whose operands, sequence
// numbers and autograd nodes are known, and looking for those in memory.
//
// The program must not notice. No backward pass is run, because the autograd engine starts a thread per GPU at its
// first one, which initialises CUDA and makes a later fork() unusable: BACKWARD events come from calling an autograd
// node directly. Only this thread's callbacks see the calibration. No random number is drawn, grad mode is restored,
// types and devices are given explicitly so that defaults do not matter. What remains is that this thread's sequence
// number is a few dozen higher, which only a profiler's output shows.
#ifndef RFINJECT_INJECTOR_TORCH_CALIBRATION_H_
#define RFINJECT_INJECTOR_TORCH_CALIBRATION_H_

#include <string>

#include "injector/torch/layouts.h"
#include "injector/torch/symbols.h"

namespace rfinject {

struct CalibrationResult {
  TorchLayouts layouts;
  bool node_names = false;  // an autograd node's class can be read from its virtual table
  std::string missing;      // what was not found, comma separated
};

// A function that calibrates. `operands` says whether to learn TensorImpl and IValue, too (1 ms more).
using CalibrateFunction = CalibrationResult (*)(const TorchSymbols& symbols, bool operands);

// Calibrates in a C++ program without Python; it finds nothing about BACKWARD scopes. Threads that run operators
// meanwhile are left alone.
CalibrationResult CalibrateNative(const TorchSymbols& symbols, bool operands);

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_CALIBRATION_H_
