#include "bench/simulated_run.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "cli/profile/time_order.h"
#include "cli/trace/frames.h"
#include "cli/trace/read.h"
#include "collector/arming/schedule.h"
#include "collector/record/launch_table.h"
#include "collector/record/step_sums.h"
#include "collector/trace_encoder.h"
#include "proto/wire/framing.h"

namespace rfinject::bench {
namespace {

constexpr uint64_t kLongRun = 3000, kRecordedSteps = 20;
constexpr uint64_t kSkipped = 10;  // steps before a window
// What a step with times costs, in steps; the noise that the host adds to a step's duration.
constexpr double kTimesCost = 0.01, kHostSpread = 0.01;
constexpr double kOddStep = 1.2, kLongStep = 1.5;
constexpr uint64_t kRare = 10;
constexpr double kHostBound = 1.5;  // what the host takes for a step, over what the GPU does
constexpr double kTenth = 0.1, kThreeTenthsMore = 1.3, kLogSpread = 0.3;
constexpr double kSlowShare = 0.02, kSlowFactor = 1.25, kSlowLaunch = 1.1;

struct Key {
  LaunchIdentity identity;
  double ns = 0, bytes = 0;  // of a launch
  uint64_t flop = 0;
  // Of a recording: its launches so far, and their times in order.
  uint64_t recorded = 0;
  std::vector<cli::StepSum> order;
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
      case Noise::kTwoStates:
      case Noise::kHiddenStates: {
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
      case Noise::kTenthLonger:
        for (size_t i = 0; i < factors_.size(); ++i) {
          slow_[i] = uniform(random) < kTenth;
          if (slow_[i]) factors_[i] = kThreeTenthsMore;
        }
        return;
      case Noise::kLognormal:
        for (double& factor : factors_) factor = std::exp(kLogSpread * normal(random));
        return;
      case Noise::kDrift:
        for (size_t i = 0; i < factors_.size(); ++i) {
          factors_[i] = 1 + 0.05 * static_cast<double>(i) / static_cast<double>(factors_.size());
        }
        return;
      case Noise::kHiddenWarmUp:
        for (size_t i = 0; i < factors_.size(); ++i) {
          factors_[i] = 1 + 0.1 * std::min(1.0, 3 * static_cast<double>(i) / static_cast<double>(factors_.size()));
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
  if (noise == Noise::kTenthLonger) return "tenth longer";
  if (noise == Noise::kLognormal) return "lognormal";
  if (noise == Noise::kHiddenStates) return "hidden states";
  if (noise == Noise::kHiddenWarmUp) return "hidden warm-up";
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
  static constexpr const char* kNames[] = {"whole steps", "parts", "--steps 50", "recording"};
  return kNames[static_cast<size_t>(schedule)];
}

namespace {

// One program, its policy and its trace. What is drawn, and in which order, decides what a seed means.
class Simulation {
 public:
  explicit Simulation(const SimulatedRun& options)
      : options_(options),
        random_(options.seed),
        m_(options.launches),
        recording_(options.schedule == Schedule::kRecording),
        skipped_(options.schedule == Schedule::kFiftySteps ? kSkipped : 0),
        steps_(recording_                                  ? kRecordedSteps
               : options.schedule == Schedule::kFiftySteps ? 50
                                                           : kLongRun),
        schedule_(ArmingOf(options)),
        chunk_(wire::kMaxPayloadSize) {}

  SimulatedResult Run() {
    MakeKeys();
    WriteDefinitions();
    const Path path(options_.noise, steps_, random_);
    rhythm_ = random_();
    for (size_t i = 0; i < keys_.size(); ++i) {
      LaunchRecord all;
      all.identity = keys_[i].identity;
      all.launches = 0;
      for (uint64_t step = 0; step < steps_; ++step) {
        if (Runs(options_.noise, i, step, rhythm_)) all.launches += options_.launches;
      }
      launched_.push_back(all.launches);
      table_.Add(all);
    }
    for (uint64_t step = 0; step < steps_; ++step) DoStep(step, path);
    WriteStatistics();
    ReadTrace();
    for (uint32_t i = 0; i < keys_.size(); ++i) {
      const Key& key = keys_[i];
      result_.keys.push_back({.layer = key.identity.site.layer,
                              .phase = static_cast<int>(key.identity.site.phase),
                              .kernel = "kernel " + std::to_string(i + 1),
                              .ns = true_ns_[i] / true_steps_,
                              .bytes = true_bytes_[i] / true_steps_,
                              .flop = static_cast<double>(key.flop * launched_[i]) / static_cast<double>(steps_),
                              .all_ns = all_ns_[i] / static_cast<double>(steps_),
                              .all_bytes = all_bytes_[i] / static_cast<double>(steps_)});
    }
    result_.steps = steps_;
    return std::move(result_);
  }

 private:
  static arming::ScheduleOptions ArmingOf(const SimulatedRun& options) {
    arming::ScheduleOptions schedule;
    if (options.schedule == Schedule::kFiftySteps) {  // as `--skip 10 --steps 50` sets it
      schedule.run_steps = 50;
      schedule.warm_up_steps = 2;
    }
    schedule.seed = options.seed;
    return schedule;
  }

  // The program's kernels are the same for every seed, so that two runs are of one program.
  void MakeKeys() {
    std::mt19937_64 program(11);
    const auto add_key = [&](uint32_t layer, Phase phase) {
      Key& key = keys_.emplace_back();
      key.identity.kernel = static_cast<uint32_t>(keys_.size());
      key.identity.site.layer = layer;
      key.identity.site.phase = phase;
      const double factor = layer == 2 ? options_.faster_layer : 1;  // layer 1 is the root
      key.ns = factor * 1e4 * std::exp(3 * uniform_(program));
      key.bytes = factor * 1e6 * std::exp(3 * uniform_(program));
      key.flop = 1'000'000;
    };
    for (uint32_t layer = 2; layer < 2 + options_.layers; ++layer) {
      for (const Phase phase : {Phase::kForward, Phase::kForward, Phase::kBackward, Phase::kBackward}) {
        add_key(layer, phase);
      }
    }
    add_key(0, Phase::kOptimizer);
    add_key(0, Phase::kOptimizer);
    true_ns_.resize(keys_.size());
    true_bytes_.resize(keys_.size());
    all_ns_.resize(keys_.size());
    all_bytes_.resize(keys_.size());
  }

  void WriteDefinitions() {
    RunFacts facts;
    facts.source = recording_ ? trace::Source::kImported : trace::Source::kMeasured;
    EncodeFactChanges(RunFacts{}, facts, &chunk_);
    for (uint32_t id = 1; id <= keys_.size(); ++id) EncodeName(id, "kernel " + std::to_string(id), &chunk_);
    EncodeRecord(1, ModelDefinition{.class_name = "Net", .parameters = 1000}, &chunk_);
    for (uint32_t id = 1; id < 2 + options_.layers; ++id) {
      LayerDefinition layer{.model = 1, .parent = id == 1 ? 0u : 1u};
      if (id > 1) layer.path = "layer" + std::to_string(id - 1);
      EncodeRecord(id, layer, &chunk_);
    }
    EncodeRecord(kTime, MetricDefinition{.name = std::string(kMetricTime), .unit = "ns"}, &chunk_);
    EncodeRecord(kDramBytes, MetricDefinition{.name = std::string(kMetricDramBytes), .unit = "byte"}, &chunk_);
    EncodeRecord(kFlopFirst + 1, MetricDefinition{.name = std::string(kMetricFlop[1]), .unit = "FLOP"}, &chunk_);
  }

  // The noise of a mean over many launches.
  double MeanNoise(double spread) {
    double mean = 1 + spread / std::sqrt(m_) * normal_(random_);
    if (options_.noise == Noise::kSlowLaunches) {
      std::binomial_distribution<int> slow(static_cast<int>(options_.launches), kSlowShare);
      mean += (kSlowLaunch - 1) * slow(random_) / m_;
    }
    return mean;
  }

  void Add(const Key& key, uint64_t step, std::initializer_list<Sample> samples) {
    LaunchRecord record;
    record.identity = key.identity;
    record.launches = 0;
    for (const Sample& sample : samples) record.samples[record.sample_count++] = sample;
    uint32_t id = 0;
    table_.Add(record, &id);
    if (recording_) {
      Key& recorded = keys_[key.identity.kernel - 1];
      cli::AddInOrder(recorded.recorded++, samples.begin()->value, &recorded.order);
      return;
    }
    for (const Sample& sample : samples) sums_.Add(skipped_ + step, id, sample);
  }

  // What is not sampled need not be drawn launch by launch, and not at all where its noise averages out.
  void DoUnsampled(double* ns, double* bytes) {
    if (steps_ <= 500) {
      *ns *= MeanNoise(options_.launch_spread);
      *bytes *= MeanNoise(options_.launch_spread / 1.5);
    } else if (options_.noise == Noise::kSlowLaunches) {
      *ns *= 1 + kSlowShare * (kSlowLaunch - 1);
      *bytes *= 1 + kSlowShare * (kSlowLaunch - 1);
    }
  }

  // Whether the window of samples holds a key's launches. Its place in the step is drawn.
  bool Holds(uint32_t key) const {
    if (options_.schedule != Schedule::kParts) return true;
    const auto keys = static_cast<uint32_t>(keys_.size());
    return (key + keys - part_) % keys < keys / 3;
  }

  void DoTimed(uint32_t i, uint64_t step, double factor, bool sampled, double* ns, double* bytes) {
    const Key& key = keys_[i];
    double times = 0, moved = 0;
    const auto draw = [&](double mean, double spread) {
      double value = mean * factor * (1 + spread * normal_(random_));
      if (options_.noise == Noise::kSlowLaunches && uniform_(random_) < kSlowShare) value *= kSlowLaunch;
      return Whole(value);
    };
    for (uint32_t launch = 0; launch < options_.launches; ++launch) {
      const uint64_t time = draw(key.ns, options_.launch_spread),
                     byte = draw(key.bytes, options_.launch_spread / 1.5);
      times += static_cast<double>(time);
      moved += static_cast<double>(byte);
      Add(key, step, {{kTime, time}});
      if (sampled && Holds(i)) Add(key, step, {{kDramBytes, byte}, {kFlopFirst + 1, key.flop}});
    }
    *ns = times;
    *bytes = moved;
  }

  void DoStep(uint64_t step, const Path& path) {
    if (!recording_ && schedule_.Begins(step)) {
      window_end_ = step + arming::Schedule::kStepsOfWindow;
      sampled_step_ = step + random_() % arming::Schedule::kStepsOfWindow;
      part_ = static_cast<uint32_t>(random_() % keys_.size());
    }
    const bool timed = recording_ || step < window_end_, sampled = !recording_ && timed && step == sampled_step_;
    const double factor = path.at(step);
    const bool counted = !path.slow(step);
    true_steps_ += counted;
    double own_ns = 0;  // without noise
    for (uint32_t i = 0; i < keys_.size(); ++i) {
      if (!Runs(options_.noise, i, step, rhythm_)) continue;
      own_ns += m_ * keys_[i].ns;
      double ns = keys_[i].ns * m_ * factor, bytes = keys_[i].bytes * m_ * factor;
      if (timed) {
        DoTimed(i, step, factor, sampled, &ns, &bytes);
      } else {
        DoUnsampled(&ns, &bytes);
      }
      if (counted) true_ns_[i] += ns, true_bytes_[i] += bytes;
      all_ns_[i] += ns, all_bytes_[i] += bytes;
    }
    const bool hidden = options_.noise == Noise::kHiddenStates || options_.noise == Noise::kHiddenWarmUp;
    const double by_the_clock = hidden ? kHostBound : factor;
    const double cost = timed ? kTimesCost : 0;
    const uint64_t duration = Whole(own_ns * (by_the_clock * (1 + kHostSpread * normal_(random_)) + cost));
    if (recording_) return;
    StepRecord record;
    record.index = skipped_ + step;
    record.duration_ns = duration;
    record.samples = 8;
    record.measured = true;
    records_.push_back(record);
    result_.armed += sampled;
  }

  void WriteStatistics() {
    while (table_.TakeOne([&](uint32_t id, const LaunchTable::Key& key, auto metrics) {
      EncodeLaunchKey(id, key.identity, 0, 0, &chunk_);
      EncodeKeyStats(id, key.launches, metrics, &chunk_);
    })) {
    }
    const size_t before = chunk_.size();
    sums_.CompleteAll();
    for (const SampledStep& sampled : sums_.complete()) EncodeRecord(kRunId, sampled, &chunk_);
    result_.series_bytes = chunk_.size() - before;
    for (const StepRecord& record : records_) EncodeStep(record, &chunk_);
    EncodeEnd("exit", 1, &chunk_);
  }

  void ReadTrace() {
    std::vector<uint8_t> bytes(wire::kFileHeaderSize + wire::kFrameHeaderSize);
    uint8_t file[wire::kFileHeaderSize], frame[wire::kFrameHeaderSize];
    wire::EncodeFileHeader(file);
    wire::EncodeFrameHeader(chunk_.data(), static_cast<uint32_t>(chunk_.size()), 0, frame);
    std::memcpy(bytes.data(), file, sizeof file);
    std::memcpy(bytes.data() + sizeof file, frame, sizeof frame);
    bytes.insert(bytes.end(), chunk_.data(), chunk_.data() + chunk_.size());
    result_.trace_bytes = bytes.size();
    cli::MemorySource source(bytes);
    cli::TraceContents contents = cli::ReadTrace(source);
    if (!chunk_.ok() || !contents.status.ok()) {
      fprintf(stderr, "the simulated trace cannot be read: %s\n", std::string(contents.status.message()).c_str());
      exit(2);
    }
    result_.profile = std::move(contents.profile);
    if (recording_) AddOrder();
  }

  // As an import does it.
  void AddOrder() {
    const std::string order(kMetricTimeOrder);
    cli::Run& run = result_.profile.runs.begin()->second;
    for (auto& [key, stats] : run.launches) {
      const uint64_t id = strtoul(key.kernel.c_str() + strlen("kernel "), nullptr, 10);
      stats.step_sums[order] = keys_[id - 1].order;
    }
    for (size_t i = 0; i < cli::kMostPieces; ++i) run.sampled_steps[order][i] = 1;
  }

  const SimulatedRun& options_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  const double m_;  // launches of a key in a step
  const bool recording_;
  const uint64_t skipped_;  // steps before the first, in the trace's numbers
  const uint64_t steps_;
  arming::Schedule schedule_;
  uint64_t window_end_ = 0, sampled_step_ = 0;
  uint32_t part_ = 0;  // the first key of a window that holds a part of a step
  wire::Encoder chunk_;
  LaunchTable& table_ = Table();
  StepSums sums_;
  std::vector<Key> keys_;
  std::vector<StepRecord> records_;
  uint64_t rhythm_ = 0;             // where it begins
  std::vector<uint64_t> launched_;  // of each key, in all steps
  // What really was done, in the steps that count.
  std::vector<double> true_ns_, true_bytes_;
  std::vector<double> all_ns_, all_bytes_;  // and in all
  double true_steps_ = 0;
  SimulatedResult result_;
};

}  // namespace

SimulatedResult Simulate(const SimulatedRun& options) { return Simulation(options).Run(); }

}  // namespace rfinject::bench
