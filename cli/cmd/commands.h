// File: commands.h
//
// The verbs. Each takes its options and words and returns the exit code: 0; 1 bad input; 2 usage; 3 alarms under
// --strict; for `run`, the program's own, 126 or 127. Each verb has a file, which has no logic beyond reading options
// and calling a library.
#ifndef RFINJECT_CLI_CMD_COMMANDS_H_
#define RFINJECT_CLI_CMD_COMMANDS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rfinject::cli {

using Arguments = std::span<char* const>;

struct ParsedOptions;  // options.h
struct VerbHelp;

// What verbs are for, in the order of the help.
enum class VerbGroup : uint8_t { kRun, kLook, kCompare, kConvert, kPlan, kMachine };
inline constexpr std::string_view kVerbGroups[] = {"run", "look", "compare", "convert", "plan", "machine"};

struct Command {
  VerbGroup group;
  std::string_view name;
  std::string_view help;  // one line for `rfinject -h`
  int (*run)(const ParsedOptions& parsed);
  VerbHelp (*describe)();
};

// All verbs, group by group, in the order of the help.
std::span<const Command> AllCommands();

// The verb of this name; nullptr where there is none.
const Command* FindCommand(std::string_view name);

std::vector<std::string_view> VerbNames();

// Reads the arguments after the name of `verb`, which must be one, and carries it out. Returns the exit code.
int RunVerb(std::string_view verb, Arguments arguments);

// What `rfinject -h` prints.
std::string HelpText();

int RunProgram(const ParsedOptions& parsed);
int ReportMain(const ParsedOptions& parsed);
int AttachMain(const ParsedOptions& parsed);
int DetachMain(const ParsedOptions& parsed);
int ControlMain(const ParsedOptions& parsed);
int TopMain(const ParsedOptions& parsed);
int RunsMain(const ParsedOptions& parsed);
int AdviseMain(const ParsedOptions& parsed);
int TryMain(const ParsedOptions& parsed);
int DiffMain(const ParsedOptions& parsed);
int MergeMain(const ParsedOptions& parsed);
int ImportMain(const ParsedOptions& parsed);
int ExportMain(const ParsedOptions& parsed);
int DumpMain(const ParsedOptions& parsed);
int GpusMain(const ParsedOptions& parsed);
int EnvMain(const ParsedOptions& parsed);
int ExplainMain(const ParsedOptions& parsed);
int DoctorMain(const ParsedOptions& parsed);
int CalibrateMain(const ParsedOptions& parsed);
int HelpMain(const ParsedOptions& parsed);
int VersionMain(const ParsedOptions& parsed);
int CompletionMain(const ParsedOptions& parsed);

VerbHelp RunHelp();
VerbHelp ReportHelp();
VerbHelp AttachHelp();
VerbHelp DetachHelp();
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
