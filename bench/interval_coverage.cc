// File: interval_coverage.cc
//
// The exam of the intervals: how often the interval that `report` prints holds the mean of the run's own steps, by
// noise, schedule, launches a step, level and quantity (docs/INTERVALS.md has its table).
//
//   interval_coverage [--runs N] [--seed S] [--noise NAME] [--schedule NAME]
//
// A cell is N runs, default 1000. Without names, all of them: the exam is the whole table.
//
// Holds when every cell that prints intervals covers 93 to 97 %, and no more than 20 % of the intervals of realistic
// noises are declined. A cell in which fewer than one run in five prints counts as one that declines.
#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "bench/simulated_run.h"
#include "cli/report/fold.h"

namespace rfinject::bench {
namespace {

using cli::By;
using cli::Knowledge;
using cli::Report;
using cli::Row;

constexpr std::array<const char*, 4> kLevels = {"key", "layer", "phase", "model"};
constexpr std::array<const char*, 3> kQuantities = {"time", "bytes", "OI"};

struct Cell {
  uint64_t intervals = 0, printed = 0, covering = 0;
  bool prints() const { return 5 * printed >= intervals; }
  double coverage() const { return 100.0 * static_cast<double>(covering) / static_cast<double>(printed); }
};
using Cells = std::array<std::array<Cell, 3>, 4>;

struct Truth {
  double ns = 0, bytes = 0, flop = 0;
};

void Judge(const Knowledge& time, const Knowledge& bytes, double ns, double dram, double oi, const Truth& truth,
           std::array<Cell, 3>& cells) {
  const auto judge = [](Cell& cell, const Knowledge& known, bool covers) {
    ++cell.intervals;
    if (!cli::HasInterval(known.trust) || known.relative <= 0) return;
    ++cell.printed;
    cell.covering += covers;
  };
  judge(cells[0], time, std::fabs(ns - truth.ns) <= time.relative * ns);
  judge(cells[1], bytes, std::fabs(dram - truth.bytes) <= bytes.relative * dram);
  const double true_oi = truth.flop / truth.bytes;
  judge(cells[2], bytes, true_oi >= oi / (1 + bytes.relative) && true_oi * (1 - bytes.relative) <= oi);
}

void JudgeRun(const SimulatedResult& run, Cells& cells) {
  const double steps = static_cast<double>(run.steps);
  std::array<std::map<std::string, Truth>, 4> truths;
  for (const TrueKey& key : run.keys) {
    const std::string layer = key.layer == 0 ? "" : "layer" + std::to_string(key.layer - 1);
    const std::string names[] = {key.kernel, layer, std::string(kPhaseNames[static_cast<size_t>(key.phase)]), "all"};
    for (size_t level = 0; level < 4; ++level) {
      Truth& truth = truths[level][names[level]];
      truth.ns += key.ns, truth.bytes += key.bytes, truth.flop += key.flop;
    }
  }
  const auto judge_row = [&](size_t level, const std::string& name, const Row& row) {
    const auto truth = truths[level].find(name);
    if (truth == truths[level].end()) return;
    Judge(row.time, row.bytes, row.sums.time_ns() / steps, row.sums.dram_bytes() / steps,
          row.derived.oi_flop_per_byte, truth->second, cells[level]);
  };
  const cli::Run& only = run.profile.runs.begin()->second;
  const Report keys = cli::FoldRun(run.profile, only, cli::Machine{}, {.by = By::kKernel});
  for (const Row& row : keys.rows) judge_row(0, row.kernel, row);
  const Report layers = cli::FoldRun(run.profile, only, cli::Machine{}, {.by = By::kLayer});
  for (const Row& row : layers.rows) judge_row(1, row.layer, row);
  for (const Row& row : layers.phases) judge_row(2, std::string(cli::PhaseName(row.phase)), row);
  Judge(layers.total_time, layers.total_bytes, layers.total.time_ns() / steps, layers.total.dram_bytes() / steps,
        layers.total_derived.oi_flop_per_byte, truths[3]["all"], cells[3]);
}

int Main(int argc, char** argv) {
  uint64_t runs = 1000, seed = 1'000'000;
  std::string_view only_noise, only_schedule;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i];
    const char* const value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (value != nullptr && option == "--runs") {
      runs = strtoull(value, nullptr, 10);
    } else if (value != nullptr && option == "--seed") {
      seed = strtoull(value, nullptr, 10);
    } else if (value != nullptr && option == "--noise") {
      only_noise = value;
    } else if (value != nullptr && option == "--schedule") {
      only_schedule = value;
    } else {
      fprintf(stderr, "usage: interval_coverage [--runs N] [--seed S] [--noise NAME] [--schedule NAME]\n");
      return 2;
    }
  }
  printf("interval_coverage --runs %" PRIu64 " --seed %" PRIu64 "\n", runs, seed);
  printf(
      "Percent of the 95 %% intervals of the report that hold the run's mean step; '-': declined in more than 4 of "
      "5.\n\n");
  printf("%-13s %-10s %8s |%24s |%24s |%24s | %s\n", "", "", "", "time", "bytes", "OI", "declined");
  printf("%-13s %-10s %8s |", "noise", "schedule", "launches");
  for (size_t i = 0; i < 3; ++i) {
    for (const char* level : kLevels) printf("%6s", level);
    printf(i < 2 ? " |" : " |\n");
  }
  uint64_t cells_printing = 0, cells_wrong = 0, realistic = 0, realistic_declined = 0, most_armed_permille = 0;
  double most_growth = 0;
  for (const Noise noise : kAllNoises) {
    if (!only_noise.empty() && NoiseName(noise) != only_noise) continue;
    for (const Schedule schedule : {Schedule::kOneGroup, Schedule::kRotation, Schedule::kFiftySteps}) {
      if (!only_schedule.empty() && ScheduleName(schedule) != only_schedule) continue;
      for (const uint32_t launches : {1u, 4u, 16u, 64u}) {
        Cells cells;
        for (uint64_t run = 0; run < runs; ++run) {
          const SimulatedResult result =
              Simulate({.noise = noise, .schedule = schedule, .launches = launches, .seed = ++seed});
          JudgeRun(result, cells);
          if (schedule != Schedule::kFiftySteps) {
            most_armed_permille = std::max(most_armed_permille, 1000 * result.armed / result.steps);
          }
          most_growth = std::max(most_growth, static_cast<double>(result.series_bytes) /
                                                  static_cast<double>(result.trace_bytes - result.series_bytes));
        }
        printf("%-13s %-10s %8u |", NoiseName(noise).c_str(), ScheduleName(schedule).c_str(), launches);
        uint64_t all = 0, declined = 0;
        for (size_t quantity = 0; quantity < 3; ++quantity) {
          for (size_t level = 0; level < kLevels.size(); ++level) {
            const Cell& cell = cells[level][quantity];
            ++all;
            declined += !cell.prints();
            if (!cell.prints()) {
              printf("%6s", "-");
              continue;
            }
            ++cells_printing;
            const bool wrong = cell.coverage() < 93 || cell.coverage() > 97;
            cells_wrong += wrong;
            printf("%5.1f%c", cell.coverage(), wrong ? '!' : ' ');
          }
          printf(" |");
        }
        double share = 0;
        for (const auto& level : cells) {
          for (const Cell& cell : level) {
            share += 1 - static_cast<double>(cell.printed) / static_cast<double>(cell.intervals);
          }
        }
        printf(" %5.1f %%\n", 100 * share / 12);
        fflush(stdout);
        if (IsRealistic(noise)) realistic += all, realistic_declined += declined;
      }
    }
  }
  if (!only_noise.empty() || !only_schedule.empty()) return 0;
  const double share = 100.0 * static_cast<double>(realistic_declined) / static_cast<double>(realistic);
  printf("\n%" PRIu64 " of %" PRIu64 " cells that print are outside 93 to 97 %%; %.1f %% of the %" PRIu64
         " cells of realistic noises decline\n",
         cells_wrong, cells_printing, share, realistic);
  printf(
      "armed with counters: at most %.1f %% of the steps of a long run; sums by step: at most %.1f %% of a trace\n",
      static_cast<double>(most_armed_permille) / 10, 100 * most_growth);
  const bool holds = cells_wrong == 0 && share <= 20;
  printf("%s: every cell that prints covers 93 to 97 %%, at most 20 %% of the realistic cells decline\n",
         holds ? "holds" : "DOES NOT HOLD");
  return holds ? 0 : 1;
}

}  // namespace
}  // namespace rfinject::bench

int main(int argc, char** argv) { return rfinject::bench::Main(argc, argv); }
