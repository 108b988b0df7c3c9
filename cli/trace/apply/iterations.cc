// What one iteration of the training is, and which steps are in complete ones. A window of --steps, or the program
// itself, may end inside of an iteration: a mean over the steps of one and a half GAN iterations is that of no
// iteration.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/trace/apply/errors.h"
#include "cli/trace/apply/records.h"
#include "proto/wire/framing.h"
#include "proto/wire/saturating_add.h"

namespace rfinject::cli {
namespace {

// The share that `left` of `all` samples have in a sum. Where all samples are alike, and so are those of a key that
// is estimated, it is exact.
Uint128 ShareOf(Uint128 sum, uint64_t left, uint64_t all) { return sum / all * left + sum % all * left / all; }

// Takes launches out of a key's sums. Where each launch was sampled, as in an estimate, their samples go with them;
// samples of single steps stand for all launches, and stay.
void TakeOut(uint64_t launches, KeyState* key) {
  const uint64_t before = key->launches;
  key->launches -= std::min(launches, before);
  key->left_out = key->launches == 0;
  for (auto& [metric, stat] : key->metrics) {
    if (stat.n != before || before == 0) continue;
    stat.n = key->launches;
    stat.sum = ShareOf(stat.sum, key->launches, before);
    stat.sum_squares = ShareOf(stat.sum_squares, key->launches, before);
  }
}

void Say(std::string text, Run* run) {
  run->kept.diagnostic.Add({.id = "window-cuts-iteration",
                            .text = std::move(text),
                            .remedy = "a number of --steps that is a multiple of an iteration's cuts none"});
}

void TakeOutStep(uint64_t step, RunState* of, State* state) {
  for (const auto& [place, launches] : of->step_launches[step]) TakeOut(launches, &state->keys[place]);
}

// Adds the last steps, without those behind the last complete iteration where it is known what these launched.
void FinishStepsOf(RunState* of, State* state) {
  for (const uint64_t step : of->left_out_steps) TakeOutStep(step, of, state);
  const bool known = !of->step_kinds.empty() && of->step_kinds.front().calls != 0;
  const uint64_t period = known ? StepsOfIteration(of->step_kinds) : 1;
  uint64_t steps = of->run.steps.steps;
  wire::SaturatingAdd(&steps, of->last_steps.size());
  uint64_t cut = steps >= period ? steps % period : 0;
  const auto known_launches = [of](const trace::Step& step) { return of->step_launches.contains(step.index); };
  if (cut > of->last_steps.size() ||
      !std::all_of(of->last_steps.end() - static_cast<ptrdiff_t>(cut), of->last_steps.end(), known_launches)) {
    cut = 0;
  }
  const size_t kept = of->last_steps.size() - cut;
  for (size_t i = 0; i < of->last_steps.size(); ++i) {
    const trace::Step& step = of->last_steps[i];
    if (i < kept) {
      AddMeasuredStep(step, of);
      continue;
    }
    TakeOutStep(step.index, of, state);
  }
  if (cut > 0) {
    Say(absl::StrCat("what was measured ends inside of an iteration, which has ", period,
                     " optimizer steps; that part, ", cut, cut == 1 ? " step" : " steps", ", is left out"),
        &of->run);
  } else if (!of->step_launches.empty() && steps < period) {
    Say(absl::StrCat("what was measured is shorter than an iteration, which has ", period,
                     " optimizer steps; what is shown is a mean of single ones"),
        &of->run);
  }
  if (known) of->run.steps.iterations += of->run.steps.steps / period;
}

}  // namespace

absl::Status Apply(const v1::StepLaunches& message, const Record& record, State* state) {
  RunState* run = nullptr;
  RFINJECT_TRY(state->FindRun(message.run(), record, &run));
  if (message.keys_size() != message.gap_size() || message.launches_size() != message.gap_size()) {
    return DamageAt(record.offset, "launches of a step have ranges without a number");
  }
  if (message.step() < run->untrained_steps) return absl::OkStatus();
  auto& launched = run->step_launches[message.step()];
  const size_t before = launched.size();
  uint64_t id = 1;
  for (int range = 0; range < message.gap_size(); ++range) {
    id += message.gap(range);
    if (message.keys(range) > wire::kMostKeysInARange) {
      return DamageAt(record.offset, "a range of a step's launches is longer than any should be");
    }
    for (const uint64_t end = id + message.keys(range); id < end; ++id) {
      const size_t found = id > UINT32_MAX ? IdIndex::kNone : state->key_index.Find(static_cast<uint32_t>(id));
      if (found == IdIndex::kNone) return Undefined(record, "launch key", id);
      launched.emplace_back(found, message.launches(range));
    }
  }
  return state->Charge(96 + sizeof(launched[0]) * (launched.size() - before), record);
}

void FinishSteps(State* state) {
  for (auto& [id, of] : state->runs) FinishStepsOf(&of, state);
}

}  // namespace rfinject::cli
