#include "cli/trace/encode.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cli/trace/decode.h"
#include "proto/rfinject/v1/trace.pb.h"
#include "proto/wire/framing.h"
#include "proto/wire/step_parts.h"

namespace rfinject::cli {
namespace {

constexpr size_t kFrameTarget = 1u << 20;

class Writer {
 public:
  explicit Writer(const ByteSink& sink) : sink_(sink) {}

  absl::Status Write(const Profile& profile) {
    uint8_t header[wire::kFileHeaderSize];
    wire::EncodeFileHeader(header);
    status_ = sink_(header, sizeof header);
    for (const std::string& id : profile.trace_ids) {
      chunk_.add_trace_id(id);
      Written();
    }
    for (const auto& [name, info] : profile.metrics) {
      v1::Metric& metric = *chunk_.add_metric();
      metric.set_id(static_cast<uint32_t>(metrics_.size() + 1));
      metric.set_name(name);
      metric.set_unit(info.unit);
      if (info.scale != 1) metric.set_scale(info.scale);
      metrics_.emplace(name, metric.id());
      Written();
    }
    uint32_t run_id = 0;
    for (const auto& [key, run] : profile.runs) WriteRun(run, ++run_id);
    chunk_.mutable_end()->set_reason("merged");
    Written();
    if (frame_.size() > wire::kFrameHeaderSize) Flush();
    return status_;
  }

 private:
  // The one record that chunk_ holds is complete: it follows those before it in the frame.
  void Written() {
    const size_t before = frame_.size();
    chunk_.AppendToString(&frame_);
    chunk_.Clear();
    if (frame_.size() - before > kMaxRecordSize && status_.ok()) {
      status_ = absl::ResourceExhaustedError("a record is too large for a trace");
    }
    if (frame_.size() >= kFrameTarget) Flush();
  }

  void Flush() {
    if (status_.ok()) {
      const size_t length = frame_.size() - wire::kFrameHeaderSize;
      uint8_t header[wire::kFrameHeaderSize];
      wire::EncodeFrameHeader(frame_.data() + wire::kFrameHeaderSize, static_cast<uint32_t>(length), sequence_++,
                              header);
      std::copy(std::begin(header), std::end(header), frame_.begin());
      status_ = sink_(frame_.data(), frame_.size());
    }
    frame_.resize(wire::kFrameHeaderSize);
  }

  uint32_t Name(const std::string& text) {
    if (text.empty()) return 0;
    const auto [it, inserted] = names_.try_emplace(text, static_cast<uint32_t>(names_.size() + 1));
    const uint32_t id = it->second;
    if (inserted) {
      v1::Name& name = *chunk_.add_name();
      name.set_id(id);
      name.set_text(text);
      Written();
    }
    return id;
  }

  // One Run record with what `fill` puts into it. Facts of one Run come in several records, since 64 processes with
  // long command lines would not fit in one.
  template <typename Fill>
  void RunRecord(uint32_t id, Fill fill) {
    v1::Run& run = *chunk_.add_run();
    run.set_id(id);
    fill(run);
    Written();
  }
  template <typename Fill>
  void MergedRecord(uint32_t id, Fill fill) {
    RunRecord(id, [&](v1::Run& run) { fill(*run.mutable_merged()); });
  }

  void WriteRun(const Run& run, uint32_t id) {
    WriteFacts(run, id);
    WriteModels(run, id);
    const uint32_t first_key = next_key_;
    WriteLaunches(run, id);
    WriteMemory(run, id);
    WriteSampledSteps(run, id, first_key);
    WriteSums(run, id);
  }

  void WriteFacts(const Run& run, uint32_t id) {
    const RunKey& key = run.key;
    RunRecord(id, [&](v1::Run& record) {
      record.set_source(static_cast<v1::Source>(key.source));
      record.set_tier(static_cast<v1::Tier>(std::max(run.tier, 0)));
      trace::ToMessage(key.policy, record.mutable_policy());
      record.set_processes(run.processes);
      record.set_batch_size(key.batch_size);
      record.set_estimated_gpu(key.estimated_gpu);
      record.set_collector(key.collector);
    });
    // Ten thousand ranks are one record of 30 KB.
    constexpr size_t kRanksPerRecord = 65536;
    for (auto rank = run.ranks.begin(); rank != run.ranks.end();) {
      RunRecord(id, [&](v1::Run& record) {
        for (size_t i = 0; i < kRanksPerRecord && rank != run.ranks.end(); ++i) record.add_rank(*rank++);
      });
    }
    MergedRecord(id, [&](v1::Merged& merged) {
      merged.set_gpu(key.gpu);
      for (const std::string& root : key.models) merged.add_root(root);
      merged.set_unfinished(run.unfinished);
      merged.set_parameters(key.parameters);
      merged.set_training(key.training);
    });
    for (const std::string& version : run.collector_versions) {
      MergedRecord(id, [&](v1::Merged& merged) { merged.add_collector_version(version); });
    }
    for (const ProcessInfo& process : run.process_list) {
      MergedRecord(id, [&](v1::Merged& merged) { trace::ToMessage(process, merged.add_process()); });
    }
    for (const DeviceInfo& device : run.devices) {
      MergedRecord(id, [&](v1::Merged& merged) { trace::ToMessage(device, merged.add_device()); });
    }
    for (const PmWindowInfo& window : run.pm_windows) {
      MergedRecord(id, [&](v1::Merged& merged) { trace::ToMessage(window, merged.add_pm_window()); });
    }
    constexpr size_t kSpansPerRecord = 1024;  // 60 KB
    for (auto span = run.step_spans.begin(); span != run.step_spans.end();) {
      MergedRecord(id, [&](v1::Merged& merged) {
        for (size_t i = 0; i < kSpansPerRecord && span != run.step_spans.end(); ++i) {
          FillSpan(*span++, merged.add_step_span());
        }
      });
    }
  }

