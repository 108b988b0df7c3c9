// File: document.h
//
// A Document is what a view makes of profiles, before any format. It holds what people read (sections), what machines
// read (data and lines), and what a program can fail by (checks). A format (cli/format) writes any Document and
// computes nothing, so a number is the same wherever it appears.
#ifndef RFINJECT_CLI_VIEW_DOCUMENT_H_
#define RFINJECT_CLI_VIEW_DOCUMENT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/picture/picture.h"
#include "cli/text/grid.h"
#include "cli/text/row_set.h"
#include "cli/view/data.h"

namespace rfinject::cli {

struct Report;

// What a sentence is, which decides how it stands out.
enum class Tone : uint8_t { kPlain, kStrong, kAlarm };

struct Sentence {
  std::string text;
  std::string label = {};  // in front of it, with the space behind: "R003 ", "note: "
  Tone tone = Tone::kPlain;
  // Below it, one indented further: label and text.
  std::vector<std::pair<std::string, std::string>> details = {};
};

// A table: rows, which of their columns people see, and what stands for the rows that a table has no room for.
struct Table {
  RowSet rows;
  // What people see, from left to right. A column that `rows` does not have is not shown.
  std::vector<TableLook> looks;
  // The first so many of `looks` say which row it is; the label of a line that sums up rows spans them.
  size_t names = 1;
  // A last line, of size 1, with the columns of `rows`; empty: none. `total_label` stands for its names.
  RowSet total = {};
  std::string total_label = "total";
  // Which rows stay where there is no room for all: those with the largest value. Null: the first.
  std::function<double(size_t row)> weight = {};
  // The rows that were left out as one row, with the columns of `rows`; null: the sums of those that are additive.
  std::function<RowSet(std::span<const size_t> left_out)> rest = {};
  // Whether a cell is an equal share of what was counted for several rows together: it gets a "~" in front.
  std::function<bool(const ColumnInfo& column, size_t row)> shared = {};
  // Lines below a row; null: none.
  std::function<std::vector<std::string>(size_t row)> below = {};
  bool estimated = false;  // each line begins with "~ "
  size_t most_rows = 0;    // that a text format shows; 0: as its options say
};

// Where a picture is shown, which decides how large it is.
enum class Medium : uint8_t { kFile, kPage, kPhone };

struct Drawn {
  Picture picture;
  const Report* report = nullptr;  // that it shows; null: a picture of no rows
};

inline constexpr Size kPhoneSize = {420, 560};

// How wide a picture is that takes the whole width: one with an axis of time.
constexpr double WideFigure(Medium medium) {
  return medium == Medium::kFile ? 1320 : medium == Medium::kPage ? 1240 : kPhoneSize.width;
}

struct Figure {
  std::string id;  // unique in the document
  std::function<Drawn(Medium medium)> lay_out;
};

// The rows that pictures show, run by run, as a table of all of them that a reader sorts and filters.
struct LinkedTable {
  std::vector<ColumnInfo> columns;  // from the left; the first says which row it is
  std::vector<RowSet> runs;         // the rows of each run, in the order of its marks
  std::vector<RowSet> totals;       // one row a run
  std::vector<std::string> names;   // of the runs' GPUs
  std::vector<int64_t> group_of;  // for each row of all runs that of its group, -1: none; empty: there are no groups
  bool several_models = false;
  std::string source;  // of one run: "MEASURED by hardware counters"; empty: of several
  bool measured = false;
};

// Parts of one whole, side by side: the phases' shares of GPU time.
struct Bar {
  std::string title;
  std::vector<std::pair<std::string, double>> parts;  // name, and share of 1
};

struct Section {
  std::string id = {};              // "layers", "memory"; empty: it goes on with the one before
  std::string_view tab = {};        // what the navigation of a page calls it; empty: not in it
  std::string heading = {};         // empty: none
  std::vector<Sentence> lead = {};  // before the table
  std::optional<Table> table = {};
  std::vector<Sentence> notes = {};  // behind it
  std::vector<Bar> bars = {};        // for pages
  // Rows of pictures side by side. Text formats do not show them.
  std::vector<std::vector<Figure>> figures = {};
  // The rows that the figures show, which a page lists; none: `table` is all there is.
  std::optional<LinkedTable> linked = {};
  bool folded = false;  // a page opens it when it is asked for
  // Of the sections of one report. A terminal shows the end of what is longer than it is, so the text for terminals
  // has the answer behind all others of its report, up to the next one that is the first of one.
  bool first = false, answer = false;

  // Whether formats of text have something to show of it.
  bool HasText() const { return !heading.empty() || !lead.empty() || table.has_value() || !notes.empty(); }
};

// A condition that a program can fail by: an alarm of a report, a gate of a comparison.
struct Check {
  enum class Outcome : uint8_t { kHolds, kFails, kUnknown };
  std::string name;  // "R001", "step_time>+5%"
  Outcome outcome = Outcome::kHolds;
  std::string text = {};
};

struct Document {
  std::string title;                    // of files and pages: "rfinject report: ResNet on A100"
  std::vector<Sentence> headline = {};  // what people read first
  std::vector<Section> sections = {};
  Data data = Data::Object();      // an object; its first member is `schema`
  std::vector<RowSet> lines = {};  // of CSV: the columns are those of all sets together
  std::vector<Check> checks = {};
  std::string log = {};                    // what an XML report of the checks says besides
  std::vector<std::string> warnings = {};  // for standard error
  // Why there is nothing in it, and what to do; empty where something is. A command says it instead of empty tables.
  std::string nothing = {};
  std::shared_ptr<const void> owner = {};  // holds what rows and figures show
};

// Adds `columns` before those of `rows`, each with one value in all rows: "run", "device".
RowSet WithConstants(std::vector<std::pair<std::string_view, Cell>> columns, RowSet rows);

// One row with the sums of `which` rows in the additive columns, and nothing in the others.
RowSet SumOf(const RowSet& rows, std::span<const size_t> which);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_VIEW_DOCUMENT_H_
