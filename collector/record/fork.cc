#include "collector/record/fork.h"

#include <pthread.h>

namespace rfinject {

template <void (ForkHandler::*what)() noexcept>
void ForkHandler::ForEach() noexcept {
  for (ForkHandler* handler = first_.load(std::memory_order_acquire); handler != nullptr; handler = handler->next_) {
    (handler->*what)();
  }
}

void ForkHandler::RegisterForFork() noexcept {
  next_ = first_.load(std::memory_order_relaxed);
  while (!first_.compare_exchange_weak(next_, this, std::memory_order_release)) {
  }
  static const int registered =
      pthread_atfork(&ForEach<&ForkHandler::BeforeFork>, &ForEach<&ForkHandler::AfterForkInParent>,
                     &ForEach<&ForkHandler::AfterForkInChild>);
  (void)registered;
}

}  // namespace rfinject
