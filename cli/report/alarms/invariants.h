// File: invariants.h
//
// What must be true of every roofline; published ones broke each of these rules. A report checks all of them, and
// `report --strict` turns what it finds into exit code 3. findings.h declares what can be found.
#ifndef RFINJECT_CLI_REPORT_ALARMS_INVARIANTS_H_
#define RFINJECT_CLI_REPORT_ALARMS_INVARIANTS_H_

#include <string_view>
#include <vector>

#include "cli/report/report.h"

namespace rfinject::cli {

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

// Checks `run`, whose folding (all but alarms and headline) is `report`. The alarms come in the order of their ids;
// of one id at most `kMaxAlarmsOfOneKind` single ones, the largest share of time first, and then one line with the
// count of the rest.
inline constexpr size_t kMaxAlarmsOfOneKind = 3;
std::vector<Alarm> CheckInvariants(const Profile& profile, const Run& run, std::string_view chip,
                                   const Report& report);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_ALARMS_INVARIANTS_H_
