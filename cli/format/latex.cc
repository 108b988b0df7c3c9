// LaTeX: the tables of a document for a paper, with the rules of the package booktabs. Sentences stand around them as
// paragraphs.
#include <array>
#include <ostream>
#include <string>
#include <string_view>

#include "cli/format/format.h"
#include "cli/text/code_points.h"
#include "cli/view/table_lines.h"

namespace rfinject::cli {
namespace {

// `text` as LaTeX shows it: nothing in it is a command. Characters beyond ASCII need a LaTeX of 2018 or later.
std::string Tex(std::string_view text) {
  std::string out;
  for (const char c : PrintableText(text)) {
    switch (c) {
      case '\\':
        out += "\\textbackslash{}";
        break;
      case '~':
        out += "\\textasciitilde{}";
        break;
      case '^':
        out += "\\textasciicircum{}";
        break;
      case '#':
      case '$':
      case '%':
      case '&':
      case '_':
      case '{':
      case '}':
        out += '\\';
        [[fallthrough]];
      default:
        out += c;
    }
  }
  return out;
}

void WriteSentences(const std::vector<Sentence>& sentences, std::ostream& out) {
  for (const Sentence& sentence : sentences) {
    out << Tex(sentence.label + sentence.text) << '\n';
    for (const auto& [label, text] : sentence.details) out << Tex(label + text) << '\n';
    out << '\n';
  }
}

void WriteTable(const Table& table, const WriteOptions& options, std::ostream& out) {
  const TableLines text = LinesOf(table, options.most_rows, "");
  out << "\\begin{tabular}{";
  for (size_t i = 0; i < text.looks.size(); ++i) out << (text.looks[i].left || i < text.names ? 'l' : 'r');
  out << "}\n\\toprule\n";
  const auto write_line = [&out](const auto& cells, const auto& text_of) {
    for (size_t i = 0; i < cells.size(); ++i) out << (i > 0 ? " & " : "") << Tex(text_of(cells[i]));
    out << " \\\\\n";
  };
  write_line(text.looks, [](const TableLook& look) { return look.title; });
  out << "\\midrule\n";
  for (size_t i = 0; i < text.lines.size(); ++i) {
    if (i > 0 && text.lines[i].sums && !text.lines[i - 1].sums) out << "\\midrule\n";
    write_line(text.lines[i].cells, [](const std::string& cell) { return std::string_view(cell); });
  }
  out << "\\bottomrule\n\\end{tabular}\n";
  if (table.estimated) out << "\n\\emph{Estimated, not measured.}\n";
}

absl::Status WriteLatex(const Document& document, const WriteOptions& options, std::ostream& out) {
  out << "% " << PrintableText(document.title) << "; needs \\usepackage{booktabs}\n";
  WriteSentences(document.headline, out);
  for (const Section& section : document.sections) {
    if (!section.HasText()) continue;
    if (!section.heading.empty()) out << "\n\\paragraph{" << Tex(section.heading) << "}\n\n";
    WriteSentences(section.lead, out);
    if (section.table) WriteTable(*section.table, options, out);
    WriteSentences(section.notes, out);
  }
  return absl::OkStatus();
}

constexpr auto kLatexMarks = std::to_array<OwnMark>({{"% rfinject "}});

}  // namespace

namespace formats {
Format latex() { return {.name = "latex", .write = WriteLatex, .marks = kLatexMarks}; }
}  // namespace formats

}  // namespace rfinject::cli
