#include "cli/picture/text.h"

#include <utility>

#include "cli/text/code_points.h"

namespace rfinject::cli {

Text MakeText(std::string css, std::string text, Point at, Anchor anchor, double size) {
  const double width = TextWidth(text) * size;
  const double left = anchor == Anchor::kStart ? at.x : anchor == Anchor::kEnd ? at.x - width : at.x - width / 2;
  return {.css = std::move(css),
          .text = std::move(text),
          .at = at,
          .anchor = anchor,
          .size = size,
          .box = {left, at.y - size * 0.78, width, size}};
}

double TextWidth(std::string_view text) {
  double width = 0;
  while (!text.empty()) {
    const uint32_t c = TakeCodePoint(&text);
    if (c == kBrokenByte || IsInvisible(c)) {
      width += 5;  // shown by its number
    } else if (c == 'i' || c == 'j' || c == 'l' || c == '.' || c == ',' || c == ' ' || c == ':' || c == 'I' ||
               c == '|' || c == '\'' || c == 0x202f || c == 0xb7) {
      width += 0.34;
    } else if (c == 'f' || c == 't' || c == 'r' || c == '(' || c == ')' || c == '/' || c == '-') {
      width += 0.42;
    } else if (c == 'm' || c == 'w' || c == 'M' || c == 'W' || c == '%' || c == '@' || c == '<' || c == '>') {
      width += 0.98;
    } else if (c >= 'A' && c <= 'Z') {
      width += 0.71;
    } else if (c < 0x1100) {
      width += 0.635;
    } else {
      width += 1.05;  // CJK and symbols
    }
  }
  return width;
}

std::string FitTo(const std::string& text, double width, double size) {
  std::string fitted = text;
  for (size_t most = text.size(); most > 8 && TextWidth(fitted) * size > width; --most)
    fitted = ElideMiddle(text, most);
  return fitted;
}

}  // namespace rfinject::cli
