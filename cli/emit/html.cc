#include <algorithm>
#include <climits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/emit/assets/assets.h"
#include "cli/emit/emit.h"
#include "cli/emit/markup.h"
#include "cli/emit/plot.h"
#include "cli/emit/words.h"
#include "cli/report/column.h"
#include "cli/report/units.h"

namespace rfinject::cli {
namespace {

constexpr Size kAlone = {780, 700};
constexpr Size kOneOfMany = {660, 580};
// Above this many rows the page opens with the longest of them; the slider brings the rest.
constexpr size_t kShowAllUpTo = 600;

// As in the pictures.
std::string Time(double ns) {
  std::string text = Duration(ns);
  if (text.ends_with(" us")) text.replace(text.size() - 2, 1, "µ");
  return text;
}

// In the order of the page's table.
std::vector<ColumnInfo> PageColumns(bool several_models) {
  std::vector<ColumnInfo> columns;
  for (const ReportColumn& column : ReportColumns()) {
    if (column.info.data || column.info.page > 0) columns.push_back(column.info);
  }
  const auto place = [](const ColumnInfo& column) { return column.page > 0 ? column.page : INT_MAX; };
  std::stable_sort(columns.begin(), columns.end(),
                   [&](const ColumnInfo& a, const ColumnInfo& b) { return place(a) < place(b); });
  if (several_models) {  // without it the layers' names are not unique
    const auto model = std::find_if(columns.begin(), columns.end(), [](const auto& c) { return c.name == "model"; });
    std::rotate(columns.begin() + 1, model, model + 1);
  }
  return columns;
}

// The unit that the page writes a column's values in, and what to multiply them with.
struct PageUnit {
  std::string_view unit;
  double scale;
};
PageUnit UnitOf(const ColumnInfo& column) {
  if (column.kind == Kind::kShare) return {"%", 100};
  if (column.unit == "ns") return {"s", 1e-9};
  return {column.unit, 1};
}

const char* KindName(Kind kind) {
  switch (kind) {
    case Kind::kText:
      return "text";
    case Kind::kCount:
      return "count";
    case Kind::kUnit:
      return "unit";
    case Kind::kShare:
      return "share";
    case Kind::kPlain:
      break;
  }
  return "plain";
}

void AppendList(const std::vector<std::string>& items, std::string* out) {
  *out += "[";
  for (size_t i = 0; i < items.size(); ++i) *out += (i > 0 ? "," : "") + items[i];
  *out += "]";
}

// The rows of all reports, column by column (short, and quick to sort). Texts repeat often, so they are indices into
// a list of the different ones.
std::string DataJson(std::span<const Report> reports, const std::vector<std::vector<Picture>>& pictures) {
  std::vector<RowSet> sets, total_sets;
  std::vector<std::vector<Row>> totals;
  std::vector<std::string> owner_index;
  for (const Report& report : reports) totals.push_back({TotalRow(report)});
  for (size_t r = 0; r < reports.size(); ++r) {
    sets.push_back(RowsOf(reports[r], PictureRows(reports[r])));
    total_sets.push_back(RowsOf(reports[r], totals[r]));
    owner_index.insert(owner_index.end(), sets.back().size, std::to_string(r));
  }
  std::string out = "{\"schema\":\"rfinject.html/1\",\"reports\":[";
  for (size_t r = 0; r < reports.size(); ++r) {
    out += std::string(r > 0 ? "," : "") + "{\"title\":" + JsonText(ReportTitle(reports[r])) +
           ",\"gpu\":" + JsonText(reports[r].device_name.empty() ? reports[r].run.gpu : reports[r].device_name) +
           ",\"source\":" + JsonText(SourceTitle(reports[r])) + ",\"steps\":" + std::to_string(reports[r].steps) +
           "}";
  }
  std::set<std::string> models;
  for (const Report& report : reports) models.insert(report.run.models.begin(), report.run.models.end());
  std::vector<std::string> model_list;
  for (const std::string& model : models) model_list.push_back(JsonText(model));
  out += "],\"models\":";
  AppendList(model_list, &out);
  out += ",\"icons\":{\"\":" + JsonText(MarkPath(-1, {0, 0}, 5));
  for (size_t phase = 0; phase < kPhaseNames.size(); ++phase) {
    out += "," + JsonText(kPhaseNames[phase]) + ":" + JsonText(MarkPath(static_cast<int>(phase), {0, 0}, 5));
  }
  out += "},\"report_of\":";
  AppendList(owner_index, &out);
  out += ",\n\"columns\":[";
  const bool several_models =
      std::any_of(reports.begin(), reports.end(), [](const Report& report) { return report.run.models.size() > 1; });
  bool first = true;
  for (const ColumnInfo& column : PageColumns(several_models)) {
    const bool is_text = column.kind == Kind::kText;
    std::map<std::string, size_t> index;
    std::vector<std::string> words, list, total_list;
    bool any = false;
    const auto value_text = [&](const cli::Cell& cell) -> std::string {
      if (const auto* text = std::get_if<std::string>(&cell)) {
        any |= !text->empty();
        return JsonText(*text);
      }
      const auto* count = std::get_if<uint64_t>(&cell);
      const auto* number = std::get_if<double>(&cell);
      any |= (count != nullptr && *count != 0) || (number != nullptr && *number != 0);
      return count != nullptr    ? std::to_string(*count)
             : number != nullptr ? JsonNumber(*number)
             : is_text           ? "\"\""
                                 : "null";
    };
    for (const RowSet& set : sets) {
      const Column& values = *set.Find(column.name);
      for (size_t i = 0; i < set.size; ++i) {
        std::string text = value_text(values.value(i));
        if (is_text) {
          const auto [at, fresh] = index.try_emplace(std::move(text), index.size());
          if (fresh) words.push_back(at->first);
          text = std::to_string(at->second);
        }
        list.push_back(std::move(text));
      }
    }
    if (!any) continue;  // a column of nothing
    for (const RowSet& set : total_sets) total_list.push_back(value_text(set.Find(column.name)->value(0)));
    const PageUnit unit = UnitOf(column);
    out += std::string(first ? "\n" : ",\n") + "{\"key\":" + JsonText(column.name) +
           ",\"title\":" + JsonText(column.title.empty() ? column.name : column.title) + ",\"kind\":\"" +
           KindName(column.kind) + "\",\"unit\":" + JsonText(unit.unit) + ",\"scale\":" + JsonNumber(unit.scale) +
           ",\"additive\":" + (column.additive ? "true" : "false");
    if (is_text) {
      out += ",\"words\":";
      AppendList(words, &out);
    }
    out += ",\"values\":";
    AppendList(list, &out);
    out += ",\"totals\":";
    AppendList(total_list, &out);
    out += "}";
    first = false;
  }
  // Where the marks are, for finding the one nearest to the pointer: [row, x, y, radius, target x, target y or null].
  out += "],\n\"pictures\":[";
  for (size_t r = 0, first_row = 0; r < pictures.size(); ++r) {
    for (const Picture& picture : pictures[r]) {
      out += std::string(r == 0 && &picture == pictures[r].data() ? "" : ",") + "\n{\"id\":\"" + picture.kind +
             std::to_string(r) + "\",\"kind\":\"" + picture.kind + "\",\"marks\":[";
      for (size_t i = 0; i < picture.marks.size(); ++i) {
        const Mark& mark = picture.marks[i];
        out += std::string(i > 0 ? "," : "") + "[" + std::to_string(first_row + mark.row) + "," +
               Coordinate(mark.at.x) + "," + Coordinate(mark.at.y) + "," + Coordinate(mark.radius);
        if (mark.has_target) out += "," + Coordinate(mark.target.x) + "," + Coordinate(mark.target.y);
        out += "]";
      }
      out += "]}";
    }
    first_row += PictureRows(reports[r]).size();
  }
  return out + "]}";
}

std::string Cell(std::string_view text, bool number = false) {
  return std::string(number ? "<td class=num>" : "<td>") + MarkupText(text) + "</td>";
}

// Stacked bars of time, FLOP and bytes by phase, with the same numbers as a table.
std::string PhaseSection(const Report& report) {
  if (report.phases.empty()) return "";
  struct Measure {
    const char* title;
    double PhasePart::*share;
  };
  constexpr Measure kMeasures[] = {{"GPU time", &PhasePart::time_share},
                                   {"FLOP", &PhasePart::flop_share},
                                   {"DRAM bytes", &PhasePart::bytes_share}};
  std::string out = "<section class=card><h2>Where a step goes</h2><div class=bars>";
  for (const Measure& measure : kMeasures) {
    if (std::none_of(report.step_parts.begin(), report.step_parts.end(),
                     [&](const PhasePart& part) { return part.*measure.share > 0; })) {
      continue;
    }
    out += "<div class=barname>" + std::string(measure.title) + "</div><div class=bar>";
    for (const PhasePart& part : report.step_parts) {
      const double share = part.*measure.share;
      if (!(share > 0)) continue;
      const std::string text = part.row.phase + " " + Percent(share);
      out += "<div class=\"ph ph-" + MarkupText(part.row.phase) + "\" style=\"flex-grow:" + JsonNumber(share) +
             "\" title=\"" + MarkupText(text) + "\">" +
             (share > 0.12 ? "<span>" + MarkupText(text) + "</span>" : "") + "</div>";
    }
    out += "</div>";
  }
  out +=
      "</div><div class=scroll><table class=small><thead><tr><th>Phase<th class=num>GPU time a step<th class=num>of "
      "GPU "
      "time<th class=num>FLOP a step<th class=num>DRAM bytes a step<th class=num>OI, FLOP/B<th "
      "class=num>Performance<th class=num>of attainable<th class=num>Slack a step</tr></thead><tbody>";
  std::vector<Row> rows;
  for (const PhasePart& part : report.step_parts) rows.push_back(part.row);
  rows.push_back(TotalRow(report));
  rows.back().phase = "all";
  const RowSet set = RowsOf(report, rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto number = [&](std::string_view column) { return NumberIn(set.Find(column)->value(i)); };
    const bool roofs = rows[i].sums.least_ns() > 0;
    out += "<tr>" + Cell(rows[i].phase) + Cell(Time(number("time_per_step_ns")), true) +
           Cell(Percent(number("time_share")), true) + Cell(WithPrefix(number("flop_per_step"), "FLOP"), true) +
           Cell(WithPrefix(number("dram_bytes_per_step"), "B"), true) +
           Cell(Plain(number("oi_flop_per_byte")), true) +
           Cell(WithPrefix(number("performance_flop_per_s"), "FLOP/s"), true) +
           Cell(roofs ? Percent(number("attained_share")) : "", true) +
           Cell(roofs ? Time(number("to_win_per_step_ns")) : "", true) + "</tr>";
  }
  return out + "</tbody></table></div></section>";
}

std::string AlarmSection(const Report& report) {
  if (report.alarms.empty()) return "";
  std::string out = "<section class=\"card alarms\"><h2>Alarms</h2><ul>";
  for (const Alarm& alarm : report.alarms) {
    out += "<li><b>" + MarkupText(alarm.id) + "</b> " + MarkupText(AlarmText(alarm));
    const std::string where = AlarmWhere(alarm);
    const std::string_view causes = AlarmCauses(alarm);
    if (!where.empty()) out += " <code>" + MarkupText(where) + "</code>";
    if (!causes.empty()) out += "<div class=muted>Likely: " + MarkupText(causes) + "</div>";
    out += "</li>";
  }
  return out + "</ul></section>";
}

std::string RoofSection(const Report& report) {
  if (report.roofs.empty()) return "";
  std::string out =
      "<details class=card><summary>Roofs</summary><div class=scroll><table class=small><thead><tr><th>Roof<th>Level"
      "<th>Kind<th class=num>Peak<th class=num>Bandwidth<th class=num>Ridge, FLOP/B<th>Used</tr></thead><tbody>";
  for (const RoofLine& roof : report.roofs) {
    out += "<tr>" + Cell(roof.label) + Cell(roof.level) + Cell(roof.kind) +
           Cell(roof.peak_flop_per_s > 0 ? WithPrefix(roof.peak_flop_per_s, "FLOP/s") : "", true) +
           Cell(roof.bytes_per_s > 0 ? WithPrefix(roof.bytes_per_s, "B/s") : "", true) +
           Cell(roof.ridge_flop_per_byte > 0 ? Plain(roof.ridge_flop_per_byte) : "", true) +
           Cell(roof.used ? "yes" : "no") + "</tr>";
  }
  return out + "</tbody></table></div></details>";
}

std::string FactSection(const Report& report) {
  std::string out = "<details class=card><summary>The run</summary><dl>";
  const auto fact = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) out += "<dt>" + MarkupText(name) + "</dt><dd>" + MarkupText(value) + "</dd>";
  };
  fact("Source", SourceTitle(report));
  fact("GPU", report.device_name);
  fact("Roofs of", report.machine.name);
  fact("SM clock, mean while counters ran", report.sm_hz > 0 ? WithPrefix(report.sm_hz, "Hz") : "");
  fact("Collector", report.run.collector);
  fact("Attribution", report.rows_are_runs ? "" : TierText(report.tier));
  fact("Steps", report.steps > 0 ? Grouped(report.steps) : "");
  fact("Samples", report.samples > 0 ? Grouped(report.samples) : "");
  fact("Batch", report.run.batch_size > 0 ? Grouped(report.run.batch_size) : "");
  fact("Wall time a step", report.step_wall_ns > 0 ? Time(report.step_wall_ns) : "");
  fact("GPU time a step", report.step_gpu_ns > 0 ? Time(report.step_gpu_ns) : "");
  fact("GPU memory in use, peak (all processes)",
       report.memory_peak_bytes > 0 ? WithPrefix(static_cast<double>(report.memory_peak_bytes), "B") : "");
  fact("Attributed", Percent(report.attributed_share) + " of forward and backward GPU time, " +
                         Grouped(report.unattributed_launches) + " launches without a layer");
  fact("With counters", Percent(report.counters_share) + " of GPU time");
  const PolicyInfo& policy = report.run.policy;
  constexpr const char* kState[] = {"unknown", "off", "on"};
  const auto state = [&](uint32_t value) { return std::string(kState[std::min<uint32_t>(value, 2)]); };
  fact("Precision policy", "TF32 in matmul " + state(policy.matmul_tf32) + ", in cuDNN " + state(policy.cudnn_tf32) +
                               ", autocast " + (policy.autocast_dtype.empty() ? "off" : policy.autocast_dtype) +
                               ", cudnn.benchmark " + state(policy.cudnn_benchmark) + ", cudnn.deterministic " +
                               state(policy.cudnn_deterministic));
  for (const ModelInfo& model : report.models) {
    fact("Model " + model.class_name,
         Grouped(model.parameters) + " parameters, " + WithPrefix(static_cast<double>(model.parameter_bytes), "B"));
  }
  fact("Processes", Grouped(report.process_count));
  for (const ProcessInfo& process : report.processes) {
    std::string text = "rank " + std::to_string(process.rank) + ", pid " + std::to_string(process.pid);
    const auto part = [&](const char* name, const std::string& value) {
      if (!value.empty()) text += std::string(", ") + name + value;
    };
    part("on ", process.host);
    part("torch ", process.torch_version);
    part("torchvision ", process.torchvision_version);
    part("Python ", process.python_version);
    part("CUDA ", process.cuda_version);
    part("cuDNN ", process.cudnn_version);
    part("driver ", process.driver_version);
    part("rfinject ", process.rfinject_version);
    part("job ", process.job_id);
    std::string command;
    for (const std::string& word : process.argv) command += (command.empty() ? "" : " ") + word;
    part("", command);
    fact("Process", text);
  }
  for (const auto& [what, count] : report.drops) fact("Dropped", what + ": " + Grouped(count));
  return out + "</dl></details>";
}

