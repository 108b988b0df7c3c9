#include "cli/emit/plot.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <set>
#include <utility>

#include "cli/emit/markup.h"
#include "cli/report/run_name.h"
#include "cli/report/units.h"

namespace rfinject::cli {
namespace {

constexpr double kSmallText = 10, kText = 11, kLabelText = 11, kTitleText = 17;
constexpr size_t kTopLabels = 8, kTopRunLabels = 24;
constexpr double kLeastLabelledShare = 0.004;
constexpr double kLeastCoveringShare = 0.015;  // of a mark whose label may cover other marks
constexpr size_t kMarksKeptFree = 300;         // the largest; the rest are dots
constexpr double kWholeRadius = 56;            // of a mark that takes all of the GPU time
constexpr double kLeastRadius = 2.2;           // smaller ones could not be seen
constexpr double kRunRadius = 6;               // of a mark that is a whole run
constexpr double kLeastErrorBar = 5;           // pixels, whole; shorter ones are not drawn
constexpr size_t kMarksWithLevels = 8;
constexpr double kAboveRoof = 1.03;  // R001's tolerance
constexpr double kLeftmostOi = 1e-2;
constexpr int kTimeDecades = 6;
constexpr int kGutterLow = -1, kGutterHigh = 2;  // percent of the bandwidth roof: 0.1 % to 100 %

struct ShadePair {
  const char* light;
  const char* dark;
};
// By Precision. Each has a contrast of at least 3:1 against its ground.
constexpr ShadePair kPrecisionShades[kPrecisionCount] = {
    {"#7a6a00", "#f0e442"},  // FP64
    {"#0067a5", "#5ab4f0"},  // FP32
    {"#00838f", "#6fe0e8"},  // FP16 scalar
    {"#c8500a", "#ff9d4d"},  // TF32 tensor
    {"#007f5c", "#2fd6a3"},  // FP16 tensor
    {"#a8457f", "#ee9fcb"},  // BF16 tensor
    {"#8a5a2b", "#d2a06d"},  // FP8 tensor
    {"#5b4fb5", "#b3a8ff"},  // FP64 tensor
};
constexpr ShadePair kNoFlopShade = {"#5f6b76", "#aab4be"};

double Flop(const FlopByPrecision& flop) {
  double sum = 0;
  for (const double f : flop) sum += f;
  return sum;
}

double MemoryRoof(const Report& report) {
  if (report.machine.dram_bytes_per_s > 0) return report.machine.dram_bytes_per_s;
  double best = 0;
  for (const RoofLine& roof : report.roofs) {
    if (roof.level == "DRAM") best = std::max(best, roof.bytes_per_s);
  }
  return best;
}

int PhaseOf(const Row& row) {
  for (size_t i = 0; i < kPhaseNames.size(); ++i) {
    if (row.phase == kPhaseNames[i]) return static_cast<int>(i);
  }
  return -1;
}

int DecadeBelow(double value) { return static_cast<int>(std::floor(std::log10(value) + 1e-9)); }
int DecadeAbove(double value) { return static_cast<int>(std::ceil(std::log10(value) - 1e-9)); }

double StepNs(const Report& report, double sum_ns) {
  return report.steps > 0 ? sum_ns / static_cast<double>(report.steps) : sum_ns;
}

double RadiusOf(double share) {
  return std::max(kLeastRadius, kWholeRadius * std::sqrt(std::clamp(share, 0.0, 1.0)));
}

Box TextBox(std::string_view text, Point at, Anchor anchor, double size) {
  const double width = TextWidth(text) * size;
  const double left = anchor == Anchor::kStart ? at.x : anchor == Anchor::kEnd ? at.x - width : at.x - width / 2;
  return {left, at.y - size * 0.78, width, size};
}

Text MakeText(std::string css, std::string text, Point at, Anchor anchor, double size) {
  Text made{std::move(css), std::move(text), at, anchor, size, 0, {}};
  made.box = TextBox(made.text, at, anchor, size);
  return made;
}

bool Inside(const Box& inner, const Box& outer) {
  return inner.x >= outer.x && inner.y >= outer.y && inner.right() <= outer.right() &&
         inner.bottom() <= outer.bottom();
}

Point NearestPoint(const Box& box, Point to) {
  return {std::clamp(to.x, box.x, box.right()), std::clamp(to.y, box.y, box.bottom())};
}

// Whether the segment touches the box (the slab method).
bool Crosses(Point from, Point to, const Box& box) {
  double enter = 0, leave = 1;
  const auto slab = [&](double start, double delta, double low, double high) {
    if (delta == 0) return start >= low && start <= high;
    const double a = (low - start) / delta, b = (high - start) / delta;
    enter = std::max(enter, std::min(a, b));
    leave = std::min(leave, std::max(a, b));
    return enter <= leave;
  };
  return slab(from.x, to.x - from.x, box.x, box.right()) && slab(from.y, to.y - from.y, box.y, box.bottom());
}

// Whether two segments cross (both ends of each lie on different sides of the other).
bool Meet(Point a, Point b, Point c, Point d) {
  const auto side = [](Point p, Point q, Point r) { return (q.x - p.x) * (r.y - p.y) - (q.y - p.y) * (r.x - p.x); };
  return side(a, b, c) * side(a, b, d) < 0 && side(c, d, a) * side(c, d, b) < 0;
}

// Places labels one after the other; what was placed before is never covered.
class Labels {
 public:
  explicit Labels(Box bounds) : bounds_(bounds) {}
  void Block(const Box& box) { hard_.push_back(box); }
  void BlockIfPossible(const Box& box) { marks_.push_back(box); }
  // Boxes along a line, kept free as long as there is another place.
  void BlockLine(Point from, Point to, double thickness) {
    const double length = std::hypot(to.x - from.x, to.y - from.y);
    const int pieces = std::max(1, static_cast<int>(length / 8));
    const bool straight = from.x == to.x || from.y == to.y;
    for (int i = 0; i < (straight ? 1 : pieces); ++i) {
      const double a = straight ? 0 : static_cast<double>(i) / pieces;
      const double b = straight ? 1 : static_cast<double>(i + 1) / pieces;
      const Point p{from.x + (to.x - from.x) * a, from.y + (to.y - from.y) * a};
      const Point q{from.x + (to.x - from.x) * b, from.y + (to.y - from.y) * b};
      lines_.push_back({std::min(p.x, q.x) - thickness / 2, std::min(p.y, q.y) - thickness / 2,
                        std::fabs(q.x - p.x) + thickness, std::fabs(q.y - p.y) + thickness});
    }
  }
  enum class Avoid : uint8_t { kTexts, kTextsAndMarks, kAll };
  bool Free(const Box& box, Avoid avoid) const {
    if (!Inside(box, bounds_)) return false;
    const auto hits = [&](const Box& other) { return Overlap(box, other); };
    return std::none_of(hard_.begin(), hard_.end(), hits) &&
           (avoid == Avoid::kTexts || std::none_of(marks_.begin(), marks_.end(), hits)) &&
           (avoid != Avoid::kAll || std::none_of(lines_.begin(), lines_.end(), hits));
  }
  void BlockLeader(Point from, Point to) { leaders_.push_back({from, to}); }
  // The first free candidate: best one that covers nothing, else one that covers lines, and, unless `spare_marks`,
  // else one that covers marks. With `target` its leader, the line from there to the text, must not cross another
  // text.
  std::optional<Text> Place(std::span<const Text> candidates, const Point* target = nullptr,
                            bool spare_marks = false) {
    for (const Avoid avoid : {Avoid::kAll, Avoid::kTextsAndMarks, Avoid::kTexts}) {
      if (avoid == Avoid::kTexts && spare_marks) break;
      for (const Text& candidate : candidates) {
        Box padded = candidate.box;
        padded.x -= 2, padded.width += 4, padded.y -= 1, padded.height += 2;
        if (!Free(padded, avoid)) continue;
        const auto crosses = [&](const Box& box) { return Crosses(*target, NearestPoint(padded, *target), box); };
        if (target != nullptr && std::any_of(texts_.begin(), texts_.end(), crosses)) continue;
        const auto meets = [&](const auto& leader) {
          return Meet(*target, NearestPoint(padded, *target), leader.first, leader.second);
        };
        if (target != nullptr && std::any_of(leaders_.begin(), leaders_.end(), meets)) continue;
        const auto covers = [&](const auto& leader) { return Crosses(leader.first, leader.second, padded); };
        if (std::any_of(leaders_.begin(), leaders_.end(), covers)) continue;
        hard_.push_back(padded);
        texts_.push_back(padded);
        return candidate;
      }
    }
    return std::nullopt;
  }

