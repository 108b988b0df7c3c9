#include "cli/import/ncu/ncu_csv.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cli/import/ncu/csv_line.h"
#include "cli/import/ncu/header.h"
#include "cli/import/ncu/kernels.h"
#include "cli/import/ncu/locale.h"
#include "cli/import/ncu/metrics.h"
#include "cli/import/ncu/names.h"
#include "cli/import/ncu/repeats.h"

namespace rfinject::cli {
namespace {

// Values and lines that were left out, or that may have been read wrongly.
struct NcuDoubts {
  std::set<std::string> bad_units;
  uint64_t lines = 0, unreadable = 0, out_of_range = 0, ambiguous = 0;
};

void WarnOf(const NcuDoubts& doubts, RunBuilder* builder) {
  const auto warn = [builder](const auto&... parts) { builder->Warn(absl::StrCat(parts...)); };
  for (const std::string& unit : doubts.bad_units)
    warn(unit, ": this unit is not known here; the values were left out");
  if (doubts.lines > 0) {
    builder->Say({.severity = trace::Severity::kWarning,
                  .id = "lines-unreadable",
                  .text = absl::StrCat(doubts.lines, " lines of the table could not be read and were left out")});
  }
  if (doubts.unreadable > 0) warn(doubts.unreadable, " values are not numbers (n/a?) and were left out");
  if (doubts.out_of_range > 0) warn(doubts.out_of_range, " values are negative or too large; left out");
  if (doubts.ambiguous > 0) {
    warn(doubts.ambiguous,
         " values like \"1.234\" or \"1,234\" and nothing in the file tells which mark is the decimal one: read as "
         "a point; --decimal comma reads them the other way");
  }
}

class NcuImporter {
 public:
  NcuImporter(LineReader& reader, const ImportOptions& options)
      : reader_(reader), options_(options), builder_(reader.name(), "ncu") {}

  absl::StatusOr<Imported> Run() {
    mark_ = options_.decimal;
    if (mark_ == DecimalMark::kUnknown) {
      const absl::StatusOr<DecimalMark> detected = DetectDecimalMark(reader_);
      if (!detected.ok()) return detected.status();
      mark_ = *detected;
    }
    std::string_view line;
    bool begins = false;
    while (reader_.Next(repeat_, &line, &begins)) TakeLine(line, begins && !repeat_.empty());
    if (!reader_.status().ok()) return reader_.status();
    FinishKernel();
    if (columns_.count == 0) {
      return builder_.Fail(
          "no table of ncu in it: no line with the columns \"ID\" and \"Kernel Name\" "
          "(write it with: ncu --import report.ncu-rep --page raw --csv --print-units base)");
    }
    if (kernels_.launches() == 0) return builder_.Fail("the table has no kernels");
    kernels_.AddTo(options_, &builder_);
    MakeWarnings();
    return builder_.Finish();
  }

 private:
  struct WideColumn {
    size_t index;
    int metric;
    double factor;
  };

