// File: source_lines.h
//
// Finds the line of the program that a launch comes from (collector/source_line.h). In the forward, in the optimizer
// and wherever else Python code calls, that is the line that the calling thread is at (python/python_frames.h). In
// the backward no Python code calls: a node's work belongs to the line that made the node. So the line of each
// forward launch that is asked for is kept with the number of the node born with it, and a node's line is
//
//   that of the launch that it was born with, if that one was asked for: exact;
//   else that of the launch in its layer, among those that were asked for, that is nearest to its birth as autograd
//   numbers nodes: nodes of operators that launch nothing (views, expand), and of launches whose key was known;
//   else none.
//
// What is run again inside the backward (checkpointing) has the line of the forward that it repeats.
#ifndef RFINJECT_INJECTOR_SOURCE_LINES_H_
#define RFINJECT_INJECTOR_SOURCE_LINES_H_

#include "collector/recorder.h"
#include "injector/python/python_api.h"

namespace rfinject {

// Publishes the function that tells a launch's line. The GIL must be held. Where lines cannot be read, a diagnostic
// says why.
void OfferSourceLines(const PythonApi& python, Recorder& recorder);

// Lines are told no more.
void StopOfferingSourceLines() noexcept;

// Called in a forked child, before any thread exists.
void ResetSourceLinesAfterFork() noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_SOURCE_LINES_H_
