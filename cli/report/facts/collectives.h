// File: collectives.h
//
// Who is late: at the end of a collective all ranks meet, so a rank whose kernel of it ran shorter came later by as
// much.
#ifndef RFINJECT_CLI_REPORT_FACTS_COLLECTIVES_H_
#define RFINJECT_CLI_REPORT_FACTS_COLLECTIVES_H_

#include <cstdint>
#include <map>
#include <optional>

#include "cli/profile/profile.h"

namespace rfinject::cli {

// Means over the collectives, in ns. A rank is late by what it comes behind the first one, and waits until the last
// one is there.
struct RankAtCollectives {
  double late_ns = 0, waits_ns = 0;
  int64_t clock_ns = 0;  // by how much the clock of its host is ahead of the first rank's
};

struct Collectives {
  uint64_t count = 0;      // that all ranks ran
  double transfer_ns = 0;  // mean, from when the last rank is there
  std::map<uint32_t, RankAtCollectives> ranks;
  // The rank that comes last to most of them, and is worth a word: it is late by 5 % of a collective's time.
  std::optional<uint32_t> last;
  // Two or more ranks ran collectives, but their ends are apart by more than clocks are: these are not the same ones.
  bool do_not_match = false;
};

// Of one rank's recording there is nothing to say.
Collectives CollectivesOf(const Run& run);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FACTS_COLLECTIVES_H_
