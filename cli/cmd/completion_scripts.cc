#include "cli/cmd/completion_scripts.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/options.h"
#include "gpus/gpus.h"

namespace rfinject::cli {
namespace {

// The verb that a command line without one has: `rfinject PROGRAM` is `rfinject run PROGRAM`.
constexpr std::string_view kImplied = "run";

// What may stand for `choices`, as words.
std::string WordsOf(std::string_view choices) {
  if (choices != kGpus) return std::string(choices);
  std::vector<std::string_view> names;
  for (const Gpu& gpu : AllGpus()) {
    if (HasEstimates(gpu)) names.push_back(gpu.name);
  }
  return std::string(ChoicesOf(names));
}

std::vector<Option> OptionsOf(const Command& command) {
  std::vector<Option> options = command.describe().options;
  options.push_back(kHelpOption);
  return options;
}

// "--output" and "-o".
std::vector<std::string> NamesOf(const Option& option) {
  std::vector<std::string> names = {"--" + std::string(option.name)};
  if (option.letter != 0) names.push_back(std::string("-") + option.letter);
  return names;
}

std::string SingleQuoted(const std::string& text) { return "'" + absl::StrReplaceAll(text, {{"'", "'\\''"}}) + "'"; }

// The first clause of a help, on one line: what there is room for beside an offer.
std::string Brief(std::string_view help) {
  size_t end = help.size();
  for (const std::string_view stop : {"; ", ": ", ". ", " (", ", or", ";\n", ":\n", ".\n"}) {
    end = std::min(end, help.find(stop));
  }
  return absl::StrReplaceAll(std::string(help.substr(0, end)), {{"\n", " "}});
}

// Reads words as bash has split them, and fills COMPREPLY. The functions that it calls come from the table.
constexpr std::string_view kBash = R"bash(
# Fills COMPREPLY with what of $1, words or a kind of them, begins with $2.
_rfinject_offer() {
  case $1 in
    '*files*')
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$2")
      ;;
    '*programs*')
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -c -- "$2"; compgen -f -- "$2")
      ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2") ;;
  esac
}

_rfinject() {
  # "--by=layer" comes as the words "--by", "=" and "layer".
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} index=1 name
  COMPREPLY=()
  if [[ $word == '=' ]]; then
    word=
  elif [[ $before == '=' ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  local verb=$_rfinject_implied
  if ((COMP_CWORD > 1)) && [[ " $_rfinject_verbs " == *" ${COMP_WORDS[1]} "* ]]; then
    verb=${COMP_WORDS[1]}
    index=2
  fi
  local valued=" $(_rfinject_valued "$verb") "
  if [[ $verb == "$_rfinject_implied" ]]; then
    # What follows the program is the program's.
    for (( ; index < COMP_CWORD; ++index)); do
      name=${COMP_WORDS[index]}
      if [[ $name == '--' ]]; then
        index=$((index + 1))
        break
      elif [[ $name != -* || $name == '-' ]]; then
        break
      elif [[ ${COMP_WORDS[index + 1]} == '=' ]]; then
        index=$((index + 2))
      elif [[ $valued == *" $name "* ]]; then
        index=$((index + 1))
      fi
    done
    if ((index < COMP_CWORD)); then
      if declare -F _command_offset >/dev/null; then
        _command_offset "$index"
      else
        _rfinject_offer '*files*' "$word"
      fi
      return
    fi
  fi
  if [[ $valued == *" $before "* ]]; then
    _rfinject_offer "$(_rfinject_values "$verb" "$before")" "$word"
  elif [[ $word == -* ]]; then
    name=
    ((COMP_CWORD == 1)) && name=--version
    _rfinject_offer "$(_rfinject_options "$verb") $name" "$word"
  elif ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "$_rfinject_verbs" -- "$word"; [[ -z $word ]] || compgen -c -- "$word")
  else
    _rfinject_offer "$(_rfinject_values "$verb" '')" "$word"
  fi
}
complete -F _rfinject rfinject
)bash";

constexpr std::string_view kZsh = R"zsh(
_rfinject() {
  local verb=$_rfinject_implied
  if (( CURRENT > 2 )) && (( ${_rfinject_verbs[(I)${words[2]}:*]} )); then
    verb=${words[2]}
    shift words
    (( CURRENT-- ))
  elif (( CURRENT == 2 )) && [[ ${words[2]} != -* ]]; then
    _describe -t verbs verb _rfinject_verbs
    [[ -z ${words[2]} ]] || _command_names -e
    return
  fi
  _rfinject_verb $verb
}

# The first call of a file that zsh loaded by itself; a file that is sourced says what it is for.
if [[ $funcstack[1] == _rfinject ]]; then
  _rfinject "$@"
else
  compdef _rfinject rfinject
fi
)zsh";

constexpr std::string_view kFish = R"fish(
# Whether the verb is $argv[1]; in a command line without one it is the implied verb.
function __rfinject_verb_is
    set -l words (commandline -opc)
    set -l verb $__rfinject_implied
    if set -q words[2]; and contains -- $words[2] $__rfinject_verbs
        set verb $words[2]
    end
    test $verb = $argv[1]
end
function __rfinject_no_word_yet
    test (count (commandline -opc)) -eq 1
end
complete -c rfinject -f
complete -c rfinject -n __rfinject_no_word_yet -l version -d 'the version'
)fish";

// What zsh does for a value that may be this.
std::string ZshAction(std::string_view choices) {
  if (choices == kFiles) return "_files";
  if (choices == kPrograms) return "_command_names -e";
  return choices.empty() ? " " : "(" + WordsOf(choices) + ")";
}

