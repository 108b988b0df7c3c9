// What launches compute, by the operators that a measured process observed.
#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/model/call_parts.h"
#include "cli/trace/apply/errors.h"
#include "cli/trace/apply/records.h"
#include "proto/wire/saturating_add.h"

namespace rfinject::cli {
namespace {

constexpr uint64_t kMaxLaunchesOfCall = 1 << 16;

// The place of a metric in State::metrics, which gets it if no record has defined it.
uint32_t PlaceOf(std::string_view name, std::string_view unit, State* state) {
  if (const auto known = state->metric_ids.find(std::string(name)); known != state->metric_ids.end()) {
    return static_cast<uint32_t>(state->metric_index.Find(known->second));
  }
  const auto same = [name](const MetricInfo& metric) { return metric.name == name; };
  const auto found = std::ranges::find_if(state->metrics, same);
  if (found != state->metrics.end()) return static_cast<uint32_t>(found - state->metrics.begin());
  state->metrics.push_back({.name = std::string(name), .unit = std::string(unit)});
  return static_cast<uint32_t>(state->metrics.size() - 1);
}

// What was observed of one key.
struct KeyWork {
  std::vector<std::pair<uint32_t, Stat>> metrics;  // as KeyState has them, a sample each launch
  uint32_t op = 0, signature = 0;
  bool several_operators = false, several_signatures = false;

  Stat& Of(uint32_t metric) {
    const auto at = std::ranges::find(metrics, metric, &std::pair<uint32_t, Stat>::first);
    return at != metrics.end() ? at->second : metrics.emplace_back(metric, Stat()).second;
  }
};

class Works {
 public:
  explicit Works(State* state)
      : state_(state),
        model_flop_(PlaceOf(kMetricModelFlop, "FLOP", state)),
        product_flop_(PlaceOf(kMetricProductFlop, "FLOP", state)),
        hidden_flop_(PlaceOf(kMetricHiddenFlop, "FLOP", state)),
        bytes_(PlaceOf(kMetricCompulsoryBytes, "byte", state)),
        part_(PlaceOf(kMetricCallPart, "2^-20 call", state)) {
    if (const auto time = state->metric_ids.find(std::string(kMetricTime)); time != state->metric_ids.end()) {
      time_ = state->metric_index.Find(time->second);
    }
    for (size_t i = 0; i < kPrecisionCount; ++i) flop_[i] = PlaceOf(kMetricCallFlop[i], "FLOP", state);
  }

  void Add(const trace::OperatorWork& work) {
    std::vector<KernelOfCall> kernels;
    std::vector<KeyWork*> keys;
    for (size_t i = 0; i < work.key.size(); ++i) {
      const KeyState& key = state_->keys[state_->key_index.Find(work.key[i])];
      const KernelOfCall kernel{state_->NameOf(key.key.kernel), UsualTimeOf(key)};
      kernels.insert(kernels.end(), work.launches[i], kernel);
      KeyWork& known = keys_[work.key[i]];
      Name(work.op, &known.op, &known.several_operators);
      Name(work.signature, &known.signature, &known.several_signatures);
      keys.insert(keys.end(), work.launches[i], &known);
    }
    const CallShape shape{.multiplies = work.multiplies, .gradients = static_cast<int>(work.gradients)};
    const std::vector<WorkPart> parts = PartsOf(shape, kernels);
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto add = [&](uint32_t metric, uint64_t value) {
        keys[i]->Of(metric).Merge(Stat::Same(parts[i].Of(value), work.calls));
      };
      add(model_flop_, work.model_flop);
      if (work.product_flop != 0) add(product_flop_, work.product_flop);
      if (work.hidden_flop != 0) add(hidden_flop_, work.hidden_flop);
      add(bytes_, work.compulsory_bytes);
      add(part_, kWholeCall);
      for (size_t p = 0; p < work.flop.size(); ++p) {
        if (work.flop[p] != 0) add(flop_[p], work.flop[p]);
      }
      if (work.pcie_bytes != 0) add(PlaceOf(kMetricPcieBytes, "byte", state_), work.pcie_bytes);
    }
  }

