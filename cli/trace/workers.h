// File: workers.h
//
// Runs work on many files in as many threads as this process may use processors.
//
//   ForEach(files.size(), WorkersFor(files.size()), [&](size_t file, size_t worker) { … });
#ifndef RFINJECT_CLI_TRACE_WORKERS_H_
#define RFINJECT_CLI_TRACE_WORKERS_H_

#include <cstddef>
#include <functional>

namespace rfinject::cli {

// Returns the number of processors that this process may run on (a job's share of a machine), as sched_getaffinity(2)
// gives them; at least one, and at most `count`.
size_t WorkersFor(size_t count);

// Calls `work(i, worker)` for each i below `count`, from several threads at once, each of which has a number below
// `workers`. Each i is begun after all smaller ones have been. Returns when all have ended. One worker is the calling
// thread; `work` must not throw.
void ForEach(size_t count, size_t workers, const std::function<void(size_t i, size_t worker)>& work);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_WORKERS_H_
