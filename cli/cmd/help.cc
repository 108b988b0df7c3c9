// `rfinject help` and `rfinject version`, which `-h` and `--version` are, too.
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/options.h"
#include "cli/cmd/streams.h"
#include "proto/wire/framing.h"

namespace rfinject::cli {

std::string HelpText() {
  std::string text =
      "How far is each layer of a PyTorch training job from what the GPU could do, and why?\n\n"
      "  rfinject [options] PROGRAM [ARGS...]      run an unmodified program and write traces\n"
      "  rfinject report                           see the latest run's\n\n"
      "Verbs (rfinject VERB -h tells more):\n";
  for (const Command& command : AllCommands()) {
    absl::StrAppendFormat(&text, "  %-8s %s\n", std::string(command.name), std::string(command.help));
  }
  return text + "\n  -h, --help     this text\n      --version  the version\n";
}

int HelpMain(Arguments arguments) {
  if (arguments.size() > 1) return UsageError("help", "one verb is enough");
  if (arguments.empty() || std::string_view(arguments[0]).starts_with('-')) {
    Print(HelpText());
    return 0;
  }
  const std::string_view wanted = arguments[0];
  std::vector<std::string_view> verbs;
  for (const Command& command : AllCommands()) {
    verbs.push_back(command.name);
    if (command.name != wanted || command.run == HelpMain) continue;
    char option[] = "-h";
    char* const words[] = {option};
    return command.run(Arguments(words, 1));
  }
  if (wanted == "help") return HelpMain({});
  std::string text = "there is no verb '" + std::string(wanted) + "'";
  if (const std::string_view nearest = Nearest(wanted, verbs); !nearest.empty()) {
    text += "; did you mean '" + std::string(nearest) + "'?";
  }
  return UsageError("help", text);
}

int VersionMain(Arguments) {
  Print(
      absl::StrFormat("rfinject %s, trace format %d.%d\n", RFINJECT_VERSION, wire::kFormatMajor, wire::kFormatMinor));
  return 0;
}

}  // namespace rfinject::cli
