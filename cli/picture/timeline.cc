#include "cli/picture/timeline.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "cli/picture/axes.h"
#include "cli/picture/phases.h"
#include "cli/report/rows/kernel_name.h"
#include "cli/report/rows/row.h"
#include "cli/text/units.h"

namespace rfinject::cli {
namespace {

constexpr double kTop = 46, kBottom = 40, kRight = 14;
constexpr double kBandwidth = 130, kTensor = 56, kLane = 16, kLayers = 22, kGap = 12, kLegend = 22;
constexpr size_t kMostLanes = 8;  // streams beyond share the last one
constexpr double kNarrowestBlock = 0.25;

size_t LanesOf(const Timeline& timeline) { return std::clamp<size_t>(timeline.streams, 1, kMostLanes); }

// A round distance between ticks, so that there are some `count` of them.
double TickStep(double whole, double count) {
  const double raw = whole / count, decade = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double nice : {1.0, 2.0, 5.0}) {
    if (nice * decade >= raw) return nice * decade;
  }
  return 10 * decade;
}

// The panels from the top, and the axis of time that they share.
class Layout {
 public:
  Layout(const Timeline& timeline, Size size, Picture* out)
      : timeline_(timeline), out_(out), x_(WideLeft(size.width)), width_(size.width - x_ - kRight) {
    out_->plot = {x_, kTop, width_, size.height - kTop - kBottom};
  }

  void Draw() {
    double y = kTop;
    AddCurve({x_, y, width_, kBandwidth}, "DRAM", Roof(), /*is_share=*/false, "tld",
             [](const TimelinePart& part) { return part.dram_bytes_per_s; });
    y += kBandwidth + kGap;
    if (timeline_.has_tensor) {
      AddCurve({x_, y, width_, kTensor}, "tensor", 1, /*is_share=*/true, "tlt",
               [](const TimelinePart& part) { return part.tensor_share; });
      y += kTensor + kGap;
    }
    const double lanes = kLane * static_cast<double>(LanesOf(timeline_));
    AddKernels({x_, y, width_, lanes});
    y += lanes + kGap;
    AddLayers({x_, y, width_, kLayers});
    y += kLayers;
    AddTimeAxis(y);
    AddPhases(y + kBottom - 6);
  }

 private:
  double X(double ns) const { return x_ + width_ * std::clamp(ns / timeline_.period_ns, 0.0, 1.0); }

  double Roof() const {
    double most = timeline_.dram_bytes_per_s;
    for (const TimelinePart& part : timeline_.parts) most = std::max(most, part.dram_bytes_per_s);
    return most;
  }

  void Title(std::string_view text, const Box& box) {
    out_->texts.push_back(MakeText("mu", std::string(text), {box.x - 8, box.y + 11}, Anchor::kEnd, kSmallText));
  }

  // The mean of each column of pixels, from the left; a column without samples is 0.
  template <typename ValueOf>
  void AddCurve(const Box& box, std::string_view title, double most, bool is_share, const char* css,
                ValueOf value_of) {
    AddFrame(box, out_);
    Title(title, box);
    const std::string top = is_share ? "100 %" : WithPrefix(most, "B/s");
    out_->texts.push_back(MakeText("ax", top, {box.x - 8, box.y + 24}, Anchor::kEnd, kSmallText));
    out_->texts.push_back(MakeText("ax", "0", {box.x - 8, box.bottom()}, Anchor::kEnd, kSmallText));
    const double roof = is_share ? 0 : timeline_.dram_bytes_per_s;
    if (roof > 0 && most > 0) {
      const double y = box.bottom() - box.height * roof / most;
      out_->lines.push_back({"fl", {{box.x, y}, {box.right(), y}}});
    }
    if (!(most > 0) || timeline_.parts.empty()) return;
    Line line{css, {{box.x, box.bottom()}}};
    const auto columns = static_cast<size_t>(box.width);
    const double parts = static_cast<double>(timeline_.parts.size());
    for (size_t column = 0; column < columns; ++column) {
      const auto first = static_cast<size_t>(static_cast<double>(column) / static_cast<double>(columns) * parts);
      const auto last = std::min(timeline_.parts.size(),
                                 std::max(first + 1, static_cast<size_t>(static_cast<double>(column + 1) /
                                                                         static_cast<double>(columns) * parts)));
      double sum = 0;
      for (size_t i = first; i < last; ++i) sum += value_of(timeline_.parts[i]);
      const double height = box.height * std::min(1.0, sum / static_cast<double>(last - first) / most);
      const double x = box.x + static_cast<double>(column) + 0.5, y = box.bottom() - height;
      // A point that lies on a level line between two others says nothing.
      if (line.points.size() >= 2 && line.points.back().y == y && line.points[line.points.size() - 2].y == y) {
        line.points.back().x = x;
      } else {
        line.points.push_back({x, y});
      }
    }
    line.points.push_back({box.right(), box.bottom()});
    out_->lines.push_back(std::move(line));
  }