  void WriteModels(const Run& run, uint32_t id) {
    models_.clear();
    layers_.clear();
    for (const auto& [name, info] : run.models) {
      v1::Model& model = *chunk_.add_model();
      model.set_id(next_model_);
      model.set_class_name(info.class_name);
      model.set_parameters(info.parameters);
      model.set_parameter_bytes(info.parameter_bytes);
      model.set_trainable_parameters(info.trainable_parameters);
      models_.emplace(name, next_model_++);
      Written();
    }
    // The record that says to which run the models belong comes before the models' layers.
    MergedRecord(id, [&](v1::Merged& merged) {
      for (const auto& [name, model] : run.models) merged.add_model(models_.at(name));
    });
    for (const auto& [key, layer] : run.layers) WriteLayer(run, key, layer);
  }

  // Parents first, as ids must be defined before they are used. Merging can make two layers each other's parent (two
  // processes that share a module under two names), hence the mark before the descent.
  uint32_t WriteLayer(const Run& run, const LayerKey& key, const LayerInfo& info, unsigned depth = 0) {
    const auto [it, inserted] = layers_.try_emplace(key, 0);
    if (!inserted) return it->second;
    uint32_t parent = 0;
    constexpr unsigned kMaxDepth = 256;
    const LayerKey parent_key{key.model, info.parent};
    if (parent_key != key && depth < kMaxDepth) {
      const auto above = run.layers.find(parent_key);
      if (above != run.layers.end()) parent = WriteLayer(run, parent_key, above->second, depth + 1);
    }
    const uint32_t id = it->second = next_layer_++;
    const auto model = models_.find(key.model);
    v1::Layer& layer = *chunk_.add_layer();
    layer.set_id(id);
    layer.set_model(model == models_.end() ? 0 : model->second);
    layer.set_path(key.path);
    layer.set_class_name(info.class_name);
    layer.set_parameters(info.parameters);
    layer.set_parameter_bytes(info.parameter_bytes);
    layer.set_input_shape(info.input_shape);
    layer.set_output_shape(info.output_shape);
    layer.set_parent(parent);
    layer.set_training(info.training);
    layer.set_order(info.order);
    Written();
    return id;
  }

  static void FillStat(const Stat& stat, v1::MetricStats* message) {
    message->set_n(stat.n);
    Stat same = Stat::Same(stat.min, stat.n);
    same.shared_sums = stat.shared_sums;
    if (stat.n != 0 && stat == same) {
      message->set_min(stat.min);
      message->set_shared_sums(stat.shared_sums);
      return;
    }
    message->set_sum(static_cast<uint64_t>(stat.sum));
    message->set_sum_high(static_cast<uint64_t>(stat.sum >> 64));
    message->set_sum_squares(static_cast<uint64_t>(stat.sum_squares));
    message->set_sum_squares_high(static_cast<uint64_t>(stat.sum_squares >> 64));
    if (stat.n == 0) return;
    message->set_min(stat.min);
    message->set_max(stat.max);
    message->set_shared_sums(stat.shared_sums);
  }

  static void FillSpan(const StepSpan& span, v1::StepSpan* message) {
    message->set_index(span.index);
    message->set_start_unix_ns(span.start_unix_ns);
    message->set_duration_ns(span.duration_ns);
    message->set_data_wait_ns(span.data_wait_ns.value_or(0));
    message->set_gpu_wait_ns(span.gpu_wait_ns.value_or(0));
    message->set_gpu_busy_ns(span.busy_ns.value_or(0));
    message->set_watched((span.data_wait_ns ? wire::kWatchedDataWaits : 0) |
                         (span.gpu_wait_ns ? wire::kWatchedGpuWaits : 0) |
                         (span.busy_ns ? wire::kWatchedGpuBusy : 0));
  }

