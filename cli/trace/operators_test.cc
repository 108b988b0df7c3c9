// What the reader makes of the operators that a measured process has observed: the work of its launch keys.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "cli/testing/small_trace.h"
#include "cli/trace/read.h"
#include "proto/rfinject/v1/trace.pb.h"

namespace rfinject::cli {
namespace {

using testing::AddName;
using testing::Definitions;
using testing::End;
using testing::Read;
using testing::Trace;

constexpr uint32_t kConvolution = 50, kShapes = 51, kAdd = 52, kOtherShapes = 53;

// Keys from 11 on, kernels of these names, each launched so often.
std::function<void(v1::Chunk&)> Keys(const std::vector<std::pair<std::string, uint64_t>>& kernels) {
  return [kernels](v1::Chunk& chunk) {
    AddName(chunk, kConvolution, "aten::convolution_backward");
    AddName(chunk, kShapes, "f32[8,64,56,56] f32[64,3,3,3]");
    AddName(chunk, kAdd, "aten::add");
    AddName(chunk, kOtherShapes, "f32[8]");
    for (uint32_t i = 0; i < kernels.size(); ++i) {
      AddName(chunk, 60 + i, kernels[i].first);
      v1::LaunchKey* key = chunk.add_key();
      key->set_id(11 + i);
      key->set_kernel(60 + i);
      v1::KeyStats* stats = chunk.add_stats();
      stats->set_key(11 + i);
      stats->set_launches(kernels[i].second);
    }
  };
}

v1::OperatorWork* AddWork(v1::Chunk& chunk, uint32_t op, uint32_t signature, const std::vector<uint32_t>& keys) {
  v1::OperatorWork* work = chunk.add_operator_work();
  work->set_run(1);
  work->set_op(op);
  work->set_signature(signature);
  work->set_calls(1);
  for (const uint32_t key : keys) {
    work->add_key(key);
    work->add_launches(1);
  }
  return work;
}

struct Found {
  TraceContents contents;
  // The key whose kernel has that name.
  const std::pair<const LaunchKey, LaunchStats>* Of(const std::string& kernel) const {
    for (const auto& launch : contents.profile.runs.begin()->second.launches) {
      if (launch.first.kernel == kernel) return &launch;
    }
    return nullptr;
  }
  Stat Metric(const std::string& kernel, std::string_view metric) const {
    const auto& metrics = Of(kernel)->second.metrics;
    const auto found = metrics.find(std::string(metric));
    return found != metrics.end() ? found->second : Stat();
  }
};

Found ReadTrace(const std::vector<std::function<void(v1::Chunk&)>>& chunks) {
  Found found{Read(Trace(chunks))};
  EXPECT_TRUE(found.contents.status.ok()) << found.contents.status;
  return found;
}

// The kernels that multiply have the FLOP, half of them each gradient; every launch of a key counts, observed or not.
TEST(OperatorWork, KernelsOfACallShareItsWork) {
  const Found found = ReadTrace(
      {Definitions,
       Keys({{"cudnn::cnn::dgrad2d", 100}, {"cudnn::cnn::wgrad2d", 100}, {"void nchwToNhwcKernel<float>", 200}}),
       [](v1::Chunk& chunk) {
         v1::OperatorWork* work = AddWork(chunk, kConvolution, kShapes, {11, 12, 13});
         work->set_launches(2, 2);
         work->set_model_flop(1000);
         work->set_compulsory_bytes(64);
         work->add_flop(0);
         work->add_flop(1000);
         work->set_multiplies(true);
         work->set_gradients(2);
       },
       End});
  for (const char* const kernel : {"cudnn::cnn::dgrad2d", "cudnn::cnn::wgrad2d"}) {
    EXPECT_EQ(found.Of(kernel)->first.op, "aten::convolution_backward");
    EXPECT_EQ(found.Of(kernel)->first.signature, "f32[8,64,56,56] f32[64,3,3,3]");
    EXPECT_EQ(found.Metric(kernel, kMetricModelFlop), Stat::Same(500, 100));
    EXPECT_EQ(found.Metric(kernel, kMetricCompulsoryBytes), Stat::Same(32, 100));
    EXPECT_EQ(found.Metric(kernel, kMetricCallPart), Stat::Same(kWholeCall / 2, 100));
    EXPECT_EQ(found.Metric(kernel, kMetricCallFlop[static_cast<size_t>(Precision::kFp32)]), Stat::Same(500, 100));
  }
  const std::string helper = "void nchwToNhwcKernel<float>";
  EXPECT_EQ(found.Of(helper)->first.op, "aten::convolution_backward");
  EXPECT_EQ(found.Metric(helper, kMetricModelFlop), Stat::Same(0, 200));
}

// A kernel of two operators has the mean of what was observed, by how often each was, and no shapes.
TEST(OperatorWork, CallsThatDifferAreAveraged) {
  const Found found = ReadTrace({Definitions, Keys({{"elementwise", 40}}),
                                 [](v1::Chunk& chunk) {
                                   AddWork(chunk, kAdd, kShapes, {11})->set_model_flop(100);
                                   v1::OperatorWork* rarer = AddWork(chunk, kAdd, kOtherShapes, {11});
                                   rarer->set_model_flop(20);
                                   // It is told once more, with two calls more.
                                   v1::OperatorWork* again = AddWork(chunk, kAdd, kShapes, {11});
                                   again->set_model_flop(100);
                                   again->set_calls(2);
                                 },
                                 End});
  EXPECT_EQ(found.Of("elementwise")->first.op, "aten::add");
  EXPECT_EQ(found.Of("elementwise")->first.signature, "");
  const Stat flop = found.Metric("elementwise", kMetricModelFlop);
  EXPECT_EQ(flop.n, 4u);
  EXPECT_EQ(flop.mean(), 80);
}

TEST(OperatorWork, RefusesWhatContradictsItself) {
  const auto damage = [](const std::function<void(v1::OperatorWork&)>& change) {
    const TraceContents contents =
        Read(Trace({Definitions, Keys({{"one", 1}}),
                    [&](v1::Chunk& chunk) { change(*AddWork(chunk, kAdd, kShapes, {11})); }, End}));
    return !contents.status.ok();
  };
  EXPECT_FALSE(damage([](v1::OperatorWork&) {}));
  EXPECT_TRUE(damage([](v1::OperatorWork& work) { work.add_key(11); }));
  EXPECT_TRUE(damage([](v1::OperatorWork& work) { work.set_key(0, 99); }));
  EXPECT_TRUE(damage([](v1::OperatorWork& work) { work.set_op(99); }));
  EXPECT_TRUE(damage([](v1::OperatorWork& work) { work.set_launches(0, UINT64_MAX); }));
  EXPECT_TRUE(damage([](v1::OperatorWork& work) {
    for (size_t i = 0; i <= kPrecisionCount; ++i) work.add_flop(1);
  }));
}

}  // namespace
}  // namespace rfinject::cli