 private:
  Box bounds_;
  std::vector<Box> hard_, texts_, marks_, lines_;
  std::vector<std::pair<Point, Point>> leaders_;
};

// Candidate places for a label around a mark, near ones first.
std::vector<Text> Around(const std::string& css, const std::string& text, Point at, double radius, double size) {
  std::vector<Text> candidates;
  for (const double away : {3.0, 12.0, 24.0, 40.0, 60.0, 84.0, 112.0, 144.0}) {
    const double d = radius + away;
    candidates.push_back(MakeText(css, text, {at.x + d, at.y + size * 0.35}, Anchor::kStart, size));
    candidates.push_back(MakeText(css, text, {at.x - d, at.y + size * 0.35}, Anchor::kEnd, size));
    candidates.push_back(MakeText(css, text, {at.x, at.y + d + size * 0.85}, Anchor::kMiddle, size));
    candidates.push_back(MakeText(css, text, {at.x, at.y - d - size * 0.25}, Anchor::kMiddle, size));
    for (const double degrees : {45.0, 20.0, 70.0}) {
      const double x = d * std::cos(degrees * std::numbers::pi / 180),
                   y = d * std::sin(degrees * std::numbers::pi / 180);
      for (const double sx : {1.0, -1.0}) {
        for (const double sy : {1.0, -1.0}) {
          candidates.push_back(MakeText(css, text, {at.x + sx * x, at.y + sy * y + size * 0.35},
                                        sx > 0 ? Anchor::kStart : Anchor::kEnd, size));
        }
      }
    }
  }
  return candidates;
}

// "10 G": the label of a decade.
std::string DecadeText(int exponent) {
  constexpr const char* kPrefixes[] = {"", " k", " M", " G", " T", " P", " E"};
  const int step = std::clamp(exponent >= 0 ? exponent / 3 : 0, 0, 6);
  return Coordinate(std::pow(10.0, exponent - 3 * step)) + kPrefixes[step];
}

std::string OiText(int exponent) {
  if (exponent < 0) return "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + "1";
  return Grouped(static_cast<uint64_t>(std::llround(std::pow(10.0, exponent))));
}

// Of 10^exponent ns.
std::string TimeText(int exponent) {
  if (exponent < 0) return OiText(exponent) + " ns";
  constexpr const char* kUnits[] = {" ns", " µs", " ms", " s"};
  const int step = std::min(exponent / 3, 3);
  return Grouped(static_cast<uint64_t>(std::llround(std::pow(10.0, exponent - 3 * step)))) + kUnits[step];
}

// Below a decade's tick, but not beyond the picture's edge.
Text TickText(const std::string& text, Point at, double width) {
  const Text centred = MakeText("ax", text, at, Anchor::kMiddle, kText);
  return centred.box.right() <= width - 3 ? centred : MakeText("ax", text, {width - 3, at.y}, Anchor::kEnd, kText);
}

// `text` with its middle left out until it is at most `width` pixels wide.
std::string FitTo(const std::string& text, double width, double size) {
  std::string fitted = text;
  for (size_t most = text.size(); most > 8 && TextWidth(fitted) * size > width; --most)
    fitted = ElideMiddle(text, most);
  return fitted;
}

// What both pictures have: the title, the badge in the plot's corner, the legend.
void AddTitle(const Report& report, std::string_view picture, Picture* out) {
  const double width = out->size.width;
  const std::string source = SourceTitle(report);
  const std::string title = ReportTitle(report);
  out->texts.push_back(MakeText("ti", FitTo(title, width - 24, kTitleText), {12, 24}, Anchor::kStart, kTitleText));
  // The subtitle in as many lines as it needs, at most two.
  const std::string subtitle = std::string(picture) + " · " + ReportSubtitle(report);
  std::vector<std::string> lines(1);
  for (size_t from = 0; from < subtitle.size();) {
    size_t to = subtitle.find(" · ", from);
    to = to == std::string::npos ? subtitle.size() : to;
    const std::string part = subtitle.substr(from, to - from);
    const std::string longer = lines.back().empty() ? part : lines.back() + " · " + part;
    if (!lines.back().empty() && TextWidth(longer) * kText > width - 24) {
      lines.push_back(part);
    } else {
      lines.back() = longer;
    }
    from = to == subtitle.size() ? to : to + std::string_view(" · ").size();
  }
  for (size_t i = 0; i < std::min<size_t>(lines.size(), 2); ++i) {
    out->texts.push_back(MakeText("mu", FitTo(lines[i], width - 24, kText), {12, 42 + 15 * static_cast<double>(i)},
                                  Anchor::kStart, kText));
  }
  // In the lower right corner, where work of high intensity that runs slowly would be: usually empty, and inside the
  // frame, so that it stays when somebody cuts the picture out.
  const std::string tone = report.run.source == SourceKind::kMeasured ? " ms" : "";
  const size_t space = source.find(' ');
  const double right = out->plot.right() - 10, bottom = out->plot.bottom();
  out->texts.push_back(MakeText("so" + tone, source.substr(0, space), {right, bottom - 26}, Anchor::kEnd, 25));
  if (space != std::string::npos) {
    out->texts.push_back(MakeText("so2" + tone, source.substr(space + 1), {right, bottom - 11}, Anchor::kEnd, 12));
  }
}

struct LegendItem {
  std::string symbol_css;  // of a mark
  std::string line_css;    // of a line
  int phase = -1;
  double radius = 5;
  std::string text;
};

// Flows the items over lines of the strip below the plot and returns how many lines that takes.
int AddLegend(const std::vector<LegendItem>& items, double top, Picture* out) {
  double x = 12;
  int line = 0;
  for (const LegendItem& item : items) {
    const double symbol =
        item.line_css.empty() ? (item.symbol_css.empty() ? 0 : std::max(10.0, 2 * item.radius)) : 24;
    const double width = symbol + 5 + TextWidth(item.text) * kSmallText + 16;
    if (x > 12 && x + width > out->size.width - 4) {
      x = 12;
      ++line;
    }
    const double y = top + line * 17;
    if (!item.line_css.empty()) {
      out->lines.push_back({item.line_css, {{x, y - 3.5}, {x + symbol, y - 3.5}}});
    } else if (!item.symbol_css.empty()) {
      out->symbols.push_back({item.symbol_css, item.phase, {x + symbol / 2, y - 3.5}, item.radius});
    }
    const double text_x = symbol > 0 ? x + symbol + 5 : x;
    out->texts.push_back(MakeText("mu", item.text, {text_x, y}, Anchor::kStart, kSmallText));
    x += width;
  }
  return line + 1;
}

std::vector<LegendItem> MarkLegend(const Frames& frames) {
  std::vector<LegendItem> items;
  for (const Phase phase : {Phase::kForward, Phase::kBackward, Phase::kRecompute, Phase::kOptimizer, Phase::kData,
                            Phase::kCommunication, Phase::kOther}) {
    if (frames.phases.contains(static_cast<int>(phase))) {
      items.push_back(
          {"sy sy0", "", static_cast<int>(phase), 5, std::string(kPhaseNames[static_cast<size_t>(phase)])});
    }
  }
  for (size_t p = 0; p < kPrecisionCount; ++p) {
    if (frames.precisions.contains(static_cast<int>(p))) {
      items.push_back({"sy p" + std::to_string(p), "", -1, 5, "most FLOP in " + std::string(kPrecisionTitles[p])});
    }
  }
  if (frames.gutter) items.push_back({"sy pn", "", -1, 5, "no FLOP"});
  if (frames.time_shares) {
    items.push_back({"sy sy0", "", -1, RadiusOf(0.01), "1 % of GPU time,"});
    items.push_back({"sy sy0", "", -1, RadiusOf(0.04), "4 %"});
  }
  return items;
}

// Estimates from the items how many lines the legend will take, before the plot's height is known.
int LegendLines(const std::vector<LegendItem>& items, double width) {
  Picture scratch;
  scratch.size.width = width;
  return AddLegend(items, 0, &scratch);
}

std::vector<size_t> ByTime(std::span<const Row> rows) {
  std::vector<size_t> order(rows.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return rows[a].sums.time_ns() > rows[b].sums.time_ns(); });
  return order;
}

// Gutter lanes: one for each phase that has rows without FLOP.
std::vector<int> GutterPhases(std::span<const Row> rows) {
  std::vector<int> lanes;
  for (const int phase : {1, 2, 6, 3, 4, 5, 0, -1}) {
    for (const Row& row : rows) {
      if (PhaseOf(row) == phase && Flop(row.sums.flop()) <= 0) {
        lanes.push_back(phase);
        break;
      }
    }
  }
  return lanes;
}

double LaneX(const Box& gutter, const std::vector<int>& lanes, int phase) {
  const auto found = std::find(lanes.begin(), lanes.end(), phase);
  const double lane = static_cast<double>(found - lanes.begin());
  return gutter.x + gutter.width * (lane + 0.5) / static_cast<double>(std::max<size_t>(lanes.size(), 1));
}

// Clamps to `box` and says whether that moved the point.
bool ClampTo(const Box& box, Point* at) {
  const Point before = *at;
  at->x = std::clamp(at->x, box.x, box.right());
  at->y = std::clamp(at->y, box.y, box.bottom());
  return std::fabs(at->x - before.x) > 0.5 || std::fabs(at->y - before.y) > 0.5;
}

void AddDecadeGrid(const Frames&, const Decades& x, const Decades& y, Picture* out) {
  const Box& plot = out->plot;
  for (int e = x.low; e <= x.high; ++e) {
    for (int m = 1; m < 10 && (m == 1 || e < x.high); ++m) {
      const double at = LogPosition(x, m * std::pow(10.0, e), plot.x, plot.right());
      if (m == 1) {
        out->lines.push_back({"gr", {{at, plot.y}, {at, plot.bottom()}}});
      } else {
        out->lines.push_back({"tk", {{at, plot.bottom() - 3}, {at, plot.bottom()}}});
      }
    }
  }
  for (int e = y.low; e <= y.high; ++e) {
    for (int m = 1; m < 10 && (m == 1 || e < y.high); ++m) {
      const double at = LogPosition(y, m * std::pow(10.0, e), plot.bottom(), plot.y);
      if (m == 1) {
        out->lines.push_back({"gr", {{plot.x, at}, {plot.right(), at}}});
      } else {
        out->lines.push_back({"tk", {{plot.x, at}, {plot.x + 3, at}}});
      }
    }
  }
}

void AddFrame(const Box& box, Picture* out) {
  out->lines.push_back(
      {"fr",
       {{box.x, box.y}, {box.right(), box.y}, {box.right(), box.bottom()}, {box.x, box.bottom()}, {box.x, box.y}}});
}

// Whether the run uses the precision of this roof, over whichever path.
bool PrecisionUsed(std::span<const RoofLine> roofs, const RoofLine& of) {
  return std::any_of(roofs.begin(), roofs.end(), [&](const RoofLine& roof) {
    return roof.used && roof.peak_flop_per_s > 0 && roof.precision == of.precision;
  });
}

// The lower path of a precision that the run does not use is of no interest, and there is little room for it.
bool Drawn(std::span<const RoofLine> roofs, const RoofLine& of) {
  if (of.path.empty() || PrecisionUsed(roofs, of)) return true;
  return std::none_of(roofs.begin(), roofs.end(), [&](const RoofLine& roof) {
    return roof.precision == of.precision && roof.kind == of.kind && roof.peak_flop_per_s > of.peak_flop_per_s;
  });
}

std::string LineKindCss(const RoofLine& roof) {
  if (roof.kind == "measured clock") return " dash";
  if (roof.kind == "empirical") return " dot";
  return "";
}

// Roofs that are drawn on top of each other get one label: "FP16, BF16 tensor, 312 TFLOP/s".
struct RoofLabel {
  std::string text;
  const RoofLine* roof = nullptr;
  bool used = false;
};
std::vector<RoofLabel> RoofLabels(std::span<const RoofLine> roofs) {
  std::vector<RoofLabel> labels;
  for (const RoofLine& roof : roofs) {
    if (!(roof.peak_flop_per_s > 0) || !Drawn(roofs, roof)) continue;
    // Levels below DRAM repeat the same peaks.
    const bool drawn_before = std::any_of(labels.begin(), labels.end(), [&](const RoofLabel& other) {
      return other.roof->precision == roof.precision && other.roof->label == roof.label &&
             other.roof->kind == roof.kind;
    });
    if (drawn_before) continue;
    // What is measured stands behind the datasheet's number: "TF32 tensor, 156 TFLOP/s, 125 T empirical".
    const auto datasheet = std::find_if(labels.begin(), labels.end(), [&](const RoofLabel& other) {
      return other.roof->precision == roof.precision && (other.roof->path == roof.path || roof.path.empty()) &&
             other.roof->kind == "datasheet" && roof.kind != "datasheet";
    });
    if (datasheet != labels.end()) {
      datasheet->text += ", " + WithPrefix(roof.peak_flop_per_s, "") + " " + roof.kind;
      continue;
    }
    const auto same = std::find_if(labels.begin(), labels.end(), [&](const RoofLabel& other) {
      return other.roof->kind == roof.kind &&
             std::fabs(other.roof->peak_flop_per_s - roof.peak_flop_per_s) <= 0.005 * roof.peak_flop_per_s;
    });
    const size_t comma = roof.label.rfind(", ");
    if (same == labels.end()) {
      labels.push_back({roof.label, &roof, roof.used});
      continue;
    }
    const std::string name = roof.label.substr(0, comma);
    const size_t other_comma = same->text.rfind(", ");
    std::string names = same->text.substr(0, other_comma);
    const std::string rest = other_comma == std::string::npos ? "" : same->text.substr(other_comma);
    // "FP16, BF16 tensor (mma)"
    const size_t tensor = name.rfind(" tensor");
    if (tensor != std::string::npos && names.ends_with(name.substr(tensor))) {
      names.resize(names.size() - (name.size() - tensor));
    }
    same->text = names + ", " + name + rest;
    if (roof.used && !same->used) same->roof = &roof;
    same->used |= roof.used;
  }
  for (RoofLabel& label : labels) {
    if (label.roof->kind != "datasheet" && !label.roof->kind.empty()) label.text += " (" + label.roof->kind + ")";
  }
  return labels;
}

// As on the axes.
std::string Time(double ns) {
  std::string text = Duration(ns);
  if (text.ends_with(" us")) text.replace(text.size() - 2, 1, "µ");
  return text;
}

std::string MarkLabel(const Row& row, const Report& report) {
  std::string name = RowName(row, report);
  if (report.by == By::kPhase || row.phase.empty() || name == row.phase) return name;
  return name + (row.phase == "forward" ? " fwd" : row.phase == "backward" ? " bwd" : " " + row.phase);
}

// Along a memory roof: above the line near its left end if possible, else further on, else below it. A slanted text
// does not fill its bounding box, so small boxes along it stand for it.
void LabelSlope(const std::string& text, Point from, double angle, Labels* labels, Picture* out) {
  constexpr int kPieces = 10;
  const double length = TextWidth(text) * kText;
  const Point along{std::cos(angle), std::sin(angle)};
  for (const Labels::Avoid avoid : {Labels::Avoid::kTextsAndMarks, Labels::Avoid::kTexts}) {
    for (const double aside : {6.0, -14.0}) {
      for (double start = 26; start < 330; start += 38) {
        const Point base{from.x + along.x * start + along.y * aside, from.y + along.y * start - along.x * aside};
        std::vector<Box> pieces;
        for (int i = 0; i < kPieces; ++i) {
          const double middle = length * (i + 0.5) / kPieces;
          const Point at{base.x + along.x * middle + along.y * 4, base.y + along.y * middle - along.x * 4};
          const double half = length / kPieces / 2 + 4;
          pieces.push_back({at.x - half, at.y - half, 2 * half, 2 * half});
        }
        const auto free = [&](const Box& piece) { return labels->Free(piece, avoid); };
        if (!std::all_of(pieces.begin(), pieces.end(), free)) continue;
        for (const Box& piece : pieces) labels->Block(piece);
        Text label = MakeText("la me", text, base, Anchor::kStart, kText);
        label.rotate = angle * 180 / std::numbers::pi;
        out->texts.push_back(std::move(label));
        return;
      }
    }
  }
}

std::string RoofTone(const RoofLine& roof, bool used) {
  return used ? "p" + std::to_string(static_cast<int>(roof.precision)) : "faint";
}

// For what must be said: farther away, with a line to it.
std::optional<Text> PlaceWithLeader(const std::string& css, const std::string& text, Point at, double size,
                                    Labels* labels, Picture* out) {
  std::optional<Text> placed = labels->Place(Around(css, text, at, 12, size), &at);
  if (placed) {
    const Point near = NearestPoint(placed->box, at);
    out->lines.push_back({"le", {at, near}});
    labels->BlockLeader(at, near);
  }
  return placed;
}

// The peaks of the roofs that the run uses, or of the others, along their lines, at the right end if possible.
void LabelPeaks(const Report& report, const Frames& frames, bool used, Labels* labels, Picture* out) {
  const Box& plot = out->plot;
  const auto x_of = [&](double oi) { return LogPosition(frames.oi, oi, plot.x, plot.right()); };
  const auto y_of = [&](double rate) { return LogPosition(frames.performance, rate, plot.bottom(), plot.y); };
  std::vector<RoofLabel> wanted = RoofLabels(report.roofs);
  std::stable_partition(wanted.begin(), wanted.end(), [&](const RoofLabel& label) {
    return !label.roof->path.empty() && PrecisionUsed(report.roofs, *label.roof);
  });
  for (const RoofLabel& label : wanted) {
    if (label.used != used || !(label.roof->peak_flop_per_s > 0) || !(label.roof->bytes_per_s > 0)) continue;
    const std::string css = "la " + RoofTone(*label.roof, used);
    const double y = y_of(label.roof->peak_flop_per_s);
    const double width = TextWidth(label.text) * kText;
    const double ridge_x = x_of(label.roof->peak_flop_per_s / label.roof->bytes_per_s);
    // The second path of a precision that the run uses is said even where it is full: left of its ridge, because the
    // other path's line lies close above.
    const bool beside_used = !used && !label.roof->path.empty() && PrecisionUsed(report.roofs, *label.roof);
    const Text left_of_ridge = MakeText(css, label.text, {ridge_x - 10, y + 4}, Anchor::kEnd, kText);
    std::vector<Text> candidates;
    if (beside_used) candidates.push_back(left_of_ridge);
    // Above and left of a ridge is nothing that a label could cover.
    for (double right = plot.right() - 6; right > ridge_x - 8; right -= 24) {
      candidates.push_back(MakeText(css, label.text, {right, y - 5}, Anchor::kEnd, kText));
      if (right - width > ridge_x + 8) {
        candidates.push_back(MakeText(css, label.text, {right, y + 13}, Anchor::kEnd, kText));
      }
    }
    candidates.push_back(left_of_ridge);
    std::optional<Text> placed = labels->Place(candidates);
    if (!placed && (used || beside_used)) {
      const Point on_line{(std::max(ridge_x, plot.x) + plot.right()) / 2, y};
      placed = PlaceWithLeader(css, label.text, on_line, kText, labels, out);
    }
    if (placed) out->texts.push_back(*placed);
  }
}

// The ridge points, with their values, of the roofs that the run uses, or of the others.
void LabelRidges(const std::vector<const RoofLine*>& roofs, const Frames& frames, bool used, Labels* labels,
                 Picture* out) {
  const Box& plot = out->plot;
  const auto x_of = [&](double oi) { return LogPosition(frames.oi, oi, plot.x, plot.right()); };
  const auto y_of = [&](double rate) { return LogPosition(frames.performance, rate, plot.bottom(), plot.y); };
  for (const RoofLine* roof : roofs) {
    if (roof->used != used) continue;
    const double ridge =
        roof->ridge_flop_per_byte > 0 ? roof->ridge_flop_per_byte : roof->peak_flop_per_s / roof->bytes_per_s;
    const Point at{x_of(ridge), y_of(roof->peak_flop_per_s)};
    if (at.x <= plot.x || at.x >= plot.right()) continue;
    const bool marked = std::any_of(out->symbols.begin(), out->symbols.end(), [&](const Symbol& other) {
      return std::hypot(other.at.x - at.x, other.at.y - at.y) < 1;
    });
    if (marked) continue;  // of a roof with the same peak
    const bool named = used && roof->kind == "datasheet";
    out->symbols.push_back({"ri " + RoofTone(*roof, used), -1, at, 3.5});
    labels->Block({at.x - 4, at.y - 4, 8, 8});
    const std::string text = (named ? "ridge " : "") + Plain(ridge) + (named ? " FLOP/B" : "");
    const double width = TextWidth(text) * kSmallText;
    std::vector<Text> candidates;
    for (const Point p :
         {Point{-6, -6}, Point{8 + width, 14}, Point{-10, 4}, Point{-10, -17}, Point{-14, -29}, Point{-18, -41},
          Point{-24, -54}, Point{width * 0.6, -7}, Point{14 + width, 24}, Point{20 + width, 36}}) {
      if (!named && std::fabs(p.y) > 20) continue;  // a bare number must stand at its mark
      candidates.push_back(
          MakeText("la rt " + RoofTone(*roof, used), text, {at.x + p.x, at.y + p.y}, Anchor::kEnd, kSmallText));
    }
    std::optional<Text> placed = labels->Place(candidates, nullptr, true);
    if (!placed && named)
      placed = PlaceWithLeader("la rt " + RoofTone(*roof, used), text, at, kSmallText, labels, out);
    if (placed) out->texts.push_back(*placed);
  }
}

// As markup. The line breaks are ours, those of a name are shown like all that is invisible.
std::string MarkTitle(const Report& report, const Row& row) {
  const Derived& d = row.derived;
  std::string text = MarkupText(MarkLabel(row, report));
  text += "\n" + Time(StepNs(report, row.sums.time_ns())) + " a step";
  if (!report.rows_are_runs) text += ", " + MarkupText(Percent(row.time_share)) + " of GPU time";
  if (Flop(row.sums.flop()) > 0) {
    text += "\n" + WithPrefix(d.performance_flop_per_s, "FLOP/s") + " at " + Plain(d.oi_flop_per_byte) + " FLOP/byte";
    if (d.attainable_flop_per_s > 0) {
      text += "\n" + MarkupText(Percent(d.attainable_share)) + " of attainable " +
              WithPrefix(d.attainable_flop_per_s, "FLOP/s") + ", " + (d.memory_bound ? "memory" : "compute") +
              "-bound";
    }
  } else {
    text += "\nno FLOP";
  }
  if (row.sums.dram_bytes() > 0) text += "\n" + WithPrefix(d.bandwidth_bytes_per_s, "B/s") + " from and to DRAM";
  return text;
}

Box MarkBox(const Mark& mark) {
  return {mark.at.x - mark.radius, mark.at.y - mark.radius, 2 * mark.radius, 2 * mark.radius};
}

// Largest first, so that small marks lie on top; keeps the places of the most important ones free of labels.
void SortAndBlock(Labels* labels, Picture* out) {
  std::stable_sort(out->marks.begin(), out->marks.end(),
                   [](const Mark& a, const Mark& b) { return a.radius > b.radius; });
  for (size_t i = 0; i < std::min(out->marks.size(), kMarksKeptFree); ++i) {
    if (!out->marks[i].in_gutter) labels->BlockIfPossible(MarkBox(out->marks[i]));
  }
}

// Names the largest marks. Marks that lie on one another share a label, which says how many more there are.
void LabelMarks(const Report& report, std::span<const Row> rows, bool time_view, Labels* labels, Picture* out) {
  struct Group {
    const Mark* mark;
    size_t more = 0;
  };
  std::vector<Group> groups;
  for (size_t i = 0; i < std::min(out->marks.size(), kMarksKeptFree); ++i) {
    const Mark& mark = out->marks[i];
    if (mark.in_gutter) continue;
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return std::hypot(group.mark->at.x - mark.at.x, group.mark->at.y - mark.at.y) <
             std::max(5.0, 0.7 * (group.mark->radius + mark.radius));
    });
    if (same != groups.end()) {
      ++same->more;
    } else if (groups.size() < (report.rows_are_runs ? kTopRunLabels : kTopLabels) &&
               (report.rows_are_runs || rows[mark.row].time_share >= kLeastLabelledShare)) {
      groups.push_back({&mark});
    }
  }
  for (const Group& group : groups) labels->Block(MarkBox(*group.mark));
  for (const Group& group : groups) {
    const Mark& mark = *group.mark;
    const Row& row = rows[mark.row];
    std::string text = MarkLabel(row, report);
    if (time_view) {
      text += " · " + Time(StepNs(report, row.sums.time_ns()));
    } else if (row.derived.attainable_flop_per_s > 0) {
      text += " · " + Percent(row.derived.attainable_share);
    }
    if (group.more > 0) text += " (+" + std::to_string(group.more) + ")";
    if (mark.above_roof) text += " R001";
    const std::optional<Text> placed =
        labels->Place(Around(mark.above_roof ? "la bad" : "la", text, mark.at, mark.radius, kLabelText), &mark.at,
                      row.time_share < kLeastCoveringShare);
    if (!placed) continue;  // it is in the table and in the tooltip
    out->texts.push_back(*placed);
    const auto line = [&](const char* css, Point from, Point to) { out->lines.push_back({css, {from, to}}); };
    const auto edge = [&](Point to, double distance) {
      const double t = mark.radius / distance;
      return Point{mark.at.x + (to.x - mark.at.x) * t, mark.at.y + (to.y - mark.at.y) * t};
    };
    const Box& box = placed->box;
    const Point near = NearestPoint(box, mark.at);
    const double distance = std::hypot(near.x - mark.at.x, near.y - mark.at.y);
    if (distance > mark.radius + 8) {
      line("le", edge(near, distance), near);
      labels->BlockLeader(mark.at, near);
    }
    if (!mark.has_target || mark.clipped) continue;
    const double gap = std::hypot(mark.target.x - mark.at.x, mark.target.y - mark.at.y);
    if (gap <= mark.radius + 3) continue;
    line("dr", edge(mark.target, gap), mark.target);
    if (!time_view) line("dc", {mark.target.x - 4, mark.target.y}, {mark.target.x + 4, mark.target.y});
  }
}

}  // namespace

