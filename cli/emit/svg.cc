#include <algorithm>
#include <string>
#include <vector>

#include "cli/emit/emit.h"
#include "cli/emit/markup.h"
#include "cli/emit/plot.h"

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
  const double width = static_cast<double>(columns) * (size.width + kGap) - kGap;
  const double height = std::max(1.0, static_cast<double>(2 * rows) * (size.height + kGap) - kGap);

  std::string svg;
  for (const bool time_view : {false, true}) {
    for (size_t i = 0; i < reports.size(); ++i) {
      const Picture picture = time_view ? LayOutTimeView(reports[i], frames, size)  //
                                        : LayOutRoofline(reports[i], frames, size);
      const size_t row = i / columns + (time_view ? rows : 0);
      WriteOptions options;
      options.id = (time_view ? "time" : "roofline") + std::to_string(i);
      options.offset_x = static_cast<double>(i % columns) * (size.width + kGap);
      options.offset_y = static_cast<double>(row) * (size.height + kGap);
      WritePicture(picture, reports[i], options, &svg);
    }
  }
  std::string title = "rfinject report";
  for (const Report& report : reports) title += (&report == reports.data() ? ": " : "; ") + ReportTitle(report);
  const std::string box = Coordinate(width) + "\" height=\"" + Coordinate(height);
  out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << box
      << "\" viewBox=\"0 0 " << Coordinate(width) << " " << Coordinate(height) << "\" class=\"pic\">\n<title>"
      << MarkupText(title) << "</title>\n<style>\n"
      << PictureStyle(false) << "</style>\n<rect class=\"bg\" width=\"" << box << "\"/>\n"
      << svg << "</svg>\n";
}

}  // namespace rfinject::cli
