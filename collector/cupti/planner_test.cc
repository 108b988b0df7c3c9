// File: planner_test.cc
//
// Two things are tested: the packing, against a host with simple rules, and the plans of real chips, against the real
// CUPTI host library, which needs no GPU.
#include "collector/cupti/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "collector/cupti/real_cupti.h"

namespace rfinject::cupti {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// One pass holds `capacity` units; a metric "x:3" takes 3 of them, and two names in `conflicts` share no pass.
class FakeHost : public MetricHost {
 public:
  explicit FakeHost(size_t capacity) : capacity_(capacity) {}
  std::set<std::pair<std::string, std::string>> conflicts;
  size_t questions = 0;

  std::vector<std::string> BaseMetrics() override { return {}; }
  size_t Passes(std::span<const std::string> metrics) override {
    ++questions;
    size_t used = 0;
    for (const std::string& a : metrics) {
      size_t colon = a.find(':');
      if (colon == std::string::npos) return 0;  // unknown
      used += static_cast<size_t>(atoi(a.c_str() + colon + 1));
      for (const std::string& b : metrics) {
        if (conflicts.count({a, b}) != 0) return 2;
      }
      if (IsSassMetric(a) != IsSassMetric(metrics[0])) return 2;
    }
    return (used + capacity_ - 1) / capacity_;
  }
  std::vector<uint8_t> ConfigImage(std::span<const std::string>) override { return {}; }
  bool Evaluate(std::span<const uint8_t>, size_t, std::span<const std::string>, std::span<double>) override {
    return false;
  }

 private:
  size_t capacity_;
};

PlanRequest Request(std::vector<std::string> tensor) {
  PlanRequest request;
  for (std::string& name : tensor) request.metrics.tensor.push_back({std::move(name)});
  return request;
}

TEST(MakePlan, FindsFewerGroupsThanFirstFit) {
  // First fit in this order needs three groups; the search finds two, which put a with b and e with the c.
  FakeHost host(10);
  Plan plan = MakePlan(host, Request({"a:4", "b:4", "c:3", "d:6", "e:3"}));
  ASSERT_THAT(plan.groups, SizeIs(2));
  for (const CounterGroup& group : plan.groups) EXPECT_EQ(host.Passes(group.metrics), 1u);
  EXPECT_THAT(plan.rejected, IsEmpty());
}

TEST(MakePlan, KeepsSassMetricsApart) {
  FakeHost host(10);
  PlanRequest request = Request({"t:1"});
  request.metrics.scalar = {{"a_sass_x:1"}, {"a_sass_y:1"}};
  Plan plan = MakePlan(host, request);
  ASSERT_THAT(plan.groups, SizeIs(2));
  EXPECT_EQ(plan.groups[1].kind, GroupKind::kSass);
  EXPECT_THAT(plan.groups[1].metrics, ElementsAre("a_sass_x:1", "a_sass_y:1"));
}

TEST(MakePlan, WhatVariesIsCountedByItself) {
  FakeHost host(10);
  PlanRequest request = Request({"t:4.sum"});
  request.user_metrics = {"free:3.avg", "big:8", "huge:12", "nonsense"};
  Plan plan = MakePlan(host, request);
  ASSERT_THAT(plan.groups, SizeIs(3));
  EXPECT_THAT(plan.groups[0].metrics, ElementsAre("t:4.sum"));
  EXPECT_EQ(plan.groups[1].kind, GroupKind::kSampled);
  EXPECT_THAT(plan.groups[1].metrics, ElementsAre("free:3.avg"));
  EXPECT_THAT(plan.groups[2].metrics, ElementsAre("big:8.sum"));
  EXPECT_THAT(plan.rejected, ElementsAre(Pair("huge:12.sum", HasSubstr("several passes")),
                                         Pair("nonsense.sum", HasSubstr("unknown"))));
}

TEST(MakePlan, IsBounded) {
  FakeHost host(100);
  std::vector<std::string> names;
  for (int i = 0; i < 60; ++i) names.push_back("m" + std::to_string(i) + ":" + std::to_string(21 + i % 17));
  PlanRequest request = Request(names);
  Plan plan = MakePlan(host, request);
  // First fit alone may ask more than the limit; the search for less must not go on beyond it.
  EXPECT_LT(host.questions, 60u * 61u / 2 + request.max_questions);
  for (const CounterGroup& group : plan.groups) EXPECT_EQ(host.Passes(group.metrics), 1u);
}

TEST(SplitMetrics, SkipsEmptyParts) {
  EXPECT_THAT(SplitMetrics(" a.sum, b ,,c"), ElementsAre("a.sum", "b", "c"));
  EXPECT_THAT(SplitMetrics(""), IsEmpty());
}

// --- Real chips.

// Asks a real host each question once: the host library takes seconds for a plan. The answer depends on the names
// alone, not on their order, as the planner takes it too.
class RememberingHost : public MetricHost {
 public:
  explicit RememberingHost(std::unique_ptr<MetricHost> host) : host_(std::move(host)) {}

