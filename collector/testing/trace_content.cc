#include "collector/testing/trace_content.h"

#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "proto/wire/framing.h"

namespace rfinject::testing {
namespace {

unsigned __int128 Join(uint64_t high, uint64_t low) { return static_cast<unsigned __int128>(high) << 64 | low; }

void AddTo(MetricTotal* total, uint64_t n, unsigned __int128 sum, unsigned __int128 squares, uint64_t min,
           uint64_t max) {
  total->n += n;
  total->sum += sum;
  total->sum_squares += squares;
  total->min = std::min(total->min, min);
  total->max = std::max(total->max, max);
}

class Adder {
 public:
  explicit Adder(TraceContent* out) : out_(out) {}

  void Add(const v1::Chunk& chunk) {
    Check(!out_->has_end, "a chunk after the end");
    for (const auto& run : chunk.run()) AddRun(run);
    for (const auto& name : chunk.name()) {
      Check(name.id() != 0 && out_->names.emplace(name.id(), name.text()).second, "a name's id is 0 or used twice");
    }
    for (const auto& model : chunk.model()) {
      Check(model.id() != 0 && out_->models.emplace(model.id(), model).second, "a model's id is 0 or used twice");
    }
    for (const auto& layer : chunk.layer()) {
      Check(layer.id() != 0, "a layer without id");
      Check(layer.parent() == 0 || out_->layers.contains(layer.parent()), "a layer before its parent");
      Check(layer.model() == 0 || out_->models.contains(layer.model()), "a layer before its model");
      out_->layers[layer.id()] = layer;
    }
    for (const auto& metric : chunk.metric()) {
      Check(metric.id() != 0 && out_->metrics.emplace(metric.id(), metric).second,
            "a metric's id is 0 or used twice");
    }
    for (const auto& key : chunk.key()) AddKey(key);
    for (const auto& stats : chunk.stats()) AddStats(stats);
    for (const auto& repeated : chunk.repeated_launches()) AddRepeated(repeated);
    for (const auto& step : chunk.step()) out_->steps.push_back(step);
    for (const auto& diagnostic : chunk.diagnostic()) {
      Check(out_->FindDiagnostic(diagnostic.id()) == nullptr, "a diagnostic twice");
      out_->diagnostics.push_back(diagnostic);
    }
    for (const auto& drop : chunk.drop()) out_->drops[drop.what()] += drop.count();
    if (chunk.has_end()) {
      out_->has_end = true;
      out_->end = chunk.end();
    }
  }

 private:
  void Check(bool good, const char* what) {
    if (!good && out_->error.empty()) out_->error = what;
  }
  void CheckName(uint32_t id) { Check(id == 0 || out_->names.contains(id), "a name's id before its definition"); }

  void AddRun(const v1::Run& run) {
    Check(run.id() == 1, "a process's run is not 1");
    v1::Run merged = out_->run;
    if (run.device_size() > 0) merged.clear_device();
    merged.MergeFrom(run);
    out_->run = std::move(merged);
  }
  void AddKey(const v1::LaunchKey& key) {
    Check(key.id() != 0 && !out_->keys.contains(key.id()), "a key's id is 0 or used twice");
    CheckName(key.kernel());
    CheckName(key.op());
    CheckName(key.signature());
    CheckName(key.node());
    Check(key.layer() == 0 || out_->layers.contains(key.layer()), "a layer's id before its definition");
    out_->keys[key.id()].key = key;
  }
  void AddStats(const v1::KeyStats& stats) {
    Check(out_->keys.contains(stats.key()), "statistics before their key");
    KeyTotal& total = out_->keys[stats.key()];
    total.launches += stats.launches();
    for (const auto& m : stats.metric()) {
      Check(out_->metrics.contains(m.metric()), "statistics before their metric");
      MetricTotal* const into = &total.metrics[out_->metrics[m.metric()].name()];
      if (m.sum() == 0 && m.sum_high() == 0 && m.max() == 0) {  // all samples are the same
        const unsigned __int128 sum = static_cast<unsigned __int128>(m.n()) * m.min();
        unsigned __int128 squares = 0;
        if (__builtin_mul_overflow(sum, m.min(), &squares)) squares = ~static_cast<unsigned __int128>(0);
        Check(m.sum_squares() == 0 && m.sum_squares_high() == 0, "squares of samples that say no sum");
        AddTo(into, m.n(), sum, squares, m.min(), m.min());
        continue;
      }
      AddTo(into, m.n(), Join(m.sum_high(), m.sum()), Join(m.sum_squares_high(), m.sum_squares()), m.min(), m.max());
    }
  }
  void AddRepeated(const v1::RepeatedLaunches& repeated) {
    Check(repeated.keys_size() == repeated.gap_size() && repeated.launches_size() == repeated.gap_size(),
          "ranges without a number");
    uint32_t id = 1;
    for (int range = 0; range < repeated.keys_size(); ++range) {
      id += repeated.gap(range);
      const uint64_t launches = repeated.launches(range);
      for (const uint32_t end = id + repeated.keys(range); id < end; ++id) {
        Check(out_->keys.contains(id), "repeated launches before their key");
        out_->keys[id].launches += launches;
        for (auto& [name, known] : out_->keys[id].metrics) {
          Check(known.n > 0 && known.min == known.max, "samples are said to repeat others, which differ");
          const unsigned __int128 sum = static_cast<unsigned __int128>(launches) * known.min;
          AddTo(&known, launches, sum, sum * known.min, known.min, known.max);
        }
      }
    }
  }