// A help where a colon and brackets have a meaning.
std::string ZshText(std::string_view help) {
  return absl::StrReplaceAll(Brief(help), {{"[", "("}, {"]", ")"}, {":", "\\:"}, {"'", "'\\''"}, {"`", ""}});
}

// A specification for _arguments.
std::string ZshOption(const Option& option) {
  const std::string name(option.name);
  const std::string what = "[" + ZshText(option.help) + "]";
  if (option.value.empty() || !TakesNoWord(option)) {
    const bool flag = option.value.empty();
    const std::string rest =
        "'" + what + (flag ? "" : ":" + std::string(option.value) + ":" + ZshAction(option.choices)) + "'";
    if (option.letter == 0) return "'--" + name + "'" + (flag ? "" : "=") + rest;
    const std::string letter(1, option.letter);
    return "'(-" + letter + " --" + name + ")'{-" + letter + (flag ? "" : "+") + ",--" + name + (flag ? "" : "=") +
           "}" + rest;
  }
  return "'--" + name + "=-" + what + ":: : '";  // a value only behind "="
}

// What fish does for a value that may be this.
std::string FishAction(std::string_view choices) {
  if (choices == kFiles) return " -F";
  if (choices == kPrograms) return " -a '(__fish_complete_command)'";
  return choices.empty() ? "" : " -a '" + WordsOf(choices) + "'";
}

}  // namespace

std::string BashCompletion() {
  std::string options, valued, values;
  const auto line = [](std::string* text, const std::string& pattern, const std::string& words) {
    *text += "    " + pattern + ") echo " + SingleQuoted(words) + " ;;\n";
  };
  for (const Command& command : AllCommands()) {
    const std::string verb(command.name);
    std::vector<std::string> all, with_value;
    for (const Option& option : OptionsOf(command)) {
      const std::vector<std::string> names = NamesOf(option);
      all.insert(all.end(), names.begin(), names.end());
      if (TakesNoWord(option)) continue;
      with_value.insert(with_value.end(), names.begin(), names.end());
      if (option.choices.empty()) continue;
      for (const std::string& name : names) line(&values, verb + ":" + name, WordsOf(option.choices));
    }
    line(&options, verb, absl::StrJoin(all, " "));
    line(&valued, verb, absl::StrJoin(with_value, " "));
    if (const std::string words = WordsOf(command.describe().words); !words.empty()) line(&values, verb + ":", words);
  }
  const auto function = [](const std::string& comment, const std::string& head, const std::string& subject,
                           const std::string& cases) {
    return "\n# " + comment + "\n" + head + "() {\n  case " + subject + " in\n" + cases + "  esac\n}\n";
  };
  return "# bash: what can follow `rfinject`. `rfinject completion bash` prints this file.\n_rfinject_verbs='" +
         std::string(ChoicesOf(VerbNames())) +
         "'\n# A command line without a verb has this one.\n_rfinject_implied=" + std::string(kImplied) + "\n" +
         function("The options of the verb $1.", "_rfinject_options", "$1", options) +
         function("Those of them that take the next word.", "_rfinject_valued", "$1", valued) +
         function("What the value of the verb's option $2 may be, or where $2 is empty the verb's words.",
                  "_rfinject_values", "$1:$2", values) +
         std::string(kBash);
}

std::string ZshCompletion() {
  std::string verbs, cases;
  for (const Command& command : AllCommands()) {
    verbs += "  '" + std::string(command.name) + ":" + ZshText(command.help) + "'\n";
    cases += "    " + std::string(command.name) + ")\n      _arguments -s";
    for (const Option& option : OptionsOf(command)) cases += " \\\n        " + ZshOption(option);
    const std::string_view words = command.describe().words;
    if (words == kPrograms) {
      cases += " \\\n        '(-)1:program:_command_names -e' \\\n        '*::arguments:_normal'";
    } else if (!words.empty()) {
      cases += " \\\n        '*:word:" + ZshAction(words) + "'";
    }
    cases += "\n      ;;\n";
  }
  return "#compdef rfinject\n# zsh: what can follow `rfinject`. `rfinject completion zsh` prints this file.\n"
         "typeset -ga _rfinject_verbs\n_rfinject_verbs=(\n" +
         verbs +
         ")\n# A command line without a verb has this one.\ntypeset -g _rfinject_implied=" + std::string(kImplied) +
         "\n\n_rfinject_verb() {\n  case $1 in\n" + cases + "  esac\n}\n" + std::string(kZsh);
}

std::string FishCompletion() {
  std::string text =
      "# fish: what can follow `rfinject`. `rfinject completion fish` prints this file.\n"
      "set -g __rfinject_verbs " +
      std::string(ChoicesOf(VerbNames())) + "\nset -g __rfinject_implied " + std::string(kImplied) + "\n" +
      std::string(kFish);
  for (const Command& command : AllCommands()) {
    const std::string verb(command.name);
    text += "complete -c rfinject -n __rfinject_no_word_yet -a " + verb + " -d " + SingleQuoted(Brief(command.help)) +
            "\n";
    const std::string when = "complete -c rfinject -n '__rfinject_verb_is " + verb + "'";
    for (const Option& option : OptionsOf(command)) {
      text += when + " -l " + std::string(option.name);
      if (option.letter != 0) text += std::string(" -s ") + option.letter;
      if (!TakesNoWord(option)) text += (option.choices == kFiles ? " -r" : " -x") + FishAction(option.choices);
      text += " -d " + SingleQuoted(Brief(option.help)) + "\n";
    }
    const std::string_view words = command.describe().words;
    if (words == kPrograms) {
      text += when + " -a '(__fish_complete_subcommand)'\n";
    } else if (!words.empty()) {
      text += when + FishAction(words) + "\n";
    }
  }
  return text;
}

}  // namespace rfinject::cli
