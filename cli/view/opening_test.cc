#include "cli/words/opening.h"

#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "cli/format/testing/written.h"
#include "cli/testing/sample_report.h"
#include "cli/view/advice_view.h"
#include "cli/view/page.h"
#include "cli/words/words.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rfinject::cli {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

Rule MadeRule(std::string name, std::string unproven = {}) {
  Rule rule;
  rule.name = std::move(name);
  rule.title = "Title of " + rule.name;
  rule.why = "it takes {step_ns} of {memory_bytes}, {forwards} times, and {host_ns}";
  rule.action = "mend " + rule.name;
  rule.link = "https://example.org/" + rule.name;
  rule.unproven = std::move(unproven);
  return rule;
}

// An estimate of 10 ms a step with advice that the tests give.
Report WithAdvice(std::vector<Advice> advice) {
  Report report = testing::SampleReports()[1];
  report.headline.most_to_win.clear();
  report.advice.advice = std::move(advice);
  return report;
}

Advice Holds(const Rule& rule, double gain_ns) {
  return {.rule = &rule, .state = Advice::State::kHolds, .gain_ns = gain_ns};
}

TEST(Opening, IsFiveLinesCostLimitAndThreeGains) {
  const Rule a = MadeRule("a"), b = MadeRule("b"), c = MadeRule("c"), d = MadeRule("d");
  const std::vector<std::string> lines =
      OpeningText(WithAdvice({Holds(a, 4e6), Holds(b, 3e6), Holds(c, 2e6), Holds(d, 1e6)}));
  ASSERT_THAT(lines, SizeIs(5));
  EXPECT_THAT(lines[0], AllOf(StartsWith("ESTIMATED on "), HasSubstr("a step takes "), HasSubstr("backward ")));
  EXPECT_THAT(lines[1], StartsWith("Held back by "));
  EXPECT_THAT(lines[2], AllOf(StartsWith("1. -4.00 ms ("), HasSubstr("Title of a. Do: mend a")));
  EXPECT_THAT(lines[4], StartsWith("3. -2.00 ms ("));
}

TEST(Opening, NamesNeitherWhatIsUnprovenNorTheSameTimeTwice) {
  const Rule a = MadeRule("a"), b = MadeRule("b"), c = MadeRule("c", "nobody tried");
  std::vector<Advice> advice = {Holds(c, 5e6), Holds(a, 4e6), Holds(b, 3e6)};
  advice[2].instead = true;
  EXPECT_THAT(absl::StrJoin(OpeningText(WithAdvice(advice)), "\n"),
              AllOf(HasSubstr("1. -4.00 ms"), Not(HasSubstr("mend b")), Not(HasSubstr("mend c"))));
}

// A copy of a millisecond among kernels of which nothing is known holds back nothing else.
TEST(Opening, WhatHoldsBackAPartIsSaidOfThatPart) {
  Report report = WithAdvice({});
  report.headline.launch_share = report.headline.memory_share = report.headline.compute_share = 0;
  report.headline.pcie_share = 0.06;
  report.headline.attainable_share = 0.5;
  EXPECT_THAT(LimitText(report),
              StartsWith("Held back by PCIe 6.0 % of GPU time; 50 % of attainable there, and the rest "
                         "is not known"));
  report.headline.pcie_share = 0.001;
  EXPECT_EQ(LimitText(report), "What holds it back cannot be told: FLOP and bytes are known of 0.1 % of GPU time");
}

TEST(Opening, SaysHowFastCopiesAre) {
  Report report = WithAdvice({});
  report.run.source = SourceKind::kImported;
  report.headline.pcie_share = 0.5;
  report.machine.pcie_bytes_per_s = 63.015e9;
  report.total.sums[Quantity::kCopyTime] = 0.5 * report.total.sums.time_ns();
  report.total.sums[Quantity::kPcieBytes] = 27.7 * report.total.sums[Quantity::kCopyTime];
  EXPECT_THAT(LimitText(report), HasSubstr("; copies between host and GPU run at 27.7 GB/s of the link's 63.0 GB/s"));
  report.machine = {};
  EXPECT_THAT(LimitText(report), HasSubstr("; copies between host and GPU run at 27.7 GB/s"));
  report.headline = {};
  EXPECT_THAT(LimitText(report),
              EndsWith("; copies between host and GPU are 50 % of GPU time, and run at 27.7 GB/s"));
  report.total.sums[Quantity::kCopyTime] = 0.001 * report.total.sums.time_ns();
  EXPECT_THAT(LimitText(report), Not(HasSubstr("copies")));
}

