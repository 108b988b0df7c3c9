// File: options.h
//
// Options of the verbs, as people know them: -o X, -oX, --output X, --output=X, flags, `--` before words that begin
// with a dash. This is our own and small, because the launcher must stop at the first word that is not an option and
// leave everything after it untouched, which no library at hand does.
//
//   VerbHelp ReportHelp() {
//     return {kUsage, {{"output", 'o', "FILE", "write there", kFiles}, {"strict", 0, "", "alarms are errors"}},
//     kFiles};
//   }
//   int ReportMain(const ParsedOptions& parsed) { return parsed.Has("strict") ? … }
#ifndef RFINJECT_CLI_CMD_OPTIONS_H_
#define RFINJECT_CLI_CMD_OPTIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cmd/commands.h"
#include "cli/cmd/streams.h"

namespace rfinject::cli {

struct Option {
  std::string_view name;   // without the dashes
  char letter;             // 0: none
  std::string_view value;  // what the help calls the value; empty: a flag; in brackets: only after "=", or none
  std::string_view help;
  // What a shell may offer as the value: words with spaces between them, kFiles, or nothing.
  std::string_view choices = {};
};

// In the place of words that a shell may offer: the names of files, and of programs.
inline constexpr std::string_view kFiles = "*files*";
inline constexpr std::string_view kPrograms = "*programs*";
inline constexpr std::string_view kGpus = "*gpus*";  // of the table

// Returns `words` as Option::choices has them. The text is made once and kept for ever.
std::string_view ChoicesOf(std::span<const std::string_view> words);

// What a verb understands, from which come its -h, the manual page and what shells complete.
struct VerbHelp {
  std::string_view usage;  // the forms of the command line, an empty line, and what it does
  std::vector<Option> options;
  // Its words, as Option::choices. Options and words come in any order, but where the words are a program (kPrograms)
  // the first one ends the options.
  std::string_view words = {};
};

struct ParsedOptions {
  std::map<std::string, std::string, std::less<>> values;  // by name; "" for flags; the last one given counts
  std::vector<std::string> words;
  std::set<std::string, std::less<>> defaults;  // those of `values` that no command line gave, but a file of defaults

  bool Has(std::string_view name) const { return values.find(name) != values.end(); }
  std::string Value(std::string_view name, std::string_view otherwise = {}) const;
};

// What a verb shows for -h: its usage and one line an option.
std::string HelpOf(const VerbHelp& help);

// -h, --help, which every verb has.
inline constexpr Option kHelpOption = {"help", 'h', "", "this text"};

// A flag, or an option whose value is only there after "=".
inline bool TakesNoWord(const Option& option) { return option.value.empty() || option.value.front() == '['; }

// Returns nothing when the verb should go on, otherwise its exit code: 0 after -h or --help (help is on stdout), 2
// after a mistake (one line on stderr says which option was probably meant).
std::optional<int> ParseOptions(std::string_view verb, const VerbHelp& help, Arguments arguments,
                                ParsedOptions* parsed);

// "rfinject VERB: TEXT" on stderr, and 2.
int UsageError(std::string_view verb, std::string_view text);

// The value of an environment variable; empty where it is not set.
std::string Variable(const char* name);

// A number of steps and the like: decimal digits only.
bool ParseNumber(std::string_view text, uint64_t* value);

// The candidate nearest to `word` by edit distance without regard to case; empty when none is near (at most a third
// of the letters differ).
std::string_view Nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_OPTIONS_H_
