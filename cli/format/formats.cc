#include <algorithm>
#include <vector>

#include "cli/format/format.h"

namespace rfinject::cli {

// The build makes the list of the files in this folder.
#define RFINJECT_FORMAT(name) Format name();
namespace formats {
#include "cli/format/formats.inc"
}  // namespace formats
#undef RFINJECT_FORMAT

std::span<const Format> AllFormats() {
#define RFINJECT_FORMAT(name) formats::name(),
  static const auto* const kFormats = new std::vector<Format>{
#include "cli/format/formats.inc"
  };
#undef RFINJECT_FORMAT
  return *kFormats;
}

const Format* FindFormat(std::string_view name) {
  const std::span<const Format> all = AllFormats();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Format& format) {
    return format.name == name || (!name.empty() && format.also == name);
  });
  return found == all.end() ? nullptr : &*found;
}

std::string_view FormatOfName(std::string_view output) {
  const size_t dot = output.rfind('.');
  const Format* const named = dot == std::string_view::npos ? nullptr : FindFormat(output.substr(dot + 1));
  return named != nullptr ? named->name : kDefaultFormat;
}

std::vector<std::string_view> FormatNames(bool pictures) {
  std::vector<std::string_view> names;
  for (const Format& format : AllFormats()) {
    if (pictures || !format.pictures_only) names.push_back(format.name);
  }
  return names;
}

}  // namespace rfinject::cli
