#include "cli/cmd/defaults.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>
#include <set>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/output_file.h"
#include "cli/cmd/user_file.h"

namespace rfinject::cli {
namespace {

constexpr size_t kMostKib = 64;  // far more than there are options

absl::Status Mistake(const std::string& path, const toml::source_region& where, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ":", where.begin.line, ": ", what));
}

bool NamesAFileOrReplacesOne(const Option& option) {
  return option.choices == kFiles || option.choices == kPrograms || option.name == kForceOption.name;
}

// The value as a command line has it; nothing where it is no value of an option.
std::optional<std::string> TextOf(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return absl::StrCat(number->get());
  if (const auto* number = node.as_floating_point()) return absl::StrFormat("%.15g", number->get());
  return std::nullopt;
}

absl::Status AddDefault(const std::string& path, const Command& command, std::string_view key, const toml::node& node,
                        bool of_folder, std::vector<Default>* defaults) {
  const VerbHelp help = command.describe();
  const auto option =
      std::find_if(help.options.begin(), help.options.end(), [key](const Option& one) { return one.name == key; });
  const std::string name = absl::StrCat("[", std::string(command.name), "] ", std::string(key));
  if (option == help.options.end()) {
    std::vector<std::string_view> names;
    for (const Option& one : help.options) names.push_back(one.name);
    const std::string_view nearest = Nearest(key, names);
    return Mistake(
        path, node.source(),
        name + ": there is no such option" + (nearest.empty() ? "" : "; did you mean " + std::string(nearest) + "?"));
  }
  if (of_folder && NamesAFileOrReplacesOne(*option)) {
    return Mistake(path, node.source(),
                   name +
                       ": what names files or programs is not taken from a file in the working folder; it may stand "
                       "in ~/.config/rfinject.toml");
  }
  if (const auto* yes = node.as_boolean()) {
    if (!TakesNoWord(*option)) return Mistake(path, node.source(), name + " wants a value, not true or false");
    if (yes->get()) defaults->push_back({std::string(command.name), std::string(key), ""});
    return absl::OkStatus();
  }
  const std::optional<std::string> text = TextOf(node);
  if (!text || option->value.empty()) {
    return Mistake(path, node.source(),
                   name + (option->value.empty() ? " wants true or false" : " wants a text or a number"));
  }
  defaults->push_back({std::string(command.name), std::string(key), *text});
  return absl::OkStatus();
}

// Their options are settings of the injected library.
bool Launches(std::string_view verb) { return verb == "run" || verb == "env"; }

std::string InCapitals(std::string_view name) {
  return absl::StrReplaceAll(absl::AsciiStrToUpper(std::string(name)), {{"-", "_"}});
}

absl::Status ApplyVariables(std::string_view verb, const VerbHelp& help, ParsedOptions* parsed,
                            std::set<std::string, std::less<>>* turned_off) {
  const char* config = std::getenv("RFINJECT_CONFIG");
  if (config != nullptr && *config == '\0') return absl::OkStatus();
  for (const Option& option : help.options) {
    const std::string variable = VariableOf(verb, option.name), value = Variable(variable.c_str());
    if (value.empty() || parsed->Has(option.name)) continue;
    if (TakesNoWord(option) && value == "1") {
      parsed->values[std::string(option.name)] = "";
    } else if (TakesNoWord(option) && value == "0") {
      turned_off->insert(std::string(option.name));
    } else if (!option.value.empty()) {
      parsed->values[std::string(option.name)] = value;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat(variable, "=", value, ": --", std::string(option.name), " is turned on by 1 and off by 0"));
    }
  }
  return absl::OkStatus();
}

std::string UserConfig() {
  const std::string folder = UserConfigFolder();
  return folder.empty() ? folder : folder + "/rfinject.toml";
}

}  // namespace

