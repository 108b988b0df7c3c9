#include "collector/estimate/launched_kernels.h"

#include <array>
#include <exception>
#include <string>

#include "collector/kernel_name.h"
#include "collector/launch_origin.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::estimate {
namespace {

constexpr uint32_t kMaxKernelMetrics = 4096;  // a trace of twice as many metrics is taken for a damaged one

// Kernels that this thread has launched in operators since the last one that was recorded: they are that one's next.
struct OfThread {
  // Most operators launch one kind of kernel or two, sorting ten; a thread's memory in a library that is loaded late
  // is dear. What is more than these has no name.
  static constexpr uint32_t kNamed = 8;
  std::array<const char*, kNamed> names{};  // live as long as the process
  std::array<uint32_t, kNamed> counts{};
  uint32_t size = 0, others = 0;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local OfThread t_launched;

}  // namespace

void LaunchedKernels::Note(const char* name) noexcept {
  if (CurrentSite().op == 0 || !recorder_.InWindow()) return;
  OfThread& launched = t_launched;
  uint32_t at = 0;
  while (at < launched.size && launched.names[at] != name) ++at;
  if (at == OfThread::kNamed) {
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

void LaunchedKernels::AddTo(LaunchRecord* record) noexcept {
  OfThread& launched = t_launched;
  while (launched.size + launched.others != 0 && record->sample_count < kMaxSamplesPerRecord) {
    const bool named = launched.size != 0;
    uint32_t& count = named ? launched.counts[launched.size - 1] : launched.others;
    const uint32_t metric = MetricOf(named ? launched.names[launched.size - 1] : "(other kernels)");
    if (metric != 0) record->AddSample(metric, count);
    count = 0;
    if (named) --launched.size;
  }
}

void LaunchedKernels::RecordRest(const LaunchIdentity& identity) noexcept {
  while (t_launched.size + t_launched.others != 0) {
    LaunchRecord record;
    record.identity = identity;
    record.launches = 0;  // they are counted already, as one
    AddTo(&record);
    if (record.sample_count != 0) recorder_.Record(record);
  }
}

uint32_t LaunchedKernels::MetricOf(const char* name) noexcept try {
  const auto hash = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(name)) * 0x9e3779b97f4a7c15u;
  NameCache::Ids ids;
  if (metrics_.Find(hash, ids)) return ids.kernel;
  if (metric_count_.fetch_add(1, std::memory_order_relaxed) >= kMaxKernelMetrics) {
    recorder_.CountDrop("names of kernels below operators");
    return 0;
  }
  ids.kernel = recorder_.DefineMetric(std::string(kMetricKernelPrefix) + ReadableKernelName(name), "launch", 1);
  if (ids.kernel != 0) metrics_.Store(hash, ids);
  return ids.kernel;
} catch (const std::exception&) {
  return 0;
}

}  // namespace rfinject::estimate
