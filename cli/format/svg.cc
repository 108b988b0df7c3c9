// SVG: the pictures of a document, in rows below each other.
#include "cli/picture/svg.h"

#include <algorithm>
#include <ostream>

#include "cli/format/format.h"

namespace rfinject::cli {
namespace {

constexpr double kGap = 16;

absl::Status WriteSvg(const Document& document, const WriteOptions&, std::ostream& out) {
  Markup pictures;
  double width = 1, y = 0;
  for (const Section& section : document.sections) {
    for (const std::vector<Figure>& row : section.figures) {
      double x = 0, height = 0;
      for (const Figure& figure : row) {
        const Drawn drawn = figure.lay_out(Medium::kFile);
        SvgOptions options;
        options.id = figure.id;
        options.offset = {x, y};
        pictures.Add({PictureSvg(drawn.picture, drawn.report, options)});
        x += drawn.picture.size.width + kGap;
        height = std::max(height, drawn.picture.size.height);
      }
      width = std::max(width, x - kGap);
      y += height + kGap;
    }
  }
  if (pictures.empty()) return absl::InvalidArgumentError("has no picture");
  WriteSvgDocument(document.title, {width, std::max(y - kGap, 1.0)}, pictures, out);
  return absl::OkStatus();
}

}  // namespace

namespace formats {
Format svg() { return {.name = "svg", .write = WriteSvg, .pictures_only = true}; }
}  // namespace formats

}  // namespace rfinject::cli
