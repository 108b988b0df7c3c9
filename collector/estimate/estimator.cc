#include "collector/estimate/estimator.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "collector/estimate/collective.h"
#include "collector/estimate/cost.h"
#include "collector/estimate/flop.h"
#include "collector/estimate/operands.h"
#include "collector/estimate/signature.h"
#include "collector/estimate/virtual_board.h"
#include "collector/kernel_name.h"
#include "collector/launch_origin.h"
#include "collector/memory_peak.h"
#include "collector/op_call.h"
#include "collector/run_facts.h"
#include "collector/step_end.h"
#include "collector/sync.h"
#include "collector/virtual_gpu.h"
#include "gpus/gpus.h"
#include "proto/wire/metric_names.h"
#include "virtual_gpu/virtual_gpu.h"

namespace rfinject {
namespace {

using estimate::Cost;

// Interned names by the hash of (operator, signature), shared by all threads without a lock. An entry is two words,
// written and read one at a time; the first is the hash XORed with the second, so an entry of which two threads wrote
// one word each does not match any hash and reads as a miss (Hyatt's transposition table).
class NameCache {
 public:
  struct Ids {
    uint32_t kernel = 0;
    uint32_t signature = 0;
  };

  bool Find(uint64_t hash, Ids& ids) const {
    const Entry& entry = entries_[hash % kEntries];
    const uint64_t packed = entry.ids.load(std::memory_order_relaxed);
    if (packed == 0 || (entry.check.load(std::memory_order_relaxed) ^ packed) != hash) return false;
    ids = {static_cast<uint32_t>(packed >> 32), static_cast<uint32_t>(packed)};
    return true;
  }

  void Store(uint64_t hash, Ids ids) {
    const uint64_t packed = static_cast<uint64_t>(ids.kernel) << 32 | ids.signature;
    Entry& entry = entries_[hash % kEntries];
    entry.ids.store(packed, std::memory_order_relaxed);
    entry.check.store(hash ^ packed, std::memory_order_relaxed);
  }

 private:
  // A training step of the larger torchvision models has some hundred different signatures.
  static constexpr size_t kEntries = 8192;
  struct Entry {
    std::atomic<uint64_t> ids{0};
    std::atomic<uint64_t> check{0};
  };
  std::array<Entry, kEntries> entries_;
};

// The optimizers keep their step counters in 0-dim tensors on the host (torch/optim, unless capturable=True), and
// there is nothing else 0-dim in an optimizer's step: no kernel runs for those on a GPU.
bool IsStepCounter(const OpCall& call, const Site& site) {
  return site.phase == Phase::kOptimizer && !call.tensors.empty() &&
         std::ranges::all_of(call.tensors, [](const TensorView& tensor) { return tensor.rank == 0; });
}

// A data loader collates its batches on the host, in the main process where it has no workers. Without a virtual GPU
// the copies to the device, which are of the same phase on a GPU, do not exist.
bool IsCollation(const Site& site) { return site.phase == Phase::kData && site.layer == 0; }

// Kernels that this thread has launched in operators since the last one that was recorded: they are that one's next.
struct LaunchedKernels {
  // Most operators launch one kind of kernel or two, sorting ten; a thread's memory in a library that is loaded late
  // is dear. What is more than these has no name.
  static constexpr uint32_t kNamed = 8;
  std::array<const char*, kNamed> names{};  // live as long as the process
  std::array<uint32_t, kNamed> counts{};
  uint32_t size = 0, others = 0;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local LaunchedKernels t_launched;

// The graph that this thread launches has held an optimizer's step so far.
[[gnu::tls_model("initial-exec")]] constinit thread_local bool t_optimizer_stepped = false;

class Estimator final : public Source {
 public:
  Estimator(const Gpu& gpu, Recorder& recorder) : gpu_(gpu), recorder_(recorder) {}

  bool wants_ops() const noexcept override { return true; }

  bool wants_ops_outside_window() const noexcept override { return VirtualGpuCaptures(); }

