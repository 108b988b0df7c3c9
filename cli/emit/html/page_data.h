// File: page_data.h
//
// Makes the data that the page's script works on: every row of every report, column by column, and the places of the
// marks.
#ifndef RFINJECT_CLI_EMIT_HTML_PAGE_DATA_H_
#define RFINJECT_CLI_EMIT_HTML_PAGE_DATA_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "cli/emit/markup.h"
#include "cli/emit/picture/picture.h"
#include "cli/report/report.h"

namespace rfinject::cli {

// The id of a picture's element, of the report of that index.
std::string PictureId(const Picture& picture, size_t report);

// One object, schema rfinject.html/1. `pictures` are those of each report, in the order of the page.
ScriptJson PageData(std::span<const Report> reports, std::span<const std::vector<Picture>> pictures);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_HTML_PAGE_DATA_H_
