// File: sections.h
//
// The parts of the HTML page around the pictures and the table. A part is empty where the report has nothing for it.
#ifndef RFINJECT_CLI_EMIT_HTML_SECTIONS_H_
#define RFINJECT_CLI_EMIT_HTML_SECTIONS_H_

#include <cstdint>
#include <string_view>

#include "cli/emit/markup.h"
#include "cli/emit/picture/geometry.h"
#include "cli/report/report.h"

namespace rfinject::cli {

// Where the numbers come from, as a badge.
Markup SourceBadge(const Report& report);
// The first lines that a reader must see; `with_title` puts the run's title before them.
Markup HeadlineSection(const Report& report, bool with_title);
Markup AlarmSection(const Report& report, bool with_title);
// Stacked bars of time, FLOP and bytes by phase, with the same numbers as a table.
Markup PhaseSection(const Report& report);
Markup RoofSection(const Report& report);
// What the run was: source, GPU, policy, processes, versions, what was dropped.
Markup FactSection(const Report& report);
Markup DiagnosticSection(const Report& report);
// What the words of the page mean.
Markup GlossarySection();

// A cell of a table.
enum class CellKind : uint8_t { kText, kNumber };
Markup TableCell(std::string_view text, CellKind kind = CellKind::kText);

// The size of a picture that is laid out for a phone; a larger one that is shrunk to it has no text that can be read.
inline constexpr Size kPhone = {420, 560};

// The document up to its body: what it may load (its own script and style, nothing else), and the style of pages and
// pictures.
Markup PageHead(const std::string& title);

// The button that switches between light and dark; kThemeJs is its script.
inline constexpr Literal kThemeButton = "<button id=theme type=button aria-label=\"Light or dark\">Dark</button>";

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_HTML_SECTIONS_H_
