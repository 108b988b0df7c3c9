// File: peak_memory.h
//
// How much resident memory a piece of a test took at its worst, for tests of what hostile files may cost.
//
//   const PeakMemory peak;
//   Read(file);
//   EXPECT_LE(peak.Bytes(), 64u << 20);
#ifndef RFINJECT_CLI_TESTING_PEAK_MEMORY_H_
#define RFINJECT_CLI_TESTING_PEAK_MEMORY_H_

#include <cstdint>

namespace rfinject::cli::testing {

class PeakMemory {
 public:
  // Gives free memory back to the system and begins.
  PeakMemory();

  // The most memory of the process that was resident since the constructor, less what was resident then. 0 where
  // /proc does not say, and under sanitizers, whose own memory it would be.
  uint64_t Bytes() const;

 private:
  uint64_t at_first_ = 0;
};

}  // namespace rfinject::cli::testing

#endif  // RFINJECT_CLI_TESTING_PEAK_MEMORY_H_
