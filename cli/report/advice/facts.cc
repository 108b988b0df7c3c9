#include "cli/report/advice/facts.h"

#include <algorithm>
#include <cmath>

#include "cli/report/advice/signature_shapes.h"
#include "cli/report/keys/expect.h"
#include "cli/report/report.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kNeedsRoofs = "the roofs of this GPU are not known (rfinject gpus)";
constexpr std::string_view kNeedsEstimate =
    "only an estimate of the same program tells it (rfinject --estimate GPU PROGRAM)";

constexpr std::string_view kNeedsClock =
    "nothing says what the steps waited for: a program on the CPU has no clock of a GPU (a torch for CUDA runs on the "
    "virtual GPU), and not every trace has its waits";

constexpr std::string_view kNeedsGpuOptimizer =
    "it is told of an optimizer on a GPU: on the CPU torch 2 updates tensors one by one, and on a GPU it does not (a "
    "torch for CUDA runs on the virtual GPU)";

constexpr std::string_view kNeedsBytes =
    "what crosses a graph break is known where rfinject --estimate ran the program, of code that was compiled in that "
    "run and not taken from Inductor's cache";

constexpr std::array<FactInfo, kFactCount> kFacts = {{
    {Fact::kStep, "step_ns", "GPU time of a step", "nothing was timed"},
    {Fact::kTraining, "training", "1: the run trains, 0: it infers or validates", ""},
    {Fact::kMeasured, "measured", "1: times were measured, 0: estimated", ""},
    {Fact::kCompiled, "compiled", "1: torch.compile made some of the kernels, 0: it made none", ""},
    {Fact::kClock, "clock_ns", "a step by the clock; of a virtual GPU that lags behind, as long as it is busy",
     kNeedsClock},
    {Fact::kIdle, "idle_ns", "time of a step in which nothing ran on the GPU", kNeedsClock},
    {Fact::kDataWait, "data_wait_ns", "what the loop waits for batches of its data loader", kNeedsClock},
    {Fact::kGpuWait, "gpu_wait_ns", "what it waits for the GPU", kNeedsClock},
    {Fact::kHost, "host_ns", "what the host takes for its own work and to launch a step's kernels",
     "it was not measured; of an estimate --host-us says how long a launch takes the host"},
    {Fact::kLaunch, "launch_ns", "what a kernel takes that does next to nothing", "nothing was timed"},
    {Fact::kShortLaunches, "short_launches", "launches that take little longer than a kernel that does nothing",
     kNeedsRoofs},
    {Fact::kShort, "short_ns", "what they take", kNeedsRoofs},
    {Fact::kLargerBatch, "step_of_4_batches_ns", "a step with a batch four times as large", kNeedsEstimate},
    {Fact::kOptimizer, "optimizer_ns", "the optimizer's time", ""},
    {Fact::kOptimizerSingleLaunches, "optimizer_single_launches", "its launches that update one tensor each",
     kNeedsGpuOptimizer},
    {Fact::kOptimizerTensors, "optimizer_tensors", "tensors that it updates one by one", ""},
    {Fact::kOptimizerFused, "optimizer_fused_ns",
     "one kernel that reads weight, gradient and two moments and writes three of them", kNeedsGpuOptimizer},
    {Fact::kFullPrecisionMatrix, "fp32_matrix_ns", "products and convolutions in FP32", kNeedsRoofs},
    {Fact::kMatrixInTf32, "fp32_matrix_in_tf32_ns", "the same in TF32 on tensor cores", kNeedsRoofs},
    {Fact::kFullPrecision, "autocast_now_ns", "what autocast would compute in half precision, as it is", kNeedsRoofs},
    {Fact::kInHalf, "autocast_then_ns", "the same in half precision, with the conversions", kNeedsRoofs},
    {Fact::kBf16, "bf16_tensor_cores", "1: the GPU's tensor cores have BF16, 0: they do not", kNeedsRoofs},
    {Fact::kFp64, "fp64_ns", "operators on FP64", ""},
    {Fact::kFp64AsFp32, "fp64_as_fp32_ns", "the same on FP32", kNeedsRoofs},
    {Fact::kAttention, "attention_ns", "attention spelled out: products, softmax and what is done to the scores",
     kNeedsEstimate},
    {Fact::kAttentionFused, "attention_fused_ns", "the same as one kernel, which keeps no scores", kNeedsEstimate},
    {Fact::kConvolution, "convolution_ns", "convolutions", ""},
    {Fact::kConvolutionSlack, "convolution_slack_ns", "what they take beyond their least time", kNeedsRoofs},
    {Fact::kCudnnBenchmark, "cudnn_benchmark", "1: cuDNN may time its algorithms, 0: it may not",
     "the run did not say whether cudnn.benchmark is on"},
    {Fact::kBatchNormInference, "batch_norm_inference_ns", "batch normalization where nothing is trained", ""},
    {Fact::kUnaligned, "unaligned_ns", "convolutions in half precision whose channels are no multiple of 8",
     kNeedsEstimate},
    {Fact::kAligned, "unaligned_as_aligned_ns", "the same with channels rounded up", kNeedsEstimate},
    {Fact::kTransposes, "transpose_ns", "cuDNN's kernels that turn NCHW into NHWC and back",
     "the estimator knows no memory format; only a GPU shows these kernels"},
    {Fact::kRecompute, "recompute_ns", "forwards that checkpoints run again", ""},
    {Fact::kRecomputeBytes, "recompute_bytes", "what they read and write, which is more than what would be kept", ""},
    {Fact::kMemoryBytes, "memory_bytes", "the memory of the GPU",
     "the trace does not say how much memory the GPU has"},
    {Fact::kZeroGrad, "zero_grad_ns", "filling gradients with zeros", ""},
    {Fact::kAccumulate, "accumulate_ns", "adding gradients to what is there", ""},
    {Fact::kForwards, "forwards", "calls of the model in a step", "the trace does not count the model's calls"},
    {Fact::kCommunication, "communication_ns", "collectives", ""},
    {Fact::kBeyondUsual, "beyond_usual_ns",
     "what operators that take 1.25 times what their work usually takes on this GPU, or more, take beyond it",
     "it is known of recordings, of a GPU that estimates know"},
    {Fact::kGraphBreaks, "graph_breaks", "lines at which torch.compile ended graphs", ""},
    {Fact::kBreakBytes, "break_bytes", "the tensors that cross the one of them that most cross, each time",
     kNeedsBytes},
    {Fact::kBreak, "break_ns",
     "at most what it takes to write these once more and to read them again, in training their gradients, too",
     kNeedsBytes},
    {Fact::kChainLaunches, "chain_launches",
     "launches of element-wise operators that a layer runs one after the other", kNeedsEstimate},
    {Fact::kChains, "chains_ns", "what they take", kNeedsEstimate},
    {Fact::kChainsFused, "chains_fused_ns", "the same with one kernel for each chain of them", kNeedsEstimate},
}};
static_assert(
    [] {
      for (size_t i = 0; i < kFacts.size(); ++i) {
        if (static_cast<size_t>(kFacts[i].id) != i || kFacts[i].name.empty()) return false;
      }
      return true;
    }(),
    "a Fact has no line in the table, or two");

