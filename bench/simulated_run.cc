#include "bench/simulated_run.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "cli/trace/frames.h"
#include "cli/trace/read.h"
#include "collector/arming/policy.h"
#include "collector/record/launch_table.h"
#include "collector/record/step_sums.h"
#include "collector/trace_encoder.h"
#include "proto/wire/framing.h"

namespace rfinject::bench {
namespace {

using arming::Action;
using arming::GroupRole;

constexpr uint64_t kLongRun = 3000;
// What a step with counters and one with times cost, in steps; the noise that the host adds to a step's duration.
constexpr double kCountersCost = 1, kTimesCost = 0.05, kHostSpread = 0.01;
constexpr double kOddStep = 1.2, kLongStep = 1.5;
constexpr uint64_t kRare = 10;
constexpr double kSlowShare = 0.02, kSlowFactor = 1.25, kSlowLaunch = 1.1;

struct Key {
  LaunchIdentity identity;
  double ns = 0, bytes = 0;  // of a launch
  uint64_t flop = 0;
};

class Path {
 public:
  Path(Noise noise, uint64_t steps, std::mt19937_64& random) : factors_(steps, 1), slow_(steps, false) {
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    const auto remember = [&](double memory, double spread) {
      double state = normal(random);
      for (double& factor : factors_) {
        factor = 1 + spread * state;
        state = memory * state + std::sqrt(1 - memory * memory) * normal(random);
      }
    };
    if (const uint64_t period = PeriodOf(noise); period > 0) {
      const uint64_t first = random() % period;
      for (size_t i = 0; i < factors_.size(); ++i) {
        if (i % period == first) factors_[i] = period == 2 ? kOddStep : kLongStep;
        // The report sets steps aside that are far above the others, and rare.
        slow_[i] = i % period == first && period >= kRare;
      }
      return;
    }
    switch (noise) {
      case Noise::kClockHalf:
        remember(0, 0.005);
        return;
      case Noise::kClockTwo:
        remember(0, 0.02);
        return;
      case Noise::kShortMemory:
        remember(0.7, 0.01);
        return;
      case Noise::kLongMemory:
        remember(std::exp(-1.0 / 300), 0.01);
        return;
      case Noise::kTwoStates: {
        bool high = uniform(random) < 0.5;
        for (double& factor : factors_) {
          factor = high ? 1.1 : 1;
          if (uniform(random) < 1.0 / 300) high = !high;
        }
        return;
      }
      case Noise::kSlowSteps:
        for (size_t i = 0; i < factors_.size(); ++i) {
          slow_[i] = uniform(random) < kSlowShare;
          if (slow_[i]) factors_[i] = kSlowFactor;
        }
        return;
      case Noise::kDrift:
        for (size_t i = 0; i < factors_.size(); ++i) {
          factors_[i] = 1 + 0.05 * static_cast<double>(i) / static_cast<double>(factors_.size());
        }
        return;
      default:
        return;
    }
  }
  double at(uint64_t step) const { return factors_[step]; }
  bool slow(uint64_t step) const { return slow_[step]; }

