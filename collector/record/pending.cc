#include "collector/record/pending.h"

#include <algorithm>
#include <utility>

#include "collector/sync.h"

namespace rfinject {
namespace {

// Steps that a trace has one by one: as many as the reader looks at singly, 1.7 MB. Later ones are summed.
constexpr uint64_t kSingleSteps = 1 << 16;

constexpr std::string_view kDropNoMemory = "launches: out of memory";
constexpr std::string_view kDropUnknown = "launches: unknown ids";
constexpr std::string_view kDropTooMany = "launches: too many launch keys";
constexpr std::string_view kDropKept = "records: too many at once";

// Records of all kinds that wait for the next frame. A reader keeps far fewer, and they take a few MB.
constexpr size_t kMostWaiting = 8192;
constexpr size_t kMostWorks = 1 << 17;

}  // namespace

void PendingSteps::Keep(const StepRecord& step) {
  last_is_timed = step.measured && step.armed_group == 0;
  if (singles >= kSingleSteps || near_limit) return Sum(step);
  single.push_back(step);
  ++singles;
}

void PendingSteps::Sum(const StepRecord& step) {
  if (step.measured) summed.Add(step);
}

bool Pending::MayCompile() const { return steps_seen_ == 0 && definitions_->facts.source == SourceKind::kEstimated; }

bool Pending::MayBeCut(uint64_t step) const {
  if (window_->Ends()) return window_->IsNearEnd(step);
  return window_->KindsDiffer();
}

void Pending::NoteStepLaunches(uint64_t step, const LaunchIdentity& identity, uint32_t id, uint64_t launches) {
  if (id == 0 || launches == 0 || identity.site.phase == Phase::kEval) return;
  if (window_->Ends() || MayCompile()) {
    step_launches.due[step][id] += launches;
    return;
  }
  auto& recent = step_launches.recent;
  recent[step][id] += launches;
  while (recent.size() > Window::kStepsNearEnd) recent.erase(recent.begin());
}

void Pending::DropRunningStep() {
  while (running_step_.TakeOne([](auto&&...) {})) {
  }
}

void Pending::TakeRunningStep() {
  if (window_->LeftOut(running_.step)) return DropRunningStep();
  const bool may_be_cut = MayBeCut(running_.step);
  SayWhatBecameOf(
      table.TakeAllOf(&running_step_, [&](uint32_t id, const LaunchIdentity& identity, uint64_t launches) {
        if (may_be_cut) NoteStepLaunches(running_.step, identity, id, launches);
      }));
}

void Pending::TakeRunningBatch() {
  SayWhatBecameOf(table.TakeAllOf(&running_batch_, [](uint32_t, const LaunchIdentity&, uint64_t) {}));
}

void Pending::Add(const LaunchRecord& record, uint64_t current_step) {
  if (record.launches == LaunchRecord::kGraph) {
    return AddGraphAt({.step = current_step, .batch = batches_seen_}, record.identity.kernel, current_step);
  }
  if (!definitions_->Knows(record)) return AddDrop(kDropUnknown, 1);
  if (training_from_ != 0 && current_step >= training_from_) {
    // The keys of the training have no numbers yet.
    running_.step = current_step;
    return SayWhatBecameOf(running_step_.Add(record));
  }
  AddToTable(record);
}

void Pending::AddSamples(const LaunchRecord& record, uint64_t step, uint64_t current_step) {
  if (!definitions_->Knows(record)) return AddDrop(kDropUnknown, 1);
  if (training_from_ != 0 && current_step >= training_from_) {
    running_.step = current_step;
    return SayWhatBecameOf(running_step_.Add(record));
  }
  uint32_t key = 0;
  SayWhatBecameOf(table.Add(record, &key));
  if (key == 0 || step == Recorder::kOfNoStep) return;
  for (uint32_t s = 0; s < record.sample_count && s < kMaxSamplesPerRecord; ++s) {
    step_sums.Add(step, key, record.samples[s]);
  }
}

void Pending::AddToTable(const LaunchRecord& record) { SayWhatBecameOf(table.Add(record)); }

// A launch of a graph that is not settled is kept back here, and not in its step: until it is known what it launches,
// its step is over. Steps near the window's end are told apart, as in NoteStepLaunches.
void Pending::AddGraphAt(const RingPosition& position, uint32_t graph, uint64_t current_step) {
  const uint64_t step = window_->IsNearEnd(position.step) ? position.step : GraphLaunches::kAnyStep;
  const bool known =
      graphs.Launch(graph, step, [&](const LaunchRecord& record) { AddAt(position, record, current_step); });
  if (!known) AddDrop(kDropUnknown, 1);
}

void Pending::SettleGraph(uint32_t graph, bool by_members) {
  graphs.Settle(graph, by_members, [this](uint64_t step, const LaunchRecord& record) {
    if (!definitions_->Knows(record)) return AddDrop(kDropUnknown, 1);
    uint32_t key = 0;
    SayWhatBecameOf(table.Add(record, &key));
    if (step != GraphLaunches::kAnyStep) NoteStepLaunches(step, record.identity, key, record.launches);
  });
}

void Pending::AddAt(const RingPosition& position, const LaunchRecord& record, uint64_t current_step) {
  if (record.launches == LaunchRecord::kGraph) return AddGraphAt(position, record.identity.kernel, current_step);
  if (!definitions_->Knows(record)) return AddDrop(kDropUnknown, 1);
  if (record.identity.site.phase == Phase::kEval) {
    if (position.batch < batches_seen_) return AddToTable(record);
    running_.batch = position.batch;
    return SayWhatBecameOf(running_batch_.Add(record));
  }
  // Before a step has ended there is no number of steps to divide by; what ran is kept all the same.
  if (steps_seen_ == 0 || position.step < steps_seen_) {
    if (window_->LeftOut(position.step)) return;
    if (!MayCompile() && !MayBeCut(position.step)) return AddToTable(record);
    uint32_t key = 0;
    SayWhatBecameOf(table.Add(record, &key));
    return NoteStepLaunches(position.step, record.identity, key, record.launches);
  }
  running_.step = position.step;
  SayWhatBecameOf(running_step_.Add(record));
}

void Pending::SayWhatBecameOf(LaunchTable::AddResult added) {
  switch (added) {
    case LaunchTable::AddResult::kOk:
      return;
    case LaunchTable::AddResult::kCoarsened:
      definitions_->AddDiagnostic(Severity::kWarning, "too-many-keys",
                                  "more than " + std::to_string(LaunchTable::kMaxKeys) +
                                      " launch keys; new ones are kept without their shapes and grids",
                                  "measure fewer steps (--steps) where shapes change in every step", UnixNs());
      return;
    case LaunchTable::AddResult::kOutOfMemory:
      return AddDrop(kDropNoMemory, 1);
    case LaunchTable::AddResult::kTooMany:
      return AddDrop(kDropTooMany, 1);
  }
}

void Pending::AddDrop(std::string_view what, uint64_t count) {
  // There are a few reasons. To find one takes no memory.
  auto known =
      std::find_if(drops.begin(), drops.end(), [what](const trace::Drop& drop) { return drop.what == what; });
  if (known == drops.end()) return drops.push_back({.what = std::string(what), .count = count});
  known->count += count;
}

void Pending::AddWork(OperatorWork work) {
  if (told.works.size() >= kMostWorks) return AddDrop("works of operators: too many", 1);
  told.works.push_back(std::move(work));
}

void Pending::Keep(trace::RunRecord record) {
  if (kept.size() >= kMostWaiting) return AddDrop(kDropKept, 1);
  kept.push_back(std::move(record));
}

void Pending::AddStep(const StepRecord& step) {
  if (step.index < steps_seen_) return steps.Keep(step);
  early_steps_.push_back(step);
}

void Pending::BeginTraining(uint64_t step) {
  training_from_ = step;
  drained_ = false;
}

void Pending::TurnToTraining() {
  TakeRunningBatch();
  batches += std::exchange(steps.summed.steps, 0);
  samples += std::exchange(steps.summed.samples, 0);
  steps.summed = {};
  step_launches = {};
  definitions_->facts.untrained_steps = training_from_;
  definitions_->facts.untrained_keys = table.size();
  table.BeginAnew();
  training_from_ = 0;
}

void Pending::TakeWhatEnded(Progress* progress, bool last) {
  const uint64_t finished = progress->finished_steps();
  // First all launches of the steps before the training leave the rings.
  if (training_from_ != 0 && steps_seen_ >= training_from_ && drained_) TurnToTraining();
  const uint64_t before = steps_seen_;
  // No ring holds a launch of a step that ended before they were last read.
  if (drained_) {
    for (const uint32_t gone : graphs.GoneBefore(steps_seen_)) {
      SettleGraph(gone, false);
      graphs.Erase(gone);
    }
  }
  steps_seen_ = training_from_ != 0 ? std::min(finished, training_from_) : finished;
  holds_back_ = training_from_ != 0;
  if (steps_seen_ != before) drained_ = false;
  if (before == 0 && steps_seen_ > 0) {
    if (window_->LeftOut(0)) {
      // What is taken out of a key is as its mean is, so nothing else may have these keys.
      table.BeginAnew();
    } else if (!window_->IsNearEnd(0)) {
      step_launches.due.erase(0);
    }
  }
  last = last && !holds_back_;
  batches_seen_ = progress->batches();
  for (size_t early = early_steps_.size(); early > 0; --early) {
    const StepRecord step = early_steps_.front();
    early_steps_.pop_front();
    AddStep(step);
  }
  // At its end the program has come to the end of the batch that it validated last, too.
  samples += progress->TakeSamples(last);
  most_samples = progress->most_samples();
  const uint64_t ended = last ? batches_seen_++ : batches_seen_ - std::min<uint64_t>(batches_seen_, 1);
  batches += ended - std::min(ended, batches_taken_);
  batches_taken_ = std::max(batches_taken_, ended);
  if (running_.step < steps_seen_) TakeRunningStep();
  if (running_.batch < batches_seen_) TakeRunningBatch();
}

// What a loop does after its optimizer's step (an average of the weights, a metric) is in the sums of the next step.
// What it does after its last step is in no other, and counts with that one. A forward, however, has begun a step
// that has not ended, and is left out.
void Pending::SettleWhatRan() {
  for (const uint32_t graph : graphs.Unsettled()) SettleGraph(graph, false);
  TakeRunningBatch();
  step_launches.due.merge(step_launches.recent);
  bool began = false;
  uint64_t launches = 0;
  running_step_.ForEachChanged([&](const LaunchTable::Key& key) {
    const Phase phase = key.identity.site.phase;
    began = began || phase == Phase::kForward || phase == Phase::kBackward || phase == Phase::kRecompute;
    launches += key.launches;
  });
  if (!began) {
    // The wait for the loss of the last step, as that of the step before is in this one.
    const StepRecord waits = std::exchange(steps.waits_behind, {});
    if (steps.last_is_timed && !window_->Ends()) steps.summed.Lengthen(waits);
    return TakeRunningStep();
  }
  DropRunningStep();
  definitions_->AddDiagnostic(Severity::kInfo, "step-not-ended",
                              "the last step did not end before the program did: what ran in it, " +
                                  std::to_string(launches) + " launches, is in no sum",
                              {}, UnixNs());
}

bool Pending::MayLeaveRing(const RingPosition& position, bool half_full) const {
  // The tables hold one running step and one running batch at a time; what began meanwhile is read the next time.
  if (position.step > steps_seen_ || position.batch > batches_seen_) return false;
  const bool runs = steps_seen_ != 0 && position.step == steps_seen_ && position.batch == batches_seen_;
  return !runs || half_full;
}

}  // namespace rfinject