constexpr double kFp32Bytes = 4;
constexpr double kBatches = 4;  // in Fact::kLargerBatch

// "mm" of "aten::mm".
std::string_view BareName(const LaunchKey& key) {
  std::string_view name = key.op.empty() ? key.kernel : key.op;
  if (const size_t colons = name.rfind("::"); colons != std::string_view::npos) name.remove_prefix(colons + 2);
  return name;
}

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }
bool IsAny(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}
bool HasAny(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [name](std::string_view part) { return Contains(name, part); });
}

bool IsConvolution(std::string_view op) { return Contains(op, "convolution"); }
bool IsBatchedProduct(std::string_view op) { return IsAny(op, {"bmm", "baddbmm"}); }
bool IsMatrix(std::string_view op) {
  return IsConvolution(op) || IsBatchedProduct(op) || IsAny(op, {"mm", "addmm", "linear", "_addmm_activation"}) ||
         HasAny(op, {"_attention", "cudnn_rnn"});
}
bool IsBackward(std::string_view op) { return Contains(op, "backward"); }

// Whether autocast leaves the operator in the type of its operands, so that it follows the products before it.
bool FollowsItsOperands(std::string_view op) {
  return HasAny(op, {"batch_norm", "relu", "threshold", "gelu", "silu", "hardtanh", "hardswish", "hardsigmoid",
                     "sigmoid", "tanh", "elu", "pool", "dropout", "cat"}) ||
         IsAny(op, {"mul", "div", "mul_", "div_", "sum", "clone", "copy_"});
}
// Whether autocast computes the operator in FP32: its operands are converted, and products that read its results
// convert those.
bool StaysInFp32(std::string_view op) { return HasAny(op, {"layer_norm", "softmax", "group_norm"}); }

