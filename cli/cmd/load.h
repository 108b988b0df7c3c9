// File: load.h
//
// Traces named on a command line -> one Profile, with progress and messages on stderr.
#ifndef RFINJECT_CLI_CMD_LOAD_H_
#define RFINJECT_CLI_CMD_LOAD_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/profile/profile.h"

namespace rfinject::cli {

// One line on a terminal that says how far we are, from the second second on; nothing where stderr is no terminal.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void Show(size_t done, size_t all);

 private:
  const std::string what_;
  const bool terminal_;
  const absl::Time start_;
  absl::Time shown_;
  bool visible_ = false;
};

struct Loaded {
  Profile profile;
  size_t files = 0;      // that something could be used of
  bool damaged = false;  // something was not as it should be; it has been said on stderr
  bool empty = false;    // some trace was whole and had nothing in it; likewise
};

// Reads files and folders one after the other, each forgotten when it has been added: memory is that of the distinct
// launch keys and of the largest single file.
Loaded LoadTraces(const std::vector<char*>& paths);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_LOAD_H_