 private:
  std::vector<double> factors_;
  std::vector<bool> slow_;
};

// Whether key number `key` runs in `step`; `first` is where the rhythm begins.
bool Runs(Noise noise, size_t key, uint64_t step, uint64_t first) {
  constexpr uint64_t kRareEvery = 16;
  if (noise == Noise::kInTurn) return key % 2 == (step + first) % 2;
  if (noise == Noise::kRareThird) return key % 3 != 0 || (step + first) % kRareEvery == 0;
  return true;
}

LaunchTable& Table() {
  // One for all runs: it is made for a process that never ends, and frees nothing.
  static auto* const table = new LaunchTable;
  return *table;
}

uint64_t Whole(double value) { return value > 0 ? static_cast<uint64_t>(std::llround(value)) : 0; }

}  // namespace

std::string NoiseName(Noise noise) {
  static constexpr const char* kNames[] = {"white",      "clock 0.5 %", "clock 2 %",     "AR(1) short", "AR(1) long",
                                           "two states", "slow steps",  "slow launches", "drift"};
  if (const uint64_t period = PeriodOf(noise); period > 0) return "every " + std::to_string(period);
  if (noise == Noise::kInTurn) return "in turn";
  if (noise == Noise::kRareThird) return "rare third";
  return kNames[static_cast<size_t>(noise)];
}

uint64_t PeriodOf(Noise noise) {
  static constexpr uint64_t kPeriods[] = {2, 4, 5, 10, 16, 20, 25, 50, 100};
  return noise < Noise::kEvery2 || noise > Noise::kEvery100
             ? 0
             : kPeriods[static_cast<size_t>(noise) - static_cast<size_t>(Noise::kEvery2)];
}

bool IsRealistic(Noise noise) {
  return noise == Noise::kClockHalf || noise == Noise::kClockTwo || noise == Noise::kShortMemory ||
         noise == Noise::kSlowSteps || noise == Noise::kSlowLaunches;
}

std::string ScheduleName(Schedule schedule) {
  static constexpr const char* kNames[] = {"one group", "rotation", "--steps 50"};
  return kNames[static_cast<size_t>(schedule)];
}

SimulatedResult Simulate(const SimulatedRun& options) {
  std::mt19937_64 random(options.seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  SimulatedResult result;

  // --- The program. Its kernels are the same for every seed, so that two runs are of one program.
  std::vector<Key> keys;
  std::mt19937_64 program(11);
  const auto add_key = [&](uint32_t layer, Phase phase) {
    Key& key = keys.emplace_back();
    key.identity.kernel = static_cast<uint32_t>(keys.size());
    key.identity.site.layer = layer;
    key.identity.site.phase = phase;
    const double factor = layer == 2 ? options.faster_layer : 1;  // layer 1 is the root
    key.ns = factor * 1e4 * std::exp(3 * uniform(program));
    key.bytes = factor * 1e6 * std::exp(3 * uniform(program));
    key.flop = 1'000'000;
  };
  for (uint32_t layer = 2; layer < 2 + options.layers; ++layer) {
    for (const Phase phase : {Phase::kForward, Phase::kForward, Phase::kBackward, Phase::kBackward}) {
      add_key(layer, phase);
    }
  }
  add_key(0, Phase::kOptimizer);
  add_key(0, Phase::kOptimizer);
  const double m = options.launches;

  // --- The policy.
  std::vector<GroupRole> roles = {GroupRole::kHardware};
  if (options.schedule != Schedule::kOneGroup) {
    roles = {GroupRole::kHardware, GroupRole::kHardware, GroupRole::kOnce, GroupRole::kGuard};
  }
  arming::Options arming;
  uint64_t steps = kLongRun;
  if (options.schedule == Schedule::kFiftySteps) {  // as `--skip 10 --steps 50` sets it
    steps = arming.window_steps = 50;
    arming.warm_up_steps = 2;
  }
  arming.seed = options.seed;
  arming::Policy policy(arming, roles);
  for (uint32_t i = 0; i < keys.size(); ++i) policy.OnNewKey(i);

  // --- The trace.
  wire::Encoder chunk(wire::kMaxPayloadSize);
  RunFacts facts;
  facts.source = trace::Source::kMeasured;
  EncodeFactChanges(RunFacts{}, facts, &chunk);
  for (uint32_t id = 1; id <= keys.size(); ++id) EncodeName(id, "kernel " + std::to_string(id), &chunk);
  EncodeModel(1, {.class_name = "Net", .parameters = 1000}, &chunk);
  for (uint32_t id = 1; id < 2 + options.layers; ++id) {
    LayerDefinition layer{.model = 1, .parent = id == 1 ? 0u : 1u};
    if (id > 1) layer.path = "layer" + std::to_string(id - 1);
    EncodeLayer(id, Layer{.definition = layer}, &chunk);
  }
  EncodeMetric(kTime, {.name = std::string(kMetricTime), .unit = "ns"}, &chunk);
  EncodeMetric(kDramBytes, {.name = std::string(kMetricDramBytes), .unit = "byte"}, &chunk);
  EncodeMetric(kFlopFirst + 1, {.name = std::string(kMetricFlop[1]), .unit = "FLOP"}, &chunk);

  // --- The steps.
  const Path path(options.noise, steps, random);
  LaunchTable& table = Table();
  StepSums sums;
  std::vector<double> true_ns(keys.size()), true_bytes(keys.size());
  double true_steps = 0;
  // The noise of a mean over many launches.
  const auto mean_noise = [&](double spread) {
    double mean = 1 + spread / std::sqrt(m) * normal(random);
    if (options.noise == Noise::kSlowLaunches) {
      std::binomial_distribution<int> slow(static_cast<int>(options.launches), kSlowShare);
      mean += (kSlowLaunch - 1) * slow(random) / m;
    }
    return mean;
  };
  const auto add = [&](const Key& key, uint64_t step, std::initializer_list<Sample> samples) {
    LaunchRecord record;
    record.identity = key.identity;
    record.launches = 0;
    for (const Sample& sample : samples) record.samples[record.sample_count++] = sample;
    uint32_t id = 0;
    table.Add(record, &id);
    for (const Sample& sample : samples) sums.Add(step, id, sample);
  };
  const uint64_t rhythm = random();
  std::vector<uint64_t> launched(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    LaunchRecord all;
    all.identity = keys[i].identity;
    all.launches = 0;
    for (uint64_t step = 0; step < steps; ++step) {
      if (Runs(options.noise, i, step, rhythm)) all.launches += options.launches;
    }
    launched[i] = all.launches;
    table.Add(all);
  }
  std::vector<StepRecord> records;
  for (uint64_t step = 0; step < steps; ++step) {
    const arming::Decision decision = policy.Begin(step);
    const double factor = path.at(step);
    const bool counted = !path.slow(step);
    true_steps += counted;
    for (uint32_t i = 0; i < keys.size(); ++i) {
      const Key& key = keys[i];
      if (!Runs(options.noise, i, step, rhythm)) continue;
      double ns = key.ns * m * factor, bytes = key.bytes * m * factor;
      if (decision.action == Action::kNone) {
        // What nobody samples need not be drawn launch by launch, and not at all where its noise averages out.
        if (steps <= 500) {
          ns *= mean_noise(options.launch_spread);
          bytes *= mean_noise(options.launch_spread / 1.5);
        } else if (options.noise == Noise::kSlowLaunches) {
          ns *= 1 + kSlowShare * (kSlowLaunch - 1);
          bytes *= 1 + kSlowShare * (kSlowLaunch - 1);
        }
      } else {
        double sum = 0;
        const bool times = decision.action == Action::kTimes;
        const double spread = times ? options.launch_spread : options.launch_spread / 1.5;
        for (uint32_t launch = 0; launch < options.launches; ++launch) {
          double value = (times ? key.ns : key.bytes) * factor * (1 + spread * normal(random));
          if (options.noise == Noise::kSlowLaunches && uniform(random) < kSlowShare) value *= kSlowLaunch;
          const uint64_t sample = Whole(value);
          sum += static_cast<double>(sample);
          if (times) {
            add(key, step, {{kTime, sample}});
          } else if (roles[decision.group] == GroupRole::kHardware) {
            add(key, step, {{kDramBytes, sample}, {kFlopFirst + 1, key.flop}});
          }
        }
        double& own = times ? ns : bytes;
        double& other = times ? bytes : ns;
        own = sum;
        if (steps <= 500) other *= mean_noise(times ? options.launch_spread / 1.5 : options.launch_spread);
        if (times) policy.OnTime(i, sum / m, options.launches);
        if (!times && roles[decision.group] == GroupRole::kHardware) policy.OnBytes(i, sum / m);
        if (!times) policy.OnCounted(i, decision.group);
      }
      if (counted) true_ns[i] += ns, true_bytes[i] += bytes;
    }
    const double cost = decision.action == Action::kCounters ? kCountersCost
                        : decision.action == Action::kTimes  ? kTimesCost
                                                             : 0;
    double own_ns = 0;
    for (uint32_t i = 0; i < keys.size(); ++i) own_ns += Runs(options.noise, i, step, rhythm) ? m * keys[i].ns : 0;
    const uint64_t duration = Whole(own_ns * (factor * (1 + kHostSpread * normal(random)) + cost));
    policy.End(step, decision, duration, true);
    StepRecord record;
    record.index = step;
    record.duration_ns = duration;
    record.samples = 8;
    record.measured = true;
    record.armed_group = decision.action == Action::kCounters ? decision.group + 1 : 0;
    records.push_back(record);
    result.armed += decision.action == Action::kCounters;
  }
  while (table.TakeOne([&](uint32_t id, const LaunchTable::Key& key, auto metrics) {
    EncodeLaunchKey(id, key.identity, 0, 0, &chunk);
    EncodeKeyStats(id, key.launches, metrics, &chunk);
  })) {
  }
  const size_t before = chunk.size();
  sums.CompleteBefore(UINT64_MAX);
  for (const SampledStep& sampled : sums.complete()) EncodeSampledStep(sampled, &chunk);
  result.series_bytes = chunk.size() - before;
  for (const StepRecord& record : records) EncodeStep(record, &chunk);
  EncodeEnd("exit", 1, &chunk);

  std::vector<uint8_t> bytes(wire::kFileHeaderSize + wire::kFrameHeaderSize);
  uint8_t file[wire::kFileHeaderSize], frame[wire::kFrameHeaderSize];
  wire::EncodeFileHeader(file);
  wire::EncodeFrameHeader(chunk.data(), static_cast<uint32_t>(chunk.size()), 0, frame);
  std::memcpy(bytes.data(), file, sizeof file);
  std::memcpy(bytes.data() + sizeof file, frame, sizeof frame);
  bytes.insert(bytes.end(), chunk.data(), chunk.data() + chunk.size());
  result.trace_bytes = bytes.size();
  cli::MemorySource source(bytes);
  cli::TraceContents contents = cli::ReadTrace(source);
  if (!chunk.ok() || !contents.status.ok()) {
    fprintf(stderr, "the simulated trace cannot be read: %s\n", std::string(contents.status.message()).c_str());
    exit(2);
  }
  result.profile = std::move(contents.profile);
  result.steps = steps;
  for (uint32_t i = 0; i < keys.size(); ++i) {
    const Key& key = keys[i];
    result.keys.push_back({.layer = key.identity.site.layer,
                           .phase = static_cast<int>(key.identity.site.phase),
                           .kernel = "kernel " + std::to_string(i + 1),
                           .ns = true_ns[i] / true_steps,
                           .bytes = true_bytes[i] / true_steps,
                           .flop = static_cast<double>(key.flop * launched[i]) / static_cast<double>(steps)});
  }
  return result;
}

}  // namespace rfinject::bench