// A plain number in Python reaches torch as an FP64 tensor without dimensions; no result becomes FP64 by it.
bool HasFp64Tensor(std::string_view signature) {
  for (size_t at = signature.find("f64"); at != std::string_view::npos; at = signature.find("f64", at + 1)) {
    if (!signature.substr(at).starts_with("f64[]")) return true;
  }
  return false;
}

Precision MostFlop(const FlopByPrecision& flop) {
  const auto most = std::max_element(flop.begin(), flop.end());
  return *most > 0 ? static_cast<Precision>(most - flop.begin()) : Precision::kFp32;
}

double FlopIn(const Sums& sums, std::initializer_list<Precision> precisions) {
  double flop = 0;
  for (const Precision precision : precisions) flop += sums.flop()[static_cast<size_t>(precision)];
  return flop;
}

}  // namespace

std::span<const FactInfo, kFactCount> AllFacts() { return kFacts; }

std::optional<Fact> FactNamed(std::string_view name) {
  for (const FactInfo& fact : kFacts) {
    if (fact.name == name) return fact.id;
  }
  return std::nullopt;
}

FactCollector::FactCollector(const Run& run, const Machine& machine, const ExpectedTimes* model)
    : run_(run),
      what_if_(machine, model, run.key.source == SourceKind::kMeasured),
      half_(machine.peak[static_cast<size_t>(Precision::kBf16Tensor)] > 0 ? Precision::kBf16Tensor
                                                                          : Precision::kFp16Tensor) {}

void FactCollector::AddOptimizer(std::string_view op, const Sums& sums) {
  sums_[Fact::kOptimizer] += sums.time_ns();
  is_adam_ = is_adam_ || Contains(op, "addcdiv");
  fused_optimizer_ = fused_optimizer_ || op.starts_with("_fused_");
  if (!op.starts_with("_fused_") && !op.starts_with("_foreach_") && !op.empty()) {
    optimizer_single_[std::string(op)] += static_cast<double>(sums.launches);
  }
}

