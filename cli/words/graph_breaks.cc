#include "cli/words/graph_breaks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "cli/text/units.h"

namespace rfinject::cli {
namespace {

std::string TextOf(const trace::GraphBreak& place) {
  std::string text = place.file.empty() ? "a line that torch does not say" : place.file;
  if (place.line > 0) text += ":" + std::to_string(place.line);
  if (!place.function.empty()) text += " in " + place.function;
  if (place.count > 1) text += ", compiled " + Grouped(place.count) + " times";
  if (place.bytes > 0) text += ", " + WithPrefix(static_cast<double>(place.bytes), "B") + " cross it";
  if (!place.reason.empty()) text += ": " + place.reason;
  return text;
}

}  // namespace

std::vector<std::string> GraphBreakTexts(const Report& report) {
  constexpr size_t kMost = 8;
  std::vector<std::string> texts;
  const auto& breaks = report.kept.graph_break;
  for (size_t i = 0; i < std::min(breaks.size(), kMost); ++i) texts.push_back(TextOf(breaks[i]));
  if (breaks.size() > kMost) {
    texts.push_back(Grouped(breaks.size() - kMost) + " more places (rfinject report --format json has all)");
  }
  return texts;
}

}  // namespace rfinject::cli
