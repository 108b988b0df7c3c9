// File: phases.h
//
// What pictures with an axis of time share: blocks in the colours of phases, what these are, and the title.
#ifndef RFINJECT_CLI_PICTURE_PHASES_H_
#define RFINJECT_CLI_PICTURE_PHASES_H_

#include <span>
#include <string>

#include "cli/picture/picture.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

// Where the panels of a picture of that width begin, to the right of what they are called.
double WideLeft(double width);

// The picture's title and description, at its top.
void AddWideTitle(Picture* out);

// A block in the phase's colour. `title` is what a pointer over it is told; empty: nothing. Every other block may be
// paler, so that neighbours can be told apart.
void AddPhaseBlock(const Box& box, Phase phase, std::string title, Picture* out, bool paler = false);

// What the colours of these phases are, in a line from `at`.
void AddPhaseLegend(std::span<const Phase> phases, Point at, Picture* out);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PICTURE_PHASES_H_