  void OnOp(const OpCall& call, const Site& site) noexcept override {
    if (stopped_.load(std::memory_order_relaxed)) return;
    // Where the program uses a GPU, what it does on the host is no GPU's work. Else all of it stands for the GPU's.
    if (UsesVirtualGpu() ? call.on_host : IsCollation(site)) return;
    if (IsStepCounter(call, site)) return;
    const Cost cost = estimate::EstimateCost(call, gpu_, policy());
    if (!cost.kernel) return;
    if (!cost.known && estimate::IsFloating(estimate::ResultType(call))) NoteUnknown(call.name);

    const NameCache::Ids names = Names(call);
    Launches launches{.record = {}, .times = 1};
    LaunchRecord& record = launches.record;
    record.identity.kernel = names.kernel;
    record.identity.signature = names.signature;
    record.identity.site = site;
    if (site.op == 0) record.identity.site.op = names.kernel;
    const auto add = [&](uint32_t metric, uint64_t value) {
      record.samples[record.sample_count++] = {metric, value};
    };
    add(kTime, cost.time_ns);
    add(kModelFlop, cost.model_flop);
    add(kDramBytes, cost.dram_bytes);
    add(kCompulsoryBytes, cost.compulsory_bytes);
    if (cost.pcie_bytes != 0) add(LinkMetric(kMetricPcieBytes), cost.pcie_bytes);
    for (size_t p = 0; p < kPrecisionCount; ++p) {
      if (cost.executed_flop[p] != 0 && record.sample_count < kMaxSamplesPerRecord) {
        add(kFlopFirst + static_cast<uint32_t>(p), cost.executed_flop[p]);
      }
    }
    const bool captured = VirtualGpuCaptured();
    if (!captured) AddKernels(&record);
    // Records are large: only what repeats launches has an array of them.
    if (std::ranges::all_of(cost.repeated, [](const auto& repeated) { return repeated.launches == 0; })) {
      Happen(std::span(&launches, 1), cost.time_ns);
    } else {
      HappenRepeatedly(call.name, cost, launches);
    }
    if (!captured) RecordOtherKernels(record.identity);
  }

  // What is launched outside of operators has a row of its own, or none.
  void OnKernelName(const char* name) noexcept {
    if (stopped_.load(std::memory_order_relaxed) || CurrentSite().op == 0 || !recorder_.InWindow()) return;
    LaunchedKernels& launched = t_launched;
    uint32_t at = 0;
    while (at < launched.size && launched.names[at] != name) ++at;
    if (at == LaunchedKernels::kNamed) {
      ++launched.others;
      return;
    }
    if (at == launched.size) {
      launched.names[at] = name;
      launched.counts[at] = 0;
      ++launched.size;
    }
    ++launched.counts[at];
  }

