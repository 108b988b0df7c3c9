// File: schemas.h
//
// Which facts an output has, in its order, and what it calls them. The names of an output are an interface that only
// grows: an older name stays as the alias of its schema. What no schema lists is at the end of all of them.
#ifndef RFINJECT_CLI_REPORT_FACTS_SCHEMAS_H_
#define RFINJECT_CLI_REPORT_FACTS_SCHEMAS_H_

#include <functional>
#include <span>
#include <string_view>

#include "cli/report/facts/fact.h"
#include "cli/text/row_set.h"

namespace rfinject::cli {

enum class Schema : uint8_t {
  kSummary,      // of rfinject.report/1
  kSideBySide,   // report --by run
  kRuns,         // rfinject runs
  kSql,          // the table `runs` of databases and parquet
  kOpenMetrics,  // beside the gauges of phases
  kPage,         // "The run" of a page
};

// What an output writes where a fact is not known.
enum class Unknown : uint8_t { kNothing, kLeftOut, kZero };

struct ListedFact {
  std::string_view name;          // in the schema
  const RunFact* fact = nullptr;  // null: the output has it by itself, at this place
  Unknown unknown = Unknown::kNothing;

  Cell ValueIn(const Report& report) const;
  // The column that it is in tables of this schema.
  ColumnInfo info() const;
};

std::span<const ListedFact> FactsIn(Schema schema);

// Rows with the columns of a schema, a row a run: those that are no facts are `own`'s. `report_of(row)` must live as
// long as the rows do.
RowSet FactRows(Schema schema, const RowSet& own, const std::function<const Report&(size_t row)>& report_of);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FACTS_SCHEMAS_H_