void FactCollector::AddPrecisions(const LaunchKey& key, std::string_view op, const Sums& sums) {
  const double ns = sums.time_ns();
  const bool estimated = what_if_.has_model();
  const bool fp64 =
      FlopIn(sums, {Precision::kFp64, Precision::kFp64Tensor}) > 0 || (estimated && HasFp64Tensor(key.signature));
  if (fp64) {
    const uint32_t tf32 = IsConvolution(op) ? run_.key.policy.cudnn_tf32 : run_.key.policy.matmul_tf32;
    constexpr uint32_t kOn = 2;
    const bool to_tf32 = IsMatrix(op) && tf32 == kOn && what_if_.Has(Precision::kTf32Tensor);
    sums_[Fact::kFp64] += ns;
    sums_[Fact::kFp64AsFp32] +=
        what_if_.InPrecision(key, sums, to_tf32 ? Precision::kTf32Tensor : Precision::kFp32, 0.5);
    return;
  }
  const double fp32 = FlopIn(sums, {Precision::kFp32}), tf32 = FlopIn(sums, {Precision::kTf32Tensor});
  const bool matrix = IsMatrix(op) && fp32 + tf32 > 0;
  if (IsMatrix(op)) {
    const double half =
        FlopIn(sums, {Precision::kFp16, Precision::kFp16Tensor, Precision::kBf16Tensor, Precision::kFp8Tensor});
    half_products_flop_ += half;
    products_flop_ += fp32 + tf32 + half;
  }
  if (matrix && fp32 > 0) {
    sums_[Fact::kFullPrecisionMatrix] += ns;
    sums_[Fact::kMatrixInTf32] += what_if_.InPrecision(key, sums, Precision::kTf32Tensor, 1);
  }
  if (key.phase == Phase::kOptimizer || key.phase == Phase::kCommunication || key.phase == Phase::kData) return;
  if (estimated && !key.signature.starts_with("f32")) return;
  if (matrix || (!key.layer.model.empty() && FollowsItsOperands(op))) {
    sums_[Fact::kFullPrecision] += ns;
    sums_[Fact::kInHalf] += what_if_.InPrecision(key, sums, half_, 0.5);
    if (matrix && !IsBackward(op) && !key.layer.model.empty() && key.phase != Phase::kBackward &&
        !IsBatchedProduct(op) && cast_layers_.insert(key.layer).second) {
      for (const SignatureShape& shape : ShapesOf(key.signature)) cast_biases_ += shape.rank == 1 ? 1 : 0;
    }
  } else if (IsAny(op, {"add", "add_"}) && !key.layer.model.empty()) {
    residual_ns_ += ns;
    residual_half_ns_ += what_if_.InPrecision(key, sums, half_, 0.5);
  } else if (StaysInFp32(op)) {
    layer_norm_ = layer_norm_ || !Contains(op, "softmax");
    // A softmax of scores lies between two products: its operand is converted, and its result is.
    const double conversions = Contains(op, "softmax") && !Contains(op, "log_softmax") ? 2 : 1;
    const std::vector<SignatureShape> shapes = ShapesOf(key.signature);
    const double elements = shapes.empty() ? 0 : shapes.front().elements;
    constexpr double kConverted = 6;  // bytes of an element, read in one type and written in the other
    sums_[Fact::kInHalf] +=
        conversions * static_cast<double>(sums.launches) * what_if_.Elementwise(kConverted * elements);
  }
}

// What a measured kernel is a part of is looked at as a whole, as an estimate has it.
void FactCollector::Add(const LaunchKey& key, const LaunchStats& stats, const Sums& sums) {
  const double ns = sums.time_ns(), launches = static_cast<double>(sums.launches);
  // A kernel of a few blocks takes some times the floor for latencies of its own; beyond, it is slow work.
  constexpr double kLittleLonger = 3;
  const double floor_ns = kLaunchFloorNs * launches;
  if (sums.least_ns() > 0 && sums.least_ns() < floor_ns && ns > 0 && ns < kLittleLonger * floor_ns) {
    sums_[Fact::kShortLaunches] += launches;
    sums_[Fact::kShort] += ns;
  }
  if (Contains(key.kernel, "nchwToNhwc") || Contains(key.kernel, "nhwcToNchw")) sums_[Fact::kTransposes] += ns;
  const bool measured = run_.key.source == SourceKind::kMeasured;
  const std::optional<CallWork> work = measured && what_if_.has_model() ? CallWorkOf(stats) : std::nullopt;
  if (!work || key.op.empty()) return AddOperator(key, sums);
  LaunchKey op = {.layer = key.layer, .phase = key.phase, .op = key.op, .kernel = key.op};
  op.signature = key.signature;
  op.node = key.node;
  Calls& calls = calls_[op];
  calls.sums.Add(sums);
  calls.calls += work->calls;
  for (size_t i = 0; i < kPrecisionCount; ++i) calls.flop[i] += work->flop[i] * work->calls;
}