  // The kernel is taken to read or write once what its arguments point to; what it
  // computes is not known. An operator that launches such kernels is costed by its operands.
  void OnLoadedLaunch(const rfinject_virtual_loaded_launch& launch) noexcept {
    if (stopped_.load(std::memory_order_relaxed)) return;
    const Site site = CurrentSite();
    if (site.op != 0) return;
    uint64_t bytes = 0;
    const std::span words(launch.words, launch.word_count);
    for (size_t i = 0; i < words.size(); ++i) {
      const auto before = words.first(i);
      if (std::ranges::find(before, words[i]) != before.end()) continue;
      bytes = estimate::SaturatingAdd(bytes, memory_.BytesAt(static_cast<uint32_t>(launch.device), words[i]));
    }
    LaunchRecord record;
    record.identity.kernel = recorder_.Intern(launch.name);
    record.identity.site = site;
    record.identity.site.op = record.identity.kernel;
    std::ranges::copy(launch.grid, record.identity.grid.begin());
    std::ranges::copy(launch.block, record.identity.block.begin());
    record.identity.dynamic_shared_bytes = launch.shared_bytes;
    const uint64_t ns = estimate::EstimateTimeNs({}, bytes, gpu_);
    for (const Sample& sample :
         {Sample{kTime, ns}, Sample{kModelFlop, 0}, Sample{kDramBytes, bytes}, Sample{kCompulsoryBytes, bytes}}) {
      record.samples[record.sample_count++] = sample;
    }
    if (!loaded_reported_.exchange(true)) {
      recorder_.ReportDiagnostic(
          Severity::kInfo, "compiled-kernels",
          "kernels that were compiled while the program ran (Triton's) are costed by the bytes "
          "that their arguments' memory holds, each once; their FLOP count as 0");
    }
    Happen({{Launches{record, 1}}}, ns);
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
    for (const Sample& sample : {Sample{kTime, ns}, Sample{kModelFlop, 0}, Sample{kDramBytes, in_memory},
                                 Sample{kCompulsoryBytes, in_memory}}) {
      record.samples[record.sample_count++] = sample;
    }
    if (over_link != 0) {
      record.samples[record.sample_count++] = {LinkMetric(nvlink ? kMetricNvlinkBytes : kMetricPcieBytes), over_link};
    }
    Happen({{Launches{record, 1}}}, ns);
  }

  void OnReplay(uint64_t what) noexcept {
    if (stopped_.load(std::memory_order_relaxed)) return;
    if (what == 0) {
      if (std::exchange(t_optimizer_stepped, false)) EndStepOfProgram();
      return;
    }
    CapturedWork work;
    {
      if (!captured_lock_.LockFor(kLockWaitNs)) return recorder_.CountDrop("launches of CUDA graphs");
      const HeldLock held(captured_lock_);
      if (what > captured_.size()) return;
      work = captured_[what - 1];
    }
    t_optimizer_stepped |= IsOptimizer(work);
    for (const Launches& launches : work) Record(launches);
    recorder_.MayWrite();
  }

  void OnPolicy(const PolicyFacts& facts) noexcept override {
    const estimate::PrecisionPolicy policy = estimate::PolicyFrom(facts);
    convolution_tf32_.store(policy.convolution_tf32, std::memory_order_relaxed);
    matmul_tf32_.store(policy.matmul_tf32, std::memory_order_relaxed);
    ReportVirtualGpu();
  }

  bool HasStepped() noexcept override { return !optimizer_captured_.exchange(false, std::memory_order_relaxed); }

  void OnStepEnd(uint64_t) noexcept override {
    ReportUnknown();
    ReportMemory();
    ReportVirtualGpu();
  }

  void OnMemory(const rfinject_virtual_memory& event) noexcept {
    if (stopped_.load(std::memory_order_relaxed)) return;
    const Site site = event.bytes > 0 ? CurrentSite() : Site{};
    const auto device = static_cast<uint32_t>(event.device);
    if (event.refused != 0) {
      memory_.OnRefused(device, static_cast<uint64_t>(event.bytes), site);
      ReportMemory();
    } else {
      memory_.OnMemory(device, event.address, event.bytes, event.reserved, site, recorder_.CurrentStep());
    }
  }

  void Stop() noexcept override {
    ReportUnknown();
    ReportMemory();
    ReportVirtualGpu();
    stopped_.store(true, std::memory_order_relaxed);
  }

 private:
  static constexpr size_t kMaxUnknown = 256;
  static constexpr int kMaxReports = 8;
  static constexpr uint32_t kMaxKernelMetrics = 4096;  // a trace of twice as many metrics is taken for a damaged one
  static constexpr size_t kMaxCaptured = 1 << 17;      // operators, about 70 MB

  estimate::PrecisionPolicy policy() const {
    return {convolution_tf32_.load(std::memory_order_relaxed), matmul_tf32_.load(std::memory_order_relaxed)};
  }

