// File: live.h
//
// The state of a running job: its report, its steps by the clock, and which of its processes still write. The caller
// says what time it is.
#ifndef RFINJECT_CLI_REPORT_LIVE_H_
#define RFINJECT_CLI_REPORT_LIVE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/model/calibration.h"
#include "cli/profile/profile.h"
#include "cli/report/facts/waits.h"
#include "cli/report/report.h"

namespace rfinject::cli {

// A process that writes a trace.
struct TraceWriter {
  std::string trace;  // its path
  std::optional<uint32_t> rank;
  int64_t start_unix_ns = 0;    // of the process; not above 0: the trace does not say it, or nothing sensible
  int64_t changed_unix_ns = 0;  // of the trace, not below 0
  bool ended = false;           // it said so
  std::string damage;           // of the trace, a line; empty: none
};

enum class WriterState : uint8_t {
  kQuiet,    // has written nothing for so long that it is worth mentioning; the traces do not say why
  kDamaged,  // the trace cannot be read to its end
  kWrites,
  kEnded,
};
inline constexpr size_t kWriterStates = 4;

// For how long a process that was started `age_ns` ago, and whose longest step took `longest_step_ns`, may write
// nothing before that is worth a word: three times the distance of two chunks (proto/FORMAT.md: a second, of old runs
// a hundredth of their age, at most a minute) or the longest step, because only steps that have ended are written;
// and ten seconds.
int64_t PatienceNs(int64_t age_ns, uint64_t longest_step_ns);

struct LiveRank {
  std::string rank;      // "3"; of a job of one process nothing
  size_t processes = 0;  // it and its restarts; the last one is what the rest is about
  WriterState state{};
  int64_t silent_ns = 0;  // since it wrote
  StepWaits waits;
};

// Steps whose time by the clock is known, of all ranks.
struct StepTally {
  uint64_t steps = 0;
  unsigned __int128 ns = 0;
};

struct LiveRun {
  bool anything = false;  // false: no trace says anything yet; of what follows only ranks are known
  Report report;          // of the kind of run with most GPU time: validation, or another precision, are others
  size_t other_kinds = 0;
  WaitTable waits;
  uint64_t measured_steps = 0, armed_steps = 0;
  bool stopped = false;  // measuring is, by the program or by `rfinject control`
  StepTally tally;       // at the end of what has been read
  // The steps that came since an earlier look.
  uint64_t new_steps = 0;
  double new_step_ns = 0;  // mean; 0: none
  // The ranks: first those that have written nothing for longest, then by the median step, the longest first.
  std::vector<LiveRank> ranks;
  std::array<size_t, kWriterStates> ranks_in{};  // by state
  bool ended() const { return !ranks.empty() && ranks_in[static_cast<size_t>(WriterState::kEnded)] == ranks.size(); }
  int64_t start_unix_ns = 0;  // of the first process; 0 unknown
  int64_t now_unix_ns = 0;    // or when the last trace changed, where that is later
  std::vector<std::string> damages;
};

struct LiveOptions {
  By by = By::kLayer;
  std::string sort;                          // a column (FindColumn); empty: as FoldRun has the rows
  StepTally before;                          // of an earlier look, for new_steps; none: none are told apart
  const Calibration* calibration = nullptr;  // as FoldOptions has it
};

// `machine_for` as FoldProfile has it.
LiveRun FoldLive(const Profile& profile, const std::vector<TraceWriter>& writers, int64_t now_unix_ns,
                 const std::function<Machine(const Run&)>& machine_for, const LiveOptions& options);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_LIVE_H_
