// Launch keys and their statistics.
#include <algorithm>
#include <string>
#include <utility>

#include "cli/trace/apply/errors.h"
#include "cli/trace/apply/records.h"
#include "cli/trace/key_stats.h"
#include "proto/wire/framing.h"
#include "proto/wire/saturating_add.h"

namespace rfinject::cli {
namespace {

// Checks that all ids of a key were defined. `*text` receives the length of the texts that they stand for, in bytes.
absl::Status CheckIds(const trace::LaunchKey& key, const Record& record, State* state, uint64_t* text) {
  if (key.stack != 0 && !state->native_stacks.contains(key.stack))
    return Undefined(record, "native stack", key.stack);
  if (key.line != 0 && !state->lines.contains(key.line)) return Undefined(record, "source line", key.line);
  RunState* run = nullptr;
  RFINJECT_TRY(state->FindRun(key.run, record, &run));
  for (const uint32_t id : {key.kernel, key.op, key.signature, key.node}) {
    const std::string* name = nullptr;
    RFINJECT_TRY(state->FindName(id, record, &name));
    *text += name->size();
  }
  if (key.layer == 0) return absl::OkStatus();
  const size_t place = state->layer_index.Find(key.layer);
  if (place == IdIndex::kNone) return Undefined(record, "layer", key.layer);
  const LayerInfo& layer = state->layers[place].layer;
  if (state->OwnerOf(layer.model) != key.run) {
    return DamageAt(record.offset, absl::StrCat("launch key ", key.id, " is in a layer of another run"));
  }
  *text += layer.path.size();
  return absl::OkStatus();
}

// Adds what one record says of one metric of a key. `*next` is where in the key's list it probably lies, since
// writers write a key's metrics in the same order each time.
absl::Status AddMetric(const MetricRecord& said, const Record& record, State* state, KeyState* key, size_t* next) {
  Stat stat;
  if (const char* wrong = stat.Read(said); wrong != nullptr) return DamageAt(record.offset, wrong);
  const size_t metric = state->metric_index.Find(said.metric());
  if (metric == IdIndex::kNone) return Undefined(record, "metric", said.metric());
  if (stat.n == 0) return absl::OkStatus();
  auto& metrics = key->metrics;
  if (*next == metrics.size() || metrics[*next].first != metric) {
    const auto place = std::lower_bound(metrics.begin(), metrics.end(), metric,
                                        [](const auto& m, size_t id) { return m.first < id; });
    *next = static_cast<size_t>(place - metrics.begin());
    if (place == metrics.end() || place->first != metric) {
      RFINJECT_TRY(state->Charge(2 * sizeof(Stat) + 160, record));
      if (metrics.empty()) metrics.reserve(std::min<size_t>(state->metrics.size(), 8));
      metrics.emplace(metrics.begin() + static_cast<std::ptrdiff_t>(*next), static_cast<uint32_t>(metric), stat);
      ++*next;
      return absl::OkStatus();
    }
  }
  metrics[(*next)++].second.Merge(stat);
  return absl::OkStatus();
}

}  // namespace

absl::Status Apply(const v1::LaunchKey& message, const Record& record, State* state) {
  if (message.id() == 0) return NoId(record, "launch key");
  if (message.grid_size() > 3 || message.block_size() > 3) {
    return DamageAt(record.offset, "a grid or block has more than three dimensions");
  }
  trace::LaunchKey key;
  RFINJECT_TRY(ReadRecord(message, record, &key));
  key.run = State::RunId(key.run);
  uint64_t text = 0;
  RFINJECT_TRY(CheckIds(key, record, state, &text));
  const auto [place, inserted] = state->key_index.TryEmplace(key.id, state->keys.size());
  if (!inserted) {
    return state->keys[place].key == key ? absl::OkStatus() : Redefined(record, "launch key", key.id);
  }
  state->keys.push_back({.key = key, .metrics = {}});
  return state->Charge(sizeof(KeyState) + sizeof(LaunchKey) + 160 + text, record);
}

absl::Status ApplyKeyStats(const Record& record, State* state) {
  // The id of the key may stand behind the first metrics.
  MetricRecord one;
  KeyStatsReader first(record.bytes);
  bool any = first.Next(&one);
  KeyStatsReader rest = first;
  for (MetricRecord skipped; rest.key() == 0 && any && rest.Next(&skipped);) {
  }
  const size_t found = state->key_index.Find(rest.key());
  if (found == IdIndex::kNone && rest.ok()) return Undefined(record, "launch key", rest.key());
  size_t next = 0;
  for (; any; any = first.Next(&one)) {
    if (found == IdIndex::kNone) continue;  // what is damaged is said first
    RFINJECT_TRY(AddMetric(one, record, state, &state->keys[found], &next));
  }
  if (!first.ok()) return DamageAt(first.error_offset(), first.error());
  wire::SaturatingAdd(&state->keys[found].launches, first.launches());
  return absl::OkStatus();
}

absl::Status Apply(const v1::RepeatedLaunches& message, const Record& record, State* state) {
  if (message.keys_size() != message.gap_size() || message.launches_size() != message.gap_size()) {
    return DamageAt(record.offset, "repeated launches have ranges without a number");
  }
  uint64_t id = 1;
  for (int range = 0; range < message.gap_size(); ++range) {
    id += message.gap(range);
    const uint64_t launches = message.launches(range);
    if (message.keys(range) > wire::kMostKeysInARange) {
      return DamageAt(record.offset, "a range of repeated launches is longer than any should be");
    }
    for (const uint64_t end = id + message.keys(range); id < end; ++id) {
      const size_t found = id > UINT32_MAX ? IdIndex::kNone : state->key_index.Find(static_cast<uint32_t>(id));
      if (found == IdIndex::kNone) return Undefined(record, "launch key", id);
      KeyState& key = state->keys[found];
      for (auto& [metric, stat] : key.metrics) {
        if (stat.min != stat.max) return DamageAt(record.offset, "samples are said to repeat others, which differ");
        if (launches != 0) stat.Merge(Stat::Same(stat.min, launches));
      }
      wire::SaturatingAdd(&key.launches, launches);
    }
  }
  return absl::OkStatus();
}

}  // namespace rfinject::cli
