#include "cli/picture/memory.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <vector>

#include "cli/picture/axes.h"
#include "cli/picture/phases.h"
#include "cli/report/rows/row.h"
#include "cli/text/units.h"

namespace rfinject::cli {
namespace {

constexpr double kMemoryTop = 46, kMemoryRight = 14, kMemoryBelow = 44;
constexpr double kMemoryHeight = 170, kMemoryPhases = 14, kMemoryGap = 6;

// From the bottom up: what stays, then what comes and goes.
constexpr std::array kMemoryOrder = {Phase::kOther,   Phase::kData,      Phase::kOptimizer,     Phase::kBackward,
                                     Phase::kForward, Phase::kRecompute, Phase::kCommunication, Phase::kEval};
static_assert(kMemoryOrder.size() == kPhaseNames.size());

uint64_t BytesOfPoint(const MemoryPoint& point) {
  return std::accumulate(point.bytes.begin(), point.bytes.end(), uint64_t{0});
}

std::string BytesText(uint64_t bytes) { return WithPrefix(static_cast<double>(bytes), "B"); }

// What a pointer over a column is told.
std::string ColumnTitle(const MemoryPoint& point, Phase phase) {
  const uint64_t bytes = point.bytes[static_cast<size_t>(phase)];
  std::string what(PhaseName(phase));
  if (const std::string_view usually = UsuallyOf(phase); !usually.empty()) what += ": " + std::string(usually);
  return BytesText(bytes) + " allocated in " + what + "\nof " + BytesText(BytesOfPoint(point)) + ", in " +
         std::string(PhaseName(point.phase));
}

class MemoryLayout {
 public:
  MemoryLayout(const MemoryTable& table, Size size, Picture* out)
      : table_(table),
        out_(out),
        memory_{WideLeft(size.width), kMemoryTop, size.width - WideLeft(size.width) - kMemoryRight, kMemoryHeight} {
    out_->plot = {memory_.x, kMemoryTop, memory_.width, kMemoryHeight + kMemoryGap + kMemoryPhases};
    for (const MemoryPoint& point : table.points) most_ = std::max(most_, BytesOfPoint(point));
  }

  void Draw() {
    AddFrame(memory_, out_);
    const std::string most = BytesText(most_);
    out_->texts.push_back(MakeText("mu", "memory", {memory_.x - 8, memory_.y + 11}, Anchor::kEnd, kSmallText));
    out_->texts.push_back(MakeText("ax", most, {memory_.x - 8, memory_.y + 24}, Anchor::kEnd, kSmallText));
    out_->texts.push_back(MakeText("ax", "0", {memory_.x - 8, memory_.bottom()}, Anchor::kEnd, kSmallText));
    for (size_t i = 0; i < table_.points.size(); ++i) AddColumn(i);
    AddPhases({memory_.x, memory_.bottom() + kMemoryGap, memory_.width, kMemoryPhases});
    std::vector<Phase> phases;
    for (const Phase phase : kMemoryOrder) {
      const auto lies = [phase](const MemoryPoint& point) { return point.bytes[static_cast<size_t>(phase)] > 0; };
      if (std::ranges::any_of(table_.points, lies)) phases.push_back(phase);
    }
    AddPhaseLegend(phases, {memory_.x, memory_.bottom() + kMemoryGap + kMemoryPhases + 22}, out_);
  }

 private:
  double X(size_t point) const {
    return memory_.x + memory_.width * static_cast<double>(point) / static_cast<double>(table_.points.size());
  }

  void AddColumn(size_t index) {
    const MemoryPoint& point = table_.points[index];
    double y = memory_.bottom();
    for (const Phase phase : kMemoryOrder) {
      const auto bytes = static_cast<double>(point.bytes[static_cast<size_t>(phase)]);
      if (!(bytes > 0) || most_ == 0) continue;
      const double height = memory_.height * bytes / static_cast<double>(most_);
      y -= height;
      // Columns overlap a little, so that no ground shines through between them.
      const double right = std::min(X(index + 1) + 0.4, memory_.right());
      AddPhaseBlock({X(index), y, right - X(index), height}, phase, ColumnTitle(point, phase), out_);
    }
  }

  // Each run of points in one phase.
  void AddPhases(const Box& box) {
    out_->texts.push_back(MakeText("mu", "in", {box.x - 8, box.y + 11}, Anchor::kEnd, kSmallText));
    for (size_t begin = 0, end; begin < table_.points.size(); begin = end) {
      const Phase phase = table_.points[begin].phase;
      for (end = begin + 1; end < table_.points.size() && table_.points[end].phase == phase;) ++end;
      AddPhaseBlock({X(begin), box.y, X(end) - X(begin), box.height}, phase,
                    "the program is in " + std::string(PhaseName(phase)), out_);
    }
  }

  const MemoryTable& table_;
  Picture* const out_;
  const Box memory_;
  uint64_t most_ = 0;
};

}  // namespace

Size MemorySize(double width) {
  return {width, kMemoryTop + kMemoryHeight + kMemoryGap + kMemoryPhases + kMemoryBelow};
}

Picture LayOutMemory(const MemoryTable& table, Size size) {
  Picture out{.kind = "memory", .size = size};
  out.title = "Memory over a step: " + table.title;
  out.description = "step " + std::to_string(table.points_step) +
                    ", from its first allocation to its last return; colours are the phases that allocated what lies "
                    "there";
  AddWideTitle(&out);
  MemoryLayout(table, size, &out).Draw();
  return out;
}

}  // namespace rfinject::cli
