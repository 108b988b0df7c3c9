#include "collector/cupti/kernel_window.h"

#include <algorithm>
#include <utility>

#include "collector/cupti/condition_report.h"

namespace rfinject::cupti {
namespace {

// For how many steps another owner of CUPTI's activity records is given time to come back: torch.profiler prepares
// some steps ahead of those that it records, and its next cycle may follow at once.
constexpr uint64_t kQuietSteps = 64;
// After this many windows in a row whose records another tool got, kernel times are given up.
constexpr uint32_t kMaxTakenWindows = 3;

}  // namespace

void KernelWindow::Open() {
  if (!api_.has(kActivity)) return;
  times_ = new KernelTimes(api_, tap_.subscription(), keys_);
  if (const int result = times_->Register(); result != CUPTI_SUCCESS) {
    ReportResult(recorder_, "cuptiActivityRegisterCallbacks", result);
    times_ = nullptr;
  }
}

KernelWindow::Turn KernelWindow::TurnIn(uint64_t step, bool profiles) {
  if (profiles) {
    quiet_until_ = step + kQuietSteps;
    if (!std::exchange(profiler_reported_, true)) {
      recorder_.ReportDiagnostic(Severity::kInfo, "program-profiler",
                                 "the program runs torch.profiler; no counters or times are taken meanwhile");
    }
  }
  const bool coming = coming_.exchange(false);
  if (taken_.exchange(false) || coming) quiet_until_ = step + kQuietSteps;
  if (quiet_until_ == 0) return Turn::kOurs;
  if (step < quiet_until_) return Turn::kTheirs;
  quiet_until_ = 0;
  if (times_ == nullptr) return Turn::kOurs;
  const int result = times_->TakeBack();
  if (taken_windows_.load() >= kMaxTakenWindows) {
    ReportCondition(recorder_, ConditionId::kActivityTaken);
    return Turn::kLost;
  }
  if (result != CUPTI_SUCCESS) {
    ReportResult(recorder_, "taking the activity records back", result);
    return Turn::kLost;
  }
  return Turn::kOurs;
}

bool KernelWindow::Begin(uint64_t step) {
  if (const int result = times_->Begin(); result != CUPTI_SUCCESS) {
    ReportResult(recorder_, "cuptiActivityEnable", result);
    return false;
  }
  tap_.log().Open(step, expected_ + expected_ / 4);
  return true;
}

KernelWindow::End KernelWindow::Finish(uint64_t step, bool profiles) {
  entries_.clear();
  tap_.log().Close(&entries_);
  if (times_ == nullptr) return End::kTaken;
  expected_ = std::max(expected_, entries_.size());
  if (profiles || (!entries_.empty() && times_->OthersHaveIt())) {
    // Ending the window in order would switch off what the other has switched on.
    times_->Leave();
    if (!profiles) taken_windows_.fetch_add(1);
    quiet_until_ = step + kQuietSteps;
    return End::kTaken;
  }
  if (const int result = times_->End(); result != CUPTI_SUCCESS) {
    ReportResult(recorder_, "cuptiActivityDisable", result);
    return End::kLost;
  }
  return End::kDone;
}

bool KernelWindow::Abandon() noexcept {
  entries_.clear();
  tap_.log().Close(&entries_);
  entries_.clear();
  return times_ == nullptr || times_->End() == CUPTI_SUCCESS;
}

bool KernelWindow::Lose() noexcept {
  const KernelTimes* lost = std::exchange(times_, nullptr);
  return lost != nullptr && lost->still_open();
}

void KernelWindow::TakeBuffersBack() noexcept {
  if (times_ != nullptr) times_->Flush(true);
}

bool KernelWindow::Poll() {
  if (times_ == nullptr || entries_.empty()) return true;
  if (const int result = times_->Flush(false); result != CUPTI_SUCCESS) {
    ReportResult(recorder_, "cuptiActivityFlushAll", result);
    return true;
  }
  return times_->received() >= entries_.size();
}

bool KernelWindow::Collect(bool all, TimeJoin* join) {
  if (times_ == nullptr) return false;
  if (all) times_->Flush(true);
  std::vector<KernelTimes::Record> records;
  uint64_t invalid = 0, dropped = 0;
  times_->Take(&records, &invalid, &dropped);
  if (invalid != 0) recorder_.CountDrop("kernel records without a time", invalid);
  if (dropped != 0) recorder_.CountDrop("kernel records that CUPTI dropped", dropped);
  if (!entries_.empty() && records.empty()) {
    // Another tool came into the window and got our buffers. Once can be an accident.
    if (invalid == 0 && dropped == 0) {
      taken_windows_.fetch_add(1);
      taken_.store(true);
    }
    return false;
  }
  if (!records.empty()) taken_windows_.store(0);
  *join = JoinTimes(entries_, records, tap_.graphs(), keys_);
  for (const TimeJoin::Check& check : join->checks) tap_.graphs().Settle(check.number, check.as_captured);
  if (join->strangers != 0) recorder_.CountDrop("kernel records without a launch", join->strangers);
  return !join->launches.empty();
}

}  // namespace rfinject::cupti
