#include "cli/report/alarms/alarm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/report/alarms/findings.h"

namespace rfinject::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(AlarmKinds, HaveIdsInOrderAndAllThatExplainPrints) {
  std::string_view last;
  for (const AlarmKind& kind : AlarmKinds()) {
    EXPECT_LT(last, kind.id);
    last = kind.id;
    for (const std::string_view text : {kind.title, kind.checks, kind.causes, kind.mend}) EXPECT_FALSE(text.empty());
  }
}

TEST(AlarmOf, SaysTheNumbersAndTheCauses) {
  const Alarm alarm = AlarmOf(ClockDrift{1.07});
  EXPECT_EQ(alarm.id, ClockDrift::kKind.id);
  EXPECT_EQ(alarm.text, "SM clock varied by 7 % between samples");
  EXPECT_FALSE(alarm.causes.empty());
  EXPECT_FALSE(alarm.where);
}

TEST(ParseAlarmIds, TakesKnownIdsInEitherCase) {
  std::vector<std::string> ids;
  EXPECT_TRUE(ParseAlarmIds("", &ids));
  EXPECT_THAT(ids, IsEmpty());
  EXPECT_TRUE(ParseAlarmIds("R002,r001", &ids));
  EXPECT_THAT(ids, ElementsAre("R002", "R001"));
  EXPECT_FALSE(ParseAlarmIds("R000", &ids));
  EXPECT_FALSE(ParseAlarmIds("R001,x", &ids));
}

}  // namespace
}  // namespace rfinject::cli