  // What was launched below the operator, as far as its record has room for more samples, which is all of it mostly.
  void AddKernels(LaunchRecord* record) noexcept {
    LaunchedKernels& launched = t_launched;
    while (launched.size + launched.others != 0 && record->sample_count < kMaxSamplesPerRecord) {
      const bool named = launched.size != 0;
      uint32_t& count = named ? launched.counts[launched.size - 1] : launched.others;
      const uint32_t metric = KernelMetric(named ? launched.names[launched.size - 1] : "(other kernels)");
      if (metric != 0) record->samples[record->sample_count++] = {metric, count};
      count = 0;
      if (named) --launched.size;
    }
  }

  // What is left, for the operator that was recorded as `identity`.
  void RecordOtherKernels(const LaunchIdentity& identity) noexcept {
    while (t_launched.size + t_launched.others != 0) {
      LaunchRecord record;
      record.identity = identity;
      record.launches = 0;  // they are counted already, as one
      AddKernels(&record);
      if (record.sample_count != 0) recorder_.Record(record);
    }
  }

  // By the name's address; 0 where memory ran out.
  uint32_t KernelMetric(const char* name) noexcept try {
    const auto hash = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(name)) * 0x9e3779b97f4a7c15u;
    NameCache::Ids ids;
    if (kernel_metrics_.Find(hash, ids)) return ids.kernel;
    if (kernel_metric_count_.fetch_add(1, std::memory_order_relaxed) >= kMaxKernelMetrics) {
      recorder_.CountDrop("names of kernels below operators");
      return 0;
    }
    ids.kernel = recorder_.DefineMetric(std::string(kMetricKernelPrefix) + ReadableKernelName(name), "launch", 1);
    if (ids.kernel != 0) kernel_metrics_.Store(hash, ids);
    return ids.kernel;
  } catch (const std::exception&) {
    return 0;
  }

  // Defined where something goes over the link: most runs have no such bytes.
  uint32_t LinkMetric(std::string_view name) noexcept {
    std::atomic<uint32_t>& id = name == kMetricPcieBytes ? pcie_metric_ : nvlink_metric_;
    uint32_t known = id.load(std::memory_order_relaxed);
    if (known == 0) id.store(known = recorder_.DefineMetric(name, "byte", 1), std::memory_order_relaxed);
    return known;
  }

  // `times` launches that are alike.
  struct Launches {
    LaunchRecord record;
    uint64_t times = 0;
  };
  // The launches of one operator: those of itself, and those that it repeats.
  using CapturedWork = std::array<Launches, 3>;

  static bool IsOptimizer(std::span<const Launches> work) {
    return work[0].record.identity.site.phase == Phase::kOptimizer;
  }

  static constexpr int64_t kLockWaitNs = 1'000'000'000;

  // Records `work`, which takes `ns` of the GPU's time; what is captured is kept and recorded whenever the graph is
  // launched.
  void Happen(std::span<const Launches> work, uint64_t ns) noexcept {
    if (VirtualGpuCaptured()) {
      Keep(work, ns);
      return;
    }
    if (IsOptimizer(work)) optimizer_captured_.store(false, std::memory_order_relaxed);
    TellVirtualGpu(ns);
    for (const Launches& launches : work) Record(launches);
    recorder_.MayWrite();
  }

  void Record(const Launches& launches) noexcept {
    if (launches.times == 0) return;
    NoteOriginOnce(launches.record.identity, recorder_);
    // A long sequence makes more launches than a ring holds.
    constexpr uint64_t kBetweenTurns = 1024;
    for (uint64_t i = 0; i < launches.times; ++i) {
      recorder_.Record(launches.record);
      if (i % kBetweenTurns == kBetweenTurns - 1) recorder_.MayWrite();
    }
  }