  static void FillSpread(const Spread& spread, v1::Spread* message) {
    message->set_sum(static_cast<uint64_t>(spread.sum()));
    message->set_sum_high(static_cast<uint64_t>(spread.sum() >> 64));
    for (const auto& [code, count] : spread.counts()) {
      message->add_code(code);
      message->add_count(count);
    }
  }

  static void FillDimensions(const std::array<uint32_t, 3>& from, google::protobuf::RepeatedField<uint32_t>* into) {
    if (from != std::array<uint32_t, 3>{}) into->Add(from.begin(), from.end());
  }

  uint32_t ModuleId(const NativeFrameInfo& frame) {
    const auto [it, inserted] =
        native_modules_.try_emplace({frame.module, frame.build_id}, native_modules_.size() + 1);
    if (inserted) {
      v1::NativeModule& module = *chunk_.add_native_module();
      module.set_id(it->second);
      module.set_path(frame.module);
      module.set_build_id(frame.build_id);
      Written();
    }
    return it->second;
  }

  uint32_t StackId(const NativeStackInfo& frames) {
    const auto [it, inserted] = native_stacks_.try_emplace(frames, native_stacks_.size() + 1);
    if (!inserted) return it->second;
    v1::NativeStack stack;
    stack.set_id(it->second);
    for (const NativeFrameInfo& frame : frames) {
      stack.add_module(ModuleId(frame));
      stack.add_offset(frame.offset);
      stack.add_function(Name(frame.function));
    }
    *chunk_.add_native_stack() = std::move(stack);
    Written();
    return it->second;
  }

  uint32_t LineId(const SourceLineInfo& line) {
    const auto [it, inserted] = lines_.try_emplace(line, lines_.size() + 1);
    if (!inserted) return it->second;
    const uint32_t file = Name(line.file), function = Name(line.function);
    v1::SourceLine& message = *chunk_.add_source_line();
    message.set_id(it->second);
    message.set_file(file);
    message.set_line(line.line);
    message.set_function(function);
    Written();
    return it->second;
  }

  void WriteLaunches(const Run& run, uint32_t run_id) {
    for (const auto& [launch, sums] : run.launches) {
      const uint32_t kernel = Name(launch.kernel), op = Name(launch.op), signature = Name(launch.signature),
                     node = Name(launch.node);
      const uint32_t stack = sums.stack ? StackId(*sums.stack) : 0;
      const uint32_t line = sums.line ? LineId(*sums.line) : 0;
      const auto layer = layers_.find(launch.layer);
      const uint32_t id = next_key_++;
      v1::LaunchKey& key = *chunk_.add_key();
      key.set_id(id);
      key.set_kernel(kernel);
      key.set_op(op);
      key.set_layer(layer == layers_.end() ? 0 : layer->second);
      key.set_phase(static_cast<v1::Phase>(launch.phase));
      key.set_signature(signature);
      FillDimensions(launch.grid, key.mutable_grid());
      FillDimensions(launch.block, key.mutable_block());
      key.set_dynamic_shared_bytes(launch.dynamic_shared_bytes);
      key.set_device(launch.device);
      key.set_run(run_id);
      key.set_node(node);
      key.set_stack(stack);
      key.set_line(line);
      Written();
      v1::KeyStats& stats = *chunk_.add_stats();
      stats.set_key(id);
      stats.set_launches(sums.launches);
      for (const auto& [name, stat] : sums.metrics) {
        const auto metric = metrics_.find(name);
        if (metric == metrics_.end()) continue;
        v1::MetricStats& one = *stats.add_metric();
        one.set_metric(metric->second);
        FillStat(stat, &one);
      }
      Written();
    }
  }

  void WriteMemory(const Run& run, uint32_t run_id) {
    const MemoryPeakInfo& peak = run.memory_peak;
    if (peak == MemoryPeakInfo{}) return;
    v1::MemoryPeak& message = *chunk_.add_memory_peak();
    message.set_run(run_id);
    message.set_device(peak.device);
    message.set_step(peak.step);
    message.set_allocated_bytes(peak.allocated_bytes);
    message.set_reserved_bytes(peak.reserved_bytes);
    const auto layer_id = [this](const LayerKey& key) {
      const auto layer = layers_.find(key);
      return layer == layers_.end() ? 0 : layer->second;
    };
    message.set_refused_bytes(peak.refused_bytes);
    message.set_refused_layer(layer_id(peak.refused_in.layer));
    message.set_refused_phase(static_cast<v1::Phase>(peak.refused_in.phase));
    for (const auto& [place, bytes] : peak.parts) {
      v1::MemoryPart& part = *message.add_part();
      part.set_layer(layer_id(place.layer));
      part.set_phase(static_cast<v1::Phase>(place.phase));
      part.set_bytes(bytes);
    }
    Written();
  }

