// File: unknown_operators.h
//
// UnknownOperators reports the operators that the table of FLOP rules does not have.
#ifndef RFINJECT_COLLECTOR_ESTIMATE_UNKNOWN_OPERATORS_H_
#define RFINJECT_COLLECTOR_ESTIMATE_UNKNOWN_OPERATORS_H_

#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "collector/recorder.h"
#include "collector/sync.h"

namespace rfinject::estimate {

class UnknownOperators {
 public:
  explicit UnknownOperators(Recorder& recorder) : recorder_(recorder) {}

  // Remembers an operator, to be reported with its step.
  void Note(std::string_view name) noexcept;
  // Reports all that are new in one line: a model with operators of its own has many.
  void Report() noexcept;

 private:
  Recorder& recorder_;
  // Whether a name waits to be reported. Written under lock_, read without it as a hint; relaxed, since the lock
  // orders the names.
  std::atomic<bool> unreported_{false};
  Mutex lock_;  // tried, never waited for: a forked child may inherit it locked
  std::vector<std::string> names_ RFINJECT_GUARDED_BY(lock_);
  size_t reported_ RFINJECT_GUARDED_BY(lock_) = 0;
  int reports_ RFINJECT_GUARDED_BY(lock_) = 0;
};

}  // namespace rfinject::estimate

#endif  // RFINJECT_COLLECTOR_ESTIMATE_UNKNOWN_OPERATORS_H_
