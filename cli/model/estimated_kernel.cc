#include "cli/model/estimated_kernel.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace rfinject::cli {
namespace {

constexpr size_t kMaxOperands = 4, kMaxDimensions = 5;
constexpr double kUsualGroups = 32;        // of a group norm (Wu, He, "Group Normalization", 2018)
constexpr double kMostElements = 1e15;     // along one dimension; more is no tensor
constexpr double kOperandsOverCopy = 1.5;  // two are read and one written, over one and one

struct Shape {
  std::string_view type;
  double element_bytes = 4;
  bool channels_last = false;
  size_t rank = 0;
  std::array<double, kMaxDimensions> size{};
  double elements() const {
    double product = 1;
    for (size_t i = 0; i < rank; ++i) product *= size[i];
    return product;
  }
};

struct Shapes {
  size_t count = 0;
  std::array<Shape, kMaxOperands> operand;
};

double ElementBytes(std::string_view type) {
  size_t digit = 0;
  while (digit < type.size() && (type[digit] < '0' || type[digit] > '9')) ++digit;
  int bits = 0;
  std::from_chars(type.data() + digit, type.data() + type.size(), bits);
  return bits > 0 ? bits / 8.0 : 1;  // "bool"
}

// As operators/signature.h says it: where no format stands, halves are channels last and all else is not.
bool IsChannelsLast(std::string_view type) {
  const bool half = type.starts_with("f16") || type.starts_with("bf16");
  return type.ends_with(":nhwc") || (half && !type.ends_with(":nchw"));
}

// The operands that the signature names, as far as they are single, dense tensors of at most five dimensions.
Shapes Parse(std::string_view signature) {
  Shapes shapes;
  while (!signature.empty() && shapes.count < kMaxOperands) {
    const size_t end = signature.find(' ');
    std::string_view token = signature.substr(0, end);
    signature.remove_prefix(end == std::string_view::npos ? signature.size() : end + 1);
    const size_t open = token.find('[');
    if (open == std::string_view::npos || !token.ends_with(']')) return shapes;  // a list, sparse, or cut off
    Shape shape;
    const std::string_view type = token.substr(0, open);
    shape.type = type;
    shape.element_bytes = ElementBytes(type);
    shape.channels_last = IsChannelsLast(type);
    const char* at = token.data() + open + 1;
    const char* last = token.data() + token.size() - 1;
    while (at < last) {
      if (shape.rank == kMaxDimensions) return shapes;
      const auto [next, error] = std::from_chars(at, last, shape.size[shape.rank]);
      if (error != std::errc() || !(shape.size[shape.rank] >= 0 && shape.size[shape.rank] < kMostElements)) {
        return shapes;
      }
      ++shape.rank;
      at = next < last ? next + 1 : next;
    }
    shapes.operand[shapes.count++] = shape;
  }
  return shapes;
}

std::pair<Precision, double> LargestFlop(const FlopByPrecision& flop) {
  const auto most = std::ranges::max_element(flop);
  if (*most <= 0) return {Precision::kFp32, 0};
  return {static_cast<Precision>(most - flop.begin()), *most};
}

constexpr double kRounded = 1e-6;
bool Agrees(double flop, double expected, double tolerance = 0.02) {
  return std::abs(flop - expected) <= tolerance * expected;
}

bool FillProduct(std::string_view name, const Shapes& shapes, double flop, bool gradient, Operator& op) {
  if (shapes.count < 2) return false;
  const bool linear = name == "linear";
  // What is added comes first, and an out= behind.
  const bool adds = name.find("add") != std::string_view::npos;
  const size_t first = linear ? 0 : std::min<size_t>(adds ? 1 : 0, shapes.count - 2);
  const Shape &left = shapes.operand[first], &right = shapes.operand[first + 1];
  op.element_bytes = left.element_bytes;
  if (linear && right.rank == 2 && left.rank >= 1) {
    op.k = right.size[1], op.n = right.size[0];
    op.m = left.elements() / op.k;
  } else if ((name == "mm" || name == "addmm" || name == "_addmm_activation") && left.rank == 2 && right.rank == 2) {
    op.m = left.size[0], op.k = left.size[1], op.n = right.size[1];
    // Strides are not in a trace. A weight's gradient is the output's, transposed, by the input: where its rows begin
    // is seen if that is not as for a product as it stands. (The input's gradient of an odd number of tokens looks
    // alike.)
    const auto aligned = [&](double row) { return std::fmod(row * op.element_bytes, kRowAlignment) == 0; };
    if (gradient && name == "mm" && aligned(op.k) && !aligned(op.m)) op.pass = Pass::kWgrad;
  } else if ((name == "bmm" || name == "baddbmm") && left.rank == 3 && right.rank == 3) {
    op.batch = left.size[0], op.m = left.size[1], op.k = left.size[2], op.n = right.size[2];
    op.shared_right = false;
  } else {
    return false;
  }
  op.kind = OperatorKind::kProduct;
  return op.m > 0 && op.k > 0 && op.n > 0 && Agrees(flop, 2 * op.batch * op.m * op.k * op.n);
}

// Fused attention: [batch, heads, tokens, elements] of queries, keys and values, behind the gradient in the backward.
bool FillAttention(std::string_view name, const Shapes& shapes, double flop, double bytes, Operator& op) {
  if (name.find("scaled_dot_product") == std::string_view::npos) return false;
  const bool backward = name.ends_with("_backward");
  const size_t first = backward ? 1 : 0;
  if (shapes.count < first + 2 || shapes.operand[first].rank != 4 || shapes.operand[first + 1].rank != 4)
    return false;
  const Shape &query = shapes.operand[first], &key = shapes.operand[first + 1];
  const bool causal = shapes.operand[0].type.ends_with(":causal");
  op.kind = causal ? OperatorKind::kCausalAttention : OperatorKind::kAttention;
  op.pass = backward ? Pass::kDgrad : Pass::kForward;
  op.element_bytes = query.element_bytes;
  op.batch = query.size[0] * query.size[1], op.m = query.size[2], op.n = key.size[2], op.k = query.size[3];
  op.flop = flop, op.bytes = bytes;
  // Older traces count all scores; kernels compute those that the mask leaves.
  if (causal && Agrees(flop, (backward ? 10 : 4) * op.batch * op.m * op.n * op.k, kRounded)) {
    op.flop *= KeysSeen(op) / op.n;
  }
  return op.m > 0 && op.n > 0 && op.k > 0 && flop > 0;
}

bool IsReduction(std::string_view name) {
  constexpr std::array<std::string_view, 12> kNames = {"sum", "mean", "all",    "any", "amax", "amin",
                                                       "max", "min",  "argmax", "var", "std",  "linalg_vector_norm"};
  return std::ranges::find(kNames, name) != kNames.end();
}

// A short kernel that torch launches before the operator's own: the bytes that it copies; 0: there is none. The bias
// of a product by one row or column is copied into the result, because cuBLASLt is not asked (ATen, cuda/Blas.cpp);
// the sum of integers narrower than 64 bits is one of 64 bits, to which they are converted (ATen, ReduceOpsUtils.h).
double CopiedFirst(std::string_view name, const Shapes& shapes, const Operator& op) {
  if (name == "addmm" && op.kind == OperatorKind::kProduct && (op.k == 1 || op.n == 1)) {
    return op.m * op.n * op.element_bytes + op.n * op.element_bytes;
  }
  constexpr std::array<std::string_view, 5> kNarrow = {"bool", "u8", "i8", "i16", "i32"};
  constexpr double kSumBytes = 8;
  if (name != "sum" || shapes.count == 0) return 0;
  const Shape& first = shapes.operand[0];
  const bool narrow = std::ranges::find(kNarrow, first.type) != kNarrow.end();
  return narrow ? first.elements() * (first.element_bytes + kSumBytes) : 0;
}

void AddCopy(double bytes, OperatorList& list) {
  if (!(bytes > 0)) return;
  list.operators[1] = {.kind = OperatorKind::kElementwise, .bytes = bytes};
  list.count = 2;
}

// Elements where threads take them one by one (OperatorKind::kReordering): a copy that changes no type changes the
// order; operands of different sizes are broadcast; and an operand of another type is converted as it is read (ATen,
// CUDALoops.cuh: unrolled_elementwise_kernel), but for a copy of FP32 into halves, which has a kernel of its own
// (Copy.cu). 0 elsewhere.
double SingleElements(std::string_view name, std::string_view signature, const Shapes& shapes) {
  if (name == "cat") {  // "2*bf16{19268352}"
    const size_t open = signature.find('{');
    double elements = 0;
    if (open == std::string_view::npos) return 0;
    std::from_chars(signature.data() + open + 1, signature.data() + signature.size(), elements);
    return elements > 0 && elements < kMostElements ? elements : 0;
  }
  if (shapes.count < 2) return 0;
  const Shape &left = shapes.operand[0], &right = shapes.operand[1];
  if (name == "copy_" || name == "clone") {
    const bool narrows = right.type == "f32" && left.element_bytes == 2;
    return narrows || left.rank <= 1 ? 0 : left.elements();
  }
  constexpr std::array<std::string_view, 6> kBroadcast = {"add", "sub", "mul", "div", "masked_fill", "where"};
  const bool broadcasts =
      std::ranges::any_of(kBroadcast, [&](std::string_view one) { return name.starts_with(one); });
  if (!broadcasts || left.rank == 0 || right.rank == 0) return 0;
  const bool chooses = name.starts_with("masked_fill") || name.starts_with("where");  // by a mask of another type
  const bool converts = left.type != right.type && !chooses;
  const double most = std::max(left.elements(), right.elements());
  const double least = std::min(left.elements(), right.elements());
  if (least <= 1 || (least == most && !converts)) return 0;
  return converts ? kOperandsOverCopy * most : most;
}

bool FillConvolution(const Shape& input, const Shape& weight, Operator& op) {
  if (input.rank != 4 || weight.rank != 4) return false;
  op.kind = OperatorKind::kConvolution;
  op.element_bytes = input.element_bytes;
  op.channels_last = input.channels_last;
  op.images = input.size[0], op.c_in = input.size[1], op.h = input.size[2], op.w = input.size[3];
  op.c_out = weight.size[0], op.kernel_h = weight.size[2], op.kernel_w = weight.size[3];
  op.groups = op.c_in / weight.size[1];
  return op.groups >= 1 && op.groups == std::floor(op.groups) && op.h > 0 && op.w > 0 && op.c_out > 0;
}

double FlopPerPixel(const Operator& op) {
  return 2 * op.images * op.c_out * op.c_in / op.groups * op.kernel_h * op.kernel_w;
}

bool FillForward(const Shapes& shapes, double flop, Operator& op) {
  if (shapes.count < 2 || !FillConvolution(shapes.operand[0], shapes.operand[1], op)) return false;
  // Strides are no operands; the FLOP tell how many pixels the output has.
  const double pixels = flop / FlopPerPixel(op);
  if (!(pixels >= 1)) return false;
  op.out_h = std::max(1.0, std::round(op.h * std::sqrt(pixels / (op.h * op.w))));
  op.out_w = pixels / op.out_h;
  // FLOP that were written with some digits only, or are a mean of launches, still give whole pixels.
  if (const double whole = std::round(op.out_w); Agrees(op.out_w, whole, kRounded)) op.out_w = whole;
  return true;
}

// Gradients of the input and of the weight, or of the weight only: a network's first layer has no other.
bool FillBackward(const Shapes& shapes, double flop, OperatorList& list) {
  if (shapes.count < 3) return false;
  Operator op = list.operators[0];
  const Shape& gradient = shapes.operand[0];
  if (!FillConvolution(shapes.operand[1], shapes.operand[2], op) || gradient.rank != 4) return false;
  op.out_h = gradient.size[2], op.out_w = gradient.size[3];
  op.channels_last = gradient.channels_last;  // the operand whose format is said
  const double once = FlopPerPixel(op) * op.out_h * op.out_w;
  list.count = Agrees(flop, 2 * once) ? 2 : 1;
  if (list.count == 1 && !Agrees(flop, once)) return false;
  op.pass = Pass::kWgrad;
  list.operators[0] = op;
  op.pass = Pass::kDgrad;
  list.operators[1] = op;
  return true;
}

}  // namespace

