// The page: one self-contained file. Sections become cards that a navigation jumps to; the section with pictures has
// the table of their rows, which the script sorts, filters and draws.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cli/format/format.h"
#include "cli/format/html/assets/assets.h"
#include "cli/format/html/page_data.h"
#include "cli/picture/palette.h"
#include "cli/picture/svg.h"
#include "cli/text/markup.h"
#include "cli/text/units.h"
#include "cli/view/table_lines.h"

namespace rfinject::cli {
namespace {

// Above this many rows the page opens with the longest of them; the slider brings the rest.
constexpr size_t kShowAllUpTo = 600;
constexpr size_t kMostAtOpening = 2000;
// That the document holds from the start, a picture; the script draws others when they are first shown.
constexpr size_t kMarksInDocument = 1000, kMarksInDocumentOfPhone = 300;
constexpr size_t kMostRows = 2000;  // of a table that is no list of the pictures' rows

// Where the slider stands when the page opens, in percent of each run's time: at 99 where there are many rows, and
// lower where even those would be too many to draw at once.
double OpeningShare(const LinkedTable& table) {
  constexpr double kLeast = 50, kStep = 0.5;
  size_t row_count = 0, row = 0;
  double share = 99;
  for (const RowSet& run : table.runs) {
    const Column& time_share = *run.Find("time_share");
    std::vector<double> times;
    for (size_t i = 0; i < run.size; ++i, ++row) {
      if (table.group_of.empty() || table.group_of[row] < 0) times.push_back(NumberIn(time_share.value(i)));
    }
    row_count += times.size();
    const size_t most = kMostAtOpening / table.runs.size();
    if (times.size() <= most) continue;
    std::sort(times.begin(), times.end(), std::greater<>());
    const double reached = 100 * std::accumulate(times.begin(), times.begin() + static_cast<ptrdiff_t>(most), 0.0);
    share = std::min(share, std::max(kLeast, kStep * std::floor(reached / kStep)));
  }
  return row_count <= kShowAllUpTo ? 100 : share;
}

Markup PageHead(const std::string& title) {
  return {
      "<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
      "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n<meta name=color-scheme "
      "content=\"light dark\">\n<title>",
      Escaped(title),
      "</title>\n<style>\n",
      InStyle(PictureStyle(Theme::kChosen)),
      kReportCss,
      "</style>\n</head>\n"};
}

Markup SourceBadge(const LinkedTable& table) {
  Markup out = {"<span class=\"badge"};
  if (table.measured) out.Add({" measured"});
  return out.Add({"\">", Escaped(table.source), "</span>"});
}

constexpr Literal kThemeButton = "<button id=theme type=button aria-label=\"Light or dark\">Dark</button>";

// The title without the name of the command.
Markup Header(const Document& document) {
  const size_t colon = document.title.find(": ");
  Markup out = {"<header><h1>",
                Escaped(colon == std::string::npos ? document.title : document.title.substr(colon + 2)), "</h1>"};
  for (const Section& section : document.sections) {
    if (section.linked && section.linked->runs.size() == 1) out.Add({SourceBadge(*section.linked)});
  }
  return out.Add({kThemeButton, "</header>\n"});
}

constexpr Literal kNoScript =
    "<noscript><p class=card>Without JavaScript the pictures and the summaries are here; the table of rows, the filters "
    "and the tooltips are not. <code>rfinject report --format csv</code> gives every number.</p></noscript>\n";

constexpr Literal kViewLinks =
    "<p class=links><button type=button class=link data-view=time>Time view</button>: which rows are too short for a "
    "launch. <button type=button class=link data-view=roofline>Roofline</button>: which could be faster, and what holds "
    "them back.</p>\n";

Markup FigureOf(const Figure& figure, const Drawn& drawn, size_t first_row, Medium medium) {
  SvgOptions options;
  options.titles = false;  // the page has tooltips of its own
  options.first_row = first_row;
  const bool narrow = medium == Medium::kPhone;
  options.id = figure.id + (narrow ? "-narrow" : "");
  options.most_marks = narrow ? kMarksInDocumentOfPhone : kMarksInDocument;
  return {narrow ? Literal("<div class=narrow>") : Literal("<div class=wide>"),
          PictureSvg(drawn.picture, drawn.report, options), "</div>"};
}

// The pictures of the runs that the table lists, each with both views. `data` gets the pictures for the script.
Markup DrawnFigures(const Section& section, std::vector<std::vector<Picture>>* data) {
  const std::vector<RowSet>& runs = section.linked->runs;
  std::vector<const Figure*> figures;
  for (const std::vector<Figure>& row : section.figures) {
    for (const Figure& figure : row) figures.push_back(&figure);
  }
  Markup out = {"<section class=pictures id=pictures data-title=Pictures>\n"};
  size_t first_row = 0;
  for (size_t r = 0; r < runs.size(); ++r) {
    out.Add({"<figure>"});
    std::vector<Picture>& pictures = data->emplace_back();
    for (const Medium medium : {Medium::kPage, Medium::kPhone}) {
      // All rooflines come first, then all time views.
      for (size_t i = r; i < figures.size(); i += runs.size()) {
        Drawn drawn = figures[i]->lay_out(medium);
        out.Add({FigureOf(*figures[i], drawn, first_row, medium)});
        pictures.push_back(std::move(drawn.picture));
      }
    }
    out.Add({"</figure>\n"});
    first_row += runs[r].size;
  }
  return out.Add({"</section>\n"});
}

Markup PlainFigures(const Section& section) {
  Markup out;
  for (const std::vector<Figure>& row : section.figures) {
    out.Add({"<div class=pictures>"});
    for (const Figure& figure : row) {
      out.Add({"<figure>"});
      for (const Medium medium : {Medium::kPage, Medium::kPhone}) {
        out.Add({FigureOf(figure, figure.lay_out(medium), 0, medium)});
      }
      out.Add({"</figure>"});
    }
    out.Add({"</div>\n"});
  }
  return out;
}

Markup SentenceList(const std::vector<Sentence>& sentences) {
  if (sentences.empty()) return {};
  Markup out = {"<ul class=sentences>"};
  for (const Sentence& sentence : sentences) {
    out.Add({sentence.tone == Tone::kAlarm    ? Literal("<li class=alarm>")
             : sentence.tone == Tone::kStrong ? Literal("<li class=strong>")
                                              : Literal("<li>")});
    if (!sentence.label.empty()) out.Add({"<b>", Escaped(sentence.label), "</b>"});
    out.Add({Escaped(sentence.text)});
    for (const auto& [label, text] : sentence.details) {
      out.Add({"<div class=muted><b>", Escaped(label), "</b>", Escaped(text), "</div>"});
    }
    out.Add({"</li>"});
  }
  return out.Add({"</ul>"});
}

Markup BarOf(const Bar& bar) {
  constexpr double kLeastShareWithText = 0.12;  // a shorter piece has no room for its name
  Markup out = {"<div class=barname>", Escaped(bar.title), "</div><div class=bar>"};
  for (const auto& [name, share] : bar.parts) {
    if (!(share > 0)) continue;
    const Markup text = Escaped(absl::StrFormat("%s %s", name, Percent(share)));
    out.Add({"<div class=\"ph ph-", Escaped(name), "\" style=\"flex-grow:", JsonNumber(share), "\" title=\"", text,
             "\">"});
    if (share > kLeastShareWithText) out.Add({"<span>", text, "</span>"});
    out.Add({"</div>"});
  }
  return out.Add({"</div>"});
}

Markup TableOf(const Table& table) {
  const TableLines text = LinesOf(table, kMostRows, "");
  const auto is_text = [&](size_t column) { return text.looks[column].left || text.kinds[column] == Kind::kText; };
  // A long table scrolls in a box of its own, so that what follows is not far.
  constexpr size_t kLongTable = 16;
  const bool is_long = text.lines.size() > kLongTable;
  Markup out = {is_long ? Literal("<div class=\"scroll long\" tabindex=0>") : Literal("<div class=scroll>"),
                "<table class=small><thead><tr>"};
  for (size_t i = 0; i < text.looks.size(); ++i) {
    out.Add({is_text(i) ? Literal("<th scope=col>") : Literal("<th scope=col class=num>"),
             Escaped(text.looks[i].title), "</th>"});
  }
  out.Add({"</tr></thead><tbody>\n"});
  for (const TableLine& line : text.lines) {
    out.Add({line.sums ? Literal("<tr class=sum>") : Literal("<tr>")});
    for (size_t i = 0; i < line.cells.size(); ++i) {
      out.Add({is_text(i) ? Literal("<td>") : Literal("<td class=num>"), Escaped(line.cells[i])});
      if (i == 0 && !line.below.empty()) {
        out.Add({"<details><summary>more</summary><pre>"});
        for (const std::string& below : line.below) out.Add({Escaped(below), "\n"});
        out.Add({"</pre></details>"});
      }
      out.Add({"</td>"});
    }
    out.Add({"</tr>\n"});
  }
  return out.Add({"</tbody></table></div>"});
}

Markup Card(const Section& section) {
  Markup content = SentenceList(section.lead);
  if (!section.bars.empty()) {
    content.Add({"<div class=bars>"});
    for (const Bar& bar : section.bars) content.Add({BarOf(bar)});
    content.Add({"</div>"});
  }
  if (section.table) content.Add({TableOf(*section.table)});
  content.Add({SentenceList(section.notes), PlainFigures(section)});
  if (content.empty() && section.heading.empty()) return {};
  const Literal tag = section.folded ? Literal("details") : Literal("section");
  Markup out = {"<", tag, " class=card"};
  if (!section.id.empty()) out.Add({" id=\"", Escaped(section.id), "\""});
  if (!section.tab.empty()) out.Add({" data-title=\"", Escaped(section.tab), "\""});
  out.Add({">"});
  if (!section.heading.empty()) {
    const Literal heading = section.folded ? Literal("summary") : Literal("h2");
    out.Add({"<", heading, ">", Escaped(section.heading), "</", heading, ">"});
  }
  return out.Add({content, "</", tag, ">\n"});
}

absl::Status WriteHtml(const Document& document, const WriteOptions&, std::ostream& out) {
  Markup body = Header(document);
  body.Add({SentenceList(document.headline)});
  for (const Section& section : document.sections) {
    if (!section.linked) {
      body.Add({Card(section)});
      continue;
    }
    const bool many = section.linked->runs.size() > 1;
    std::vector<std::vector<Picture>> pictures;
    const Markup figures = DrawnFigures(section, &pictures);
    body.Add({kNoScript, kViewLinks,
              many ? Literal("<main class=linked>\n") : Literal("<main class=\"linked abreast\">\n"), figures,
              "<section id=\"", Escaped(section.id), "\" data-title=\"", Escaped(section.tab), "\">",
              TableElement(LayersData(*section.linked, pictures, OpeningShare(*section.linked))),
              "</section></main>\n"});
  }
  Markup page = PageHead(document.title);
  page.Add({"<body>\n", body, "<script>\n", kPageJs, "</script>\n</body>\n</html>\n"});
  out << page.text();
  return absl::OkStatus();
}

}  // namespace

namespace formats {
Format html() { return {.name = "html", .write = WriteHtml, .whole_run = true}; }
}  // namespace formats

}  // namespace rfinject::cli
