// File: estimator.cc
//
// The Source that needs no GPU: every ATen operator that runs becomes one estimated kernel of the GPU that
// RFINJECT_ESTIMATE names. docs/method/ESTIMATOR.md has the rules.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include "collector/compiled_code.h"
#include "collector/estimate/collective.h"
#include "collector/estimate/compiled_work.h"
#include "collector/estimate/launched_kernels.h"
#include "collector/estimate/name_cache.h"
#include "collector/estimate/unknown_operators.h"
#include "collector/estimate/work.h"
#include "collector/launch_origin.h"
#include "collector/memory_peak.h"
#include "collector/memory_report.h"
#include "collector/run_facts.h"
#include "collector/source.h"
#include "collector/source_line.h"
#include "collector/step_end.h"
#include "collector/virtual_gpu.h"
#include "gpus/gpus.h"
#include "operators/cost.h"
#include "operators/flop.h"
#include "operators/op_call.h"
#include "operators/operands.h"
#include "operators/signature.h"
#include "proto/wire/vocabulary.h"
#include "virtual_gpu/virtual_gpu.h"

namespace rfinject {
namespace {

using estimate::Cost;

// The optimizers keep their step counters in 0-dim tensors on the host (torch/optim, unless capturable=True), and
// there is nothing else 0-dim in an optimizer's step: no kernel runs for those on a GPU.
bool IsStepCounter(const OpCall& call, const Site& site) {
  return site.phase == Phase::kOptimizer && !call.tensors.empty() &&
         std::ranges::all_of(call.tensors, [](const TensorView& tensor) { return tensor.rank == 0; });
}

// A data loader collates its batches on the host, in the main process where it has no workers. Without a virtual GPU
// the copies to the device, which are of the same phase on a GPU, do not exist.
bool IsCollation(const Site& site) { return site.phase == Phase::kData && site.layer == 0; }

bool HasFloating(const OpCall& call) {
  return std::ranges::any_of(call.tensors,
                             [](const TensorView& tensor) { return estimate::IsFloating(tensor.dtype); });
}

// Adds the samples that each estimated kernel has.
void AddEstimate(uint64_t ns, uint64_t dram_bytes, uint64_t compulsory_bytes, LaunchRecord* record) {
  record->AddSample(kTime, ns);
  record->AddSample(kDramBytes, dram_bytes);
  record->AddSample(kCompulsoryBytes, compulsory_bytes);
}

// Adds what the model asks for. What is computed again is asked for once.
template <typename Work>
void AddModelFlop(const Work& work, LaunchRecord* record) {
  const bool again = record->identity.site.phase == Phase::kRecompute;
  record->AddSample(kModelFlop, again ? 0 : work.model_flop);
  if (work.product_flop != 0) record->AddSample(kProductFlop, again ? 0 : work.product_flop);
  if (work.hidden_flop != 0) record->AddSample(kHiddenFlop, again ? 0 : work.hidden_flop);
}

// Adds the FLOP of each precision that has some, as far as there is room.
void AddExecutedFlop(const std::array<uint64_t, kPrecisionCount>& flop, LaunchRecord* record) {
  for (size_t p = 0; p < kPrecisionCount; ++p) {
    if (flop[p] == 0 || record->sample_count == kMaxSamplesPerRecord) continue;
    record->AddSample(kFlopFirst + static_cast<uint32_t>(p), flop[p]);
  }
}

class Estimator final : public Source {
 public:
  Estimator(const Gpu& gpu, Recorder& recorder) : gpu_(gpu), recorder_(recorder) {}

  bool wants_ops() const noexcept override { return true; }

  const uint64_t* LaunchesOfThread() const noexcept override { return VirtualGpuLaunchesOfThread(); }

  bool wants_ops_outside_window() const noexcept override { return VirtualGpuCaptures(); }

