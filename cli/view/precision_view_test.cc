#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/format/testing/written.h"
#include "cli/report/machine.h"
#include "cli/testing/sample_profile.h"
#include "cli/testing/sample_report.h"
#include "cli/view/views.h"

namespace rfinject::cli {
namespace {

using ::testing::HasSubstr;

TEST(Precisions, SharesAndLeastTimesAreOfTheRun) {
  const Profile profile = testing::SampleResNet18(testing::SampleA100(), 2);
  ViewInput input{.profiles = {&profile}, .machine_for = [](const cli::Run&) { return testing::SampleA100(); }};
  const Document document = FindView("precision")->make(input);
  const RowSet& rows = document.sections.at(0).table->rows;
  ASSERT_GT(rows.size, 0u);
  double share = 0, flop = 0;
  for (size_t i = 0; i < rows.size; ++i) {
    share += NumberIn(rows.Find("flop_share")->value(i));
    flop += NumberIn(rows.Find("flop")->value(i));
    const double least_s = 1e-9 * NumberIn(rows.Find("least_time_per_step_ns")->value(i));
    EXPECT_NEAR(least_s * NumberIn(rows.Find("peak_flop_per_s")->value(i)),
                NumberIn(rows.Find("flop_per_step")->value(i)), 1);
  }
  EXPECT_NEAR(share, 1, 1e-9);
  const Report report = FoldRun(profile, profile.runs.begin()->second, testing::SampleA100(), {});
  EXPECT_NEAR(flop / report.total.sums.total_flop(), 1, 1e-12);
  EXPECT_THAT(testing::Written(document, "table"), HasSubstr("FLOP by precision, a step"));
  EXPECT_THAT(testing::Written(document, "json"), HasSubstr("\"schema\": \"rfinject.precisions/1\""));
}

}  // namespace
}  // namespace rfinject::cli
