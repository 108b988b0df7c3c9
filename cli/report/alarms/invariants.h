// File: invariants.h
//
// What must be true of every roofline; published ones broke each of these rules. A report checks all of them, and
// `report --strict` turns what it finds into exit code 3. findings.h declares what can be found.
#ifndef RFINJECT_CLI_REPORT_ALARMS_INVARIANTS_H_
#define RFINJECT_CLI_REPORT_ALARMS_INVARIANTS_H_

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cli/model/roofline.h"
#include "cli/profile/profile.h"
#include "cli/report/alarms/findings.h"

namespace rfinject::cli {

struct Report;

// Tolerances, with their reasons.
// Measured time and bytes come from different launches of a key and clocks run some percent over the boost clock of
// the datasheet; beyond this it is a mistake.
inline constexpr double kRoofTolerance = 1.03;
// Model FLOP of a network's training step: backward / forward is (2F - F1) / F where F1 is the first layer, which
// needs no gradient of its input. 1.9 for AlexNet, 1.996 for VGG-19.
inline constexpr double kBackwardOverForwardLow = 1.8;
inline constexpr double kBackwardOverForwardHigh = 2.05;
// Attention that keeps no scores computes them again in its backward: five matrix products where the forward has two.
inline constexpr double kAttentionBackwardOverForward = 2.6;
// What a layer's backward needs beyond that, or what is in no layer, as a share of the whole backward: above it more
// than the gradients of biases and some functions outside of modules has gone astray.
inline constexpr double kBackwardUnexplained = 0.05;
// Winograd F(4x4, 3x3) does 1/4 of the multiplications (Lavin and Gray, CVPR 2016, arXiv 1509.09308); below it no
// known algorithm executes. Above 2: padding of channels and tiles explains less.
inline constexpr double kExecutedOverModelLow = 0.24;
inline constexpr double kExecutedOverModelHigh = 2.0;
inline constexpr double kClockDrift = 1.05;

// Of one id at most so many single alarms are listed, and then one line with the count of the rest.
inline constexpr size_t kMaxAlarmsOfOneKind = 3;

// Gathers alarms, each with the time behind it, so that a million kernels give a readable list.
class AlarmList {
 public:
  // The sentence is made of those findings only that are among the largest of their kind so far.
  template <typename Finding>
  void Add(double time_ns, const Finding& finding, std::optional<AlarmPlace> where = {}) {
    Keep(time_ns, AlarmOf(finding, std::move(where)));
  }

  void Keep(double time_ns, Alarm alarm) {
    Kind& kind = kinds_[alarm.id];
    ++kind.count;
    if (kind.kept.size() == kMaxAlarmsOfOneKind) {
      if (time_ns <= kind.kept.back().first) return;
      kind.kept.pop_back();
    }
    kind.kept.emplace_back(time_ns, std::move(alarm));
    std::stable_sort(kind.kept.begin(), kind.kept.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
  }

  std::vector<Alarm> Take() {
    std::vector<Alarm> alarms;
    for (auto& [id, kind] : kinds_) {
      for (auto& [time_ns, alarm] : kind.kept) alarms.push_back(std::move(alarm));
      if (const size_t left = kind.count - kind.kept.size(); left > 0) {
        alarms.push_back({.id = std::string(id),
                          .text = absl::StrFormat("and %d more of this kind, with less time", left),
                          .causes = {},
                          .where = {}});
      }
    }
    return alarms;
  }

 private:
  struct Kind {
    size_t count = 0;
    std::vector<std::pair<double, Alarm>> kept;  // the longest first
  };
  std::map<std::string, Kind> kinds_;
};

// What single launch keys say; `chip` as KeyReader has it.
AlarmList CheckKeys(const Profile& profile, const Run& run, const Machine& machine, std::string_view chip);
// Adds what the folding of the run (all but its alarms and headline) says. The alarms come in the order of their ids,
// of one id the largest share of time first.
std::vector<Alarm> CheckReport(AlarmList alarms, const Run& run, const Report& report);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_ALARMS_INVARIANTS_H_
