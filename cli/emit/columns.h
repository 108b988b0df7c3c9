// File: columns.h
//
// The columns of JSON and CSV: one list, so that both carry the same numbers under the same names. Names hold the
// unit and are an interface: they are added, never changed.
#ifndef RFINJECT_CLI_EMIT_COLUMNS_H_
#define RFINJECT_CLI_EMIT_COLUMNS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "cli/report/report.h"

namespace rfinject::cli {

// Nothing, a text, a count, or a number that may be fractional. A number that is not finite is nothing.
using Cell = std::variant<std::monostate, std::string, uint64_t, double>;

struct Column {
  std::string_view name;
  Cell (*cell)(const Report& report, const Row& row);
};

// What says which row it is: model, phase, layer, op, kernel, signature, and what is known of the layer. A row that
// is in no layer has neither model nor layer there.
std::span<const Column> IdentityColumns();
// What its numbers are: sums over all measured steps first, then what follows from them.
std::span<const Column> NumberColumns();

// `value` in decimals that read back as the same number, integers without an exponent; empty when it is not finite.
std::string NumberText(double value);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_COLUMNS_H_
