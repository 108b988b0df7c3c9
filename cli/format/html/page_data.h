// File: page_data.h
//
// Makes the data that the page's script works on. A table of the page is an element that holds its rows as JSON,
// column by column; the script (assets/js) fills it. A table of a report's rows also has the places of the marks in
// the pictures.
#ifndef RFINJECT_CLI_FORMAT_HTML_PAGE_DATA_H_
#define RFINJECT_CLI_FORMAT_HTML_PAGE_DATA_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/picture/picture.h"
#include "cli/text/markup.h"
#include "cli/text/row_set.h"
#include "cli/view/document.h"

namespace rfinject::cli {

// What a table shows. It refers to its parts.
struct PageTable {
  std::string_view id;       // one word; no other table of the page has it
  std::string_view heading;  // read out by screen readers
  // From the left. The first stays in view and names the row. A column without a value in any row is left out, unless
  // it is the first.
  std::span<const ColumnInfo> columns;
  std::span<const RowSet> runs;    // the rows of each run, one run behind the other
  std::span<const RowSet> totals;  // for each run one row, which stands below all; or nothing
};

// {"id":…,"columns":[…]}, and `more`: further members, each with a comma before it.
ScriptJson TableData(const PageTable& table, const ScriptJson& more = {});

// The element that shows `data` as a table. Long data are compressed (zlib, RFC 1950) and written in base 64.
Markup TableElement(const ScriptJson& data);

// The id of a picture's element, of the report of that index.
std::string PictureId(const Picture& picture, size_t report);

// The table of every row of every run. `pictures` are those of each run, in the order of the page, and
// `opening_share` is where the slider stands at first, in percent of the time.
ScriptJson LayersData(const LinkedTable& table, std::span<const std::vector<Picture>> pictures, double opening_share);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_FORMAT_HTML_PAGE_DATA_H_
