#include "cli/report/advice/signature_shapes.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace rfinject::cli {
namespace {

// Of a type by its short name, at the beginning of a token.
double ElementBytes(std::string_view token) {
  if (token.starts_with("f64") || token.starts_with("i64") || token.starts_with("c64")) return 8;
  if (token.starts_with("f16") || token.starts_with("bf16") || token.starts_with("i16")) return 2;
  return token.starts_with("bool") || token.starts_with("i8") || token.starts_with("u8") ? 1 : 4;
}

}  // namespace

std::vector<SignatureShape> ShapesOf(std::string_view signature) {
  std::vector<SignatureShape> shapes;
  constexpr size_t kMostShapes = 8;
  while (!signature.empty() && shapes.size() < kMostShapes) {
    const size_t end = std::min(signature.find(' '), signature.size());
    const std::string_view token = signature.substr(0, end);
    signature.remove_prefix(std::min(end + 1, signature.size()));
    const size_t open = token.find('[');
    if (open == std::string_view::npos || !token.ends_with(']')) continue;
    SignatureShape shape;
    shape.element_bytes = ElementBytes(token);
    const char* at = token.data() + open + 1;
    const char* const last = token.data() + token.size() - 1;
    while (at < last) {
      double size = 0;
      const auto [next, error] = std::from_chars(at, last, size);
      if (error != std::errc() || !(size >= 0)) break;
      if (shape.rank++ == 0) shape.first = size;
      shape.last = size;
      shape.elements *= size;
      at = next < last ? next + 1 : next;
    }
    shapes.push_back(shape);
  }
  return shapes;
}

}  // namespace rfinject::cli
