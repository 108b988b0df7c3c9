#include "cli/trace/apply/apply.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cli/trace/apply/errors.h"
#include "cli/trace/apply/records.h"

namespace rfinject::cli {
namespace {

// Adds a record that is merely kept (@kept in the schema) to its run's list of them.
template <typename Message, typename Kept>
absl::Status Keep(const Message& message, Kept said, const Record& record, State* state) {
  RunState* run = nullptr;
  RFINJECT_TRY(state->FindRun(message.run(), record, &run));
  RFINJECT_TRY(ReadRecord(message, record, &said));
  said.run = 0;
  const bool is_new = run->run.kept.Of(said).Add(std::move(said));
  return is_new ? state->Charge(record.size, record) : absl::OkStatus();
}

}  // namespace

absl::Status Applier::Apply(const Record& record) {
  if (record.number == v1::Chunk::kStatsFieldNumber) return ApplyKeyStats(record, &state_);
  return trace::UseRecord(
      *record.chunk, record.number, record.index,
      [&](const auto& message) { return cli::Apply(message, record, &state_); },
      [&](const auto& message, auto said) { return Keep(message, std::move(said), record, &state_); });
}

void Applier::Resolve() {
  FinishLayers(&state_);
  FinishSteps(&state_);
  FinishTimes(&state_);
  FinishFacts(&state_);
  FinishSamples(&state_);
  FinishMemory(&state_);
  FinishOperators(&state_);
  FinishTimelines(&state_);
}

std::vector<std::pair<RunKey, std::vector<std::string_view>>> Applier::Operators() const {
  std::map<std::pair<uint32_t, bool>, std::vector<uint32_t>> names;  // by run, and whether it is its validation
  for (const auto& [id, of] : state_.runs) {
    if (of.run.unfinished == 0) names[{id, false}];
  }
  for (const KeyState& known : state_.keys) {
    if (state_.runs.at(known.key.run).run.unfinished > 0) continue;
    names[{known.key.run, state_.IsValidation(known.key)}].push_back(known.key.op);
  }
  std::vector<std::pair<RunKey, std::vector<std::string_view>>> ran;
  for (auto& [run, ids] : names) {
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    auto& [key, texts] = ran.emplace_back(state_.runs.at(run.first).run.key, std::vector<std::string_view>());
    key.training = key.training && !run.second;
    for (const uint32_t id : ids) texts.push_back(state_.NameOf(id));
    std::sort(texts.begin(), texts.end());
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  }
  return ran;
}

Profile Applier::Finish() && {
  Accumulator sum;
  std::move(*this).AddTo(&sum);
  return std::move(sum).Take();
}

}  // namespace rfinject::cli
