#include "cli/emit/html/page_data.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "cli/emit/html/page_columns.h"
#include "cli/emit/picture/mark_shape.h"
#include "cli/emit/picture/names.h"
#include "cli/emit/picture/svg.h"
#include "cli/report/column.h"
#include "cli/report/picture_data.h"
#include "cli/report/row_set.h"

namespace rfinject::cli {
namespace {

constexpr double kIconRadius = 5;
// Above this many rows lists of numbers are written as 32-bit floats and small integers in base 64, which a browser
// reads when it first shows them: all digits of 50,000 rows are 20 MB of text, all of which it would read before it
// showed anything. The other formats round nothing.
constexpr size_t kExactUpTo = 10'000;
// Of a packed column the script needs to know how wide its texts are before it reads it.
constexpr size_t kSampled = 100;
// For a mark's place that there is not.
constexpr uint64_t kNoPlace = 0xffff;
constexpr size_t kMarksOfPhone = 2000;  // the largest, where there are more rows than that; more are one blot
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
  out->Add({"\"icon_radius\":", JsonNumber(kIconRadius),
            ",\"icons\":{\"\":", JsonString(MarkPath(-1, {0, 0}, kIconRadius))});
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

// Numbers have one digit more than the page shows.
ScriptJson RoundedText(const Cell& cell, Kind kind) {
  const auto* number = std::get_if<double>(&cell);
  return number != nullptr ? ScriptJson{RoundedJsonNumber(*number, 5)} : ValueText(cell, kind);
}

// {"u2":"base 64"}: the values, each in the lowest bytes of an integer of `bytes` bytes, little-endian.
ScriptJson Packed(Literal type, size_t bytes, std::span<const uint64_t> values) {
  std::string raw;
  raw.reserve(values.size() * bytes);
  for (const uint64_t value : values) {
    for (size_t i = 0; i < bytes; ++i) raw += static_cast<char>(value >> (8 * i));
  }
  return {"{\"", type, "\":", JsonString(absl::Base64Escape(absl::string_view(raw.data(), raw.size()))), "}"};
}

// In as few bytes as the largest needs.
ScriptJson PackedCounts(std::span<const uint64_t> values) {
  const uint64_t most = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  if (most <= 0xff) return Packed("u1", 1, values);
  if (most <= 0xffff) return Packed("u2", 2, values);
  return Packed("u4", 4, values);
}

// Of numbers; what is none of them is not a number there either.
ScriptJson PackedNumbers(std::span<const Cell> cells) {
  std::vector<uint64_t> values;
  values.reserve(cells.size());
  for (const Cell& cell : cells) {
    const bool none = std::holds_alternative<std::monostate>(cell);
    const float value = none ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(NumberIn(cell));
    values.push_back(std::bit_cast<uint32_t>(value));
  }
  return Packed("f4", 4, values);
}

// Writes the columns of the page. `rows` and `totals` are row sets of the reports, one each.
class ColumnWriter {
 public:
  ColumnWriter(std::span<const RowSet> rows, std::span<const RowSet> totals) : rows_(rows), totals_(totals) {
    for (const RowSet& set : rows) count_ += set.size;
  }

  // The column, or nothing where no row has a value.
  ScriptJson Write(const ColumnInfo& column) {
    const bool is_text = column.kind == Kind::kText;
    std::map<std::string, size_t> index;
    std::vector<ScriptJson> words, values, sums;
    std::vector<uint64_t> places;  // of texts, in words
    std::vector<Cell> cells;       // of a packed column
    const bool packed = count_ > kExactUpTo;
    bool any = false;
    for (const RowSet& set : rows_) {
      const Column& of = *set.Find(column.name);
      for (size_t i = 0; i < set.size; ++i) {
        Cell cell = of.value(i);
        any |= IsSomething(cell);
        if (is_text) {
          ScriptJson text = ValueText(cell, column.kind);
          const auto [at, fresh] = index.try_emplace(text.text(), index.size());
          if (fresh) words.push_back(std::move(text));
          places.push_back(at->second);
        } else if (packed) {
          cells.push_back(std::move(cell));
        } else {
          values.push_back(ValueText(cell, column.kind));
        }
      }
    }
    if (!any) return {};
    if (!packed) {
      for (const uint64_t place : places) values.push_back({Digits(place)});
    }
    for (const RowSet& set : totals_) sums.push_back(ValueText(set.Find(column.name)->value(0), column.kind));
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
    if (packed && is_text) {
      AddValues(column.name, words.size() == 1, {"0"}, PackedCounts(places), &out);
    } else if (packed) {
      AddSample(cells, column.kind, &out);
      const bool same =
          std::all_of(cells.begin(), cells.end(), [&](const Cell& one) { return one == cells.front(); });
      AddValues(column.name, same, ValueText(cells.front(), column.kind), NumbersText(cells, column.kind), &out);
    } else {
      const auto is_first = [&](const ScriptJson& one) { return one.text() == values.front().text(); };
      ScriptJson list;
      AddList(values, &list);
      AddValues(column.name, std::all_of(values.begin(), values.end(), is_first), values.front(), std::move(list),
                &out);
    }
    out.Add({",\"totals\":"});
    AddList(sums, &out);
    return out.Add({"}"});
  }

