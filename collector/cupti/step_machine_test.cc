#include "collector/cupti/step_machine.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace rfinject::cupti {
namespace {

constexpr StepState kAll[] = {StepState::kWaiting, StepState::kPlain,    StepState::kCounters,
                              StepState::kTimes,   StepState::kSampling, StepState::kOff};

// A machine that was led into `state`.
void Lead(StepMachine* machine, StepState state) {
  if (state == StepState::kWaiting) return;
  if (state == StepState::kOff) {
    EXPECT_TRUE(machine->Enter(state));
    return;
  }
  EXPECT_TRUE(machine->Enter(StepState::kPlain));
  if (state == StepState::kPlain) return;
  EXPECT_TRUE(machine->Enter(state));
}

TEST(StepMachine, RefusedMovesChangeNothing) {
  for (StepState from : kAll) {
    for (StepState to : kAll) {
      StepMachine machine;
      Lead(&machine, from);
      ASSERT_EQ(machine.state(), from);
      EXPECT_EQ(machine.Enter(to), MayMove(from, to)) << int(from) << " to " << int(to);
      EXPECT_EQ(machine.state(), MayMove(from, to) ? to : from);
    }
  }
}

TEST(StepMachine, NothingIsArmedFromAnArmedStep) {
  for (StepState armed : {StepState::kCounters, StepState::kTimes, StepState::kSampling}) {
    for (StepState other : {StepState::kCounters, StepState::kTimes, StepState::kSampling}) {
      EXPECT_FALSE(MayMove(armed, other));
    }
    EXPECT_FALSE(MayMove(StepState::kWaiting, armed));
  }
}

TEST(StepMachine, TheEndOfAStepSaysWhatItWas) {
  for (StepState ran : {StepState::kPlain, StepState::kCounters, StepState::kTimes, StepState::kSampling}) {
    StepMachine machine;
    Lead(&machine, ran);
    EXPECT_EQ(machine.armed(), ran == StepState::kCounters || ran == StepState::kTimes);
    EXPECT_EQ(machine.EndStep(), ran);
    EXPECT_EQ(machine.state(), StepState::kPlain);
  }
}

TEST(StepMachine, OffIsForGood) {
  StepMachine machine;
  EXPECT_TRUE(machine.Enter(StepState::kOff));
  EXPECT_EQ(machine.EndStep(), StepState::kOff);
  for (StepState to : kAll) machine.Enter(to);
  EXPECT_TRUE(machine.off());
  EXPECT_FALSE(machine.EndSampling());
}

TEST(StepMachine, WaitingIsLeftByEnterOnly) {
  StepMachine machine;
  EXPECT_EQ(machine.EndStep(), StepState::kWaiting);
  EXPECT_EQ(machine.state(), StepState::kWaiting);
}

TEST(StepMachine, SamplingEndsOnce) {
  StepMachine machine;
  Lead(&machine, StepState::kSampling);
  EXPECT_TRUE(machine.EndSampling());
  EXPECT_FALSE(machine.EndSampling());
  EXPECT_EQ(machine.EndStep(), StepState::kPlain);
}

}  // namespace
}  // namespace rfinject::cupti
