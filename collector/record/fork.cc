#include "collector/record/fork.h"

#include <pthread.h>

#include <atomic>

namespace rfinject {

struct ForkHandlers {
  // The newest handler; a process has one, except in tests. Any thread that makes a recorder writes it, and the
  // thread that forks reads it: acquire and release make the handler itself visible.
  static inline std::atomic<ForkHandler*> first{nullptr};

  template <void (ForkHandler::*what)() noexcept>
  static void ForEach() noexcept {
    for (ForkHandler* handler = first.load(std::memory_order_acquire); handler != nullptr; handler = handler->next_) {
      (handler->*what)();
    }
  }
  static void Register(ForkHandler* handler) noexcept {
    handler->next_ = first.load(std::memory_order_relaxed);
    while (!first.compare_exchange_weak(handler->next_, handler, std::memory_order_release)) {
    }
    static const int registered =
        pthread_atfork(&ForEach<&ForkHandler::BeforeFork>, &ForEach<&ForkHandler::AfterForkInParent>,
                       &ForEach<&ForkHandler::AfterForkInChild>);
    (void)registered;
  }
};

void ForkHandler::RegisterForFork() noexcept { ForkHandlers::Register(this); }

}  // namespace rfinject