  std::vector<std::string> BaseMetrics() override { return host_->BaseMetrics(); }
  size_t Passes(std::span<const std::string> metrics) override {
    std::vector<std::string> names(metrics.begin(), metrics.end());
    std::sort(names.begin(), names.end());
    const auto [answer, is_new] = answers_.try_emplace(std::move(names));
    if (is_new) answer->second = host_->Passes(metrics);
    return answer->second;
  }
  std::vector<uint8_t> ConfigImage(std::span<const std::string> metrics) override {
    return host_->ConfigImage(metrics);
  }
  bool Evaluate(std::span<const uint8_t> data, size_t range, std::span<const std::string> metrics,
                std::span<double> values) override {
    return host_->Evaluate(data, range, metrics, values);
  }
  MetricHost& real() { return *host_; }
  const std::map<std::vector<std::string>, size_t>& answers() const { return answers_; }

 private:
  std::unique_ptr<MetricHost> host_;
  std::map<std::vector<std::string>, size_t> answers_;
};

struct ChipCase {
  const char* chip;
  size_t groups;  // hardware and SASS groups together, at most
  size_t tensor_metrics;
  size_t questions;  // at most
};

class RealPlan : public ::testing::TestWithParam<ChipCase> {
 protected:
  void SetUp() override {
    api_ = RealCupti();
    if (api_ == nullptr) GTEST_SKIP() << "no libcupti.so.13 on this machine";
    // One for all tests of a chip.
    static auto* const hosts = new std::map<std::string, std::unique_ptr<RememberingHost>>;
    std::unique_ptr<RememberingHost>& host = (*hosts)[GetParam().chip];
    if (host == nullptr) {
      int result = 0;
      std::unique_ptr<MetricHost> real =
          MakeProfilerHost(*api_, GetParam().chip, HostKind::kRangeProfiler, {}, &result);
      ASSERT_NE(real, nullptr) << GetParam().chip << ": CUPTI answers " << result;
      host = std::make_unique<RememberingHost>(std::move(real));
    }
    host_ = host.get();
    request_.metrics = SelectMetrics(host_->BaseMetrics(), GetParam().chip);
  }

