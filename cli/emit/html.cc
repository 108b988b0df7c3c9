#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/emit/assets/assets.h"
#include "cli/emit/columns.h"
#include "cli/emit/emit.h"
#include "cli/emit/markup.h"
#include "cli/emit/plot.h"
#include "cli/report/units.h"

namespace rfinject::cli {
namespace {

constexpr Size kAlone = {780, 700};
constexpr Size kOneOfMany = {660, 580};
// Above this many rows the page opens with the longest of them; the slider brings the rest.
constexpr size_t kShowAllUpTo = 600;

// What a column's values are, which decides how the page writes them.
enum class Kind : uint8_t { kText, kCount, kUnit, kShare, kPlain };

// How the page shows a column of the CSV and JSON (columns.h).
struct Look {
  std::string_view name;  // Column::name
  std::string_view title;
  Kind kind = Kind::kPlain;
  std::string_view unit = {};
  double scale = 1;       // of the value to the unit
  bool additive = false;  // the sum over rows means something
};

// In the order of the page's table; columns that are not here come last, under their own names. Those with "per_step"
// in their names are the page's own, because people think in steps.
constexpr auto kLooks = std::to_array<Look>({
    {"layer", "Layer", Kind::kText},
    {"phase", "Phase", Kind::kText},
    {"op", "Operator", Kind::kText},
    {"time_share", "Time share", Kind::kShare, "%", 100, true},
    {"time_per_step_ns", "GPU time a step", Kind::kUnit, "s", 1e-9, true},
    {"attainable_share", "Of attainable", Kind::kShare, "%", 100},
    {"slack_per_step_ns", "Slack a step", Kind::kUnit, "s", 1e-9, true},
    {"bound", "Bound by", Kind::kText},
    {"oi_flop_per_byte", "OI", Kind::kPlain, "FLOP/B"},
    {"performance_flop_per_s", "Performance", Kind::kUnit, "FLOP/s"},
    {"attainable_flop_per_s", "Attainable", Kind::kUnit, "FLOP/s"},
    {"bandwidth_bytes_per_s", "DRAM bandwidth", Kind::kUnit, "B/s"},
    {"kernel", "Kernel", Kind::kText},
    {"launches", "Launches", Kind::kCount, "", 1, true},
    {"time_ns", "GPU time, all steps", Kind::kUnit, "s", 1e-9, true},
    {"flop", "FLOP", Kind::kUnit, "FLOP", 1, true},
    {"model_flop", "Model FLOP", Kind::kUnit, "FLOP", 1, true},
    {"executed_flop_per_model_flop", "FLOP / model FLOP", Kind::kPlain},
    {"flop_reason", "FLOP explained by", Kind::kText},
    {"counters_of", "FLOP and bytes of", Kind::kText},
    {"dram_bytes", "DRAM bytes", Kind::kUnit, "B", 1, true},
    {"compulsory_bytes", "Compulsory bytes", Kind::kUnit, "B", 1, true},
    {"dram_bytes_per_compulsory_byte", "DRAM / compulsory bytes", Kind::kPlain},
    {"l2_bytes", "L2 bytes", Kind::kUnit, "B", 1, true},
    {"l1_bytes", "L1 bytes", Kind::kUnit, "B", 1, true},
    {"oi_l2_flop_per_byte", "OI of L2", Kind::kPlain, "FLOP/B"},
    {"oi_l1_flop_per_byte", "OI of L1", Kind::kPlain, "FLOP/B"},
    {"flop_fp64", "FLOP in FP64", Kind::kUnit, "FLOP", 1, true},
    {"flop_fp32", "FLOP in FP32", Kind::kUnit, "FLOP", 1, true},
    {"flop_fp16", "FLOP in FP16", Kind::kUnit, "FLOP", 1, true},
    {"flop_tf32_tc", "FLOP in TF32 tensor", Kind::kUnit, "FLOP", 1, true},
    {"flop_fp16_tc", "FLOP in FP16 tensor", Kind::kUnit, "FLOP", 1, true},
    {"flop_bf16_tc", "FLOP in BF16 tensor", Kind::kUnit, "FLOP", 1, true},
    {"flop_fp8_tc", "FLOP in FP8 tensor", Kind::kUnit, "FLOP", 1, true},
    {"flop_fp64_tc", "FLOP in FP64 tensor", Kind::kUnit, "FLOP", 1, true},
    {"flop_mma_tc", "FLOP over the mma path", Kind::kUnit, "FLOP", 1, true},
    {"least_compute_time_ns", "Least compute time", Kind::kUnit, "s", 1e-9, true},
    {"least_memory_time_ns", "Least memory time", Kind::kUnit, "s", 1e-9, true},
    {"least_time_ns", "Least time", Kind::kUnit, "s", 1e-9, true},
    {"slack_ns", "Slack, all steps", Kind::kUnit, "s", 1e-9, true},
    {"time_with_counters_ns", "GPU time with counters", Kind::kUnit, "s", 1e-9, true},
    {"time_ci95_relative", "Time ±, 95 %", Kind::kShare, "%", 100},
    {"dram_bytes_ci95_relative", "Bytes ±, 95 %", Kind::kShare, "%", 100},
    {"model", "Model", Kind::kText},
    {"class", "Class", Kind::kText},
    {"parameters", "Parameters", Kind::kCount},
    {"parameter_bytes", "Parameters, bytes", Kind::kUnit, "B"},
    {"input_shape", "Input", Kind::kText},
    {"input_bytes", "Input, bytes", Kind::kUnit, "B"},
    {"output_shape", "Output", Kind::kText},
    {"output_bytes", "Output, bytes", Kind::kUnit, "B"},
    {"signature", "Signature", Kind::kText},
});

// As in the pictures.
std::string Time(double ns) {
  std::string text = Duration(ns);
  if (text.ends_with(" us")) text.replace(text.size() - 2, 1, "µ");
  return text;
}

double PerStep(double value, const Report& report) {
  return report.steps > 0 ? value / static_cast<double>(report.steps) : value;
}

struct PageColumn {
  Look look;
  Cell (*cell)(const Report& report, const Row& row);
};

std::vector<PageColumn> PageColumns(bool several_models) {
  std::vector<Column> columns(IdentityColumns().begin(), IdentityColumns().end());
  columns.insert(columns.end(), NumberColumns().begin(), NumberColumns().end());
  columns.push_back({"time_per_step_ns",
                     [](const Report& report, const Row& row) { return Cell{PerStep(row.sums.time_ns, report)}; }});
  columns.push_back({"slack_per_step_ns", [](const Report& report, const Row& row) {
                       return report.machine.name.empty() ? Cell{} : Cell{PerStep(row.derived.slack_ns, report)};
                     }});
  std::vector<PageColumn> page;
  for (const Look& look : kLooks) {
    const auto column =
        std::find_if(columns.begin(), columns.end(), [&](const Column& c) { return c.name == look.name; });
    if (column == columns.end()) continue;
    page.push_back({look, column->cell});
    columns.erase(column);
  }
  for (const Column& column : columns) page.push_back({{column.name, column.name}, column.cell});
  if (several_models) {  // without it the layers' names are not unique
    const auto model =
        std::find_if(page.begin(), page.end(), [](const PageColumn& column) { return column.look.name == "model"; });
    std::rotate(page.begin() + 1, model, model + 1);
  }
  return page;
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

Row TotalRow(const Report& report) {
  Row row;
  row.sums = report.total;
  row.derived = report.total_derived;
  row.time_share = report.total.time_ns > 0 ? 1 : 0;
  return row;
}

void AppendList(const std::vector<std::string>& items, std::string* out) {
  *out += "[";
  for (size_t i = 0; i < items.size(); ++i) *out += (i > 0 ? "," : "") + items[i];
  *out += "]";
}

// The rows of all reports, column by column (short, and quick to sort). Texts repeat often, so they are indices into
// a list of the different ones.
std::string DataJson(std::span<const Report> reports, const std::vector<std::vector<Picture>>& pictures) {
  std::vector<const Row*> rows;
  std::vector<const Report*> owners;
  std::vector<std::string> owner_index;
  for (size_t r = 0; r < reports.size(); ++r) {
    for (const Row& row : PictureRows(reports[r])) {
      rows.push_back(&row);
      owners.push_back(&reports[r]);
      owner_index.push_back(std::to_string(r));
    }
  }
  std::string out = "{\"schema\":\"rfinject.html/1\",\"reports\":[";
  std::vector<Row> totals;
  for (const Report& report : reports) totals.push_back(TotalRow(report));
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
  for (const PageColumn& column : PageColumns(several_models)) {
    const bool is_text = column.look.kind == Kind::kText;
    std::map<std::string, size_t> index;
    std::vector<std::string> words, list, total_list;
    bool any = false;
    const auto value_text = [&](const Cell& cell) -> std::string {
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
    for (size_t i = 0; i < rows.size(); ++i) {
      std::string text = value_text(column.cell(*owners[i], *rows[i]));
      if (is_text) {
        const auto [at, fresh] = index.try_emplace(std::move(text), index.size());
        if (fresh) words.push_back(at->first);
        text = std::to_string(at->second);
      }
      list.push_back(std::move(text));
    }
    if (!any) continue;  // a column of nothing
    for (size_t r = 0; r < totals.size(); ++r) total_list.push_back(value_text(column.cell(reports[r], totals[r])));
    out += std::string(first ? "\n" : ",\n") + "{\"key\":" + JsonText(column.look.name) +
           ",\"title\":" + JsonText(column.look.title) + ",\"kind\":\"" + KindName(column.look.kind) +
           "\",\"unit\":" + JsonText(column.look.unit) + ",\"scale\":" + JsonNumber(column.look.scale) +
           ",\"additive\":" + (column.look.additive ? "true" : "false");
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
  // By::kPhase rows are per model; a picture of the step adds the models up.
  std::vector<Row> phases;
  for (const Row& row : report.phases) {
    const auto same = std::find_if(phases.begin(), phases.end(), [&](const Row& p) { return p.phase == row.phase; });
    if (same == phases.end()) {
      phases.push_back(row);
    } else {
      same->sums.Add(row.sums);
      same->time_share += row.time_share;
    }
  }
  for (Row& row : phases) row.derived = Derive(row.sums);
  struct Measure {
    const char* title;
    std::function<double(const Row&)> of;
  };
  const Measure measures[] = {{"GPU time", [](const Row& r) { return r.sums.time_ns; }},
                              {"FLOP", [](const Row& r) { return r.sums.total_flop(); }},
                              {"DRAM bytes", [](const Row& r) { return r.sums.dram_bytes; }}};
  std::string out = "<section class=card><h2>Where a step goes</h2><div class=bars>";
  for (const Measure& measure : measures) {
    double total = 0;
    for (const Row& row : phases) total += measure.of(row);
    if (!(total > 0)) continue;
    out += "<div class=barname>" + std::string(measure.title) + "</div><div class=bar>";
    for (const Row& row : phases) {
      const double share = measure.of(row) / total;
      if (!(share > 0)) continue;
      const std::string text = row.phase + " " + Percent(share);
      out += "<div class=\"ph ph-" + MarkupText(row.phase) + "\" style=\"flex-grow:" + JsonNumber(share) +
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
  Row total = TotalRow(report);
  total.phase = "all";
  phases.push_back(total);
  for (const Row& row : phases) {
    out += "<tr>" + Cell(row.phase) + Cell(Time(PerStep(row.sums.time_ns, report)), true) +
           Cell(Percent(row.time_share), true) +
           Cell(WithPrefix(PerStep(row.sums.total_flop(), report), "FLOP"), true) +
           Cell(WithPrefix(PerStep(row.sums.dram_bytes, report), "B"), true) +
           Cell(Plain(row.derived.oi_flop_per_byte), true) +
           Cell(WithPrefix(row.derived.performance_flop_per_s, "FLOP/s"), true) +
           Cell(row.sums.least_ns > 0 ? Percent(row.derived.attainable_share) : "", true) +
           Cell(row.sums.least_ns > 0 ? Time(PerStep(row.derived.slack_ns, report)) : "", true) + "</tr>";
  }
  return out + "</tbody></table></div></section>";
}

std::string AlarmSection(const Report& report) {
  if (report.alarms.empty()) return "";
  std::string out = "<section class=\"card alarms\"><h2>Alarms</h2><ul>";
  for (const Alarm& alarm : report.alarms) {
    out += "<li><b>" + MarkupText(alarm.id) + "</b> " + MarkupText(alarm.text);
    if (!alarm.where.empty()) out += " <code>" + MarkupText(alarm.where) + "</code>";
    if (!alarm.causes.empty()) out += "<div class=muted>Likely: " + MarkupText(alarm.causes) + "</div>";
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
  fact("Attribution", report.tier_text);
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
  if (report.diagnostics.empty()) return "";
  constexpr const char* kSeverity[] = {"info", "warning", "error"};
  std::string out = "<details class=card" + std::string(report.diagnostics.empty() ? "" : " open") +
                    "><summary>Diagnostics</summary><ul>";
  for (const DiagnosticInfo& diagnostic : report.diagnostics) {
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

std::string Headline(const Report& report, bool with_title) {
  std::string out = "<div class=head>";
  if (with_title) out += "<h2>" + MarkupText(ReportTitle(report)) + " " + Badge(report) + "</h2>";
  out += "<ul class=headline>";
  for (const std::string& line : report.headline) out += "<li>" + MarkupText(line) + "</li>";
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
  for (const Report& report : reports) page += Headline(report, many);
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
