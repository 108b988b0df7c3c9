#include "cli/format/html/page_data.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "cli/picture/mark_shape.h"
#include "cli/picture/svg.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {
namespace {

constexpr double kIconRadius = 5;
// Above this many rows numbers have seven digits instead of all, three more than the page shows: half the size. The
// other formats round nothing.
constexpr size_t kExactUpTo = 10'000;
constexpr int kDigits = 7;
constexpr size_t kMarksOfPhone = 2000;  // the largest, where there are more rows than kExactUpTo; more are one blot
// Longer data are compressed: 50,000 rows are 13.5 MB of JSON, and 6.7 MB compressed and in base 64. This level makes
// them 4 % larger than zlib's own choice does, in a third of the time.
constexpr size_t kPlainUpTo = 1'000'000;
constexpr int kLevel = 4;
constexpr Literal kTrue = "true", kFalse = "false";
// In the order of a step, which is the order of the check boxes.
constexpr Phase kPhases[] = {Phase::kForward,       Phase::kRecompute, Phase::kBackward, Phase::kOptimizer,
                             Phase::kCommunication, Phase::kData,      Phase::kEval,     Phase::kOther};

// By Kind.
constexpr std::string_view kKindNames[] = {"text", "count", "unit", "share", "plain"};

// A list of `to_json(item)`.
template <typename Items, typename ToJson>
ScriptJson ListOf(const Items& items, const ToJson& to_json) {
  ScriptJson out = {"["};
  bool first = true;
  for (const auto& item : items) {
    if (!std::exchange(first, false)) out.Add({","});
    out.Add({to_json(item)});
  }
  return out.Add({"]"});
}
ScriptJson ListOf(const std::vector<ScriptJson>& items) { return ListOf(items, std::identity()); }

bool IsSomething(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return !text->empty();
  if (const auto* yes = std::get_if<bool>(&cell)) return *yes;
  return NumberIn(cell) != 0;
}

ScriptJson ValueText(const Cell& cell, Kind kind, bool rounded = false) {
  if (const auto* text = std::get_if<std::string>(&cell)) return JsonString(*text);
  if (const auto* count = std::get_if<uint64_t>(&cell)) return {Digits(*count)};
  if (const auto* yes = std::get_if<bool>(&cell)) return *yes ? ScriptJson(kTrue) : ScriptJson(kFalse);
  const auto* number = std::get_if<double>(&cell);
  if (number == nullptr) return kind == Kind::kText ? ScriptJson{"\"\""} : ScriptJson{"null"};
  return rounded ? ScriptJson{RoundedJsonNumber(*number, kDigits)} : ScriptJson{JsonNumber(*number)};
}

// Different texts are written once, and in each row their place among them.
void AddValues(const ColumnInfo& column, std::span<const Cell> cells, bool rounded, ScriptJson* out) {
  std::vector<ScriptJson> words, values;
  absl::flat_hash_map<std::string, size_t> index;
  for (const Cell& cell : cells) {
    ScriptJson text = ValueText(cell, column.kind, rounded);
    if (column.kind == Kind::kText) {
      const auto [at, fresh] = index.try_emplace(text.text(), words.size());
      if (fresh) words.push_back(std::move(text));
      text = {Digits(at->second)};
    }
    values.push_back(std::move(text));
  }
  if (column.kind == Kind::kText) out->Add({",\"words\":", ListOf(words)});
  out->Add({",\"values\":", ListOf(values)});
}

// The column, or nothing where it is left out.
ScriptJson ColumnData(const PageTable& table, const ColumnInfo& column, bool first, bool rounded) {
  std::vector<Cell> cells;
  for (const RowSet& run : table.runs) {
    const Column& of = *run.Find(column.name);
    for (size_t i = 0; i < run.size; ++i) cells.push_back(of.value ? of.value(i) : Cell{});
  }
  if (!first && std::none_of(cells.begin(), cells.end(), IsSomething)) return {};
  const bool is_share = column.kind == Kind::kShare, is_time = column.unit == "ns";
  ScriptJson out = {"\n{\"name\":",   JsonString(column.name),
                    ",\"title\":",    JsonString(column.title.empty() ? column.name : column.title),
                    ",\"help\":",     JsonString(column.help),
                    ",\"kind\":",     JsonString(kKindNames[static_cast<size_t>(column.kind)]),
                    ",\"unit\":",     JsonString(is_share ? "%" : is_time ? "s" : column.unit),
                    ",\"scale\":",    JsonNumber(is_share ? 100 : is_time ? 1e-9 : 1),
                    ",\"additive\":", column.additive ? kTrue : kFalse};
  AddValues(column, cells, rounded, &out);
  const auto total = [&](const RowSet& set) { return ValueText(set.Find(column.name)->value(0), column.kind); };
  return out.Add({",\"totals\":", ListOf(table.totals, total), "}"});
}

// The marks, largest first, for finding the one nearest to the pointer and for drawing those that the SVG leaves out:
// a list for each property, in tenths of a pixel, because thousands of objects would be most of the page. What has no
// target is null there.
ScriptJson MarksData(const Picture& picture, size_t first_row, size_t most) {
  std::vector<ScriptJson> rows, x, y, radius, target_x, target_y, css, names;
  std::map<std::string, size_t> index;
  const auto tenths = [](double pixels) { return ScriptJson{Digits(std::max(0LL, std::llround(10 * pixels)))}; };
  bool any_target = false, any_aside = false;
  for (size_t i = 0; i < std::min(picture.marks.size(), most); ++i) {
    const Mark& mark = picture.marks[i];
    rows.push_back({Digits(first_row + mark.row)});
    x.push_back(tenths(mark.at.x));
    y.push_back(tenths(mark.at.y));
    radius.push_back(tenths(mark.radius));
    target_x.push_back(mark.has_target ? tenths(mark.target.x) : ScriptJson{"null"});
    target_y.push_back(mark.has_target ? tenths(mark.target.y) : ScriptJson{"null"});
    const auto [at, fresh] = index.try_emplace(MarkCss(mark), index.size());
    if (fresh) names.push_back(JsonString(at->first));
    css.push_back({Digits(at->second)});
    any_target |= mark.has_target;
    any_aside |= mark.has_target && mark.target.x != mark.at.x;
  }
  // The smallest are many and as large as one another: the last radius goes for all that follow.
  while (radius.size() > 1 && radius.back().text() == radius[radius.size() - 2].text()) radius.pop_back();
  ScriptJson out = {"{\"rows\":", ListOf(rows), ",\"x\":", ListOf(x),
                    ",\"y\":",    ListOf(y),    ",\"r\":", ListOf(radius)};
  if (any_aside) out.Add({",\"tx\":", ListOf(target_x)});  // else right above or below the mark
  if (any_target) out.Add({",\"ty\":", ListOf(target_y)});
  return out.Add({",\"css\":", ListOf(css), ",\"names\":", ListOf(names), "}"});
}

ScriptJson PicturesData(const LinkedTable& table, std::span<const std::vector<Picture>> pictures, size_t row_count) {
  std::vector<ScriptJson> list;
  size_t first_row = 0;
  for (size_t r = 0; r < pictures.size(); ++r) {
    for (const Picture& picture : pictures[r]) {
      const bool narrow = IsNarrow(picture.size);
      const size_t most = narrow && row_count > kExactUpTo ? kMarksOfPhone : SIZE_MAX;
      list.push_back({"\n{\"id\":", JsonString(PictureId(picture, r)), ",\"kind\":", JsonString(picture.kind),
                      ",\"narrow\":", narrow ? kTrue : kFalse, ",\"marks\":", MarksData(picture, first_row, most),
                      "}"});
    }
    first_row += table.runs[r].size;
  }
  return ListOf(list);
}

// The shape of each phase's marks.
ScriptJson FacetData() {
  ScriptJson out = {"{\"column\":\"phase\",\"radius\":", JsonNumber(kIconRadius), ",\"icons\":{"};
  for (const Phase phase : kPhases) {
    out.Add({JsonString(kPhaseNames[static_cast<size_t>(phase)]), ":",
             JsonString(MarkPath(static_cast<int>(phase), {0, 0}, kIconRadius)), ","});
  }
  return out.Add({"\"\":", JsonString(MarkPath(-1, {0, 0}, kIconRadius)), "}}"});
}

// For each row the row of the group that it is in, or -1; nothing where there are no groups.
ScriptJson GroupsData(const LinkedTable& table) {
  if (table.group_of.empty()) return {};
  const auto digits = [](int64_t row) { return ScriptJson{Digits(row)}; };
  return {",\n\"groups\":{\"name\":\"layer\",\"size\":\"layers\",\"title\":\"Repeated blocks as one\",",
          "\"of\":", ListOf(table.group_of, digits), "}"};
}

// {"runs":["A100","V100"],"run_of":[0,0,1]}, without the braces.
ScriptJson RunsData(const LinkedTable& table) {
  std::vector<ScriptJson> owners;
  for (size_t r = 0; r < table.runs.size(); ++r)
    owners.insert(owners.end(), table.runs[r].size, ScriptJson{Digits(r)});
  return {"\"runs\":", ListOf(table.names, JsonString), ",\"run_of\":", ListOf(owners)};
}

}  // namespace

