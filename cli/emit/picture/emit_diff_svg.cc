#include <algorithm>
#include <string>

#include "cli/emit/diff.h"
#include "cli/emit/markup.h"
#include "cli/emit/picture/diff_picture.h"
#include "cli/emit/picture/svg.h"

namespace rfinject::cli {
namespace {

constexpr double kGap = 16;

}  // namespace

// The pairs below each other, the pictures of a pair side by side.
void EmitDiffSvg(const Diff& diff, std::ostream& out) {
  const Frames frames = FramesFor(diff);
  Markup pictures;
  double width = 0, y = 0;
  size_t id = 0;
  for (const RunDiff& pair : diff.pairs) {
    double x = 0, height = 0;
    for (const DiffPicture& laid : LayOutDiff(pair, frames)) {
      SvgOptions options;
      options.id = "diff" + std::to_string(id++);
      options.offset = {x, y};
      pictures.Add({PictureSvg(laid.picture, *laid.report, options)});
      x += laid.picture.size.width + kGap;
      height = std::max(height, laid.picture.size.height);
    }
    width = std::max(width, x - kGap);
    y += height + kGap;
  }
  WriteSvgDocument("rfinject diff", {std::max(width, 1.0), std::max(y - kGap, 1.0)}, pictures, out);
}

}  // namespace rfinject::cli
