// File: fork.h
//
// ForkHandler is told of each fork() of the process. A vfork or a raw clone runs no handlers.
#ifndef RFINJECT_COLLECTOR_RECORD_FORK_H_
#define RFINJECT_COLLECTOR_RECORD_FORK_H_

#include <atomic>

namespace rfinject {

class ForkHandler {
 public:
  virtual ~ForkHandler() = default;

 protected:
  // Tells this handler, which must never be destroyed, of every fork from now on. Where the handlers cannot be had, a
  // fork is like a raw clone: the child records into nothing, which is harmless.
  void RegisterForFork() noexcept;

  // The first two are called in the parent, on the thread that forks; the third by the child's only thread, which
  // must not allocate: an allocator that the program preloaded may not have come out of its own handler yet.
  virtual void BeforeFork() noexcept = 0;
  virtual void AfterForkInParent() noexcept = 0;
  virtual void AfterForkInChild() noexcept = 0;

 private:
  template <void (ForkHandler::*what)() noexcept>
  static void ForEach() noexcept;

  // The newest handler; a process has one, except in tests. Any thread that makes a recorder writes it, and the
  // thread that forks reads it: acquire and release make the handler itself visible.
  static inline std::atomic<ForkHandler*> first_{nullptr};
  ForkHandler* next_ = nullptr;
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_RECORD_FORK_H_
