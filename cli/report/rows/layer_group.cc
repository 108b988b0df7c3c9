#include "cli/report/rows/layer_group.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"

namespace rfinject::cli {
namespace {

// The sizes of "f32[8,3,224,224]"; nothing where the text is something else.
std::optional<std::vector<uint64_t>> SizesOf(std::string_view shape) {
  const size_t open = shape.find('['), close = shape.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  std::vector<uint64_t> sizes;
  const char* at = shape.data() + open + 1;
  const char* const end = shape.data() + close;
  while (at < end) {
    uint64_t value = 0;
    const auto [after, error] = std::from_chars(at, end, value);
    if (error != std::errc() || (after < end && *after != ',')) return std::nullopt;
    sizes.push_back(value);
    at = after + 1;
  }
  return sizes;
}

// The width is in a type's name: f32, bf16, i64, u8, c64, f8e4m3; a bool is a byte. 0 where it is not known.
uint64_t TypeBytes(std::string_view type) {
  if (type == "bool" || type == "b8") return 1;
  const size_t digit = std::min(type.find_first_of("0123456789"), type.size());
  uint16_t bits = 0;
  (void)std::from_chars(type.data() + digit, type.data() + type.size(), bits);
  return bits / 8;
}

// Images and volumes have their channels behind the batch; all else, such as tokens, has its features last.
uint64_t Features(const std::vector<uint64_t>& sizes, bool channels_second) {
  if (sizes.size() < 2) return 0;
  return channels_second ? sizes[1] : sizes.back();
}

// The side of a square window over two dimensions; 0 where the weights are not those of one.
uint64_t Window(uint64_t parameters, uint64_t in, uint64_t out) {
  if (in == 0 || out == 0) return 0;
  for (const uint64_t bias : {uint64_t{0}, out}) {
    if (parameters < bias) continue;
    const uint64_t weights = parameters - bias;
    for (const uint64_t channels : {in * out, out}) {  // dense, or each channel alone
      if (weights == 0 || weights % channels != 0 || (channels == out && in != out)) continue;
      const uint64_t window = weights / channels;
      const auto side = static_cast<uint64_t>(std::llround(std::sqrt(static_cast<double>(window))));
      if (side * side * channels == weights) return side;
    }
  }
  return 0;
}

}  // namespace

std::string LayerGroup(const LayerInfo& layer) {
  std::string text = layer.class_name;
  const std::vector<uint64_t> in = SizesOf(layer.input_shape).value_or(std::vector<uint64_t>()),
                              out = SizesOf(layer.output_shape).value_or(std::vector<uint64_t>());
  const bool convolution = layer.class_name.find("Conv") != std::string::npos && layer.parameters > 0;
  const bool channels_second = convolution || (in.size() >= 4 && out.size() != 3);
  const uint64_t from = Features(in, channels_second), to = Features(out, channels_second);
  // Beyond that a product of two could not be held; no network has so many.
  constexpr uint64_t kMost = uint64_t{1} << 30;
  if (convolution && in.size() == 4 && from < kMost && to < kMost) {
    if (const uint64_t side = Window(layer.parameters, from, to); side > 0)
      absl::StrAppend(&text, " ", side, "x", side);
  }
  // Indices, such as tokens, have no features.
  const bool indices = layer.input_shape.starts_with('i') || layer.input_shape.starts_with('u');
  if (to > 0 && (indices || from == 0)) return absl::StrCat(text, " ", to);
  if (from == 0 || to == 0) return text;
  absl::StrAppend(&text, " ", from);
  if (from != to || convolution || layer.class_name == "Linear") absl::StrAppend(&text, "->", to);
  return text;
}

uint64_t ShapeBytes(std::string_view shape) {
  const auto sizes = SizesOf(shape);
  uint64_t bytes = sizes ? TypeBytes(shape.substr(0, shape.find('['))) : 0;
  for (const uint64_t size : sizes.value_or(std::vector<uint64_t>())) {
    if (size != 0 && bytes > UINT64_MAX / size) return 0;
    bytes *= size;
  }
  return bytes;
}

std::string_view FirstParts(std::string_view path, size_t depth) {
  size_t end = 0;
  for (size_t part = 0; depth > 0 && part < depth; ++part) {
    end = path.find('.', end == 0 ? 0 : end + 1);
    if (end == std::string_view::npos) return path;
  }
  return depth == 0 ? path : path.substr(0, end);
}

}  // namespace rfinject::cli
