#include "injector/python/parameter_layers.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <unordered_map>

#include "injector/training.h"

namespace rfinject {
namespace {

// Compiled code runs in fewer layers than this, or gradients of the later ones stay where the compiled code is.
constexpr size_t kMostCompiledLayers = 256;

struct Parameter {
  uintptr_t address = 0;
  // The layer of its module, and those around it, from the inside to the outside.
  std::vector<uint32_t> layers;
};

struct Table {
  std::vector<Parameter> parameters;  // sorted by address
  // Threads of a backward read tables without the GIL at any time, so one that was replaced is kept.
  const Table* replaced = nullptr;
};
constinit std::atomic<const Table*> g_table{nullptr};
std::array<std::atomic<uint32_t>, kMostCompiledLayers> g_compiled_layers{};

bool IsCompiledLayer(uint32_t layer) noexcept {
  for (const auto& slot : g_compiled_layers) {
    const uint32_t known = slot.load(std::memory_order_relaxed);
    if (known == layer || known == 0) return known == layer;
  }
  return false;
}

std::vector<uint32_t> WithThoseAround(uint32_t layer, Recorder& recorder) {
  constexpr size_t kMostLevels = 64;
  std::vector<uint32_t> layers;
  LayerDefinition definition;
  while (layer != 0 && layers.size() < kMostLevels) {
    layers.push_back(layer);
    layer = recorder.FindLayer(layer, &definition) ? definition.parent : 0;
  }
  return layers;
}

}  // namespace

void SetParameterLayers(const std::vector<ParameterLayer>& layers, Recorder& recorder) {
  const Table* const before = g_table.load(std::memory_order_relaxed);
  auto table = std::make_unique<Table>();
  table->replaced = before;
  std::vector<Parameter>& parameters = table->parameters;
  std::unordered_map<uint32_t, std::vector<uint32_t>> chains;
  for (const ParameterLayer& one : layers) {
    auto chain = chains.find(one.layer);
    if (chain == chains.end()) chain = chains.emplace(one.layer, WithThoseAround(one.layer, recorder)).first;
    parameters.push_back({one.parameter, chain->second});
  }
  const auto less = [](const Parameter& a, const Parameter& b) {
    return a.address != b.address ? a.address < b.address : a.layers < b.layers;
  };
  std::ranges::sort(parameters, less);
  const auto same = [](const Parameter& a, const Parameter& b) {
    return a.address == b.address && a.layers == b.layers;
  };
  if (before != nullptr && std::ranges::equal(before->parameters, parameters, same)) return;
  g_table.store(table.release(), std::memory_order_release);
}

void NoteCompiledLayer(uint32_t layer) noexcept {
  if (layer == 0) return;
  for (auto& slot : g_compiled_layers) {
    uint32_t known = 0;
    if (slot.compare_exchange_strong(known, layer, std::memory_order_relaxed) || known == layer) return;
  }
}

uint32_t LayerOfGradient(uint32_t owner, uintptr_t parameter) noexcept {
  const Table* const table = g_table.load(std::memory_order_acquire);
  if (table == nullptr || !IsCompiledLayer(owner)) return owner;
  const std::vector<Parameter>& parameters = table->parameters;
  const auto found = std::ranges::lower_bound(parameters, parameter, {}, &Parameter::address);
  if (found == parameters.end() || found->address != parameter) return owner;
  // A parameter that several modules have is no one's.
  const auto next = found + 1;
  if (next != parameters.end() && next->address == parameter) return owner;
  return std::ranges::find(found->layers, owner) != found->layers.end() ? found->layers.front() : owner;
}

}  // namespace rfinject
