#include "cli/picture/svg.h"

#include <algorithm>
#include <span>
#include <vector>

#include "cli/picture/mark_shape.h"
#include "cli/picture/names.h"
#include "cli/picture/palette.h"
#include "cli/report/rows/picture_data.h"
#include "cli/text/units.h"

namespace rfinject::cli {
namespace {

constexpr double kLeastErrorBar = 5;  // pixels, whole; shorter ones are not drawn

// The lines of a mark's tooltip.
std::vector<std::string> TitleLines(const Report& report, const Row& row) {
  const Derived& d = row.derived;
  std::vector<std::string> lines = {MarkLabel(row, report)};
  lines.push_back(Duration(PerStep(report, row.sums.time_ns())) + " a step");
  if (!report.rows_are_runs) lines.back() += ", " + Percent(row.time_share) + " of GPU time";
  if (row.sums.total_flop() > 0) {
    lines.push_back(WithPrefix(d.performance_flop_per_s, "FLOP/s") + " at " + Plain(d.oi_flop_per_byte) +
                    " FLOP/byte");
    if (d.attainable_flop_per_s > 0) {
      lines.push_back(Percent(d.attainable_share) + " of attainable " +
                      WithPrefix(d.attainable_flop_per_s, "FLOP/s") + ", " + std::string(BoundName(d.bound)) +
                      "-bound");
    }
  } else {
    lines.emplace_back("no FLOP");
  }
  if (row.sums.dram_bytes() > 0) {
    lines.push_back(WithPrefix(d.bandwidth_bytes_per_s, "B/s") + " from and to DRAM");
  }
  return lines;
}

// The line breaks are ours; those of a name are shown like all that is invisible.
void AddTitle(const Report& report, const Row& row, Markup* out) {
  out->Add({"<title>"});
  const std::vector<std::string> lines = TitleLines(report, row);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out->Add({"\n"});
    out->Add({Escaped(lines[i])});
  }
  out->Add({"</title>"});
}

void AddLine(const Line& line, Markup* out) {
  out->Add({"<polyline class=\"", Escaped(line.css), "\" points=\""});
  for (size_t i = 0; i < line.points.size(); ++i) {
    if (i > 0) out->Add({" "});
    out->Add({Coordinate(line.points[i].x), ",", Coordinate(line.points[i].y)});
  }
  out->Add({"\"/>\n"});
}

void AddBlock(const Block& block, Markup* out) {
  out->Add({"<rect class=\"", Escaped(block.css), "\" x=\"", Coordinate(block.box.x), "\" y=\"",
            Coordinate(block.box.y), "\" width=\"", Coordinate(block.box.width), "\" height=\"",
            Coordinate(block.box.height)});
  if (block.title.empty()) {
    out->Add({"\"/>\n"});
  } else {
    out->Add({"\"><title>", Escaped(block.title), "</title></rect>\n"});
  }
}

void AddMark(const Mark& mark, const Report& report, const Row& row, const SvgOptions& options, Markup* out) {
  out->Add({"<path class=\"", Escaped(MarkCss(mark)), "\" data-i=\"", Digits(options.first_row + mark.row), "\" d=\"",
            Escaped(MarkPath(mark.phase, mark.at, mark.radius))});
  if (mark.ci_right - mark.ci_left > kLeastErrorBar) {
    out->Add({"M", Coordinate(mark.ci_left), " ", Coordinate(mark.at.y), "H", Coordinate(mark.ci_right)});
  }
  if (mark.ci_bottom - mark.ci_top > kLeastErrorBar) {
    out->Add({"M", Coordinate(mark.at.x), " ", Coordinate(mark.ci_top), "V", Coordinate(mark.ci_bottom)});
  }
  if (!options.titles) {
    out->Add({"\"/>\n"});
    return;
  }
  out->Add({"\">"});
  AddTitle(report, row, out);
  out->Add({"</path>\n"});
}

void AddText(const Text& text, Markup* out) {
  out->Add({"<text class=\"", Escaped(text.css), "\" x=\"", Coordinate(text.at.x), "\" y=\"", Coordinate(text.at.y),
            "\" font-size=\"", Coordinate(text.size), "\""});
  if (text.anchor == Anchor::kMiddle) out->Add({" text-anchor=\"middle\""});
  if (text.anchor == Anchor::kEnd) out->Add({" text-anchor=\"end\""});
  if (text.rotate != 0) {
    out->Add({" transform=\"rotate(", Coordinate(text.rotate), " ", Coordinate(text.at.x), " ", Coordinate(text.at.y),
              ")\""});
  }
  out->Add({">", Escaped(text.text), "</text>\n"});
}

}  // namespace

std::string MarkCss(const Mark& mark) {
  std::string css = "m " + (mark.precision < 0 ? "pn" : ToneOf(mark.precision));
  if (mark.clipped) css += " out";
  if (mark.above_roof) css += " bad";
  return css;
}

Markup PictureSvg(const Picture& picture, const Report* report, const SvgOptions& options) {
  const Digits width = Coordinate(picture.size.width), height = Coordinate(picture.size.height);
  const Markup id = Escaped(options.id);
  Markup out;
  out.Add({"<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"pic\" id=\"", id, "\" data-kind=\"",
           Escaped(picture.kind), "\" x=\"", Coordinate(options.offset.x), "\" y=\"", Coordinate(options.offset.y)});
  out.Add({"\" width=\"", width, "\" height=\"", height, "\" viewBox=\"0 0 ", width, " ", height});
  out.Add({"\" role=\"img\" aria-labelledby=\"", id, "-t ", id, "-d\">\n<title id=\"", id, "-t\">",
           Escaped(picture.title), "</title>\n<desc id=\"", id, "-d\">", Escaped(picture.description), "</desc>\n"});
  out.Add({"<rect class=\"bg\" width=\"", width, "\" height=\"", height, "\"/>\n"});
  for (const Block& block : picture.blocks) AddBlock(block, &out);
  for (const Line& line : picture.lines) AddLine(line, &out);
  out.Add({"<g class=\"marks\">\n"});
  const std::span<const Row> rows = report != nullptr ? PictureRows(*report) : std::span<const Row>();
  for (size_t i = 0; i < std::min(picture.marks.size(), options.most_marks); ++i) {
    if (report == nullptr || picture.marks[i].member) break;
    AddMark(picture.marks[i], *report, rows[picture.marks[i].row], options, &out);
  }
  out.Add({"</g>\n"});
  for (const Symbol& symbol : picture.symbols) {
    out.Add({"<path class=\"", Escaped(symbol.css), "\" d=\"",
             Escaped(MarkPath(symbol.phase, symbol.at, symbol.radius)), "\"/>\n"});
  }
  for (const Text& text : picture.texts) AddText(text, &out);
  out.Add({"</svg>\n"});
  return out;
}

void WriteSvgDocument(const std::string& title, Size size, const Markup& pictures, std::ostream& out) {
  const Digits width = Coordinate(size.width), height = Coordinate(size.height);
  Markup document;
  document.Add({"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"",
                width, "\" height=\"", height, "\" viewBox=\"0 0 ", width, " ", height, "\" class=\"pic\">\n<title>",
                Escaped(title), "</title>\n<style>\n", InStyle(PictureStyle(Theme::kPreferred)),
                "</style>\n<rect class=\"bg\" width=\"", width, "\" height=\"", height, "\"/>\n", pictures,
                "</svg>\n"});
  out << document.text();
}

}  // namespace rfinject::cli
