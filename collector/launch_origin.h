// File: launch_origin.h
//
// What is found out once for each launch key, where it is seen first: the program's line that it came from
// (source_line.h), and the native stack of one whose layer nobody knows (native_stack.h).
#ifndef RFINJECT_COLLECTOR_LAUNCH_ORIGIN_H_
#define RFINJECT_COLLECTOR_LAUNCH_ORIGIN_H_

namespace rfinject {

class Recorder;
struct LaunchIdentity;

// Called on the launching thread before the launch is recorded. A key that is known costs a look-up: no lock, no
// allocation. What cannot be told now is asked again at the key's next launch.
void NoteOriginOnce(const LaunchIdentity& identity, Recorder& recorder) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_LAUNCH_ORIGIN_H_