bool Overlap(const Box& a, const Box& b) {
  return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom();
}

double LogPosition(const Decades& axis, double value, double at_low, double at_high) {
  return at_low + (std::log10(value) - axis.low) / (axis.high - axis.low) * (at_high - at_low);
}

std::span<const Row> PictureRows(const Report& report) {
  if (report.by == By::kLayer && !report.layer_phases.empty()) return report.layer_phases;
  return report.rows;
}

int DominantPrecision(const FlopByPrecision& flop) {
  int best = -1;
  for (size_t p = 0; p < kPrecisionCount; ++p) {
    if (flop[p] > 0 && (best < 0 || flop[p] > flop[static_cast<size_t>(best)])) best = static_cast<int>(p);
  }
  return best;
}

std::string ShortKernelName(std::string_view kernel) {
  std::string_view name = kernel.substr(0, kernel.find_first_of("<("));
  if (const size_t space = name.rfind(' '); space != std::string_view::npos) name.remove_prefix(space + 1);
  if (const size_t scope = name.rfind("::"); scope != std::string_view::npos) name.remove_prefix(scope + 2);
  return std::string(name.empty() ? kernel : name);
}

std::string RowName(const Row& row, const Report& report) {
  constexpr size_t kMost = 32, kMostOfTwo = 20;
  const bool with_model = report.run.models.size() > 1 && !row.model.empty();
  const auto path = [&](size_t most) {
    const std::string layer = ElideStart(row.layer, most);
    return with_model ? ElideMiddle(row.model, 16) + " " + layer : layer;
  };
  switch (report.by) {
    case By::kPhase:
      return row.phase.empty() ? "(no phase)" : with_model ? row.model + " " + row.phase : row.phase;
    case By::kOp:
      return row.op.empty() ? "(no operator)" : ElideMiddle(row.op, kMost);
    case By::kKernel: {
      const std::string kernel = ElideMiddle(ShortKernelName(row.op.empty() ? row.kernel : row.op), kMostOfTwo);
      if (!row.layer.empty() && !kernel.empty()) return path(kMostOfTwo) + ": " + kernel;
      if (!row.kernel.empty()) return ElideMiddle(ShortKernelName(row.kernel), kMost);
      break;
    }
    case By::kModel:
    case By::kLayer:
      break;
  }
  if (report.by != By::kModel && !row.layer.empty()) return path(kMost);
  if (!row.model.empty()) return ElideMiddle(row.model, kMost);
  return row.phase.empty() ? "(no layer)" : row.phase;
}