 private:
  // The largest amount, and texts from everywhere.
  static void AddSample(std::span<const Cell> cells, Kind kind, ScriptJson* out) {
    double most = 0;
    std::vector<ScriptJson> sample;
    for (size_t i = 0; i < cells.size(); ++i) {
      most = std::max(most, std::fabs(NumberIn(cells[i])));
      if (i % (cells.size() / kSampled) == 0) sample.push_back(RoundedText(cells[i], kind));
    }
    out->Add({",\"most\":", JsonNumber(most), ",\"sample\":"});
    AddList(sample, out);
  }

  // Packed, or as the text of a list where that is shorter, because most are 0, or where counts would lose digits.
  static ScriptJson NumbersText(std::span<const Cell> cells, Kind kind) {
    std::vector<ScriptJson> values;
    values.reserve(cells.size());
    for (const Cell& cell : cells) values.push_back(RoundedText(cell, kind));
    ScriptJson list;
    AddList(values, &list);
    ScriptJson packed = kind == Kind::kCount ? ScriptJson{} : PackedNumbers(cells);
    if (!packed.empty() && packed.text().size() < list.text().size()) return packed;
    return {"{\"json\":", JsonString(list.text()), "}"};
  }

  // What is the same in every row is written once, a column that equals one before it names that one, and a step's
  // amount names the column that it is a part of.
  void AddValues(std::string_view name, bool same, const ScriptJson& first, ScriptJson list, ScriptJson* out) {
    if (same) {
      out->Add({",\"every\":", first});
      return;
    }
    constexpr std::string_view kPerStep = "_per_step";
    if (const size_t at = name.find(kPerStep); at != std::string_view::npos) {
      const std::string all_steps = std::string(name.substr(0, at)) + std::string(name.substr(at + kPerStep.size()));
      if (!rows_.empty() && rows_.front().Find(all_steps) != nullptr) {
        out->Add({",\"per_step_of\":", JsonString(all_steps)});
        return;
      }
    }
    const auto [at, fresh] = written_.try_emplace(list.text(), name);
    if (fresh) {
      out->Add({",\"values\":", list});
    } else {
      out->Add({",\"like\":", JsonString(at->second)});
    }
  }

