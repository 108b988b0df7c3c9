#include "cli/import/ncu/names.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace rfinject::cli {
namespace {

// The names of the ranges, outermost first. After a range's name come six attribute fields.
std::vector<std::string_view> RangeNames(std::string_view text) {
  constexpr ptrdiff_t kAttributes = 6;
  constexpr size_t kMostRanges = 64;
  std::vector<std::string_view> names;
  for (size_t open = text.find('"'); open != std::string_view::npos; open = text.find('"', open)) {
    const size_t close = text.find('"', open + 1);
    if (close == std::string_view::npos) break;
    std::string_view range = text.substr(open + 1, close - open - 1);
    open = close + 1;
    const size_t domain = range.find(':');
    if (domain == std::string_view::npos) continue;
    range.remove_prefix(domain + 1);
    if (std::count(range.begin(), range.end(), ':') >= kAttributes) {
      for (ptrdiff_t i = 0; i < kAttributes; ++i) range = range.substr(0, range.rfind(':'));
    }
    if (!range.empty()) names.push_back(range);
    if (names.size() == kMostRanges) break;
  }
  return names;
}

}  // namespace

std::array<uint32_t, 3> ParseTriple(std::string_view text) {
  std::array<uint32_t, 3> triple{};
  size_t at = 0;
  bool in_number = false;
  uint64_t number = 0;
  const auto close = [&] {
    if (in_number && at < 3) triple[at++] = static_cast<uint32_t>(std::min<uint64_t>(number, UINT32_MAX));
    in_number = false;
    number = 0;
  };
  for (char c : text) {
    if (c >= '0' && c <= '9') {
      in_number = true;
      number = std::min<uint64_t>(number * 10 + static_cast<uint64_t>(c - '0'), UINT32_MAX);
    } else {
      close();
    }
  }
  close();
  return triple;
}

NvtxSite ReadNvtx(std::string_view text) {
  NvtxSite site;
  for (const std::string_view name : RangeNames(text)) {
    if (name.starts_with("aten::") || name.starts_with("autograd::") ||
        name.find("Backward0") != std::string_view::npos) {
      site.op = name.substr(0, name.find(','));
    } else {
      if (!site.layer.empty()) site.layer += '/';
      site.layer += name;
    }
  }
  return site;
}

}  // namespace rfinject::cli