std::string ReportTitle(const Report& report) {
  const std::string title = ModelName(report.run, report.processes);
  const std::string& device = report.device_name.empty() ? report.run.gpu : report.device_name;
  return device.empty() ? title : title + " on " + device;
}

std::string SourceTitle(const Report& report) {
  switch (report.run.source) {
    case SourceKind::kMeasured:
      return "MEASURED by hardware counters";
    case SourceKind::kEstimated:
      return "ESTIMATED from tensor shapes";
    case SourceKind::kImported:
      return "IMPORTED from another tool";
    case SourceKind::kNone:
    case SourceKind::kUnspecified:
      break;
  }
  return "NOT MEASURED: no counters";
}

std::string ReportSubtitle(const Report& report) {
  std::vector<std::string> facts;
  if (report.run.batch_size > 0) facts.push_back("batch " + Grouped(report.run.batch_size));
  const PolicyInfo& policy = report.run.policy;
  const auto on_off = [](uint32_t state) { return state == 2 ? "on" : "off"; };
  std::string tf32;
  if (policy.cudnn_tf32 != 0) tf32 += std::string("convolution ") + on_off(policy.cudnn_tf32);
  if (policy.matmul_tf32 != 0) tf32 += std::string(tf32.empty() ? "" : ", ") + "matmul " + on_off(policy.matmul_tf32);
  if (!tf32.empty()) facts.push_back("TF32: " + tf32);
  if (!policy.autocast_dtype.empty()) facts.push_back("autocast " + policy.autocast_dtype);
  if (report.steps > 0) facts.push_back(Grouped(report.steps) + (report.steps == 1 ? " step" : " steps"));
  if (report.process_count > 1) facts.push_back(Grouped(report.process_count) + " processes");
  std::set<std::string> torch, rfinject, cuda;
  for (const ProcessInfo& process : report.processes) {
    if (!process.torch_version.empty()) torch.insert(process.torch_version);
    if (!process.rfinject_version.empty()) rfinject.insert(process.rfinject_version);
    if (!process.cuda_version.empty()) cuda.insert(process.cuda_version);
  }
  for (const auto& [name, versions] : {std::pair<const char*, const std::set<std::string>&>{"torch ", torch},
                                       {"CUDA ", cuda},
                                       {"rfinject ", rfinject}}) {
    std::string text;
    for (const std::string& version : versions) text += (text.empty() ? name : "/") + version;
    if (!text.empty()) facts.push_back(text);
  }
  std::string text;
  for (const std::string& fact : facts) text += (text.empty() ? "" : " · ") + fact;
  return text;
}