// Three layers of less than a hundredth each were called the most to win while the optimizer had three quarters.
TEST(Opening, WithoutAdviceItNamesThePlacesThatHaveMost) {
  Report report = WithAdvice({});
  const double step_ns = report.clock.gpu_ns;
  report.headline.most_to_win = {{.phase = Phase::kOptimizer, .bound = Bound::kLaunch, .ns = 0.6 * step_ns},
                                 {.class_name = "Conv2d",
                                  .model = "ResNet",
                                  .layer = "layer1.0.conv1",
                                  .layers = 20,
                                  .bound = Bound::kMemory,
                                  .ns = 0.2 * step_ns},
                                 {.class_name = "Linear",
                                  .model = "ResNet",
                                  .layer = "fc",
                                  .layers = 1,
                                  .bound = Bound::kCompute,
                                  .ns = 0.001 * step_ns}};
  const std::vector<std::string> lines = OpeningText(report);
  ASSERT_THAT(lines, SizeIs(4)) << "what is below a hundredth is no line";
  EXPECT_THAT(lines[2], AllOf(StartsWith("1. at most -"), HasSubstr("optimizer"), HasSubstr("bound by launching")));
  EXPECT_THAT(lines[3], AllOf(HasSubstr("20 layers Conv2d, most in layer1.0.conv1"), HasSubstr("bound by memory")));
  EXPECT_THAT(absl::StrJoin(lines, "\n"), HasSubstr("torch.compile"));
  report.attribution.compiled = true;
  EXPECT_THAT(absl::StrJoin(OpeningText(report), "\n"), Not(HasSubstr("torch.compile")));
  report.headline.most_to_win[0].bound = Bound::kPcie;
  EXPECT_THAT(absl::StrJoin(OpeningText(report), "\n"), HasSubstr("pin_memory"));
  report.attribution.pinned = true;
  EXPECT_THAT(absl::StrJoin(OpeningText(report), "\n"), AllOf(HasSubstr("PCIe"), Not(HasSubstr("pin_memory"))));
}

TEST(Opening, StandsAboveTheFactsAndIsTheEndOnATerminal) {
  const Rule a = MadeRule("a");
  const Report report = WithAdvice({Holds(a, 4e6)});
  const auto place = [&](std::string_view format, std::string_view text) {
    const Document document = format == "html" ? PageDocument({report}, {}, {}) : ReportDocument({report});
    const std::string written = testing::Written(document, format, {.width = 200});
    const size_t at = written.find(text);
    EXPECT_NE(at, std::string::npos) << text;
    return at;
  };
  EXPECT_GT(place("table", "1. -4.00 ms"), place("table", "Attribution tier"));
  EXPECT_LT(place("markdown", "4.00 ms"), place("markdown", "Attribution tier"));
  EXPECT_LT(place("html", "1. -4.00 ms"), place("html", "of forward and backward GPU time"));
  EXPECT_LT(place("json", "1. -4.00 ms"), place("json", "of forward and backward GPU time"));
  EXPECT_GT(place("json", "\"gain_ns_per_step\": 4000000"), 0u);
}

TEST(Opening, OfSeveralReportsIsTheEndOfEach) {
  const Rule a = MadeRule("a"), b = MadeRule("b");
  const Document document = ReportDocument({WithAdvice({Holds(a, 4e6)}), WithAdvice({Holds(b, 2e6)})});
  const std::string text = testing::Written(document, "table", {.width = 200});
  const size_t first = text.find("1. -4.00 ms"), second = text.find("1. -2.00 ms");
  EXPECT_LT(text.find("Attribution tier"), first);
  EXPECT_LT(first, text.rfind("Attribution tier"));
  EXPECT_LT(text.rfind("Attribution tier"), second);
}

TEST(Advice, SaysWhyWithTheRunsNumbers) {
  const Rule rule = MadeRule("a");
  FactValues facts;
  facts[static_cast<size_t>(Fact::kStep)] = 12e6;
  facts[static_cast<size_t>(Fact::kMemoryBytes)] = 40e9;
  facts[static_cast<size_t>(Fact::kForwards)] = 2;
  EXPECT_EQ(AdviceWhy(Holds(rule, 1), facts), "it takes 12.0 ms of 40.0 GB, 2 times, and an unknown amount");
}

TEST(Advice, SaysWhatARunLacks) {
  const Rule a = MadeRule("a"), b = MadeRule("b", "nobody tried");
  const Report report = WithAdvice({{.rule = &a, .state = Advice::State::kUnknown, .missing = {Fact::kIdle}},
                                    {.rule = &b, .state = Advice::State::kUnknown, .missing = {Fact::kIdle}}});
  const auto text = [&](bool all) { return testing::Written(AdviceDocument({report}, all), "table"); };
  EXPECT_THAT(text(false), AllOf(HasSubstr("a: nothing says what the steps"), Not(HasSubstr("b: nothing"))));
  EXPECT_THAT(text(true), HasSubstr("b: nothing says what the steps"));
}

TEST(Advice, ANameIsNoMarkOfMarkdown) {
  Report report = WithAdvice({});
  report.run.source = SourceKind::kMeasured;
  report.device.name = "A100\n\x1b]0;title\x07<script>[a](b)|";
  EXPECT_THAT(testing::Written(AdviceDocument({report}, false), "markdown"),
              HasSubstr("A100??]0;title?\\<script>\\[a](b)\\|"));
}

TEST(Advice, ABarIsNoMarkOfMarkdown) {
  Rule rule = MadeRule("a");
  rule.action = "this | that";
  const Report report = WithAdvice({Holds(rule, 4e6)});
  EXPECT_THAT(testing::Written(AdviceDocument({report}, false), "markdown"), HasSubstr("  * do:  this \\| that\n"));
}

}  // namespace
}  // namespace rfinject::cli
