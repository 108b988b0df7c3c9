#include "cli/cmd/commands.h"

#include <algorithm>
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

const Command* FindCommand(std::string_view name) {
  const std::span<const Command> all = AllCommands();
  const auto found = std::find_if(all.begin(), all.end(), [name](const Command& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string_view> VerbNames() {
  std::vector<std::string_view> names;
  for (const Command& command : AllCommands()) names.push_back(command.name);
  return names;
}

int RunVerb(std::string_view verb, Arguments arguments) {
  const Command& command = *FindCommand(verb);
  ParsedOptions parsed;
  if (const auto code = ParseOptions(verb, command.describe(), arguments, &parsed)) return *code;
  return command.run(parsed);
}

}  // namespace rfinject::cli
