#include "cli/profile/trace_writer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "proto/wire/encoder.h"
#include "proto/wire/framing.h"

namespace rfinject::cli {
namespace {

constexpr size_t kFrameTarget = 1u << 20;

class Writer {
 public:
  explicit Writer(const ByteSink& sink) : sink_(sink), out_(wire::kMaxPayloadSize + wire::kFrameHeaderSize) {}

  std::string Write(const Profile& profile) {
    uint8_t header[wire::kFileHeaderSize];
    wire::EncodeFileHeader(header);
    good_ = sink_(header, sizeof header);
    out_.Clear(wire::kFrameHeaderSize);
    for (const auto& [name, metric] : profile.metrics) {
      const size_t mark = out_.Begin(5);
      const auto id = static_cast<uint32_t>(metrics_.size() + 1);
      metrics_.emplace(name, id);
      out_.Uint(1, id);
      out_.Text(2, name);
      out_.Text(3, metric.unit);
      out_.Double(4, metric.scale == 1 ? 0 : metric.scale);
      out_.End(mark);
      MaybeFlush();
    }
    uint32_t run_id = 0;
    for (const auto& [key, run] : profile.runs) WriteRun(run, ++run_id);
    const size_t mark = out_.Begin(12);
    out_.Text(1, "merged");
    out_.End(mark);
    Flush();
    if (!encoded_) return "a record is too large for a trace";
    return good_ ? std::string() : "could not be written";
  }

 private:
  void Flush() {
    encoded_ = encoded_ && out_.ok();
    if (!encoded_ || !good_) return;
    const size_t length = out_.size() - wire::kFrameHeaderSize;
    uint8_t header[wire::kFrameHeaderSize];
    wire::EncodeFrameHeader(out_.data() + wire::kFrameHeaderSize, static_cast<uint32_t>(length), sequence_++, header);
    std::copy(std::begin(header), std::end(header), out_.data());
    good_ = sink_(out_.data(), out_.size());
    out_.Clear(wire::kFrameHeaderSize);
  }
  void MaybeFlush() {
    if (out_.size() >= kFrameTarget) Flush();
  }

  uint32_t Name(const std::string& text) {
    if (text.empty()) return 0;
    const auto [it, inserted] = names_.try_emplace(text, static_cast<uint32_t>(names_.size() + 1));
    if (inserted) {
      const size_t mark = out_.Begin(2);
      out_.Uint(1, it->second);
      out_.Text(2, text);
      out_.End(mark);
      MaybeFlush();
    }
    return it->second;
  }

  void WriteProcess(uint32_t field, const ProcessInfo& process) {
    const size_t mark = out_.Begin(field);
    out_.Text(1, process.rfinject_version);
    out_.Text(2, process.host);
    out_.Uint(3, process.pid);
    for (const std::string& argument : process.argv) out_.ForceText(4, argument);
    out_.Int(5, process.start_unix_ns);
    out_.Text(6, process.python_version);
    out_.Text(7, process.python_executable);
    out_.Text(8, process.torch_version);
    out_.Text(9, process.torchvision_version);
    out_.Text(10, process.cuda_version);
    out_.Text(11, process.cudnn_version);
    out_.Text(12, process.driver_version);
    out_.Text(13, process.cupti_version);
    out_.Text(14, process.cupti_path);
    out_.Uint(15, process.rank);
    out_.Uint(16, process.local_rank);
    out_.Uint(17, process.world_size);
    out_.Text(18, process.job_id);
    out_.Text(19, process.os);
    out_.Text(20, process.cpu);
    out_.Uint(21, process.cpus);
    out_.Uint(22, process.memory_bytes);
    out_.Text(23, process.tier_reason);
    out_.End(mark);
  }

  void WriteDevice(uint32_t field, const DeviceInfo& device) {
    const size_t mark = out_.Begin(field);
    out_.Uint(1, device.index);
    out_.Text(2, device.name);
    out_.Text(3, device.chip);
    out_.Uint(4, device.cc_major);
    out_.Uint(5, device.cc_minor);
    out_.Uint(6, device.sm_count);
    out_.Uint(7, device.sm_clock_khz);
    out_.Uint(8, device.memory_clock_khz);
    out_.Uint(9, device.memory_bus_bits);
    out_.Uint(10, device.memory_bytes);
    out_.Uint(11, device.l2_bytes);
    out_.Text(12, device.uuid);
    out_.Bool(13, device.mig);
    out_.End(mark);
  }

