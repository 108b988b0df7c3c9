#include "cli/emit/html/sections.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cli/emit/glossary.h"
#include "cli/emit/html/assets/assets.h"
#include "cli/emit/opening.h"
#include "cli/emit/picture/names.h"
#include "cli/emit/picture/palette.h"
#include "cli/emit/words.h"
#include "cli/report/column.h"
#include "cli/report/picture_data.h"
#include "cli/report/roofs.h"
#include "cli/report/units.h"

namespace rfinject::cli {
namespace {

constexpr double kLeastShareWithText = 0.12;  // of a bar; a shorter piece has no room for its name

Markup Number(std::string_view text) { return TableCell(text, CellKind::kNumber); }

// One bar: the phases' shares in one quantity.
Markup PhaseBar(Literal title, std::span<const Row> phases, std::span<const double> shares) {
  Markup out = {"<div class=barname>", title, "</div><div class=bar>"};
  for (size_t i = 0; i < phases.size(); ++i) {
    if (!(shares[i] > 0)) continue;
    const std::string_view name = PhaseName(phases[i].phase);
    const Markup phase = Escaped(name), text = Escaped(absl::StrFormat("%s %s", name, Percent(shares[i])));
    out.Add(
        {"<div class=\"ph ph-", phase, "\" style=\"flex-grow:", JsonNumber(shares[i]), "\" title=\"", text, "\">"});
    if (shares[i] > kLeastShareWithText) out.Add({"<span>", text, "</span>"});
    out.Add({"</div>"});
  }
  return out.Add({"</div>"});
}

Markup PhaseBars(std::span<const Row> phases) {
  Markup out;
  const auto add = [&](Literal title, auto of) {
    std::vector<double> values;
    for (const Row& row : phases) values.push_back(of(row.sums));
    const std::vector<double> shares = Shares(values);
    if (!shares.empty()) out.Add({PhaseBar(title, phases, shares)});
  };
  add("GPU time", [](const Sums& sums) { return sums.time_ns(); });
  add("FLOP", [](const Sums& sums) { return sums.total_flop(); });
  add("DRAM bytes", [](const Sums& sums) { return sums.dram_bytes(); });
  return out;
}

// The heads of columns of texts, then of numbers.
Markup Heads(std::initializer_list<Literal> texts, std::initializer_list<Literal> numbers) {
  Markup out;
  for (const Literal& title : texts) out.Add({"<th scope=col>", title, "</th>"});
  for (const Literal& title : numbers) out.Add({"<th scope=col class=num>", title, "</th>"});
  return out;
}

Markup PhaseTableRow(const Report& report, std::string_view name, const Row& row) {
  const Sums& sums = row.sums;
  const Derived& derived = row.derived;
  const bool has_roof = sums.least_ns() > 0;
  return {"<tr>",
          TableCell(name),
          Number(Duration(PerStep(report, sums.time_ns()))),
          Number(Percent(row.time_share)),
          Number(WithPrefix(PerStep(report, sums.total_flop()), "FLOP")),
          Number(WithPrefix(PerStep(report, sums.dram_bytes()), "B")),
          Number(Plain(derived.oi_flop_per_byte)),
          Number(WithPrefix(derived.performance_flop_per_s, "FLOP/s")),
          Number(has_roof ? Percent(derived.attainable_share) : ""),
          Number(has_roof ? Duration(PerStep(report, derived.slack_ns)) : ""),
          "</tr>"};
}

std::string ProcessText(const ProcessInfo& process) {
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
  return text;
}

std::string PolicyText(const PolicyInfo& policy) {
  constexpr const char* kState[] = {"unknown", "off", "on"};
  const auto state = [&](uint32_t value) { return std::string(kState[std::min<uint32_t>(value, 2)]); };
  return "TF32 in matmul " + state(policy.matmul_tf32) + ", in cuDNN " + state(policy.cudnn_tf32) + ", autocast " +
         (policy.autocast_dtype.empty() ? "off" : policy.autocast_dtype) + ", cudnn.benchmark " +
         state(policy.cudnn_benchmark) + ", cudnn.deterministic " + state(policy.cudnn_deterministic);
}

}  // namespace

Markup PageHead(const std::string& title) {
  return {
      "<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
      "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n<meta name=color-scheme "
      "content=\"light dark\">\n<title>",
      Escaped(title),
      "</title>\n<style>\n",
      InStyle(PictureStyle(Theme::kChosen)),
      kReportCss,
      "</style>\n</head>\n"};
}

Markup TableCell(std::string_view text, CellKind kind) {
  const Markup content = Escaped(text);
  if (kind == CellKind::kNumber) return {"<td class=num>", content, "</td>"};
  return {"<td>", content, "</td>"};
}

Markup PhaseSection(const Report& report) {
  if (report.phases.empty()) return {};
  const std::vector<Row> phases = PhaseTotals(report);
  Markup out = {"<section class=card><h2>Where a step goes</h2><div class=bars>", PhaseBars(phases),
                "</div><div class=scroll><table class=small><thead><tr>",
                Heads({"Phase"}, {"GPU time a step", "of GPU time", "FLOP a step", "DRAM bytes a step", "OI, FLOP/B",
                                  "Performance", "of attainable", "Slack a step"}),
                "</tr></thead><tbody>"};
  for (const Row& row : phases) out.Add({PhaseTableRow(report, PhaseName(row.phase), row)});
  return out.Add({PhaseTableRow(report, "all", TotalRow(report)), "</tbody></table></div></section>"});
}

Markup AlarmSection(const Report& report, bool with_title) {
  if (report.alarms.empty()) return {};
  Markup out = {"<section class=\"card alarms\"><h2>Alarms"};
  if (with_title) out.Add({" of ", Escaped(ReportTitle(report))});
  out.Add({"</h2><ul>"});
  for (const Alarm& alarm : report.alarms) {
    const std::string where = AlarmWhere(alarm);
    const std::string_view causes = AlarmCauses(alarm);
    out.Add({"<li><b>", Escaped(alarm.id), "</b> ", Escaped(AlarmText(alarm))});
    if (!where.empty()) out.Add({" <code>", Escaped(where), "</code>"});
    if (!causes.empty()) out.Add({"<div class=muted>Likely: ", Escaped(causes), "</div>"});
    out.Add({"</li>"});
  }
  return out.Add({"</ul></section>"});
}

Markup RoofSection(const Report& report) {
  if (report.roofs.empty()) return {};
  Markup out = {"<details class=card><summary>Roofs</summary><div class=scroll><table class=small><thead><tr>",
                Heads({"Roof", "Level", "Kind"}, {"Peak", "Bandwidth", "Ridge, FLOP/B"}), Heads({"Used"}, {}),
                "</tr></thead><tbody>"};
  for (const RoofLine& roof : report.roofs) {
    out.Add({"<tr>", TableCell(RoofTitleAndRate(roof)), TableCell(MemoryLevelName(roof.level)),
             TableCell(RoofKindName(roof.kind)),
             Number(roof.peak_flop_per_s > 0 ? WithPrefix(roof.peak_flop_per_s, "FLOP/s") : ""),
             Number(roof.bytes_per_s > 0 ? WithPrefix(roof.bytes_per_s, "B/s") : ""),
             Number(roof.ridge_flop_per_byte > 0 ? Plain(roof.ridge_flop_per_byte) : ""),
             TableCell(roof.used ? "yes" : "no"), "</tr>"});
  }
  return out.Add({"</tbody></table></div></details>"});
}

Markup FactSection(const Report& report) {
  Markup out = {"<details class=card><summary>The run</summary><dl>"};
  const auto fact = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) out.Add({"<dt>", Escaped(name), "</dt><dd>", Escaped(value), "</dd>"});
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
  fact("Wall time a step", report.step_wall_ns > 0 ? Duration(report.step_wall_ns) : "");
  fact("GPU time a step", report.step_gpu_ns > 0 ? Duration(report.step_gpu_ns) : "");
  fact("GPU memory in use, peak (all processes)",
       report.memory_peak_bytes > 0 ? WithPrefix(static_cast<double>(report.memory_peak_bytes), "B") : "");
  fact("Attributed", Percent(report.attributed_share) + " of forward and backward GPU time, " +
                         Grouped(report.unattributed_launches) + " launches without a layer");
  fact("With counters", Percent(report.counters_share) + " of GPU time");
  fact("Precision policy", PolicyText(report.run.policy));
  for (const ModelInfo& model : report.models) {
    fact("Model " + model.class_name,
         Grouped(model.parameters) + " parameters, " + WithPrefix(static_cast<double>(model.parameter_bytes), "B"));
  }
  fact("Processes", Grouped(report.process_count));
  for (const ProcessInfo& process : report.processes) fact("Process", ProcessText(process));
  for (const auto& [what, count] : report.drops) fact("Dropped", what + ": " + Grouped(count));
  return out.Add({"</dl></details>"});
}

