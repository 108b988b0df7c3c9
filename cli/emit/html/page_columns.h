// File: page_columns.h
//
// How the HTML page shows the columns of the CSV and JSON: in which order, under which titles and in which units.
#ifndef RFINJECT_CLI_EMIT_HTML_PAGE_COLUMNS_H_
#define RFINJECT_CLI_EMIT_HTML_PAGE_COLUMNS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "cli/emit/columns.h"
#include "cli/report/report.h"

namespace rfinject::cli {

// What a column's values are, which decides how the page writes them.
enum class ValueKind : uint8_t { kText, kCount, kUnit, kShare, kPlain };

struct Look {
  std::string_view name;  // Column::name
  std::string_view title;
  ValueKind kind = ValueKind::kPlain;
  std::string_view unit = {};
  double scale = 1;       // of the value to the unit
  bool additive = false;  // the sum over rows means something
};

struct PageColumn {
  Look look;
  Cell (*cell)(const Report& report, const Row& row);
};

// The page's table, from the left. With several models the model stands beside the layer, whose name is not unique
// then.
std::vector<PageColumn> PageColumns(bool several_models);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_HTML_PAGE_COLUMNS_H_
