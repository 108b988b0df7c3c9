// File: doctor_ask.h
//
// What a user without permission for counters asks the administrator for, so that it can be sent as it is.
#ifndef RFINJECT_CLI_CMD_DOCTOR_ASK_H_
#define RFINJECT_CLI_CMD_DOCTOR_ASK_H_

#include <span>
#include <string>

#include "cli/cmd/doctor_gpu.h"

namespace rfinject::cli {

// Lines of at most 80 columns; empty where no finding says that permission is lacking (ConditionId::kPermission).
// What holds for the place that the program runs in, as the environment has it, comes first.
std::string WhatToAsk(const MachineView& machine, std::span<const GpuFinding> findings);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_DOCTOR_ASK_H_