  bool OnOp(const OpCall& call, const Site& site) noexcept override {
    if (stopped_.load(std::memory_order_relaxed)) return false;
    // Where the program uses a GPU, what it does on the host is no GPU's work. Else all of it stands for the GPU's.
    if ((UsesGpu() && call.on_host) || (!UsesVirtualGpu() && IsCollation(site))) return false;
    if (IsStepCounter(call, site)) return false;
    const Cost cost = estimate::EstimateCost(call, gpu_, policy());
    if (!cost.kernel) return false;
    if (call.name == "aten::_amp_update_scale_") NoteScaleUpdate();
    if (!cost.known && HasFloating(call)) unknown_.Note(call.name);

    const estimate::NameCache::Ids names = Names(call);
    estimate::Launches launches{.record = {}, .times = 1};
    LaunchRecord& record = launches.record;
    record.identity.kernel = names.kernel;
    record.identity.signature = names.signature;
    record.identity.site = site;
    if (site.op == 0) record.identity.site.op = names.kernel;
    AddEstimate(cost.time_ns, cost.dram_bytes, cost.compulsory_bytes, &record);
    AddModelFlop(cost, &record);
    if (cost.pcie_bytes != 0) record.AddSample(LinkMetric(kMetricPcieBytes), cost.pcie_bytes);
    AddExecutedFlop(cost.executed_flop, &record);
    const bool captured = VirtualGpuCaptured();
    if (!captured) kernels_.AddTo(&record);
    // Records are large: only what repeats launches has an array of them.
    if (std::ranges::all_of(cost.repeated, [](const auto& repeated) { return repeated.launches == 0; })) {
      work_.Happen(std::span(&launches, 1), cost.time_ns);
    } else {
      HappenRepeatedly(call.name, cost, launches);
    }
    if (!captured) kernels_.RecordRest(record.identity);
    return true;
  }

  // A try that has ended because the memory was full is no step.
  void OnOpFailed() noexcept override {
    if (!refused_.exchange(false, std::memory_order_relaxed)) return;
    recorder_.NoteFailure();
    EndStepOfProgram();
  }

  bool wants_compiled_code() const noexcept override { return true; }

  uint32_t DefineCompiledWork(const CompiledWork& work) noexcept override {
    return compiled_.Define(work, gpu_, policy(), unknown_);
  }

  // What torch.compile made is known by the place that launches it. Any other kernel is taken to read or write once
  // what its arguments point to; what it computes is not known. An operator that launches such kernels is costed by
  // its operands.
  void OnLoadedLaunch(const rfinject_virtual_loaded_launch& launch) noexcept {
    if (stopped_.load(std::memory_order_relaxed)) return;
    Site site = CurrentSite();
    if (site.op != 0) return;
    const CompiledPlace place = CurrentCompiledPlace(site.layer);
    site.layer = place.layer;
    const uint32_t kernel = recorder_.Intern(launch.name);
    estimate::CompiledCost cost = compiled_.Find(place.work, kernel);
    if (!cost.bytes_known) cost.SetBytes(ArgumentBytes(launch), gpu_);
    LeaveMaskedOut(launch, &cost);
    TellChanged(launch, cost.written);
    LaunchRecord record;
    record.identity.kernel = kernel;
    record.identity.site = site;
    record.identity.site.op = kernel;
    std::ranges::copy(launch.grid, record.identity.grid.begin());
    std::ranges::copy(launch.block, record.identity.block.begin());
    record.identity.dynamic_shared_bytes = launch.shared_bytes;
    AddEstimate(cost.time_ns, cost.bytes, cost.bytes, &record);
    AddModelFlop(cost, &record);
    AddExecutedFlop(cost.executed_flop, &record);
    if (!cost.flop_known && recorder_.InWindow() && !loaded_reported_.exchange(true)) {
      recorder_.ReportDiagnostic(
          Severity::kInfo, "compiled-kernels",
          "kernels of Triton's that torch.compile did not make, or whose code does not say what they compute, are "
          "costed by the bytes that their arguments' memory holds, each once; their FLOP count as 0");
    }
    work_.Happen({{estimate::Launches{record, 1}}}, cost.time_ns);
  }

  // GPUs reach one another over NVLink where the board has it, and else over PCIe.
  void OnCollective(const rfinject_virtual_collective& collective) noexcept {
    if (stopped_.load(std::memory_order_relaxed)) return;
    const uint64_t ranks = collective.ranks > 0 ? static_cast<uint64_t>(collective.ranks) : 0;
    const bool nvlink = gpu_.nvlink_bytes_per_s > 0;
    const uint64_t over_link = estimate::BusBytes(collective.kind, collective.bytes, ranks);
    const uint64_t in_memory = estimate::SaturatingAdd(collective.send_bytes, collective.receive_bytes);
    const uint64_t ns =
        std::max(estimate::EstimateTransferNs(over_link, nvlink ? gpu_.nvlink_bytes_per_s : gpu_.pcie_bytes_per_s),
                 estimate::EstimateTimeNs({}, in_memory, gpu_));
    // Torch's own profiler calls it so.
    std::array<char, 64> text;
    const auto format = [&text](const char* pattern, auto... values) {
      const int length = std::snprintf(text.data(), text.size(), pattern, values...);
      return std::string_view(text.data(), std::min(text.size() - 1, static_cast<size_t>(std::max(length, 0))));
    };
    LaunchRecord record;
    record.identity.kernel = recorder_.Intern(format("nccl:%s", collective.kind));
    record.identity.signature =
        recorder_.Intern(format("%llu B, %llu ranks", static_cast<unsigned long long>(collective.bytes),
                                static_cast<unsigned long long>(ranks)));
    record.identity.site = CurrentSite();
    record.identity.site.phase = Phase::kCommunication;
    record.identity.site.op = record.identity.kernel;
    AddEstimate(ns, in_memory, in_memory, &record);
    AddModelFlop(Cost(), &record);
    if (over_link != 0) record.AddSample(LinkMetric(nvlink ? kMetricNvlinkBytes : kMetricPcieBytes), over_link);
    work_.Happen({{estimate::Launches{record, 1}}}, ns);
  }

