// Computes how long a trace is after a day: its chunks come at the distances of collector/record/chunk_schedule.h,
// under the usual limit. Prints bytes and the number of chunks. bench/trace_growth drives it.
//
//   trace_day BYTES_OF_A_CHUNK BYTES_OF_ALL_STEPS
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "collector/record/chunk_schedule.h"
#include "collector/settings.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: trace_day BYTES_OF_A_CHUNK BYTES_OF_ALL_STEPS\n");
    return 2;
  }
  constexpr int64_t kDayNs = int64_t{86400} * 1'000'000'000;
  const uint64_t chunk = strtoull(argv[1], nullptr, 10), limit = rfinject::Settings{}.max_size_mb * 1'000'000;
  uint64_t day = strtoull(argv[2], nullptr, 10), chunks = 0;
  for (int64_t age = 0; age < kDayNs; ++chunks) {
    day += chunk;
    age += rfinject::ChunkDistance(age, day, chunk, limit);
  }
  printf("%" PRIu64 " %" PRIu64 "\n", day, chunks);
  return 0;
}
