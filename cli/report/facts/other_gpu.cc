#include "cli/report/facts/other_gpu.h"

#include <utility>

#include "cli/text/units.h"

namespace rfinject::cli {

OtherGpu OtherGpuOf(std::string name, const Sums& total, double steps) {
  OtherGpu other{.name = std::move(name)};
  const double usual_ns = total[Quantity::kUsualTime], here_ns = total[Quantity::kTimeWithUsual];
  if (!(usual_ns > 0) || !(here_ns > 0) || !(total[Quantity::kOtherTime] > 0)) return other;
  other.over_usual = here_ns / usual_ns;
  other.here_ns = here_ns / steps;
  other.known_share = here_ns / total.time_ns();
  other.step_ns = total[Quantity::kOtherTime] * other.over_usual / steps;
  other.low_ns = total[Quantity::kOtherLow] * other.over_usual / steps;
  other.high_ns = total[Quantity::kOtherHigh] * other.over_usual / steps;
  return other;
}

void ScaleOther(const OtherGpu& other, std::span<Row> rows) {
  if (!(other.over_usual > 0)) return;
  for (Row& row : rows) {
    row.sums.ScaleExpected(Expectation::kOther, other.over_usual);
  }
}

std::string OtherGpuText(const OtherGpu& other) {
  if (other.name.empty()) return {};
  if (!(other.step_ns > 0)) {
    return "What this would take on " + other.name +
           " is not known: the run says nothing of its operators' shapes, or its own GPU is in no table";
  }
  std::string text = "On " + other.name + " a step is expected to take " + Duration(other.step_ns) +
                     " (80 %: " + Duration(other.low_ns) + " to " + Duration(other.high_ns) + "), " +
                     Plain(other.step_ns / other.here_ns) +
                     " times as long: what such work usually takes there, times " + Plain(other.over_usual) +
                     " as here";
  constexpr double kNearlyAll = 0.995;
  if (other.known_share < kNearlyAll)
    text += "; of operators that take " + Percent(other.known_share) + " of the time";
  return text;
}

}  // namespace rfinject::cli