  // One Run record with what `content` writes into it. Facts of one Run come in several records, since 64 processes
  // with long command lines would not fit in one.
  template <typename Content>
  void RunRecord(uint32_t id, Content content) {
    const size_t mark = out_.Begin(1);
    out_.Uint(1, id);
    content();
    out_.End(mark);
    MaybeFlush();
  }
  template <typename Content>
  void MergedRecord(uint32_t id, Content content) {
    RunRecord(id, [&] {
      const size_t mark = out_.Begin(13);
      content();
      out_.End(mark);
    });
  }

  void WriteRun(const Run& run, uint32_t id) {
    WriteFacts(run, id);
    WriteModels(run, id);
    WriteLaunches(run, id);
    WriteSums(run, id);
  }

  void WriteFacts(const Run& run, uint32_t id) {
    const RunKey& key = run.key;
    RunRecord(id, [&] {
      out_.Uint(2, static_cast<uint64_t>(key.source));
      out_.Uint(3, static_cast<uint64_t>(std::max(run.tier, 0)));
      const size_t policy = out_.Begin(6);
      out_.Uint(1, key.policy.matmul_tf32);
      out_.Uint(2, key.policy.cudnn_tf32);
      out_.Uint(3, key.policy.cudnn_benchmark);
      out_.Uint(4, key.policy.cudnn_deterministic);
      out_.Text(5, key.policy.autocast_dtype);
      out_.End(policy);
      out_.Uint(7, run.processes);
      out_.Uint(9, key.batch_size);
      out_.Text(10, key.estimated_gpu);
      out_.Text(11, key.collector);
    });
    // Ten thousand ranks are one record of 30 KB.
    const std::vector<uint32_t> ranks(run.ranks.begin(), run.ranks.end());
    constexpr size_t kRanksPerRecord = 65536;
    for (size_t i = 0; i < ranks.size(); i += kRanksPerRecord) {
      const size_t count = std::min(kRanksPerRecord, ranks.size() - i);
      RunRecord(id, [&] { out_.PackedUint(8, {ranks.data() + i, count}); });
    }
    MergedRecord(id, [&] {
      out_.Text(1, key.gpu);
      for (const std::string& root : key.models) out_.ForceText(2, root);
      out_.Uint(6, run.unfinished);
      out_.Uint(7, key.parameters);
      out_.Uint(8, key.training ? 1 : 0);
    });
    for (const ProcessInfo& process : run.process_list) MergedRecord(id, [&] { WriteProcess(4, process); });
    for (const DeviceInfo& device : run.devices) MergedRecord(id, [&] { WriteDevice(5, device); });
  }

  void WriteModels(const Run& run, uint32_t id) {
    models_.clear();
    layers_.clear();
    std::vector<uint32_t> ids;
    const auto define = [&](const std::string& name, const ModelInfo& model) {
      const uint32_t model_id = next_model_++;
      models_.emplace(name, model_id);
      ids.push_back(model_id);
      const size_t mark = out_.Begin(3);
      out_.Uint(1, model_id);
      out_.Text(2, model.class_name);
      out_.Uint(3, model.parameters);
      out_.Uint(4, model.parameter_bytes);
      out_.Uint(5, model.trainable_parameters);
      out_.End(mark);
      MaybeFlush();
    };
    for (const auto& [name, model] : run.models) define(name, model);
    MergedRecord(id, [&] { out_.PackedUint(3, ids); });
    for (const auto& [key, layer] : run.layers) WriteLayer(run, key, layer);
  }

  // Parents first, as ids must be defined before they are used. Merging can make two layers each other's parent (two
  // processes that share a module under two names), hence the mark before the descent.
  uint32_t WriteLayer(const Run& run, const LayerKey& key, const LayerInfo& layer, unsigned depth = 0) {
    const auto [it, inserted] = layers_.try_emplace(key, 0);
    if (!inserted) return it->second;
    uint32_t parent = 0;
    constexpr unsigned kMaxDepth = 256;
    const LayerKey parent_key{key.model, layer.parent};
    if (parent_key != key && depth < kMaxDepth) {
      const auto above = run.layers.find(parent_key);
      if (above != run.layers.end()) parent = WriteLayer(run, parent_key, above->second, depth + 1);
    }
    const uint32_t id = it->second = next_layer_++;
    const auto model = models_.find(key.model);
    const size_t mark = out_.Begin(4);
    out_.Uint(1, id);
    out_.Uint(2, model == models_.end() ? 0 : model->second);
    out_.Text(3, key.path);
    out_.Text(4, layer.class_name);
    out_.Uint(5, layer.parameters);
    out_.Uint(6, layer.parameter_bytes);
    out_.Text(7, layer.input_shape);
    out_.Text(8, layer.output_shape);
    out_.Uint(9, parent);
    out_.Bool(10, layer.training);
    out_.Uint(11, layer.order);
    out_.End(mark);
    MaybeFlush();
    return id;
  }

