// File: page_columns.h
//
// How the HTML page shows the columns of reports (column.h): in which order, and in which units.
#ifndef RFINJECT_CLI_EMIT_HTML_PAGE_COLUMNS_H_
#define RFINJECT_CLI_EMIT_HTML_PAGE_COLUMNS_H_

#include <string_view>
#include <vector>

#include "cli/report/row_set.h"

namespace rfinject::cli {

// The page's table, from the left. With several models the model stands beside the layer, whose name is not unique
// then.
std::vector<ColumnInfo> PageColumns(bool several_models);

// The unit that the page writes a column's values in, and what to multiply them with.
struct PageUnit {
  std::string_view unit;
  double scale = 1;
};
PageUnit PageUnitOf(const ColumnInfo& column);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_HTML_PAGE_COLUMNS_H_
