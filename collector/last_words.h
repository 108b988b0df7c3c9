// File: last_words.h
//
// What a program that `rfinject` has started says of its trace when it ends, in one line on standard error: how much
// was measured and which command shows it, or that there is no trace.
//
// `rfinject` becomes the program, so only the library is left to say it. It is meant for people:
// nothing is said where standard error is no terminal, so that a program that parses or compares it finds what it
// would without us (with -v it is said there, too; with -q nowhere). One process of a job speaks: rank 0 or, where
// there are no ranks, the process that `rfinject` became.
#ifndef RFINJECT_COLLECTOR_LAST_WORDS_H_
#define RFINJECT_COLLECTOR_LAST_WORDS_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "collector/settings.h"

namespace rfinject {

// Whether a trace was begun: whatever became of it was said then.
inline constinit std::atomic<bool> g_trace_begun{false};

// Whether a module of PyTorch was called by no other one that has no parameters, which makes no step.
inline constinit std::atomic<bool> g_called_without_parameters{false};

// Whether this process is the one to speak, and somebody is there to listen.
bool MaySpeakLast(const Settings& settings) noexcept;

// Returns the line for `steps` measured steps in the trace at `path`. May throw std::bad_alloc.
std::string TraceWords(const Settings& settings, uint64_t steps, const std::string& path);

// Says that there is no trace, if this process is the one that `rfinject` became, and none was written where its
// traces go. Where modules were called, and none had parameters, it is said to whoever may not listen, too: the
// program was meant. Called at the end of a process that has written none itself; in all others it costs a look at
// the environment.
void ExplainNoTrace() noexcept;

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_LAST_WORDS_H_
