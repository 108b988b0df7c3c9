#include "cli/import/ncu/kernels.h"

#include <algorithm>
#include <cstddef>

#include "cli/profile/nearest.h"
#include "gpus/chips.h"

namespace rfinject::cli {
namespace {

// How many process names and compute capabilities are kept; more would only say again that there are several.
constexpr size_t kMostNames = 64;

}  // namespace

NcuKernelSum& NcuKernels::SumOf(const NcuKernel& kernel) {
  if (process_names_.size() < kMostNames) process_names_.insert(kernel.process_name);
  if (compute_capabilities_.size() < kMostNames) compute_capabilities_.insert(kernel.compute_capability);
  key_.clear();
  const auto append = [&](const auto& value) { key_.append(reinterpret_cast<const char*>(&value), sizeof value); };
  append(kernel.grid);
  append(kernel.block);
  append(kernel.device);
  for (const std::string* part : {&kernel.name, &kernel.layer, &kernel.op}) {
    key_ += *part;
    key_ += '\0';
  }
  auto [entry, is_new] = sums_.try_emplace(key_);
  if (is_new) {
    entry->second = std::make_unique<NcuKernelSum>();
    entry->second->kernel = kernel;
    entry->second->kernel.values.clear();
    entry->second->order = sums_.size();
  }
  return *entry->second;
}

void NcuKernels::AddLaunch(std::vector<std::pair<int, uint64_t>>& values, NcuKernelSum& sum) {
  DeriveTraffic(values);
  ++launches_;
  ++sum.launches;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& [metric, value] = values[i];
    auto stat = sum.stats.begin() + static_cast<ptrdiff_t>(std::min(i, sum.stats.size()));
    if (stat == sum.stats.end() || stat->first != metric) {  // not where it was in the launch before
      stat = std::find_if(sum.stats.begin(), sum.stats.end(), [id = metric](const auto& s) { return s.first == id; });
    }
    if (stat == sum.stats.end()) stat = sum.stats.insert(sum.stats.end(), {metric, Stat{}});
    stat->second.Add(value);
  }
}

// The details page gives DRAM traffic as a rate only.
void NcuKernels::DeriveTraffic(std::vector<std::pair<int, uint64_t>>& values) {
  const int rate = metrics_.dram_rate(), time = metrics_.gpu_time();
  if (std::none_of(values.begin(), values.end(), [&](const auto& v) { return v.first == rate; })) return;
  double bytes_per_s = -1, ns = -1;
  for (const auto& [metric, value] : values) {
    if (metrics_.IsDramBytes(metric)) return;
    if (metric == rate) bytes_per_s = static_cast<double>(value);
    if (metric == time) ns = static_cast<double>(value);
  }
  if (bytes_per_s < 0 || ns < 0) return;
  derived_traffic_ = true;
  values.emplace_back(metrics_.dram_total(), Nearest(bytes_per_s * ns * 1e-9));
}

void NcuKernels::SetBoard(std::string_view name, std::optional<double> memory_bytes, std::optional<double> sms) {
  constexpr double kMostBytes = 1e15, kMostSms = 1e6;
  board_.name = name;
  if (memory_bytes && *memory_bytes > 0 && *memory_bytes < kMostBytes) {
    board_.memory_bytes = static_cast<uint64_t>(*memory_bytes);
  }
  if (sms && *sms > 0 && *sms < kMostSms) board_.sm_count = static_cast<uint32_t>(*sms);
}

void NcuKernels::AddTo(const ImportOptions& options, RunBuilder* builder) const {
  cli::Run& run = builder->run;
  const bool one_process = options.model.empty() && process_names_.size() == 1;
  builder->SetModel(one_process ? *process_names_.begin() : options.model);
  DeviceInfo device = board_;
  if (compute_capabilities_.size() == 1) {
    const Chip* const chip = ChipOfComputeCapability(*compute_capabilities_.begin());
    if (chip != nullptr) device.chip = chip->name;
  }
  // What the file says counts before what its name lets guess.
  const bool said = !options.gpu.empty() && !(options.gpu_is_guessed && !board_.name.empty());
  device.name = said ? options.gpu : board_.name.empty() ? device.chip : board_.name;
  run.key.gpu = device.name;
  run.devices = {device};
  for (const auto& [bytes, sum] : sums_) {
    LaunchKey key;
    key.kernel = sum->kernel.name;
    key.op = sum->kernel.op;
    key.grid = sum->kernel.grid;
    key.block = sum->kernel.block;
    key.device = sum->kernel.device;
    key.layer = LayerKey{run.key.models[0], sum->kernel.layer};
    LayerInfo& layer = run.layers[key.layer];
    if (layer.order == 0 || layer.order > sum->order) layer.order = sum->order;
    LaunchStats& stats = run.launches[key];
    stats.launches += sum->launches;
    for (const auto& [metric, stat] : sum->stats) {
      stats.metrics[metrics_[metric].name].Merge(stat);
      DefineMetric(metrics_[metric].name, metrics_[metric].unit, &builder->result.profile);
    }
  }
  builder->result.kernels = launches_;
}

}  // namespace rfinject::cli
