// File: call_clock.h
//
// Every call of CUPTI is timed by our own clock, so that what measuring costs the program is known and kept in the
// trace. With RFINJECT_LOG=3 each call is a line on stderr, too: name, thread, start (ns, monotonic), duration (ns),
// result.
#ifndef RFINJECT_COLLECTOR_CUPTI_CALL_CLOCK_H_
#define RFINJECT_COLLECTOR_CUPTI_CALL_CLOCK_H_

#include <cstdint>

#include "collector/cupti/api.h"

namespace rfinject::cupti {

// Puts a timed call in the place of each function of `api`, once in a process. `log`: each call is a line.
void TimeCalls(Api* api, bool log);

// Tells that the calling thread is ours: the program does not wait for what it calls.
void ThisThreadIsOurs() noexcept;

// For how long calls have lasted so far, in ns: those of the program's threads, and those of ours. Calls that only
// compute (planning, evaluating) are not among them.
uint64_t ProgramsCallNs() noexcept;
uint64_t OurCallNs() noexcept;

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_CALL_CLOCK_H_
