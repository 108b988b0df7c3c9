#include "cli/cmd/options.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cli/cmd/defaults.h"
#include "cli/text/code_points.h"

namespace rfinject::cli {
namespace {

const Option* FindLong(std::span<const Option> options, std::string_view name) {
  const auto it = std::find_if(options.begin(), options.end(), [&](const Option& o) { return o.name == name; });
  return it == options.end() ? nullptr : &*it;
}

const Option* FindLetter(std::span<const Option> options, char letter) {
  const auto it = std::find_if(options.begin(), options.end(), [&](const Option& o) { return o.letter == letter; });
  return letter == 0 || it == options.end() ? nullptr : &*it;
}

std::string UnknownOption(std::span<const Option> options, std::string_view given) {
  std::vector<std::string_view> names;
  for (const Option& option : options) names.push_back(option.name);
  std::string text = "there is no option " + std::string(given);
  const std::string_view bare = given.substr(std::min(given.find_first_not_of('-'), given.size()));
  const std::string_view nearest = Nearest(bare.substr(0, bare.find('=')), names);
  if (!nearest.empty()) text += "; did you mean --" + std::string(nearest) + "?";
  return text;
}

// What a script with an unset variable gives: to go on as if the option were not there would be silent.
int EmptyValue(std::string_view verb, const Option& option) {
  return UsageError(verb,
                    absl::StrCat("--", std::string(option.name), " is empty; it wants ", std::string(option.value)));
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
    for (size_t begin = 0; begin <= what.size();) {
      const size_t end = std::min(what.find('\n', begin), what.size());
      text += (begin == 0 ? left : std::string(width + 2, ' ')) + std::string(what.substr(begin, end - begin)) + "\n";
      begin = end + 1;
    }
  }
  return text;
}

std::optional<int> ParseOptions(std::string_view verb, const VerbHelp& help, Arguments arguments, WordPolicy policy,
                                ParsedOptions* parsed) {
  const std::span<const Option> options = help.options;
  size_t i = 0;
  for (; i < arguments.size(); ++i) {
    const std::string_view word = arguments[i];
    if (word == "--") {
      ++i;
      break;
    }
    if (word.size() < 2 || word[0] != '-') {  // "-" alone is a word: standard output
      if (policy == WordPolicy::kEndOptions) break;
      parsed->words.push_back(arguments[i]);
      continue;
    }
    if (word == "-h" || word == "--help") {
      Print(HelpOf(help));
      return 0;
    }
    if (word[1] == '-') {
      const size_t equals = word.find('=');
      const Option* option = FindLong(options, word.substr(2, equals == word.npos ? word.npos : equals - 2));
      if (option == nullptr) return UsageError(verb, UnknownOption(options, word));
      std::string value;
      if (TakesNoWord(*option)) {
        if (equals != word.npos && !option->value.empty()) {
          value = word.substr(equals + 1);
        } else if (equals != word.npos)
          return UsageError(verb, "--" + std::string(option->name) + " takes no value");
      } else if (equals != word.npos) {
        value = word.substr(equals + 1);
      } else if (++i < arguments.size()) {
        value = arguments[i];
      } else {
        return UsageError(verb, std::string(word) + " wants a value: " + std::string(option->value));
      }
      if (value.empty() && !TakesNoWord(*option)) return EmptyValue(verb, *option);
      parsed->values[std::string(option->name)] = value;
      continue;
    }
    for (size_t letter = 1; letter < word.size(); ++letter) {  // -qv is -q -v
      const Option* option = FindLetter(options, word[letter]);
      if (option == nullptr) return UsageError(verb, UnknownOption(options, word));
      std::string value;
      if (!TakesNoWord(*option)) {
        if (letter + 1 < word.size()) {
          value = word.substr(letter + 1);
        } else if (++i < arguments.size()) {
          value = arguments[i];
        } else {
          return UsageError(verb, std::string(word) + " wants a value: " + std::string(option->value));
        }
        letter = word.size();
        if (value.empty()) return EmptyValue(verb, *option);
      }
      parsed->values[std::string(option->name)] = value;
    }
  }
  for (; i < arguments.size(); ++i) parsed->words.push_back(arguments[i]);
  // Of a program to run, its arguments are its own.
  const auto empty = [](const char* word) { return *word == '\0'; };
  if (policy == WordPolicy::kAnywhere && std::any_of(parsed->words.begin(), parsed->words.end(), empty)) {
    return UsageError(verb, "an argument is empty");
  }
  if (const absl::Status status = ApplyDefaults(verb, help, parsed); !status.ok()) {
    Complain(std::string(status.message()));
    return 2;
  }
  return std::nullopt;
}

int UsageError(std::string_view verb, std::string_view text) {
  const std::string name(verb);
  PrintError("rfinject " + name + ": " + PrintableText(text) + " (rfinject " + name + " -h tells more)\n");
  return 2;
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
