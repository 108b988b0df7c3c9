#include "cli/cmd/options.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/cmd/defaults.h"
#include "cli/text/code_points.h"

namespace rfinject::cli {
namespace {

std::string UnknownOption(std::span<const Option> options, std::string_view given) {
  std::vector<std::string_view> names;
  for (const Option& option : options) names.push_back(option.name);
  std::string text = "there is no option " + std::string(given);
  const std::string_view bare = given.substr(std::min(given.find_first_not_of('-'), given.size()));
  const std::string_view nearest = Nearest(bare.substr(0, bare.find('=')), names);
  if (!nearest.empty()) text += "; did you mean --" + std::string(nearest) + "?";
  return text;
}

// Insertions, deletions, replacements and swaps of neighbours (which is what typing does), without regard to case.
size_t EditDistance(std::string_view a, std::string_view b) {
  const auto same = [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  };
  std::vector<std::vector<size_t>> table(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      size_t& here = table[i][j];
      if (i == 0 || j == 0) {
        here = i + j;
        continue;
      }
      here = std::min(
          {table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1)});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1])) {
        here = std::min(here, table[i - 2][j - 2] + 1);
      }
    }
  }
  return table[a.size()][b.size()];
}

}  // namespace

std::string ParsedOptions::Value(std::string_view name, std::string_view otherwise) const {
  const auto it = values.find(name);
  return it == values.end() ? std::string(otherwise) : it->second;
}

std::string_view ChoicesOf(std::span<const std::string_view> words) {
  static auto* const kept = new std::set<std::string>;
  std::string all;
  for (const std::string_view word : words) all.append(all.empty() ? "" : " ").append(word);
  return *kept->insert(std::move(all)).first;
}

std::string HelpOf(const VerbHelp& help) {
  std::string text(help.usage);
  text += "\n\nOptions:\n";
  std::vector<std::pair<std::string, std::string_view>> lines;
  size_t width = 0;
  const auto add = [&](const Option& option) {
    std::string left = option.letter != 0 ? std::string("  -") + option.letter + ", --" : std::string("      --");
    left += option.name;
    if (!option.value.empty()) left += (TakesNoWord(option) ? "" : " ") + std::string(option.value);
    width = std::max(width, left.size());
    lines.emplace_back(std::move(left), option.help);
  };
  for (const Option& option : help.options) add(option);
  add(kHelpOption);
  for (auto& [left, what] : lines) {
    left.resize(width + 2, ' ');
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(std::string(what), '\n'))) {
      text += left + line + "\n";
      left.assign(width + 2, ' ');
    }
  }
  return text;
}

std::optional<int> ParseOptions(std::string_view verb, const VerbHelp& help, Arguments arguments,
                                ParsedOptions* parsed) {
  const std::span<const Option> options = help.options;
  const bool words_end_options = help.words == kPrograms;
  const auto find = [&](const auto& is) {
    const auto found = std::find_if(options.begin(), options.end(), is);
    return found == options.end() ? nullptr : &*found;
  };
  size_t i = 0;
  // Takes the option's value, which is `given` in `word` itself or is the next word. Returns 2 after a mistake.
  const auto take = [&](const Option& option, std::string_view word,
                        std::optional<std::string_view> given) -> std::optional<int> {
    if (!given && !TakesNoWord(option)) {
      if (++i == arguments.size()) {
        return UsageError(verb, std::string(word) + " wants a value: " + std::string(option.value));
      }
      given = arguments[i];
    }
    // What a script with an unset variable gives: to go on as if the option were not there would be silent.
    if (!TakesNoWord(option) && given->empty()) {
      return UsageError(
          verb, absl::StrCat("--", std::string(option.name), " is empty; it wants ", std::string(option.value)));
    }
    parsed->values[std::string(option.name)] = given.value_or("");
    return std::nullopt;
  };
  for (; i < arguments.size(); ++i) {
    const std::string_view word = arguments[i];
    if (word == "--") {
      ++i;
      break;
    }
    if (word.size() < 2 || word[0] != '-') {  // "-" alone is a word: standard output
      if (words_end_options) break;
      parsed->words.emplace_back(word);
      continue;
    }
    if (word == "-h" || word == "--help") {
      Print(HelpOf(help));
      return 0;
    }
    if (word[1] == '-') {
      const size_t equals = word.find('=');
      const std::string_view name = word.substr(0, equals).substr(2);
      const Option* option = find([name](const Option& one) { return one.name == name; });
      if (option == nullptr) return UsageError(verb, UnknownOption(options, word));
      std::optional<std::string_view> given;
      if (equals != word.npos) given = word.substr(equals + 1);
      if (given && option->value.empty()) {
        return UsageError(verb, "--" + std::string(option->name) + " takes no value");
      }
      if (const auto code = take(*option, word, given)) return code;
      continue;
    }
    for (size_t at = 1; at < word.size(); ++at) {  // -qv is -q -v
      const Option* option = find([letter = word[at]](const Option& one) { return one.letter == letter; });
      if (option == nullptr) return UsageError(verb, UnknownOption(options, word));
      std::optional<std::string_view> given;
      if (!TakesNoWord(*option) && at + 1 < word.size()) given = word.substr(at + 1);
      if (const auto code = take(*option, word, given)) return code;
      if (!TakesNoWord(*option)) break;
    }
  }
  for (; i < arguments.size(); ++i) parsed->words.emplace_back(arguments[i]);
  // Of a program to run, its arguments are its own.
  const auto empty = [](const std::string& word) { return word.empty(); };
  if (!words_end_options && std::any_of(parsed->words.begin(), parsed->words.end(), empty)) {
    return UsageError(verb, "an argument is empty");
  }
  if (const absl::Status status = ApplyDefaults(verb, help, parsed); !Succeeded(status)) return 2;
  return std::nullopt;
}

int UsageError(std::string_view verb, std::string_view text) {
  const std::string name(verb);
  PrintError("rfinject " + name + ": " + PrintableText(text) + " (rfinject " + name + " -h tells more)\n");
  return 2;
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool ParseNumber(std::string_view text, uint64_t* value) {
  if (text.empty() || text.size() > 19) return false;
  uint64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    number = number * 10 + static_cast<uint64_t>(c - '0');
  }
  *value = number;
  return true;
}

std::string_view Nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  size_t best_distance = word.size() / 3 + 1;
  for (const std::string_view candidate : candidates) {
    const size_t distance = EditDistance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace rfinject::cli
