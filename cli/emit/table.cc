// The table for terminals. It fits the width that it is given: what does not fit is left out from the least important
// column on, and names are shortened last. Numbers are a step's, where steps are known.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "cli/emit/emit.h"
#include "cli/emit/text_grid.h"
#include "cli/report/theory.h"
#include "cli/report/units.h"

namespace rfinject::cli {
namespace {

constexpr const char* kBold = "\033[1m";
constexpr const char* kRed = "\033[31m";
constexpr const char* kPlain = "\033[0m";

struct Line {
  const Row* row = nullptr;  // null: `label` and `sums` alone
  std::string label;
  Sums sums;
  Derived derived;
  double time_share = 0;
};

struct NameColumn {
  const char* title;
  std::function<std::string(const Row&)> text;
  size_t least_width;
  bool keep_end;  // when shortened
};

struct ValueColumn {
  const char* title;
  size_t width;
  int priority;  // lower stays longer
  std::function<std::string(const Line&)> text;
};

// Counted for the layer as a whole (Row::counters_shared).
std::string SharedMark(const Line& line) { return line.row != nullptr && line.row->counters_shared ? "~" : ""; }

std::string LayerLabel(const Report& report, const Row& row) {
  if (row.model.empty()) return "(" + (row.phase.empty() ? std::string("no layer") : row.phase + ", no layer") + ")";
  const bool several = report.run.models.size() > 1;
  if (row.layer.empty()) return row.model;
  return several ? row.model + "/" + row.layer : row.layer;
}

std::vector<NameColumn> NameColumns(const Report& report, By by) {
  const auto model = [](const Row& row) { return row.model.empty() ? "(" + row.phase + ", no layer)" : row.model; };
  const auto model_or_none = [](const Row& row) { return row.model.empty() ? std::string("(no layer)") : row.model; };
  const auto phase = [](const Row& row) { return row.phase; };
  const auto layer = [&report](const Row& row) { return LayerLabel(report, row); };
  switch (by) {
    case By::kModel:
      return {{"model", model, 16, false}};
    case By::kPhase:
      return {{"phase", phase, 9, false}, {"model", model_or_none, 10, false}};
    case By::kLayer:
      return {{"layer", layer, 16, true}};
    case By::kOp:
      return {{"phase", phase, 9, false}, {"op", [](const Row& row) { return row.op; }, 14, true}};
    case By::kKernel:
      return {{"kernel", [](const Row& row) { return row.kernel; }, 18, false},
              {"layer",
               [](const Row& row) { return row.model.empty()   ? "-"
                                           : row.layer.empty() ? row.model
                                                               : row.layer; }, 12,
               true},
              {"phase", phase, 9, false}};
  }
  return {};
}

class Table {
 public:
  Table(const Report& report, By by, const TableOptions& options, std::ostream& out)
      : report_(report), options_(options), out_(out), names_(NameColumns(report, by)) {
    const bool roofs = !report.machine.name.empty();
    const double steps = report.steps > 0 ? static_cast<double>(report.steps) : 1;
    const auto flop = [](const Line& line) { return line.sums.total_flop(); };
    values_ = {
        {"class", 14, 10,
         [](const Line& line) { return line.row ? Shortened(PrintableText(line.row->class_name), 14, false) : ""; }},
        {"launches", 8, 9,
         [steps](const Line& line) {
           const double launches = static_cast<double>(line.sums.launches) / steps;
           return launches == std::floor(launches) ? Grouped(static_cast<uint64_t>(launches)) : Plain(launches);
         }},
        {"time", 8, 0, [steps](const Line& line) { return Duration(line.sums.time_ns / steps); }},
        {"share", 6, 1, [](const Line& line) { return Percent(line.time_share); }},
        {"ideal", 8, 4, [steps](const Line& line) { return Duration(line.sums.ideal_ns / steps); }},
        {"FLOP", 7, 6,
         [=](const Line& line) {
           return flop(line) > 0 ? SharedMark(line) + WithPrefix(flop(line) / steps, "") : "-";
         }},
        {"bytes", 7, 8,
         [steps](const Line& line) {
           return line.sums.dram_bytes > 0 ? SharedMark(line) + WithPrefix(line.sums.dram_bytes / steps, "B") : "-";
         }},
        {"FLOP/B", 6, 3,
         [=](const Line& line) {
           return flop(line) > 0 && line.sums.dram_bytes > 0 ? SharedMark(line) + Plain(line.derived.oi_flop_per_byte)
                                                             : "-";
         }},
        {"FLOP/s", 7, 4,
         [=](const Line& line) {
           return flop(line) > 0 && line.sums.time_ns > 0
                      ? SharedMark(line) + WithPrefix(line.derived.performance_flop_per_s, "")
                      : "-";
         }},
        {"DRAM/s", 7, 7,
         [](const Line& line) {
           return line.sums.dram_bytes > 0 && line.sums.time_ns > 0
                      ? SharedMark(line) + WithPrefix(line.derived.bandwidth_bytes_per_s, "B")
                      : "-";
         }},
    };
    if (roofs) {
      values_.push_back({"of roof", 7, 2, [](const Line& line) {
                           return line.sums.least_ns > 0 ? Percent(line.derived.attainable_share) : std::string("-");
                         }});
      values_.push_back(
          {"bound", 7, 5, [](const Line& line) {
             return std::string(line.sums.least_ns <= 0 ? "-" : line.derived.memory_bound ? "memory" : "compute");
           }});
      values_.push_back({"to win", 8, 6, [steps](const Line& line) {
                           return line.sums.least_ns > 0 ? Duration(line.derived.slack_ns / steps) : std::string("-");
                         }});
    }
    if (report.total.ideal_ns <= 0) {
      std::erase_if(values_, [](const ValueColumn& v) { return std::string_view(v.title) == "ideal"; });
    }
    if (options.columns == TableColumns::kTheory) values_ = TheoryColumns(steps);
    if (by != By::kLayer && by != By::kKernel) std::erase_if(values_, [](const auto& v) { return v.priority == 10; });
  }