  std::string TitleOf(const TimelineKernel& kernel) const {
    std::string text = ShortKernelName(kernel.kernel);
    std::string place(PhaseName(kernel.phase));
    if (!kernel.layer.empty()) place = kernel.layer + ", " + place;
    if (!kernel.op.empty()) place += ", " + kernel.op;
    text += "\n" + place + "\n" + Duration(kernel.duration_ns) + " at " + Duration(kernel.start_ns);
    if (kernel.dram_bytes > 0 && kernel.duration_ns > 0) {
      text += "\n" + WithPrefix(kernel.dram_bytes, "B") + ", " +
              WithPrefix(kernel.dram_bytes / (kernel.duration_ns * 1e-9), "B/s");
    }
    return text;
  }

  void AddKernels(const Box& box) {
    AddFrame(box, out_);
    Title(timeline_.streams > 1 ? "streams" : "kernels", box);
    for (const TimelineKernel& kernel : timeline_.kernels) {
      const double left = X(kernel.start_ns), right = X(kernel.start_ns + kernel.duration_ns);
      const double y = box.y + kLane * static_cast<double>(std::min(kernel.lane, LanesOf(timeline_) - 1));
      AddPhaseBlock({left, y + 1, std::max(kNarrowestBlock, right - left), kLane - 2}, kernel.phase, TitleOf(kernel),
                    out_);
    }
  }

  void AddLayers(const Box& box) {
    AddFrame(box, out_);
    const bool has_layers =
        std::ranges::any_of(timeline_.kernels, [](const TimelineKernel& kernel) { return !kernel.layer.empty(); });
    Title(has_layers ? "layers" : "operators", box);
    bool odd = false;
    for (const TimelineLayer& layer : timeline_.layers) {
      const double left = X(layer.start_ns), right = X(layer.end_ns);
      odd = !odd;
      AddPhaseBlock({left, box.y + 1, std::max(kNarrowestBlock, right - left), kLayers - 2}, layer.phase,
                    layer.name + ", " + std::string(PhaseName(layer.phase)) + "\n" +
                        Duration(layer.end_ns - layer.start_ns) + " at " + Duration(layer.start_ns),
                    out_, /*paler=*/!odd);
      constexpr double kBeside = 3, kWorthAName = 44;
      const double room = right - left - 2 * kBeside;
      if (room < kWorthAName) continue;
      const Text name = MakeText("bt", FitTo(layer.name, room, kSmallText), {left + kBeside, box.y + 15},
                                 Anchor::kStart, kSmallText);
      if (name.box.width <= room) out_->texts.push_back(name);
    }
  }

  void AddTimeAxis(double y) {
    const double step = TickStep(timeline_.period_ns, std::max(3.0, width_ / 110));
    for (double ns = 0; ns <= timeline_.period_ns * (1 + 1e-9); ns += step) {
      out_->lines.push_back({"tk", {{X(ns), y}, {X(ns), y + 4}}});
      AddTickText(ns == 0 ? "0" : Duration(ns), {X(ns), y + 16}, out_);
    }
  }

  // What the colours of phases are.
  void AddPhases(double y) {
    std::vector<Phase> phases;
    for (const TimelineKernel& kernel : timeline_.kernels) {
      if (std::ranges::find(phases, kernel.phase) == phases.end()) phases.push_back(kernel.phase);
    }
    AddPhaseLegend(phases, {x_, y}, out_);
  }

  const Timeline& timeline_;
  Picture* const out_;
  const double x_, width_;
};

}  // namespace

Size TimelineSize(const Timeline& timeline, double width) {
  const double tensor = timeline.has_tensor ? kTensor + kGap : 0;
  return {width, kTop + kBandwidth + kGap + tensor + kLane * static_cast<double>(LanesOf(timeline)) + kGap + kLayers +
                     kBottom + kLegend};
}

Picture LayOutTimeline(const Timeline& timeline, Size size) {
  Picture out{.kind = "timeline", .size = size};
  out.title = "A step as the GPU saw it: " + timeline.title;
  out.description = TimelineText(timeline);
  AddWideTitle(&out);
  Layout(timeline, size, &out).Draw();
  return out;
}

}  // namespace rfinject::cli
