// File: pending.h
//
// Pending holds what was recorded and is not in the file yet: what waits for the end of its step or batch, and what
// waits for the next frame. The recorder's lock (state.h) guards it. All of it may throw std::bad_alloc.
#ifndef RFINJECT_COLLECTOR_RECORD_PENDING_H_
#define RFINJECT_COLLECTOR_RECORD_PENDING_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "collector/definitions.h"
#include "collector/memory_peak.h"
#include "collector/record/graph_launches.h"
#include "collector/record/launch_ring.h"
#include "collector/record/launch_table.h"
#include "collector/record/progress.h"
#include "collector/record/step_sums.h"
#include "collector/record/window.h"
#include "collector/trace_encoder.h"

namespace rfinject {

// Steps that wait to be written. The first ones are kept one by one; later ones, and those of a file that is nearly
// as large as it may be, as sums. Such a file is seldom written, so what waits for it must not grow with each step.
struct PendingSteps {
  std::deque<StepRecord> single;
  uint64_t singles = 0;  // in the file, or in `single`
  bool near_limit = false, last_is_timed = false;
  // What the program waited for behind its last step: `gpu_wait_ns` and `gpu_busy_ns`.
  StepRecord waits_behind;
  SummedSteps summed;

  void Keep(const StepRecord& step);
  void Sum(const StepRecord& step);
};

// What was launched in single steps, by step and by launch key (StepLaunches).
struct NotedLaunches {
  using ByStep = std::map<uint64_t, std::map<uint32_t, uint64_t>>;
  ByStep due;  // in the file at the end of the step
  // Due when the recording ends, where nothing says before which step will be the last. Kept only of loops whose
  // steps differ: other loops have no iteration that could be cut.
  ByStep recent;
};

// What was told of launches, until the file knows all of their keys.
struct ToldOfLaunches {
  std::deque<OperatorWork> works;
  std::map<uint32_t, Timeline> timelines;  // by device
};

class Pending {
 public:
  Pending(Definitions* definitions, const Window* window) : definitions_(definitions), window_(window) {}

  // What the launches of CUDA graphs stand for.
  GraphLaunches graphs;
  // Adds what was kept back of a graph, as the launches that it was found to be, and all later ones with it.
  void SettleGraph(uint32_t graph, bool by_members);

  // Adds a launch, or samples of it, to the table. `current_step` is the step that runs.
  void Add(const LaunchRecord& record, uint64_t current_step);
  // Adds samples of launches that were recorded in `step` (Recorder::AddSamples).
  void AddSamples(const LaunchRecord& record, uint64_t step, uint64_t current_step);
  // Does the same as Add with a launch from a ring, which may have to wait for the end of its step or batch.
  void AddAt(const RingPosition& position, const LaunchRecord& record, uint64_t current_step);
  void AddStep(const StepRecord& step);
  void AddDrop(std::string_view what, uint64_t count);
  void Keep(trace::RunRecord record);
  // Works wait until all that they launch was recorded.
  void AddWork(OperatorWork work);

  // Moves what has ended since the last call into the table. `last` says that nothing more will end.
  void TakeWhatEnded(Progress* progress, bool last);
  // Tells that the rings were read as far as MayLeaveRing allows.
  void NoteDrained() { drained_ = true; }
  // Whether more has ended than TakeWhatEnded has taken, so that it is to be called again.
  bool HoldsBack() const { return holds_back_; }
  // How many steps TakeWhatEnded has taken.
  uint64_t steps_seen() const { return steps_seen_; }

  // Tells that the program begins to train with `step`, and that the steps before were no training. What was launched
  // in these keeps launch keys of its own (Run.untrained_keys).
  void BeginTraining(uint64_t step);
  // Whether the writer may read launches of `position`. Those of a step that runs wait for its end in the ring, where
  // there is room for them: from there they come into the table without a second one in between.
  bool MayLeaveRing(const RingPosition& position, bool half_full) const;
  // Decides what becomes of a step that did not end. Called when the recording is over.
  void SettleWhatRan();

  // What the next frames are made of (FrameBuilder).
  LaunchTable table;
  StepSums step_sums;
  // Of the last steps of the recording, and of the first step of an estimate while it runs.
  NotedLaunches step_launches;
  PendingSteps steps;
  uint64_t batches = 0, samples = 0;  // of complete batches that wait to be written
  uint64_t most_samples = 0;          // of one batch so far
  std::optional<MemoryPeak> memory_peak;
  // Stacks (Definitions::stacks) of the keys that have one.
  std::unordered_map<LaunchIdentity, uint32_t, IdentityHash> key_stacks;
  ToldOfLaunches told;
  std::deque<trace::RunRecord> kept;
  std::deque<trace::Drop> drops;

 private:
  void SayWhatBecameOf(LaunchTable::AddResult added);
  void AddToTable(const LaunchRecord& record);
  void AddGraphAt(const RingPosition& position, uint32_t graph, uint64_t current_step);
  // Whether the step that runs is the first of an estimate, which may turn out to be one that compiles.
  bool MayCompile() const;
  // Whether the launches of `step` are noted, because it may be one of the last and in an iteration that is cut.
  bool MayBeCut(uint64_t step) const;
  // Notes launches of key `id` in `step`.
  void NoteStepLaunches(uint64_t step, const LaunchIdentity& identity, uint32_t id, uint64_t launches);
  void TakeRunningStep();
  void DropRunningStep();
  void TakeRunningBatch();
  // What comes from now on is of the training.
  void TurnToTraining();

  Definitions* const definitions_;
  const Window* const window_;
  // What was launched in the step that runs, and in the batch that is being validated. Reports divide by what is
  // complete, so this waits here for the end of the step or the batch.
  LaunchTable running_step_, running_batch_;
  RingPosition running_;
  uint64_t steps_seen_ = 0, batches_seen_ = 0;  // of Progress, when the rings were last drained
  uint64_t batches_taken_ = 0;                  // complete batches that are in the file, or in `batches`
  // The first step of the training, while launches of steps before it may still lie in rings; then 0.
  uint64_t training_from_ = 0;
  bool drained_ = false, holds_back_ = false;
  // Steps whose launches may still lie in a ring, because they ended after steps_seen_ was read. They wait for the
  // next look: the file gets a step and its launches at once.
  std::deque<StepRecord> early_steps_;
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_RECORD_PENDING_H_
