#include "collector/estimate/unknown_operators.h"

#include <algorithm>
#include <exception>

namespace rfinject::estimate {
namespace {

constexpr size_t kMaxUnknown = 256;
constexpr int kMaxReports = 8;

}  // namespace

void UnknownOperators::Note(std::string_view name) noexcept try {
  if (!lock_.TryLock()) return;  // the next one of its name will be noted
  const HeldLock held(lock_);
  if (names_.size() >= kMaxUnknown || std::ranges::find(names_, name) != names_.end()) return;
  names_.emplace_back(name);
  unreported_.store(true, std::memory_order_relaxed);
} catch (const std::exception&) {
  recorder_.CountDrop("operators without a FLOP rule: names");
}

void UnknownOperators::Report() noexcept try {
  if (!unreported_.load(std::memory_order_relaxed)) return;
  if (!lock_.TryLock()) return;
  const HeldLock held(lock_);
  std::string names;
  for (; reported_ < names_.size(); ++reported_) {
    if (!names.empty()) names += ", ";
    names += names_[reported_];
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

}  // namespace rfinject::estimate
