// File: gpus_view.h
//
// The table of GPUs whose roofs are known: `rfinject gpus`.
#ifndef RFINJECT_CLI_VIEW_GPUS_VIEW_H_
#define RFINJECT_CLI_VIEW_GPUS_VIEW_H_

#include <vector>

#include "cli/view/document.h"
#include "gpus/gpus.h"

namespace rfinject::cli {

// Schema rfinject.gpus/1. Peaks are FLOP/s of dense work; where a GPU lacks a precision there is nothing.
Document GpuDocument(std::vector<const Gpu*> gpus);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_VIEW_GPUS_VIEW_H_
