#include "collector/arming/simulation.h"

#include <algorithm>
#include <cmath>

#include "collector/arming/split_mix.h"

namespace rfinject::arming {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() { return SplitMix64(&state_); }
  double Uniform() { return (static_cast<double>(Next() >> 11) + 0.5) / 9007199254740992.0; }
  double Between(double low, double high) { return low * std::exp(Uniform() * std::log(high / low)); }
  double Normal() { return std::sqrt(-2 * std::log(Uniform())) * std::cos(2 * M_PI * Uniform()); }
  // Student's t with 5 degrees of freedom, scaled to variance 1.
  double HeavyTailed() {
    double chi = 0;
    for (int i = 0; i < 5; ++i) {
      double z = Normal();
      chi += z * z;
    }
    return Normal() / std::sqrt(chi / 5) * std::sqrt(3.0 / 5.0);
  }

 private:
  uint64_t state_;
};

constexpr double kOutlierShare = 0.01;
constexpr double kClockSpread = 0.005;

struct Kernel {
  double bytes, bytes_spread, time, time_spread;
  uint32_t launches;
};

}  // namespace

JobResult SimulateJob(const Options& options, const std::vector<GroupRole>& roles, const JobOptions& job) {
  Random random(job.seed);
  std::vector<Kernel> kernels(job.kernels);
  double step_ns = 0;
  for (Kernel& kernel : kernels) {
    kernel.bytes = random.Between(1e4, 1e9);
    kernel.time = random.Between(2e3, 2e6);
    kernel.bytes_spread = job.fixed_spread > 0 ? job.fixed_spread : random.Between(0.001, 0.06);
    kernel.time_spread = job.fixed_spread > 0 ? job.fixed_spread : random.Between(0.005, 0.08);
    kernel.launches = 1 + static_cast<uint32_t>(random.Next() % 4);
    step_ns += kernel.time * kernel.launches;
  }

  Policy policy(options, roles);
  for (uint32_t i = 0; i < job.kernels; ++i) policy.OnNewKey(i);
  JobResult result;
  double time = 0, extra = 0;
  for (uint64_t step = 0; step < job.steps; ++step) {
    Decision decision = policy.Begin(step);
    double clock = 1 + kClockSpread * random.Normal();
    if (decision.action == Action::kTimes) {
      for (uint32_t i = 0; i < job.kernels; ++i) {
        double factor = 1 + kernels[i].time_spread * random.HeavyTailed();
        if (random.Uniform() < kOutlierShare) factor *= 1 + job.outlier;
        policy.OnTime(i, kernels[i].time * factor * clock, kernels[i].launches);
      }
    } else if (decision.action == Action::kCounters) {
      for (uint32_t i = 0; i < job.kernels; ++i) {
        if (roles[decision.group] != GroupRole::kOnce) {
          policy.OnBytes(i, kernels[i].bytes * (1 + kernels[i].bytes_spread * random.Normal()));
        }
        policy.OnCounted(i, decision.group);
      }
    }
    double unarmed = step_ns * (1 + 0.02 * random.Normal());
    double cost = decision.action == Action::kCounters ? job.counters_cost * step_ns
                  : decision.action == Action::kTimes  ? job.times_cost * step_ns
                                                       : 0;
    time += unarmed + cost;
    extra += cost;
    policy.End(step, decision, static_cast<uint64_t>(unarmed + cost), true);
    if (result.converged_at == 0 && policy.converged()) result.converged_at = step;
    // From here on the budget has paid for the first rotation.
    double earned = (job.counters_cost + job.times_cost) * static_cast<double>(roles.size()) / options.overhead;
    if (static_cast<double>(step) > earned + 200) {
      result.max_overhead_later = std::max(result.max_overhead_later, extra / time);
    }
  }
  for (uint32_t i = 0; i < job.kernels; ++i) {
    const Policy::KeyState& key = policy.key(i);
    if (!key.heavy) continue;
    double true_time = kernels[i].time * (1 + kOutlierShare * job.outlier);
    if (key.bytes.n >= 2) {
      ++result.intervals;
      ++result.bytes_intervals;
      bool covers = std::abs(key.bytes.mean - kernels[i].bytes) <= HalfWidth95(key.bytes);
      result.covering += covers;
      result.bytes_covering += covers;
    }
    if (key.time.n >= 2) {
      ++result.intervals;
      result.covering += std::abs(key.time.mean - true_time) <= HalfWidth95(key.time);
    }
  }
  result.armed_steps = policy.armed_steps();
  result.timed_steps = policy.timed_steps();
  result.overhead = extra / time;
  return result;
}

}  // namespace rfinject::arming
