// File: backoff.h
//
// Backoff says in which step to try again to get what another process holds. It counts steps and not seconds, so that
// all ranks of a job try in the same ones. It is pure: it reads no clock.
#ifndef RFINJECT_COLLECTOR_ARMING_BACKOFF_H_
#define RFINJECT_COLLECTOR_ARMING_BACKOFF_H_

#include <cstdint>

namespace rfinject::arming {

class Backoff {
 public:
  static constexpr uint64_t kFirstGap = 64;  // steps; doubled with each failure
  static constexpr uint32_t kMaxFailures = 12;

  // Whether something may be tried in `step`.
  bool Due(uint64_t step) const noexcept { return failures_ == 0 || (!given_up() && step >= next_); }
  // Tells that the attempt in `step` has failed.
  void Failed(uint64_t step) noexcept {
    next_ = step + (kFirstGap << (failures_ < kMaxFailures ? failures_ : kMaxFailures));
    ++failures_;
  }
  void Succeeded() noexcept { failures_ = 0; }

  bool waiting() const noexcept { return failures_ != 0 && !given_up(); }
  bool given_up() const noexcept { return failures_ >= kMaxFailures; }
  // The step of the next attempt; meaningful only while waiting.
  uint64_t next() const noexcept { return next_; }

 private:
  uint32_t failures_ = 0;  // in a row
  uint64_t next_ = 0;
};

}  // namespace rfinject::arming

#endif  // RFINJECT_COLLECTOR_ARMING_BACKOFF_H_