  static std::vector<ValueColumn> TheoryColumns(double steps) {
    const auto amount = [steps](double value, const char* unit) {
      return value > 0 ? WithPrefix(value / steps, unit) : std::string("-");
    };
    const auto ratio = [](double a, double b) { return b > 0 ? Plain(a / b) : std::string("-"); };
    return {
        {"class", 14, 10,
         [](const Line& line) { return line.row ? Shortened(PrintableText(line.row->class_name), 14, false) : ""; }},
        {"model", 7, 2, [amount](const Line& line) { return amount(line.sums.model_flop, ""); }},
        {"FLOP", 7, 0, [amount](const Line& line) { return amount(line.sums.total_flop(), ""); }},
        {"ratio", 6, 1, [ratio](const Line& line) { return ratio(line.sums.total_flop(), line.sums.model_flop); }},
        {"must", 7, 4, [amount](const Line& line) { return amount(line.sums.compulsory_bytes, "B"); }},
        {"bytes", 7, 3, [amount](const Line& line) { return amount(line.sums.dram_bytes, "B"); }},
        {"ratio", 6, 4,
         [ratio](const Line& line) { return ratio(line.sums.dram_bytes, line.sums.compulsory_bytes); }},
        {"reason", 13, 5,
         [](const Line& line) { return line.row ? std::string(ReasonOf(*line.row)) : std::string(); }},
    };
  }

  void Write(const std::vector<Row>& rows) {
    std::vector<Line> lines = Choose(rows);
    Fit(lines);
    std::string header = "  ";
    for (size_t i = 0; i < names_.size(); ++i) header += Padded(names_[i].title, name_widths_[i], false) + " ";
    for (const ValueColumn& value : values_)
      header += Padded(value.title, value.width, value.title != ClassTitle()) + " ";
    while (!header.empty() && header.back() == ' ') header.pop_back();
    out_ << (options_.color ? kBold : "") << header << (options_.color ? kPlain : "") << '\n';
    for (const Line& line : lines) WriteLine(line);
  }

 private:
  static constexpr int kNiceToHave = 6;  // columns of a higher priority number go before names are shortened
  static const char* ClassTitle() { return "class"; }

  // Work that was not counted takes no time.
  double Weight(const Sums& sums) const {
    return options_.columns == TableColumns::kTheory ? std::max(sums.model_flop, sums.total_flop()) : sums.time_ns;
  }

