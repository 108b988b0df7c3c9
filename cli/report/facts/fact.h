// File: fact.h
//
// A fact is a number or a word of a whole run: "step_wall_ns". It stands once, in the file of the part of the report
// that it is of: its name with its unit, what it is, its title, how the part says it, and what is lacking where it is
// not known. schemas.h says which outputs have it. A fact that no output lists is in all of them.
//
//   constexpr auto kFacts = std::to_array<FactOf<Memory>>({
//       {UnitColumn("memory_peak_bytes", "B", "The most device memory that was in use.", "Memory, peak"),
//        [](const Memory& memory) { return KnownCount(memory.peak_bytes); }}});
#ifndef RFINJECT_CLI_REPORT_FACTS_FACT_H_
#define RFINJECT_CLI_REPORT_FACTS_FACT_H_

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "cli/text/row_set.h"

namespace rfinject::cli {

struct Report;

template <typename Part>
struct FactOf {
  ColumnInfo info;
  Cell (*value)(const Part& part);
  std::string_view lacking = {};
};

// A fact of whatever part.
struct RunFact {
  ColumnInfo info;
  std::string_view lacking;  // why it is not known, or what would tell; may be empty
  std::function<Cell(const Report& report)> value;
};

// All facts, part by part.
std::span<const RunFact> AllRunFacts();
// nullptr where there is none of this name.
const RunFact* FindRunFact(std::string_view name);
// What the fact of this name, which there is, says of a run: its number, 0 where it has none; its text.
double NumberOf(const Report& report, std::string_view name);
std::string TextOf(const Report& report, std::string_view name);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FACTS_FACT_H_
