// File: headline.h
//
// What a reader should know of a run before looking at any row, as numbers. The sentences are made where they are
// printed (cli/words/words.h).
#ifndef RFINJECT_CLI_REPORT_FACTS_HEADLINE_H_
#define RFINJECT_CLI_REPORT_FACTS_HEADLINE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

struct Report;
struct Row;
enum class Bound : uint8_t;

struct Headline {
  struct PrecisionShare {
    Precision precision{};
    double share = 0;         // of the run's FLOP
    double legacy_share = 0;  // of this precision's FLOP, over the legacy tensor path
  };
  // Time beyond the least that the kernels need, a step: of all layers of a class, or of a phase that is in no layer.
  struct Slack {
    std::string class_name;
    std::string model, layer;    // of those layers the one with most
    size_t layers = 0;           // how many they are; 0: what is in no layer
    std::optional<Phase> phase;  // in no layer only
    Bound bound{};
    double ns = 0;
  };

  // The two estimates of an estimated run, a step (over all, where steps are not known).
  struct Expected {
    double ns = 0, low_ns = 0, high_ns = 0;  // with its 80 % interval
    double ideal_ns = 0;
    double foreign_share = 0;   // of the time, by parameters of other GPUs
    double winograd_share = 0;  // of the time, convolutions that execute fewer FLOP than are counted
  };

  std::optional<Expected> expected;
  std::vector<PrecisionShare> precisions;  // that have FLOP, most FLOP first
  bool has_forward_or_backward = false;    // some launch is known to be of them
  // Shares of GPU time of launches that are held back by one thing; together 1 where it is known of all, else all 0
  // or less than 1.
  double launch_share = 0, memory_share = 0, compute_share = 0, pcie_share = 0, nvlink_share = 0;
  double attainable_share = 0;     // of the time of which it is known
  double idle_share = 0;           // of a measured step's wall time, in which no kernel ran; 0: unknown
  std::vector<Slack> most_to_win;  // the four with most
  // Launches of no model and no phase, where they take a tenth of the time or more; else 0.
  double outside_share = 0;
  bool outside_initialises = false;  // what they run fills tensors: the program makes its weights
  bool shared_counters = false;      // some row has an equal share of its layer's counters
};

// `report` must be complete but for its headline. `layers` are the By::kLayer rows of the same run.
Headline MakeHeadline(const Report& report, std::span<const Row> layers);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FACTS_HEADLINE_H_