  void Keep(std::span<const Launches> work, uint64_t ns) noexcept try {
    if (IsOptimizer(work)) optimizer_captured_.store(true, std::memory_order_relaxed);
    CapturedWork kept;
    std::ranges::copy(work, kept.begin());
    uint64_t what = 0;
    {
      if (!captured_lock_.LockFor(kLockWaitNs)) return recorder_.CountDrop("operators in a CUDA graph");
      const HeldLock held(captured_lock_);
      // The limit keeps a program that captures again and again from filling our memory.
      if (captured_.size() >= kMaxCaptured) return recorder_.CountDrop("operators in CUDA graphs beyond the first");
      captured_.push_back(kept);
      what = captured_.size();
    }
    for (const Launches& launches : work) NoteOriginOnce(launches.record.identity, recorder_);
    TellVirtualGpuCaptured(ns, what);
  } catch (const std::exception&) {
    recorder_.CountDrop("operators in a CUDA graph");
  }

  // Of an operator that is itself `first` and repeats other launches.
  void HappenRepeatedly(std::string_view op, const Cost& cost, const Launches& first) noexcept {
    std::array<Launches, 1 + std::tuple_size_v<decltype(cost.repeated)>> work = {first};
    uint64_t ns = cost.time_ns;
    for (size_t i = 0; i < cost.repeated.size(); ++i) {
      work[1 + i] = RepeatedLaunches(op, cost.repeated[i], first.record);
      ns += work[1 + i].times * cost.repeated[i].time_ns;
    }
    Happen(work, ns);
  }

  // `record` is the operator's first launch.
  Launches RepeatedLaunches(std::string_view op, const estimate::RepeatedCost& repeated,
                            LaunchRecord record) noexcept {
    std::array<char, 128> name;
    if (repeated.launches == 0 || op.size() + repeated.kernel.size() > name.size()) return {};
    std::memcpy(name.data(), op.data(), op.size());
    std::memcpy(name.data() + op.size(), repeated.kernel.data(), repeated.kernel.size());
    record.identity.kernel = recorder_.Intern({name.data(), op.size() + repeated.kernel.size()});
    record.samples[0] = {kTime, repeated.time_ns};
    record.samples[1] = {kModelFlop, repeated.flop};
    record.samples[2] = {kDramBytes, repeated.bytes};
    record.samples[3] = {kCompulsoryBytes, repeated.bytes};
    record.samples[4] = {kFlopFirst + static_cast<uint32_t>(repeated.precision), repeated.flop};
    record.sample_count = 5;
    return {record, repeated.launches};
  }

  NameCache::Ids Names(const OpCall& call) noexcept {
    const uint64_t hash = estimate::HashSignature(call);
    NameCache::Ids ids;
    if (names_.Find(hash, ids)) return ids;
    std::array<char, estimate::kMaxSignature> buffer;
    ids.kernel = recorder_.Intern(call.name);
    ids.signature = recorder_.Intern(estimate::FormatSignature(call, buffer));
    if (ids.kernel != 0 && ids.signature != 0) names_.Store(hash, ids);
    return ids;
  }

  void ReportMemory() noexcept {
    MemoryPeak peak;
    if (!memory_.TakePeak(&peak)) return;
    recorder_.NoteMemoryPeak(peak);
    if (peak.refused.bytes != 0) ReportRefusal(std::move(peak));
  }

