// File: definitions.h
//
// Definitions holds what ids stand for, the facts of the run, and the diagnostics: everything of a recorder that a
// forked child keeps. All functions but FindName are called with the recorder's lock held. Those that are not
// noexcept may throw std::bad_alloc, and the object is then as it was.
#ifndef RFINJECT_COLLECTOR_DEFINITIONS_H_
#define RFINJECT_COLLECTOR_DEFINITIONS_H_

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collector/name_table.h"
#include "collector/recorder.h"
#include "collector/run_facts.h"

namespace rfinject {

// Of all records that are defined the id is their place, and not in the struct.
using MetricDefinition = trace::Metric;

struct Layer {
  LayerDefinition definition;
  uint32_t version = 1;  // grows when a shape becomes known, so that the layer is written again
};

// An ELF object on some stack.
struct NativeModule : trace::NativeModule {
  uint32_t version = 1;  // grows when it is described, so that it is written again
};

struct NativeStack {
  std::vector<NativeFrame> frames;
  std::vector<uint32_t> functions;  // Intern()ed, 0: not known (yet); as many as frames
  uint32_t version = 1;             // grows when a function becomes known, so that the stack is written again
};

struct Diagnostic : trace::Diagnostic {
  bool printed = false;
};

// A line of the program. Names are Intern()ed.
using SourceLine = trace::SourceLine;

class Definitions {
 public:
  static constexpr size_t kMaxDiagnostics = 256;
  static constexpr size_t kMaxLayers = 1 << 20;
  static constexpr size_t kMaxModules = 4096;
  static constexpr size_t kMaxStacks = 1 << 14;
  static constexpr size_t kMaxLines = 1 << 16;

  // Holds the metrics of WellKnownMetric, with their ids, from the beginning.
  Definitions();

  NameTable names;
  std::deque<MetricDefinition> metrics;  // id - 1
  std::deque<ModelDefinition> models;    // id - 1
  std::deque<Layer> layers;              // id - 1
  std::deque<NativeModule> modules;      // the injector's number - 1
  std::deque<NativeStack> stacks;        // id - 1
  std::deque<SourceLine> lines;          // id - 1
  // The native stack of each key that has one. A forked child keeps them, too, since it does not ask again for keys
  // that are known.
  std::unordered_map<LaunchIdentity, uint32_t, IdentityHash> key_lines;
  std::deque<Diagnostic> diagnostics;
  RunFacts facts;

  // Returns the id of a metric. The first definition of a name stands.
  uint32_t DefineMetric(std::string_view name, std::string_view unit, double scale);
  // Returns a new id each time: two models of one class are two models.
  uint32_t DefineModel(const ModelDefinition& model);
  // Returns the one id of a path in a model; the first definition stands. Returns 0 if there is no such model, or no
  // such parent in it.
  uint32_t DefineLayer(const LayerDefinition& layer);
  // Whether every id in it is one that was given out: a reader refuses a trace that refers to anything else.
  bool Knows(const LaunchRecord& record) const noexcept;
  // Returns true if the layer had no such shape yet.
  bool SetLayerShapes(uint32_t layer, std::string_view input, std::string_view output);
  // The id of the stack of these frames; 0 if there are too many, or none in it.
  uint32_t DefineStack(std::span<const NativeFrame> frames);
  // The id of this line; 0 if there are too many.
  uint32_t DefineLine(uint32_t file, uint32_t line, uint32_t function);
  void DescribeModule(uint32_t module, std::string_view path, std::string_view build_id);
  // Sets the function's name in every stack that has the frame.
  void NameFrame(const NativeFrame& frame, uint32_t function);
  // Returns null if `id` was reported before, or if there are too many.
  Diagnostic* AddDiagnostic(Severity severity, std::string_view id, std::string_view text, std::string_view remedy,
                            int64_t unix_ns);

 private:
  std::map<std::pair<uint32_t, std::string>, uint32_t> layer_ids_;  // (model, path)
  std::map<std::vector<std::pair<uint32_t, uint64_t>>, uint32_t> stack_ids_;
  std::map<std::array<uint32_t, 3>, uint32_t> line_ids_;
};

// Puts the set fields of `from` into `into`: devices by index, autocast types as a union.
void MergeFacts(const RunFacts& from, RunFacts* into);

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_DEFINITIONS_H_
