#include "collector/cupti/time_window.h"

#include <utility>

#include "collector/cupti/condition_report.h"
#include "collector/cupti/context_scope.h"

namespace rfinject::cupti {
namespace {

// For how many steps another owner of CUPTI's activity records is given time to come back: torch.profiler prepares
// some steps ahead of those that it records, and its next cycle may follow at once.
constexpr uint64_t kQuietSteps = 64;
// After this many windows in a row whose records another tool got, kernel times are given up.
constexpr uint32_t kMaxTakenWindows = 3;

}  // namespace

void TimeWindow::Open() {
  if (!api_.has(kActivity)) return;
  times_ = new KernelTimes(api_, keys_);
  if (const int result = times_->Register(); result != CUPTI_SUCCESS) {
    ReportResult(recorder_, "cuptiActivityRegisterCallbacks", result);
    times_ = nullptr;
  }
}

TimeWindow::Turn TimeWindow::TurnIn(uint64_t step, bool profiles) {
  if (profiles) {
    quiet_until_ = step + kQuietSteps;
    if (!std::exchange(profiler_reported_, true)) {
      recorder_.ReportDiagnostic(Severity::kInfo, "program-profiler",
                                 "the program runs torch.profiler; no counters or times are taken meanwhile");
    }
  }
  if (quiet_until_ == 0) return Turn::kOurs;
  if (step < quiet_until_) return Turn::kTheirs;
  quiet_until_ = 0;
  if (times_ == nullptr) return Turn::kOurs;
  const int result = times_->TakeBack();
  if (taken_windows_ >= kMaxTakenWindows) {
    ReportCondition(recorder_, ConditionId::kActivityTaken);
    return Turn::kLost;
  }
  if (result != CUPTI_SUCCESS) {
    ReportResult(recorder_, "taking the activity records back", result);
    return Turn::kLost;
  }
  return Turn::kOurs;
}

bool TimeWindow::Arm() {
  if (const int result = times_->Begin(); result != CUPTI_SUCCESS) {
    ReportResult(recorder_, "cuptiActivityEnable", result);
    return false;
  }
  tap_.times_log().Open(LaunchLog::Mode::kTiming, nullptr, contexts_.first()->expected_launches());
  return true;
}

TimeWindow::Reading TimeWindow::Read(uint64_t step, bool profiles) {
  Reading reading;
  std::vector<LaunchLog::Entry> entries;
  tap_.times_log().Close(&entries);
  if (times_ == nullptr) return reading;
  if (profiles || (!entries.empty() && times_->OthersHaveIt())) {
    // Ending the window in order would switch off what the other has switched on.
    times_->Leave();
    if (!profiles) ++taken_windows_;
    quiet_until_ = step + kQuietSteps;
    return reading;
  }
  // The step's kernels must be finished, or the records of running ones would be lost. This happens once in many
  // steps.
  contexts_.ForEach([this](const CountedContext& one) {
    if (api_.cuCtxSynchronize == nullptr || one.context() == nullptr) return;
    const ContextScope scope(api_, one.context());
    if (scope.ok()) api_.cuCtxSynchronize();
  });
  std::vector<KernelTimes::Record> records;
  uint64_t invalid = 0, dropped = 0;
  if (const int result = times_->End(!entries.empty(), &records, &invalid, &dropped); result != CUPTI_SUCCESS) {
    ReportResult(recorder_, "reading the times of a step", result);
    reading.lost = true;
    return reading;
  }
  contexts_.ForEach([&](CountedContext& one) { one.NoteLaunches(entries.size()); });
  if (invalid != 0) recorder_.CountDrop("kernel records without a time", invalid);
  if (dropped != 0) recorder_.CountDrop("kernel records that CUPTI dropped", dropped);
  if (!entries.empty() && records.empty()) {
    // Another tool came into the window and got our buffers. Once can be an accident.
    ++taken_windows_;
    quiet_until_ = step + kQuietSteps;
    return reading;
  }
  if (!records.empty()) taken_windows_ = 0;
  recorder_.NoteBusy(BusyNs(records));
  TimeJoin join = JoinTimes(entries, records, tap_.graphs(), keys_);
  for (const TimeJoin::Check& check : join.checks) tap_.graphs().Settle(check.number, check.as_captured);
  for (const TimeJoin::Launch& launch : join.launches) samples_.AddTime(launch.key, launch.ns);
  samples_.Flush();
  if (join.strangers != 0) recorder_.CountDrop("kernel records without a launch", join.strangers);
  reading.keys = std::move(join.keys);
  reading.valid = true;
  return reading;
}

bool TimeWindow::Lose() noexcept {
  const KernelTimes* lost = std::exchange(times_, nullptr);
  return lost != nullptr && lost->still_open();
}

}  // namespace rfinject::cupti
