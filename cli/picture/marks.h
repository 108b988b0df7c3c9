// File: marks.h
//
// The marks of both pictures: their order, their size, and which of them are named.
#ifndef RFINJECT_CLI_PICTURE_MARKS_H_
#define RFINJECT_CLI_PICTURE_MARKS_H_

#include <cstddef>
#include <vector>

#include "cli/picture/labels.h"
#include "cli/picture/picture.h"
#include "cli/report/rows/row.h"

namespace rfinject::cli {

struct Report;

// The Phase of a row, -1 where it is of no single one.
int PhaseOf(const Row& row);

// Returns the radius of a mark whose area is `share` of GPU time.
double RadiusOf(double share);

// What the radii of a picture of this size are multiplied by.
inline double MarkScale(Size size) { return IsNarrow(size) ? 0.7 : 1; }

// A mark for row `index` of PictureRows(report), without its place.
Mark MakeMark(const Report& report, size_t index);

// Puts the mark where the row is. Where that is outside `frame`, it is drawn at the frame's edge, whole inside it, so
// that it covers neither axis nor legend. A mark inside is not moved, because its place has a meaning.
void PlaceMark(const Box& frame, Point at, Mark* mark);

// The indices of PictureRows(report) that took time, the longest first.
std::vector<size_t> RowsByTime(const Report& report);

// Sorts the marks, the largest first, so that small ones lie on top, and keeps the places of the most important ones
// free of labels.
void SortAndBlock(Labels* labels, Picture* out);

// Keeps labels off the lines that LabelMarks will draw from the marks to their targets.
void BlockDropLines(const Report& report, const Picture& picture, Labels::May may, Labels* labels);

// What a label says behind the name.
enum class MarkNote : uint8_t { kShareOfAttainable, kTime };

// Names the largest marks, and draws the lines from them to their targets. Marks that lie on one another share a
// label, which says how many more there are.
void LabelMarks(const Report& report, MarkNote note, Labels* labels, Picture* out);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PICTURE_MARKS_H_
