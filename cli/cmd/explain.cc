#include <unistd.h>

#include <algorithm>
#include <ostream>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/options.h"
#include "cli/cmd/shared_options.h"
#include "cli/cmd/streams.h"
#include "cli/report/alarms/alarm.h"
#include "cli/report/facts/fact.h"
#include "cli/text/grid.h"
#include "cli/view/report_view.h"
#include "cli/view/views.h"
#include "cli/words/glossary.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kExplainUsage =
    "rfinject explain [R001|WORD|COLUMN...|columns]\n\n"
    "What an alarm checks, what it has been, what does not raise it, and what to do; or what a word of a report "
    "means\n"
    "(bound, slack, tier, phase, ...) or a column of CSV and JSON (`columns`: all of these). Without a name: all\n"
    "alarms and words.";

constexpr int kMarkdownWidth = 120;

std::string_view UnitOf(const ColumnInfo& column) {
  if (column.kind == Kind::kText) return "text";
  if (column.kind == Kind::kCount) return "count";
  if (column.kind == Kind::kShare) return "share of 1";
  return column.unit.empty() ? "ratio" : column.unit;
}

struct FoundColumn {
  const ColumnTable* table;
  const ColumnInfo* column;
};

std::string ColumnText(const ColumnInfo& column, const ColumnTable& table, bool of_reports) {
  std::string text = absl::StrFormat("%s (%s%s%s): %s", column.name, UnitOf(column), of_reports ? "" : "; ",
                                     of_reports ? std::string() : std::string(table.of), column.help);
  const auto fact = std::ranges::find(AllRunFacts(), column.help, [](const RunFact& one) { return one.info.help; });
  if (fact == AllRunFacts().end() || fact->lacking.empty()) return text;
  return text + (text.ends_with('.') ? "" : ".") + " Where it is not known: " + std::string(fact->lacking);
}

// Where columns of several tables say the same, the first is enough.
std::vector<FoundColumn> FindColumns(const std::vector<ColumnTable>& tables, std::string_view word) {
  std::vector<FoundColumn> found;
  for (const ColumnTable& table : tables) {
    for (const ColumnInfo& column : table.columns) {
      const bool known = std::any_of(found.begin(), found.end(),
                                     [&](const FoundColumn& one) { return one.column->help == column.help; });
      if (column.name == word && !known) found.push_back({&table, &column});
    }
  }
  if (!found.empty()) return found;
  // By the name that databases and OpenMetrics have, or the title that people have.
  const std::span<const RunFact> facts = AllRunFacts();
  const auto fact = std::ranges::find_if(
      facts, [&](const RunFact& one) { return one.info.name == word || one.info.title == word; });
  if (fact != facts.end()) {
    return {{&*std::ranges::find(tables, "Facts of a whole run", &ColumnTable::title), &fact->info}};
  }
  // By the head that a terminal's table has.
  const ReportColumn* const column = FindColumnOrHead(word);
  if (column == nullptr || !column->info.data) return found;
  for (const ColumnInfo& one : tables.front().columns) {
    if (one.name == column->info.name) found.push_back({&tables.front(), &one});
  }
  return found;
}

// The columns that CSV and JSON have.
void WriteColumns(const std::vector<ColumnTable>& tables, bool markdown, int width, std::ostream& out) {
  if (markdown) {
    out << "# Columns of CSV and JSON\n\n";
    WriteWrapped(
        out,
        "What each column holds that `--format csv` prints, which are also the keys of the rows in `--format "
        "json`. Names are an interface: they are added, never changed. This file is what `rfinject explain "
        "columns --format markdown` prints.",
        kMarkdownWidth, "", "");
  }
  for (const ColumnTable& table : tables) {
    if (markdown) {
      out << "\n## " << table.title << ": `" << table.of << "`\n\n";
      WriteWrapped(out, table.text, kMarkdownWidth, "", "");
      out << "\n| column | unit | what it is |\n|---|---|---|\n";
      for (const ColumnInfo& info : table.columns) {
        out << "| `" << info.name << "` | " << UnitOf(info) << " | " << info.help << " |\n";
      }
      continue;
    }
    if (&table != &tables.front()) out << '\n';
    WriteWrapped(out, absl::StrFormat("%s, %s", table.title, table.of), width, "", "  ");
    for (const ColumnInfo& info : table.columns) {
      WriteWrapped(out, ColumnText(info, table, /*of_reports=*/true), width, "  ", "    ");
    }
  }
}

