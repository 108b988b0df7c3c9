// File: hardware_source.h
//
// The Source that measures on a GPU. This header includes nothing of CUDA.
#ifndef RFINJECT_COLLECTOR_CUPTI_HARDWARE_SOURCE_H_
#define RFINJECT_COLLECTOR_CUPTI_HARDWARE_SOURCE_H_

#include "collector/source.h"

namespace rfinject {

// The hardware source; nullptr when settings.mode is "none", or this process can have no GPU. It starts nothing yet:
// that happens at the end of the first step in which a CUDA context is current.
Source* MakeHardwareSource(const Settings& settings, Recorder& recorder) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_CUPTI_HARDWARE_SOURCE_H_