void FactCollector::Finish() {
  for (auto& [key, calls] : calls_) {
    if (!(calls.calls > 0)) continue;
    calls.sums.launches = static_cast<uint64_t>(std::llround(std::max(1.0, calls.calls)));
    for (size_t i = 0; i < kPrecisionCount; ++i) {
      calls.sums[rfinject::cli::FlopIn(static_cast<Precision>(i))] = calls.flop[i];
    }
    AddOperator(key, calls.sums);
  }
}

void FactCollector::AddOperator(const LaunchKey& key, const Sums& sums) {
  const std::string_view op = BareName(key);
  const double ns = sums.time_ns(), launches = static_cast<double>(sums.launches);
  // The usual time stands at an operator's main kernel; its other kernels have none, and their time belongs to it.
  if (sums[Quantity::kTimeWithUsual] > 0) {
    Usual& usual = usual_[{key.layer, key.phase, key.op, key.signature}];
    usual.ns += sums[Quantity::kTimeWithUsual];
    usual.usual_ns += sums[Quantity::kUsualTime];
  }
  const bool of_weights =
      key.phase == Phase::kOptimizer || key.phase == Phase::kCommunication || Contains(key.node, "AccumulateGrad");
  const bool of_the_batch = sums[Quantity::kPcieBytes] > 0 && !of_weights;  // a copy from the host
  sums_[Fact::kLargerBatch] += of_the_batch ? kBatches * ns
                               : of_weights ? ns
                                            : what_if_.WithBatch(key, sums, kBatches).value_or(ns);
  AddPrecisions(key, op, sums);
  if (key.phase == Phase::kOptimizer) AddOptimizer(op, sums);
  if (key.phase == Phase::kCommunication) sums_[Fact::kCommunication] += ns;
  if (key.phase == Phase::kRecompute) {
    sums_[Fact::kRecompute] += ns;
    sums_[Fact::kRecomputeBytes] += sums.dram_bytes();
  }
  if (IsConvolution(op)) {
    sums_[Fact::kConvolution] += ns;
    sums_[Fact::kConvolutionSlack] += std::max(0.0, ns - sums.least_ns());
    if (const auto aligned = what_if_.WithAlignedChannels(key, sums)) {
      sums_[Fact::kUnaligned] += ns;
      sums_[Fact::kAligned] += *aligned;
    }
  }
  const bool trains = run_.key.training && key.phase != Phase::kEval;
  if (!trains && Contains(op, "batch_norm")) sums_[Fact::kBatchNormInference] += ns;
  // zero_grad is the optimizer's, or the model's: filling outside of any layer in the middle of a loop.
  const bool in_loop = key.phase == Phase::kOther || key.phase == Phase::kOptimizer;
  if (key.layer.model.empty() && in_loop && IsAny(op, {"zero_", "_foreach_zero_"})) {
    sums_[Fact::kZeroGrad] += ns;
  }
  if (Contains(key.node, "AccumulateGrad") && IsAny(op, {"add_", "add"})) sums_[Fact::kAccumulate] += ns;
  if (what_if_.has_model()) chains_.Add(key, op, launches, ns);
  if (!key.layer.model.empty() && what_if_.has_model() && sums.launches > 0) {
    attention_[key.layer].push_back({&key, ns, sums.total_flop() / launches, launches, MostFlop(sums.flop())});
  }
}

