#include "cli/cmd/commands.h"

#include <array>

#include "cli/cmd/options.h"

namespace rfinject::cli {

std::span<const Command> AllCommands() {
  static constexpr std::array kCommands = std::to_array<Command>({
      {"run", "run a program and write traces (the word can be left out)", RunProgram, RunHelp},
      {"report", "traces as table, JSON, CSV, HTML or SVG", ReportMain, ReportHelp},
      {"advise", "what to change in the program, and what it would win", AdviseMain, AdviseHelp},
      {"try", "makes a change in the program as it runs, and says what it wins", TryMain, TryHelp},
      {"runs", "the runs that left traces: when, what, on what, how long a step", RunsMain, RunsHelp},
      {"top", "a job as it runs: step time, roof, layers with most to win, ranks", TopMain, TopHelp},
      {"control", "starts and stops the measuring of a running job", ControlMain, ControlHelp},
      {"diff", "what changed between two runs, GPUs or versions", DiffMain, DiffHelp},
      {"merge", "several traces into one", MergeMain, MergeHelp},
      {"import", "files of Nsight Compute, Nsight Systems or torch.profiler into a trace", ImportMain, ImportHelp},
      {"export", "traces for Perfetto, pprof, SQL or Prometheus", ExportMain, ExportHelp},
      {"dump", "the raw records of a trace as text", DumpMain, DumpHelp},
      {"explain", "what an alarm or a word of a report means (explain R005, explain bound)", ExplainMain,
       ExplainHelp},
      {"gpus", "the GPUs whose roofs are known", GpusMain, GpusHelp},
      {"env", "the variables that run sets, for other launchers", EnvMain, EnvHelp},
      {"doctor", "what works here, and the line that mends what does not", DoctorMain, DoctorHelp},
      {"calibrate", "times this machine's GPU, so that estimates of it are its own", CalibrateMain, CalibrateHelp},
      {"completion", "what bash, zsh and fish complete (source <(rfinject completion bash))", CompletionMain,
       CompletionHelp},
      {"help", "this text, or a verb's (rfinject help report)", HelpMain, HelpHelp},
      {"version", "the version", VersionMain, VersionHelp},
  });
  return kCommands;
}

}  // namespace rfinject::cli
