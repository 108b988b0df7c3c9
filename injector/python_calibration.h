// File: python_calibration.h
//
// Calibration (torch/calibration.h) by a script that the interpreter of this process runs.
#ifndef RFINJECT_INJECTOR_PYTHON_CALIBRATION_H_
#define RFINJECT_INJECTOR_PYTHON_CALIBRATION_H_

#include "injector/torch/calibration.h"
#include "injector/torch/symbols.h"

namespace rfinject {

// Is a CalibrateFunction. It must be called with the GIL held, when torch is imported. On a daemon thread it may be
// unwound like any Python code; then nothing of it stays behind.
CalibrationResult CalibrateByPython(const TorchSymbols& symbols, bool operands);

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_CALIBRATION_H_