  void OnLaunch(const rfinject_virtual_launch& launch) noexcept {
    if (!stopped_.load(std::memory_order_relaxed)) kernels_.Note(launch.name);
  }

  void OnReplay(uint64_t what) noexcept {
    if (!stopped_.load(std::memory_order_relaxed)) work_.OnReplay(what);
  }

  void OnPolicy(const PolicyFacts& facts) noexcept override {
    const estimate::PrecisionPolicy defaults;  // torch's
    const auto allows = [](uint32_t flag, bool by_default) {
      return flag == Tristate::kUnknown ? by_default : flag == Tristate::kOn;
    };
    convolution_tf32_.store(allows(facts.cudnn_tf32, defaults.convolution_tf32), std::memory_order_relaxed);
    matmul_tf32_.store(allows(facts.matmul_tf32, defaults.matmul_tf32), std::memory_order_relaxed);
    ReportVirtualGpu();
  }

  bool HasStepped() noexcept override { return !work_.TakeOptimizerCaptured(); }

  void OnStepEnd(uint64_t) noexcept override { Report(); }

  void OnMemory(const rfinject_virtual_memory& event) noexcept {
    if (stopped_.load(std::memory_order_relaxed)) return;
    const Site site = event.bytes > 0 ? CurrentSite() : Site{};
    const auto device = static_cast<uint32_t>(event.device);
    if (event.bytes > 0 && event.refused == 0) uses_memory_.store(true, std::memory_order_relaxed);
    // PyTorch asks again when it has given back what lay idle.
    if (event.bytes > 0) refused_.store(event.refused != 0, std::memory_order_relaxed);
    if (event.refused != 0) {
      memory_.OnRefused(device, static_cast<uint64_t>(event.bytes), site);
      ReportMemory(&memory_, recorder_);
    } else {
      memory_.OnMemory(device, event.address, event.bytes, event.reserved, site, recorder_.CurrentStep());
    }
  }

  void Stop() noexcept override {
    Report();
    stopped_.store(true, std::memory_order_relaxed);
  }

 private:
  estimate::PrecisionPolicy policy() const {
    return {convolution_tf32_.load(std::memory_order_relaxed), matmul_tf32_.load(std::memory_order_relaxed)};
  }

  // A program that has taken memory of the GPU uses it, also where its first layers run on the host.
  bool UsesGpu() const noexcept { return UsesVirtualGpu() || uses_memory_.load(std::memory_order_relaxed); }

  // What a kernel that is not run would have written is not known any more. `written` has a bit for each argument;
  // what lies behind the 64th may have been written, too.
  void TellChanged(const rfinject_virtual_loaded_launch& launch, uint64_t written) noexcept {
    for (size_t i = 0; i < launch.word_count; ++i) {
      if (i < 64 && (written >> i & 1) == 0) continue;
      const uint64_t bytes = memory_.BytesAt(static_cast<uint32_t>(launch.device), launch.words[i]);
      if (bytes != 0) TellVirtualGpuChanged(launch.words[i], bytes);
    }
  }

  // The blocks that a mask leaves are known where the values are with which the program has made it. Else all count.
  void LeaveMaskedOut(const rfinject_virtual_loaded_launch& launch, estimate::CompiledCost* cost) noexcept {
    if (cost->mask.blocks == 0) return;
    uint64_t left = 0;
    for (const int place : cost->mask.counts) {
      if (place < 0) continue;
      const auto index = static_cast<size_t>(place);
      const size_t bytes = cost->mask.rows * sizeof(int32_t);
      if (index >= launch.word_count || !VirtualGpuKnows(launch.words[index], bytes)) {
        if (recorder_.InWindow() && !masked_reported_.exchange(true)) {
          recorder_.ReportDiagnostic(
              Severity::kInfo, "mask-blocks",
              "which blocks the mask of a flex_attention leaves is not known, because its values "
              "were not computed: the FLOP are those of all scores (--values all computes them)");
        }
        return;
      }
      for (uint64_t i = 0; i < cost->mask.rows; ++i) {
        int32_t count = 0;
        std::memcpy(&count, reinterpret_cast<const char*>(launch.words[index]) + i * sizeof(count), sizeof(count));
        left += count > 0 ? static_cast<uint64_t>(count) : 0;
      }
    }
    cost->LeaveBlocks(left, gpu_);
  }