  // The keys of the run's launches have consecutive ids from `first_key` on, in the order of the map.
  void WriteSampledSteps(const Run& run, uint32_t run_id, uint32_t first_key) {
    for (const auto& [name, steps] : run.sampled_steps) {
      const auto metric = metrics_.find(name);
      if (metric == metrics_.end()) continue;
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
      for (const auto& [step, processes] : steps) {
        v1::SampledStep& message = *chunk_.add_sampled_step();
        message.set_run(run_id);
        message.set_step(step);
        message.set_metric(metric->second);
        if (processes != 1) message.set_processes(processes);
        std::vector<uint32_t> keys;
        for (Cursor& at : cursors) {
          if (at.next >= at.sums->size() || (*at.sums)[at.next].step != step) continue;
          keys.push_back(at.key);
          message.add_sum((*at.sums)[at.next++].sum);
        }
        if (!keys.empty() && keys != last_keys) {
          uint32_t before = 0;
          for (const uint32_t id : keys) message.add_key(id - std::exchange(before, id));
          last_keys = std::move(keys);
        }
        Written();
      }
    }
  }

  void WriteSums(const Run& run, uint32_t run_id) {
    v1::RunSteps& steps = *chunk_.mutable_step_stats()->add_run();
    steps.set_run(run_id);
    steps.set_steps(run.steps.steps);
    steps.set_samples(run.steps.samples);
    steps.set_iterations(run.steps.iterations);
    steps.set_calls(run.steps.calls);
    steps.set_armed(run.steps.armed);
    steps.set_memory_peak_bytes(run.steps.memory_peak_bytes);
    steps.set_drifting(run.steps.drifting);
    steps.set_two_speeds(run.steps.two_speeds);
    steps.set_slow(run.steps.slow);
    steps.set_slow_extra_ns(run.steps.slow_extra_ns);
    FillStat(run.steps.duration_ns, steps.mutable_duration_ns());
    if (run.steps.pm_dram_bytes.n > 0) FillStat(run.steps.pm_dram_bytes, steps.mutable_pm_dram_bytes());
    if (run.steps.pm_duration_ns.n > 0) FillStat(run.steps.pm_duration_ns, steps.mutable_pm_duration_ns());
    if (run.steps.pm_tensor_active_ns.n > 0) {
      FillStat(run.steps.pm_tensor_active_ns, steps.mutable_pm_tensor_active_ns());
    }
    Written();
    for (const auto& [rank, times] : run.step_times) {
      v1::RankSteps& one = *chunk_.mutable_step_stats()->add_rank();
      one.set_run(run_id);
      one.set_rank(rank);
      FillSpread(times.wall_ns, one.mutable_wall_ns());
      FillSpread(times.data_wait_ns, one.mutable_data_wait_ns());
      FillSpread(times.gpu_wait_ns, one.mutable_gpu_wait_ns());
      FillSpread(times.gpu_busy_ns, one.mutable_gpu_busy_ns());
      FillSpread(times.own_ns, one.mutable_own_ns());
      FillSpread(times.launch_gap_ns, one.mutable_launch_gap_ns());
      Written();
    }
    for (const auto& [known, count] : run.diagnostics) {
      v1::Diagnostic& diagnostic = *chunk_.add_diagnostic();
      diagnostic.set_severity(static_cast<v1::Severity>(std::max(known.severity, 0)));
      diagnostic.set_id(known.id);
      diagnostic.set_text(known.text);
      diagnostic.set_remedy(known.remedy);
      diagnostic.set_run(run_id);
      diagnostic.set_count(count);
      Written();
    }
    for (const auto& [what, count] : run.drops) {
      v1::Drop& drop = *chunk_.add_drop();
      drop.set_what(what);
      drop.set_count(count);
      drop.set_run(run_id);
      Written();
    }
  }

  const ByteSink& sink_;
  absl::Status status_;
  v1::Chunk chunk_;  // with the record that is being made
  std::string frame_ = std::string(wire::kFrameHeaderSize, '\0');
  uint32_t sequence_ = 0;
  uint32_t next_model_ = 1, next_layer_ = 1, next_key_ = 1;
  absl::flat_hash_map<std::string, uint32_t> names_, metrics_;
  absl::flat_hash_map<std::string, uint32_t> models_;  // of the run that is being written
  std::map<LayerKey, uint32_t> layers_;                // likewise
  std::map<std::pair<std::string, std::string>, uint32_t> native_modules_;
  std::map<NativeStackInfo, uint32_t> native_stacks_;
  std::map<SourceLineInfo, uint32_t> lines_;
};

}  // namespace

absl::Status WriteTrace(const Profile& profile, const ByteSink& sink) { return Writer(sink).Write(profile); }

}  // namespace rfinject::cli
