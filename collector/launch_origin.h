// File: launch_origin.h
//
// Finds out what is asked once for each launch key, when it is first seen: the line of the program that it came from
// (source_line.h), and, if its layer is not known, its native stack (native_stack.h).
#ifndef RFINJECT_COLLECTOR_LAUNCH_ORIGIN_H_
#define RFINJECT_COLLECTOR_LAUNCH_ORIGIN_H_

namespace rfinject {

class Recorder;
struct LaunchIdentity;

// Called on the launching thread before the launch is recorded. A key that is known costs a look-up: no lock, no
// allocation. What cannot be found out now is asked again at the key's next launch.
void NoteOriginOnce(const LaunchIdentity& identity, Recorder& recorder) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_LAUNCH_ORIGIN_H_