  // The launches of a key are taken to do what those did that were observed.
  void Finish() {
    for (auto& [id, work] : keys_) {
      KeyState& key = state_->keys[state_->key_index.Find(id)];
      if (!work.several_operators) key.key.op = work.op;
      if (!work.several_signatures) key.key.signature = work.signature;
      for (auto& [metric, stat] : work.metrics) {
        const Stat all = stat.min == stat.max ? Stat::Same(stat.min, key.launches) : stat;
        const auto at = std::ranges::lower_bound(key.metrics, metric, {}, &std::pair<uint32_t, Stat>::first);
        if (all.n != 0 && (at == key.metrics.end() || at->first != metric)) key.metrics.insert(at, {metric, all});
      }
    }
  }

 private:
  static void Name(uint32_t said, uint32_t* known, bool* several) {
    *several = *several || (*known != 0 && *known != said);
    *known = said;
  }

  uint64_t UsualTimeOf(const KeyState& key) const {
    const auto is_time = [this](const auto& metric) { return metric.first == time_; };
    const auto time = std::ranges::find_if(key.metrics, is_time);
    constexpr double kLongest = 1e14;  // a damaged trace may say more; no sum of a call's kernels overflows
    return time != key.metrics.end() ? static_cast<uint64_t>(std::clamp(time->second.mean(), 0.0, kLongest)) : 0;
  }

  State* const state_;
  size_t time_ = SIZE_MAX;
  uint32_t model_flop_, product_flop_, hidden_flop_, bytes_, part_;
  std::array<uint32_t, kPrecisionCount> flop_{};
  std::map<uint32_t, KeyWork> keys_;  // by id
};

}  // namespace

absl::Status Apply(const v1::OperatorWork& message, const Record& record, State* state) {
  RunState* run = nullptr;
  RFINJECT_TRY(state->FindRun(message.run(), record, &run));
  trace::OperatorWork work;
  RFINJECT_TRY(ReadRecord(message, record, &work));
  const std::string* name = nullptr;
  RFINJECT_TRY(state->FindName(work.op, record, &name));
  RFINJECT_TRY(state->FindName(work.signature, record, &name));
  if (work.key.size() != work.launches.size() || work.flop.size() > kPrecisionCount) {
    return DamageAt(record.offset,
                    "the work of an operator has launches without a key, or precisions without a name");
  }
  uint64_t launches = 0;
  for (size_t i = 0; i < work.key.size(); ++i) {
    const size_t key = state->key_index.Find(work.key[i]);
    if (key == IdIndex::kNone) return Undefined(record, "launch key", work.key[i]);
    if (state->keys[key].key.run != State::RunId(work.run)) {
      return DamageAt(record.offset, "the work of an operator has launches of another run");
    }
    wire::SaturatingAdd(&launches, work.launches[i]);
  }
  if (launches > kMaxLaunchesOfCall) {
    return DamageAt(record.offset, "a call of an operator has more launches than any has");
  }
  // What is told again adds calls.
  const auto [known, is_new] = state->works.try_emplace(
      std::tuple(work.op, work.signature, work.model_flop, work.compulsory_bytes, work.key, work.launches), work);
  if (!is_new) {
    wire::SaturatingAdd(&known->second.calls, work.calls);
    return absl::OkStatus();
  }
  constexpr uint64_t kMetrics = 4;  // of each key
  return state->Charge(256 + 2 * record.size + work.key.size() * kMetrics * (2 * sizeof(Stat) + 64), record);
}

void FinishOperators(State* state) {
  if (state->works.empty()) return;
  Works works(state);
  for (const auto& [what, work] : state->works) works.Add(work);
  works.Finish();
  state->works.clear();
}

}  // namespace rfinject::cli
