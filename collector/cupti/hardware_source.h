// File: hardware_source.h
//
// The Source that measures on a GPU. Includes nothing of CUDA.
#ifndef RFINJECT_COLLECTOR_CUPTI_HARDWARE_SOURCE_H_
#define RFINJECT_COLLECTOR_CUPTI_HARDWARE_SOURCE_H_

#include "collector/source.h"

namespace rfinject {

// Whether this process can have a GPU at all: a driver is loaded or its device file exists. Cheap.
bool HardwareMayExist() noexcept;

// The hardware source; nullptr when HardwareMayExist() is false or settings.mode is "none". Starts nothing: that
// happens at the end of the first step in which a CUDA context is current.
Source* MakeHardwareSource(const Settings& settings, Recorder& recorder) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_CUPTI_HARDWARE_SOURCE_H_
