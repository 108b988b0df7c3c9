#include "cli/cmd/commands.h"

#include <array>

namespace rfinject::cli {

std::span<const Command> AllCommands() {
  static constexpr std::array kCommands = std::to_array<Command>({
      {"run", "run a program and write traces (the word can be left out)", RunProgram},
      {"report", "traces as table, JSON, CSV, HTML or SVG", ReportMain},
      {"advise", "what to change in the program, and what it would win", AdviseMain},
      {"runs", "the runs that left traces: when, what, on what, how long a step", RunsMain},
      {"diff", "what changed between two runs, GPUs or versions", DiffMain},
      {"merge", "several traces into one", MergeMain},
      {"import", "profiles of Nsight Compute and Nsight Systems into a trace", ImportMain},
      {"dump", "the raw records of a trace as text", DumpMain},
      {"explain", "what an alarm or a word of a report means (explain R005, explain bound)", ExplainMain},
      {"gpus", "the GPUs whose roofs are known", GpusMain},
      {"env", "the variables that run sets, for other launchers", EnvMain},
      {"doctor", "what works here, and the line that mends what does not", DoctorMain},
      {"help", "this text, or a verb's (rfinject help report)", HelpMain},
      {"version", "the version", VersionMain},
  });
  return kCommands;
}

}  // namespace rfinject::cli
