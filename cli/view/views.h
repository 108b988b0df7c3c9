// File: views.h
//
// The one table of views: what `report --by` takes, and from which its help, completions, the Python package's rows()
// and docs/reference/COLUMNS.md follow. A new view is a file that makes a Document, and a line of views.cc.
#ifndef RFINJECT_CLI_VIEW_VIEWS_H_
#define RFINJECT_CLI_VIEW_VIEWS_H_

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "cli/profile/profile.h"
#include "cli/report/fold.h"
#include "cli/view/document.h"
#include "cli/view/report_view.h"

namespace rfinject::cli {

struct ViewInput {
  std::vector<const Profile*> profiles;  // one for each run that was named
  std::function<Machine(const Run&)> machine_for;
  FoldOptions fold = {};  // but for `by`, which is the view's
  ReportLook look = {};
  bool whole_run = false;  // the format has room for the other views of the runs as well
  bool screen = false;     // for a person at a terminal who asked for nothing else (screen_view.h)
};

struct View {
  std::string_view name;  // as --by has it
  std::string_view help;  // "a row each run"
  Document (*make)(const ViewInput& input);
  bool folds_layers = false;  // --depth folds the rows' layers
  bool sorts = false;         // --sort orders its rows
  bool every_run = false;     // a folder stands for all of its runs, not for the newest
  bool adds_up = false;       // files that are named are ranks of one run where they can be
};

// In the order in which help lists them.
std::span<const View> AllViews();

// The view of this name; nullptr when there is none.
const View* FindView(std::string_view name);

// The columns that CSV and JSON of some verb have, with what each says: `rfinject explain columns`.
struct ColumnTable {
  std::string_view title;  // "Comparisons"
  std::string_view of;     // the command: "rfinject diff"
  std::string_view text;   // what its numbers are of, and what stands before the columns in CSV
  std::vector<ColumnInfo> columns;
};

// Reports come first.
std::vector<ColumnTable> AllColumnTables();

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_VIEW_VIEWS_H_