Frames FramesFor(std::span<const Report> reports) {
  Frames frames;
  double highest_ridge = 0, highest_peak = 0, lowest_bandwidth = INFINITY;
  double high_oi = 0, high_performance = 0, low_performance = INFINITY, longest = 0;
  for (const Report& report : reports) {
    frames.time_shares |= !report.rows_are_runs;
    for (const RoofLine& roof : report.roofs) {
      if (!(roof.bytes_per_s > 0)) continue;
      if (roof.level == "DRAM") lowest_bandwidth = std::min(lowest_bandwidth, roof.bytes_per_s);
      if (!(roof.peak_flop_per_s > 0)) continue;
      highest_ridge = std::max(highest_ridge, roof.peak_flop_per_s / roof.bytes_per_s);
      highest_peak = std::max(highest_peak, roof.peak_flop_per_s);
    }
    for (const RoofLine& roof : report.roofs) {
      if (std::find(frames.roof_kinds.begin(), frames.roof_kinds.end(), roof.kind) == frames.roof_kinds.end()) {
        frames.roof_kinds.push_back(roof.kind);
      }
      frames.unused_roofs |= !roof.used;
    }
    frames.shortest_launch |= report.shortest_launch_ns > 0;
    for (const Row& row : PictureRows(report)) {
      frames.phases.insert(PhaseOf(row));
      frames.levels |= row.sums.l2_bytes() > 0 || row.sums.l1_bytes() > 0;
      frames.precisions.insert(DominantPrecision(row.sums.flop()));
      if (Flop(row.sums.flop()) > 0) {
        if (std::isfinite(row.derived.oi_flop_per_byte)) high_oi = std::max(high_oi, row.derived.oi_flop_per_byte);
        if (row.derived.performance_flop_per_s > 0) {
          high_performance = std::max(high_performance, row.derived.performance_flop_per_s);
          low_performance = std::min(low_performance, row.derived.performance_flop_per_s);
        }
      } else if (row.sums.time_ns() > 0) {
        frames.gutter = true;
      }
      longest = std::max({longest, StepNs(report, row.sums.time_ns()), StepNs(report, row.sums.least_compute_ns()),
                          StepNs(report, row.sums.least_memory_ns())});
    }
  }
  const bool roofs = highest_peak > 0;
  frames.oi = {DecadeBelow(kLeftmostOi),
               roofs ? DecadeAbove(highest_ridge * 10) : DecadeAbove(std::max(high_oi, 1e2))};
  if (roofs) {
    frames.performance = {DecadeBelow(lowest_bandwidth * kLeftmostOi / 10), DecadeAbove(highest_peak * 1.2)};
  } else if (high_performance > 0) {
    frames.performance = {DecadeBelow(low_performance), DecadeAbove(high_performance * 1.2)};
  } else {
    frames.performance = {9, 15};
  }
  frames.oi.high = std::max(frames.oi.high, frames.oi.low + 1);
  frames.performance.high = std::max(frames.performance.high, frames.performance.low + 1);
  const int top = longest > 0 && std::isfinite(longest) ? DecadeAbove(longest) : 6;
  frames.time = {top - kTimeDecades, top};
  return frames;
}

