// File: attachment.h
//
// Attaching to a process that runs already, for a time. `rfinject attach` has the interpreter open the library and
// call rfinject_attach (entry.cc), on its main thread between two instructions of the program's; a C++ program does
// that where it calls libtorch. What is hooked then
// is the same as in a process that was started with rfinject (attach.h). Later it is given back; the library stays
// where it is, since a thread may be in it, and can be attached again.
#ifndef RFINJECT_INJECTOR_ATTACHMENT_H_
#define RFINJECT_INJECTOR_ATTACHMENT_H_

namespace rfinject {

// Attaches with these settings: "RFINJECT_NAME=value", each with a zero behind it, and another zero at the end.
// Returns null, or why not: a clause about the process, which is then as it was; it begins with "busy: " where
// another moment may do. In a Python program the GIL is held; in a C++ program any thread may call it.
const char* AttachRunning(const char* settings);

// Detaches. Returns null, or why not, as above, and is called as that.
const char* DetachRunning();

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_ATTACHMENT_H_