std::string DiagnosticSection(const Report& report) {
  const std::vector<DiagnosticInfo> diagnostics = DiagnosticsText(report);
  if (diagnostics.empty()) return "";
  constexpr const char* kSeverity[] = {"info", "warning", "error"};
  std::string out = "<details class=card open><summary>Diagnostics</summary><ul>";
  for (const DiagnosticInfo& diagnostic : diagnostics) {
    out += "<li><b>" + std::string(kSeverity[std::clamp(diagnostic.severity, 0, 2)]) + "</b> " +
           MarkupText(diagnostic.text);
    if (!diagnostic.remedy.empty()) out += "<div class=muted>" + MarkupText(diagnostic.remedy) + "</div>";
    out += "</li>";
  }
  return out + "</ul></details>";
}

std::string Badge(const Report& report) {
  return std::string("<span class=\"badge") + (report.run.source == SourceKind::kMeasured ? " measured" : "") +
         "\">" + MarkupText(SourceTitle(report)) + "</span>";
}

std::string HeadSection(const Report& report, bool with_title) {
  std::string out = "<div class=head>";
  if (with_title) out += "<h2>" + MarkupText(ReportTitle(report)) + " " + Badge(report) + "</h2>";
  out += "<ul class=headline>";
  for (const std::string& line : HeadlineText(report)) out += "<li>" + MarkupText(line) + "</li>";
  return out + "</ul></div>";
}

}  // namespace

