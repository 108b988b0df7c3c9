#include <string>

#include "absl/strings/str_replace.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/launch.h"
#include "cli/cmd/options.h"
#include "cli/text/markup.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kEnvUsage =
    "rfinject env [--shell|--docker|--apptainer|--slurm|--json] [options]\n\n"
    "The variables that make a program run under rfinject, for launchers that we are not. Changes nothing.\n"
    "  eval \"$(rfinject env)\"                      this shell and all that it starts\n"
    "  docker run $(rfinject env --docker) IMAGE    a container\n"
    "  srun $(rfinject env --slurm) python train.py";

// Puts a text into single quotes where a shell would see more than one word.
std::string Quoted(const std::string& text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:%@,}";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  return "'" + absl::StrReplaceAll(text, {{"'", "'\\''"}}) + "'";
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

void PrintShell(const Pairs& pairs) {
  for (const auto& [name, value] : pairs) {
    if (name == "LD_PRELOAD") {
      Print("export LD_PRELOAD=" + Quoted(value) + "\"${LD_PRELOAD:+:$LD_PRELOAD}\"\n");
    } else if (name == "CUDA_INJECTION64_PATH") {
      Print("[ -n \"${CUDA_INJECTION64_PATH:-}\" ] || export CUDA_INJECTION64_PATH=" + Quoted(value) + "\n");
    } else {
      Print("export " + name + "=" + Quoted(value) + "\n");
    }
  }
}

std::string Folder(const std::string& path) { return path.substr(0, path.rfind('/')); }

// A word of a command line.
void Word(std::string& line, const std::string& word) { line += (line.empty() ? "" : " ") + word; }

}  // namespace

VerbHelp EnvHelp() {
  VerbHelp help = {kEnvUsage,
                   {{"shell", 0, "", "export lines for sh (default)"},
                    {"docker", 0, "", "options of docker run and podman run"},
                    {"apptainer", 0, "", "options of apptainer exec"},
                    {"slurm", 0, "", "options of srun and sbatch"},
                    {"json", 0, "", "an object"}}};
  help.options.insert(help.options.end(), LaunchOptions().begin(), LaunchOptions().end());
  return help;
}

int EnvMain(const ParsedOptions& parsed) {
  if (!parsed.words.empty()) return UsageError("env", "'" + parsed.words[0] + "' is not an option");
  std::string form = "shell";
  int forms = 0;
  for (const char* name : {"shell", "docker", "apptainer", "slurm", "json"}) {
    if (!parsed.Has(name)) continue;
    form = name;
    ++forms;
  }
  if (forms > 1) return UsageError("env", "one of --shell, --docker, --apptainer, --slurm and --json is enough");
  absl::StatusOr<LaunchVariables> made = MakeVariables(parsed);
  if (!made.ok()) return UsageError("env", std::string(made.status().message()));
  LaunchVariables& variables = *made;
  if (!variables.note.empty()) Complain(variables.note);
  if (!Succeeded(AddLibrary(&variables))) return 2;
  Pairs pairs = {{"LD_PRELOAD", variables.library}, {"CUDA_INJECTION64_PATH", variables.library}};
  std::string output, pattern;
  for (const auto& [name, value] : variables.settings) {
    if (name == "RFINJECT_OUTPUT") {
      pattern = value;
      output = PatternFolder(value);
    }
    pairs.emplace_back(name, value);
  }
  if (!output.empty() && form != "json") {
    absl::Status prepared = PrepareFolder(output);
    if (prepared.ok()) prepared = CheckOutputFile(pattern);
    if (!prepared.ok()) {
      Complain("the output cannot be written: " + std::string(prepared.message()));
      return 2;
    }
  }

  if (form == "shell") {
    PrintShell(pairs);
    return 0;
  }
  std::string line;
  if (form == "json") {
    line = "{";
    for (const auto& [name, value] : pairs) {
      line += (line.size() > 1 ? ", " : "") + JsonText(name) + ": " + JsonText(value);
    }
    line += '}';
  } else if (form == "docker") {
    // The library and the traces live at the same paths inside; counters need the capability.
    const std::string library = Folder(variables.library);
    Word(line, "-v " + Quoted(library + ":" + library + ":ro"));
    if (!output.empty()) Word(line, "-v " + Quoted(output + ":" + output));
    if (!parsed.Has("estimate")) Word(line, "--cap-add=SYS_ADMIN");
    for (const auto& [name, value] : pairs) Word(line, "-e " + Quoted(name + "=" + value));
  } else if (form == "apptainer") {
    Word(line, "--bind " + Quoted(Folder(variables.library)));
    if (!output.empty()) Word(line, "--bind " + Quoted(output));
    for (const auto& [name, value] : pairs) Word(line, "--env " + Quoted(name + "=" + value));
  } else {
    // srun takes one list, in which a comma ends a value.
    std::string list = "ALL";
    for (const auto& [name, value] : pairs) {
      if (value.find(',') != std::string::npos) {
        return UsageError("env", "--slurm: the value of " + name + " has a comma, which srun's --export cannot hold");
      }
      list += "," + name + "=" + value;
    }
    Word(line, Quoted("--export=" + list));
  }
  Print(line + "\n");
  return 0;
}

}  // namespace rfinject::cli