OperatorList OperatorsOf(const EstimatedKernel& kernel) {
  std::string_view name = kernel.op;
  if (const size_t colons = name.find("::"); colons != std::string_view::npos) name.remove_prefix(colons + 2);
  const Shapes shapes = Parse(kernel.signature);
  const auto [precision, flop] = LargestFlop(kernel.flop);
  OperatorList list;
  Operator& op = list.operators[0];
  op.precision = precision;
  const Shape first = shapes.count > 0 ? shapes.operand[0] : Shape();
  const bool backward = name.find("convolution_backward") != std::string_view::npos;
  if (backward                        ? FillBackward(shapes, flop, list)
      : name.ends_with("convolution") ? FillForward(shapes, flop, op)
                                      : FillProduct(name, shapes, flop, kernel.gradient, op) ||
                                            FillAttention(name, shapes, flop, kernel.bytes, op)) {
    if (!backward) AddCopy(CopiedFirst(name, shapes, op), list);
    return list;
  }

  list = OperatorList();
  op.precision = precision;
  op.element_bytes = first.element_bytes;
  op.bytes = kernel.bytes;
  op.flop = flop;
  op.cols = first.rank > 0 ? first.size[first.rank - 1] : 1;
  op.rows = op.cols > 0 ? first.elements() / op.cols : 0;
  if (name.starts_with("triton_")) {
    // Inductor names a kernel after all operators that it fuses; it is none of their kernels.
    op.kind = OperatorKind::kOther;
  } else if (name.find("batch_norm") != std::string_view::npos) {
    op.kind = name.starts_with("native_") ? OperatorKind::kBatchNormByTorch : OperatorKind::kBatchNorm;
    // Statistics first: training reads the input twice, the backward pass the input and the gradient. Evaluation has
    // the statistics: 2 FLOP an element instead of 6 or more.
    const double elements = first.elements();
    const bool gradient = name.find("backward") != std::string_view::npos;
    const bool statistics = gradient || flop > 4 * elements;
    if (statistics) op.reread_bytes = (gradient ? 2 : 1) * elements * first.element_bytes;
    op.rows = statistics && first.rank > 2 && !first.channels_last ? first.size[1] : 0;
    op.channels_last = first.channels_last;
  } else if (name.find("softmax") != std::string_view::npos) {
    op.kind = OperatorKind::kSoftmax;
  } else if (name.find("layer_norm") != std::string_view::npos || name.find("group_norm") != std::string_view::npos) {
    op.kind = OperatorKind::kLayerNorm;
    if (name.ends_with("_backward")) op.pass = Pass::kDgrad;
    // A group norm's rows are its groups, whose number is no operand.
    if (name.find("group_norm") != std::string_view::npos && first.rank > 1) {
      op.rows = first.size[0] * kUsualGroups;
      op.cols = first.elements() / op.rows;
    }
  } else if (name.find("_pool") != std::string_view::npos) {
    op.kind = OperatorKind::kPool;
    if (name.ends_with("_backward")) op.pass = Pass::kDgrad;
  } else if (name.find("rms_norm") != std::string_view::npos) {
    op.kind = OperatorKind::kRmsNorm;
  } else {
    op.kind = IsReduction(name)                     ? OperatorKind::kReduction
              : name.starts_with("_index_put_impl") ? OperatorKind::kScatter
                                                    : OperatorKind::kOther;
    AddCopy(CopiedFirst(name, shapes, op), list);
    if (const double single = SingleElements(name, kernel.signature, shapes); single > 0 && !IsTensor(precision)) {
      op.kind = OperatorKind::kReordering;
      op.rows = single, op.cols = 1;
    }
  }
  return list;
}

