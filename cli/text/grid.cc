#include "cli/text/grid.h"

#include <algorithm>

#include "cli/text/code_points.h"

namespace rfinject::cli {
namespace {

bool StartsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

// How many terminal columns `text` takes. Each code point counts as one, since there is no table of wide characters
// here.
size_t DisplayWidth(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), StartsCharacter));
}

std::string Trimmed(std::string text) {
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

// `text` with spaces up to `width` columns, behind it if `left`.
std::string Padded(std::string_view text, size_t width, bool left) {
  const size_t have = DisplayWidth(text);
  const std::string space(width > have ? width - have : 0, ' ');
  return left ? std::string(text) + space : space + std::string(text);
}

}  // namespace

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

namespace {

void WriteLines(const TextGrid& grid, const std::vector<GridLine>& lines, const std::vector<size_t>& shown,
                const std::vector<size_t>& widths, std::ostream& out) {
  const std::vector<TableLook>& columns = grid.columns;
  const auto gap = [&](size_t i) { return std::string(i == 0 ? 0 : columns[shown[i]].gap, ' '); };
  for (const GridLine& line : lines) {
    std::string text = grid.mark;
    for (size_t i = 0; i < shown.size();) {
      const TableLook& column = columns[shown[i]];
      const std::string& cell = line.cells[shown[i]];
      size_t cell_width = widths[shown[i]];
      text += gap(i);
      size_t next = i + 1;
      if (i == 0) {
        for (; next < shown.size() && shown[next] < line.span; ++next) {
          cell_width += columns[shown[next]].gap + widths[shown[next]];
        }
      }
      const bool label = i == 0 && line.span > 0;
      text += Padded(column.width > 0 ? cell : Shortened(cell, cell_width, column.keep_end && !label), cell_width,
                     column.left);
      i = next;
    }
    out << Trimmed(text) << '\n';
    for (const std::string& below : line.below) out << "    " << PrintableText(below) << '\n';
  }
}

}  // namespace

std::vector<std::string> WriteGrid(const TextGrid& grid, int width, bool color, std::ostream& out) {
  const std::vector<TableLook>& columns = grid.columns;
  std::vector<GridLine> lines;
  std::vector<size_t> widths, shown;
  for (size_t c = 0; c < columns.size(); ++c) {
    widths.push_back(columns[c].width > 0 ? columns[c].width : DisplayWidth(columns[c].title));
    shown.push_back(c);
  }
  for (const GridLine& given : grid.lines) {
    GridLine& line = lines.emplace_back(GridLine{{}, given.span, given.below});
    for (size_t c = 0; c < columns.size(); ++c) {
      line.cells.push_back(c < given.cells.size() ? PrintableText(given.cells[c]) : std::string());
      if (columns[c].width == 0 && (c > 0 || line.span <= 1)) {
        widths[c] = std::max(widths[c], DisplayWidth(line.cells.back()));
      }
    }
  }
  for (size_t c = 0; c < columns.size(); ++c) widths[c] = std::min(widths[c], columns[c].most_width);
  // Columns of a higher priority number go before any cell is shortened.
  constexpr int kWholeCellsAbove = 6;
  const auto room = static_cast<size_t>(std::max(width, 40));
  // On the smallest of screens a name may be shorter than it should be: a number must not be cut.
  constexpr size_t kTightest = 8;
  bool tight = false;
  const auto least = [&](size_t c) {
    const size_t wanted = columns[c].least_width;
    return wanted == 0 ? widths[c] : std::min(widths[c], tight ? std::min(wanted, kTightest) : wanted);
  };
  const auto needed = [&](const auto& width_of) {
    size_t sum = DisplayWidth(grid.mark);
    for (const size_t c : shown) sum += width_of(c) + (c == shown.front() ? 0 : columns[c].gap);
    return sum;
  };
  const auto least_needed = [&] { return needed(least); };
  const auto all_needed = [&] { return needed([&](size_t c) { return widths[c]; }); };
  std::vector<std::string> left_out;
  // Leaves the least important column out; false when it is of priority `stays` or lower.
  const auto leave_out = [&](int stays) {
    const auto worst = std::max_element(
        shown.begin(), shown.end(), [&](size_t a, size_t b) { return columns[a].priority < columns[b].priority; });
    if (worst == shown.end() || columns[*worst].priority <= stays) return false;
    left_out.emplace_back(columns[*worst].title);
    shown.erase(worst);
    return true;
  };
  while (all_needed() > room && leave_out(kWholeCellsAbove)) {
  }
  while (least_needed() > room && leave_out(0)) {
  }
  tight = least_needed() > room;
  size_t spare = room - std::min(room, least_needed());
  for (const size_t c : shown) {
    const size_t more = std::min(spare, widths[c] - least(c));
    spare -= more;
    widths[c] = least(c) + more;
  }
  const auto gap = [&](size_t i) { return std::string(i == 0 ? 0 : columns[shown[i]].gap, ' '); };
  if (grid.head) {
    std::string head(DisplayWidth(grid.mark), ' ');
    for (size_t i = 0; i < shown.size(); ++i) {
      const TableLook& column = columns[shown[i]];
      head += gap(i) + Padded(column.title, widths[shown[i]], column.left);
    }
    const Letters letters(color);
    out << letters.bold << Trimmed(head) << letters.plain << '\n';
  }
  WriteLines(grid, lines, shown, widths, out);
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