  void TakeLine(std::string_view line, bool repeats) {
    if (reader_.line_number() == 1 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
    // Long tables repeat everything before the metric for each metric of a kernel, and kernels again and again.
    if (!repeats && TakeKnownLaunch(line)) return;
    if (repeats) {
      const std::string_view rest = line.substr(repeat_.size());
      if (TakeKnownMetric(rest)) return;
      if (fields_.Split(rest) &&
          columns_.Fits(fields_.size() + repeated_fields_, fields_.filled() + repeated_fields_)) {
        ++builder_.result.rows;
        TakeMetric(repeated_fields_);
        return;
      }
    }
    if (!fields_.Split(line)) return SkipLine(line);
    // A file may hold several tables: `ncu … >> file`, or one a process.
    if (const NcuColumns header = ReadNcuHeader(fields_.fields()); header.count > 0) {
      FinishKernel();
      columns_ = header;
      StartTable();
      return;
    }
    if (columns_.count == 0 || !columns_.Fits(fields_.size(), fields_.filled())) {
      SkipLine(line);
    } else if (columns_.wide()) {
      TakeWideLine();
    } else {
      TakeLongLine(line);
    }
  }

  // A program's own output may stand between the lines of a table, which begin with a quote.
  void SkipLine(std::string_view line) {
    ++builder_.result.skipped_lines;
    doubts_.lines += columns_.count > 0 && line.starts_with('"') ? 1 : 0;
  }

  void StartTable() {
    repeat_.clear();
    wide_.clear();
    metric_lines_.clear();
    launches_.Clear();
    regular_ = columns_.regular();
    if (!columns_.wide()) return;
    wide_names_.assign(fields_.fields().begin(), fields_.fields().end());
    expect_units_ = true;
  }

  void TakeWideLine() {
    if (expect_units_) {
      expect_units_ = false;
      // The units' line has no kernel. Without it (--print-units base of old versions) base units are meant.
      const bool units = fields_[columns_.kernel].empty();
      for (size_t i = 0; i < columns_.count; ++i) {
        const int metric = metrics_.Find({}, wide_names_[i]);
        if (metric < 0) continue;
        const std::string_view unit = units ? fields_[i] : std::string_view{};
        if (const auto factor = Factor(metric, unit, !units)) wide_.push_back({i, metric, *factor});
      }
      if (units) return;
    }
    if (fields_[columns_.kernel].empty()) {
      ++builder_.result.skipped_lines;
      return;
    }
    ++builder_.result.rows;
    FinishKernel();
    StartKernel();
    for (const WideColumn& column : wide_) TakeValue(column.metric, fields_[column.index], column.factor);
  }

  void TakeLongLine(std::string_view line) {
    ++builder_.result.rows;
    const std::string_view id = Field(columns_.id), process = Field(columns_.process_id);
    const bool starts = !open_ || id != id_ || process != process_;
    if (starts) {
      FinishKernel();
      StartKernel();
      id_ = id;
      process_ = process;
    }
    repeat_.clear();
    repeated_fields_ = 0;
    const size_t first_of_metric = columns_.first_of_metric();
    const std::string_view first = fields_[first_of_metric];
    const bool in_line = first.data() > line.data() && first.data() + first.size() <= line.data() + line.size();
    if (first_of_metric > 0 && first_of_metric < std::min(columns_.unit, columns_.value) && in_line) {
      const char* at = first.data();
      if (at[-1] == '"') --at;
      repeat_.assign(line.data(), at);
      repeated_fields_ = first_of_metric;
      if (const size_t identity = IdentityOffset(line); starts && regular_ && identity > 0) {
        if (identity < repeat_.size()) identity_.assign(repeat_, identity);
      }
    }
    TakeMetric(0);
  }

  // --- The short ways (ncu_repeats.h).

  // Takes a line of the open kernel; `rest` is what stands behind repeat_. False, with nothing done: the long way.
  bool TakeKnownMetric(std::string_view rest) {
    if (place_ + 1 >= metric_lines_.size()) return false;
    const NcuMetricLine& known = metric_lines_[place_ + 1];
    const std::optional<NcuValue> value = MatchMetric(known, rest);
    if (!value) return false;
    ++place_;
    ++builder_.result.rows;
    if (known.metric >= 0 && value->unit->factor) TakeValue(known.metric, value->text, *value->unit->factor);
    return true;
  }

  // Takes the first line of the next launch, of a kernel that was seen before; false, with nothing done: the long
  // way.
  bool TakeKnownLaunch(std::string_view line) {
    if (!regular_ || metric_lines_.size() < 2) return false;
    const NcuMetricLine& known = metric_lines_[1];
    const std::optional<NcuFirstLine> first = MatchFirstLine(known, open_ ? id_ : std::string_view(), line);
    if (!first) return false;
    const NcuLaunchMemory::Launch* const launch = launches_.Find(first->identity);
    if (launch == nullptr) return false;
    NcuKernelSum* const sum = launch->sum;
    std::string process = launch->process;
    FinishKernel();  // which may put the open kernel in this one's place
    open_ = true;
    known_sum_ = sum;
    kernel_.values.clear();
    id_ = first->id;
    process_ = std::move(process);
    repeat_.assign(line.data(), first->repeated);
    repeated_fields_ = columns_.first_of_metric();
    place_ = 1;
    ++builder_.result.rows;
    const NcuValue& value = first->value;
    if (known.metric >= 0 && value.unit->factor) TakeValue(known.metric, value.text, *value.unit->factor);
    return true;
  }

  // --- One metric, one value.

  // The metric of a long line whose first `skipped` fields are not in fields_.
  void TakeMetric(size_t skipped) {
    const std::string_view section = Field(columns_.section, skipped), name = Field(columns_.metric, skipped),
                           unit = Field(columns_.unit, skipped);
    if (name.empty()) return;  // a rule's line
    // Kernels list the same metrics in the same order: the line of the kernel before tells what this one is.
    if (++place_ >= metric_lines_.size()) metric_lines_.resize(place_ + 1);
    NcuMetricLine& known = metric_lines_[place_];
    if (known.name != name || known.section != section) {
      known.section = section;
      known.name = name;
      known.metric = metrics_.Find(section, name);
      known.units.clear();
      known.raw.clear();
      if (regular_) known.raw = RawMetric(fields_, columns_.section == NcuColumns::kNone ? 3 : 4);
    }
    const NcuMetricLine::Unit* remembered = known.FindUnit(unit);
    if (remembered == nullptr) {
      constexpr size_t kMostUnits = 8;
      if (known.units.size() >= kMostUnits) known.units.clear();
      known.units.push_back(
          {std::string(unit), known.metric < 0 ? std::nullopt : Factor(known.metric, unit, /*assume_base=*/false)});
      remembered = &known.units.back();
    }
    if (known.metric >= 0 && remembered->factor) {
      TakeValue(known.metric, Field(columns_.value, skipped), *remembered->factor);
    }
  }

  // NcuMetrics::Factor; a unit that does not fit is remembered for a warning.
  std::optional<double> Factor(int metric, std::string_view unit, bool assume_base) {
    const std::optional<double> factor = metrics_.Factor(metric, unit, assume_base);
    constexpr size_t kMostBadUnits = 64;
    if (!factor && doubts_.bad_units.size() < kMostBadUnits) {
      doubts_.bad_units.insert(absl::StrCat(metrics_[metric].name, " in \"", std::string(unit), "\""));
    }
    return factor;
  }

  void TakeValue(int metric, std::string_view text, double factor) {
    const std::optional<double> number = ParseNumber(text, mark_);
    if (!number) {
      if (!text.empty()) ++doubts_.unreadable;
      return;
    }
    if (mark_ == DecimalMark::kUnknown && text.find_first_of(".,") != std::string_view::npos) ++doubts_.ambiguous;
    const double value = *number * factor;
    if (!(value >= 0) || value > 1.8e19) {
      ++doubts_.out_of_range;
      return;
    }
    // As std::llround does, which is a call and a tenth of what a value takes.
    const auto below = static_cast<uint64_t>(static_cast<int64_t>(std::min(value, 9.2e18)));
    kernel_.values.emplace_back(metric, below + (value - static_cast<double>(below) >= 0.5 ? 1 : 0));
  }

  // The field of a column, of a line whose first `skipped` fields are not in fields_; empty where the table has no
  // such column.
  std::string_view Field(size_t column, size_t skipped = 0) const {
    return column == NcuColumns::kNone ? std::string_view() : fields_[column - skipped];
  }

  // --- One launch.

  void StartKernel() {
    open_ = true;
    place_ = 0;
    known_sum_ = nullptr;
    identity_.clear();
    kernel_.values.clear();
    kernel_.name = Field(columns_.kernel);
    kernel_.process_name = Field(columns_.process_name);
    kernel_.block = ParseTriple(Field(columns_.block));
    kernel_.grid = ParseTriple(Field(columns_.grid));
    kernel_.device = ParseTriple(Field(columns_.device))[0];
    kernel_.compute_capability = Field(columns_.cc);
    if (columns_.board != NcuColumns::kNone) {
      kernels_.SetBoard(Field(columns_.board), ParseNumber(Field(columns_.memory), mark_),
                        ParseNumber(Field(columns_.sms), mark_));
    }
    NvtxSite site = ReadNvtx(Field(columns_.push_pop));
    if (site.layer.empty()) {
      NvtxSite outer = ReadNvtx(Field(columns_.start_stop));
      site.layer = std::move(outer.layer);
      if (!outer.op.empty()) site.op = std::move(outer.op);
    }
    kernel_.layer = std::move(site.layer);
    kernel_.op = std::move(site.op);
  }

  void FinishKernel() {
    if (!open_) return;
    open_ = false;
    if (known_sum_ == nullptr) {
      known_sum_ = &kernels_.SumOf(kernel_);
      if (!identity_.empty()) launches_.Remember(identity_, process_, known_sum_);
    }
    kernels_.AddLaunch(kernel_.values, *known_sum_);
  }

  void MakeWarnings() {
    const auto warn = [&](const auto&... parts) { builder_.Warn(absl::StrCat(parts...)); };
    WarnOf(doubts_, &builder_);
    if (kernels_.derived_traffic()) {
      warn("no DRAM byte counters; traffic is Memory Throughput times Duration of the details page (rounded by ncu)");
    }
    if (kernels_.several_gpus()) warn("kernels of GPUs of several kinds in one file; no roofs can be drawn");
  }

  LineReader& reader_;
  const ImportOptions& options_;
  RunBuilder builder_;
  const NcuMetrics& metrics_ = NcuMetrics::Get();
  NcuKernels kernels_{metrics_};
  DecimalMark mark_ = DecimalMark::kUnknown;

  // The table.
  NcuColumns columns_;
  bool regular_ = false;  // the short ways are open to it
  CsvLine fields_;
  std::vector<std::string> wide_names_;
  std::vector<WideColumn> wide_;
  bool expect_units_ = false;
  std::vector<NcuMetricLine> metric_lines_;  // what stands at each place of a kernel's list, from 1
  NcuLaunchMemory launches_;

  // The open kernel.
  bool open_ = false;
  std::string id_, process_;
  NcuKernel kernel_;
  size_t place_ = 0;                   // of the last metric in its list
  std::string repeat_;                 // what its lines begin with
  size_t repeated_fields_ = 0;         // how many fields that is
  std::string identity_;               // where it is to be remembered
  NcuKernelSum* known_sum_ = nullptr;  // where its launch was remembered

  NcuDoubts doubts_;
};

}  // namespace

absl::StatusOr<Imported> ImportNcuCsv(const std::string& path, const ImportOptions& options) {
  const absl::StatusOr<std::unique_ptr<LineReader>> reader = LineReader::Open(path);
  if (!reader.ok()) return reader.status();
  return ImportNcuCsv(**reader, options);
}

absl::StatusOr<Imported> ImportNcuCsv(LineReader& lines, const ImportOptions& options) {
  return NcuImporter(lines, options).Run();
}

}  // namespace rfinject::cli
