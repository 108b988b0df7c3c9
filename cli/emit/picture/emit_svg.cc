#include <algorithm>
#include <cstddef>
#include <string>

#include "cli/emit/emit.h"
#include "cli/emit/markup.h"
#include "cli/emit/picture/frames.h"
#include "cli/emit/picture/names.h"
#include "cli/emit/picture/roofline.h"
#include "cli/emit/picture/svg.h"
#include "cli/emit/picture/time_view.h"

namespace rfinject::cli {
namespace {

constexpr Size kAlone = {900, 660};
constexpr Size kOneOfMany = {700, 580};
constexpr double kGap = 16;

}  // namespace

// One picture a report, all rooflines first, then all time views; two side by side when there are several reports.
void EmitSvg(std::span<const Report> reports, std::ostream& out) {
  const Frames frames = FramesFor(reports);
  const Size size = reports.size() > 1 ? kOneOfMany : kAlone;
  const size_t columns = std::clamp<size_t>(reports.size(), 1, 2);
  const size_t rows = (reports.size() + columns - 1) / columns;
  Markup pictures;
  for (const bool time_view : {false, true}) {
    for (size_t i = 0; i < reports.size(); ++i) {
      const Picture picture = time_view ? LayOutTimeView(reports[i], frames, size)  //
                                        : LayOutRoofline(reports[i], frames, size);
      const size_t row = i / columns + (time_view ? rows : 0);
      SvgOptions options;
      options.id = (time_view ? "time" : "roofline") + std::to_string(i);
      options.offset = {static_cast<double>(i % columns) * (size.width + kGap),
                        static_cast<double>(row) * (size.height + kGap)};
      pictures.Add({PictureSvg(picture, reports[i], options)});
    }
  }
  const double width = static_cast<double>(columns) * (size.width + kGap) - kGap;
  const double height = std::max(1.0, static_cast<double>(2 * rows) * (size.height + kGap) - kGap);
  WriteSvgDocument(DocumentTitle("rfinject report", reports), {width, height}, pictures, out);
}

}  // namespace rfinject::cli