void WriteMarkdown(std::ostream& out) {
  out << "# Alarms\n\n";
  WriteWrapped(
      out,
      "What must be true of every roofline, and is checked in every report. `rfinject report --strict` exits with "
      "3 when an alarm is raised, `--strict=R001,R004` when one of these is. This file is what `rfinject explain "
      "--format markdown` prints.",
      kMarkdownWidth, "", "");
  for (const AlarmKind& alarm : AlarmKinds()) {
    out << "\n## " << alarm.id << ": " << alarm.title << "\n\n";
    const auto part = [&](std::string_view head, std::string_view text) {
      if (!text.empty()) {
        WriteWrapped(out, std::string(head) + std::string(text), kMarkdownWidth, "* ", "  ");
      }
    };
    part("*Checks.* ", alarm.checks);
    part("*Likely causes.* ", alarm.causes);
    part("*Healthy, and no alarm.* ", alarm.healthy);
    part("*What to do.* ", alarm.mend);
  }
}

}  // namespace

VerbHelp ExplainHelp() {
  std::vector<std::string_view> words;
  for (const AlarmKind& alarm : AlarmKinds()) words.push_back(alarm.id);
  for (const GlossaryEntry& entry : Glossary()) words.push_back(entry.word);
  words.emplace_back("columns");
  return {kExplainUsage,
          {{"format", 0, "FORMAT",
            "table (default), or markdown: docs/reference/ALARMS.md, and of columns COLUMNS.md beside it",
            "table markdown"}},
          ChoicesOf(words)};
}

int ExplainMain(const ParsedOptions& parsed) {
  const std::string format = parsed.Value("format", "table");
  if (format != "table" && format != "markdown") {
    return UsageError("explain", "--format " + format + ": there are table and markdown");
  }
  const bool markdown = format == "markdown";
  const int width = WriteOptionsFor(STDOUT_FILENO).width;
  const std::vector<ColumnTable> tables = AllColumnTables();
  std::ostringstream out;
  if (parsed.words.size() == 1 && parsed.words.front() == "columns") {
    WriteColumns(tables, markdown, width, out);
    Print(out.str());
    return 0;
  }
  std::vector<std::string> wanted;
  std::vector<FoundColumn> columns;
  std::vector<const GlossaryEntry*> words;
  for (const std::string& word : parsed.words) {
    std::vector<std::string> ids;
    if (const GlossaryEntry* const entry = FindWord(word); entry != nullptr) {
      words.push_back(entry);
    } else if (ParseAlarmIds(word, &ids)) {
      wanted.insert(wanted.end(), ids.begin(), ids.end());
    } else if (const std::vector<FoundColumn> found = FindColumns(tables, word); !found.empty()) {
      columns.insert(columns.end(), found.begin(), found.end());
    } else {
      return UsageError("explain", "'" + word + "' is neither an alarm (" + AlarmRange() +
                                       ") nor a column (rfinject explain columns) nor one of: " + GlossaryWords());
    }
  }
  const bool all = parsed.words.empty();
  if (all) {
    for (const GlossaryEntry& entry : Glossary()) words.push_back(&entry);
  }
  if (markdown) {
    WriteMarkdown(out);
    Print(out.str());
    return 0;
  }
  const auto begin_entry = [&out] {
    if (out.tellp() > 0) out << '\n';
  };
  for (const AlarmKind& alarm : AlarmKinds()) {
    if (!all && std::find(wanted.begin(), wanted.end(), alarm.id) == wanted.end()) continue;
    begin_entry();
    out << alarm.id << "  " << alarm.title << '\n';
    const auto part = [&](std::string_view head, std::string_view text) {
      if (!text.empty()) WriteWrapped(out, text, width, std::string(head), "            ");
    };
    part("  checks    ", alarm.checks);
    part("  causes    ", alarm.causes);
    part("  healthy   ", alarm.healthy);
    part("  mend it   ", alarm.mend);
  }
  for (const GlossaryEntry* entry : words) {
    begin_entry();
    WriteWrapped(out, std::string(entry->word) + ": " + std::string(entry->meaning), width, "", "  ");
  }
  for (const FoundColumn& found : columns) {
    begin_entry();
    WriteWrapped(out, ColumnText(*found.column, *found.table, found.table == &tables.front()), width, "", "  ");
  }
  Print(out.str());
  return 0;
}

}  // namespace rfinject::cli