ScriptJson TableData(const PageTable& table, const ScriptJson& more) {
  size_t count = 0;
  for (const RowSet& run : table.runs) count += run.size;
  std::vector<ScriptJson> columns;
  for (const ColumnInfo& column : table.columns) {
    ScriptJson data = ColumnData(table, column, columns.empty(), count > kExactUpTo);
    if (!data.empty()) columns.push_back(std::move(data));
  }
  ScriptJson out = {"{\"schema\":\"rfinject.table/1\",\"id\":", JsonString(table.id)};
  out.Add({",\"heading\":", JsonString(table.heading), ",\"rows\":", Digits(count), more});
  return out.Add({",\n\"columns\":", ListOf(columns), "}"});
}

Markup TableElement(const ScriptJson& data) {
  const std::string& text = data.text();
  if (text.size() <= kPlainUpTo) {
    return {"<div class=table><script type=application/json>", InScript(data), "</script></div>\n"};
  }
  uLongf size = compressBound(text.size());
  std::string packed(size, '\0');
  compress2(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(text.data()), text.size(),
            kLevel);
  packed.resize(size);
  return {"<div class=table><script type=application/json data-encoding=deflate>",
          Escaped(absl::Base64Escape(packed)), "</script></div>\n"};
}

std::string PictureId(const Picture& picture, size_t report) {
  return picture.kind + std::to_string(report) + (IsNarrow(picture.size) ? "-narrow" : "");
}