  // Reports what torch's own message does not know: which layers have the memory.
  void ReportRefusal(MemoryPeak peak) noexcept try {
    const auto place = [&](uint32_t layer, Phase phase) {
      const std::string name = recorder_.LayerName(layer);
      const std::string_view phase_name = kPhaseNames[static_cast<size_t>(phase)];
      return (name.empty() ? "no layer" : name) + ", " + std::string(phase_name);
    };
    const auto megabytes = [](uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; };
    constexpr size_t kNamed = 3;
    std::ranges::stable_sort(peak.parts, std::ranges::greater{}, &MemoryPart::bytes);
    std::string most;
    for (size_t i = 0; i < std::min(kNamed, peak.parts.size()); ++i) {
      most += (i == 0 ? ", most in " : "; ") + place(peak.parts[i].layer, peak.parts[i].phase) + " (" +
              megabytes(peak.parts[i].bytes) + ")";
    }
    recorder_.ReportDiagnostic(Severity::kWarning, "out-of-memory",
                               "the GPU's memory is full: " + megabytes(peak.refused.bytes) +
                                   " more were asked for in " + place(peak.refused.layer, peak.refused.phase) +
                                   ". At the peak " + megabytes(peak.allocated) + " were allocated" + most,
                               "'rfinject report --by memory' has all of it");
  } catch (const std::exception&) {
    recorder_.CountDrop("where the memory was when it was full");
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

  // Remembers an operator that the table does not know, to be reported with its step.
  void NoteUnknown(std::string_view name) noexcept try {
    if (!unknown_lock_.TryLock()) return;  // the next one of its name will be noted
    const HeldLock held(unknown_lock_);
    if (unknown_.size() >= kMaxUnknown || std::ranges::find(unknown_, name) != unknown_.end()) return;
    unknown_.emplace_back(name);
    unreported_.store(true, std::memory_order_relaxed);
  } catch (const std::exception&) {
    recorder_.CountDrop("operators without a FLOP rule: names");
  }

  // There is one line for all unknown operators of a step: a model with operators of its own has many.
  void ReportUnknown() noexcept try {
    if (!unreported_.load(std::memory_order_relaxed)) return;
    if (!unknown_lock_.TryLock()) return;
    const HeldLock held(unknown_lock_);
    std::string names;
    for (; reported_ < unknown_.size(); ++reported_) {
      if (!names.empty()) names += ", ";
      names += unknown_[reported_];
    }
    unreported_.store(false, std::memory_order_relaxed);
    if (names.empty() || reports_ >= kMaxReports) return;
    std::string id = "op-without-rule";
    if (reports_++ != 0) id += "-" + std::to_string(reports_);  // diagnostics are kept once per id
    recorder_.ReportDiagnostic(Severity::kInfo, id,
                               "no FLOP rule for " + names + ": bytes and time are estimated, FLOP count as 0");
  } catch (const std::exception&) {
    recorder_.CountDrop("operators without a FLOP rule: names");
  }

  const Gpu& gpu_;
  Recorder& recorder_;
  std::atomic<bool> stopped_{false};
  std::atomic<bool> convolution_tf32_{estimate::PrecisionPolicy{}.convolution_tf32};
  std::atomic<bool> matmul_tf32_{estimate::PrecisionPolicy{}.matmul_tf32};
  NameCache names_;
  NameCache kernel_metrics_;
  std::atomic<uint32_t> kernel_metric_count_{0};
  std::atomic<bool> virtual_gpu_reported_{false};
  MemoryWatch memory_;
  std::atomic<bool> loaded_reported_{false};
  std::atomic<uint32_t> pcie_metric_{0}, nvlink_metric_{0};  // 0: not defined yet

  std::atomic<bool> optimizer_captured_{false};  // an optimizer's step was captured and no graph was launched since
  Mutex captured_lock_;
  std::deque<CapturedWork> captured_ RFINJECT_GUARDED_BY(captured_lock_);

  std::atomic<bool> unreported_{false};
  Mutex unknown_lock_;  // tried, never waited for: a forked child may inherit it locked
  std::vector<std::string> unknown_ RFINJECT_GUARDED_BY(unknown_lock_);
  size_t reported_ RFINJECT_GUARDED_BY(unknown_lock_) = 0;
  int reports_ RFINJECT_GUARDED_BY(unknown_lock_) = 0;
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

constexpr rfinject_virtual_observer kObserver = {.kernel = &Tell<&Estimator::OnKernelName>,
                                                 .replay = &Tell<&Estimator::OnReplay>,
                                                 .loaded_launch = &Tell<&Estimator::OnLoadedLaunch>,
                                                 .collective = &Tell<&Estimator::OnCollective>,
                                                 .memory = &Tell<&Estimator::OnMemory>};

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
  if (const auto board = estimate::VirtualBoardOf(gpu)) device.memory_bytes = board->memory_bytes;
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
