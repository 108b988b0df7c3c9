// Markdown: for a comment on a change, or a page of a wiki.
#include <ostream>
#include <string>

#include "cli/format/format.h"
#include "cli/text/markup.h"
#include "cli/view/table_lines.h"

namespace rfinject::cli {
namespace {

void WriteSentence(const Sentence& sentence, std::ostream& out) {
  const bool strong = sentence.tone != Tone::kPlain;
  out << "* " << (strong ? "**" : "") << MarkdownText(sentence.label + sentence.text) << (strong ? "**" : "") << '\n';
  for (const auto& [label, text] : sentence.details) out << "  * " << MarkdownText(label + text) << '\n';
}

void WriteMarkdownTable(const Table& table, const WriteOptions& options, std::ostream& out) {
  const TableLines text = LinesOf(table, options.most_rows, "");
  if (table.estimated) out << "Estimated, not measured.\n\n";
  for (const TableLook& look : text.looks) out << "| " << MarkdownText(look.title) << ' ';
  out << "|\n";
  for (size_t i = 0; i < text.looks.size(); ++i) out << (text.looks[i].left || i < text.names ? "|---" : "|--:");
  out << "|\n";
  for (const TableLine& line : text.lines) {
    for (const std::string& cell : line.cells) out << "| " << MarkdownText(cell) << ' ';
    out << "|\n";
  }
}

absl::Status WriteMarkdown(const Document& document, const WriteOptions& options, std::ostream& out) {
  out << "## " << MarkdownText(document.title) << "\n\n";
  for (const Sentence& sentence : document.headline) WriteSentence(sentence, out);
  for (const Section& section : document.sections) {
    if (!section.HasText()) continue;
    out << '\n';
    if (!section.heading.empty()) out << "### " << MarkdownText(section.heading) << "\n\n";
    for (const Sentence& sentence : section.lead) WriteSentence(sentence, out);
    if (section.table) {
      if (!section.lead.empty()) out << '\n';
      WriteMarkdownTable(*section.table, options, out);
      if (!section.notes.empty()) out << '\n';
    }
    for (const Sentence& sentence : section.notes) WriteSentence(sentence, out);
  }
  return absl::OkStatus();
}

}  // namespace

namespace formats {
Format markdown() { return {.name = "markdown", .write = WriteMarkdown}; }
}  // namespace formats

}  // namespace rfinject::cli
