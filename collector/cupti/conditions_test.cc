#include "proto/wire/conditions.h"

#include <gtest/gtest.h>

#include <set>

#include "collector/cupti/api.h"
#include "collector/cupti/condition_report.h"

namespace rfinject {
namespace {

TEST(Conditions, EachHasAnIdOfItsOwnAndASentence) {
  std::set<std::string_view> ids;
  for (const Condition& condition : kConditions) {
    EXPECT_TRUE(ids.insert(condition.id).second) << condition.id;
    EXPECT_FALSE(condition.message.empty()) << condition.id;
    EXPECT_EQ(condition.message.find('\n'), std::string_view::npos) << condition.id;
    EXPECT_EQ(condition.remedy.find('\n'), std::string_view::npos) << condition.id;
  }
}

using cupti::ConditionOfCuptiResult;

TEST(Conditions, ResultsMeanWhatCuptiSays) {
  EXPECT_EQ(ConditionOfCuptiResult(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES), ConditionId::kPermission);
  EXPECT_EQ(ConditionOfCuptiResult(CUPTI_ERROR_HARDWARE_BUSY), ConditionId::kBusy);
  EXPECT_EQ(ConditionOfCuptiResult(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED), ConditionId::kSubscriber);
  EXPECT_EQ(ConditionOfCuptiResult(CUPTI_ERROR_NOT_INITIALIZED), ConditionId::kNoPerfworks);
  EXPECT_EQ(ConditionOfCuptiResult(CUPTI_ERROR_INVALID_CHIP_NAME), ConditionId::kUnknownChip);
  EXPECT_EQ(ConditionOfCuptiResult(CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED), ConditionId::kMig);
  EXPECT_EQ(ConditionOfCuptiResult(CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED), ConditionId::kVgpu);
  EXPECT_EQ(ConditionOfCuptiResult(CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES), ConditionId::kVgpu);
  EXPECT_EQ(ConditionOfCuptiResult(CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED), ConditionId::kConfidential);
  EXPECT_EQ(ConditionOfCuptiResult(CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED), ConditionId::kWsl);
  EXPECT_EQ(ConditionOfCuptiResult(CUPTI_ERROR_OUT_OF_MEMORY), ConditionId::kMemory);
  EXPECT_EQ(ConditionOfCuptiResult(CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED), ConditionId::kLegacyInUse);
  EXPECT_EQ(ConditionOfCuptiResult(CUPTI_ERROR_NOT_SUPPORTED), ConditionId::kUnsupported);
  EXPECT_EQ(ConditionOfCuptiResult(CUPTI_ERROR_UNKNOWN), ConditionId::kFailure);
}

}  // namespace
}  // namespace rfinject
