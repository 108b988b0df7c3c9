// File: budget.h
//
// Budget says whether measuring may cost something more: at most a share of the time since it began, or a fixed sum
// in a whole run, whichever is more. It is pure: it reads no clock.
#ifndef RFINJECT_COLLECTOR_ARMING_BUDGET_H_
#define RFINJECT_COLLECTOR_ARMING_BUDGET_H_

#include <algorithm>
#include <cstdint>

namespace rfinject::arming {

class Budget {
 public:
  // What a whole run may always cost at the default share of 1 %, in ns; proportionally less at a smaller share.
  static constexpr double kWholeRunNs = 2e9, kDefaultShare = 0.01;

  explicit Budget(double share) noexcept
      : share_(share), whole_run_ns_(kWholeRunNs * std::min(1.0, share / kDefaultShare)) {}

  // Whether `more_ns` may be spent after `spent_ns` in a run that has lasted for `elapsed_ns`.
  bool Allows(uint64_t spent_ns, uint64_t more_ns, uint64_t elapsed_ns) const noexcept {
    return static_cast<double>(spent_ns) + static_cast<double>(more_ns) <=
           std::max(share_ * static_cast<double>(elapsed_ns), whole_run_ns_);
  }

 private:
  double share_;
  double whole_run_ns_;
};

}  // namespace rfinject::arming

#endif  // RFINJECT_COLLECTOR_ARMING_BUDGET_H_
