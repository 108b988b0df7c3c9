#include "cli/cmd/try_changes.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/cmd/text_file.h"

namespace rfinject::cli {
namespace {

struct SourceFile {
  std::string_view name, source;
};
constexpr SourceFile kSources[] = {
#include "cli/cmd/try_changes.inc"
};
// What changes stand on, in this order; they are none themselves.
constexpr std::array<std::string_view, 2> kFoundations = {"frame", "edits"};

std::string_view SourceOf(std::string_view name) {
  for (const SourceFile& file : kSources) {
    if (file.name == name) return file.source;
  }
  return {};
}

// The parts of `text` between separators.
std::vector<std::string> PartsOf(std::string_view text, char separator) {
  return absl::StrSplit(std::string(text), separator);
}

// The text of the line that begins so, without that.
std::string LineWith(std::string_view source, std::string_view begin) {
  for (const std::string& line : PartsOf(source, '\n')) {
    if (line.starts_with(begin)) return line.substr(begin.size());
  }
  return {};
}

// A Python literal.
std::string PythonText(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    constexpr std::string_view kHex = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      result += "\\n";
    } else if (c == '\'' || c == '\\') {
      result.append("\\").append(1, c);
    } else if (byte < ' ') {
      result.append("\\x").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
    } else {
      result += c;
    }
  }
  return result + "'";
}

std::string TruthOf(bool value) { return value ? "True" : "False"; }

std::string UnitsOf(const Gpu* gpu) {
  if (gpu == nullptr) return "None";
  std::string units;
  const auto add = [&](Precision precision, std::string_view name) {
    if (gpu->peak[static_cast<size_t>(precision)] > 0)
      absl::StrAppend(&units, units.empty() ? "" : ", ", PythonText(name));
  };
  add(Precision::kTf32Tensor, "tf32");
  add(Precision::kFp16Tensor, "fp16");
  add(Precision::kBf16Tensor, "bf16");
  return "[" + units + "]";
}

std::string Unescaped(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      result += text[i];
      continue;
    }
    const char next = text[++i];
    result += next == 'n' ? '\n' : next == 't' ? '\t' : next == 'r' ? '\r' : next;
  }
  return result;
}

}  // namespace

const std::vector<ShippedChange>& ShippedChanges() {
  static const auto* const changes = [] {
    auto* list = new std::vector<ShippedChange>;
    for (const SourceFile& file : kSources) {
      if (std::find(kFoundations.begin(), kFoundations.end(), file.name) != kFoundations.end()) continue;
      std::string title = LineWith(file.source, "\"\"\"");
      title.resize(std::min(title.size(), title.find("\"\"\"")));
      list->push_back({file.name, std::move(title), LineWith(file.source, "# write: "), file.source});
    }
    return list;
  }();
  return *changes;
}

bool NamesAChange(std::string_view word) {
  if (word.starts_with('@')) return word.size() > 1;
  const std::string_view name = word.substr(0, word.find('='));
  const std::vector<ShippedChange>& all = ShippedChanges();
  return std::any_of(all.begin(), all.end(), [&](const ShippedChange& change) { return change.name == name; });
}

absl::StatusOr<WantedChange> FindChange(std::string_view word) {
  WantedChange wanted{.name = std::string(word)};
  if (word.starts_with('@')) {
    absl::StatusOr<std::string> source = ReadTextFile(std::string(word.substr(1)));
    if (!source.ok()) return source.status();
    wanted.source = *std::move(source);
    wanted.write = LineWith(wanted.source, "# write: ");
    wanted.base = wanted.name;
    return wanted;
  }
  const size_t equals = std::min(word.find('='), word.size());
  wanted.base = std::string(word.substr(0, equals));
  if (equals < word.size()) wanted.value = std::string(word.substr(equals + 1));
  for (const ShippedChange& change : ShippedChanges()) {
    if (change.name != wanted.base) continue;
    wanted.source = std::string(change.source);
    wanted.write = change.write;
    return wanted;
  }
  return absl::NotFoundError("there is no change " + wanted.base);
}

std::string ChangeFile(const ChangeOptions& options, std::span<const WantedChange> changes) {
  std::string text =
      absl::StrCat("OPTIONS = {'report': ", PythonText(options.report), ", 'units': ", UnitsOf(options.gpu),
                   ", 'guard': ", TruthOf(options.guard), ", 'seed': ", options.seed ? "0" : "None",
                   ", 'losses': ", options.losses, ", 'perturb': ", TruthOf(options.perturb), "}\n");
  for (const std::string_view name : kFoundations) absl::StrAppend(&text, std::string(SourceOf(name)), "\n");
  for (const WantedChange& change : changes) {
    absl::StrAppend(&text, "use(", PythonText(change.name), ", ",
                    change.value.empty() ? "None" : PythonText(change.value), ", ", PythonText(change.source), ")\n");
  }
  return text + "begin()\n";
}

ChangeReport ReadChangeReport(std::string_view text) {
  ChangeReport report;
  std::string losing;  // the process whose losses count
  for (const std::string& line : PartsOf(text, '\n')) {
    const std::vector<std::string> words = PartsOf(line, '\t');
    if (words.size() == 6 && words[1] == "change") {
      report.lines.push_back({Unescaped(words[2]), Unescaped(words[3]), Unescaped(words[4]), !words[5].empty()});
    } else if (words.size() == 3 && words[1] == "patch") {
      report.patches[words[0]] = Unescaped(words[2]);
    } else if (words.size() == 3 && words[1] == "loss") {
      if (losing.empty()) losing = words[0];
      if (losing == words[0]) report.losses.push_back(std::strtod(words[2].c_str(), nullptr));
    } else if (words.size() == 3 && words[1] == "exception") {
      report.exception = Unescaped(words[2]);
    } else if (words.size() == 3 && words[1] == "outside") {
      report.outside = Unescaped(words[2]);
    }
  }
  return report;
}

}  // namespace rfinject::cli