  const Api* api_ = nullptr;
  RememberingHost* host_ = nullptr;
  PlanRequest request_;
};

TEST_P(RealPlan, TakesTheFewestSinglePassGroups) {
  const Plan plan = MakePlan(*host_, request_);
  size_t armed = 0;
  std::set<std::string> covered;
  for (const CounterGroup& group : plan.groups) {
    EXPECT_EQ(host_->Passes(group.metrics), 1u);
    covered.insert(group.metrics.begin(), group.metrics.end());
    if (group.kind != GroupKind::kSparsityGuard) ++armed;
    if (group.kind == GroupKind::kSass) {
      EXPECT_THAT(group.metrics, Each(::testing::ResultOf(IsSassMetric, true)));
    } else {
      // Nothing beside them: it would make each range cost twenty times as much.
      EXPECT_THAT(group.metrics, Each(::testing::AnyOf(::testing::StartsWith("sm__ops_path_tensor_"),
                                                       std::string(kTensorCyclesMetric))));
    }
  }
  EXPECT_LE(armed, GetParam().groups);
  EXPECT_EQ(request_.metrics.tensor.size(), GetParam().tensor_metrics);
  for (const FlopMetric& metric : request_.metrics.tensor) EXPECT_THAT(covered, Contains(metric.name));
  for (const FlopMetric& metric : request_.metrics.scalar) EXPECT_THAT(covered, Contains(metric.name));
  EXPECT_GE(request_.metrics.scalar.size(), 9u);
  // Each takes CUPTI 5 ms (h200), at the start of a process.
  EXPECT_LE(plan.questions, GetParam().questions);
}

TEST_P(RealPlan, BytesAreOneGroupWhereTheyAreAskedFor) {
  const size_t before = MakePlan(*host_, request_).groups.size();
  request_.bytes = true;
  const Plan plan = MakePlan(*host_, request_);
  ASSERT_EQ(plan.groups.size(), before + 1);
  const auto sampled = std::find_if(plan.groups.begin(), plan.groups.end(),
                                    [](const CounterGroup& group) { return group.kind == GroupKind::kSampled; });
  ASSERT_NE(sampled, plan.groups.end());
  EXPECT_THAT(sampled->metrics, SizeIs(2));
  EXPECT_THAT(sampled->metrics, Each(::testing::StartsWith("dram__bytes")));
}

TEST_P(RealPlan, IsTheSameEachTime) {
  const Plan a = MakePlan(*host_, request_), b = MakePlan(*host_, request_);
  ASSERT_EQ(a.groups.size(), b.groups.size());
  for (size_t i = 0; i < a.groups.size(); ++i) EXPECT_EQ(a.groups[i].metrics, b.groups[i].metrics);
  // The same questions have the same answers, whatever was asked between: some of them, from the last to the first.
  size_t i = 0;
  for (auto answer = host_->answers().rbegin(); answer != host_->answers().rend(); ++answer) {
    if (i++ % 16 != 0) continue;
    EXPECT_EQ(host_->real().Passes(answer->first), answer->second) << answer->first.back();
  }
}

TEST_P(RealPlan, TakesUserMetrics) {
  const size_t before = MakePlan(*host_, request_).groups.size();
  request_.user_metrics = {"sm__warps_active.avg", "smsp__sass_thread_inst_executed_op_integer_pred_on",
                           "no_such_metric"};
  Plan plan = MakePlan(*host_, request_);
  std::set<std::string> covered;
  for (const CounterGroup& group : plan.groups) {
    EXPECT_EQ(host_->Passes(group.metrics), 1u);
    covered.insert(group.metrics.begin(), group.metrics.end());
  }
  EXPECT_THAT(covered, Contains("sm__warps_active.avg"));
  EXPECT_THAT(covered, Contains("smsp__sass_thread_inst_executed_op_integer_pred_on.sum"));
  EXPECT_THAT(plan.rejected, Contains(Pair("no_such_metric.sum", HasSubstr("unknown"))));
  EXPECT_LE(plan.groups.size(), before + 2);
}

// Numbers of groups: one pass for the SASS metrics everywhere; the rest is what one pass of the chip's counters
// holds.
INSTANTIATE_TEST_SUITE_P(Chips, RealPlan,
                         ::testing::Values(ChipCase{"GV100", 2, 2, 4}, ChipCase{"TU104", 2, 2, 4},
                                           ChipCase{"GA100", 4, 5, 20}, ChipCase{"GA102", 4, 5, 20},
                                           ChipCase{"AD102", 4, 6, 40}, ChipCase{"GH100", 4, 9, 30},
                                           ChipCase{"GB100", 4, 11, 165}, ChipCase{"GB202", 5, 7, 50}),
                         [](const auto& info) { return std::string(info.param.chip); });

}  // namespace
}  // namespace rfinject::cupti
