#include "cli/emit/text_grid.h"

#include <algorithm>

#include "proto/wire/encoder.h"

namespace rfinject::cli {
namespace {

bool StartsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

std::string Trimmed(std::string text) {
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace

size_t DisplayWidth(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), StartsCharacter));
}

std::string Shortened(const std::string& text, size_t width, bool keep_end) {
  const size_t all = DisplayWidth(text);
  if (all <= width) return text;
  const size_t kept = width > 2 ? width - 2 : 0;
  const size_t skip = keep_end ? all - kept : 0;
  std::string result;
  size_t index = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i > 0 && StartsCharacter(text[i])) ++index;
    if (index >= skip && index < skip + kept) result += text[i];
  }
  return keep_end ? ".." + result : result + "..";
}

std::string Padded(const std::string& text, size_t width, bool right) {
  const size_t have = DisplayWidth(text);
  const std::string space(width > have ? width - have : 0, ' ');
  return right ? space + text : text + space;
}

std::string PrintableText(std::string_view text) {
  std::string clean;
  while (!text.empty()) {
    const size_t length = wire::Utf8SequenceLength(text);
    const auto first = static_cast<unsigned char>(text[0]);
    const bool control = first < 0x20 || first == 0x7F ||
                         (length == 2 && first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0);  // C1
    if (length == 0 || control) {
      clean += '?';
    } else {
      clean += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return clean;
}

std::vector<std::string> WriteGrid(const TextGrid& grid, int width, bool color, std::ostream& out) {
  std::vector<std::vector<std::string>> lines;
  std::vector<size_t> widths, shown;
  for (size_t c = 0; c < grid.columns.size(); ++c) {
    widths.push_back(DisplayWidth(grid.columns[c].title));
    shown.push_back(c);
  }
  for (const std::vector<std::string>& cells : grid.lines) {
    std::vector<std::string>& line = lines.emplace_back();
    for (size_t c = 0; c < grid.columns.size(); ++c) {
      line.push_back(c < cells.size() ? PrintableText(cells[c]) : std::string());
      widths[c] = std::max(widths[c], DisplayWidth(line.back()));
    }
  }
  const auto room = static_cast<size_t>(std::max(width, 40));
  const auto least = [&](size_t c) {
    const size_t least_width = grid.columns[c].least_width;
    return least_width == 0 ? widths[c] : std::min(widths[c], least_width);
  };
  const auto needed = [&] {
    size_t sum = DisplayWidth(grid.mark) - 1;
    for (const size_t c : shown) sum += least(c) + 1;
    return sum;
  };
  std::vector<std::string> left_out;
  while (needed() > room) {
    const auto worst = std::max_element(shown.begin(), shown.end(), [&](size_t a, size_t b) {
      return grid.columns[a].priority < grid.columns[b].priority;
    });
    if (worst == shown.end() || grid.columns[*worst].priority == 0) break;
    left_out.push_back(grid.columns[*worst].title);
    shown.erase(worst);
  }
  size_t spare = room - std::min(room, needed());
  for (const size_t c : shown) {
    const size_t more = std::min(spare, widths[c] - least(c));
    spare -= more;
    widths[c] = least(c) + more;
  }
  std::string head(DisplayWidth(grid.mark), ' ');
  for (const size_t c : shown) head += Padded(grid.columns[c].title, widths[c], grid.columns[c].right) + " ";
  out << (color ? "\033[1m" : "") << Trimmed(head) << (color ? "\033[0m" : "") << '\n';
  for (const std::vector<std::string>& line : lines) {
    std::string text = grid.mark;
    for (const size_t c : shown) {
      const GridColumn& column = grid.columns[c];
      text += Padded(Shortened(line[c], widths[c], column.keep_end), widths[c], column.right) + " ";
    }
    out << Trimmed(text) << '\n';
  }
  return left_out;
}

void WriteWrapped(std::ostream& out, std::string_view text, int width, const std::string& first,
                  const std::string& indent) {
  std::string line = first;
  bool empty = true;
  const std::string clean = PrintableText(text);
  for (size_t begin = 0; begin < clean.size();) {
    size_t end = clean.find(' ', begin);
    if (end == std::string::npos) end = clean.size();
    const std::string word = clean.substr(begin, end - begin);
    if (!empty && DisplayWidth(line) + 1 + DisplayWidth(word) > static_cast<size_t>(std::max(width, 40))) {
      out << line << '\n';
      line = indent;
      empty = true;
    }
    line += (empty ? "" : " ") + word;
    empty = false;
    begin = end + 1;
  }
  out << line << '\n';
}

}  // namespace rfinject::cli
