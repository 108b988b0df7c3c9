#include "cli/import/imported.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_format.h"

namespace rfinject::cli {

bool DoubtsSums(std::string_view diagnostic_id) {
  constexpr std::string_view kIds[] = {"events-unreadable",    "recording-cut", "kernels-overlap",
                                       "kernels-not-recorded", "no-times",      "lines-unreadable",
                                       "clock-jumps"};
  return std::ranges::find(kIds, diagnostic_id) != std::end(kIds);
}

std::string TimeText(double ns) {
  constexpr const char* kUnits[] = {"ns", "us", "ms", "s"};
  size_t unit = 0;
  constexpr double kNext = 999.5;  // which would be written as 1000
  for (; ns >= kNext && unit + 1 < std::size(kUnits); ++unit) ns /= 1000;
  const int digits = unit == 0 || ns >= 99.95 ? 0 : ns >= 9.995 ? 1 : 2;
  return absl::StrFormat("%.*f %s", digits, ns, kUnits[unit]);
}

}  // namespace rfinject::cli
