// File: memory.h
//
// How a device's memory went over one step, as a picture: what lay there, in layers of colour by the phase that
// allocated it, over the order of allocations and returns, with the phase that the program was in below.
#ifndef RFINJECT_CLI_PICTURE_MEMORY_H_
#define RFINJECT_CLI_PICTURE_MEMORY_H_

#include "cli/picture/picture.h"
#include "cli/report/facts/memory.h"

namespace rfinject::cli {

// How high the picture of that width is.
Size MemorySize(double width);

// `table` must have points.
Picture LayOutMemory(const MemoryTable& table, Size size);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PICTURE_MEMORY_H_