  // The rows with most time (of theory: most FLOP), in the order that the report has them in, and one line for the
  // others.
  std::vector<Line> Choose(const std::vector<Row>& rows) const {
    std::vector<bool> kept(rows.size(), true);
    if (options_.max_rows > 0 && rows.size() > options_.max_rows) {
      std::vector<size_t> order(rows.size());
      for (size_t i = 0; i < order.size(); ++i) order[i] = i;
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return Weight(rows[a].sums) > Weight(rows[b].sums); });
      for (size_t i = options_.max_rows; i < order.size(); ++i) kept[order[i]] = false;
    }
    std::vector<Line> lines;
    Line rest;
    size_t left_out = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const Row& row = rows[i];
      if (kept[i]) {
        lines.push_back(
            {.row = &row, .label = {}, .sums = row.sums, .derived = row.derived, .time_share = row.time_share});
      } else {
        rest.sums.Add(row.sums);
        rest.time_share += row.time_share;
        ++left_out;
      }
    }
    if (left_out > 0) {
      rest.label = "(" + Grouped(left_out) + " more: --rows 0)";
      rest.derived = Derive(rest.sums);
      lines.push_back(rest);
    }
    lines.push_back({.row = nullptr,
                     .label = "total",
                     .sums = report_.total,
                     .derived = report_.total_derived,
                     .time_share = report_.total.time_ns > 0 ? 1.0 : 0.0});
    return lines;
  }

  void Fit(const std::vector<Line>& lines) {
    // What the names would like to have; a kernel's can be a page long.
    constexpr size_t kMostName = 60;
    std::vector<size_t> wanted;
    for (size_t i = 0; i < names_.size(); ++i) {
      size_t most = DisplayWidth(names_[i].title);
      for (const Line& line : lines) {
        if (line.row != nullptr) most = std::max(most, DisplayWidth(PrintableText(names_[i].text(*line.row))));
        if (line.row == nullptr && names_.size() == 1) most = std::max(most, DisplayWidth(line.label));
      }
      wanted.push_back(std::min(most, kMostName));
    }
    const size_t width = static_cast<size_t>(std::max(options_.width, 40));
    const auto sum = [](const std::vector<size_t>& widths) {
      size_t total = 0;
      for (size_t w : widths) total += w + 1;
      return total;
    };
    const auto value_width = [&] {
      size_t total = 0;
      for (const ValueColumn& value : values_) total += value.width + 1;
      return total;
    };
    const auto drop_least = [&] {
      const auto least = std::max_element(values_.begin(), values_.end(),
                                          [](const auto& a, const auto& b) { return a.priority < b.priority; });
      values_.erase(least);
    };
    // First the columns that are nice to have go, for the sake of whole names; then names shrink to what they need at
    // least; then further columns go.
    const auto nice = [&] {
      return std::any_of(values_.begin(), values_.end(), [](const auto& v) { return v.priority > kNiceToHave; });
    };
    while (nice() && 1 + sum(wanted) + value_width() > width) drop_least();
    std::vector<size_t> least;
    for (size_t i = 0; i < names_.size(); ++i) least.push_back(std::min(wanted[i], names_[i].least_width));
    while (values_.size() > 2 && 1 + sum(least) + value_width() > width) drop_least();
    name_widths_ = least;
    size_t left = width - std::min(width, 1 + sum(least) + value_width());
    for (size_t i = 0; left > 0 && i < names_.size(); ++i) {
      const size_t more = std::min(left, wanted[i] - least[i]);
      name_widths_[i] += more;
      left -= more;
    }
  }

  void WriteLine(const Line& line) {
    std::string text;
    if (line.row == nullptr) {
      size_t width = names_.size() - 1;
      for (size_t w : name_widths_) width += w;
      text = Padded(Shortened(line.label, width, false), width, false) + " ";
    } else {
      for (size_t i = 0; i < names_.size(); ++i) {
        const std::string name = PrintableText(names_[i].text(*line.row));
        text += Padded(Shortened(name, name_widths_[i], names_[i].keep_end), name_widths_[i], false) + " ";
      }
    }
    for (const ValueColumn& value : values_) {
      text += Padded(value.text(line), value.width, value.title != ClassTitle()) + " ";
    }
    while (!text.empty() && text.back() == ' ') text.pop_back();
    // The mark of an estimate stands on every line.
    out_ << (report_.run.source == SourceKind::kEstimated ? "~ " : "  ") << text << '\n';
  }

  const Report& report_;
  const TableOptions& options_;
  std::ostream& out_;
  std::vector<NameColumn> names_;
  std::vector<size_t> name_widths_;
  std::vector<ValueColumn> values_;
};

// `text` in lines of at most `width` columns, broken at spaces; further lines are indented.
void WriteWrapped(std::ostream& out, const std::string& text, size_t width, const std::string& first,
                  const std::string& indent) {
  std::string line = first;
  bool empty = true;
  size_t begin = 0;
  const std::string clean = PrintableText(text);
  while (begin < clean.size()) {
    size_t end = clean.find(' ', begin);
    if (end == std::string::npos) end = clean.size();
    const std::string word = clean.substr(begin, end - begin);
    if (!empty && DisplayWidth(line) + 1 + DisplayWidth(word) > width) {
      out << line << '\n';
      line = indent;
      empty = true;
    }
    line += (empty ? "" : " ") + word;
    empty = false;
    begin = end + 1;
  }
  out << line << '\n';
}

