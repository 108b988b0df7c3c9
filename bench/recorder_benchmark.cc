// Measures what recording costs the thread that is measured, and what a launch costs the writer thread.
//   ninja -C build/release recorder_benchmark && build/release/tools/recorder_benchmark
#include <benchmark/benchmark.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "collector/record/launch_ring.h"
#include "collector/record/launch_table.h"
#include "collector/recorder.h"

namespace rfinject {
namespace {

// An estimated kernel: time, model FLOP, executed FLOP, bytes.
LaunchRecord MakeRecord(uint32_t kernel) {
  LaunchRecord record;
  record.identity.kernel = kernel;
  for (uint32_t metric : {uint32_t{kTime}, uint32_t{kModelFlop}, uint32_t{kFlopFirst}, uint32_t{kCompulsoryBytes}}) {
    record.samples[record.sample_count++] = {metric, 1000 + metric};
  }
  return record;
}

// The whole hot call, into an active recorder whose writer thread keeps up or falls behind, as in a real process. A
// pause after each batch, not timed, stands for the program's own work; "drops" says how much the writer missed.
void BM_Record(benchmark::State& state) {
  Recorder& recorder = Recorder::Get();
  recorder.Activate();
  const LaunchRecord record = MakeRecord(recorder.Intern("kernel " + std::to_string(state.thread_index())));
  constexpr int kBatch = 1000;
  while (state.KeepRunningBatch(kBatch)) {
    for (int i = 0; i < kBatch; ++i) recorder.Record(record);
    state.PauseTiming();
    usleep(200);
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_Record)->Iterations(2'000'000);
BENCHMARK(BM_Record)->Iterations(1'000'000)->Threads(2);

// Into a ring that is not drained: the cost of a drop.
void BM_PushIntoFullRing(benchmark::State& state) {
  LaunchRing* ring = LaunchRing::Create();
  const LaunchRecord record = MakeRecord(1);
  while (ring->Push(record) != LaunchRing::PushResult::kDropped) {
  }
  for (auto _ : state) benchmark::DoNotOptimize(ring->Push(record));
}
BENCHMARK(BM_PushIntoFullRing);

void BM_InWindow(benchmark::State& state) {
  Recorder& recorder = Recorder::Get();
  for (auto _ : state) benchmark::DoNotOptimize(recorder.InWindow());
}
BENCHMARK(BM_InWindow);

void BM_InternKnownName(benchmark::State& state) {
  Recorder& recorder = Recorder::Get();
  std::vector<std::string> names;
  for (int i = 0; i < 256; ++i) {
    names.push_back("f32[8,64,56,56] f32[64,64,3,3] f32[" + std::to_string(i) + "]");
    recorder.Intern(names.back());
  }
  size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(recorder.Intern(names[i++ % names.size()]));
}
BENCHMARK(BM_InternKnownName);

void BM_EndStep(benchmark::State& state) {
  Recorder& recorder = Recorder::Get();
  for (auto _ : state) recorder.EndStep(8);
}
BENCHMARK(BM_EndStep)->Iterations(20'000);

// The writer's side: one launch into the table of statistics, of as many keys as a network has.
void BM_TableAdd(benchmark::State& state) {
  static auto* table = new LaunchTable;
  const auto keys = static_cast<uint32_t>(state.range(0));
  LaunchRecord record = MakeRecord(1);
  uint32_t i = 0;
  for (auto _ : state) {
    record.identity.site.layer = i++ % keys;
    benchmark::DoNotOptimize(table->Add(record));
  }
}
BENCHMARK(BM_TableAdd)->Arg(200)->Arg(5000);

}  // namespace
}  // namespace rfinject

int main(int argc, char** argv) {
  // Before the settings are read: the trace goes where it is not kept.
  char folder[] = "/tmp/rfinject-benchmark-XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  setenv("RFINJECT_OUTPUT", (std::string(folder) + "/t.rfx").c_str(), 1);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  rfinject::Recorder::Get().Finish("exit");
  std::printf("trace: %s/t.rfx\n", folder);
  return 0;
}