Markup DiagnosticSection(const Report& report) {
  const std::vector<DiagnosticInfo> diagnostics = DiagnosticsText(report);
  if (diagnostics.empty()) return {};
  constexpr Literal kSeverity[] = {"info", "warning", "error"};
  Markup out = {"<details class=card open><summary>Diagnostics</summary><ul>"};
  for (const DiagnosticInfo& diagnostic : diagnostics) {
    out.Add({"<li><b>", kSeverity[std::clamp(diagnostic.severity, 0, 2)], "</b> ", Escaped(diagnostic.text)});
    if (!diagnostic.remedy.empty()) out.Add({"<div class=muted>", Escaped(diagnostic.remedy), "</div>"});
    out.Add({"</li>"});
  }
  return out.Add({"</ul></details>"});
}

Markup GlossarySection() {
  Markup out = {"<details class=card><summary>Words</summary><dl>"};
  for (const GlossaryEntry& entry : Glossary()) {
    out.Add({"<dt>", Escaped(entry.word), "</dt><dd>", Escaped(entry.meaning), "</dd>"});
  }
  return out.Add({"</dl></details>"});
}

Markup SourceBadge(const Report& report) {
  Markup out = {"<span class=\"badge"};
  if (report.run.source == SourceKind::kMeasured && !report.simulated()) out.Add({" measured"});
  return out.Add({"\">", Escaped(SourceTitle(report)), "</span>"});
}

Markup HeadlineSection(const Report& report, bool with_title) {
  Markup out = {"<div class=head>"};
  if (with_title) out.Add({"<h2>", Escaped(ReportTitle(report)), " ", SourceBadge(report), "</h2>"});
  out.Add({"<ul class=\"headline opening\">"});
  for (const std::string& line : OpeningText(report)) out.Add({"<li>", Escaped(line), "</li>"});
  out.Add(
      {"</ul><p class=links><button type=button class=link data-view=time>Time view</button>: which rows are too "
       "short "
       "for a launch. <button type=button class=link data-view=roofline>Roofline</button>: which could be faster, "
       "and "
       "what holds them back.</p><details class=\"headline facts\"><summary>What these numbers rest "
       "on</summary><ul>"});
  for (const std::string& line : FactsText(report)) out.Add({"<li>", Escaped(line), "</li>"});
  return out.Add({"</ul></details></div>"});
}

}  // namespace rfinject::cli
