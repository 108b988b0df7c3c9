#include "cli/cmd/own_output.h"

#include <algorithm>
#include <iterator>

#include "cli/format/format.h"

namespace rfinject::cli {
namespace {

constexpr OwnMark kOthers[] = {
    {"# Made by rfinject calibrate"},
    // Exports.
    {"SQLite format 3", "rfij"},
    {"\x1f\x8b\x08", "rfinject export --to pprof"},
    {"\n", "(rfinject export)"},
    {"# TYPE rfinject_"},
};

}  // namespace

bool IsOwnOutput(std::string_view beginning) {
  const auto fits = [beginning](const OwnMark& mark) {
    return beginning.starts_with(mark.begins) && beginning.find(mark.holds) != std::string_view::npos;
  };
  const std::span<const Format> formats = AllFormats();
  return std::any_of(std::begin(kOthers), std::end(kOthers), fits) ||
         std::any_of(formats.begin(), formats.end(), [&](const Format& format) {
           return std::any_of(format.marks.begin(), format.marks.end(), fits);
         });
}

}  // namespace rfinject::cli
