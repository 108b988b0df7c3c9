#include "cli/picture/title.h"

#include <algorithm>
#include <string>
#include <vector>

#include "cli/picture/legend.h"
#include "cli/picture/names.h"
#include "cli/words/opening.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kBetweenFacts = " · ";

// The facts of `text` over as many lines as they need at most `width` pixels wide.
std::vector<std::string> LinesOf(const std::string& text, double width) {
  std::vector<std::string> lines(1);
  for (size_t from = 0; from < text.size();) {
    const size_t to = std::min(text.find(kBetweenFacts, from), text.size());
    const std::string fact = text.substr(from, to - from);
    const std::string longer = lines.back().empty() ? fact : lines.back() + std::string(kBetweenFacts) + fact;
    if (!lines.back().empty() && TextWidth(longer) * kText > width) {
      lines.push_back(fact);
    } else {
      lines.back() = longer;
    }
    from = to == text.size() ? to : to + kBetweenFacts.size();
  }
  return lines;
}

}  // namespace

Picture BeginPicture(const Report& report, std::string_view kind, std::string_view view, Size size, double left,
                     int legend_lines) {
  constexpr double kTop = 72;    // below title and subtitle
  constexpr double kRight = 14;  // margin
  constexpr double kBelow = 46;  // ticks and title of the horizontal axis
  Picture picture;
  picture.kind = kind;
  picture.size = size;
  picture.title = std::string(view) + ": " + ReportTitle(report);
  picture.description = SourceTitle(report) + ". " + ReportSubtitle(report);
  picture.plot = {left, kTop, size.width - left - kRight, size.height - kTop - kBelow - kLegendLine * legend_lines};
  return picture;
}

void AddTitle(const Report& report, std::string_view view, Picture* out) {
  const double width = out->size.width;
  const std::string source = SourceTitle(report);
  const std::string title = ReportTitle(report);
  out->texts.push_back(MakeText("ti", FitTo(title, width - 24, kTitleText), {12, 24}, Anchor::kStart, kTitleText));
  std::vector<std::string> lines =
      LinesOf(std::string(view) + std::string(kBetweenFacts) + ReportSubtitle(report), width - 24);
  // There is room for two; the second is free for what to change first.
  if (const std::string gain = LargestGainText(report); lines.size() == 1 && !gain.empty()) lines.push_back(gain);
  for (size_t i = 0; i < std::min<size_t>(lines.size(), 2); ++i) {
    out->texts.push_back(MakeText("mu", FitTo(lines[i], width - 24, kText), {12, 42 + 15 * static_cast<double>(i)},
                                  Anchor::kStart, kText));
  }
  // The badge is in the lower right corner, where work of high intensity that runs slowly would be. That is usually
  // empty, and it is inside the frame, so that the badge stays when the picture is cropped.
  const std::string tone = report.run.source == SourceKind::kMeasured && !report.device.simulated() ? " ms" : "";
  const size_t space = source.find(' ');
  const double right = out->plot.right() - 10, bottom = out->plot.bottom();
  out->texts.push_back(MakeText("so" + tone, source.substr(0, space), {right, bottom - 26}, Anchor::kEnd, 25));
  if (space != std::string::npos) {
    out->texts.push_back(MakeText("so2" + tone, source.substr(space + 1), {right, bottom - 11}, Anchor::kEnd, 12));
  }
}

}  // namespace rfinject::cli
