// File: machine.h
//
// Finds the roofs of a GPU from what a trace says about it.
#ifndef RFINJECT_CLI_REPORT_MACHINE_H_
#define RFINJECT_CLI_REPORT_MACHINE_H_

#include "cli/model/roofline.h"
#include "cli/profile/profile.h"
#include "gpus/gpus.h"

namespace rfinject::cli {

// The datasheet roofs of a row of gpus.csv.
Machine MachineOf(const Gpu& gpu);

// The roofs for a run: the GPU estimated on, or the device it ran on. The name is empty where none are known.
Machine MachineFor(const Run& run);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_MACHINE_H_
