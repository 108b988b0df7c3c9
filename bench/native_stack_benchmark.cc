// Measures what a launch in no layer pays for its native stack, the first time for a launch key and afterwards; and
// what an operator of a C++ program pays for its layer. All of it runs below 40 frames of this program's own. `calls`
// is the price in calls of a function that does nothing, so that machines can be compared.
//   build/release/tools/native_stack_benchmark
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>

#include "collector/launch_origin.h"
#include "collector/native_stack.h"
#include "collector/testing/fake_recorder.h"
#include "injector/native/native_layers.h"
#include "injector/native/native_stacks.h"
#include "injector/native/unwinder.h"

namespace rfinject {
namespace {

constexpr int kDepth = 40;

template <typename Do>
[[gnu::noinline]] void Below(int depth, Do what) {
  if (depth == 0) {
    what();
  } else {
    Below(depth - 1, what);
  }
  asm volatile("" ::: "memory");
}

[[gnu::noinline]] void Nothing() { asm volatile("" ::: "memory"); }

double NsOf(int rounds, void (*what)()) {
  double least = 1e300;
  for (int repeat = 0; repeat < 20; ++repeat) {
    timespec begin{};
    timespec end{};
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < rounds; ++i) what();
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double ns = static_cast<double>(end.tv_sec - begin.tv_sec) * 1e9 + static_cast<double>(end.tv_nsec) -
                      static_cast<double>(begin.tv_nsec);
    least = std::min(least, ns / rounds);
  }
  return least;
}

double NsOfNothing() {
  static const double ns = NsOf(100'000, Nothing);
  return ns;
}

template <typename Do>
void Run(benchmark::State& state, Do what) {
  Below(kDepth, [&] {
    for (auto _ : state) what();
  });
  state.counters["calls"] = benchmark::Counter(
      NsOfNothing() * 1e-9, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void FirstLaunchOfAKey(benchmark::State& state) {
  OfferNativeStacks();
  static testing::FakeRecorder recorder;
  LaunchIdentity identity;
  Run(state, [&] {
    ++identity.kernel;
    NoteOriginOnce(identity, recorder);
  });
}
// As many keys as can have stacks.
BENCHMARK(FirstLaunchOfAKey)->Iterations(8000);

void LaterLaunchOfAKey(benchmark::State& state) {
  OfferNativeStacks();
  static testing::FakeRecorder recorder;
  LaunchIdentity identity;
  identity.signature = 1;
  Run(state, [&] { NoteOriginOnce(identity, recorder); });
}
BENCHMARK(LaterLaunchOfAKey);

void LaunchInALayer(benchmark::State& state) {
  static testing::FakeRecorder recorder;
  LaunchIdentity identity;
  identity.site.layer = 1;
  Run(state, [&] { NoteOriginOnce(identity, recorder); });
}
BENCHMARK(LaunchInALayer);

void LayerOfAnOperatorFromAKnownStack(benchmark::State& state) {
  static testing::FakeRecorder recorder;
  InitNativeLayers(recorder);
  Run(state, [&] { benchmark::DoNotOptimize(PlaceOfThread()); });
}
BENCHMARK(LayerOfAnOperatorFromAKnownStack);

void UnwindingAStack(benchmark::State& state) {
  PrepareUnwinder();
  StackFrame frames[kMaxStackFrames];
  Run(state, [&] { benchmark::DoNotOptimize(Unwind(frames)); });
}
BENCHMARK(UnwindingAStack);

}  // namespace
}  // namespace rfinject
