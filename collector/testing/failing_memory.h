// File: failing_memory.h
//
// An operator new that fails when a test wants it to, for all of a program that links it. Under the thread sanitizer,
// which has its own and lets nobody else, none ever fails: a test that wants failures is SINGLE_THREAD.
#ifndef RFINJECT_COLLECTOR_TESTING_FAILING_MEMORY_H_
#define RFINJECT_COLLECTOR_TESTING_FAILING_MEMORY_H_

#include <new>

namespace rfinject::testing {

// The `number`-th allocation from here on that this thread makes by operator new fails.
void FailAllocation(int number);
// Lets none fail any more. Returns whether the one that was to fail did.
bool StopFailing();

// Calls what() again and again, and makes its first allocation fail, then its second, until it has no more. Returns
// how many failed; an exception other than std::bad_alloc is the caller's.
template <typename What>
int FailEachAllocation(What what) {
  for (int failed = 0;; ++failed) {
    FailAllocation(failed + 1);
    try {
      what();
    } catch (const std::bad_alloc&) {
    }
    if (!StopFailing()) return failed;
  }
}

}  // namespace rfinject::testing

#endif  // RFINJECT_COLLECTOR_TESTING_FAILING_MEMORY_H_