Picture LayOutRoofline(const Report& report, const Frames& frames, Size size) {
  const std::span<const Row> rows = PictureRows(report);
  Picture out;
  out.kind = "roofline";
  out.size = size;
  out.title = "Roofline: " + ReportTitle(report);
  out.description = SourceTitle(report) + ". " + ReportSubtitle(report);

  std::vector<LegendItem> legend = MarkLegend(frames);
  for (const std::string& kind : frames.roof_kinds) {
    RoofLine as_line;
    as_line.kind = kind;
    legend.push_back({"", "ro lg" + LineKindCss(as_line), -1, 0, "roof: " + kind});
  }
  if (frames.unused_roofs) legend.push_back({"", "ro lg faint", -1, 0, "not used by the run"});
  if (frames.levels) legend.push_back({"", "le", -1, 0, "to a mark's OI in L2 (short tick) and L1 bytes"});
  legend.push_back({"", "dr", -1, 0, "to the effective roof, % of attainable; (+n): n more marks there"});

  const double gutter_width = frames.gutter ? 112 : 0;
  const double left = frames.gutter ? 48 + gutter_width + 58 : 66;
  const int legend_lines = LegendLines(legend, size.width);
  const double bottom = 46 + 17.0 * legend_lines;
  out.plot = {left, 72, size.width - left - 14, size.height - 72 - bottom};
  const Box plot = out.plot;
  if (frames.gutter) out.gutter = {48, plot.y, gutter_width, plot.height};

  const auto x_of = [&](double oi) { return LogPosition(frames.oi, oi, plot.x, plot.right()); };
  const auto y_of = [&](double rate) { return LogPosition(frames.performance, rate, plot.bottom(), plot.y); };
  const double least_oi = std::pow(10.0, frames.oi.low), most_oi = std::pow(10.0, frames.oi.high);

  AddDecadeGrid(frames, frames.oi, frames.performance, &out);
  for (int e = frames.oi.low; e <= frames.oi.high; ++e) {
    out.texts.push_back(TickText(OiText(e), {x_of(std::pow(10.0, e)), plot.bottom() + 17}, size.width));
  }
  for (int e = frames.performance.low; e <= frames.performance.high; ++e) {
    out.texts.push_back(
        MakeText("ax", DecadeText(e), {plot.x - 6, y_of(std::pow(10.0, e)) + 4}, Anchor::kEnd, kText));
  }
  out.texts.push_back(MakeText("ah", "Operational intensity, FLOP per DRAM byte",
                               {plot.x + plot.width / 2, plot.bottom() + 33}, Anchor::kMiddle, 12));
  Text y_title = MakeText("ah", "Performance, FLOP/s", {plot.x - 44, plot.y + plot.height / 2}, Anchor::kMiddle, 12);
  y_title.rotate = -90;
  out.texts.push_back(y_title);

  Labels labels({plot.x + 2, plot.y + 2, plot.width - 4, plot.height - 4});
  AddTitle(report, "roofline", &out);
  for (const Text& text : out.texts) {
    if (text.css.starts_with("so")) labels.Block(text.box);
  }

  // Points.
  const std::vector<int> lanes = GutterPhases(rows);
  const double memory_roof = MemoryRoof(report);
  const Decades gutter_axis{kGutterLow, kGutterHigh};
  const double lane_low = plot.bottom() - 24, lane_high = plot.y + 40;
  double gutter_share = 0;
  for (const size_t index : ByTime(rows)) {
    const Row& row = rows[index];
    const Derived& d = row.derived;
    if (!(row.sums.time_ns() > 0)) continue;
    Mark mark;
    mark.row = index;
    mark.radius = report.rows_are_runs ? kRunRadius : RadiusOf(row.time_share);
    mark.phase = PhaseOf(row);
    mark.precision = DominantPrecision(row.sums.flop());
    if (mark.precision < 0) {
      mark.in_gutter = true;
      gutter_share += row.time_share;
      mark.at.x = LaneX(out.gutter, lanes, mark.phase);
      const double percent = memory_roof > 0 ? 100 * d.bandwidth_bytes_per_s / memory_roof : 0;
      mark.at.y = percent > 0 ? LogPosition(gutter_axis, percent, lane_low, lane_high) : plot.bottom() - 9;
      if (percent > 0) {
        mark.above_roof = percent > 100 * kAboveRoof;
        const double before = mark.at.y;
        mark.at.y = std::clamp(mark.at.y, plot.y + 8, lane_low);
        mark.clipped = std::fabs(before - mark.at.y) > 0.5;
      }
      out.marks.push_back(mark);
      continue;
    }
    const double oi = d.oi_flop_per_byte > 0 && std::isfinite(d.oi_flop_per_byte) ? d.oi_flop_per_byte : most_oi * 10;
    mark.at = {x_of(oi), y_of(std::max(d.performance_flop_per_s, 1e-3))};
    if (d.attainable_flop_per_s > 0 && std::isfinite(d.attainable_flop_per_s)) {
      mark.has_target = true;
      mark.above_roof = d.performance_flop_per_s > d.attainable_flop_per_s * kAboveRoof;
    }
    const Point exact = mark.at;
    mark.clipped = ClampTo(plot, &mark.at);
    if (mark.has_target) {
      mark.target = {mark.at.x, y_of(d.attainable_flop_per_s)};
      ClampTo(plot, &mark.target);
    }
    mark.ci_left = mark.ci_right = mark.at.x;
    mark.ci_top = mark.ci_bottom = mark.at.y;
    if (!mark.clipped && row.bytes_ci > 0 && row.bytes_ci < 1) {
      mark.ci_left = std::max(plot.x, x_of(oi / (1 + row.bytes_ci)));
      mark.ci_right = std::min(plot.right(), x_of(oi / (1 - row.bytes_ci)));
    }
    if (!mark.clipped && row.time_ci > 0 && row.time_ci < 1) {
      mark.ci_bottom = std::min(plot.bottom(), exact.y + (y_of(1) - y_of(1 + row.time_ci)));
      mark.ci_top = std::max(plot.y, exact.y + (y_of(1) - y_of(1 - row.time_ci)));
    }
    out.marks.push_back(mark);
  }

  SortAndBlock(&labels, &out);

  // The same FLOP over the bytes of L2 and of L1, of the longest: a tick each, at the end of a line from the mark.
  for (size_t i = 0; i < std::min(out.marks.size(), kMarksWithLevels); ++i) {
    const Mark& mark = out.marks[i];
    const Sums& sums = rows[mark.row].sums;
    if (mark.in_gutter || mark.clipped) continue;
    for (const double bytes : {sums.l2_bytes(), sums.l1_bytes()}) {
      if (!(bytes > 0)) continue;
      const double x = x_of(Flop(sums.flop()) / bytes);
      if (x < plot.x || x > plot.right()) continue;
      const double tick = bytes == sums.l2_bytes() ? 4 : 7;
      out.lines.push_back({"le", {mark.at, {x, mark.at.y}}});
      out.lines.push_back({"le", {{x, mark.at.y - tick}, {x, mark.at.y + tick}}});
    }
  }

  // Roofs, unused ones first so that the others lie on top.
  std::vector<const RoofLine*> roofs;
  for (const RoofLine& roof : report.roofs) {
    if (roof.peak_flop_per_s > 0 && roof.bytes_per_s > 0 && Drawn(report.roofs, roof)) roofs.push_back(&roof);
  }
  std::stable_sort(roofs.begin(), roofs.end(),
                   [](const RoofLine* a, const RoofLine* b) { return a->used < b->used; });
  struct Slope {
    double bandwidth = 0;
    double end_oi = 0;  // of the highest ridge among the roofs that the run uses
    std::string level, kind;
  };
  std::vector<Slope> slopes;
  const bool any_used = std::any_of(roofs.begin(), roofs.end(), [](const RoofLine* roof) { return roof->used; });
  double highest_peak = 0;  // that the run uses
  for (const RoofLine* roof : roofs) {
    if (roof->used || !any_used) highest_peak = std::max(highest_peak, roof->peak_flop_per_s);
  }
  for (const RoofLine& roof : report.roofs) {  // bandwidths alone reach up to the highest peak
    if (roof.peak_flop_per_s > 0 || !(roof.bytes_per_s > 0)) continue;
    slopes.push_back({roof.bytes_per_s, highest_peak / roof.bytes_per_s, roof.level, roof.kind});
  }
  for (const RoofLine* roof : roofs) {
    const double ridge = roof->peak_flop_per_s / roof->bytes_per_s;
    const Point knee{x_of(ridge), y_of(roof->peak_flop_per_s)};
    const std::string tone = roof->used ? " p" + std::to_string(static_cast<int>(roof->precision)) : " faint";
    const std::string css = "ro" + tone + LineKindCss(*roof);
    std::vector<Point> points;
    if (ridge > least_oi) points.push_back({plot.x, y_of(roof->bytes_per_s * least_oi)});
    if (ridge > least_oi && ridge < most_oi) points.push_back(knee);
    points.push_back({plot.right(), y_of(std::min(roof->peak_flop_per_s, roof->bytes_per_s * most_oi))});
    if (ridge <= least_oi) points.insert(points.begin(), Point{plot.x, y_of(roof->peak_flop_per_s)});
    for (size_t i = 1; i < points.size(); ++i) labels.BlockLine(points[i - 1], points[i], 3);
    out.lines.push_back({css, std::move(points)});
    auto slope = std::find_if(slopes.begin(), slopes.end(), [&](const Slope& s) {
      return s.level == roof->level && s.bandwidth == roof->bytes_per_s;  // of whatever kind
    });
    if (slope == slopes.end()) slope = slopes.insert(slope, {roof->bytes_per_s, 0, roof->level, roof->kind});
    if (roof->used || !any_used) slope->end_oi = std::max(slope->end_oi, ridge);
  }
  // The memory roof belongs to no precision: drawn once a level in the text's colour, over the others.
  for (const Slope& slope : slopes) {
    const double end = std::min(slope.end_oi, most_oi);
    if (end <= least_oi) continue;
    RoofLine as_line;
    as_line.kind = slope.kind;
    const Point from{plot.x, y_of(slope.bandwidth * least_oi)}, to{x_of(end), y_of(slope.bandwidth * end)};
    out.lines.push_back({"ro me" + LineKindCss(as_line), {from, to}});
    const double angle = std::atan2(to.y - from.y, to.x - from.x);
    const std::string text = slope.level + " " + WithPrefix(slope.bandwidth, "B/s") +
                             (slope.kind == "datasheet" || slope.kind.empty() ? "" : " (" + slope.kind + ")");
    LabelSlope(text, from, angle, &labels, &out);
  }
  LabelPeaks(report, frames, true, &labels, &out);
  LabelPeaks(report, frames, false, &labels, &out);
  LabelRidges(roofs, frames, true, &labels, &out);
  LabelMarks(report, rows, false, &labels, &out);
  LabelRidges(roofs, frames, false, &labels, &out);
  if (frames.gutter) {
    const Box& gutter = out.gutter;
    AddFrame(gutter, &out);
    out.lines.push_back({"gt", {{gutter.x, plot.bottom() - 18}, {gutter.right(), plot.bottom() - 18}}});
    for (int e = kGutterLow; e <= kGutterHigh; ++e) {
      const double y = LogPosition(gutter_axis, std::pow(10.0, e), lane_low, lane_high);
      out.lines.push_back({e == kGutterHigh ? "ro me" : "gr", {{gutter.x, y}, {gutter.right(), y}}});
      const std::string text = e < 0 ? "0.1 %" : OiText(e) + " %";
      out.texts.push_back(MakeText("ax", text, {gutter.x - 5, y + 4}, Anchor::kEnd, kSmallText));
    }
    out.texts.push_back(MakeText("ax", "none", {gutter.x - 5, plot.bottom() - 5}, Anchor::kEnd, kSmallText));
    out.texts.push_back(MakeText("gh", "no FLOP: " + Percent(gutter_share),
                                 {gutter.x + gutter.width / 2, plot.y + 14}, Anchor::kMiddle, kText));
    out.texts.push_back(
        MakeText("mu", "of GPU time", {gutter.x + gutter.width / 2, plot.y + 27}, Anchor::kMiddle, kSmallText));
    out.texts.push_back(
        MakeText("ah", "DRAM bandwidth,", {gutter.x + gutter.width / 2, plot.bottom() + 17}, Anchor::kMiddle, kText));
    const std::string of = memory_roof > 0 ? "% of " + WithPrefix(memory_roof, "B/s") : "roof unknown";
    out.texts.push_back(
        MakeText("ah", of, {gutter.x + gutter.width / 2, plot.bottom() + 31}, Anchor::kMiddle, kText));
  }
  AddFrame(plot, &out);
  if (roofs.empty()) {
    out.texts.push_back(
        MakeText("mu", "no roofs known for this GPU", {plot.x + 10, plot.y + 18}, Anchor::kStart, 12));
  }
  AddLegend(legend, plot.bottom() + 52, &out);
  return out;
}

