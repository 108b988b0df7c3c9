#include "cli/trace/encode.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cli/trace/decode.h"
#include "cli/trace/step_spans.h"
#include "proto/rfinject/v1/trace.schema.h"
#include "proto/wire/encoder.h"
#include "proto/wire/framing.h"

namespace rfinject::cli {
namespace {

constexpr size_t kFrameTarget = 1u << 20;

// Writes a struct as the message that `writer` has begun.
template <typename Struct, typename Writer>
void Put(const Struct& message, Writer writer) {
  Write(message, &writer);
}

// The keys of a run's launches have consecutive ids from `first_key` on, in the order of the map.

// A kernel whose key the run has no launches of has none, which says that it is not known.
std::vector<trace::StepTimeline> TimelinesOf(const Run& run, uint32_t first_key) {
  std::vector<trace::StepTimeline> timelines;
  if (run.timelines.empty()) return timelines;
  std::map<LaunchKey, uint32_t> ids;
  for (const auto& [launch, stats] : run.launches) ids.emplace(launch, first_key + ids.size());
  for (const auto& [device, info] : run.timelines) {
    trace::StepTimeline& timeline = timelines.emplace_back(info);
    for (uint32_t& key : timeline.key) {
      const auto id = ids.find(info.launched[key]);
      key = id != ids.end() ? id->second : 0;
    }
  }
  return timelines;
}

// Calls add(trace::SampledStep) for each step that is known of the metric called `name`, whose id is `metric`.
template <typename Add>
void ForEachSampledStep(const Run& run, const std::string& name, uint32_t metric, uint32_t first_key,
                        const Add& add) {
  // How far the series of one key has been written.
  struct Cursor {
    uint32_t key;
    const std::vector<StepSum>* sums;
    size_t next;
  };
  std::vector<Cursor> cursors;
  uint32_t key = first_key;
  for (const auto& [launch, stats] : run.launches) {
    const auto sums = stats.step_sums.find(name);
    if (sums != stats.step_sums.end()) cursors.push_back({key, &sums->second, 0});
    ++key;
  }
  std::vector<uint32_t> last_keys;
  for (const auto& [step, processes] : run.sampled_steps.at(name)) {
    trace::SampledStep sampled{
        .step = step, .metric = metric, .processes = processes, .key = {}, .change = {}, .sum = {}};
    std::vector<uint32_t> keys;
    for (Cursor& at : cursors) {
      if (at.next >= at.sums->size() || (*at.sums)[at.next].step != step) continue;
      keys.push_back(at.key);
      sampled.sum.push_back((*at.sums)[at.next++].sum);
    }
    if (!keys.empty() && keys != last_keys) {
      uint32_t before = 0;
      for (const uint32_t id : keys) sampled.key.push_back(id - std::exchange(before, id));
      last_keys = std::move(keys);
    }
    add(sampled);
  }
}

class ProfileWriter {
 public:
  explicit ProfileWriter(const ByteSink& sink) : sink_(sink) { frame_.Clear(wire::kFrameHeaderSize); }

  absl::Status Write(const Profile& profile) {
    uint8_t header[wire::kFileHeaderSize];
    wire::EncodeFileHeader(header);
    status_ = sink_(header, sizeof header);
    for (const std::string& id : profile.trace_ids) {
      AddRecord([&](trace::ChunkWriter& chunk) { chunk.add_trace_id(id); });
    }
    for (const auto& [name, info] : profile.metrics) {
      const trace::Metric metric{.name = name, .unit = info.unit, .scale = info.scale == 1 ? 0 : info.scale};
      const uint32_t id = metrics_.try_emplace(name, metrics_.size() + 1).first->second;
      Add(metric, id);
    }
    uint32_t run_id = 0;
    for (const auto& [key, run] : profile.runs) WriteRun(run, ++run_id);
    AddRecord([&](trace::ChunkWriter& chunk) { chunk.begin_end().set_reason("merged"); });
    if (frame_.size() > wire::kFrameHeaderSize) Flush();
    return status_;
  }

