// File: chunk_schedule.h
//
// Decides when a trace's next chunk is written. A chunk has every launch key that ran since the last one, so the
// distance decides how much a long run writes, and also how much a program loses that is killed: one second of a
// young run, a hundredth of an old one, but at most a minute. A day of a job that repeats itself is 2,170 chunks.
#ifndef RFINJECT_COLLECTOR_RECORD_CHUNK_SCHEDULE_H_
#define RFINJECT_COLLECTOR_RECORD_CHUNK_SCHEDULE_H_

#include <cstdint>

namespace rfinject {

// Returns the nanoseconds from one chunk to the next. A trace that nears its limit is not cut off but written more
// seldom: from half of `max_bytes` on the distance grows as the room shrinks. `age_ns` is the time since the trace
// began, `file_bytes` the size of what is in it, `chunk_bytes` the size of the last chunk; a `max_bytes` of 0 is no
// limit.
int64_t ChunkDistance(int64_t age_ns, uint64_t file_bytes, uint64_t chunk_bytes, uint64_t max_bytes) noexcept;

// Whether max_bytes makes the distance longer than the age alone would.
bool IsNearLimit(uint64_t file_bytes, uint64_t max_bytes) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_RECORD_CHUNK_SCHEDULE_H_
