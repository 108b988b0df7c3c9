#include "cli/report/advice/rules.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace rfinject::cli {
namespace {

// The texts of rules.txt, made into initializers by cli/CMakeLists.txt.
std::vector<RuleTexts> Texts() {
  return {
#include "cli/report/advice/rules.inc"
  };
}

namespace formulas {

using enum Fact;

struct Logic {
  std::string_view name;
  Formula when;
  Formula gain;
  Formula condition = nullptr;
};

template <Fact kFact>
Amount Value(const FactValues& facts) {
  return {facts, kFact};
}
// What `kNow` takes above `kThen`.
template <Fact kNow, Fact kThen>
Amount Difference(const FactValues& facts) {
  return Value<kNow>(facts) - Value<kThen>(facts);
}
// More than a part of a step, in percent.
template <Fact kFact, int kPercent>
Amount IsPart(const FactValues& facts) {
  return Value<kFact>(facts) > kPercent / 100.0 * Value<kStep>(facts);
}
// The same where it could take less.
template <Fact kNow, Fact kThen, int kPercent>
Amount CouldBeLess(const FactValues& facts) {
  return IsPart<kNow, kPercent>(facts) && Value<kThen>(facts) < Value<kNow>(facts);
}
// A wait of the host shortens a step by no more than the time in which the GPU is idle.
template <Fact kWait>
Amount Idle(const FactValues& facts) {
  return Least(Value<kWait>(facts), Value<kIdle>(facts));
}
template <Fact kWait>
Amount IsIdle(const FactValues& facts) {
  return Idle<kWait>(facts) > 0.1 * Value<kClock>(facts);
}

constexpr auto kLogic = std::to_array<Logic>({
    {"optimizer-fused",
     [](const FactValues& f) { return Value<kTraining>(f) && CouldBeLess<kOptimizer, kOptimizerFused, 2>(f); },
     Difference<kOptimizer, kOptimizerFused>},
    {"optimizer-foreach",
     [](const FactValues& f) {
       return Value<kTraining>(f) && Value<kOptimizerSingleLaunches>(f) > 20 && Value<kOptimizerTensors>(f) > 4;
     },
     [](const FactValues& f) {
       const Amount single = Value<kOptimizerSingleLaunches>(f);
       return (single - single / Value<kOptimizerTensors>(f)) * Value<kLaunch>(f);
     }},
    {"tf32", CouldBeLess<kFullPrecisionMatrix, kMatrixInTf32, 2>, Difference<kFullPrecisionMatrix, kMatrixInTf32>},
    {"autocast", CouldBeLess<kFullPrecision, kInHalf, 5>, Difference<kFullPrecision, kInHalf>, Value<kBf16>},
    {"fp64", IsPart<kFp64, 1>, Difference<kFp64, kFp64AsFp32>},
    {"fused-attention", CouldBeLess<kAttention, kAttentionFused, 2>, Difference<kAttention, kAttentionFused>},
    {"fold-batch-norm",
     [](const FactValues& f) {
       return !Value<kTraining>(f) && IsPart<kBatchNormInference, 1>(f) && Value<kConvolution>(f) > 0;
     },
     Value<kBatchNormInference>},
    {"channels-of-8", IsPart<kUnaligned, 1>, Difference<kUnaligned, kAligned>},
    {"recompute",
     [](const FactValues& f) {
       return IsPart<kRecompute, 1>(f) && Value<kRecomputeBytes>(f) < 0.1 * Value<kMemoryBytes>(f);
     },
     Value<kRecompute>},
    {"set-to-none",
     [](const FactValues& f) { return Value<kTraining>(f) && Value<kZeroGrad>(f) > 0 && Value<kAccumulate>(f) > 0; },
     [](const FactValues& f) { return Value<kZeroGrad>(f) + Value<kAccumulate>(f) / Value<kForwards>(f); }},
    {"larger-batch",
     [](const FactValues& f) { return Value<kLargerBatch>(f) < 2.4 * Value<kStep>(f) && IsPart<kShort, 20>(f); },
     [](const FactValues& f) { return Value<kStep>(f) - Value<kLargerBatch>(f) / 4; },
     [](const FactValues& f) { return !Value<kCompiled>(f); }},
    {"torch-compile",
     [](const FactValues& f) {
       return !Value<kCompiled>(f) && Difference<kChains, kChainsFused>(f) > 0.05 * Value<kStep>(f);
     },
     Difference<kChains, kChainsFused>},
    {"graph-breaks", [](const FactValues& f) { return Value<kGraphBreaks>(f) > 0; }, Value<kBreak>},
    {"cuda-graphs", [](const FactValues& f) { return Value<kHost>(f) > Value<kStep>(f); }, Difference<kHost, kStep>},
    {"channels-last", IsPart<kTransposes, 1>, Value<kTransposes>},
    {"cudnn-benchmark",
     [](const FactValues& f) {
       return Value<kMeasured>(f) && !Value<kCudnnBenchmark>(f) && IsPart<kConvolutionSlack, 10>(f);
     },
     Value<kConvolutionSlack>},
    {"beyond-usual", IsPart<kBeyondUsual, 5>, Value<kBeyondUsual>},
    {"slow-loader", IsIdle<kDataWait>, Idle<kDataWait>},
    {"host-waits", IsIdle<kGpuWait>, Idle<kGpuWait>},
    {"ddp-communication", IsPart<kCommunication, 10>, Value<kCommunication>},
});

}  // namespace formulas
}  // namespace

std::span<const Rule> ShippedRules() {
  static const auto* const kRules = [] {
    auto* const rules = new std::vector<Rule>;
    for (RuleTexts& texts : Texts()) {
      const auto* const logic = std::ranges::find(formulas::kLogic, texts.name, &formulas::Logic::name);
      // A test has both lists beside each other.
      if (logic != formulas::kLogic.end())
        rules->push_back({{std::move(texts)}, logic->when, logic->gain, logic->condition});
    }
    return rules;
  }();
  return *kRules;
}

}  // namespace rfinject::cli