 private:
  // Adds the one record that `fill` writes to those before it in the frame.
  template <typename Fill>
  void AddRecord(Fill fill) {
    const size_t before = frame_.size();
    trace::ChunkWriter chunk(&frame_);
    fill(chunk);
    if ((!frame_.ok() || frame_.size() - before > kMaxRecordSize) && status_.ok()) {
      status_ = absl::ResourceExhaustedError("a record is too large for a trace");
    }
    if (frame_.size() >= kFrameTarget || !frame_.ok()) Flush();
  }

  // Adds a record under its id, or as one of the run `id`.
  template <typename Record>
  void Add(const Record& record, uint32_t id) {
    AddRecord([&](trace::ChunkWriter& chunk) { trace::WriteRecord(record, id, &chunk); });
  }

  void Flush() {
    if (status_.ok()) {
      const size_t length = frame_.size() - wire::kFrameHeaderSize;
      uint8_t header[wire::kFrameHeaderSize];
      wire::EncodeFrameHeader(frame_.data() + wire::kFrameHeaderSize, static_cast<uint32_t>(length), sequence_++,
                              header);
      std::copy(std::begin(header), std::end(header), frame_.data());
      status_ = sink_(frame_.data(), frame_.size());
    }
    frame_.Clear(wire::kFrameHeaderSize);
  }

  uint32_t Name(const std::string& text) {
    if (text.empty()) return 0;
    const auto [it, inserted] = names_.try_emplace(text, static_cast<uint32_t>(names_.size() + 1));
    if (inserted) Add(trace::Name{.text = text}, it->second);
    return it->second;
  }

  // Adds one Run record with what `fill` puts into it. Facts of one Run come in several records, since 64 processes
  // with long command lines would not fit in one.
  template <typename Fill>
  void AddFacts(uint32_t id, Fill fill) {
    AddRecord([&](trace::ChunkWriter& chunk) {
      trace::RunWriter run = chunk.begin_run();
      run.set_id(id);
      fill(run);
    });
  }
  template <typename Fill>
  void AddMerged(uint32_t id, Fill fill) {
    AddFacts(id, [&](trace::RunWriter& run) {
      trace::MergedWriter merged = run.begin_merged();
      fill(merged);
    });
  }

  void WriteRun(const Run& run, uint32_t id) {
    WriteFacts(run, id);
    WriteLists(run, id);
    WriteModels(run, id);
    const uint32_t first_key = next_key_;
    WriteLaunches(run, id);
    WriteMemory(run, id);
    for (const trace::StepTimeline& timeline : TimelinesOf(run, first_key)) Add(timeline, id);
    for (const auto& [name, steps] : run.sampled_steps) {
      const auto metric = metrics_.find(name);
      if (metric == metrics_.end()) continue;
      ForEachSampledStep(run, name, metric->second, first_key, [&](const auto& step) { Add(step, id); });
    }
    WriteSums(run, id);
    WriteKept(run, id);
  }

  void WriteFacts(const Run& run, uint32_t id) {
    const RunKey& key = run.key;
    AddFacts(id, [&](trace::RunWriter& record) {
      record.set_source(key.source);
      record.set_tier(static_cast<trace::Tier>(std::max(run.tier, 0)));
      Put(key.policy, record.begin_policy());
      record.set_processes(static_cast<uint32_t>(run.processes));
      record.set_batch_size(key.batch_size);
      record.set_estimated_gpu(key.estimated_gpu);
      record.set_collector(key.collector);
    });
    // Ten thousand ranks are one record of 30 KB.
    constexpr size_t kRanksPerRecord = 65536;
    for (auto rank = run.ranks.begin(); rank != run.ranks.end();) {
      std::vector<uint32_t> ranks;
      while (ranks.size() < kRanksPerRecord && rank != run.ranks.end()) ranks.push_back(*rank++);
      AddFacts(id, [&](trace::RunWriter& record) { record.set_rank(ranks); });
    }
    AddMerged(id, [&](trace::MergedWriter& merged) {
      merged.set_gpu(key.gpu);
      for (const std::string& root : key.models) merged.add_root(root);
      merged.set_unfinished(run.unfinished);
      merged.set_parameters(key.parameters);
      merged.set_training(key.training);
    });
  }

