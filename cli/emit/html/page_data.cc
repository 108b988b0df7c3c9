#include "cli/emit/html/page_data.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "cli/emit/html/page_columns.h"
#include "cli/emit/picture/mark_shape.h"
#include "cli/emit/picture/names.h"
#include "cli/report/column.h"
#include "cli/report/picture_data.h"
#include "cli/report/row_set.h"

namespace rfinject::cli {
namespace {

constexpr double kIconRadius = 5;
constexpr Literal kTrue = "true", kFalse = "false";

ScriptJson KindName(Kind kind) {
  switch (kind) {
    case Kind::kText:
      return {"\"text\""};
    case Kind::kCount:
      return {"\"count\""};
    case Kind::kUnit:
      return {"\"unit\""};
    case Kind::kShare:
      return {"\"share\""};
    case Kind::kPlain:
      break;
  }
  return {"\"plain\""};
}

void AddList(const std::vector<ScriptJson>& items, ScriptJson* out) {
  out->Add({"["});
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out->Add({","});
    out->Add({items[i]});
  }
  out->Add({"]"});
}

void AddReports(std::span<const Report> reports, ScriptJson* out) {
  std::vector<ScriptJson> list;
  std::set<std::string> models;
  for (const Report& report : reports) {
    models.insert(report.run.models.begin(), report.run.models.end());
    list.push_back({"{\"title\":", JsonString(ReportTitle(report)),
                    ",\"gpu\":", JsonString(report.device_name.empty() ? report.run.gpu : report.device_name),
                    ",\"source\":", JsonString(SourceTitle(report)), ",\"steps\":", Digits(report.steps), "}"});
  }
  out->Add({"\"reports\":"});
  AddList(list, out);
  list.clear();
  for (const std::string& model : models) list.push_back(JsonString(model));
  out->Add({",\"models\":"});
  AddList(list, out);
}

void AddIcons(ScriptJson* out) {
  out->Add({"\"icons\":{\"\":", JsonString(MarkPath(-1, {0, 0}, kIconRadius))});
  for (size_t phase = 0; phase < kPhaseNames.size(); ++phase) {
    out->Add({",", JsonString(kPhaseNames[phase]), ":",
              JsonString(MarkPath(static_cast<int>(phase), {0, 0}, kIconRadius))});
  }
  out->Add({"}"});
}

bool IsSomething(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return !text->empty();
  if (const auto* count = std::get_if<uint64_t>(&cell)) return *count != 0;
  const auto* number = std::get_if<double>(&cell);
  return number != nullptr && *number != 0;
}

ScriptJson ValueText(const Cell& cell, Kind kind) {
  if (const auto* text = std::get_if<std::string>(&cell)) return JsonString(*text);
  if (const auto* count = std::get_if<uint64_t>(&cell)) return {Digits(*count)};
  if (const auto* number = std::get_if<double>(&cell)) return {JsonNumber(*number)};
  return kind == Kind::kText ? ScriptJson{"\"\""} : ScriptJson{"null"};
}

// A column, or nothing where no row has a value; `rows` and `totals` are row sets of the reports, one each. Texts
// repeat often, so they are indices into a list of the different ones.
ScriptJson ColumnData(const ColumnInfo& column, std::span<const RowSet> rows, std::span<const RowSet> totals) {
  const bool is_text = column.kind == Kind::kText;
  std::map<std::string, size_t> index;
  std::vector<ScriptJson> words, values, sums;
  bool any = false;
  for (const RowSet& set : rows) {
    const Column& cells = *set.Find(column.name);
    for (size_t i = 0; i < set.size; ++i) {
      const Cell cell = cells.value(i);
      any |= IsSomething(cell);
      ScriptJson text = ValueText(cell, column.kind);
      if (is_text) {
        const auto [at, fresh] = index.try_emplace(text.text(), index.size());
        if (fresh) words.push_back(std::move(text));
        text = {Digits(at->second)};
      }
      values.push_back(std::move(text));
    }
  }
  if (!any) return {};
  for (const RowSet& set : totals) sums.push_back(ValueText(set.Find(column.name)->value(0), column.kind));
  const PageUnit unit = PageUnitOf(column);
  ScriptJson out = {"{\"key\":",      JsonString(column.name),
                    ",\"title\":",    JsonString(column.title.empty() ? column.name : column.title),
                    ",\"kind\":",     KindName(column.kind),
                    ",\"unit\":",     JsonString(unit.unit),
                    ",\"scale\":",    JsonNumber(unit.scale),
                    ",\"additive\":", column.additive ? kTrue : kFalse};
  if (is_text) {
    out.Add({",\"words\":"});
    AddList(words, &out);
  }
  out.Add({",\"values\":"});
  AddList(values, &out);
  out.Add({",\"totals\":"});
  AddList(sums, &out);
  return out.Add({"}"});
}

// For finding the mark nearest to the pointer: [row, x, y, radius] and, where it has a target, its place.
ScriptJson MarksData(const Picture& picture, size_t first_row) {
  std::vector<ScriptJson> marks;
  for (const Mark& mark : picture.marks) {
    ScriptJson one = {"[", Digits(first_row + mark.row), ",", Coordinate(mark.at.x),
                      ",", Coordinate(mark.at.y),        ",", Coordinate(mark.radius)};
    if (mark.has_target) one.Add({",", Coordinate(mark.target.x), ",", Coordinate(mark.target.y)});
    marks.push_back(one.Add({"]"}));
  }
  ScriptJson out;
  AddList(marks, &out);
  return out;
}

}  // namespace

ScriptJson PageData(std::span<const Report> reports, std::span<const std::vector<Picture>> pictures) {
  std::vector<RowSet> rows, totals;
  std::vector<ScriptJson> owners;
  std::vector<std::vector<Row>> total_rows;  // a row set is a view
  bool several_models = false;
  for (const Report& report : reports) {
    total_rows.push_back({TotalRow(report)});
    several_models |= report.run.models.size() > 1;
  }
  for (size_t r = 0; r < reports.size(); ++r) {
    rows.push_back(RowsOf(reports[r], PictureRows(reports[r])));
    totals.push_back(RowsOf(reports[r], total_rows[r]));
    owners.insert(owners.end(), rows.back().size, ScriptJson{Digits(r)});
  }

  ScriptJson out = {"{\"schema\":\"rfinject.html/1\","};
  AddReports(reports, &out);
  out.Add({","});
  AddIcons(&out);
  out.Add({",\"report_of\":"});
  AddList(owners, &out);
  out.Add({",\n\"columns\":["});
  bool first = true;
  for (const ColumnInfo& column : PageColumns(several_models)) {
    const ScriptJson data = ColumnData(column, rows, totals);
    if (data.empty()) continue;
    if (!first) out.Add({","});
    out.Add({"\n", data});
    first = false;
  }
  out.Add({"],\n\"pictures\":["});
  first = true;
  size_t first_row = 0;
  for (size_t r = 0; r < pictures.size(); ++r) {
    for (const Picture& picture : pictures[r]) {
      if (!first) out.Add({","});
      out.Add({"\n{\"id\":", JsonString(picture.kind + std::to_string(r)), ",\"kind\":", JsonString(picture.kind),
               ",\"marks\":", MarksData(picture, first_row), "}"});
      first = false;
    }
    first_row += PictureRows(reports[r]).size();
  }
  return out.Add({"]}"});
}

}  // namespace rfinject::cli
