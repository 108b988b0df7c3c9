// File: chunk_schedule.h
//
// When a trace's next chunk is written. A chunk has every launch key that ran since the last one, so what a long run
// writes depends on how often it writes, and what a program that is killed loses, too: one second of a young run, and
// of an old one a hundredth, at most a minute. A day of a job that repeats itself is 2,170 chunks.
#ifndef RFINJECT_COLLECTOR_CHUNK_SCHEDULE_H_
#define RFINJECT_COLLECTOR_CHUNK_SCHEDULE_H_

#include <cstdint>

namespace rfinject {

// What is never cut off is written more seldom: from half of `max_bytes` on the distance grows as the room shrinks.
// `age_ns` is since the trace began, `file_bytes` what is in it, `chunk_bytes` what the last chunk took; a max_bytes
// of 0 is no limit. Returns nanoseconds from one chunk to the next. Pure.
int64_t ChunkDistance(int64_t age_ns, uint64_t file_bytes, uint64_t chunk_bytes, uint64_t max_bytes) noexcept;

// Whether max_bytes makes the distance longer than the age alone would.
bool IsNearLimit(uint64_t file_bytes, uint64_t max_bytes) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_CHUNK_SCHEDULE_H_