Picture LayOutTimeView(const Report& report, const Frames& frames, Size size) {
  const std::span<const Row> rows = PictureRows(report);
  Picture out;
  out.kind = "time";
  out.size = size;
  out.title = "Time view: " + ReportTitle(report);
  out.description = SourceTitle(report) + ". " + ReportSubtitle(report);

  std::vector<LegendItem> legend = MarkLegend(frames);
  legend.push_back({"", "iso", -1, 0, "same least time"});
  legend.push_back({"", "dr", -1, 0, "from the least time to the time taken"});
  if (frames.shortest_launch) legend.push_back({"", "fl", -1, 0, "the shortest launch seen"});

  const double lane = frames.gutter ? 54 : 0;
  const double left = 66 + (lane > 0 ? lane + 8 : 0);
  const double bottom = 46 + 17.0 * LegendLines(legend, size.width);
  out.plot = {left, 72, size.width - left - 14, size.height - 72 - bottom};
  const Box plot = out.plot;
  if (lane > 0) out.gutter = {66, plot.y, lane, plot.height};
  const auto x_of = [&](double ns) { return LogPosition(frames.time, ns, plot.x, plot.right()); };
  const auto y_of = [&](double ns) { return LogPosition(frames.time, ns, plot.bottom(), plot.y); };
  const Point origin{plot.x, plot.bottom()};

  Labels labels({plot.x + 2, plot.y + 2, plot.width - 4, plot.height - 4});
  AddTitle(report, "time view", &out);
  for (const Text& text : out.texts) {
    if (text.css.starts_with("so")) labels.Block(text.box);
  }
  // A kernel takes at least the longer of its compute and its memory time, so lines of equal least time are corners
  // on the diagonal.
  for (int e = frames.time.low; e <= frames.time.high; ++e) {
    const double ns = std::pow(10.0, e);
    const Point corner{x_of(ns), y_of(ns)};
    if (e > frames.time.low && e < frames.time.high) {
      out.lines.push_back({"iso", {{plot.x, corner.y}, corner, {corner.x, plot.bottom()}}});
    }
    for (int m = 2; m < 10 && e < frames.time.high; ++m) {
      out.lines.push_back({"tk", {{x_of(m * ns), plot.bottom() - 3}, {x_of(m * ns), plot.bottom()}}});
      out.lines.push_back({"tk", {{plot.x, y_of(m * ns)}, {plot.x + 3, y_of(m * ns)}}});
    }
    const std::string text = TimeText(e);
    out.texts.push_back(TickText(text, {corner.x, plot.bottom() + 17}, size.width));
    out.texts.push_back(
        MakeText("ax", text, {(lane > 0 ? out.gutter.x : plot.x) - 6, corner.y + 4}, Anchor::kEnd, kText));
  }
  out.lines.push_back({"di", {origin, {plot.right(), plot.y}}});
  const std::string step = report.steps > 0 ? " a step" : "";
  out.texts.push_back(MakeText("ah", "Compute time" + step + ": FLOP / peak of the slowest pipe",
                               {plot.x + plot.width / 2, plot.bottom() + 33}, Anchor::kMiddle, 12));
  Text y_title = MakeText("ah", "Memory time" + step + ": DRAM bytes / bandwidth", {16, plot.y + plot.height / 2},
                          Anchor::kMiddle, 12);
  y_title.rotate = -90;
  out.texts.push_back(y_title);
  const Text memory = MakeText("re", "memory-bound", {plot.x + 14, plot.y + 24}, Anchor::kStart, 15);
  const Text compute = MakeText("re", "compute-bound", {plot.right() - 14, plot.bottom() - 56}, Anchor::kEnd, 15);
  for (const Text& text : {memory, compute}) {
    out.texts.push_back(text);
    labels.Block(text.box);
  }
  if (report.shortest_launch_ns > 0) {
    const Point corner{x_of(report.shortest_launch_ns), y_of(report.shortest_launch_ns)};
    if (corner.x > plot.x && corner.x < plot.right()) {
      out.lines.push_back({"fl", {{plot.x, corner.y}, corner, {corner.x, plot.bottom()}}});
      const Text text = MakeText("la", "shortest launch " + Time(report.shortest_launch_ns),
                                 {plot.x + 6, corner.y - 4}, Anchor::kStart, kSmallText);
      labels.Block(text.box);
      out.texts.push_back(text);
    }
  }

  const std::vector<int> lanes = GutterPhases(rows);
  double not_drawn = 0;
  size_t not_drawn_rows = 0;
  for (const size_t index : ByTime(rows)) {
    const Row& row = rows[index];
    if (!(row.sums.time_ns() > 0)) continue;
    const double compute_ns = StepNs(report, row.sums.least_compute_ns());
    const double memory_ns = StepNs(report, row.sums.least_memory_ns());
    const double taken_ns = StepNs(report, row.sums.time_ns());
    if (!(compute_ns > 0 || memory_ns > 0) || !std::isfinite(compute_ns) || !std::isfinite(memory_ns)) {
      not_drawn += row.time_share;
      ++not_drawn_rows;
      continue;
    }
    Mark mark;
    mark.row = index;
    mark.radius = report.rows_are_runs ? kRunRadius : RadiusOf(row.time_share);
    mark.phase = PhaseOf(row);
    mark.precision = DominantPrecision(row.sums.flop());
    const double least_ns = std::max(compute_ns, memory_ns);
    mark.above_roof =
        taken_ns * kAboveRoof < row.sums.least_ns() / std::max<double>(1, static_cast<double>(report.steps));
    mark.in_gutter = !(compute_ns > 0) && lane > 0;
    mark.at = {compute_ns > 0 ? x_of(compute_ns) : plot.x - 1, memory_ns > 0 ? y_of(memory_ns) : plot.bottom() + 1};
    if (mark.in_gutter) {
      mark.at.x = LaneX(out.gutter, lanes, mark.phase);
      mark.clipped = ClampTo(out.gutter, &mark.at);
      mark.has_target = taken_ns > least_ns;
      mark.target = {mark.at.x, y_of(taken_ns)};
      ClampTo(out.gutter, &mark.target);
    } else {
      mark.clipped = ClampTo(plot, &mark.at);
      mark.has_target = !mark.clipped && taken_ns > least_ns;
      mark.target = {x_of(compute_ns * taken_ns / least_ns), y_of(memory_ns * taken_ns / least_ns)};
      if (mark.has_target) ClampTo(plot, &mark.target);
    }
    mark.ci_left = mark.ci_right = mark.at.x;
    mark.ci_top = mark.ci_bottom = mark.at.y;
    out.marks.push_back(mark);
  }
  if (lane > 0) {
    AddFrame(out.gutter, &out);
    out.texts.push_back(
        MakeText("ax", "no FLOP", {out.gutter.x + lane / 2, plot.y + 13}, Anchor::kMiddle, kSmallText));
  }
  AddFrame(plot, &out);
  if (not_drawn_rows > 0) {
    const Text note = MakeText("mu",
                               "not drawn, neither FLOP nor bytes: " + Grouped(not_drawn_rows) +
                                   (not_drawn_rows == 1 ? " row, " : " rows, ") + Percent(not_drawn) + " of GPU time",
                               {plot.x + 14, plot.y + 42}, Anchor::kStart, kSmallText);
    labels.Block(note.box);
    out.texts.push_back(note);
  }
  SortAndBlock(&labels, &out);
  LabelMarks(report, rows, true, &labels, &out);
  AddLegend(legend, plot.bottom() + 52, &out);
  return out;
}

std::string MarkPath(int phase, Point at, double radius) {
  const auto polygon = [&](std::initializer_list<Point> corners) {
    std::string path;
    for (const Point& c : corners) {
      path += (path.empty() ? "M" : "L") + Coordinate(at.x + c.x * radius) + " " + Coordinate(at.y + c.y * radius);
    }
    return path + "Z";
  };
  // Each polygon has the area pi of the unit circle.
  switch (phase) {
    case static_cast<int>(Phase::kBackward):
      return polygon({{-.886, -.886}, {.886, -.886}, {.886, .886}, {-.886, .886}});
    case static_cast<int>(Phase::kOptimizer):
      return polygon({{0, -1.253}, {1.253, 0}, {0, 1.253}, {-1.253, 0}});
    case static_cast<int>(Phase::kRecompute):
      return polygon({{0, -1.555}, {1.347, .778}, {-1.347, .778}});
    case static_cast<int>(Phase::kData):
      return polygon({{0, 1.555}, {1.347, -.778}, {-1.347, -.778}});
    case static_cast<int>(Phase::kCommunication):
      return polygon({{1.1, 0}, {.55, .952}, {-.55, .952}, {-1.1, 0}, {-.55, -.952}, {.55, -.952}});
    case static_cast<int>(Phase::kOther):
      return polygon({{-.396, -1.189},
                      {.396, -1.189},
                      {.396, -.396},
                      {1.189, -.396},
                      {1.189, .396},
                      {.396, .396},
                      {.396, 1.189},
                      {-.396, 1.189},
                      {-.396, .396},
                      {-1.189, .396},
                      {-1.189, -.396},
                      {-.396, -.396}});
    default:
      break;
  }
  const std::string r = Coordinate(radius), d = Coordinate(2 * radius);
  return "M" + Coordinate(at.x - radius) + " " + Coordinate(at.y) + "a" + r + " " + r + " 0 1 0 " + d + " 0a" + r +
         " " + r + " 0 1 0 -" + d + " 0Z";
}

