#include "cli/report/compare/trial.h"

#include <array>
#include <cmath>
#include <limits>

#include "cli/model/statistics.h"

namespace rfinject::cli {
namespace {

Cell OfCompared(const Trial& trial, double value) { return trial.compared() ? Cell{value} : Cell{}; }

constexpr auto kTrialColumns = std::to_array<ColumnOf<Trial>>({
    {TextColumn("change", "The change, or several that were made together."),
     [](const Trial& trial) { return Cell{trial.name}; }},
    {TextColumn("state", "Whether it was made, and why not."),
     [](const Trial& trial) { return Cell{std::string(TrialStateName(trial.state))}; }},
    {UnitColumn("step_time_ns", "ns", "GPU time of a step with it."),
     [](const Trial& trial) { return KnownCell(trial.step_ns); }},
    {UnitColumn("won_ns", "ns", "What a step takes less than without it."),
     [](const Trial& trial) { return OfCompared(trial, trial.won_ns()); }},
    {UnitColumn("won_half_width_ns", "ns",
                "Half the width of that number's 95 % interval; 0 for estimates, which are exact."),
     [](const Trial& trial) { return OfCompared(trial, trial.time.half_width); }},
    {ShareColumn("won", "The same as a share of the step without it."),
     [](const Trial& trial) { return OfCompared(trial, trial.won_share()); }},
    {TextColumn("verdict", "Whether the difference is more than chance, as diff judges it."),
     [](const Trial& trial) {
       return trial.compared() ? Cell{std::string(VerdictName(trial.time.verdict))} : Cell{};
     }},
    {UnitColumn("predicted_ns", "ns", "What advice says that it wins."),
     [](const Trial& trial) { return KnownCell(trial.predicted_ns); }},
    {UnitColumn("clock_ns", "ns", "A step by the clock."),
     [](const Trial& trial) { return KnownCell(trial.clock_ns); }},
    {UnitColumn("peak_bytes", "B", "Memory of the device when it was fullest."),
     [](const Trial& trial) { return KnownCount(trial.peak_bytes); }},
    {TextColumn("loss", "How the loss of the first steps is beside the program's own."),
     [](const Trial& trial) {
       return trial.state == TrialState::kMade ? Cell{std::string(LossStateName(trial.loss))} : Cell{};
     }},
    {PlainColumn("recommended", "Worth doing: it wins by more than chance, and the loss is not outside."),
     [](const Trial& trial) { return Cell{trial.recommended()}; }},
    {CountColumn("runs", "How often the program ran with it."),
     [](const Trial& trial) { return Cell{uint64_t{trial.runs}}; }},
    {TextColumn("text", "Where it was made, or why it was not."),
     [](const Trial& trial) { return TextCell(trial.text); }},
    {TextColumn("write", "What to write into the program."),
     [](const Trial& trial) { return TextCell(trial.write); }},
});

}  // namespace

std::string_view TrialStateName(TrialState state) {
  constexpr std::array<std::string_view, 6> kNames = {"baseline",          "made",   "already made",
                                                      "nothing to change", "failed", "out of memory"};
  return kNames[static_cast<size_t>(state)];
}

std::string_view LossStateName(LossState state) {
  constexpr std::array<std::string_view, 4> kNames = {"not checked", "same", "within rounding", "OUTSIDE"};
  return kNames[static_cast<size_t>(state)];
}

double LossDistance(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size() || a.empty()) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return std::numeric_limits<double>::infinity();
    sum += (a[i] - b[i]) * (a[i] - b[i]);
  }
  return std::sqrt(sum / static_cast<double>(a.size()));
}

LossState JudgeLoss(std::span<const double> baseline, std::span<const double> rounded,
                    std::span<const double> change) {
  constexpr double kFactor = 3;
  const double distance = LossDistance(baseline, change), noise = LossDistance(baseline, rounded);
  if (distance == 0) return LossState::kSame;
  if (std::isfinite(distance) && std::isfinite(noise) && distance <= kFactor * noise) return LossState::kClose;
  return LossState::kOutside;
}

double RoundsHalfWidth(std::span<const double> differences) {
  const double n = static_cast<double>(differences.size());
  if (n < 2) return std::numeric_limits<double>::infinity();
  double mean = 0, squares = 0;
  for (const double one : differences) mean += one / n;
  for (const double one : differences) squares += (one - mean) * (one - mean);
  return Student95(n - 1) * std::sqrt(squares / (n - 1) / n);
}

RowSet RowsOf(std::span<const Trial> trials) { return RowSetOf(kTrialColumns, trials); }

}  // namespace rfinject::cli
