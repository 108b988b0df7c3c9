#include "cli/cmd/print_report.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/strings/numbers.h"

namespace rfinject::cli {
namespace {

// The limits of a table's width: a narrower one has no room for a name beside a number, and no terminal is wider.
constexpr uint64_t kLeastColumns = 40, kMostColumns = 10'000;

}  // namespace

TableOptions TableOptionsFor(int fd) {
  TableOptions options;
  struct winsize size {};
  uint64_t columns = 0;
  const char* const given = std::getenv("COLUMNS");  // what a user exports counts for pipes as well
  if (given != nullptr && ParseNumber(given, &columns) && columns > 0 && columns <= kMostColumns) {
    options.width = static_cast<int>(columns);
  }
  if (::isatty(fd) == 1) {
    if (columns == 0 && ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) options.width = size.ws_col;
    const char* no_color = std::getenv("NO_COLOR");  // no-color.org
    const char* term = std::getenv("TERM");
    options.color = (no_color == nullptr || *no_color == '\0') && (term == nullptr || std::strcmp(term, "dumb") != 0);
  }
  return options;
}

bool ChooseTableWidth(std::string_view verb, const ParsedOptions& parsed, TableOptions* options, int* code) {
  const std::string output = parsed.Value("output");
  if (output.empty() || output == "-") *options = TableOptionsFor(STDOUT_FILENO);
  options->wide = parsed.Has(kWideOption.name);
  if (!parsed.Has(kWidthOption.name)) return true;
  uint64_t width = 0;
  const std::string given = parsed.Value(kWidthOption.name);
  if (!ParseNumber(given, &width) || width < kLeastColumns || width > kMostColumns) {
    *code = UsageError(verb, "--width wants a number from 40 to 10000, not '" + given + "'");
    return false;
  }
  options->width = static_cast<int>(width);
  return true;
}

bool ChooseWord(std::string_view verb, std::string_view option, const std::string& word,
                std::span<const std::string_view> words, size_t* index, int* code) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == word) {
      *index = i;
      return true;
    }
  }
  std::string text = "--" + std::string(option) + " " + word + ": there are ";
  for (size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + std::string(words[i]);
  }
  *code = UsageError(verb, text);
  return false;
}

bool ChooseMicroseconds(std::string_view verb, const std::string& name, const ParsedOptions& parsed, double* us,
                        int* code) {
  constexpr double kMostUs = 1e6;  // nobody's launch takes as long
  if (!parsed.Has(name)) return true;
  const std::string value = parsed.Value(name);
  if (absl::SimpleAtod(value, us) && *us >= 0 && *us <= kMostUs) return true;
  *code = UsageError(verb, "--" + name + " wants microseconds from 0 to 1000000, not '" + value + "'");
  return false;
}

std::vector<std::string_view> FormatsOf(std::string_view verb) {
  std::vector<std::string_view> names;
  for (const Format& format : AllFormats()) {
    if (verb == "diff" || format.reports != nullptr) names.push_back(format.name);
  }
  return names;
}

const Format* ChooseFormat(std::string_view verb, const ParsedOptions& parsed, int* code) {
  const std::vector<std::string_view> names = FormatsOf(verb);
  size_t index = 0;
  const std::string word = parsed.Value("format", FormatOfName(parsed.Value("output")));
  return ChooseWord(verb, "format", word, names, &index, code) ? FindFormat(names[index]) : nullptr;
}

bool ChooseCsvTexts(std::string_view verb, const ParsedOptions& parsed, const Format& format, CsvTexts* texts,
                    int* code) {
  *texts = CsvTexts::kForSpreadsheets;
  if (!parsed.Has(kRawOption.name)) return true;
  if (format.name != "csv") {
    *code = UsageError(verb, "--raw goes with --format csv; the other formats never change a text");
    return false;
  }
  *texts = CsvTexts::kExact;
  return true;
}

bool ApplyLimits(std::string_view verb, const ParsedOptions& parsed, Profile* profile, int* code) {
  Limits limits;
  std::string_view rest;
  const std::string given = parsed.Value(kLimitOption.name);
  for (rest = given; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    const size_t equals = std::min(one.find('='), one.size());
    const std::string_view what = one.substr(0, equals);
    uint64_t* const limit = what == "runs"   ? &limits.runs
                            : what == "rows" ? &limits.rows
                            : what == "name" ? &limits.name
                                             : nullptr;
    if (limit == nullptr || equals == one.size() || !ParseNumber(one.substr(equals + 1), limit)) {
      *code = UsageError(verb, "--limit wants runs=N, rows=N or name=N, not '" + std::string(one) + "'");
      return false;
    }
  }
  if (profile == nullptr) return true;
  for (const std::string& text : LimitProfile(limits, profile)) Complain(text);
  return true;
}

bool TextOutput::Open(const std::string& output, const Replace& replace) {
  output_ = output;
  to_file_ = !output.empty() && output != "-";
  if (!to_file_) return true;
  return Succeeded(file_.Open(output, replace));
}

bool TextOutput::Write(const std::string& text, Colors colors) {
  if (to_file_) {
    return Succeeded(file_.Commit(file_.Write(text.data(), text.size())));
  }
  Print(text, colors);
  return FinishOutput(0) == 0;
}

}  // namespace rfinject::cli
