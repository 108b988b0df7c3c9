#include "cli/trace/workers.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace rfinject::cli {

size_t WorkersFor(size_t count) {
  cpu_set_t mine;
  // A machine with more processors than the set has room for is not asked again: a thousand are enough.
  const int processors = ::sched_getaffinity(0, sizeof mine, &mine) == 0 ? CPU_COUNT(&mine) : 1;
  return std::clamp<size_t>(count, 1, static_cast<size_t>(std::max(processors, 1)));
}

void ForEach(size_t count, size_t workers, const std::function<void(size_t i, size_t worker)>& work) {
  std::atomic<size_t> next = 0;
  const auto run = [&](size_t worker) {
    for (size_t i; (i = next.fetch_add(1)) < count;) work(i, worker);
  };
  std::vector<std::thread> threads;
  for (size_t worker = 1; worker < workers; ++worker) threads.emplace_back(run, worker);
  run(0);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace rfinject::cli
