// File: commands.h
//
// The verbs. Each takes the arguments after its own name and returns the exit code: 0; 1 bad input; 2 usage; 3 alarms
// under --strict; for `run`, the program's own, 126 or 127. Each verb has a file, which has no logic beyond reading
// options and calling a library.
#ifndef RFINJECT_CLI_CMD_COMMANDS_H_
#define RFINJECT_CLI_CMD_COMMANDS_H_

#include <span>
#include <string>
#include <string_view>

namespace rfinject::cli {

using Arguments = std::span<char* const>;

struct VerbHelp;  // options.h

struct Command {
  std::string_view name;
  std::string_view help;  // one line for `rfinject -h`
  int (*run)(Arguments arguments);
  VerbHelp (*describe)();
};

// All verbs, in the order of the help.
std::span<const Command> AllCommands();

// What `rfinject -h` prints.
std::string HelpText();

int RunProgram(Arguments arguments);
int ReportMain(Arguments arguments);
int ControlMain(Arguments arguments);
int TopMain(Arguments arguments);
int RunsMain(Arguments arguments);
int AdviseMain(Arguments arguments);
int TryMain(Arguments arguments);
int DiffMain(Arguments arguments);
int MergeMain(Arguments arguments);
int ImportMain(Arguments arguments);
int ExportMain(Arguments arguments);
int DumpMain(Arguments arguments);
int GpusMain(Arguments arguments);
int EnvMain(Arguments arguments);
int ExplainMain(Arguments arguments);
int DoctorMain(Arguments arguments);
int CalibrateMain(Arguments arguments);
int HelpMain(Arguments arguments);
int VersionMain(Arguments arguments);
int CompletionMain(Arguments arguments);

VerbHelp RunHelp();
VerbHelp ReportHelp();
VerbHelp ControlHelp();
VerbHelp TopHelp();
VerbHelp RunsHelp();
VerbHelp AdviseHelp();
VerbHelp TryHelp();
VerbHelp DiffHelp();
VerbHelp MergeHelp();
VerbHelp ImportHelp();
VerbHelp ExportHelp();
VerbHelp DumpHelp();
VerbHelp ExplainHelp();
VerbHelp GpusHelp();
VerbHelp EnvHelp();
VerbHelp DoctorHelp();
VerbHelp CalibrateHelp();
VerbHelp HelpHelp();
VerbHelp VersionHelp();
VerbHelp CompletionHelp();

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_COMMANDS_H_
