// File: page_columns.h
//
// In which order the HTML page shows the columns of reports (column.h).
#ifndef RFINJECT_CLI_FORMAT_HTML_PAGE_COLUMNS_H_
#define RFINJECT_CLI_FORMAT_HTML_PAGE_COLUMNS_H_

#include <span>
#include <vector>

#include "cli/text/row_set.h"

namespace rfinject::cli {

// The columns of the table of `runs`, from the left. First comes what names a row. With several models the model
// stands beside the layer, whose name is not unique then; with one it is the same in every row. With several runs the
// GPU stands there, too.
std::vector<ColumnInfo> PageColumns(std::span<const RowSet> runs, bool several_models);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_FORMAT_HTML_PAGE_COLUMNS_H_
