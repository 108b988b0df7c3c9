// File: schedule.h
//
// Schedule says in which steps kernels are timed and the device is sampled: in windows of two steps in a row, so that
// a step's period is seen, too. It is pure and drawn with a fixed seed: no rhythm of the program meets the windows at
// one place only, all ranks draw the same, and two runs of a program can be compared step by step.
//
// Without a number of steps the distances between windows are drawn, of kFirstDistance steps on the average, and grow
// with the run: some thirty windows are in the first 300 steps, and some twenty in each later doubling. With a number
// of steps (--steps) the windows are drawn from these, and of many draws the one is taken for which the textbook's
// interval of the mean is nearest to right (window_coverage.h). Which of a run's windows can be used is the caller's
// business: one that is let pass moves no other.
#ifndef RFINJECT_COLLECTOR_ARMING_SCHEDULE_H_
#define RFINJECT_COLLECTOR_ARMING_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rfinject::arming {

struct ScheduleOptions {
  uint64_t warm_up_steps = 4;  // autotuning and allocation make the first steps unlike the rest
  uint64_t run_steps = 0;      // the number of steps that the user asked for; 0: all
  uint64_t seed = 20211102;    // of what is drawn; the same on all ranks
};

class Schedule {
 public:
  static constexpr uint64_t kStepsOfWindow = 2;
  static constexpr uint64_t kFirstDistance = 8;

  explicit Schedule(const ScheduleOptions& options);

  // Whether a window begins with `step`. Asked for each step, in order, but steps may be left out.
  bool Begins(uint64_t step) noexcept;

  // The first steps of the windows that were drawn; empty where the number of steps is not known.
  const std::vector<uint64_t>& drawn() const noexcept { return drawn_; }

 private:
  void Draw(uint64_t steps);
  std::vector<uint64_t> DrawOnce(uint64_t seed, uint64_t steps, size_t windows) const;
  uint64_t DistanceAfter(uint64_t step) noexcept;

  ScheduleOptions options_;
  std::vector<uint64_t> drawn_;  // ascending
  uint64_t next_ = 0;            // where nothing was drawn
  uint64_t draws_ = 0;
};

}  // namespace rfinject::arming

#endif  // RFINJECT_COLLECTOR_ARMING_SCHEDULE_H_