  uint64_t ArgumentBytes(const rfinject_virtual_loaded_launch& launch) noexcept {
    uint64_t bytes = 0;
    const std::span words(launch.words, launch.word_count);
    for (size_t i = 0; i < words.size(); ++i) {
      const auto before = words.first(i);
      if (std::ranges::find(before, words[i]) != before.end()) continue;
      bytes = estimate::SaturatingAdd(bytes, memory_.BytesAt(static_cast<uint32_t>(launch.device), words[i]));
    }
    return bytes;
  }

  // Defined where something goes over the link: most runs have no such bytes.
  uint32_t LinkMetric(std::string_view name) noexcept {
    std::atomic<uint32_t>& id = name == kMetricPcieBytes ? pcie_metric_ : nvlink_metric_;
    uint32_t known = id.load(std::memory_order_relaxed);
    if (known == 0) id.store(known = recorder_.DefineMetric(name, "byte", 1), std::memory_order_relaxed);
    return known;
  }

  // Of an operator that is itself `first` and repeats other launches.
  void HappenRepeatedly(std::string_view op, const Cost& cost, const estimate::Launches& first) noexcept {
    std::array<estimate::Launches, 1 + std::tuple_size_v<decltype(cost.repeated)>> work = {first};
    uint64_t ns = cost.time_ns;
    for (size_t i = 0; i < cost.repeated.size(); ++i) {
      work[1 + i] = RepeatedLaunches(op, cost.repeated[i], first.record);
      ns += work[1 + i].times * cost.repeated[i].time_ns;
    }
    work_.Happen(work, ns);
  }

  // `record` is the operator's first launch.
  estimate::Launches RepeatedLaunches(std::string_view op, const estimate::RepeatedCost& repeated,
                                      LaunchRecord record) noexcept {
    std::array<char, 128> name;
    if (repeated.launches == 0 || op.size() + repeated.kernel.size() > name.size()) return {};
    std::memcpy(name.data(), op.data(), op.size());
    std::memcpy(name.data() + op.size(), repeated.kernel.data(), repeated.kernel.size());
    record.identity.kernel = recorder_.Intern({name.data(), op.size() + repeated.kernel.size()});
    record.sample_count = 0;
    AddEstimate(repeated.time_ns, repeated.bytes, repeated.bytes, &record);
    AddModelFlop(Cost{.model_flop = repeated.flop, .product_flop = repeated.product ? repeated.flop : 0}, &record);
    record.AddSample(kFlopFirst + static_cast<uint32_t>(repeated.precision), repeated.flop);
    return {record, repeated.launches};
  }

  estimate::NameCache::Ids Names(const OpCall& call) noexcept {
    const uint64_t hash = estimate::HashSignature(call);
    estimate::NameCache::Ids ids;
    if (names_.Find(hash, ids)) return ids;
    std::array<char, estimate::kMaxSignature> buffer;
    ids.kernel = recorder_.Intern(call.name);
    ids.signature = recorder_.Intern(estimate::FormatSignature(call, buffer));
    if (ids.kernel != 0 && ids.signature != 0) names_.Store(hash, ids);
    return ids;
  }

  void Report() noexcept {
    unknown_.Report();
    ReportMemory(&memory_, recorder_);
    ReportVirtualGpu();
  }

  // Whether the program uses a virtual GPU is known when it has launched something.
  void ReportVirtualGpu() noexcept try {
    if (!UsesVirtualGpu() || virtual_gpu_reported_.exchange(true)) return;
    RunFacts facts;
    facts.collector = kVirtualGpuCollector;
    recorder_.UpdateFacts(facts);
  } catch (const std::exception&) {
    recorder_.CountDrop("the virtual GPU's name");
  }

