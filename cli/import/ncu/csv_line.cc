#include "cli/import/ncu/csv_line.h"

#include <algorithm>

namespace rfinject::cli {

bool CsvLine::Split(std::string_view line) {
  fields_.clear();
  unescaped_.clear();
  unescaped_.reserve(line.size());  // views into it must stay valid
  size_t i = 0;
  for (;;) {
    if (i < line.size() && line[i] == '"') {
      const size_t start = ++i;
      bool escaped = false;
      for (;;) {
        const size_t quote = line.find('"', i);
        if (quote == std::string_view::npos) return false;
        if (quote + 1 < line.size() && line[quote + 1] == '"') {
          escaped = true;
          i = quote + 2;
          continue;
        }
        i = quote;
        break;
      }
      std::string_view text = line.substr(start, i - start);
      if (escaped) {
        const size_t begin = unescaped_.size();
        for (size_t k = 0; k < text.size(); ++k) {
          unescaped_.push_back(text[k]);
          if (text[k] == '"') ++k;
        }
        text = std::string_view(unescaped_).substr(begin);
      }
      fields_.push_back(text);
      ++i;
      if (i < line.size() && line[i] != ',') return false;
    } else {
      const size_t comma = std::min(line.find(',', i), line.size());
      fields_.push_back(line.substr(i, comma - i));
      i = comma;
    }
    if (i >= line.size()) return true;
    ++i;  // the comma
  }
}

}  // namespace rfinject::cli
