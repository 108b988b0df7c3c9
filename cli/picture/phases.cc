#include "cli/picture/phases.h"

#include <utility>

#include "cli/report/rows/row.h"

namespace rfinject::cli {

double WideLeft(double width) { return width < 560 ? 52 : 74; }

void AddWideTitle(Picture* out) {
  constexpr double kRight = 14, kSize = kTitleText - 2;
  const double left = WideLeft(out->size.width);
  out->texts.push_back(
      MakeText("ti", FitTo(out->title, out->size.width - 2 * kRight, kSize), {left, 19}, Anchor::kStart, kSize));
  out->texts.push_back(MakeText("mu", FitTo(out->description, out->size.width - left - kRight, kText), {left, 36},
                                Anchor::kStart, kText));
}

void AddPhaseBlock(const Box& box, Phase phase, std::string title, Picture* out, bool paler) {
  out->blocks.push_back(
      {std::string(paler ? "bk od" : "bk") + " h" + std::to_string(static_cast<int>(phase)), box, std::move(title)});
}

void AddPhaseLegend(std::span<const Phase> phases, Point at, Picture* out) {
  for (const Phase phase : phases) {
    AddPhaseBlock({at.x, at.y - 8, 10, 10}, phase, {}, out);
    const Text name =
        MakeText("ax", std::string(PhaseName(phase)), {at.x + 14, at.y + 1}, Anchor::kStart, kSmallText);
    at.x = name.box.right() + 16;
    out->texts.push_back(name);
  }
}

}  // namespace rfinject::cli
