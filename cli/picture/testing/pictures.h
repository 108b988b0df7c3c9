// File: pictures.h
//
// Pictures for the tests, and how to look things up in them.
#ifndef RFINJECT_CLI_PICTURE_TESTING_PICTURES_H_
#define RFINJECT_CLI_PICTURE_TESTING_PICTURES_H_

#include <algorithm>
#include <string>
#include <vector>

#include "cli/picture/frames.h"
#include "cli/picture/picture.h"
#include "cli/picture/roofline.h"
#include "cli/picture/time_view.h"
#include "cli/report/rows/picture_data.h"

namespace rfinject::cli::testing {

inline constexpr Size kSize = {820, 640};

inline Picture Roofline(const Report& report) { return LayOutRoofline(report, FramesFor({&report, 1}), kSize); }
inline Picture TimeView(const Report& report) { return LayOutTimeView(report, FramesFor({&report, 1}), kSize); }

inline const Mark* FindMark(const Report& report, const Picture& picture, const std::string& layer,
                            std::optional<Phase> phase = std::nullopt) {
  const std::span<const Row> rows = PictureRows(report);
  for (const Mark& mark : picture.marks) {
    const Row& row = rows[mark.row];
    if (row.layer == layer && (!phase || row.phase == phase)) return &mark;
  }
  return nullptr;
}

inline std::vector<const Line*> LinesOf(const Picture& picture, const std::string& css) {
  std::vector<const Line*> found;
  for (const Line& line : picture.lines) {
    if ((" " + line.css + " ").find(" " + css + " ") != std::string::npos) found.push_back(&line);
  }
  return found;
}

inline bool HasText(const Picture& picture, const std::string& part) {
  return std::any_of(picture.texts.begin(), picture.texts.end(),
                     [&](const Text& text) { return text.text.find(part) != std::string::npos; });
}

}  // namespace rfinject::cli::testing

#endif  // RFINJECT_CLI_PICTURE_TESTING_PICTURES_H_