namespace {

ExpectedTime TimeOf(const EstimatedKernel& kernel, const ExpectedTimes& model) {
  ExpectedTime sum;
  sum.calibrated = Calibrated::kGpu;
  const OperatorList list = OperatorsOf(kernel);
  for (const Operator& op : list.span()) {
    const ExpectedTime time = model.Of(op);
    sum.expected_s += time.expected_s;
    sum.low_s += time.low_s;
    sum.high_s += time.high_s;
    sum.winograd = sum.winograd || time.winograd;
    sum.calibrated = std::max(sum.calibrated, time.calibrated);
    if (&op == list.span().data()) sum.group = time.group;
  }
  if (!(sum.expected_s > 0)) return sum;
  double at_peak_s = 0;
  for (size_t i = 0; i < kernel.flop.size(); ++i) {
    const double peak = model.gpu().peak[i];
    if (peak > 0) at_peak_s = std::max(at_peak_s, kernel.flop[i] / peak);
  }
  sum.dram_bytes = model.FromDram(kernel.bytes);
  sum.ideal_s = model.LeastSeconds(sum.dram_bytes, at_peak_s);
  // Operators that the formulas take for traffic alone may have FLOP on another unit beside it.
  const double least_s =
      sum.winograd ? model.LeastSeconds(sum.dram_bytes, at_peak_s / ExpectedTimes::kWinogradSaves) : sum.ideal_s;
  if (const double longer = least_s / sum.expected_s; longer > 1) {
    sum.expected_s *= longer;
    sum.low_s *= longer;
    sum.high_s *= longer;
  }
  return sum;
}

// Bytes of one number of the sparse operand that the signature names; 0 where none is sparse.
double SparseElementBytes(std::string_view signature) {
  const size_t mark = signature.find("]{");
  if (mark == std::string_view::npos) return 0;
  const size_t blank = signature.rfind(' ', mark);
  return ElementBytes(signature.substr(blank == std::string_view::npos ? 0 : blank + 1));
}

}  // namespace

ExpectedTime ExpectedTimeOf(const EstimatedKernel& kernel, const ExpectedTimes& model) {
  ExpectedTime near = TimeOf(kernel, model);
  const double products = LargestFlop(kernel.flop).second / 2;
  const double element_bytes = SparseElementBytes(kernel.signature);
  if (!(products > 0) || !(element_bytes > 0)) return near;
  // A product with a sparse matrix takes an element of the other one for each multiply-add. How many of them a cache
  // has, all or none, depends on where the numbers stand, which is not known here. No time of such a kernel is known
  // either.
  EstimatedKernel scattered = kernel;
  scattered.bytes += products * element_bytes;
  const ExpectedTime far = TimeOf(scattered, model);
  near.expected_s = std::sqrt(near.expected_s * far.expected_s);
  near.high_s = far.high_s;
  near.calibrated = Calibrated::kFamily;
  return near;
}

}  // namespace rfinject::cli
