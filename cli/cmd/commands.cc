#include "cli/cmd/commands.h"

#include <algorithm>
#include <array>

#include "cli/cmd/options.h"

namespace rfinject::cli {

std::span<const Command> AllCommands() {
  using enum VerbGroup;
  static constexpr std::array kCommands = std::to_array<Command>({
      {kRun, "run", "runs a program, traced (the word can be left out)", RunProgram, RunHelp},
      {kRun, "top", "a job as it runs: steps, roof, what is to win, ranks", TopMain, TopHelp},
      {kRun, "attach", "measures a program that runs already", AttachMain, AttachHelp},
      {kRun, "detach", "ends that; the program runs as before", DetachMain, DetachHelp},
      {kRun, "control", "starts and stops measuring in a running job", ControlMain, ControlHelp},
      {kRun, "env", "the variables that run sets, for other launchers", EnvMain, EnvHelp},
      {kLook, "report", "how far each layer is from the roof; also JSON, CSV, HTML", ReportMain, ReportHelp},
      {kLook, "advise", "what to change in the program, and what it would win", AdviseMain, AdviseHelp},
      {kLook, "runs", "the runs that left traces, and how long a step took", RunsMain, RunsHelp},
      {kLook, "explain", "what a word, a column or an alarm means (explain bound)", ExplainMain, ExplainHelp},
      {kCompare, "diff", "what changed between two runs, GPUs or versions", DiffMain, DiffHelp},
      {kCompare, "try", "makes a change as the program runs, and says what it wins", TryMain, TryHelp},
      {kConvert, "import", "files of ncu, nsys and torch.profiler into a trace", ImportMain, ImportHelp},
      {kConvert, "export", "traces for Perfetto, pprof, SQL or Prometheus", ExportMain, ExportHelp},
      {kConvert, "merge", "several traces into one", MergeMain, MergeHelp},
      {kConvert, "dump", "the raw records of a trace as text", DumpMain, DumpHelp},
      {kPlan, "gpus", "the GPUs whose roofs are known, for --estimate GPU", GpusMain, GpusHelp},
      {kPlan, "calibrate", "times this GPU, so that estimates of it are its own", CalibrateMain, CalibrateHelp},
      {kMachine, "doctor", "what works here, and the line that mends what does not", DoctorMain, DoctorHelp},
      {kMachine, "completion", "what bash, zsh and fish complete", CompletionMain, CompletionHelp},
      {kMachine, "help", "this text, or a verb's (rfinject help report)", HelpMain, HelpHelp},
      {kMachine, "version", "the version", VersionMain, VersionHelp},
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
