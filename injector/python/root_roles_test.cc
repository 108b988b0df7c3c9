#include "injector/python/root_roles.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace rfinject {
namespace {

// Runs a program that is written as letters, and returns what became of its calls: 's' part of a step, 'v' part of a
// validation, 'V' where a batch of it begins; '|' where an optimizer stepped.
//
//   M, N   called in training mode, with gradients     m, n   without gradients
//   E, F   the same modules in eval mode, without      e, f   in eval mode, with gradients
//   C, R   a copy and a backbone, which nothing trains, in eval mode and without gradients; L with them
//   T      a teacher whose parameters the optimizer has, too
//   H      as E, where the module that trained last is in eval mode already; Q as R then
std::string RolesOf(std::string_view program) {
  RootRoles roles;
  uint64_t steps = 0;
  std::string became;
  for (const char letter : program) {
    if (letter == ' ') continue;
    if (letter == '|') {
      ++steps;
      became += '|';
      continue;
    }
    RootCall call;
    call.layer = std::string_view("MmEeH").find(letter) != std::string_view::npos  ? 1
                 : std::string_view("NnFf").find(letter) != std::string_view::npos ? 2
                 : letter == 'C'                                                   ? 3
                 : letter == 'T'                                                   ? 5
                                                                                   : 4;
    call.training = std::string_view("MmNn").find(letter) != std::string_view::npos;
    call.gradients = std::string_view("MNefL").find(letter) != std::string_view::npos;
    call.owned = letter == 'T' || letter == 'e';
    call.trained_in_eval = letter == 'H' || letter == 'Q';
    const bool validation = roles.Begin(call, steps);
    became += !validation ? 's' : roles.BeginsBatch(call) ? 'V' : 'v';
  }
  return became;
}

TEST(RootRoles, WhatTrainsIsValidatedWithoutGradients) {
  EXPECT_EQ(RolesOf("M|M|EEM|"), "s|s|VVs|");
  EXPECT_EQ(RolesOf("M|M|mmM|"), "s|s|VVs|") << "a program that forgot eval()";
  EXPECT_EQ(RolesOf("M|M|eeM|"), "s|s|VVs|") << "and one that forgot no_grad()";
  EXPECT_EQ(RolesOf("e|e|EEe|"), "s|s|VVs|") << "one that trains in eval mode";
  EXPECT_EQ(RolesOf("MMMM|MM EE MM|"), "ssss|ssVVss|") << "accumulation with a rest";
}

TEST(RootRoles, WhereSeveralTrainTheModeDecides) {
  EXPECT_EQ(RolesOf("mNN|MN|mNN|MN| EE mNN|"), "sss|ss|sss|ss|VVsss|") << "a GAN that shows samples";
  EXPECT_EQ(RolesOf("mN|mN|mN|MN|mN|"), "ss|ss|ss|ss|ss|") << "a critic that steps more often";
}

TEST(RootRoles, AnAverageOfTheWeightsIsValidated) {
  EXPECT_EQ(RolesOf("M|M|M|CCCCC M|M|M|CCCCC"), "s|s|s|VVVVVs|s|s|VVVVV");
  EXPECT_EQ(RolesOf("M|M|M|EECC M|M|M|EECC"), "s|s|s|VVVVs|s|s|VVVV") << "after the model itself";
  EXPECT_EQ(RolesOf("M|M|M|C M|M|M|C M|"), "s|s|s|Vs|s|s|Vs|") << "of one batch";
  EXPECT_EQ(RolesOf("M|M|M|LL M|M|M|LL"), "s|s|s|VVs|s|s|VV") << "with gradients";
}

TEST(RootRoles, WhatEveryStepCallsIsPartOfIt) {
  EXPECT_EQ(RolesOf("CM|CM|CM|"), "ss|ss|ss|") << "a target network, a teacher";
  EXPECT_EQ(RolesOf("MC|MC|MC|"), "ss|ss|ss|");
  EXPECT_EQ(RolesOf("TM|TM|EE TM|"), "ss|ss|VVss|");
  EXPECT_EQ(RolesOf("CCMM|CCMM|"), "ssss|ssss|") << "two views";
  EXPECT_EQ(RolesOf("RLM|RLM|"), "sss|sss|") << "a perceptual loss";
  EXPECT_EQ(RolesOf("m CM|m CM|"), "sss|Vss|") << "a policy that acts";
  EXPECT_EQ(RolesOf("MmC|MmC|"), "sss|sss|") << "a double DQN";
}

TEST(RootRoles, ATeacherThatComesLateIsPartOfTheStepsAfterItsFirst) {
  EXPECT_EQ(RolesOf("M|M|M|CM|CM|CM|"), "s|s|s|Vs|ss|ss|");
}

TEST(RootRoles, AFrozenBackboneIsValidatedWithItsHead) {
  EXPECT_EQ(RolesOf("RM|RM|QH QH RM|"), "ss|ss|VvVvss|");
  EXPECT_EQ(RolesOf("LM|LM|RE RE LM|"), "ss|ss|VvVvss|") << "which trains with gradients around it";
}

TEST(RootRoles, WhatIsCalledInTurnsIsOneBatch) {
  EXPECT_EQ(RolesOf("MN|MN|EF EF MN|EF"), "ss|ss|VvVvss|Vv") << "an encoder and its decoder";
}

}  // namespace
}  // namespace rfinject