void WritePicture(const Picture& picture, const Report& report, const WriteOptions& options, std::string* out) {
  const std::span<const Row> rows = PictureRows(report);
  const std::string width = Coordinate(picture.size.width), height = Coordinate(picture.size.height);
  *out += "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"pic\" id=\"" + options.id + "\" data-kind=\"" +
          picture.kind + "\" x=\"" + Coordinate(options.offset_x) + "\" y=\"" + Coordinate(options.offset_y) +
          "\" width=\"" + width + "\" height=\"" + height + "\" viewBox=\"0 0 " + width + " " + height +
          "\" role=\"img\" aria-labelledby=\"" + options.id + "-t " + options.id + "-d\">\n<title id=\"" +
          options.id + "-t\">" + MarkupText(picture.title) + "</title>\n<desc id=\"" + options.id + "-d\">" +
          MarkupText(picture.description) + "</desc>\n<rect class=\"bg\" width=\"" + width + "\" height=\"" + height +
          "\"/>\n";
  for (const Line& line : picture.lines) {
    *out += "<polyline class=\"" + line.css + "\" points=\"";
    for (size_t i = 0; i < line.points.size(); ++i) {
      *out += (i > 0 ? " " : "") + Coordinate(line.points[i].x) + "," + Coordinate(line.points[i].y);
    }
    *out += "\"/>\n";
  }
  *out += "<g class=\"marks\">\n";
  for (const Mark& mark : picture.marks) {
    const std::string index = std::to_string(options.first_row + mark.row);
    std::string css = "m " + (mark.precision < 0 ? "pn" : "p" + std::to_string(mark.precision));
    if (mark.clipped) css += " out";
    if (mark.above_roof) css += " bad";
    std::string path;
    if (mark.ci_right - mark.ci_left > kLeastErrorBar) {
      path += "M" + Coordinate(mark.ci_left) + " " + Coordinate(mark.at.y) + "H" + Coordinate(mark.ci_right);
    }
    if (mark.ci_bottom - mark.ci_top > kLeastErrorBar) {
      path += "M" + Coordinate(mark.at.x) + " " + Coordinate(mark.ci_top) + "V" + Coordinate(mark.ci_bottom);
    }
    *out += "<path class=\"" + css + "\" data-i=\"" + index + "\" d=\"" + MarkPath(mark.phase, mark.at, mark.radius) +
            path + "\"";
    if (options.titles) {
      *out += "><title>" + MarkTitle(report, rows[mark.row]) + "</title></path>\n";
    } else {
      *out += "/>\n";
    }
  }
  *out += "</g>\n";
  for (const Symbol& symbol : picture.symbols) {
    *out += "<path class=\"" + symbol.css + "\" d=\"" + MarkPath(symbol.phase, symbol.at, symbol.radius) + "\"/>\n";
  }
  for (const Text& text : picture.texts) {
    *out += "<text class=\"" + text.css + "\" x=\"" + Coordinate(text.at.x) + "\" y=\"" + Coordinate(text.at.y) +
            "\" font-size=\"" + Coordinate(text.size) + "\"";
    if (text.anchor != Anchor::kStart) {
      *out += text.anchor == Anchor::kMiddle ? " text-anchor=\"middle\"" : " text-anchor=\"end\"";
    }
    if (text.rotate != 0) {
      *out += " transform=\"rotate(" + Coordinate(text.rotate) + " " + Coordinate(text.at.x) + " " +
              Coordinate(text.at.y) + ")\"";
    }
    *out += ">" + MarkupText(text.text) + "</text>\n";
  }
  *out += "</svg>\n";
}

std::string PictureStyle(bool themed) {
  struct Tone {
    const char* name;
    ShadePair shade;
  };
  constexpr Tone kGround = {"ground", {"#ffffff", "#14181d"}};
  constexpr Tone kInk = {"ink", {"#1b2128", "#e8ecf0"}};
  constexpr Tone kMuted = {"muted", {"#56616c", "#a3aeb9"}};
  constexpr Tone kGrid = {"grid", {"#e6e9ec", "#2a3038"}};
  constexpr Tone kAxis = {"axis", {"#98a2ac", "#5d6873"}};
  constexpr Tone kFaint = {"faint", {"#8a949e", "#78838e"}};
  constexpr Tone kBad = {"bad", {"#c00024", "#ff6b7d"}};
  constexpr Tone kSource = {"source", {"#a35b00", "#ffb454"}};
  constexpr Tone kMeasured = {"measured", {"#00695c", "#5fd6c0"}};

  std::string css =
      ".pic text{font-family:sans-serif}\n"
      ".pic polyline{fill:none;stroke-width:1}\n"
      ".pic .ti{font-weight:bold}.pic .gh{font-weight:bold}\n"
      ".pic .so{font-weight:bold}.pic .so,.pic .so2{opacity:.85}\n"
      ".pic .re{opacity:.55}\n"
      ".pic .la,.pic .so,.pic .so2,.pic .re{paint-order:stroke;stroke-width:3px;stroke-linejoin:round}\n"
      ".pic polyline.ro{stroke-width:2;stroke-linejoin:round}.pic polyline.faint{stroke-width:1}\n"
      ".pic .dash{stroke-dasharray:7 4}.pic .dot{stroke-dasharray:1.5 3.5;stroke-linecap:round}\n"
      ".pic polyline.dr{stroke-dasharray:3 2.5}.pic polyline.dc{stroke-width:1.6}\n"
      ".pic polyline.le{stroke-width:.8}.pic polyline.fl{stroke-width:1.4;stroke-dasharray:8 3 2 3}\n"
      ".pic polyline.di{stroke-width:1.2;stroke-dasharray:2 4}\n"
      ".pic .m{fill-opacity:.5;stroke-width:1}.pic .m.bad{stroke-width:2.5}.pic .m.out{stroke-dasharray:2 2}\n"
      ".pic .sy{fill-opacity:.5;stroke-width:1}.pic .ri{stroke-width:1.6}\n";
  const auto colours = [&](bool dark, const std::string& scope) {
    const auto of = [&](const Tone& tone) { return std::string(dark ? tone.shade.dark : tone.shade.light); };
    std::string rules;
    const auto rule = [&](const std::string& selectors, const std::string& body) {
      std::string prefixed;
      for (size_t from = 0; from <= selectors.size();) {
        size_t to = selectors.find(',', from);
        to = to == std::string::npos ? selectors.size() : to;
        prefixed += (prefixed.empty() ? "" : ",") + scope + ".pic " + selectors.substr(from, to - from);
        from = to + 1;
      }
      rules += prefixed + "{" + body + "}\n";
    };
    rule(".bg", "fill:" + of(kGround));
    rule("text", "fill:" + of(kInk));
    rule(".mu,.ax", "fill:" + of(kMuted));
    rule(".so,.so2", "fill:" + of(kSource));
    rule(".ms", "fill:" + of(kMeasured));
    rule(".re", "fill:" + of(kMuted));
    rule(".la,.so,.so2,.re", "stroke:" + of(kGround));
    rule(".gr,.gt", "stroke:" + of(kGrid));
    rule(".tk,.fr,.iso", "stroke:" + of(kAxis));
    rule(".di,.dr,.dc,.le,.fl", "stroke:" + of(kMuted));
    rule(".ro.lg,.ro.me", "stroke:" + of(kInk));
    for (size_t p = 0; p <= kPrecisionCount; ++p) {
      const ShadePair shade = p < kPrecisionCount ? kPrecisionShades[p] : kNoFlopShade;
      const std::string colour = dark ? shade.dark : shade.light;
      const std::string name = p < kPrecisionCount ? "p" + std::to_string(p) : "pn";
      rule(".m." + name + ",.sy." + name, "fill:" + colour + ";stroke:" + colour);
      if (p == kPrecisionCount) break;
      rule("polyline.ro." + name + ",.ri." + name, "stroke:" + colour);
      rule("text." + name, "fill:" + colour);
    }
    rule(".sy0", "fill:none;stroke:" + of(kInk));
    rule(".ri", "fill:" + of(kGround));
    rule("polyline.faint,.ri.faint", "stroke:" + of(kAxis));
    rule("text.faint", "fill:" + of(kFaint));
    rule(".m.bad", "stroke:" + of(kBad));
    rule("text.bad", "fill:" + of(kBad));
    return rules;
  };
  css += colours(false, "");
  css +=
      "@media (prefers-color-scheme:dark){\n" + colours(true, themed ? ":root:not([data-theme=light]) " : "") + "}\n";
  if (themed) css += colours(true, ":root[data-theme=dark] ");
  return css;
}

}  // namespace rfinject::cli
