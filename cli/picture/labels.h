// File: labels.h
//
// Decides where the labels of a picture go. They are placed one after the other, the most important first, and what
// was placed before is never covered. The caller says in which places a label may be, the best first.
//
//   Labels labels(plot);
//   labels.Block(legend_box);                                 // no label ever stands here
//   labels.BlockIfPossible(mark_box);                         // or here, unless there is no other place
//   std::optional<Text> placed = labels.Place(Around("la", "conv1 fwd", mark, radius, kText), &mark);
#ifndef RFINJECT_CLI_PICTURE_LABELS_H_
#define RFINJECT_CLI_PICTURE_LABELS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/picture/geometry.h"
#include "cli/picture/text.h"

namespace rfinject::cli {

class Labels {
 public:
  // What a place must be free of. Texts and what was blocked are never covered.
  enum class Avoid : uint8_t { kTexts, kTextsAndMarks, kAll };

  // No label goes beyond `bounds`.
  explicit Labels(Box bounds) : bounds_(bounds) {}

  void Block(const Box& box) { blocked_.push_back(box); }
  // For marks: a label covers them when it has no other place.
  void BlockIfPossible(const Box& box) { marks_.push_back(box); }
  // For lines: small boxes along it, kept free as long as there is another place, or always.
  enum class May : uint8_t { kCover, kNotCover };
  void BlockLine(Point from, Point to, double thickness, May may = May::kCover);
  // For the line from a label to what it names: no later label covers it, and no other such line crosses it.
  void BlockLeader(Point from, Point to) { leaders_.push_back({from, to}); }

  bool Free(const Box& box, Avoid avoid) const;

  // Takes and returns the first free candidate: best one that covers nothing, else one that covers lines, and, unless
  // `spare_marks`, else one that covers marks. With `target` its leader, the line from there to the text, must not
  // cross another text. Returns nothing where no candidate is free.
  std::optional<Text> Place(std::span<const Text> candidates, const Point* target = nullptr,
                            bool spare_marks = false);

 private:
  bool LeaderIsFree(const Box& label, Point target) const;

  Box bounds_;
  std::vector<Box> blocked_, texts_, marks_, lines_;
  std::vector<std::pair<Point, Point>> leaders_;
};

// Places for a label around a mark, near ones first, each ring to the right, left, below, above and askew.
std::vector<Text> Around(const std::string& css, const std::string& text, Point at, double radius, double size);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PICTURE_LABELS_H_
