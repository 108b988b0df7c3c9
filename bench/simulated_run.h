// File: simulated_run.h
//
// Makes up a training run, for the exams of the intervals and of diff: kernels with noise, timed and sampled in the
// steps that the schedule chooses, written by the trace's encoders and read back by the command's reader. Only the
// GPU is made up; schedule, trace, reader and report are those that are shipped.
#ifndef RFINJECT_BENCH_SIMULATED_RUN_H_
#define RFINJECT_BENCH_SIMULATED_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/profile/profile.h"

namespace rfinject::bench {

enum class Noise : uint8_t {
  kWhite,         // of launches alone
  kClockHalf,     // and a factor common to each step, 0.5 %
  kClockTwo,      // 2 %
  kShortMemory,   // AR(1), 1 %, a step keeps 0.7 of the one before
  kLongMemory,    // AR(1), 1 %, 300 steps to 1/e
  kTwoStates,     // 1 or 1.1, each for 300 steps on average
  kSlowSteps,     // one step in 50 takes a quarter longer
  kSlowLaunches,  // one launch in 50 takes a tenth longer
  kDrift,         // 5 % over the run
  // The program's own rhythm: even and odd steps of 1 and 1.2, or every so many steps one that takes half as long
  // again.
  kEvery2,
  kEvery4,
  kEvery5,
  kEvery10,
  kEvery16,
  kEvery20,
  kEvery25,
  kEvery50,
  kEvery100,
  kInTurn,       // two programs in turn, as the two networks of a GAN: each half of the keys in every second step
  kRareThird,    // a third of the keys runs in every sixteenth step only
  kTenthLonger,  // one step in ten, by chance, takes three tenths longer
  kLognormal,    // a step's length is lognormal, as that of sentences: 0.3 of its logarithm
  // The host takes longer than the GPU, so that the steps' durations do not show these.
  kHiddenStates,  // two clocks, as kTwoStates
  kHiddenWarmUp,  // the clock sinks by a tenth within the first third of the run
};
inline constexpr Noise kAllNoises[] = {
    Noise::kWhite,       Noise::kClockHalf, Noise::kClockTwo,     Noise::kShortMemory, Noise::kLongMemory,
    Noise::kTwoStates,   Noise::kSlowSteps, Noise::kSlowLaunches, Noise::kDrift,       Noise::kEvery2,
    Noise::kEvery4,      Noise::kEvery5,    Noise::kEvery10,      Noise::kEvery16,     Noise::kEvery20,
    Noise::kEvery25,     Noise::kEvery50,   Noise::kEvery100,     Noise::kInTurn,      Noise::kRareThird,
    Noise::kTenthLonger, Noise::kLognormal, Noise::kHiddenStates, Noise::kHiddenWarmUp};
// Every how many steps one is longer; 0: there is no such rhythm.
uint64_t PeriodOf(Noise noise);
// The names of both, as tables and --only have them.
std::string NoiseName(Noise noise);
bool IsRealistic(Noise noise);  // a clock's, short memory, outliers: what a GPU that is well does

// Windows of samples that hold whole steps, and a third of a step; `--steps 50`. The last is another tool's recording
// of twenty steps: every launch has its time, and no step is known.
enum class Schedule : uint8_t { kWholeSteps, kParts, kFiftySteps, kRecording };
std::string ScheduleName(Schedule schedule);

struct SimulatedRun {
  Noise noise = Noise::kWhite;
  Schedule schedule = Schedule::kWholeSteps;
  uint32_t launches = 1;        // of each key a step
  double launch_spread = 0.03;  // of a launch's time, relative; of its bytes two thirds of it
  uint32_t layers = 4;          // each has two keys forward and two backward; the optimizer has two of its own
  uint64_t seed = 1;
  double faster_layer = 1;  // factor of the first layer's times and bytes
};

// What the run's mean ordinary step took in truth, by launch key, in the order in which a simulated run has them; and
// the mean of all steps, where the report sets none aside.
struct TrueKey {
  uint32_t layer = 0;  // 0: of none
  int phase = 0;       // rfinject.v1.Phase
  std::string kernel;
  double ns = 0, bytes = 0, flop = 0;
  double all_ns = 0, all_bytes = 0;
};

struct SimulatedResult {
  cli::Profile profile;  // as read from the trace
  std::vector<TrueKey> keys;
  size_t trace_bytes = 0, series_bytes = 0;  // of them, what sums by step take
  uint64_t steps = 0, armed = 0;             // with samples
};

// Simulates one run, from drawn launch times to the intervals that a report of its trace would print. The same
// options give the same result.
SimulatedResult Simulate(const SimulatedRun& options);

}  // namespace rfinject::bench

#endif  // RFINJECT_BENCH_SIMULATED_RUN_H_