  TraceContent* out_;
};

}  // namespace

uint64_t TraceContent::Launches() const {
  uint64_t launches = 0;
  for (const auto& [id, key] : keys) launches += key.launches;
  return launches;
}

MetricTotal TraceContent::Total(std::string_view metric) const {
  MetricTotal total;
  for (const auto& [id, key] : keys) {
    const auto it = key.metrics.find(std::string(metric));
    if (it == key.metrics.end()) continue;
    const MetricTotal& m = it->second;
    AddTo(&total, m.n, m.sum, m.sum_squares, m.min, m.max);
  }
  return total;
}

const v1::Diagnostic* TraceContent::FindDiagnostic(std::string_view id) const {
  for (const v1::Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.id() == id) return &diagnostic;
  }
  return nullptr;
}

size_t TraceContent::MeasuredSteps() const {
  return static_cast<size_t>(
      std::count_if(steps.begin(), steps.end(), [](const v1::Step& s) { return s.measured(); }));
}

TraceContent ParseTrace(std::string_view bytes) {
  TraceContent content;
  Adder adder(&content);
  if (bytes.size() < wire::kFileHeaderSize) {
    content.error = "no file header";
    return content;
  }
  uint8_t file_header[wire::kFileHeaderSize];
  std::memcpy(file_header, bytes.data(), sizeof file_header);
  uint16_t major = 0;
  if (wire::DecodeFileHeader(file_header, &major) != wire::FrameStatus::kOk) content.error = "bad file header";
  size_t at = sizeof file_header;
  for (uint32_t sequence = 0; content.error.empty(); ++sequence) {
    content.whole_bytes = at;
    content.trailing_bytes = bytes.size() - at;
    if (content.trailing_bytes < wire::kFrameHeaderSize) break;
    uint8_t frame_header[wire::kFrameHeaderSize];
    std::memcpy(frame_header, bytes.data() + at, sizeof frame_header);
    wire::FrameHeader header;
    if (wire::DecodeFrameHeader(frame_header, sequence, &header) != wire::FrameStatus::kOk) {
      content.error = "bad frame header";
      break;
    }
    at += sizeof frame_header;
    if (bytes.size() - at < header.length) break;
    if (wire::CheckPayload(header, bytes.data() + at) != wire::FrameStatus::kOk) {
      content.error = "bad payload";
      break;
    }
    v1::Chunk chunk;
    if (!chunk.ParseFromArray(bytes.data() + at, static_cast<int>(header.length))) {
      content.error = "libprotobuf refuses a chunk";
      break;
    }
    if (header.length == 0) content.error = "an empty chunk";
    adder.Add(chunk);
    content.chunks.push_back(std::move(chunk));
    at += header.length;
  }
  return content;
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TraceContent ReadTrace(const std::string& path) { return ParseTrace(ReadFile(path)); }

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "rfinject-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) != nullptr) path_ = std::filesystem::canonical(pattern).string();
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> TemporaryFolder::List() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace rfinject::testing
