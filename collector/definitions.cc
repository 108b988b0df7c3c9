#include "collector/definitions.h"

#include <algorithm>
#include <cstddef>
#include <set>

namespace rfinject {
namespace {

// The id that `key` has, or a new one, which is the place of what make() returns among `values`. Where memory runs
// out nothing has changed.
template <typename Ids, typename Values, typename Make>
uint32_t IdOf(typename Ids::key_type key, Ids* ids, Values* values, Make make) {
  const auto [it, is_new] = ids->try_emplace(std::move(key), 0);
  if (!is_new) return it->second;
  try {
    values->push_back(make());
  } catch (...) {
    ids->erase(it);
    throw;
  }
  return it->second = static_cast<uint32_t>(values->size());
}

// "bfloat16" and "float16" are "bfloat16+float16".
std::string UniteTypes(std::string_view a, std::string_view b) {
  std::set<std::string_view> types;
  for (std::string_view list : {a, b}) {
    while (!list.empty()) {
      const size_t end = std::min(list.find('+'), list.size());
      if (end > 0) types.insert(list.substr(0, end));
      list.remove_prefix(std::min(end + 1, list.size()));
    }
  }
  std::string result;
  for (std::string_view type : types) {
    if (!result.empty()) result += '+';
    result += type;
  }
  return result;
}

}  // namespace

Definitions::Definitions() {
  // The metrics are in the order of WellKnownMetric.
  DefineMetric(kMetricTime, "ns", 1);
  DefineMetric(kMetricModelFlop, "FLOP", 1);
  DefineMetric(kMetricDramBytes, "byte", 1);
  DefineMetric(kMetricCompulsoryBytes, "byte", 1);
  for (std::string_view name : kMetricFlop) DefineMetric(name, "FLOP", 1);
  DefineMetric(kMetricProductFlop, "FLOP", 1);
  DefineMetric(kMetricHiddenFlop, "FLOP", 1);
  static_assert(kTime == 1 && kModelFlop == 2 && kDramBytes == 3 && kCompulsoryBytes == 4 && kFlopFirst == 5);
}

uint32_t Definitions::DefineMetric(std::string_view name, std::string_view unit, double scale) {
  for (size_t i = 0; i < metrics.size(); ++i) {
    if (metrics[i].name == name) return static_cast<uint32_t>(i + 1);
  }
  // A scale of 1 is not written, because 0 reads as 1.
  metrics.push_back({.name = std::string(name), .unit = std::string(unit), .scale = scale == 1 ? 0 : scale});
  return static_cast<uint32_t>(metrics.size());
}

uint32_t Definitions::DefineModel(const ModelDefinition& model) {
  models.push_back(model);
  return static_cast<uint32_t>(models.size());
}

uint32_t Definitions::DefineLayer(const LayerDefinition& layer) {
  if (layers.size() >= kMaxLayers || layer.model == 0 || layer.model > models.size()) return 0;
  if (layer.parent > layers.size()) return 0;
  if (layer.parent != 0 && layers[layer.parent - 1].definition.model != layer.model) return 0;
  return IdOf({layer.model, layer.path}, &layer_ids_, &layers, [&] { return Layer{layer}; });
}

bool Definitions::Knows(const LaunchRecord& record) const noexcept {
  const LaunchIdentity& id = record.identity;
  const uint32_t known = names.size();
  if (id.kernel > known || id.signature > known || id.site.op > known || id.site.node > known) return false;
  if (id.site.layer > layers.size() || static_cast<size_t>(id.site.phase) >= kPhaseNames.size()) return false;
  for (uint32_t s = 0; s < record.sample_count && s < kMaxSamplesPerRecord; ++s) {
    if (record.samples[s].metric == 0 || record.samples[s].metric > metrics.size()) return false;
  }
  return true;
}

bool Definitions::SetLayerShapes(uint32_t id, std::string_view input, std::string_view output) {
  if (id == 0 || id > layers.size()) return false;
  LayerDefinition& layer = layers[id - 1].definition;
  if (!layer.input_shape.empty() || !layer.output_shape.empty() || (input.empty() && output.empty())) return false;
  std::string in(input);
  std::string out(output);
  layer.input_shape.swap(in);
  layer.output_shape.swap(out);
  ++layers[id - 1].version;
  return true;
}

uint32_t Definitions::DefineStack(std::span<const NativeFrame> frames) {
  if (frames.empty() || frames.size() > kMaxNativeFrames || stacks.size() >= kMaxStacks) return 0;
  std::vector<std::pair<uint32_t, uint64_t>> key;
  for (const NativeFrame& frame : frames) {
    if (frame.module == 0 || frame.module > kMaxModules) return 0;
    key.emplace_back(frame.module, frame.offset);
  }
  return IdOf(std::move(key), &stack_ids_, &stacks, [&] {
    for (const NativeFrame& frame : frames) {
      if (frame.module > modules.size()) modules.resize(frame.module);
    }
    return NativeStack{{frames.begin(), frames.end()}, std::vector<uint32_t>(frames.size())};
  });
}

uint32_t Definitions::DefineLine(uint32_t file, uint32_t line, uint32_t function) {
  if (file == 0 || lines.size() >= kMaxLines) return 0;
  return IdOf({file, line, function}, &line_ids_, &lines,
              [&] { return SourceLine{.file = file, .line = line, .function = function}; });
}

void Definitions::DescribeModule(uint32_t number, std::string_view path, std::string_view build_id) {
  if (number == 0 || number > modules.size()) return;
  NativeModule module{{.path = std::string(path), .build_id = std::string(build_id)},
                      modules[number - 1].version + 1};
  modules[number - 1] = std::move(module);
}

void Definitions::NameFrame(const NativeFrame& frame, uint32_t function) {
  if (function == 0) return;
  for (NativeStack& stack : stacks) {
    for (size_t i = 0; i < stack.frames.size(); ++i) {
      if (stack.frames[i] != frame || stack.functions[i] == function) continue;
      stack.functions[i] = function;
      ++stack.version;
    }
  }
}

Diagnostic* Definitions::AddDiagnostic(Severity severity, std::string_view id, std::string_view text,
                                       std::string_view remedy, int64_t unix_ns) {
  if (diagnostics.size() >= kMaxDiagnostics) return nullptr;
  for (const Diagnostic& known : diagnostics) {
    if (known.id == id) return nullptr;
  }
  return &diagnostics.emplace_back(Diagnostic{{.severity = severity,
                                               .id = std::string(id),
                                               .text = std::string(text),
                                               .remedy = std::string(remedy),
                                               .unix_ns = unix_ns}});
}

void MergeFacts(const RunFacts& from, RunFacts* into) {
  std::string types = UniteTypes(into->policy.autocast_dtype, from.policy.autocast_dtype);
  trace::Update(from, into);
  into->policy.autocast_dtype.swap(types);
}

}  // namespace rfinject
