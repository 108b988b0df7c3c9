#include <algorithm>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/options.h"
#include "cli/cmd/streams.h"
#include "cli/emit/alarm_texts.h"
#include "cli/emit/glossary.h"
#include "cli/emit/text_grid.h"
#include "cli/report/column.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kUsage =
    "rfinject explain [R001|WORD|COLUMN...|columns]\n\n"
    "What an alarm checks, what it has been, what does not raise it, and what to do; or what a word of a report "
    "means\n"
    "(bound, slack, tier, phase, ...) or a column of CSV and JSON (`columns`: all of these). Without a name: all\n"
    "alarms and words.";

constexpr Option kOptions[] = {
    {"format", 0, "FORMAT", "table (default), or markdown, which is docs/ALARMS.md, and of columns docs/COLUMNS.md",
     "table markdown"}};

constexpr int kWidth = 100;

std::string_view UnitOf(const ColumnInfo& column) {
  switch (column.kind) {
    case Kind::kText:
      return "text";
    case Kind::kCount:
      return "count";
    case Kind::kShare:
      return "share of 1";
    case Kind::kUnit:
    case Kind::kPlain:
      break;
  }
  return column.unit.empty() ? "ratio" : column.unit;
}

// The columns that CSV and JSON have.
void WriteColumns(bool markdown, std::ostream& out) {
  if (markdown) {
    out << "# Columns of CSV and JSON\n\n";
    WriteWrapped(out,
                 "What each column of `rfinject report --format csv` holds, which are also the keys of the rows in "
                 "`--format json`. Names are an interface: they are added, never changed. Sums run over all measured "
                 "steps; `steps` says how many. `--by` decides which of them say what a row is. This file is what "
                 "`rfinject explain columns --format markdown` prints.",
                 120, "", "");
    out << "\n| column | unit | what it is |\n|---|---|---|\n";
  }
  for (const ReportColumn& column : ReportColumns()) {
    const ColumnInfo& info = column.info;
    if (!info.data) continue;
    if (markdown) {
      out << "| `" << info.name << "` | " << UnitOf(info) << " | " << info.help << " |\n";
    } else {
      WriteWrapped(out, absl::StrFormat("%s (%s): %s", info.name, UnitOf(info), info.help), kWidth, "", "  ");
    }
  }
}

void WriteMarkdown(std::ostream& out) {
  constexpr int kMarkdownWidth = 120;
  out << "# Alarms\n\n";
  WriteWrapped(
      out,
      "What must be true of every roofline, and is checked in every report. `rfinject report --strict` exits with "
      "3 when an alarm is raised, `--strict=R001,R004` when one of these is. This file is what `rfinject explain "
      "--format markdown` prints.",
      kMarkdownWidth, "", "");
  for (const AlarmExplanation& alarm : AlarmExplanations()) {
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
  for (const AlarmExplanation& alarm : AlarmExplanations()) words.push_back(alarm.id);
  for (const GlossaryEntry& entry : Glossary()) words.push_back(entry.word);
  words.emplace_back("columns");
  return {kUsage, {std::begin(kOptions), std::end(kOptions)}, ChoicesOf(words)};
}

int ExplainMain(Arguments arguments) {
  ParsedOptions parsed;
  if (const auto code = ParseOptions("explain", ExplainHelp(), arguments, WordPolicy::kAnywhere, &parsed)) {
    return *code;
  }
  const std::string format = parsed.Value("format", "table");
  if (format != "table" && format != "markdown") {
    return UsageError("explain", "--format " + format + ": there are table and markdown");
  }
  const bool markdown = format == "markdown";
  if (parsed.words.size() == 1 && std::string_view(parsed.words.front()) == "columns") {
    std::ostringstream text;
    WriteColumns(markdown, text);
    Print(std::move(text).str());
    return 0;
  }
  std::vector<std::string> wanted;
  std::vector<const ReportColumn*> columns;
  std::vector<const GlossaryEntry*> words;
  for (const char* word : parsed.words) {
    std::vector<std::string> ids;
    if (const GlossaryEntry* const entry = FindWord(word); entry != nullptr) {
      words.push_back(entry);
    } else if (ParseAlarmIds(word, &ids)) {
      wanted.insert(wanted.end(), ids.begin(), ids.end());
    } else if (const ReportColumn* const column = FindColumn(word); column != nullptr) {
      columns.push_back(column);
    } else {
      return UsageError(
          "explain", "'" + std::string(word) +
                         "' is neither an alarm (R001 to R012) nor a column (rfinject explain columns) nor one of: " +
                         GlossaryWords());
    }
  }
  const bool all = parsed.words.empty();
  if (all) {
    for (const GlossaryEntry& entry : Glossary()) words.push_back(&entry);
  }
  if (markdown) {
    std::ostringstream text;
    WriteMarkdown(text);
    Print(std::move(text).str());
    return 0;
  }
  std::ostringstream out;
  bool first = true;
  for (const AlarmExplanation& alarm : AlarmExplanations()) {
    if (!all && std::find(wanted.begin(), wanted.end(), alarm.id) == wanted.end()) continue;
    if (!first) out << '\n';
    first = false;
    out << alarm.id << "  " << alarm.title << '\n';
    const auto part = [&](std::string_view head, std::string_view text) {
      if (!text.empty()) WriteWrapped(out, text, kWidth, std::string(head), "            ");
    };
    part("  checks    ", alarm.checks);
    part("  causes    ", alarm.causes);
    part("  healthy   ", alarm.healthy);
    part("  mend it   ", alarm.mend);
  }
  for (const GlossaryEntry* entry : words) {
    if (!first) out << '\n';
    first = false;
    WriteWrapped(out, std::string(entry->word) + ": " + std::string(entry->meaning), kWidth, "", "  ");
  }
  for (const ReportColumn* column : columns) {
    if (!first) out << '\n';
    first = false;
    WriteWrapped(out, absl::StrFormat("%s (%s): %s", column->info.name, UnitOf(column->info), column->info.help),
                 kWidth, "", "  ");
  }
  Print(std::move(out).str());
  return 0;
}

}  // namespace rfinject::cli
