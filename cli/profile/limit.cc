#include "cli/profile/limit.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace rfinject::cli {
namespace {

// FNV-1a, 64 bits.
uint64_t Digest(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

bool Continues(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

// Cuts texts and counts how many it has cut.
class Cutter {
 public:
  explicit Cutter(uint64_t most) : most_(most == 0 ? UINT64_MAX : std::max<uint64_t>(most, kLeast)) {}

  bool TooLong(const std::string& text) const { return text.size() > most_; }
  uint64_t cut() const { return cut_; }

  void Cut(std::string* text) {
    if (!TooLong(*text)) return;
    ++cut_;
    const std::string digest = absl::StrFormat("…%016x…", Digest(*text));
    const size_t half = (most_ - digest.size()) / 2;
    size_t head = half, tail = text->size() - half;
    while (head > 0 && Continues((*text)[head])) --head;  // no character is cut in two
    while (tail < text->size() && Continues((*text)[tail])) ++tail;
    *text = text->substr(0, head) + digest + text->substr(tail);
  }
  void Cut(LayerKey* key) {
    Cut(&key->model);
    Cut(&key->path);
  }

 private:
  static constexpr uint64_t kLeast = 64;
  const uint64_t most_;
  uint64_t cut_ = 0;
};

// The same map with keys that were cut; `change` changes a key and its value in place.
template <typename Map, typename Change>
void Rebuild(Map* map, Change change) {
  Map cut;
  for (auto it = map->begin(); it != map->end();) {
    auto node = map->extract(it++);
    change(&node.key(), &node.mapped());
    cut.insert(std::move(node));  // a digest of 64 bits keeps different texts different
  }
  *map = std::move(cut);
}

void CutRunKey(Cutter* cutter, RunKey* key) {
  for (std::string* text : {&key->gpu, &key->estimated_gpu, &key->collector, &key->policy.autocast_dtype}) {
    cutter->Cut(text);
  }
  for (std::string& model : key->models) cutter->Cut(&model);
}

void CutNames(Cutter* cutter, Run* run) {
  CutRunKey(cutter, &run->key);
  const auto cut = [cutter](std::string* text) { cutter->Cut(text); };
  for (DeviceInfo& device : run->devices) trace::ForEachText(&device, cut);
  for (ProcessInfo& process : run->process_list) trace::ForEachText(&process, cut);
  Rebuild(&run->models, [&](std::string* name, ModelInfo* model) {
    cutter->Cut(name);
    cutter->Cut(&model->class_name);
  });
  Rebuild(&run->layers, [&](LayerKey* key, LayerInfo* layer) {
    cutter->Cut(key);
    trace::ForEachText(layer, cut);
    cut(&layer->parent_path);
  });
  Rebuild(&run->launches, [&](LaunchKey* key, LaunchStats* stats) {
    cutter->Cut(&key->layer);
    for (std::string* text : {&key->op, &key->kernel, &key->signature, &key->node}) cutter->Cut(text);
    if (stats->line && (cutter->TooLong(stats->line->file) || cutter->TooLong(stats->line->function))) {
      auto line = std::make_shared<SourceLineInfo>(*stats->line);
      cutter->Cut(&line->file);
      cutter->Cut(&line->function);
      stats->line = std::move(line);
    }
    if (!stats->stack) return;
    const NativeStackInfo& frames = *stats->stack;
    if (std::none_of(frames.begin(), frames.end(), [&](const NativeFrameInfo& frame) {
          return cutter->TooLong(frame.module) || cutter->TooLong(frame.function);
        })) {
      return;
    }
    auto stack = std::make_shared<NativeStackInfo>(frames);
    for (NativeFrameInfo& frame : *stack) {
      cutter->Cut(&frame.module);
      cutter->Cut(&frame.function);
    }
    stats->stack = std::move(stack);
  });
  std::map<MemoryPlace, uint64_t> parts;
  for (const auto& [place, bytes] : run->memory_peak.parts) {
    MemoryPlace cut = place;
    cutter->Cut(&cut.layer);
    parts[std::move(cut)] += bytes;
  }
  run->memory_peak.parts = std::move(parts);
  cutter->Cut(&run->memory_peak.refused_in.layer);
  for (auto& [device, timeline] : run->timelines) {
    for (LaunchKey& key : timeline.launched) {
      cutter->Cut(&key.layer);
      for (std::string* text : {&key.op, &key.kernel, &key.signature, &key.node}) cutter->Cut(text);
    }
  }
  const auto cut_list = [&](auto* list) {
    for (auto record : std::exchange(*list, {})) {
      trace::ForEachText(&record, cut);
      list->Add(std::move(record));
    }
  };
  trace::ForEachList(cut_list, &run->kept);
}

// value * times / by, in 128 bits or as near as they allow.
Uint128 Scaled(Uint128 value, uint64_t times, uint64_t by) {
  const Uint128 most = ~Uint128{0};
  return times == 0 || value <= most / times ? value * times / by : value / by * times;
}

// The statistics of a key as if every launch had been sampled with the mean of those that were. Keys that were
// sampled in different shares can then be added up, and the result is the sum of their estimates. shared_sums keeps
// the number of samples, and also says that the keys cannot be told apart any more.
LaunchStats ForAllLaunches(const LaunchStats& stats) {
  LaunchStats all = stats;
  for (auto& [name, stat] : all.metrics) {
    if (stat.n == 0 || stat.n == stats.launches) continue;
    stat.shared_sums = stat.independent();
    stat.sum = Scaled(stat.sum, stats.launches, stat.n);
    stat.sum_squares = Scaled(stat.sum_squares, stats.launches, stat.n);
    stat.n = stats.launches;
  }
  return all;
}

// Adds the keys with the least time up. How many they were, or 0.
uint64_t LimitKeys(uint64_t most, Run* run) {
  if (most == 0 || run->launches.size() <= most) return 0;
  using Entry = std::map<LaunchKey, LaunchStats>::iterator;
  std::vector<std::pair<double, Entry>> entries;
  for (auto it = run->launches.begin(); it != run->launches.end(); ++it) {
    const auto time = it->second.metrics.find("rf.time");
    const double mean = time == it->second.metrics.end() ? 0 : time->second.mean();
    entries.emplace_back(mean * static_cast<double>(it->second.launches), it);
  }
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::map<Phase, LaunchStats> rest;
  for (size_t i = most; i < entries.size(); ++i) {
    const Entry entry = entries[i].second;
    rest[entry->first.phase].Merge(ForAllLaunches(entry->second));
    run->launches.erase(entry);
  }
  for (auto& [phase, stats] : rest) {
    run->launches[{.phase = phase, .op = "(beyond the limit)", .kernel = "(beyond the limit)"}].Merge(stats);
  }
  return entries.size() - most;
}

void Say(const std::string& text, Run* run) {
  run->kept.diagnostic.Add({.severity = Severity::kWarning, .id = "limit", .text = text});
}

uint64_t Launches(const Run& run) {
  uint64_t launches = 0;
  for (const auto& [key, stats] : run.launches) launches += stats.launches;
  return launches;
}

}  // namespace

std::vector<std::string> LimitProfile(const Limits& limits, Profile* profile) {
  std::vector<std::string> said;
  std::vector<std::string> of_all;  // what every run that stays says
  const size_t runs = profile->runs.size();
  if (limits.runs > 0 && runs > limits.runs) {
    std::vector<std::pair<uint64_t, std::map<RunKey, Run>::iterator>> order;
    for (auto it = profile->runs.begin(); it != profile->runs.end(); ++it)
      order.emplace_back(Launches(it->second), it);
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (size_t i = limits.runs; i < order.size(); ++i) profile->runs.erase(order[i].second);
    of_all.push_back(absl::StrCat("only the ", limits.runs, " of ", runs,
                                  " runs with the most launches are shown; --limit runs=0 shows all"));
  }
  Cutter cutter(limits.name);
  std::map<RunKey, Run> limited;
  for (auto it = profile->runs.begin(); it != profile->runs.end();) {
    auto node = profile->runs.extract(it++);
    Run& run = node.mapped();
    CutNames(&cutter, &run);
    node.key() = run.key;
    if (const uint64_t keys = LimitKeys(limits.rows, &run); keys > 0) {
      const std::string text = absl::StrCat(
          keys, " launch keys with the least time are added up as \"(beyond the limit)\"; --limit rows=0 keeps all");
      Say(text, &run);
      said.push_back(text);
    }
    limited.insert(std::move(node));
  }
  profile->runs = std::move(limited);
  if (cutter.cut() > 0) {
    of_all.push_back(absl::StrCat(cutter.cut(), " texts of more than ", limits.name,
                                  " bytes are cut in their middle; --limit name=0 keeps them"));
  }
  for (const std::string& text : of_all) {
    for (auto& [key, run] : profile->runs) Say(text, &run);
  }
  said.insert(said.begin(), of_all.begin(), of_all.end());
  return said;
}

}  // namespace rfinject::cli
