// File: activity.h
//
// For how long the GPUs of an export of nsys had nothing to do.
#ifndef RFINJECT_CLI_IMPORT_NSYS_ACTIVITY_H_
#define RFINJECT_CLI_IMPORT_NSYS_ACTIVITY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/import/nsys/untrusted_database.h"
#include "cli/import/timed_steps.h"

namespace rfinject::cli {

class NsysActivity {
 public:
  // `device` ran a kernel or a copy.
  void Add(int64_t device, Interval at);

  // "the GPU was idle for 59 % of the 20 ms between the file's first kernel and its last"; empty where it was for
  // less than a tenth. What was added is forgotten. `database` is where it came from.
  std::string IdleText(UntrustedDatabase* database);

 private:
  // Of more, SQLite sorts them, in a file of its own and in several times the time.
  static constexpr uint64_t kMostKept = 1 << 20;  // 16 MB
  std::map<int64_t, std::vector<Interval>> kept_;
  uint64_t count_ = 0;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_NSYS_ACTIVITY_H_
