// File: launch_waits.h
//
// How long the program waits in launches. The GPU's queue holds about a thousand of them; where it is full, the call
// that launches returns when there is room. No call says that it waited, so what one takes beyond a usual one counts
// as the wait. A usual one is learned from launches that nothing can have kept: those behind a wait for the GPU, and
// those of programs that the GPU keeps up with. Of the others nobody knows which did not wait; they only tell when
// launches have become quicker, because more of them are then as quick as few were before.
//
// Threads that launch come in here, in the callback of each launch; it costs two reads of a cheap clock. While the
// GPU keeps up, which the windows that are timed show, no launch waits, and one in sixteen is looked at: the
// program's own time is what counts then.
#ifndef RFINJECT_COLLECTOR_CUPTI_LAUNCH_WAITS_H_
#define RFINJECT_COLLECTOR_CUPTI_LAUNCH_WAITS_H_

#include <cstddef>
#include <cstdint>

#include "collector/cupti/launch_call.h"

namespace rfinject::cupti {

// How long calls of one kind take on one thread.
class UsualCall {
 public:
  // A call took so many ticks of a clock; `free`: nothing can have kept it. Returns by how many more than a usual
  // one.
  double Add(int64_t ticks, bool free) noexcept;

 private:
  double usual_ = 0;  // 0: there was none yet
  double quick_ = 0;  // few of those that nothing keeps are quicker
  double free_ = 0;   // the usual one, by those that nothing kept
  double calls_ = 0;  // of which it is the mean
};

// --- For the thread that launches: its call begins (`of_backward`: in a backward pass), and ends; `done`: it
// launched something. What lies between the two is the driver's.
void BeginLaunchWait(CallKind kind, bool of_backward) noexcept;
void EndLaunchWait(bool done) noexcept;

// --- For any thread. The program has waited for the GPU, so the queue is empty.
void NoteEmptyQueue() noexcept;
// The GPU was so many launches behind the host in the last window that was timed.
void NoteLaunchesBehind(size_t launches) noexcept;

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_LAUNCH_WAITS_H_
