// File: diff_picture.h
//
// A comparison as pictures: arrows from where each layer was to where it is, on axes that both sides share.
#ifndef RFINJECT_CLI_PICTURE_DIFF_PICTURE_H_
#define RFINJECT_CLI_PICTURE_DIFF_PICTURE_H_

#include <optional>
#include <vector>

#include "cli/picture/frames.h"
#include "cli/picture/picture.h"
#include "cli/report/compare/diff.h"

namespace rfinject::cli {

// One frame for everything that is compared.
Frames FramesFor(const Diff& diff);

struct DiffPicture {
  Picture picture;
  const Report* report;  // the side of the pair that it shows
};

// The pictures of a pair, left to right: one with arrows, and before it the first side's own where the GPUs differ.
// Where no row can be compared they still show both sides. Without a size they have that of a desktop screen.
std::vector<DiffPicture> LayOutDiff(const RunDiff& pair, const Frames& frames, std::optional<Size> size = {});

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PICTURE_DIFF_PICTURE_H_
