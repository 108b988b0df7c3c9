// File: svg.h
//
// Pictures as SVG: one as an <svg> element, and several as a document of their own.
#ifndef RFINJECT_CLI_PICTURE_SVG_H_
#define RFINJECT_CLI_PICTURE_SVG_H_

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>

#include "cli/picture/picture.h"
#include "cli/text/markup.h"

namespace rfinject::cli {

struct Report;

struct SvgOptions {
  bool titles = true;    // each mark carries its numbers as an SVG <title>
  size_t first_row = 0;  // added to Mark::row in data-i
  Point offset;
  std::string id = "rf";         // prefix of ids, unique in the document
  size_t most_marks = SIZE_MAX;  // the largest; who leaves marks out draws them later (the page's script)
};

// `picture`, which shows `report`, as an <svg> element; null: it has no marks.
Markup PictureSvg(const Picture& picture, const Report* report, const SvgOptions& options);

// The classes of a mark's path: its precision, and what is special about it.
std::string MarkCss(const Mark& mark);

// Writes an SVG document of `size` around the elements of `pictures`.
void WriteSvgDocument(const std::string& title, Size size, const Markup& pictures, std::ostream& out);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PICTURE_SVG_H_
