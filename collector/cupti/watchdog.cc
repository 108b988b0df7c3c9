#include "collector/cupti/watchdog.h"

#include <pthread.h>
#include <time.h>

#include <utility>

#include "collector/cupti/condition_report.h"
#include "collector/cupti/launch_log.h"
#include "collector/safe_write.h"
#include "collector/sync.h"

namespace rfinject::cupti {

void Watchdog::Start() noexcept {
  if (std::exchange(started_, true)) return;
  // The program's signals are the program's: this thread takes none.
  const SignalShield shield;
  pthread_t thread;
  if (pthread_create(&thread, nullptr, &Main, this) == 0) pthread_detach(thread);
}

void* Watchdog::Main(void* self) noexcept {
  static_cast<Watchdog*>(self)->Watch();
  return nullptr;
}

void Watchdog::Watch() noexcept {
  while (!machine_.off()) {
    const timespec second = {1, 0};
    nanosleep(&second, nullptr);
    if (!policy_.CheckStall(static_cast<uint64_t>(MonotonicNs()), LaunchLog::progress())) continue;
    stalled_.store(true);
    try {
      ReportCondition(recorder_, ConditionId::kStalled);
    } catch (...) {
      // Only memory can run out here; the counters are given up all the same.
    }
  }
}

}  // namespace rfinject::cupti
