// Measures what a module call pays for knowing its layer. The sequence functions cost what torch's cost: a call into
// another function that reads a thread-local variable.
#include <benchmark/benchmark.h>

#include "injector/layer_stack.h"

namespace rfinject {
namespace {

thread_local uint64_t t_sequence = 0;
[[gnu::noinline]] uint64_t Peek() {
  benchmark::ClobberMemory();
  return t_sequence;
}
[[gnu::noinline]] uint64_t ThreadId() { return 1; }
[[gnu::noinline]] uint64_t RunningNode() {
  benchmark::ClobberMemory();
  return 0;
}

void EnterAndLeave(benchmark::State& state) {
  SetSequenceFunctions({.peek = Peek, .thread_id = ThreadId, .running_node = RunningNode});
  for (auto _ : state) {
    EnterLayer(1);
    ++t_sequence;
    LeaveLayer();
    ++t_sequence;
  }
}
BENCHMARK(EnterAndLeave);

void OwnerOfANode(benchmark::State& state) {
  SetSequenceFunctions({.peek = Peek, .thread_id = ThreadId, .running_node = RunningNode});
  for (size_t i = 0; i < kRingEntries; ++i) {
    EnterLayer(1);
    ++t_sequence;
    LeaveLayer();
    ++t_sequence;
  }
  uint64_t sequence = t_sequence;
  const uint64_t last = t_sequence;
  for (auto _ : state) {
    if (sequence < last - 400) sequence = last;
    benchmark::DoNotOptimize(OwnerOf(1, --sequence, nullptr));
  }
}
BENCHMARK(OwnerOfANode);

}  // namespace
}  // namespace rfinject