// Attention that is spelled out: a softmax of the forward, and a product in the same layer that makes its scores or
// reads them. All that handles as many elements as there are scores would not run.
FactCollector::Attention FactCollector::FindAttention() const {
  // A layer has few sizes of scores; a trace that says otherwise must not take forever.
  constexpr size_t kMostSizes = 16;
  Attention found;
  for (const auto& [layer, parts] : attention_) {
    std::map<double, double> scores;  // elements, and how many keys each query has
    for (const AttentionPart& part : parts) {
      const std::string_view op = BareName(*part.key);
      if (!Contains(op, "softmax") || Contains(op, "log_softmax") || IsBackward(op)) continue;
      const std::vector<SignatureShape> shapes = ShapesOf(part.key->signature);
      if (!shapes.empty() && shapes.front().rank >= 3 && scores.size() < kMostSizes) {
        scores.emplace(shapes.front().elements, shapes.front().last);
      }
    }
    for (const auto& [elements, keys] : scores) {
      double ns = 0;
      // A product's forward, each way: what one call of it does, and how often.
      double flop = 0, bytes = 0, calls = 0;
      bool backward = false;
      Precision precision = Precision::kFp32;
      for (const AttentionPart& part : parts) {
        const std::string_view op = BareName(*part.key);
        const std::vector<SignatureShape> shapes = ShapesOf(part.key->signature);
        bool of_scores = std::any_of(shapes.begin(), shapes.end(), [&, of = elements](const SignatureShape& shape) {
          return shape.elements == of;
        });
        if (IsBatchedProduct(op) && shapes.size() >= 2) {
          const SignatureShape &left = shapes[shapes.size() - 2], &right = shapes.back();
          const double result = right.rank == 3 && left.last > 0 ? left.elements / left.last * right.last : 0;
          of_scores = of_scores || result == elements;
          const bool forward = part.key->phase != Phase::kBackward && part.key->phase != Phase::kRecompute;
          if (of_scores && forward) {
            // Queries and keys of one, values and results of the other; the scores stay on the chip.
            const double element_bytes = part.key->signature.starts_with("f32") ? kFp32Bytes : kFp32Bytes / 2;
            for (const double size : {left.elements, right.elements, result}) {
              if (size != elements) bytes += element_bytes * size;
            }
            flop += part.flop;
            calls = std::max(calls, part.launches);
            precision = part.precision;
          }
        }
        if (!of_scores) continue;
        ns += part.ns;
        backward = backward || part.key->phase == Phase::kBackward;
      }
      if (flop <= 0) continue;
      found.ns += ns;
      // The backward computes the scores again: five products for the forward's two. It reads what the forward read
      // and wrote and the gradient, and writes three gradients.
      constexpr double kBackwardFlop = 2.5, kBackwardBytes = 2;
      found.fused_ns += calls * what_if_.FusedAttention(false, precision, flop, bytes, keys);
      if (backward) {
        found.fused_ns +=
            calls * what_if_.FusedAttention(true, precision, kBackwardFlop * flop, kBackwardBytes * bytes, keys);
      }
    }
  }
  return found;
}

double FactCollector::OptimizerFusedNs() const {
  // Weight, gradient and both moments are read, all but the gradient written.
  constexpr double kWords = 7;
  double bytes = 0;
  for (const auto& [name, model] : run_.models) {
    if (model.parameters == 0) continue;
    bytes += static_cast<double>(model.trainable_parameters) / static_cast<double>(model.parameters) *
             static_cast<double>(model.parameter_bytes);
  }
  return what_if_.Elementwise(kWords * bytes);
}

// Each weight is converted once a step, and its gradient back.
double FactCollector::WeightCastsNs() const {
  double ns = 0;
  for (const LayerKey& key : cast_layers_) {
    const auto layer = run_.layers.find(key);
    if (layer == run_.layers.end()) continue;
    constexpr double kConverted = 1.5;  // of the weight's bytes: read as they are, written as half
    ns += what_if_.Elementwise(kConverted * static_cast<double>(layer->second.parameter_bytes));
  }
  ns += static_cast<double>(cast_biases_) * what_if_.Elementwise(0);
  return run_.key.training ? 2 * ns : ns;
}

