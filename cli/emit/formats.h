// File: formats.h
//
// The one registry of output formats: `report`, `diff` and `report --by run` take them from here. A new format is a
// file with its functions and an entry of formats.cc.
#ifndef RFINJECT_CLI_EMIT_FORMATS_H_
#define RFINJECT_CLI_EMIT_FORMATS_H_

#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "cli/emit/emit.h"
#include "cli/emit/memory.h"
#include "cli/emit/stacks.h"
#include "cli/emit/waits.h"
#include "cli/report/diff.h"
#include "cli/report/sweep.h"

namespace rfinject::cli {

struct Format {
  std::string_view name;  // as --format has it, and the ending of a file's name
  // Null where only a diff can be written so.
  void (*reports)(std::span<const Report> reports, const TableOptions& options, std::ostream& out);
  // `reports` are what the sweep was made of.
  void (*sweep)(const Sweep& sweep, std::span<const Report> reports, const TableOptions& options, std::ostream& out);
  void (*diff)(const Diff& diff, const TableOptions& options, std::ostream& out);
  // Null: stacks are not drawn.
  void (*stacks)(std::span<const StackTable> tables, const TableOptions& options, std::ostream& out);
  // Null: memory is not drawn.
  void (*memory)(std::span<const MemoryTable> tables, const TableOptions& options, std::ostream& out);
  // Null: waits are not drawn.
  void (*waits)(std::span<const WaitTable> tables, WaitRows rows, const TableOptions& options, std::ostream& out);
};

// The first is what is written when nothing asks for another.
std::span<const Format> AllFormats();

// The format of this name; nullptr when there is none.
const Format* FindFormat(std::string_view name);

// The name of the format that a file's name asks for: "svg" for "picture.svg", the first format's if it asks for
// none.
std::string_view FormatOfName(std::string_view output);

// Returns "table, json, csv, html or svg", with `last` before the last name; with `of_diff` it includes the formats
// that only a diff has.
std::string FormatNames(std::string_view last, bool of_diff = false);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_FORMATS_H_