  const Gpu& gpu_;
  Recorder& recorder_;
  // Threads of the program read these for each operator; the thread that stops the source, or that sees the program's
  // policy, writes them. Relaxed: each is a value by itself, and one that is late counts for the next operator.
  std::atomic<bool> stopped_{false};
  std::atomic<bool> uses_memory_{false}, refused_{false};
  std::atomic<bool> convolution_tf32_{estimate::PrecisionPolicy{}.convolution_tf32};
  std::atomic<bool> matmul_tf32_{estimate::PrecisionPolicy{}.matmul_tf32};
  estimate::NameCache names_;
  MemoryWatch memory_;
  estimate::LaunchedKernels kernels_{recorder_};
  estimate::Work work_{recorder_};
  estimate::CompiledKernels compiled_{recorder_};
  estimate::UnknownOperators unknown_{recorder_};
  // What was said once already. Any thread exchanges it, so that one of them says it.
  std::atomic<bool> virtual_gpu_reported_{false}, loaded_reported_{false}, masked_reported_{false};
  // The ids of metrics that most runs do not need; 0: not defined yet. Any thread writes and reads them. Relaxed: the
  // recorder gives the same id for the same name, so two threads write the same.
  std::atomic<uint32_t> pcie_metric_{0}, nvlink_metric_{0};
};

// The estimator that is told of the virtual GPU's events. MakeEstimator releases it, the threads that launch acquire
// it.
constinit std::atomic<Estimator*> g_watching{nullptr};

// Calls a member function of that estimator with the event, by reference where the driver gives a pointer.
template <auto on_event, typename Event>
void Tell(Event event) {
  Estimator* const watching = g_watching.load(std::memory_order_acquire);
  if (watching == nullptr) return;
  if constexpr (requires { (watching->*on_event)(*event); }) {
    (watching->*on_event)(*event);
  } else {
    (watching->*on_event)(event);
  }
}

int WritePlace(char* text, size_t size) {
  const ProgramLineFunction line = g_program_line.load(std::memory_order_acquire);
  return line != nullptr && line(text, size) ? 1 : 0;
}

constexpr rfinject_virtual_observer kObserver = {.launch = &Tell<&Estimator::OnLaunch>,
                                                 .replay = &Tell<&Estimator::OnReplay>,
                                                 .loaded_launch = &Tell<&Estimator::OnLoadedLaunch>,
                                                 .collective = &Tell<&Estimator::OnCollective>,
                                                 .memory = &Tell<&Estimator::OnMemory>,
                                                 .place = &WritePlace};

void ReportUnknownGpu(const std::string& name, Recorder& recorder) {
  std::array<const Gpu*, 4> buffer;
  std::string nearest;
  for (const Gpu* gpu : NearestGpus(name, buffer)) {
    if (!nearest.empty()) nearest += ", ";
    nearest += gpu->name;
  }
  recorder.ReportDiagnostic(Severity::kError, "estimate-unknown-gpu",
                            "no GPU \"" + name + "\" in the table; nearest: " + nearest,
                            "'rfinject gpus' lists every name");
}

void TellFacts(const Gpu& gpu, Recorder& recorder) {
  RunFacts facts;
  facts.source = SourceKind::kEstimated;
  facts.estimated_gpu = gpu.name;
  facts.collector = "estimator";
  DeviceFacts device;
  device.name = gpu.name;
  device.chip = gpu.chip;
  device.cc_major = static_cast<uint32_t>(gpu.cc_major);
  device.cc_minor = static_cast<uint32_t>(gpu.cc_minor);
  device.sm_count = static_cast<uint32_t>(gpu.sm_count);
  device.sm_clock_khz = static_cast<uint64_t>(gpu.boost_hz / 1000);
  device.l2_bytes = static_cast<uint64_t>(gpu.l2_bytes);
  device.memory_bytes = gpu.memory_bytes;  // 0 where it is not known
  facts.device.push_back(device);
  recorder.UpdateFacts(facts);
}

}  // namespace

Source* MakeEstimator(const Settings& settings, Recorder& recorder) noexcept try {
  const Gpu* gpu = FindGpu(settings.estimate);
  if (gpu == nullptr) {
    ReportUnknownGpu(settings.estimate, recorder);
    return nullptr;
  }
  if (!HasEstimates(*gpu)) {
    recorder.ReportDiagnostic(
        Severity::kError, "estimate-unknown-gpu",
        "nothing is estimated for \"" + settings.estimate + "\": only recordings of it are read",
        "'rfinject import' takes recordings of torch.profiler");
    return nullptr;
  }
  auto* estimator = new Estimator(*gpu, recorder);  // leaked on purpose: threads may call it until the very end
  TellFacts(*gpu, recorder);
  g_watching.store(estimator, std::memory_order_release);
  ObserveVirtualGpu(&kObserver);
  return estimator;
} catch (const std::exception&) {
  recorder.ReportDiagnostic(Severity::kError, "estimate-no-memory", "no memory for the estimator");
  return nullptr;
}

}  // namespace rfinject
