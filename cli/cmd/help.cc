// `rfinject help` and `rfinject version`, which `-h` and `--version` are, too.
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/manual.h"
#include "cli/cmd/options.h"
#include "cli/cmd/streams.h"
#include "proto/wire/framing.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kHelpUsage =
    "rfinject help [VERB]\n\n"
    "What rfinject can do, or what VERB understands.";

}  // namespace

std::string HelpText() {
  std::string text =
      "How far is each layer of a PyTorch job from what the GPU could do, and why?\n\n"
      "  rfinject doctor                           what works on this machine\n"
      "  rfinject [options] PROGRAM [ARGS...]      runs the program, unmodified\n"
      "  rfinject report                           the latest run on one screen\n"
      "  rfinject advise                           what to change first\n"
      "  rfinject diff BEFORE AFTER                whether it helped\n\n"
      "All verbs (rfinject VERB -h tells more):\n";
  const Command* before = nullptr;
  for (const Command& command : AllCommands()) {
    const bool begins = before == nullptr || before->group != command.group;
    const std::string_view group = begins ? kVerbGroups[static_cast<size_t>(command.group)] : std::string_view();
    absl::StrAppendFormat(&text, "  %-8s %-10s %s\n", std::string(group), std::string(command.name),
                          std::string(command.help));
    before = &command;
  }
  return text + "\n  -h, --help       this text\n      --version    the version\n";
}

VerbHelp HelpHelp() {
  return {kHelpUsage,
          {{"format", 0, "FORMAT", "text (default), or man, the manual page, for `man -l` to show", "text man"}},
          ChoicesOf(VerbNames())};
}

int HelpMain(const ParsedOptions& parsed) {
  const std::string format = parsed.Value("format", "text");
  if (format != "text" && format != "man") {
    return UsageError("help", "--format " + format + ": there are text and man");
  }
  if (parsed.words.size() > 1) return UsageError("help", "one verb is enough");
  if (format == "man") {
    if (!parsed.words.empty()) return UsageError("help", "the manual page is about all verbs; name none");
    Print(ManualPage(RFINJECT_VERSION));
    return 0;
  }
  if (parsed.words.empty()) {
    Print(HelpText());
    return 0;
  }
  const std::string& wanted = parsed.words[0];
  if (const Command* const command = FindCommand(wanted)) {
    Print(HelpOf(command->describe()));
    return 0;
  }
  std::string text = "there is no verb '" + wanted + "'";
  if (const std::string_view nearest = Nearest(wanted, VerbNames()); !nearest.empty()) {
    text += "; did you mean '" + std::string(nearest) + "'?";
  }
  return UsageError("help", text);
}

VerbHelp VersionHelp() { return {"rfinject version\n\nThe version of rfinject and of its trace format.", {}}; }

int VersionMain(const ParsedOptions& parsed) {
  if (!parsed.words.empty()) return UsageError("version", "it takes no words");
  Print(
      absl::StrFormat("rfinject %s, trace format %d.%d\n", RFINJECT_VERSION, wire::kFormatMajor, wire::kFormatMinor));
  return 0;
}

}  // namespace rfinject::cli
