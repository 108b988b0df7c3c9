// Text for terminals: sentences and tables that fit the width. What does not fit is left out from the least important
// column on, and names are shortened last.
#include <algorithm>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cli/format/format.h"
#include "cli/text/grid.h"
#include "cli/view/table_lines.h"

namespace rfinject::cli {
namespace {

// A table of fewer rows says nothing: then a screen cuts it off.
constexpr size_t kLeastRows = 3;

class TableWriter {
 public:
  TableWriter(const WriteOptions& options, std::ostream& out)
      : options_(options), out_(out), letters_(options.color) {}

  // `most_rows` is of the section's table.
  void Write(const Section& section, size_t most_rows) {
    if (!section.HasText()) return;
    if (!first_) out_ << '\n';
    first_ = false;
    if (!section.heading.empty()) Write({.text = section.heading, .tone = Tone::kStrong});
    for (const Sentence& sentence : section.lead) Write(sentence);
    if (section.table) Write(*section.table, most_rows);
    for (const Sentence& sentence : section.notes) Write(sentence);
  }

  void Write(const Sentence& sentence) {
    first_ = false;
    const char* const letters = sentence.tone == Tone::kStrong  ? letters_.bold
                                : sentence.tone == Tone::kAlarm ? letters_.red
                                                                : "";
    out_ << letters;
    const size_t indent = sentence.label.empty() ? 2 : sentence.label.size();
    WriteWrapped(out_, sentence.text, options_.width, sentence.label, std::string(indent, ' '));
    if (*letters != '\0') out_ << letters_.plain;
    for (const auto& [label, text] : sentence.details) {
      const std::string first = "  " + label;
      WriteWrapped(out_, text, options_.width, first, std::string(first.size() + (label.empty() ? 2 : 0), ' '));
    }
  }

 private:
  void Write(const Table& table, size_t most_rows) {
    const TableLines text = LinesOf(table, most_rows, options_.height > 0 ? "" : ": --rows 0");
    TextGrid grid;
    grid.mark = table.estimated ? "~ " : "  ";
    grid.columns = text.looks;
    for (const TableLine& line : text.lines) {
      grid.lines.push_back({.cells = line.cells, .span = line.sums ? text.names : 0, .below = line.below});
    }
    const std::vector<std::string> hidden =
        WriteGrid(grid, options_.wide ? kAnyWidth : options_.width, options_.color, out_);
    // The tables of a document are much alike, so --wide is said once.
    if (hidden.empty() || told_of_wide_ || options_.height > 0) return;
    told_of_wide_ = true;
    std::string names = absl::StrFormat("%d %s hidden", hidden.size(), hidden.size() == 1 ? "column" : "columns");
    for (size_t i = hidden.size(); i-- > 0;) names += (i + 1 == hidden.size() ? " (" : ", ") + hidden[i];
    WriteWrapped(out_, names + "): --wide", options_.width, "  ", "  ");
  }

  const WriteOptions& options_;
  std::ostream& out_;
  const Letters letters_;
  bool first_ = true;
  bool told_of_wide_ = false;
};

// The sections, with the answer of each report behind its others.
std::vector<const Section*> InOrderOfText(const Document& document) {
  std::vector<const Section*> order;
  const Section* answer = nullptr;
  for (const Section& section : document.sections) {
    if (section.first && answer != nullptr) order.push_back(std::exchange(answer, nullptr));
    if (section.answer) {
      answer = &section;
    } else {
      order.push_back(&section);
    }
  }
  if (answer != nullptr) order.push_back(answer);
  return order;
}

// Whether a small screen can do without a sentence of the headline: it must say what it shows, and what is wrong.
bool MayLack(const Document& document, const Sentence& sentence) {
  return &sentence != document.headline.data() && sentence.tone != Tone::kAlarm;
}

// What is left out where there is no room.
struct Omitted {
  size_t sentences = 0;         // of the headline that may be lacking, the last ones
  bool other_sections = false;  // all but that of the last table
};

// `rows_of_last` is of the last table of the document.
void WriteText(const Document& document, const WriteOptions& options, size_t rows_of_last, const Omitted& omitted,
               std::ostream& out) {
  const Section* last = nullptr;
  for (const Section& section : document.sections) last = section.table ? &section : last;
  TableWriter writer(options, out);
  const auto lacking = [&](const Sentence& sentence) { return MayLack(document, sentence); };
  auto left = static_cast<size_t>(std::count_if(document.headline.begin(), document.headline.end(), lacking));
  for (const Sentence& sentence : document.headline) {
    if (!lacking(sentence) || left-- > omitted.sentences) writer.Write(sentence);
  }
  for (const Section* const one : InOrderOfText(document)) {
    const Section& section = *one;
    if (omitted.other_sections && &section != last) continue;
    const size_t own = section.table ? section.table->most_rows : 0;
    writer.Write(section, &section == last ? rows_of_last : own > 0 ? own : options.most_rows);
  }
}

absl::Status WriteDocument(const Document& document, const WriteOptions& options, std::ostream& out) {
  if (options.height == 0) {
    WriteText(document, options, options.most_rows, {}, out);
    return absl::OkStatus();
  }
  Omitted omitted;
  const auto text_with = [&](size_t rows) {
    std::ostringstream text;
    WriteText(document, options, rows, omitted, text);
    return std::move(text).str();
  };
  const auto lines_with = [&](size_t rows) {
    const std::string text = text_with(rows);
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  };
  // A screen of twenty lines has room for rows or for all that is said above them.
  while (lines_with(kLeastRows) > options.height && omitted.sentences < document.headline.size()) ++omitted.sentences;
  omitted.other_sections = lines_with(kLeastRows) > options.height;
  const size_t taken = lines_with(1);
  const size_t room = options.height - std::min(options.height, taken);
  std::istringstream lines(text_with(std::max(kLeastRows, 1 + room)));
  std::string line;
  for (size_t i = 0; i < options.height && std::getline(lines, line); ++i) out << line << '\n';
  return absl::OkStatus();
}

}  // namespace

namespace formats {
Format table() { return {.name = "table", .write = WriteDocument, .also = "text", .colors = true}; }
}  // namespace formats

}  // namespace rfinject::cli
