// File: doctor_gpu.h
//
// Finds what keeps us from measuring on this machine's GPUs, as far as that can be told from outside a CUDA process.
// The sentences, and the lines that mend it, are those of proto/wire/conditions.h, which the library writes into
// traces.
#ifndef RFINJECT_CLI_CMD_DOCTOR_GPU_H_
#define RFINJECT_CLI_CMD_DOCTOR_GPU_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "proto/wire/conditions.h"

namespace rfinject::cli {

// The machine as doctor sees it; a test makes its own.
struct MachineView {
  std::string root;  // what every absolute path is put behind; empty: the machine itself
  std::function<const char*(const char*)> environment;  // getenv
  // Standard output of a command that ended with 0; nullopt otherwise.
  std::function<std::optional<std::string>(const std::vector<std::string>&)> run;
};

struct GpuFinding {
  bool good = false;
  std::string what;  // one word: "driver", "counters"
  std::string text;
  std::string remedy;
  std::optional<ConditionId> condition;  // none: it is good, or it is no condition of measuring
};

// Examines the driver, the GPUs, and every condition that shows in files, processes or nvidia-smi. When there is no
// driver, there is one finding.
std::vector<GpuFinding> ExamineGpus(const MachineView& machine);

// The libcupti that a program of this machine would get: the first that exists of `candidates` (absolute paths); the
// Perfworks library beside it; and whether both know range profiling and the machine's GPUs.
std::vector<GpuFinding> ExamineCupti(const MachineView& machine, const std::vector<std::string>& candidates);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_DOCTOR_GPU_H_
