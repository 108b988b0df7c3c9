// File: follow.h
//
// Follows the newest run of a folder as its traces grow. Files are only listed and read, while processes append to
// them; a trace that ends inside a frame is read up to there.
//
//   RunFollower follower("rfinject-out/latest/");
//   absl::StatusOr<bool> news = follower.Look(keep_on);
//   if (news.ok() && *news) Show(follower.run());
#ifndef RFINJECT_CLI_TRACE_FOLLOW_H_
#define RFINJECT_CLI_TRACE_FOLLOW_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/profile/profile.h"
#include "cli/trace/decode.h"
#include "cli/trace/run_files.h"

namespace rfinject::cli {

struct FollowedTrace {
  std::string path;
  uint64_t bytes = 0;           // before it was read
  int64_t changed_unix_ns = 0;  // by the clock of where the file lies
  ProcessInfo process;          // what its beginning says; nothing where it has none, or sums of several
  bool ended = false;           // it says that its process ended, or the command wrote it
  absl::Status damage;          // what stopped the reading; not that the end is missing
};

struct FollowedRun {
  RunFiles of;  // without files where no trace says yet what it is of
  std::vector<FollowedTrace> traces;
  Profile profile;
  size_t runs = 0;  // in the folder
};

class RunFollower {
 public:
  // A trace, or a folder: then its newest run is followed, whichever that is at the time.
  explicit RunFollower(std::string path) : path_(std::move(path)) {}

  // Looks which files there are and how long they are, and where that has changed reads the run anew, on this thread
  // alone. True: run() is news. `keep_on` is asked before each file; when it says no, nothing has been looked at, and
  // the next look begins again. Fails where the folder or the file cannot be listed. Memory is that of the run's
  // distinct launch keys and of one file.
  absl::StatusOr<bool> Look(const std::function<bool()>& keep_on);
  const FollowedRun& run() const { return run_; }

 private:
  using Extent = std::tuple<uint64_t, uint64_t, int64_t>;  // inode, bytes, time of the last change
  const std::string path_;
  Decoder decoder_;
  std::map<std::string, Extent> seen_;
  FollowedRun run_;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_FOLLOW_H_