void EmitHtml(std::span<const Report> reports, std::ostream& out) {
  const Frames frames = FramesFor(reports);
  const bool many = reports.size() > 1;
  const Size size = many ? kOneOfMany : kAlone;
  std::vector<std::vector<Picture>> pictures;
  size_t row_count = 0;
  for (const Report& report : reports) {
    pictures.push_back({LayOutRoofline(report, frames, size), LayOutTimeView(report, frames, size)});
    row_count += PictureRows(report).size();
  }
  std::string title = "rfinject";
  for (const Report& report : reports) title += (&report == reports.data() ? ": " : "; ") + ReportTitle(report);

  std::string page =
      "<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
      "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; script-src "
      "'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n<meta name=color-scheme content=\"light "
      "dark\">\n<title>" +
      MarkupText(title) + "</title>\n<style>\n" + PictureStyle(true) + std::string(kReportCss) +
      "</style>\n</head>\n<body class=\"" + (many ? "many" : "one") + "\">\n<header><h1>" +
      MarkupText(reports.empty() ? "No runs"
                 : many          ? std::to_string(reports.size()) + " runs"
                                 : ReportTitle(reports[0])) +
      "</h1>" + (reports.size() == 1 ? Badge(reports[0]) : "") +
      "<button id=theme type=button aria-label=\"Light or dark\">Dark</button></header>\n";
  page += "<div class=heads>";
  for (const Report& report : reports) page += HeadSection(report, many);
  page += "</div>\n";
  for (const Report& report : reports) page += AlarmSection(report);
  page +=
      "<noscript><p class=card>Without JavaScript the pictures and the summaries are here; the table, the filters "
      "and "
      "the tooltips are not. <code>rfinject report --format csv</code> gives every number.</p></noscript>\n"
      "<div class=controls role=toolbar aria-label=Filters>"
      "<span class=segmented role=group aria-label=Picture><button type=button data-view=roofline aria-pressed=true>"
      "Roofline</button><button type=button data-view=time aria-pressed=false>Time view</button></span>"
      "<label class=slider>Rows that make up the top <input id=share type=range min=50 max=100 step=0.5 value=" +
      std::string(row_count > kShowAllUpTo ? "99" : "100") +
      "> <output id=share-text for=share></output> of time</label>"
      "<span id=phases class=phases role=group aria-label=Phases></span>"
      "<label>Find <input id=search type=search placeholder=\"layer, operator, …\" spellcheck=false></label>"
      "<span id=shown role=status></span></div>\n<main><div class=pictures>\n";
  size_t first_row = 0;
  for (size_t r = 0; r < reports.size(); ++r) {
    page += "<figure>";
    for (const Picture& picture : pictures[r]) {
      WriteOptions options;
      options.titles = false;  // the page has tooltips of its own
      options.first_row = first_row;
      options.id = picture.kind + std::to_string(r);
      WritePicture(picture, reports[r], options, &page);
    }
    page += "</figure>\n";
    first_row += PictureRows(reports[r]).size();
  }
  page +=
      "</div>\n<div class=tablebox><div class=tablehead><span class=muted>Click a head to sort, a row to find its "
      "point."
      "</span><button id=csv type=button>Download CSV</button></div><div id=scroller tabindex=0 role=region "
      "aria-label=\"Table of rows\"><table id=rows><thead></thead><tbody></tbody><tfoot></tfoot></table></div></div>"
      "</main>\n";
  for (const Report& report : reports) {
    page += "<div class=about>" + (many ? "<h2>" + MarkupText(ReportTitle(report)) + "</h2>" : "") +
            PhaseSection(report) + DiagnosticSection(report) + RoofSection(report) + FactSection(report) + "</div>\n";
  }
  page += "<div id=tip role=tooltip hidden></div>\n<div id=live class=hidden aria-live=polite></div>\n";
  page += "<script type=application/json id=data>" + DataJson(reports, pictures) + "</script>\n<script>\n" +
          std::string(kReportJs) + "</script>\n</body>\n</html>\n";
  out << page;
}

}  // namespace rfinject::cli
