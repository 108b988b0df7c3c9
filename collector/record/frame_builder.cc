#include "collector/record/frame_builder.h"

#include <deque>
#include <iterator>
#include <utility>
#include <variant>

#include "collector/process_facts.h"
#include "collector/record/chunk_schedule.h"
#include "proto/wire/framing.h"

namespace rfinject {
namespace {

static_assert(FrameBuilder::kFrameLimit < wire::kMaxPayloadSize);

// From this size on, definitions go into the next frame. What whole steps add up to is not divided: a program that is
// killed between two frames would leave a part of it. 100,000 keys of six metrics take some 7 MB.
constexpr size_t kDefinitionsSoftLimit = 256 << 10;
constexpr size_t kFrameSoftLimit = 10 << 20;

bool IsFull(const wire::Encoder* out) { return out->size() >= kDefinitionsSoftLimit || !out->ok(); }
bool IsTooLong(const wire::Encoder* out) { return out->size() >= kFrameSoftLimit || !out->ok(); }

// Writes what has no version: each item once, in order.
template <typename Items>
void EncodeNew(const Items& items, size_t* written, wire::Encoder* out) {
  for (; *written < items.size() && !IsFull(out); ++*written) {
    EncodeRecord(static_cast<uint32_t>(*written + 1), items[*written], out);
  }
}

// Writes the items whose version the file does not have yet.
template <typename Items, typename Encode>
void EncodeChanged(const Items& items, Encode encode, std::vector<uint32_t>* written, wire::Encoder* out) {
  written->resize(items.size());
  for (size_t i = 0; i < items.size() && !IsFull(out); ++i) {
    if ((*written)[i] == items[i].version) continue;
    encode(static_cast<uint32_t>(i + 1), items[i], out);
    (*written)[i] = items[i].version;
  }
}

}  // namespace

void FrameBuilder::EncodeDefinitions(wire::Encoder* out) {
  const Definitions& definitions = *definitions_;
  if (!process_written_) {
    EncodeTraceId(NewTraceId(), out);
    RunFacts own = ReadProcessFacts();
    own.process.start_unix_ns = created_unix_ns_;
    EncodeFactChanges(RunFacts{}, own, out);
    process_written_ = true;
  }
  if (EncodeFactChanges(facts_written_, definitions.facts, out)) facts_written_ = definitions.facts;
  for (; names_written_ < definitions.names.size() && !IsFull(out); ++names_written_) {
    EncodeName(names_written_ + 1, definitions.names.text(names_written_ + 1), out);
  }
  EncodeNew(definitions.models, &models_written_, out);
  const auto encode_layer = [](uint32_t id, const Layer& layer, wire::Encoder* to) {
    EncodeRecord(id, layer.definition, to);
  };
  EncodeChanged(definitions.layers, encode_layer, &layer_versions_, out);
  EncodeChanged(definitions.modules, EncodeRecord<NativeModule>, &module_versions_, out);
  EncodeChanged(definitions.stacks, EncodeStack, &stack_versions_, out);
  EncodeNew(definitions.lines, &lines_written_, out);
  EncodeNew(definitions.metrics, &metrics_written_, out);
}

// Returns whether every key that has changed is defined.
bool FrameBuilder::EncodeKeys(wire::Encoder* out) {
  const auto find = [](const auto& ids, const LaunchIdentity& identity) {
    const auto id = ids.find(identity);
    return id != ids.end() ? id->second : 0;
  };
  return pending_->table.DefineChanged([&](uint32_t id, const LaunchIdentity& identity) {
    if (IsFull(out)) return false;
    EncodeLaunchKey(id, identity, find(pending_->key_stacks, identity), find(definitions_->key_lines, identity), out);
    return true;
  });
}

// Returns whether the changes of all keys are in the frame.
bool FrameBuilder::EncodeStatistics(wire::Encoder* out) {
  const auto take = [this, out](uint32_t id, const LaunchTable::Key& key, auto metrics) {
    if (key.repeats && repeated_keys_.full()) repeated_keys_.Encode(out);
    if (!key.repeats || !repeated_keys_.Add(id, key.launches)) EncodeKeyStats(id, key.launches, metrics, out);
  };
  while (!IsTooLong(out) && pending_->table.TakeOne(take)) {
  }
  repeated_keys_.Encode(out);
  return !IsTooLong(out) && !pending_->table.HasChanges();
}

// What is told of launches may come before these are recorded, and stays where they never are, because their step is
// not measured.
void FrameBuilder::EncodeWorks(wire::Encoder* out) {
  std::deque<OperatorWork> waiting;
  for (; !pending_->told.works.empty() && !IsTooLong(out); pending_->told.works.pop_front()) {
    OperatorWork& one = pending_->told.works.front();
    if (FindNumbers(one.launched, &one.work.key)) {
      EncodeRecord(kRunId, one.work, out);
    } else {
      waiting.push_back(std::move(one));
    }
  }
  pending_->told.works.insert(pending_->told.works.begin(), std::make_move_iterator(waiting.begin()),
                              std::make_move_iterator(waiting.end()));
}

void FrameBuilder::EncodeTimelines(wire::Encoder* out) {
  auto& timelines = pending_->told.timelines;
  for (auto one = timelines.begin(); one != timelines.end() && !IsTooLong(out);) {
    trace::StepTimeline& timeline = one->second.timeline;
    const bool known = FindNumbers(one->second.launched, &timeline.key);
    if (known) EncodeRecord(kRunId, timeline, out);
    one = known ? timelines.erase(one) : std::next(one);
  }
}

// Whether the file knows all of these.
bool FrameBuilder::FindNumbers(const std::vector<LaunchIdentity>& launched, std::vector<uint32_t>* numbers) {
  numbers->clear();
  for (const LaunchIdentity& identity : launched) {
    const uint32_t number = pending_->table.NumberOf(identity);
    if (number == 0) return false;
    numbers->push_back(number);
  }
  return true;
}

void FrameBuilder::EncodeStepLaunches(wire::Encoder* out) {
  const auto complete = [this](const auto& one) { return one.first < pending_->steps_seen(); };
  auto& waiting = pending_->step_launches.due;
  for (auto step = waiting.begin(); step != waiting.end() && complete(*step); step = waiting.erase(step)) {
    for (const auto& [id, launches] : step->second) {
      if (repeated_keys_.full()) repeated_keys_.EncodeOfStep(step->first, out);
      repeated_keys_.Add(id, launches);
    }
    repeated_keys_.EncodeOfStep(step->first, out);
  }
}

void FrameBuilder::EncodeSteps(uint64_t file_bytes, uint64_t max_bytes, wire::Encoder* out) {
  PendingSteps& steps = pending_->steps;
  for (; !steps.single.empty() && !IsTooLong(out); steps.single.pop_front()) {
    // A writer that gets no time finds more steps than the file may have.
    steps.near_limit = steps.near_limit || IsNearLimit(file_bytes + out->size(), max_bytes);
    if (steps.near_limit) {
      steps.Sum(steps.single.front());
    } else {
      EncodeStep(steps.single.front(), out);
    }
  }
  if (!steps.summed.empty()) EncodeSummedSteps(steps.summed, out);
  steps.summed = {};
}

void FrameBuilder::EncodeRest(wire::Encoder* out) {
  Pending& pending = *pending_;
  // Samples may be read a moment before the end of their batch is seen; they wait for it.
  if (pending.batches != 0) {
    EncodeEvaluation(pending.batches, pending.samples, pending.most_samples, out);
    pending.batches = pending.samples = 0;
  }
  // The peak may refer only to layers that were written before it.
  if (pending.memory_peak) EncodeMemoryPeak(&*pending.memory_peak, definitions_->layers.size(), out);
  pending.memory_peak.reset();
  const auto write = [out](const auto& record) { EncodeRecord(kRunId, record, out); };
  for (; !pending.kept.empty() && !IsTooLong(out); pending.kept.pop_front()) std::visit(write, pending.kept.front());
  for (; diagnostics_written_ < definitions_->diagnostics.size() && !IsTooLong(out); ++diagnostics_written_) {
    write(definitions_->diagnostics[diagnostics_written_]);
  }
  for (; !pending.drops.empty() && !IsTooLong(out); pending.drops.pop_front()) write(pending.drops.front());
}

bool FrameBuilder::Build(uint64_t file_bytes, uint64_t max_bytes, bool last, wire::Encoder* out) noexcept try {
  // Definitions come before everything that may refer to them, in this frame or an earlier one.
  EncodeDefinitions(out);
  if (!EncodeKeys(out) || IsFull(out)) return true;
  if (!EncodeStatistics(out)) return true;
  // The keys of the complete steps are in the file by now.
  if (last) pending_->step_sums.CompleteAll();
  std::deque<SampledStep>& sampled = pending_->step_sums.complete();
  for (; !sampled.empty() && !IsTooLong(out); sampled.pop_front()) EncodeRecord(kRunId, sampled.front(), out);
  EncodeWorks(out);
  EncodeTimelines(out);
  EncodeStepLaunches(out);
  EncodeSteps(file_bytes, max_bytes, out);
  EncodeRest(out);
  return IsTooLong(out);
} catch (...) {
  out->Fail();
  return false;
}

}  // namespace rfinject
