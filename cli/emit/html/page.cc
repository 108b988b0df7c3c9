#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "cli/emit/emit.h"
#include "cli/emit/html/assets/assets.h"
#include "cli/emit/html/page_data.h"
#include "cli/emit/html/sections.h"
#include "cli/emit/markup.h"
#include "cli/emit/picture/frames.h"
#include "cli/emit/picture/names.h"
#include "cli/emit/picture/roofline.h"
#include "cli/emit/picture/svg.h"
#include "cli/emit/picture/time_view.h"
#include "cli/report/picture_data.h"

namespace rfinject::cli {
namespace {

constexpr Size kAlone = {780, 700};
constexpr Size kOneOfMany = {660, 580};
// Above this many rows the page opens with the longest of them; the slider brings the rest.
constexpr size_t kShowAllUpTo = 600;
constexpr size_t kMostAtOpening = 2000;
// That the document holds from the start, a picture; the script draws others when they are first shown.
constexpr size_t kMarksInDocument = 1000, kMarksOfPhone = 300;

// Where the slider stands when the page opens, in percent of each run's time: at 99 where there are many rows, and
// lower where even those would be too many to draw at once.
double OpeningShare(std::span<const Report> reports) {
  size_t row_count = 0, most = 0;
  constexpr double kLeast = 50, kStep = 0.5;
  for (const Report& report : reports) {
    for (const Row& row : PictureRows(report)) row_count += row.member_of < 0 ? 1 : 0;
  }
  if (row_count <= kShowAllUpTo) return 100;
  double share = 99;
  for (const Report& report : reports) {
    std::vector<double> times;
    for (const Row& row : PictureRows(report)) {
      if (row.member_of < 0) times.push_back(row.time_share);
    }
    std::sort(times.begin(), times.end(), std::greater<>());
    most = kMostAtOpening / reports.size();
    if (times.size() <= most) continue;
    const double reached = 100 * std::accumulate(times.begin(), times.begin() + static_cast<ptrdiff_t>(most), 0.0);
    share = std::min(share, std::max(kLeast, kStep * std::floor(reached / kStep)));
  }
  return share;
}

Markup Header(std::span<const Report> reports) {
  Markup title = {"No runs"}, badge;
  if (reports.size() == 1) {
    title = Escaped(ReportTitle(reports[0]));
    badge = SourceBadge(reports[0]);
  } else if (!reports.empty()) {
    title = {Digits(reports.size()), " runs"};
  }
  return {"<header><h1>", title, "</h1>", badge, kThemeButton, "</header>\n"};
}

constexpr Literal kNoScript =
    "<noscript><p class=card>Without JavaScript the pictures and the summaries are here; the tables, the filters and "
    "the tooltips are not. <code>rfinject report --format csv</code> gives every number.</p></noscript>\n";

Markup Figures(std::span<const Report> reports, std::span<const std::vector<Picture>> pictures) {
  Markup out = {"<section class=pictures id=pictures data-title=Pictures>\n"};
  size_t first_row = 0;
  for (size_t r = 0; r < reports.size(); ++r) {
    out.Add({"<figure>"});
    for (const Picture& picture : pictures[r]) {
      SvgOptions options;
      options.titles = false;  // the page has tooltips of its own
      options.first_row = first_row;
      options.id = PictureId(picture, r);
      const bool narrow = IsNarrow(picture.size);
      options.most_marks = narrow ? kMarksOfPhone : kMarksInDocument;
      out.Add({narrow ? Literal("<div class=narrow>") : Literal("<div class=wide>"),
               PictureSvg(picture, reports[r], options), "</div>"});
    }
    out.Add({"</figure>\n"});
    first_row += PictureRows(reports[r]).size();
  }
  return out.Add({"</section>\n"});
}

}  // namespace

void EmitHtml(std::span<const Report> given, std::ostream& out) {
  std::vector<Report> reports;
  for (const Report& report : given) reports.push_back(GroupedForPage(report).value_or(report));
  const Frames frames = FramesFor(reports);
  const bool many = reports.size() > 1;
  const Size size = many ? kOneOfMany : kAlone;
  std::vector<std::vector<Picture>> pictures;
  for (const Report& report : reports) {
    pictures.push_back({LayOutRoofline(report, frames, size), LayOutTimeView(report, frames, size),
                        LayOutRoofline(report, frames, kPhone), LayOutTimeView(report, frames, kPhone)});
  }
  Markup page = PageHead(DocumentTitle("rfinject", reports));
  page.Add({"<body>\n", Header(reports), "<div class=heads>"});
  for (const Report& report : reports) page.Add({HeadlineSection(report, many)});
  page.Add({"</div>\n"});
  Markup alarms;
  for (const Report& report : reports) alarms.Add({AlarmSection(report, many)});
  if (!alarms.empty()) page.Add({"<section id=alarms data-title=Alarms>", alarms, "</section>\n"});
  page.Add({kNoScript, many ? Literal("<main class=linked>\n") : Literal("<main class=\"linked abreast\">\n"),
            Figures(reports, pictures), "<section id=layers data-title=Layers>",
            TableElement(LayersData(reports, pictures, OpeningShare(reports))),
            "</section></main>\n<section id=run data-title=\"The run\">\n"});
  for (const Report& report : reports) {
    page.Add({"<div class=about>"});
    if (many) page.Add({"<h2>", Escaped(ReportTitle(report)), "</h2>"});
    page.Add({PhaseSection(report), DiagnosticSection(report), RoofSection(report), FactSection(report), "</div>\n"});
  }
  page.Add({"</section>\n<section id=words data-title=Words>", GlossarySection(), "</section>\n<script>\n", kPageJs,
            "</script>\n</body>\n</html>\n"});
  out << page.text();
}

}  // namespace rfinject::cli