// Waits are known of the optimizer's steps, and reports may divide by others.
void FactCollector::AddWaits(const Report& report, FactValues& values) {
  const StepWaits& waits = report.waits;
  const auto set = [&](Fact fact, std::optional<double> ns) {
    values[fact] = ns ? std::optional(*ns * report.steps.optimizer_per_step()) : std::nullopt;
  };
  const bool of_a_gpu = waits.idle_ns().has_value();
  set(Fact::kClock, of_a_gpu ? std::optional(waits.step_ns()) : std::nullopt);
  set(Fact::kIdle, waits.idle_ns());
  set(Fact::kDataWait, of_a_gpu ? waits.data_wait.mean_ns : std::nullopt);
  set(Fact::kGpuWait, of_a_gpu ? waits.gpu_wait.mean_ns : std::nullopt);
  // A virtual GPU's host is not the one that the GPU would have, so that its launches say little.
  const bool measured = report.run.source == SourceKind::kMeasured;
  set(Fact::kHost, measured ? waits.own.mean_ns : std::nullopt);
  if (report.queue.host_ns > 0) values[Fact::kHost] = report.queue.host_ns;
}

void FactCollector::AddChains(double steps, FactValues& values) const {
  const ElementwiseChains::Times chains = chains_.Find(run_, what_if_);
  values[Fact::kChainLaunches] = chains.launches / steps;
  values[Fact::kChains] = chains.ns / steps;
  values[Fact::kChainsFused] = chains.fused_ns / steps;
}

void FactCollector::AddBeyondUsual(double steps, FactValues& values) const {
  constexpr double kBeyond = 1.25;  // expected times are right within that for most operators
  double beyond = 0;
  for (const auto& [key, usual] : usual_) {
    if (usual.usual_ns > 0 && usual.ns > kBeyond * usual.usual_ns) beyond += usual.ns - usual.usual_ns;
  }
  values[Fact::kBeyondUsual] = usual_.empty() ? std::nullopt : std::optional<double>(beyond / steps);
}

void FactCollector::AddGraphBreaks(const Report& report, FactValues& values) const {
  values[Fact::kGraphBreaks] = static_cast<double>(report.kept.graph_break.size());
  if (report.kept.graph_break.empty()) return;
  const auto bytes = static_cast<double>(report.kept.graph_break.front().bytes);  // the largest
  const bool training = report.run.training && !report.steps.validation;
  values[Fact::kBreakBytes] = bytes > 0 ? std::optional(bytes) : std::nullopt;
  // Written before the break and read behind it; in training so are the gradients, the other way.
  values[Fact::kBreak] =
      bytes > 0 ? std::optional((training ? 2 : 1) * what_if_.Elementwise(2 * bytes)) : std::nullopt;
}

