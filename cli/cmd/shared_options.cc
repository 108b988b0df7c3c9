#include "cli/cmd/shared_options.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "cli/cmd/streams.h"
#include "cli/cmd/user_calibration.h"

namespace rfinject::cli {
namespace {

// The limits of a table's width: a narrower one has no room for a name beside a number, and no terminal is wider.
constexpr uint64_t kLeastColumns = 40, kMostColumns = 10'000;

// "table, json and csv".
std::string Listed(std::span<const std::string_view> words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + std::string(words[i]);
  }
  return text;
}

}  // namespace

Option FormatOption(bool pictures) {
  struct Texts {
    std::vector<std::string_view> names;
    std::string help;
  };
  static const auto texts_of = [](bool with_pictures) {
    const std::vector<std::string_view> names = FormatNames(with_pictures);
    return new Texts{names, Listed(names) + ";\ndefault: by the ending of -o, else " + std::string(kDefaultFormat)};
  };
  static const std::array<const Texts*, 2> kTexts = {texts_of(false), texts_of(true)};
  const Texts& texts = *kTexts[pictures ? 1 : 0];
  return {"format", 0, "FORMAT", texts.help, ChoicesOf(texts.names)};
}

WriteOptions WriteOptionsFor(int fd) {
  WriteOptions options;
  struct winsize size {};
  uint64_t columns = 0;
  // What a user exports counts for pipes as well.
  if (ParseNumber(Variable("COLUMNS"), &columns) && columns > 0 && columns <= kMostColumns) {
    options.width = static_cast<int>(columns);
  }
  if (::isatty(fd) == 1) {
    if (columns == 0 && ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) options.width = size.ws_col;
    options.color = Variable("NO_COLOR").empty() && Variable("TERM") != "dumb";  // no-color.org
  }
  return options;
}

size_t OptionReader::Word(std::string_view name, std::span<const std::string_view> words,
                          std::string_view otherwise) {
  const auto place = [&](std::string_view word) {
    return static_cast<size_t>(std::find(words.begin(), words.end(), word) - words.begin());
  };
  const std::string given = parsed_.Value(name, otherwise);
  if (place(given) < words.size()) return place(given);
  Refuse("--" + std::string(name) + " " + given + ": there are " + Listed(words));
  return place(otherwise);
}

uint64_t OptionReader::Number(std::string_view name, uint64_t otherwise, uint64_t least) {
  if (!parsed_.Has(name)) return otherwise;
  uint64_t value = 0;
  const std::string given = parsed_.Value(name);
  if (ParseNumber(given, &value) && value >= least) return value;
  Refuse("--" + std::string(name) + " wants a number" + (least > 0 ? " from " + std::to_string(least) + " on" : "") +
         ", not '" + given + "'");
  return otherwise;
}

double OptionReader::MicrosecondsAsNs(std::string_view name, double otherwise_ns) {
  constexpr double kMostUs = 1e6, kNsPerUs = 1000;  // no launch takes a second
  if (!parsed_.Has(name)) return otherwise_ns;
  const std::string given = parsed_.Value(name);
  double us = 0;
  if (absl::SimpleAtod(given, &us) && us >= 0 && us <= kMostUs) return kNsPerUs * us;
  Refuse("--" + std::string(name) + " wants microseconds from 0 to 1000000, not '" + given + "'");
  return otherwise_ns;
}

const Format* OptionReader::FormatOption(bool pictures) {
  const std::string_view by_name = FormatOfName(parsed_.Value("output"));
  const Format* const format = FindFormat(parsed_.Value("format", by_name));
  if (format != nullptr && (pictures || !format->pictures_only)) return format;
  Refuse("--format " + parsed_.Value("format", by_name) + ": there are " + Listed(FormatNames(pictures)));
  return FindFormat(kDefaultFormat);
}

WriteOptions OptionReader::Writing(const Format* format) {
  const std::string output = parsed_.Value("output");
  const bool to_terminal = output.empty() || output == "-";
  WriteOptions options = to_terminal ? WriteOptionsFor(STDOUT_FILENO) : WriteOptions();
  options.wide = parsed_.Has(kWideOption.name);
  options.most_rows = Number(kRowsOption.name, options.most_rows);
  if (parsed_.Has(kWidthOption.name)) {
    uint64_t width = 0;
    const std::string given = parsed_.Value(kWidthOption.name);
    if (ParseNumber(given, &width) && width >= kLeastColumns && width <= kMostColumns) {
      options.width = static_cast<int>(width);
    } else {
      Refuse("--width wants a number from 40 to 10000, not '" + given + "'");
    }
  }
  if (parsed_.Has(kRawOption.name)) {
    options.csv_texts = CsvTexts::kExact;
    if (format->name != "csv") Refuse("--raw goes with --format csv; the other formats never change a text");
  }
  return options;
}

Limits OptionReader::Limit() {
  Limits limits;
  std::istringstream each(parsed_.Value(kLimitOption.name));
  for (std::string one; std::getline(each, one, ',');) {
    const size_t equals = std::min(one.find('='), one.size());
    const std::string_view what = std::string_view(one).substr(0, equals);
    uint64_t* const limit = what == "runs"   ? &limits.runs
                            : what == "rows" ? &limits.rows
                            : what == "name" ? &limits.name
                                             : nullptr;
    if (limit == nullptr || equals == one.size() || !ParseNumber(one.substr(equals + 1), limit)) {
      Refuse("--limit wants runs=N, rows=N or name=N, not '" + one + "'");
    }
  }
  return limits;
}

Calibration OptionReader::CalibrationOption() {
  absl::StatusOr<Calibration> calibration = ChosenCalibration(parsed_);
  if (calibration.ok()) return *std::move(calibration);
  Keep(calibration.status());
  return Calibration::Shipped();
}

int Refused(std::string_view verb, const absl::Status& status) {
  if (absl::IsInvalidArgument(status)) return UsageError(verb, std::string(status.message()));
  if (!absl::IsCancelled(status)) Complain(std::string(status.message()));
  return 1;
}

void ApplyLimits(const Limits& limits, Profile* profile) {
  for (const std::string& text : LimitProfile(limits, profile)) Complain(text);
}

}  // namespace rfinject::cli
