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

// Sorted by address. Threads of a backward read it without the GIL at any time, so one that was replaced is kept.
using Table = std::vector<Parameter>;
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
  std::unordered_map<uint32_t, std::vector<uint32_t>> chains;
  for (const ParameterLayer& one : layers) {
    auto chain = chains.find(one.layer);
    if (chain == chains.end()) chain = chains.emplace(one.layer, WithThoseAround(one.layer, recorder)).first;
    table->push_back({one.parameter, chain->second});
  }
  const auto less = [](const Parameter& a, const Parameter& b) {
    return a.address != b.address ? a.address < b.address : a.layers < b.layers;
  };
  std::ranges::sort(*table, less);
  const auto same = [](const Parameter& a, const Parameter& b) {
    return a.address == b.address && a.layers == b.layers;
  };
  if (before != nullptr && std::ranges::equal(*before, *table, same)) return;
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
  const auto found = std::ranges::lower_bound(*table, parameter, {}, &Parameter::address);
  if (found == table->end() || found->address != parameter) return owner;
  // A parameter that several modules have is no one's.
  const auto next = found + 1;
  if (next != table->end() && next->address == parameter) return owner;
  return std::ranges::find(found->layers, owner) != found->layers.end() ? found->layers.front() : owner;
}

}  // namespace rfinject