const char* ByTitle(By by) {
  switch (by) {
    case By::kModel:
      return "By model";
    case By::kPhase:
      return "By phase";
    case By::kLayer:
      return "By layer";
    case By::kOp:
      return "By operator";
    case By::kKernel:
      return "By kernel";
  }
  return "";
}

std::string RunLine(const Report& report) {
  std::string line;
  const auto add = [&](const std::string& text) { line += (line.empty() ? "" : ", ") + text; };
  for (const ModelInfo& model : report.models) {
    if (model.parameters > 0) add(model.class_name + " (" + Grouped(model.parameters) + " parameters)");
  }
  if (report.run.batch_size > 0) add("batch " + std::to_string(report.run.batch_size));
  add(report.steps == 1 ? "1 step" : Grouped(report.steps) + " steps");
  if (report.step_gpu_ns > 0) {
    add(Duration(report.step_gpu_ns) + " of GPU time a step");
    // An estimate's wall time is the time of another machine.
    if (report.run.source == SourceKind::kMeasured && report.step_wall_ns > 0) {
      add(Duration(report.step_wall_ns) + " of wall time");
    }
  }
  // All processes' of the device, and what a caching allocator keeps: what must fit, not what the tensors need.
  if (report.memory_peak_bytes > 0) {
    add("at most " + WithPrefix(static_cast<double>(report.memory_peak_bytes), "B") + " of device memory in use");
  }
  if (report.process_count > 1) add(Grouped(report.process_count) + " processes");
  if (!report.processes.empty() && !report.processes.front().torch_version.empty()) {
    add("torch " + report.processes.front().torch_version);
  }
  return line;
}

void WriteReport(const Report& report, const TableOptions& options, std::ostream& out) {
  const auto width = static_cast<size_t>(std::max(options.width, 40));
  const char* bold = options.color ? kBold : "";
  const char* plain = options.color ? kPlain : "";
  bool first = true;
  for (const std::string& line : report.headline) {
    if (first) out << bold;
    WriteWrapped(out, line, width, "", "  ");
    if (first) out << plain;
    first = false;
  }
  WriteWrapped(out, RunLine(report), width, "", "  ");
  WriteWrapped(out, "Attribution tier " + report.tier_text, width, "", "  ");

  const std::string per = report.steps > 0 ? ", a step" : ", over all";
  const std::string mark = report.run.source == SourceKind::kEstimated ? "   (~ estimated)" : "";
  if (report.by != By::kPhase) {
    out << '\n' << bold << "By phase" << per << plain << mark << '\n';
    Table(report, By::kPhase, options, out).Write(report.phases);
  }
  out << '\n' << bold << ByTitle(report.by) << per << plain << mark << '\n';
  Table(report, report.by, options, out).Write(report.rows);

  if (!report.alarms.empty() || !report.diagnostics.empty() || !report.drops.empty()) out << '\n';
  for (const Alarm& alarm : report.alarms) {
    out << (options.color ? kRed : "");
    WriteWrapped(out, alarm.text + (alarm.where.empty() ? "" : " [" + alarm.where + "]"), width, alarm.id + " ",
                 "     ");
    out << plain;
    if (!alarm.causes.empty()) WriteWrapped(out, "likely: " + alarm.causes, width, "     ", "     ");
  }
  static constexpr const char* kSeverities[] = {"note: ", "warning: ", "error: "};
  for (const DiagnosticInfo& diagnostic : report.diagnostics) {
    WriteWrapped(out, diagnostic.text, width, kSeverities[std::clamp(diagnostic.severity, 0, 2)], "  ");
    if (!diagnostic.remedy.empty()) WriteWrapped(out, diagnostic.remedy, width, "  mend it: ", "  ");
  }
  for (const auto& [what, count] : report.drops) {
    WriteWrapped(out, Grouped(count) + " lost: " + what, width, "warning: ", "  ");
  }
}

}  // namespace

void EmitTable(std::span<const Report> reports, const TableOptions& options, std::ostream& out) {
  bool first = true;
  for (const Report& report : reports) {
    if (!first) out << '\n';
    first = false;
    WriteReport(report, options, out);
  }
}

}  // namespace rfinject::cli
