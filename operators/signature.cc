#include "operators/signature.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "operators/attention.h"
#include "operators/operands.h"
#include "operators/types.h"

namespace rfinject::estimate {
namespace {

constexpr std::string_view kEllipsis = "…";
constexpr std::string_view kCausalMark = ":causal";

class Writer {
 public:
  explicit Writer(std::span<char, kMaxSignature> buffer) : buffer_(buffer) {}

  void Text(std::string_view text) {
    if (cut_ || text.empty()) return;
    if (text.size() > kMaxSignature - kEllipsis.size() - size_) {
      cut_ = true;
      std::memcpy(buffer_.data() + size_, kEllipsis.data(), kEllipsis.size());
      size_ += kEllipsis.size();
      return;
    }
    std::memcpy(buffer_.data() + size_, text.data(), text.size());
    size_ += text.size();
  }

  void Number(uint64_t number) {
    char digits[20];
    const auto end = std::to_chars(digits, digits + sizeof(digits), number);
    Text({digits, static_cast<size_t>(end.ptr - digits)});
  }

  bool cut() const { return cut_; }
  std::string_view view() const { return {buffer_.data(), size_}; }

 private:
  std::span<char, kMaxSignature> buffer_;
  size_t size_ = 0;
  bool cut_ = false;
};

size_t Rank(const TensorView& tensor) { return std::min<size_t>(tensor.rank, kMaxRank); }

// The formats in which the times were measured that estimates come from (docs/method/ESTIMATOR.md). Traces of older
// libraries bear no marks, and are read so.
MemoryFormat FormatAssumed(DType dtype) {
  const bool half = dtype == DType::kHalf || dtype == DType::kBFloat16;
  return half ? MemoryFormat::kChannelsLast : MemoryFormat::kChannelsFirst;
}

// The memory format that the operator's kernels run in: channels last where an operand is, as torch chooses for cuDNN
// (aten/src/ATen/native/ConvUtils.h, cudnn_conv_suggest_memory_format). Unknown for operators that do not care.
MemoryFormat FormatOf(const OpCall& call) {
  constexpr size_t kOperands = 3;  // of a backward: gradient, input, weight
  auto format = MemoryFormat::kUnknown;
  const bool cares = call.name.find("convolution") != std::string_view::npos ||
                     call.name.find("batch_norm") != std::string_view::npos;
  for (size_t i = 0; cares && i < std::min(kOperands, call.inputs.size()); ++i) {
    for (const TensorView& tensor : TensorsOf(call, call.inputs[i])) format = std::max(format, tensor.format);
  }
  return format;
}

// What stands behind the first type; empty where nothing has to.
std::string_view FormatMark(MemoryFormat format, DType dtype) {
  if (format == MemoryFormat::kUnknown || format == FormatAssumed(dtype)) return {};
  return format == MemoryFormat::kChannelsLast ? ":nhwc" : ":nchw";
}

void WriteTensor(Writer& out, const TensorView& tensor, std::string_view mark) {
  out.Text(FactsOf(tensor.dtype).name);
  out.Text(mark);
  out.Text("[");
  for (size_t i = 0; i < Rank(tensor); ++i) {
    if (i != 0) out.Text(",");
    out.Number(Size(tensor, static_cast<int>(i)));
  }
  out.Text("]");
  if (!tensor.sparse) return;
  out.Text("{");
  out.Number(tensor.numel);
  out.Text("}");
}

// FNV-1a over 64-bit words, finished by the mixer of MurmurHash3 (both public domain): the words differ in few bits.
class Hash {
 public:
  void Word(uint64_t word) {
    state_ = (state_ ^ word) * 0x100000001b3u;
    state_ ^= state_ >> 29;
  }
  void Text(std::string_view text) {
    Word(text.size());
    while (!text.empty()) {
      uint64_t word = 0;
      const size_t size = std::min(text.size(), sizeof(word));
      std::memcpy(&word, text.data(), size);
      Word(word);
      text.remove_prefix(size);
    }
  }
  uint64_t Finish() const {
    uint64_t h = state_;
    h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdu;
    h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53u;
    return h ^ (h >> 33);
  }

 private:
  uint64_t state_ = 0xcbf29ce484222325u;
};

}  // namespace

std::string_view FormatSignature(const OpCall& call, std::span<char, kMaxSignature> buffer) noexcept {
  Writer out(buffer);
  bool first = true;
  for (const Argument& argument : call.inputs) {
    if (out.cut()) break;
    const auto tensors = TensorsOf(call, argument);
    const bool list = argument.kind == Argument::Kind::kTensorList;
    if (tensors.empty()) continue;
    if (!first) out.Text(" ");
    const bool causal = first && IsCausalAttention(call);
    const MemoryFormat format = first ? FormatOf(call) : MemoryFormat::kUnknown;
    first = false;
    if (!list) {
      WriteTensor(out, tensors[0], causal ? kCausalMark : FormatMark(format, tensors[0].dtype));
      continue;
    }
    out.Number(tensors.size());
    out.Text("*");
    out.Text(FactsOf(tensors[0].dtype).name);
    out.Text("{");
    out.Number(Elements(tensors));
    out.Text("}");
  }
  return out.view();
}

uint64_t HashSignature(const OpCall& call) noexcept {
  Hash hash;
  hash.Text(call.name);
  if (IsCausalAttention(call)) hash.Text(kCausalMark);
  for (const Argument& argument : call.inputs) {
    const auto tensors = TensorsOf(call, argument);
    if (tensors.empty()) continue;
    if (argument.kind == Argument::Kind::kTensorList) {
      hash.Word(0x100 + tensors.size());
      hash.Word(static_cast<uint64_t>(tensors[0].dtype));
      hash.Word(Elements(tensors));
      continue;
    }
    hash.Word(static_cast<uint64_t>(tensors[0].format) << 16 | static_cast<uint64_t>(tensors[0].dtype) << 8 |
              Rank(tensors[0]));
    for (size_t i = 0; i < Rank(tensors[0]); ++i) hash.Word(Size(tensors[0], static_cast<int>(i)));
    if (tensors[0].sparse) hash.Word(tensors[0].numel);
  }
  return hash.Finish();
}

}  // namespace rfinject::estimate
