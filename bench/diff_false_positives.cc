// File: diff_false_positives.cc
//
// The exam of diff: how often it calls something real where nothing changed, and how often it finds what did
// (docs/method/INTERVALS.md has its table).
//
//   diff_false_positives [--pairs N] [--seed S] [--noise NAME] [--schedule NAME]
//
// A line is N pairs of runs, default 400, and 40 pairs in which one layer takes 3 % longer. Holds when of the
// comparisons of unchanged runs that have intervals at most one in twenty shows anything real (two binomial standard
// deviations more are chance), and when the changed layer is found in 30 of the 40 pairs of long runs and in 10 of
// those with `--steps 50` and of recordings, where its kernels are launched 16 times a step. A single launch differs
// by 3 % from step to step, which hides as much in few samples whatever the clock does.
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "bench/simulated_run.h"
#include "cli/report/compare/diff.h"

namespace rfinject::bench {
namespace {

using cli::Compared;
using cli::Verdict;

constexpr uint64_t kChangedPairs = 40, kFoundInLong = 30, kFoundInShort = 10;
constexpr double kSlower = 1.03;

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
  std::string_view only_noise, only_schedule;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (option == "--noise" && !value.empty()) {
      only_noise = value;
    } else if (option == "--schedule" && !value.empty()) {
      only_schedule = value;
    } else if ((option == "--pairs" || option == "--seed") && !value.empty()) {
      (option == "--pairs" ? pairs : seed) = strtoull(argv[i + 1], nullptr, 10);
    } else {
      fprintf(stderr, "usage: diff_false_positives [--pairs N] [--seed S] [--noise NAME] [--schedule NAME]\n");
      return 2;
    }
  }
  printf("diff_false_positives --pairs %" PRIu64 " --seed %" PRIu64 "\n", pairs, seed);
  printf("Two runs of one program, 25 layers; false discovery rate. Percent of the pairs that have intervals.\n\n");
  printf("%-13s %-10s %8s | %9s %9s %9s | %14s | %13s\n", "noise", "schedule", "launches", "anything", "the total",
         "any test", "total seen from", "+3 % found in");
  bool holds = true;
  for (const Noise noise : {Noise::kWhite, Noise::kClockHalf, Noise::kClockTwo, Noise::kShortMemory,
                            Noise::kSlowSteps, Noise::kSlowLaunches}) {
    if (!only_noise.empty() && NoiseName(noise) != only_noise) continue;
    for (const Schedule schedule : {Schedule::kParts, Schedule::kFiftySteps, Schedule::kRecording}) {
      if (!only_schedule.empty() && ScheduleName(schedule) != only_schedule) continue;
      for (const uint32_t launches : {1u, 16u}) {
        Line same, changed;
        const auto compare = [&](double factor, Line* line) {
          SimulatedRun run{.noise = noise, .schedule = schedule, .launches = launches, .layers = 25};
          SimulatedRun other = run;
          run.seed = ++seed;
          other.seed = ++seed;
          other.faster_layer = factor;
          Count(Compare(run, other), line);
        };
        for (uint64_t i = 0; i < pairs; ++i) compare(1, &same);
        for (uint64_t i = 0; i < kChangedPairs; ++i) compare(kSlower, &changed);
        const auto percent = [](uint64_t part, uint64_t all) {
          return all == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(all);
        };
        const double judged = static_cast<double>(std::max<uint64_t>(same.judged, 1));
        const bool wrong = percent(same.any, same.judged) > 5 + 2 * 100 * std::sqrt(0.05 * 0.95 / judged);
        const bool blind = launches > 1 && ((schedule == Schedule::kParts && changed.found < kFoundInLong) ||
                                            (schedule != Schedule::kParts && changed.found < kFoundInShort));
        holds = holds && !wrong && !blind;
        printf("%-13s %-10s %8u | %8.1f%c %9.1f %9.3f | %13.1f %% | %5" PRIu64 " of %" PRIu64 "%c\n",
               NoiseName(noise).c_str(), ScheduleName(schedule).c_str(), launches, percent(same.any, same.judged),
               wrong ? '!' : ' ', percent(same.total, same.judged), percent(same.real_rows, same.rows),
               100 * same.visible / judged, changed.found, changed.pairs, blind ? '!' : ' ');
        fflush(stdout);
      }
    }
  }
  printf("\n%s: at most one comparison in twenty shows anything where nothing changed, and what changed is found\n",
         holds ? "holds" : "DOES NOT HOLD");
  return holds ? 0 : 1;
}

}  // namespace
}  // namespace rfinject::bench

int main(int argc, char** argv) { return rfinject::bench::Main(argc, argv); }