  void WriteStat(uint32_t field, uint32_t metric, const Stat& stat) {
    const size_t mark = out_.Begin(field);
    out_.Uint(1, metric);
    out_.Uint(2, stat.n);
    out_.Uint(3, static_cast<uint64_t>(stat.sum));
    out_.Uint(4, static_cast<uint64_t>(stat.sum >> 64));
    out_.Uint(5, static_cast<uint64_t>(stat.sum_squares));
    out_.Uint(6, static_cast<uint64_t>(stat.sum_squares >> 64));
    if (stat.n > 0) {
      out_.Uint(7, stat.min);
      out_.Uint(8, stat.max);
      out_.Uint(9, stat.shared_sums);
    }
    out_.End(mark);
  }

  void WriteLaunches(const Run& run, uint32_t run_id) {
    for (const auto& [key, stats] : run.launches) {
      const uint32_t kernel = Name(key.kernel), op = Name(key.op), signature = Name(key.signature),
                     node = Name(key.node);
      const auto layer = layers_.find(key.layer);
      const uint32_t id = next_key_++;
      size_t mark = out_.Begin(6);
      out_.Uint(1, id);
      out_.Uint(2, kernel);
      out_.Uint(3, op);
      out_.Uint(4, layer == layers_.end() ? 0 : layer->second);
      out_.Uint(5, static_cast<uint64_t>(key.phase));
      out_.Uint(6, signature);
      if (key.grid != std::array<uint32_t, 3>{}) out_.PackedUint(7, key.grid);
      if (key.block != std::array<uint32_t, 3>{}) out_.PackedUint(8, key.block);
      out_.Uint(9, key.dynamic_shared_bytes);
      out_.Uint(10, key.device);
      out_.Uint(11, run_id);
      out_.Uint(12, node);
      out_.End(mark);
      mark = out_.Begin(7);
      out_.Uint(1, id);
      out_.Uint(2, stats.launches);
      for (const auto& [name, stat] : stats.metrics) {
        const auto metric = metrics_.find(name);
        if (metric != metrics_.end()) WriteStat(3, metric->second, stat);
      }
      out_.End(mark);
      MaybeFlush();
    }
  }

  void WriteSums(const Run& run, uint32_t run_id) {
    size_t mark = out_.Begin(11);
    const size_t inner = out_.Begin(1);
    out_.Uint(1, run_id);
    out_.Uint(2, run.steps.steps);
    out_.Uint(3, run.steps.samples);
    WriteStat(4, 0, run.steps.duration_ns);
    out_.Uint(5, run.steps.armed);
    out_.Uint(6, run.steps.memory_peak_bytes);
    if (run.steps.pm_dram_bytes.n > 0) WriteStat(7, 0, run.steps.pm_dram_bytes);
    if (run.steps.pm_duration_ns.n > 0) WriteStat(8, 0, run.steps.pm_duration_ns);
    if (run.steps.pm_tensor_active_ns.n > 0) WriteStat(9, 0, run.steps.pm_tensor_active_ns);
    out_.End(inner);
    out_.End(mark);
    for (const auto& [diagnostic, count] : run.diagnostics) {
      mark = out_.Begin(9);
      out_.Uint(1, static_cast<uint64_t>(std::max(diagnostic.severity, 0)));
      out_.Text(2, diagnostic.id);
      out_.Text(3, diagnostic.text);
      out_.Text(4, diagnostic.remedy);
      out_.Uint(6, run_id);
      out_.Uint(7, count);
      out_.End(mark);
    }
    for (const auto& [what, count] : run.drops) {
      mark = out_.Begin(10);
      out_.Text(1, what);
      out_.Uint(2, count);
      out_.Uint(3, run_id);
      out_.End(mark);
    }
    MaybeFlush();
  }

  const ByteSink& sink_;
  wire::Encoder out_;
  bool good_ = true;
  bool encoded_ = true;
  uint32_t sequence_ = 0;
  uint32_t next_model_ = 1, next_layer_ = 1, next_key_ = 1;
  std::unordered_map<std::string, uint32_t> names_, metrics_;
  std::unordered_map<std::string, uint32_t> models_;  // of the run that is being written
  std::map<LayerKey, uint32_t> layers_;               // likewise
};

}  // namespace

std::string WriteTrace(const Profile& profile, const ByteSink& sink) { return Writer(sink).Write(profile); }

}  // namespace rfinject::cli