ScriptJson LayersData(const LinkedTable& table, std::span<const std::vector<Picture>> pictures,
                      double opening_share) {
  size_t row_count = 0;
  for (const RowSet& run : table.runs) row_count += run.size;
  // The root of a model has an empty path; what is in no layer has no model either.
  const bool layers = table.columns.front().name == "layer";
  ScriptJson more = {layers ? Literal(",\"names\":[\"layer\",\"model\"],\"nameless\":\"(no layer)\"") : Literal(""),
                     ",\"find\":\"layer, operator, \\u2026\",\"in_view\":\"bound\",\"spare\":\"oi_flop_per_byte\",",
                     "\"path\":\"layer\",",
                     table.several_models ? Literal("\"prefix\":\"model\",") : Literal("\"hidden\":\"model\","),
                     "\"share\":{\"column\":\"time_share\",\"of\":\"GPU time\",\"opening\":",
                     JsonNumber(opening_share),
                     "},\n\"facet\":",
                     FacetData(),
                     ",\n",
                     RunsData(table),
                     GroupsData(table),
                     ",\n\"pictures\":",
                     PicturesData(table, pictures, row_count)};
  return TableData(
      {.id = "layers", .heading = "Layers", .columns = table.columns, .runs = table.runs, .totals = table.totals},
      more);
}

}  // namespace rfinject::cli
