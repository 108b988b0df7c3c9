#include "cli/report/advice/rules.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "cli/report/advice/facts.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kText =
#include "cli/report/advice/rules.inc"
    ;

struct Key {
  std::string_view name;
  std::string Rule::*text;
  bool required;
};
constexpr auto kKeys = std::to_array<Key>({{"title", &Rule::title, true},
                                           {"group", &Rule::group, false},
                                           {"of", &Rule::of, false},
                                           {"when", &Rule::when_text, true},
                                           {"gain", &Rule::gain_text, true},
                                           {"why", &Rule::why, true},
                                           {"do", &Rule::action, true},
                                           {"if", &Rule::if_text, false},
                                           {"else", &Rule::other_action, false},
                                           {"try", &Rule::tries, false},
                                           {"link", &Rule::link, true},
                                           {"unproven", &Rule::unproven, false}});

std::optional<size_t> IndexOfName(std::string_view name) {
  const std::optional<Fact> fact = FactNamed(name);
  return fact ? std::optional(static_cast<size_t>(*fact)) : std::nullopt;
}

std::string_view Stripped(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) + 1 - first);
}

absl::Status At(size_t line, const std::string& text) {
  return absl::InvalidArgumentError(absl::StrFormat("line %d: %s", line, text));
}

// A rule while it is read, with the line that each of its texts begins in.
struct Draft {
  Rule rule;
  size_t line = 0;
  std::array<size_t, kKeys.size()> lines{};
  size_t LineOf(std::string_view key) const {
    for (size_t i = 0; i < kKeys.size(); ++i) {
      if (kKeys[i].name == key) return lines[i];
    }
    return line;
  }
};

absl::StatusOr<Rule> Finish(Draft draft) {
  Rule& rule = draft.rule;
  for (size_t i = 0; i < kKeys.size(); ++i) {
    if (kKeys[i].required && draft.lines[i] == 0) {
      return At(draft.line, "rule " + rule.name + " has no '" + std::string(kKeys[i].name) + "'");
    }
  }
  if (!rule.of.empty() && !FactNamed(rule.of)) return At(draft.LineOf("of"), "there is no quantity " + rule.of);
  if (rule.if_text.empty() != rule.other_action.empty()) {
    return At(draft.line, "rule " + rule.name + " has one of 'if' and 'else'");
  }
  for (const auto& [key, text, parsed] :
       {std::tuple("when", &rule.when_text, &rule.when), std::tuple("gain", &rule.gain_text, &rule.gain),
        std::tuple("if", &rule.if_text, &rule.condition)}) {
    if (text->empty()) continue;
    absl::StatusOr<Expression> expression = Expression::Parse(*text, IndexOfName);
    if (!expression.ok()) return At(draft.LineOf(key), std::string(expression.status().message()));
    *parsed = *std::move(expression);
  }
  for (size_t open = rule.why.find('{'); open != std::string::npos; open = rule.why.find('{', open + 1)) {
    const size_t close = std::min(rule.why.find('}', open), rule.why.size());
    const std::string name = rule.why.substr(open + 1, close - open - 1);
    if (!FactNamed(name)) return At(draft.LineOf("why"), "there is no quantity '" + name + "'");
  }
  if (!rule.link.starts_with("https://")) return At(draft.LineOf("link"), "a link begins with https://");
  return std::move(rule);
}

}  // namespace

absl::StatusOr<std::vector<Rule>> ParseRules(std::string_view text) {
  std::vector<Rule> rules;
  std::optional<Draft> draft;
  std::string* longer = nullptr;  // what a line that is indented further goes on with
  const auto end = [&]() -> absl::Status {
    if (!draft) return absl::OkStatus();
    absl::StatusOr<Rule> rule = Finish(*std::move(draft));
    draft.reset();
    if (!rule.ok()) return rule.status();
    rules.push_back(*std::move(rule));
    return absl::OkStatus();
  };
  std::set<std::string, std::less<>> names;
  size_t number = 0;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(std::string(text), '\n'))) {
    ++number;
    const std::string_view content = Stripped(line);
    if (content.empty() || content.front() == '#') continue;
    const size_t indent = static_cast<size_t>(content.data() - line.data());
    const size_t space = std::min(content.find(' '), content.size());
    const std::string_view word = content.substr(0, space), rest = Stripped(content.substr(space));
    if (indent == 0) {
      if (word != "rule") return At(number, "'rule NAME' is expected, not '" + std::string(word) + "'");
      if (absl::Status status = end(); !status.ok()) return status;
      if (rest.empty() || !names.insert(std::string(rest)).second) {
        return At(number, rest.empty() ? "a rule has a name" : "there is a rule " + std::string(rest) + " above");
      }
      draft.emplace();
      draft->rule.name = std::string(rest);
      draft->line = number;
      longer = nullptr;
      continue;
    }
    if (!draft) return At(number, "'rule NAME' comes first");
    constexpr size_t kKeyIndent = 2;
    if (indent > kKeyIndent) {
      if (longer == nullptr) return At(number, "there is nothing that this line goes on with");
      longer->append(" ").append(content);
      continue;
    }
    const auto key = std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& one) { return one.name == word; });
    if (key == kKeys.end()) return At(number, "there is no key '" + std::string(word) + "'");
    size_t& key_line = draft->lines[static_cast<size_t>(key - kKeys.begin())];
    if (key_line != 0) return At(number, "'" + std::string(word) + "' stands twice in rule " + draft->rule.name);
    if (rest.empty()) return At(number, "'" + std::string(word) + "' says nothing");
    key_line = number;
    longer = &(draft->rule.*(key->text));
    *longer = std::string(rest);
  }
  if (absl::Status status = end(); !status.ok()) return status;
  return rules;
}

std::span<const Rule> ShippedRules() {
  static const std::vector<Rule>* const kRules = [] {
    absl::StatusOr<std::vector<Rule>> rules = ParseRules(kText);
    // A test also reads the rules, so no command that is shipped comes here.
    if (!rules.ok()) {
      std::fprintf(stderr, "rfinject: rules.txt: %s\n", std::string(rules.status().message()).c_str());
      std::abort();
    }
    return new std::vector<Rule>(*std::move(rules));
  }();
  return *kRules;
}

}  // namespace rfinject::cli
