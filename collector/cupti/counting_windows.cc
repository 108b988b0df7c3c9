// Our thread in a window: it samples the device, and reads times and samples.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "collector/arming/split_mix.h"
#include "collector/cupti/condition_report.h"
#include "collector/cupti/counting.h"
#include "collector/cupti/launch_waits.h"

namespace rfinject::cupti {
namespace {

// What a window costs the program, for the budget: records of its kernels, and the calls between its steps.
constexpr uint64_t kWindowNs = 500'000;
constexpr uint64_t kWindowsOfAnyKind = 2;
// A window whose records are not there after so long is read as it is.
constexpr int64_t kLongestDrainNs = 5'000'000'000;
constexpr uint64_t kOfPlaces = 4;  // what is drawn: where in its window the device is sampled

}  // namespace

void Counting::ServeWindow() {
  if (state_.load(std::memory_order_acquire) == Phase::kLogging) SampleInWindow();
  while (state_.load(std::memory_order_acquire) == Phase::kLogging) {
    if (Hurries()) return;
    WaitFor(50'000'000);
  }
  if (state_.load(std::memory_order_acquire) != Phase::kLogged) return;
  const int64_t deadline = MonotonicNs() + kLongestDrainNs;
  const auto poll = std::clamp<int64_t>(static_cast<int64_t>(pace_.step_ns() / 2), 500'000, 20'000'000);
  bool all = false;
  while (!(all = window_.Poll()) && !Hurries() && MonotonicNs() < deadline) WaitFor(poll);
  if (!Hurries()) ReadWindow();
  // Whether another one is wanted at once is not known yet (Count).
  windows_.hurry.store(false);
  state_.store(Phase::kIdle, std::memory_order_release);
}

// Samples the device while the GPU does what is logged, which may be long after the host has launched it: the last
// window has shown how long.
bool Counting::SampleInWindow() {
  if (windows_.lag_ns < 0 || !costs_.Allows(kWindowNs)) return false;
  const auto span = static_cast<int64_t>(arming::Schedule::kStepsOfWindow * pace_.step_ns());
  bool any = false;
  int64_t length = 0;
  {
    if (!calls_.LockFor(kStepLockWaitNs)) return false;
    const HeldLock held(calls_);
    for (const Device& device : devices_) {
      if (device.bytes == nullptr || !device.bytes->is_open()) continue;
      any = true;
      length = std::max(length, static_cast<int64_t>(device.bytes->window_ns()));
    }
  }
  if (!any) return false;
  // The golden ratio's multiples fill a step evenly, however many windows there are.
  constexpr double kGolden = 0.6180339887498949;
  const double random =
      static_cast<double>(arming::RandomAt(arming::ScheduleOptions{}.seed, 0, kOfPlaces) >> 11) * 0x1p-53;
  const double turns = random + kGolden * static_cast<double>(windows_.count);
  const int64_t room = std::max<int64_t>(0, span - length);
  const int64_t begin = windows_.began_unix_ns.load() + windows_.lag_ns +
                        static_cast<int64_t>(static_cast<double>(room) * (turns - std::floor(turns)));
  constexpr auto kAfterStopNs = static_cast<int64_t>(PmSampler::kAfterStopNs);
  length = std::min(length, std::max<int64_t>(span, 1'000'000) + kAfterStopNs);
  const auto sleep = [this](int64_t until) {
    for (int64_t left = until - UnixNs(); left > 0 && !Hurries(); left = until - UnixNs()) {
      const timespec pause = {0, std::min<int64_t>(left, 10'000'000)};
      nanosleep(&pause, nullptr);
    }
  };
  sleep(begin);
  const auto each = [this](auto call) {
    contexts_.ForEach([&](CountedContext& context) {
      Unsafely(context, [&] {
        calls_.AssertHeld();
        for (Device& device : devices_) {
          if (device.context == &context && device.bytes != nullptr && device.bytes->is_open()) call(&device);
        }
      });
    });
  };
  each([&](Device* device) {
    calls_.AssertHeld();
    if (const int result = device->bytes->Start(); result != CUPTI_SUCCESS) {
      LoseBytes(device, "starting to sample", result);
    }
  });
  sleep(UnixNs() + length);
  each([&](Device* device) {
    calls_.AssertHeld();
    if (const int result = device->bytes->Stop(); result != CUPTI_SUCCESS) LoseBytes(device, "sampling", result);
  });
  return true;
}

void Counting::LoseBytes(Device* device, const char* what, int result) {
  device->bytes->Close();
  if (Busy(what, result)) return;
  ReportResult(recorder_, what, result);
  device->bytes = nullptr;
}

void Counting::ReadWindow() {
  TimeJoin join;
  ++windows_.count;
  if (window_.Collect(/*all=*/true, &join)) {
    const std::vector<GpuAdvance> advances = AdvancesOf(join, windows_.data_waits);
    AddTimes(join, advances);
    AddSteps(join, advances);
  }
  for (size_t i = 0; i < opened_.devices; ++i) {
    Device* const device = DeviceAt(i);
    if (device == nullptr) continue;
    if (device->bytes != nullptr) {
      Unsafely(*device->context, [&] {
        calls_.AssertHeld();
        const int result = device->bytes->Join(join, windows_.step.load());
        if (result != CUPTI_SUCCESS) LoseBytes(device, "reading samples", result);
      });
      if (device->bytes != nullptr && device->bytes->SeesNothing()) ReportZeros();
    }
    if (device->ranges == nullptr) continue;
    for (const TimeJoin::Key& key : join.keys) {
      if (key.in_graph) continue;
      device->ranges->AddKey(key.key, static_cast<uint64_t>(key.ns / key.launches));
      if (device->bytes != nullptr && device->bytes->SawNoTensor(key.key)) device->ranges->SetNoTensor(key.key);
    }
  }
  costs_.Keep(ranges_.count, recorder_);
}

void Counting::AddTimes(const TimeJoin& join, const std::vector<GpuAdvance>& advances) {
  CounterSamples samples(recorder_, keys_);
  // Steps ascend, as the sums by step need them.
  std::vector<uint32_t> order(join.launches.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return join.launches[a].step < join.launches[b].step; });
  // Times of windows that were not drawn are in no mean, but where there are no others yet.
  const bool counts = !windows_.extra.load() || windows_.count <= kWindowsOfAnyKind;
  const uint32_t idle_before = recorder_.DefineMetric(kMetricIdleBefore, "ns", 1);
  for (const uint32_t i : counts ? order : std::vector<uint32_t>()) {
    const TimeJoin::Launch& launch = join.launches[i];
    samples.AddSample(launch.key, launch.step, kTime, launch.ns);
    if (advances[i].known) samples.AddSample(launch.key, launch.step, idle_before, advances[i].idle_ns);
  }
  // Of how long the kernel is that runs in the middle of the time.
  std::vector<uint64_t> lengths;
  uint64_t all = 0, sum = 0;
  for (const TimeJoin::Ran& ran : join.ran) {
    if (ran.transfer) continue;
    lengths.push_back(ran.end_ns - ran.start_ns);
    all += lengths.back();
  }
  std::sort(lengths.begin(), lengths.end());
  if (!lengths.empty()) windows_.longest_ns = lengths.back();
  for (const uint64_t length : lengths) {
    sum += length;
    // A quarter of the time is of shorter kernels.
    if (sum * 4 < all) continue;
    windows_.kernel_ns = length;
    break;
  }
  if (join.ran.empty()) return;
  const int64_t lag = static_cast<int64_t>(join.ran.front().start_ns) - windows_.began_unix_ns.load();
  constexpr int64_t kLongest = 60'000'000'000;
  windows_.lag_ns = lag > 0 && lag < kLongest ? lag : 0;
  NoteLaunchesBehind(LaunchesBehind(join, static_cast<uint64_t>(windows_.ended_unix_ns.load()), windows_.lag_ns));
}

void Counting::AddSteps(const TimeJoin& join, const std::vector<GpuAdvance>& advances) {
  std::map<uint64_t, trace::GpuStep> steps;
  std::map<uint64_t, uint64_t> ends;
  for (size_t i = 0; i < join.launches.size(); ++i) {
    trace::GpuStep& of = steps[join.launches[i].step];
    of.step = join.launches[i].step;
    of.busy_ns += advances[i].busy_ns;
    of.data_idle_ns += advances[i].data_idle_ns;
    ++of.launches;
  }
  for (const TimeJoin::Ran& ran : join.ran) {
    if (ran.launch == TimeJoin::kNoLaunch) continue;
    uint64_t& end = ends[join.launches[ran.launch].step];
    end = std::max(end, ran.end_ns);
  }
  for (auto& [step, of] : steps) {
    const auto before = ends.find(step - 1);
    if (before != ends.end() && ends[step] > before->second) {
      of.period_ns = ends[step] - before->second;
      pace_.NoteOnGpu(of.period_ns);
    }
    recorder_.Keep(of);
  }
}

}  // namespace rfinject::cupti