  void WriteLists(const Run& run, uint32_t id) {
    for (const std::string& version : run.collector_versions) {
      AddMerged(id, [&](trace::MergedWriter& merged) { merged.add_collector_version(version); });
    }
    for (const ProcessInfo& process : run.process_list) {
      AddMerged(id, [&](trace::MergedWriter& merged) { Put(process, merged.begin_process()); });
    }
    for (const DeviceInfo& device : run.devices) {
      AddMerged(id, [&](trace::MergedWriter& merged) { Put(device, merged.begin_device()); });
    }
    for (const PmWindowInfo& window : run.pm_windows) {
      AddMerged(id, [&](trace::MergedWriter& merged) { Put(window, merged.begin_pm_window()); });
    }
    constexpr size_t kSpansPerRecord = 1024;  // 60 KB
    for (auto span = run.step_spans.begin(); span != run.step_spans.end();) {
      AddMerged(id, [&](trace::MergedWriter& merged) {
        for (size_t i = 0; i < kSpansPerRecord && span != run.step_spans.end(); ++i) {
          Put(MessageOf(*span++), merged.begin_step_span());
        }
      });
    }
  }

  void WriteModels(const Run& run, uint32_t id) {
    models_.clear();
    layers_.clear();
    std::vector<uint32_t> ids;
    for (const auto& [name, info] : run.models) {
      ids.push_back(next_model_++);
      models_.emplace(name, ids.back());
      Add(info, ids.back());
    }
    // The record that says to which run the models belong comes before the models' layers.
    AddMerged(id, [&](trace::MergedWriter& merged) { merged.set_model(ids); });
    for (const auto& [key, layer] : run.layers) WriteLayer(run, key, layer);
  }

  // Parents first, as ids must be defined before they are used. Merging can make two layers each other's parent (two
  // processes that share a module under two names), hence the mark before the descent.
  uint32_t WriteLayer(const Run& run, const LayerKey& key, const LayerInfo& info, unsigned depth = 0) {
    const auto [it, inserted] = layers_.try_emplace(key, 0);
    if (!inserted) return it->second;
    trace::Layer layer = info;
    constexpr unsigned kMaxDepth = 256;
    const LayerKey parent_key{key.model, info.parent_path};
    if (parent_key != key && depth < kMaxDepth) {
      const auto above = run.layers.find(parent_key);
      if (above != run.layers.end()) layer.parent = WriteLayer(run, parent_key, above->second, depth + 1);
    }
    it->second = next_layer_++;
    const auto model = models_.find(key.model);
    layer.model = model == models_.end() ? 0 : model->second;
    layer.path = key.path;
    Add(layer, it->second);
    return it->second;
  }

  // The id of a layer of the run that is being written; 0 where it has none.
  uint32_t LayerId(const LayerKey& key) const {
    const auto layer = layers_.find(key);
    return layer == layers_.end() ? 0 : layer->second;
  }

  uint32_t ModuleId(const NativeFrameInfo& frame) {
    const auto [it, inserted] =
        native_modules_.try_emplace({frame.module, frame.build_id}, native_modules_.size() + 1);
    if (inserted) Add(trace::NativeModule{.path = frame.module, .build_id = frame.build_id}, it->second);
    return it->second;
  }

  uint32_t StackId(const NativeStackInfo& frames) {
    const auto [it, inserted] = native_stacks_.try_emplace(frames, native_stacks_.size() + 1);
    if (!inserted) return it->second;
    trace::NativeStack stack;
    for (const NativeFrameInfo& frame : frames) {
      stack.module.push_back(ModuleId(frame));
      stack.offset.push_back(frame.offset);
      stack.function.push_back(Name(frame.function));
    }
    Add(stack, it->second);
    return it->second;
  }