FactValues FactCollector::Values(const Report& report) const {
  FactValues values;
  const double steps = report.steps.divisor();
  for (size_t i = 0; i < kFactCount; ++i) values[i] = sums_[i] / steps;

  const bool measured = report.run.source != SourceKind::kEstimated;
  if (report.total.sums.time_ns() > 0) {
    values[Fact::kStep] = report.total.sums.time_ns() / steps;
    values[Fact::kLaunch] = what_if_.has_model() ? what_if_.Elementwise(0) : report.queue.shortest_ns;
  } else {
    values[Fact::kStep].reset();
    values[Fact::kLaunch].reset();
  }
  values[Fact::kTraining] = report.run.training && !report.steps.validation ? 1 : 0;
  values[Fact::kMeasured] = measured ? 1 : 0;
  values[Fact::kCompiled] = report.attribution.compiled ? 1 : 0;
  AddWaits(report, values);

  AddBeyondUsual(steps, values);
  AddGraphBreaks(report, values);

  double single = 0, tensors = 0;
  for (const auto& [op, launches] : optimizer_single_) {
    single += launches;
    tensors = tensors == 0 ? launches : std::min(tensors, launches);
  }
  values[Fact::kOptimizerSingleLaunches] = single / steps;
  values[Fact::kOptimizerTensors] = tensors / steps;
  // Where it is not known what a fused optimizer would read and write, the optimizer is taken to be as it should be.
  const double optimizer_ns = sums_[Fact::kOptimizer] / steps;
  values[Fact::kOptimizerFused] = is_adam_ && !fused_optimizer_ ? OptimizerFusedNs() : optimizer_ns;
  // Optimizers choose by device, and from torch 2.0 on lists of tensors on a GPU.
  const bool on_cpu = !measured && report.run.collector != kVirtualGpuCollector;
  const bool chooses =
      std::any_of(report.process.list.begin(), report.process.list.end(), [](const ProcessInfo& process) {
        return !process.torch_version.empty() && process.torch_version.front() >= '2';
      });
  if (on_cpu && chooses && single > 0) {
    values[Fact::kOptimizerSingleLaunches].reset();
    values[Fact::kOptimizerFused].reset();
  }

  double now = sums_[Fact::kFullPrecision] / steps;
  double then = sums_[Fact::kInHalf] / steps + WeightCastsNs();
  // The sum of an operand in FP32 and one in half precision is in FP32.
  if (!layer_norm_) now += residual_ns_ / steps, then += residual_half_ns_ / steps;
  // A model that was converted computes in half precision without autocast; what it keeps in FP32 it keeps on
  // purpose.
  const bool autocast = !run_.key.policy.autocast_dtype.empty() || half_products_flop_ > 0.5 * products_flop_;
  values[Fact::kFullPrecision] = autocast ? 0 : now;
  values[Fact::kInHalf] = autocast ? 0 : what_if_.Has(half_) ? then : now;
  values[Fact::kBf16] = half_ == Precision::kBf16Tensor ? 1 : 0;

  const Attention attention = FindAttention();
  values[Fact::kAttention] = attention.ns / steps;
  values[Fact::kAttentionFused] = attention.fused_ns / steps;
  AddChains(steps, values);
  if (!what_if_.has_model()) {
    for (const Fact fact : {Fact::kAttention, Fact::kAttentionFused, Fact::kLargerBatch, Fact::kUnaligned,
                            Fact::kAligned, Fact::kChainLaunches, Fact::kChains, Fact::kChainsFused})
      values[fact].reset();
  }
  if (!measured) values[Fact::kTransposes].reset();
  const uint32_t benchmark = run_.key.policy.cudnn_benchmark;
  values[Fact::kCudnnBenchmark] = benchmark == 0 ? std::nullopt : std::optional<double>(benchmark - 1);
  uint64_t memory = 0;
  for (const DeviceInfo& device : report.device.list) memory = std::max(memory, device.memory_bytes);
  values[Fact::kMemoryBytes] = memory > 0 ? std::optional<double>(static_cast<double>(memory)) : std::nullopt;
  values[Fact::kForwards].reset();
  if (run_.steps.calls > 0) values[Fact::kForwards] = static_cast<double>(run_.steps.calls) / steps;
  if (!what_if_.has_roofs()) {
    for (const Fact fact :
         {Fact::kShortLaunches, Fact::kShort, Fact::kFullPrecisionMatrix, Fact::kMatrixInTf32, Fact::kFullPrecision,
          Fact::kInHalf, Fact::kBf16, Fact::kFp64AsFp32, Fact::kConvolutionSlack}) {
      values[fact].reset();
    }
  }
  return values;
}

}  // namespace rfinject::cli