  std::span<const RowSet> rows_, totals_;
  size_t count_ = 0;
  absl::flat_hash_map<std::string, std::string> written_;  // the values of a column, to its name
};

// The marks, largest first, for finding the one nearest to the pointer and for drawing those that the SVG leaves out:
// a list a property, in tenths of a pixel, because thousands of objects would be most of the page. A mark without a
// target has kNoPlace there.
// A list that an earlier picture has as well is the id of that picture.
using WrittenLists = absl::flat_hash_map<std::string, std::string>;
ScriptJson MarksData(const Picture& picture, const std::string& id, size_t first_row, size_t most, bool packed,
                     WrittenLists* written) {
  std::vector<uint64_t> rows, x, y, radius, target_x, target_y, css;
  std::map<std::string, size_t> index;
  const auto tenths = [](double pixels) {
    return static_cast<uint64_t>(std::clamp(std::llround(10 * pixels), 0LL, static_cast<long long>(kNoPlace) - 1));
  };
  bool any_target = false, any_aside = false;
  for (size_t i = 0; i < std::min(picture.marks.size(), most); ++i) {
    const Mark& mark = picture.marks[i];
    rows.push_back(first_row + mark.row);
    x.push_back(tenths(mark.at.x));
    y.push_back(tenths(mark.at.y));
    radius.push_back(tenths(mark.radius));
    target_x.push_back(mark.has_target ? tenths(mark.target.x) : kNoPlace);
    target_y.push_back(mark.has_target ? tenths(mark.target.y) : kNoPlace);
    css.push_back(index.try_emplace(MarkCss(mark), index.size()).first->second);
    any_target |= mark.has_target;
    any_aside |= mark.has_target && mark.target.x != mark.at.x;
  }
  // The smallest are many and as large as one another: the last radius goes for all that follow.
  while (radius.size() > 1 && radius.back() == radius[radius.size() - 2]) radius.pop_back();
  std::vector<ScriptJson> names(index.size());
  for (const auto& [name, at] : index) names[at] = JsonString(name);
  ScriptJson out = {"{"};
  const auto add_text = [&](Literal name, ScriptJson text) {
    const auto [at, fresh] = written->try_emplace(std::string(name.text()) + text.text(), id);
    out.Add({out.text() == "{" ? Literal("\"") : Literal(",\""), name, "\":", fresh ? text : JsonString(at->second)});
  };
  const auto add = [&](Literal name, const std::vector<uint64_t>& list) {
    if (packed) return add_text(name, PackedCounts(list));
    std::vector<ScriptJson> texts;
    for (const uint64_t value : list) texts.push_back({Digits(value)});
    ScriptJson text;
    AddList(texts, &text);
    add_text(name, std::move(text));
  };
  add("rows", rows);
  add("x", x);
  add("y", y);
  add("r", radius);
  if (any_aside) add("tx", target_x);  // else right above the mark
  if (any_target) add("ty", target_y);
  add("css", css);
  ScriptJson name_list;
  AddList(names, &name_list);
  add_text("names", std::move(name_list));
  return out.Add({"}"});
}

}  // namespace

std::string PictureId(const Picture& picture, size_t report) {
  return picture.kind + std::to_string(report) + (IsNarrow(picture.size) ? "-narrow" : "");
}

ScriptJson PageData(std::span<const Report> reports, std::span<const std::vector<Picture>> pictures) {
  std::vector<RowSet> rows, totals;
  std::vector<uint64_t> owners;
  std::vector<ScriptJson> members;
  bool any_member = false;
  std::vector<std::vector<Row>> total_rows;  // a row set is a view
  bool several_models = false;
  for (const Report& report : reports) {
    total_rows.push_back({TotalRow(report)});
    several_models |= report.run.models.size() > 1;
  }
  for (size_t r = 0; r < reports.size(); ++r) {
    rows.push_back(RowsOf(reports[r], PictureRows(reports[r])));
    totals.push_back(RowsOf(reports[r], total_rows[r]));
    const int64_t first = static_cast<int64_t>(owners.size());
    for (const Row& row : PictureRows(reports[r])) {
      any_member |= row.member_of >= 0;
      members.push_back({Digits(row.member_of >= 0 ? first + row.member_of : -1)});
    }
    owners.insert(owners.end(), rows.back().size, r);
  }

  ScriptJson out = {"{\"schema\":\"rfinject.html/1\","};
  AddReports(reports, &out);
  out.Add({","});
  AddIcons(&out);
  out.Add({",\"report_of\":"});
  if (owners.size() > kExactUpTo) {
    out.Add({PackedCounts(owners)});
  } else {
    std::vector<ScriptJson> list;
    for (const uint64_t owner : owners) list.push_back({Digits(owner)});
    AddList(list, &out);
  }
  if (any_member) {
    out.Add({",\n\"member_of\":"});
    AddList(members, &out);
  }
  out.Add({",\n\"columns\":["});
  bool first = true;
  ColumnWriter writer(rows, totals);
  for (const ColumnInfo& column : PageColumns(several_models)) {
    const ScriptJson data = writer.Write(column);
    if (data.empty()) continue;
    if (!first) out.Add({","});
    out.Add({"\n", data});
    first = false;
  }
  out.Add({"],\n\"pictures\":["});
  WrittenLists written;
  first = true;
  size_t first_row = 0;
  for (size_t r = 0; r < pictures.size(); ++r) {
    for (const Picture& picture : pictures[r]) {
      if (!first) out.Add({","});
      const bool packed = owners.size() > kExactUpTo;
      const size_t most = IsNarrow(picture.size) && packed ? kMarksOfPhone : SIZE_MAX;
      out.Add({"\n{\"id\":", JsonString(PictureId(picture, r)), ",\"kind\":", JsonString(picture.kind),
               ",\"narrow\":", IsNarrow(picture.size) ? kTrue : kFalse,
               ",\"marks\":", MarksData(picture, PictureId(picture, r), first_row, most, packed, &written), "}"});
      first = false;
    }
    first_row += PictureRows(reports[r]).size();
  }
  return out.Add({"]}"});
}

}  // namespace rfinject::cli