absl::StatusOr<std::vector<Default>> ParseDefaults(std::string_view text, const std::string& path, bool of_folder) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) return Mistake(path, parsed.error().source(), std::string(parsed.error().description()));
  std::vector<Default> defaults;
  for (const auto& [verb, options] : parsed.table()) {
    const std::string_view name = verb.str();
    const Command* const command = FindCommand(name);
    if (command == nullptr || !options.is_table()) {
      return Mistake(path, options.source(),
                     absl::StrCat("'", std::string(name), "' is no table of a verb, such as [run] or [report]"));
    }
    for (const auto& [key, value] : *options.as_table()) {
      absl::Status status = AddDefault(path, *command, key.str(), value, of_folder, &defaults);
      if (!status.ok()) return status;
    }
  }
  return defaults;
}

absl::StatusOr<std::vector<DefaultsFile>> ReadDefaultsFiles() {
  // Path, and whether it is the file in the working folder.
  std::vector<std::pair<std::string, bool>> places = {{".rfinject.toml", true}, {UserConfig(), false}};
  if (const char* named = std::getenv("RFINJECT_CONFIG"); named != nullptr) places = {{named, false}};
  std::vector<DefaultsFile> files;
  for (const auto& [path, of_folder] : places) {
    if (path.empty()) continue;
    const UserFile found = ReadUserFile(path, kMostKib, WhoseFile::kOwn);
    if (!found.exists) continue;
    DefaultsFile file{.path = path, .ignored = found.ignored};
    if (file.ignored.empty()) {
      absl::StatusOr<std::vector<Default>> defaults = ParseDefaults(found.text, path, of_folder);
      if (!defaults.ok()) return defaults.status();
      file.defaults = *std::move(defaults);
    }
    files.push_back(std::move(file));
  }
  return files;
}

std::string VariableOf(std::string_view verb, std::string_view option) {
  std::string name = "RFINJECT_";
  if (!Launches(verb)) name += InCapitals(verb) + "_";
  name += InCapitals(option);
  // Two options are one setting.
  return name == "RFINJECT_QUIET" || name == "RFINJECT_VERBOSE" ? "RFINJECT_LOG" : name;
}

std::vector<std::string> UnknownVariables(const std::vector<std::string>& names) {
  std::vector<std::string> unknown;
  for (const std::string& name : names) {
    for (const Command& command : AllCommands()) {
      if (Launches(command.name) || !name.starts_with(VariableOf(command.name, ""))) continue;
      const VerbHelp help = command.describe();
      const bool known = std::any_of(help.options.begin(), help.options.end(),
                                     [&](const Option& one) { return VariableOf(command.name, one.name) == name; });
      if (!known) unknown.push_back(name);
    }
  }
  return unknown;
}

absl::Status ApplyDefaults(std::string_view verb, const VerbHelp& help, ParsedOptions* parsed) {
  if (help.options.empty()) return absl::OkStatus();
  std::set<std::string, std::less<>> turned_off;  // by a variable
  if (!Launches(verb)) {
    if (absl::Status status = ApplyVariables(verb, help, parsed, &turned_off); !status.ok()) return status;
  }
  const absl::StatusOr<std::vector<DefaultsFile>> files = ReadDefaultsFiles();
  if (!files.ok()) return files.status();
  // -v on the command line goes before quiet in a file.
  const bool volume = parsed->Has("quiet") || parsed->Has("verbose");
  for (const DefaultsFile& file : *files) {
    if (!file.ignored.empty()) Complain(file.path + " is not used: " + file.ignored);
    for (const Default& one : file.defaults) {
      if (one.verb != verb || parsed->Has(one.option) || turned_off.contains(one.option)) continue;
      const bool of_volume = one.option == "quiet" || one.option == "verbose";
      if (of_volume && volume) continue;
      if (Launches(verb) && !Variable(VariableOf(verb, one.option).c_str()).empty()) continue;
      parsed->values[one.option] = one.value;
      parsed->defaults.insert(one.option);
    }
  }
  return absl::OkStatus();
}

}  // namespace rfinject::cli
