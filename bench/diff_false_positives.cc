// File: diff_false_positives.cc
//
// The exam of diff: how often it calls something real where nothing changed, and how often it finds what did
// (docs/method/INTERVALS.md has its table).
//
//   diff_false_positives [--pairs N] [--seed S]     a line is N pairs of runs, default 400
//
// Holds when of the comparisons of unchanged runs that have intervals at most one in twenty shows anything real. Two
// binomial standard deviations more are chance.
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "bench/simulated_run.h"
#include "cli/report/diff.h"

namespace rfinject::bench {
namespace {

using cli::Compared;
using cli::Verdict;

struct Line {
  uint64_t pairs = 0, judged = 0, any = 0, total = 0, found = 0;
  uint64_t rows = 0, real_rows = 0;
  double visible = 0;  // of the total's time, relative
};

cli::RunDiff Compare(const SimulatedRun& before, const SimulatedRun& after) {
  const SimulatedResult a = Simulate(before), b = Simulate(after);
  cli::Diff diff =
      cli::MakeDiff(a.profile, b.profile, [](const cli::Run&) { return cli::Machine{}; }, {.by = cli::By::kLayer});
  return std::move(diff.pairs.front());
}

void Count(const cli::RunDiff& diff, Line* line) {
  ++line->pairs;
  if (diff.comparisons == 0) return;
  ++line->judged;
  bool any = false;
  const auto look = [&](const cli::DiffRow& row) {
    for (const cli::Change& change : row.changes) {
      if (!(change.standard > 0)) continue;
      ++line->rows;
      line->real_rows += change.verdict == Verdict::kReal;
      any = any || change.verdict == Verdict::kReal;
    }
  };
  for (const cli::DiffRow& row : diff.rows) {
    look(row);
    // The layer that a changed program has changed.
    const bool changed = row.layer == "layer1" && row.phase == Phase::kForward;
    line->found += changed && row[Compared::kTime].verdict == Verdict::kReal;
  }
  look(diff.total);
  const cli::Change& time = diff.total[Compared::kTime];
  line->total += time.verdict == Verdict::kReal;
  if (time.before > 0) line->visible += time.visible / time.before;
  line->any += any;
}

int Main(int argc, char** argv) {
  uint64_t pairs = 400, seed = 5'000'000;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    (option == "--pairs" ? pairs : seed) = strtoull(argv[i + 1], nullptr, 10);
  }
  printf("diff_false_positives --pairs %" PRIu64 " --seed %" PRIu64 "\n", pairs, seed);
  printf("Two runs of one program, 25 layers; false discovery rate. Percent of the pairs that have intervals.\n\n");
  printf("%-13s %-10s %8s | %9s %9s %9s | %14s | %13s\n", "noise", "schedule", "launches", "anything", "the total",
         "any test", "total seen from", "+10 % found in");
  bool holds = true;
  for (const Noise noise : {Noise::kWhite, Noise::kClockHalf, Noise::kClockTwo, Noise::kShortMemory,
                            Noise::kSlowSteps, Noise::kSlowLaunches}) {
    for (const Schedule schedule : {Schedule::kRotation, Schedule::kFiftySteps}) {
      for (const uint32_t launches : {1u, 16u}) {
        Line same, changed;
        for (uint64_t i = 0; i < pairs; ++i) {
          SimulatedRun run{.noise = noise, .schedule = schedule, .launches = launches, .layers = 25};
          SimulatedRun other = run;
          run.seed = ++seed;
          other.seed = ++seed;
          Count(Compare(run, other), &same);
          if (i % 10 != 0) continue;
          other.faster_layer = 1.1;
          Count(Compare(run, other), &changed);
        }
        const auto percent = [](uint64_t part, uint64_t all) {
          return all == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(all);
        };
        const double judged = static_cast<double>(std::max<uint64_t>(same.judged, 1));
        const bool wrong = percent(same.any, same.judged) > 5 + 2 * 100 * std::sqrt(0.05 * 0.95 / judged);
        holds = holds && !wrong;
        printf("%-13s %-10s %8u | %8.1f%c %9.1f %9.3f | %13.1f %% | %11.0f %%\n", NoiseName(noise).c_str(),
               ScheduleName(schedule).c_str(), launches, percent(same.any, same.judged), wrong ? '!' : ' ',
               percent(same.total, same.judged), percent(same.real_rows, same.rows), 100 * same.visible / judged,
               percent(changed.found, changed.judged));
        fflush(stdout);
      }
    }
  }
  printf("\n%s: at most one comparison in twenty shows anything where nothing changed\n",
         holds ? "holds" : "DOES NOT HOLD");
  return holds ? 0 : 1;
}

}  // namespace
}  // namespace rfinject::bench

int main(int argc, char** argv) { return rfinject::bench::Main(argc, argv); }
