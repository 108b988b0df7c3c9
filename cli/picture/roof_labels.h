// File: roof_labels.h
//
// The labels of the roofs: peaks, memory roofs and ridges.
#ifndef RFINJECT_CLI_PICTURE_ROOF_LABELS_H_
#define RFINJECT_CLI_PICTURE_ROOF_LABELS_H_

#include <span>
#include <string>
#include <vector>

#include "cli/picture/labels.h"
#include "cli/picture/picture.h"
#include "cli/report/rows/roofs.h"

namespace rfinject::cli {

struct Report;

// A label of one roof, or of several that are drawn on top of each other: "FP16, BF16 tensor, 312 TFLOP/s".
struct RoofLabel {
  std::string text;
  const RoofLine* roof = nullptr;  // the one that the label stands at
  bool used = false;               // by the run
};
std::vector<RoofLabel> RoofLabels(std::span<const RoofLine> roofs);

// Along the memory roof from `from` to `to`: above the line near its left end if possible, else further on, else
// below it.
void LabelSlope(const std::string& text, Point from, Point to, Labels* labels, Picture* out);

// The peaks of the roofs that the run uses, or of the others, along their lines, at the right end if possible.
void LabelPeaks(const Report& report, const LogLog& axes, bool used, Labels* labels, Picture* out);

// The ridge points, with their values, of the roofs that the run uses, or of the others.
void LabelRidges(const std::vector<const RoofLine*>& roofs, const LogLog& axes, bool used, Labels* labels,
                 Picture* out);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PICTURE_ROOF_LABELS_H_