  uint32_t LineId(const SourceLineInfo& info) {
    const auto [it, inserted] = lines_.try_emplace(info, lines_.size() + 1);
    if (!inserted) return it->second;
    const uint32_t file = Name(info.file), function = Name(info.function);
    Add(trace::SourceLine{.file = file, .line = info.line, .function = function}, it->second);
    return it->second;
  }

  void WriteLaunches(const Run& run, uint32_t run_id) {
    for (const auto& [launch, sums] : run.launches) {
      trace::LaunchKey key;
      key.kernel = Name(launch.kernel);
      key.op = Name(launch.op);
      key.signature = Name(launch.signature);
      key.node = Name(launch.node);
      key.stack = sums.stack ? StackId(*sums.stack) : 0;
      key.line = sums.line ? LineId(*sums.line) : 0;
      key.layer = LayerId(launch.layer);
      const uint32_t id = next_key_++;
      key.phase = launch.phase;
      key.grid = launch.grid;
      key.block = launch.block;
      key.dynamic_shared_bytes = launch.dynamic_shared_bytes;
      key.device = launch.device;
      key.run = run_id;
      Add(key, id);
      AddRecord([&, &sums = sums](trace::ChunkWriter& chunk) {
        trace::KeyStatsWriter stats = chunk.begin_stats();
        stats.set_key(id);
        stats.set_launches(sums.launches);
        for (const auto& [name, stat] : sums.metrics) {
          const auto metric = metrics_.find(name);
          if (metric == metrics_.end()) continue;
          trace::MetricStatsWriter one = stats.begin_metric();
          one.set_metric(metric->second);
          stat.Write(&one);
        }
      });
    }
  }

  void WriteMemory(const Run& run, uint32_t run_id) {
    if (run.memory_peak == MemoryPeakInfo{}) return;
    trace::MemoryPeak peak = run.memory_peak;
    for (const auto& [place, bytes] : run.memory_peak.parts) {
      peak.part.push_back({.layer = LayerId(place.layer), .phase = place.phase, .bytes = bytes});
    }
    peak.refused_layer = LayerId(run.memory_peak.refused_in.layer);
    peak.refused_phase = run.memory_peak.refused_in.phase;
    Add(peak, run_id);
  }

  void WriteSums(const Run& run, uint32_t run_id) {
    StepSums sums = run.steps;
    sums.run = run_id;
    AddRecord([&](trace::ChunkWriter& chunk) {
      trace::StepStatsWriter stats = chunk.begin_step_stats();
      trace::RunStepsWriter writer = stats.begin_run();
      trace::Write(sums, &writer, /*merged=*/true);
    });
    for (const auto& [rank, known] : run.step_times) {
      trace::RankSteps times = known;
      times.run = run_id;
      times.rank = rank;
      AddRecord([&](trace::ChunkWriter& chunk) {
        trace::StepStatsWriter stats = chunk.begin_step_stats();
        trace::RankStepsWriter writer = stats.begin_rank();
        trace::Write(times, &writer, /*merged=*/true);
      });
    }
  }

  void WriteKept(const Run& run, uint32_t run_id) {
    const auto add = [&](const auto* list) {
      for (const auto& record : *list) Add(record, run_id);
    };
    trace::ForEachList(add, &run.kept);
  }

  const ByteSink& sink_;
  absl::Status status_;
  wire::Encoder frame_{kFrameTarget + 2 * kMaxRecordSize};  // with room for its header in front
  uint32_t sequence_ = 0;
  uint32_t next_model_ = 1, next_layer_ = 1, next_key_ = 1;
  absl::flat_hash_map<std::string, uint32_t> names_, metrics_;
  // Of the run that is being written.
  absl::flat_hash_map<std::string, uint32_t> models_;
  std::map<LayerKey, uint32_t> layers_;
  std::map<std::pair<std::string, std::string>, uint32_t> native_modules_;
  std::map<NativeStackInfo, uint32_t> native_stacks_;
  std::map<SourceLineInfo, uint32_t> lines_;
};

}  // namespace

absl::Status WriteTrace(const Profile& profile, const ByteSink& sink) { return ProfileWriter(sink).Write(profile); }

}  // namespace rfinject::cli
