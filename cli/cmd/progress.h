// File: progress.h
//
// Says how far the command is, where it takes longer than a second.
#ifndef RFINJECT_CLI_CMD_PROGRESS_H_
#define RFINJECT_CLI_CMD_PROGRESS_H_

#include <cstddef>
#include <string>

#include "absl/time/time.h"

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

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_PROGRESS_H_
