// File: sum_traces.h
//
// Adds up trace files, read by all processors at once. Neither messages nor sums depend on the number of processors:
// files are decided on in their order, and adding is exact.
#ifndef RFINJECT_CLI_CMD_SUM_TRACES_H_
#define RFINJECT_CLI_CMD_SUM_TRACES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "cli/profile/profile.h"

namespace rfinject::cli {

struct Loaded {
  Profile profile;
  size_t files = 0;      // files that held something usable
  bool damaged = false;  // something was not as it should be; it has been said on stderr
  bool empty = false;    // some trace was whole but empty, which was also said
};

struct FileToAdd {
  std::string path;
  size_t sum = 0;  // the number of the sum that it is added to
};

// Adds each file to its sum. A trace that is in two files counts once, in the first. Complains of what is wrong with
// a file; where processes that are added up did not run the same operators, a line says so. Memory is that of the
// distinct launch keys, once for each processor, and of the few files that are being read.
std::vector<Loaded> SumTraces(const std::vector<FileToAdd>& files, size_t sums);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_SUM_TRACES_H_
