// `rfinject completion`: what a shell needs to complete verbs, options and their values.
#include <string>
#include <string_view>

#include "cli/cmd/commands.h"
#include "cli/cmd/completion_scripts.h"
#include "cli/cmd/options.h"
#include "cli/cmd/streams.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kCompletionUsage =
    "rfinject completion bash|zsh|fish\n\n"
    "The script with which a shell completes verbs, options and their values. Packages install it; without one:\n"
    "  source <(rfinject completion bash)             in ~/.bashrc\n"
    "  source <(rfinject completion zsh)              in ~/.zshrc, after compinit\n"
    "  rfinject completion fish | source              in ~/.config/fish/config.fish";

}  // namespace

VerbHelp CompletionHelp() { return {kCompletionUsage, {}, "bash zsh fish"}; }

int CompletionMain(const ParsedOptions& parsed) {
  if (parsed.words.size() != 1) return UsageError("completion", "say for which shell: bash, zsh or fish");
  const std::string_view shell = parsed.words[0];
  if (shell == "bash") {
    Print(BashCompletion());
  } else if (shell == "zsh") {
    Print(ZshCompletion());
  } else if (shell == "fish") {
    Print(FishCompletion());
  } else {
    return UsageError("completion", "'" + std::string(shell) + "': there are bash, zsh and fish");
  }
  return 0;
}

}  // namespace rfinject::cli
