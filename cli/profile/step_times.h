// File: step_times.h
//
// How long the steps of a rank took by the clock, and what took the time: waiting for data, waiting for the GPU, the
// GPU at work. It is kept so that sums stay exact and quantiles over many processes can be computed. It is pure.
#ifndef RFINJECT_CLI_PROFILE_STEP_TIMES_H_
#define RFINJECT_CLI_PROFILE_STEP_TIMES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace rfinject::cli {

// Durations: their exact sum, and how many lie in which range (Spread of the schema).
class Spread {
 public:
  void Add(uint64_t ns);
  // `count` durations that have this code; codes beyond the largest count as that one.
  void AddCounted(uint32_t code, uint64_t count);
  void AddSum(unsigned __int128 ns);
  void Merge(const Spread& other);

  uint64_t n() const { return n_; }
  unsigned __int128 sum() const { return sum_; }
  const std::map<uint32_t, uint64_t>& counts() const { return counts_; }  // by code

  // Nothing where there are no durations.
  std::optional<double> mean_ns() const;
  // The duration that `share` of all are not above (nearest rank), within 1/120.
  std::optional<double> Quantile(double share) const;

  friend bool operator==(const Spread&, const Spread&) = default;

 private:
  uint64_t n_ = 0;
  unsigned __int128 sum_ = 0;
  std::map<uint32_t, uint64_t> counts_;
};

// The times of steps that were not armed. What nobody watched has no durations.
struct StepTimes {
  Spread wall_ns;
  Spread data_wait_ns, gpu_wait_ns;  // of the thread that ended the step
  Spread gpu_busy_ns;
  Spread own_ns;         // wire/step_parts.h; of older traces, of which only sums are left, nothing
  Spread launch_gap_ns;  // likewise

  // One step, and what of it was watched.
  struct Step {
    uint64_t wall_ns = 0;
    std::optional<uint64_t> data_wait_ns, gpu_wait_ns, gpu_busy_ns;
    // Where it is known exactly; nothing: as much as follows from the others.
    std::optional<uint64_t> launch_gap_ns;
  };
  void Add(const Step& step);
  // How many places all of them take.
  size_t places() const;
  void Merge(const StepTimes& other);
  friend bool operator==(const StepTimes&, const StepTimes&) = default;
};

// So many ranks are kept one by one; all further ones are kept as one, under this number.
inline constexpr uint32_t kMaxRanksKept = 1024;

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PROFILE_STEP_TIMES_H_
