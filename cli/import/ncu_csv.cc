#include "cli/import/ncu_csv.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <unordered_map>

#include "cli/import/line_reader.h"
#include "gpus/chips.h"

namespace rfinject::cli {
namespace {

// --- One line of CSV, RFC 4180 but for line breaks inside fields, which ncu never writes.

// Splits `line` into `fields`; text with doubled quotes is unescaped into `arena`. False when the quotes do not
// balance or something follows a closing quote: then the line is a program's output.
bool SplitCsv(std::string_view line, std::vector<std::string_view>* fields, std::string* arena) {
  fields->clear();
  arena->clear();
  arena->reserve(line.size());  // views into it must stay valid
  size_t i = 0;
  for (;;) {
    if (i < line.size() && line[i] == '"') {
      const size_t start = ++i;
      bool escaped = false;
      for (;;) {
        const size_t quote = line.find('"', i);
        if (quote == std::string_view::npos) return false;
        if (quote + 1 < line.size() && line[quote + 1] == '"') {
          escaped = true;
          i = quote + 2;
          continue;
        }
        i = quote;
        break;
      }
      std::string_view text = line.substr(start, i - start);
      if (escaped) {
        const size_t begin = arena->size();
        for (size_t k = 0; k < text.size(); ++k) {
          arena->push_back(text[k]);
          if (text[k] == '"') ++k;
        }
        text = std::string_view(*arena).substr(begin);
      }
      fields->push_back(text);
      ++i;
      if (i < line.size() && line[i] != ',') return false;
    } else {
      const size_t comma = std::min(line.find(',', i), line.size());
      fields->push_back(line.substr(i, comma - i));
      i = comma;
    }
    if (i >= line.size()) return true;
    ++i;  // the comma
  }
}

// --- What the columns are.

constexpr size_t kNone = static_cast<size_t>(-1);

struct Columns {
  size_t count = 0;
  size_t id = kNone, process_id = kNone, process_name = kNone, kernel = kNone, block = kNone, grid = kNone,
         device = kNone, cc = kNone, push_pop = kNone, start_stop = kNone;
  // Long form only.
  size_t section = kNone, metric = kNone, unit = kNone, value = kNone;
  bool wide() const { return metric == kNone; }
};

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// The columns of a header line, or count 0 when the line is none.
Columns ReadHeader(const std::vector<std::string_view>& fields) {
  Columns columns;
  if (std::find(fields.begin(), fields.end(), "ID") == fields.end()) return columns;
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::string_view f = fields[i];
    const auto set = [&](std::string_view name, size_t Columns::*member) {
      if (f == name && columns.*member == kNone) columns.*member = i;
    };
    set("ID", &Columns::id);
    set("Process ID", &Columns::process_id);
    set("Process Name", &Columns::process_name);
    set("Kernel Name", &Columns::kernel);
    set("Block Size", &Columns::block);
    set("Grid Size", &Columns::grid);
    set("Device", &Columns::device);
    set("CC", &Columns::cc);
    set("Section Name", &Columns::section);
    set("Metric Name", &Columns::metric);
    set("Metric Unit", &Columns::unit);
    set("Metric Value", &Columns::value);
    if (Contains(f, "Push/Pop_Range")) columns.push_pop = i;
    if (Contains(f, "Start/Stop_Range")) columns.start_stop = i;
  }
  const bool table = columns.kernel != kNone && columns.id != kNone;
  const bool half_long = (columns.metric == kNone) != (columns.value == kNone);
  columns.count = table && !half_long ? fields.size() : 0;
  return columns;
}

// --- Which metrics are kept, and as what.

// The human names of the details page, and what they are. (Names of sections/*.section of Nsight Compute.)
struct HumanName {
  std::string_view section, name, metric;
};
constexpr HumanName kHumanNames[] = {
    {"GPU Speed Of Light Throughput", "Duration", kGpuTimeMetric},
    {"GPU Speed Of Light", "Duration", kGpuTimeMetric},
    {"GPU Speed Of Light Throughput", "SM Frequency", kSmClockMetric},
    {"GPU Speed Of Light", "SM Frequency", kSmClockMetric},
};
constexpr std::string_view kDramBytesTotal = "dram__bytes.sum";
// Details page, "Memory Workload Analysis": a rate. Times the duration it is the kernel's traffic.
constexpr std::string_view kDramRate = "dram__bytes.sum.per_second";

struct KeptMetric {
  std::string name;  // in the Profile
  Dimension dimension = Dimension::kCount;
  std::string unit;
  double scale = 1;       // Profile value = integer * scale
  double to_integer = 1;  // base unit (bytes, seconds, count) -> integer
};

class MetricTable {
 public:
  MetricTable() {
    for (std::string_view chip : {"GV100", "TU104", "GA100", "AD102", "GH100", "GB100"}) {
      for (const FlopTerm& term : FlopFormula(chip)) Count(term.metric);
    }
    for (std::string_view name : {"derived__smsp__sass_thread_inst_executed_op_hadd_pred_on_x2.sum",
                                  "derived__smsp__sass_thread_inst_executed_op_hmul_pred_on_x2.sum",
                                  "derived__smsp__sass_thread_inst_executed_op_hfma_pred_on_x4.sum",
                                  "derived__smsp__sass_thread_inst_executed_op_hfma_pred_on_x2.sum",
                                  "derived__smsp__sass_thread_inst_executed_op_ffma_pred_on_x2.sum",
                                  "derived__smsp__sass_thread_inst_executed_op_dfma_pred_on_x2.sum",
                                  "sm__ops_path_tensor_src_bf16_dst_fp32.sum", "sm__ops_path_tensor_src_fp16.sum",
                                  "sm__ops_path_tensor_src_tf32_dst_fp32.sum", "sm__ops_path_tensor_src_fp8.sum",
                                  "sm__inst_executed_pipe_tensor.sum", "sm__inst_executed_pipe_tensor_op_hmma.sum",
                                  "sm__inst_executed_pipe_tensor_op_gmma.sum", "gpc__cycles_elapsed.max"}) {
      Count(name);
    }
    for (std::string_view name :
         {kDramReadMetric, kDramWriteMetric, kDramBytesTotal, kL2BytesMetric, kL1BytesMetric}) {
      Add({.name = std::string(name), .dimension = Dimension::kBytes, .unit = "byte"});
    }
    Add({.name = std::string(kGpuTimeMetric), .dimension = Dimension::kSeconds, .unit = "ns", .to_integer = 1e9});
    Add({.name = std::string(kDramRate), .dimension = Dimension::kBytesPerSecond, .unit = "byte/s"});
    Add({.name = std::string(kSmClockMetric), .dimension = Dimension::kPerSecond, .unit = "hz"});
  }

  // Index of the kept metric that a column or row of this section and name means; -1 for one that is not kept.
  int Find(std::string_view section, std::string_view name) const {
    for (const HumanName& human : kHumanNames) {
      if (human.name == name && human.section == section) return Find({}, human.metric);
    }
    if (name == "Memory Throughput" && Contains(section, "Memory Workload")) return Find({}, kDramRate);
    if (name.ends_with(".max") || name.ends_with(".avg") || name.ends_with(".min")) {
      // One kernel has one duration, whatever roll-up was asked for.
      if (name.starts_with("gpu__time_duration.")) return Find({}, kGpuTimeMetric);
    }
    if (name == "gpu__time_duration_measure_user.sum") return Find({}, kGpuTimeMetric);
    const auto found = index_.find(std::string(name));
    if (found != index_.end()) return found->second;
    // ncu leaves ".sum" out of derived metrics.
    const auto with_sum = index_.find(std::string(name) + ".sum");
    return with_sum != index_.end() && name.starts_with("derived__") ? with_sum->second : -1;
  }

  const KeptMetric& operator[](size_t i) const { return metrics_[i]; }
  size_t size() const { return metrics_.size(); }

 private:
  void Count(std::string_view name) {
    if (!index_.contains(std::string(name))) Add({.name = std::string(name), .unit = "count"});
  }
  void Add(KeptMetric metric) {
    index_[metric.name] = static_cast<int>(metrics_.size());
    metrics_.push_back(std::move(metric));
  }
  std::vector<KeptMetric> metrics_;
  std::unordered_map<std::string, int> index_;
};

// --- Kernels.

struct Kernel {  // what the lines of one launch say
  std::string name, process_name, layer, op;
  std::array<uint32_t, 3> grid{}, block{};
  uint32_t device = 0;
  std::string cc;
  std::vector<std::pair<int, uint64_t>> values;  // index into MetricTable, integer
};

// "(64, 1, 1)", "64 1 1" or "64,1,1".
std::array<uint32_t, 3> ParseTriple(std::string_view text) {
  std::array<uint32_t, 3> triple{};
  size_t at = 0;
  bool in_number = false;
  uint64_t number = 0;
  const auto close = [&] {
    if (in_number && at < 3) triple[at++] = static_cast<uint32_t>(std::min<uint64_t>(number, UINT32_MAX));
    in_number = false;
    number = 0;
  };
  for (char c : text) {
    if (c >= '0' && c <= '9') {
      in_number = true;
      number = std::min<uint64_t>(number * 10 + static_cast<uint64_t>(c - '0'), UINT32_MAX);
    } else {
      close();
    }
  }
  close();
  return triple;
}

// `7  "<default domain>:layer1:none:…"  "<default domain>:layer1.conv2:none:…"`: the names of the ranges, outermost
// first. After a range's name come six attribute fields.
std::vector<std::string> NvtxRanges(std::string_view text) {
  std::vector<std::string> names;
  for (size_t open = text.find('"'); open != std::string_view::npos; open = text.find('"', open)) {
    const size_t close = text.find('"', open + 1);
    if (close == std::string_view::npos) break;
    std::string_view range = text.substr(open + 1, close - open - 1);
    open = close + 1;
    const size_t domain = range.find(':');
    if (domain == std::string_view::npos) continue;
    range.remove_prefix(domain + 1);
    constexpr ptrdiff_t kAttributes = 6;
    if (std::count(range.begin(), range.end(), ':') >= kAttributes) {
      for (ptrdiff_t i = 0; i < kAttributes; ++i) range = range.substr(0, range.rfind(':'));
    }
    if (!range.empty()) names.emplace_back(range);
    if (names.size() == 64) break;
  }
  return names;
}

// Ranges of torch's emit_nvtx ("aten::conv2d, seq = 12, sizes = …") are operators; all others are layers.
void ReadNvtx(std::string_view text, Kernel* kernel) {
  for (const std::string& name : NvtxRanges(text)) {
    if (name.starts_with("aten::") || name.starts_with("autograd::") || Contains(name, "Backward0")) {
      kernel->op = name.substr(0, name.find(','));
    } else {
      if (!kernel->layer.empty()) kernel->layer += '/';
      kernel->layer += name;
    }
  }
}

std::string_view ChipOfComputeCapability(std::string_view cc) {
  constexpr std::pair<std::string_view, std::string_view> kChips[] = {
      {"7.0", "GV100"}, {"7.5", "TU104"}, {"8.0", "GA100"}, {"8.6", "GA102"},
      {"8.9", "AD102"}, {"9.0", "GH100"}, {"10.0", "GB100"}};
  for (const auto& [key, chip] : kChips) {
    if (cc == key) return chip;
  }
  return {};
}

class Importer {
 public:
  Importer(const std::string& path, const NcuOptions& options) : path_(path), options_(options), reader_(path) {}

  ImportResult Run() {
    if (!reader_.error().empty()) return Fail(reader_.error());
    mark_ = options_.decimal != DecimalMark::kUnknown ? options_.decimal : DetectMark();
    if (!result_.error.empty()) return std::move(result_);
    std::string_view line;
    bool begins = false;
    while (reader_.Next(repeat_, &line, &begins)) TakeLine(line, begins && !repeat_.empty());
    if (!reader_.error().empty()) return Fail(path_ + ": " + reader_.error());
    FinishKernel();
    if (columns_.count == 0) {
      return Fail(path_ +
                  ": no table of ncu in it: no line with the columns \"ID\" and \"Kernel Name\" "
                  "(write it with: ncu --import report.ncu-rep --page raw --csv --print-units base)");
    }
    if (result_.kernels == 0) return Fail(path_ + ": the table has no kernels");
    MakeProfile();
    MakeWarnings();
    return std::move(result_);
  }

 private:
  struct WideColumn {
    size_t index;
    int metric;
    double scale;
  };
  using Unit = std::pair<std::string, std::optional<double>>;  // and what a value in it is to be multiplied with
  struct Remembered {
    std::string section, name;
    std::string raw;  // the line's text of the two, up to the unit's opening quote; empty: no short way
    int metric = -1;
    std::vector<Unit> units;
  };
  struct Sum {
    Kernel kernel;
    uint64_t order = 0;
    uint64_t launches = 0;
    std::vector<std::pair<int, Stat>> stats;
  };
  struct Launch {          // a kernel as the lines name it
    std::string identity;  // the text between the ID and the metric
    std::string process;   // its ID
    Sum* sum = nullptr;    // in keys_
  };
  // How many are remembered, each at the place that its hash gives: memory does not grow with the file.
  static constexpr size_t kLaunches = 4096;
  static constexpr size_t kLongestIdentity = 4096;  // bytes

  ImportResult Fail(std::string error) {
    ImportResult failed;
    failed.error = std::move(error);
    return failed;
  }

  // Looks for the first value that proves the file's decimal mark.
  DecimalMark DetectMark() {
    constexpr uint64_t kEnough = 64u << 20;
    Columns columns;
    std::string_view line;
    DecimalMark mark = DecimalMark::kUnknown;
    while (mark == DecimalMark::kUnknown && reader_.offset() < kEnough && reader_.Next(&line)) {
      if (reader_.line_number() == 1 && (line.starts_with("\xFF\xFE") || line.starts_with("\xFE\xFF"))) {
        result_.error = path_ + ": is UTF-16; convert it first: iconv -f UTF-16 -t UTF-8 " + path_;
        return mark;
      }
      if (!SplitCsv(line, &fields_, &arena_)) continue;
      if (columns.count == 0) {
        columns = ReadHeader(fields_);
        continue;
      }
      if (fields_.size() != columns.count) continue;
      if (!columns.wide()) {
        if (ParseNumber(fields_[columns.value], DecimalMark::kUnknown)) mark = EvidenceOf(fields_[columns.value]);
        continue;
      }
      for (size_t i = columns.kernel + 1; i < fields_.size() && mark == DecimalMark::kUnknown; ++i) {
        if (i == columns.cc || i == columns.block || i == columns.grid) continue;
        if (ParseNumber(fields_[i], DecimalMark::kUnknown)) mark = EvidenceOf(fields_[i]);
      }
    }
    reader_.Rewind();
    return mark;
  }

  void TakeLine(std::string_view line, bool repeats) {
    if (reader_.line_number() == 1 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
    // Long tables repeat everything before the metric for each metric of a kernel, and kernels again and again.
    if (!repeats && TakeKnownLaunch(line)) return;
    if (repeats) {
      if (TakeKnownMetric(line.substr(repeat_.size()))) return;
      if (SplitCsv(line.substr(repeat_.size()), &fields_, &arena_) &&
          fields_.size() == columns_.count - repeated_fields_) {
        ++result_.rows;
        TakeMetric(repeated_fields_);
        return;
      }
    }
    if (!SplitCsv(line, &fields_, &arena_)) {
      ++result_.skipped_lines;
      return;
    }
    // A file may hold several tables: `ncu … >> file`, or one a process.
    if (const Columns header = ReadHeader(fields_); header.count > 0) {
      FinishKernel();
      columns_ = header;
      StartTable();
      return;
    }
    if (columns_.count == 0 || fields_.size() != columns_.count) {
      ++result_.skipped_lines;
      return;
    }
    if (columns_.wide()) {
      TakeWideLine();
    } else {
      TakeLongLine(line);
    }
  }

  void StartTable() {
    repeat_.clear();
    wide_.clear();
    memory_.clear();
    launches_.clear();
    const size_t first = std::min(columns_.section, columns_.metric);
    regular_ = !columns_.wide() && columns_.id == 0 && first > 0 && columns_.unit == columns_.metric + 1 &&
               columns_.value == columns_.metric + 2 && columns_.count == columns_.metric + 3 &&
               (columns_.section == kNone || columns_.section + 1 == columns_.metric);
    if (regular_) launches_.resize(kLaunches);
    if (!columns_.wide()) return;
    wide_names_.assign(fields_.begin(), fields_.end());
    expect_units_ = true;
  }

  void TakeWideLine() {
    if (expect_units_) {
      expect_units_ = false;
      // The units' line has no kernel. Without it (--print-units base of old versions) base units are meant.
      const bool units = fields_[columns_.kernel].empty();
      for (size_t i = 0; i < columns_.count; ++i) {
        const int metric = table_.Find({}, wide_names_[i]);
        if (metric < 0) continue;
        if (const auto scale = Scale(metric, units ? fields_[i] : std::string_view{}, !units)) {
          wide_.push_back({i, metric, *scale});
        }
      }
      if (units) return;
    }
    if (fields_[columns_.kernel].empty()) {
      ++result_.skipped_lines;
      return;
    }
    ++result_.rows;
    FinishKernel();
    StartKernel();
    for (const WideColumn& column : wide_) TakeValue(column.metric, fields_[column.index], column.scale);
  }

  void TakeLongLine(std::string_view line) {
    const size_t first_metric_field = std::min(columns_.section, columns_.metric);
    ++result_.rows;
    const std::string id(fields_[columns_.id]);
    const std::string process(columns_.process_id == kNone ? std::string_view{} : fields_[columns_.process_id]);
    const bool starts = !open_ || id != id_ || process != process_;
    if (starts) {
      FinishKernel();
      StartKernel();
      id_ = id;
      process_ = process;
    }
    repeat_.clear();
    repeated_fields_ = 0;
    const std::string_view first = fields_[first_metric_field];
    const bool in_line = first.data() > line.data() && first.data() + first.size() <= line.data() + line.size();
    if (first_metric_field > 0 && first_metric_field < std::min(columns_.unit, columns_.value) && in_line) {
      const char* at = first.data();
      if (at[-1] == '"') --at;
      repeat_.assign(line.data(), at);
      repeated_fields_ = first_metric_field;
      if (starts && regular_) RememberLaunch(line);
    }
    TakeMetric(0);
  }

  // --- The short ways, for lines of which every part but the value was seen before, byte for byte. What is equal to
  // bytes that were split into fields once holds the same fields; so a quote inside a value or a unit sends a line
  // the long way, and nothing else needs to be looked at. Tables of another shape than ncu's own go the long way,
  // too.

  // Where the parts of the line of a regular table are that was just split: its ID, what identifies the launch.
  void RememberLaunch(std::string_view line) {
    const size_t identity = IdentityOffset(line);
    if (identity == 0 || identity >= repeat_.size() || repeat_.size() - identity > kLongestIdentity) return;
    identity_.assign(repeat_, identity);
  }

  // `"123",` at the beginning of a line: its length; 0 when it begins otherwise.
  static size_t IdentityOffset(std::string_view line) {
    if (line.empty() || line[0] != '"') return 0;
    size_t i = 1;
    while (i < line.size() && line[i] >= '0' && line[i] <= '9') ++i;
    return i > 1 && line.substr(i, 2) == "\"," ? i + 2 : 0;
  }

  // Eight bytes at a time. A collision costs time, not a result.
  static size_t SlotOf(std::string_view text) {
    uint64_t hash = text.size();
    for (; text.size() >= 8; text.remove_prefix(8)) {
      uint64_t word;
      std::memcpy(&word, text.data(), sizeof word);
      hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 32;
    }
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x9E3779B97F4A7C15u;
    return (hash >> 40) % kLaunches;
  }

  static const Unit* FindUnit(const Remembered& known, std::string_view unit) {
    for (const Unit& candidate : known.units) {
      if (candidate.first == unit) return &candidate;
    }
    return nullptr;
  }

  // Takes the line of the open kernel of which `rest` stands behind repeat_; false, with nothing done: the long way.
  bool TakeKnownMetric(std::string_view rest) {
    if (place_ + 1 >= memory_.size()) return false;
    const Remembered& known = memory_[place_ + 1];
    if (known.raw.empty() || !rest.starts_with(known.raw)) return false;
    rest.remove_prefix(known.raw.size());
    const size_t quote = rest.find('"');
    if (quote == std::string_view::npos || rest.substr(quote + 1, 2) != ",\"") return false;
    const std::string_view unit = rest.substr(0, quote);
    rest.remove_prefix(quote + 3);
    if (rest.empty() || rest.find('"') != rest.size() - 1) return false;
    const Unit* const scale = FindUnit(known, unit);
    if (scale == nullptr) return false;
    ++place_;
    ++result_.rows;
    rest.remove_suffix(1);
    if (known.metric >= 0 && scale->second) TakeValue(known.metric, rest, *scale->second);
    return true;
  }

  // Takes the first line of the next launch, of a kernel that was seen before; false, with nothing done: the long
  // way.
  bool TakeKnownLaunch(std::string_view line) {
    if (!regular_ || memory_.size() < 2 || memory_[1].raw.empty() || line.size() < 2 || line.back() != '"')
      return false;
    const Remembered& known = memory_[1];
    const size_t identity_at = IdentityOffset(line);
    if (identity_at == 0) return false;
    const std::string_view id = line.substr(1, identity_at - 3);
    if (open_ && id == id_) return false;  // not its first line
    // From the end: the value, the unit, and the first metric that every kernel begins with.
    const size_t value_at = line.rfind('"', line.size() - 2);
    if (value_at == std::string_view::npos || value_at < identity_at + 3) return false;
    if (line.substr(value_at - 2, 2) != "\",") return false;
    const size_t unit_at = line.rfind('"', value_at - 3);
    if (unit_at == std::string_view::npos) return false;
    const std::string_view head = line.substr(0, unit_at + 1);
    if (head.size() <= identity_at + known.raw.size() || !head.ends_with(known.raw)) return false;
    const size_t repeated = head.size() - known.raw.size();
    const std::string_view identity = line.substr(identity_at, repeated - identity_at);
    const Launch& launch = launches_[SlotOf(identity)];
    if (launch.sum == nullptr || launch.identity != identity) return false;
    const Unit* const scale = FindUnit(known, line.substr(unit_at + 1, value_at - 2 - unit_at - 1));
    if (scale == nullptr) return false;
    Sum* const sum = launch.sum;
    std::string process = launch.process;
    FinishKernel();  // which may put the open kernel in this one's place
    open_ = true;
    known_sum_ = sum;
    kernel_.values.clear();
    id_ = id;
    process_ = std::move(process);
    repeat_.assign(line.data(), repeated);
    repeated_fields_ = std::min(columns_.section, columns_.metric);
    place_ = 1;
    ++result_.rows;
    if (known.metric >= 0 && scale->second) {
      TakeValue(known.metric, line.substr(value_at + 1, line.size() - value_at - 2), *scale->second);
    }
    return true;
  }

  // The metric of a long line whose first `skipped` fields are not in fields_.
  void TakeMetric(size_t skipped) {
    const auto field = [&](size_t column) {
      return column == kNone ? std::string_view{} : fields_[column - skipped];
    };
    const std::string_view section = field(columns_.section), name = field(columns_.metric),
                           unit = field(columns_.unit);
    if (name.empty()) return;  // a rule's line
    // Kernels list the same metrics in the same order: the line of the kernel before tells what this one is.
    if (++place_ >= memory_.size()) memory_.resize(place_ + 1);
    Remembered& known = memory_[place_];
    if (known.name != name || known.section != section) {
      known.section = section;
      known.name = name;
      known.metric = table_.Find(section, name);
      known.units.clear();
      known.raw.clear();
      if (regular_) known.raw = RawMetric();
    }
    const Unit* remembered = FindUnit(known, unit);
    if (remembered == nullptr) {
      constexpr size_t kMostUnits = 8;
      if (known.units.size() >= kMostUnits) known.units.clear();
      known.units.emplace_back(unit, known.metric < 0 ? std::nullopt : Scale(known.metric, unit, false));
      remembered = &known.units.back();
    }
    if (known.metric >= 0 && remembered->second) TakeValue(known.metric, field(columns_.value), *remembered->second);
  }

  // The text of a line of a regular table from its section's or metric's quote up to and with the unit's, when all of
  // its last fields are quoted and nothing in them is escaped; else empty.
  std::string RawMetric() const {
    const size_t tail = columns_.section == kNone ? 3 : 4;  // fields
    const auto quoted = [](std::string_view field) { return "\"" + std::string(field) + "\","; };
    std::string raw;
    for (size_t i = fields_.size() - tail; i + 2 < fields_.size(); ++i) {
      if (fields_[i].find('"') != std::string_view::npos) return {};
      raw += quoted(fields_[i]);
    }
    return raw + '"';
  }

  // From `unit` to the metric's integer; nullopt, and remembered for a warning, when the unit does not fit.
  std::optional<double> Scale(int metric, std::string_view unit, bool assume_base) {
    const KeptMetric& kept = table_[static_cast<size_t>(metric)];
    const auto scale = ParseUnit(unit);
    if (assume_base && unit.empty()) {
      // ncu's base unit of time is the nanosecond.
      return kept.dimension == Dimension::kSeconds ? 1 : kept.to_integer;
    }
    // A raw table of old versions leaves the unit of counts and bytes empty.
    const bool plain = scale && scale->dimension == Dimension::kCount && scale->factor == 1 && unit.empty();
    if (scale && (scale->dimension == kept.dimension || (plain && kept.dimension == Dimension::kBytes))) {
      return scale->factor * kept.to_integer;
    }
    if (bad_units_.size() < 64) bad_units_.insert(kept.name + " in \"" + std::string(unit) + "\"");
    return std::nullopt;
  }

  void TakeValue(int metric, std::string_view text, double scale) {
    const auto number = ParseNumber(text, mark_);
    if (!number) {
      if (!text.empty()) ++unreadable_;
      return;
    }
    if (mark_ == DecimalMark::kUnknown && text.find_first_of(".,") != std::string_view::npos) ++ambiguous_;
    const double value = *number * scale;
    if (!(value >= 0) || value > 1.8e19) {
      ++out_of_range_;
      return;
    }
    kernel_.values.emplace_back(metric, static_cast<uint64_t>(std::llround(std::min(value, 9.2e18))));
  }

  void StartKernel() {
    open_ = true;
    place_ = 0;
    known_sum_ = nullptr;
    identity_.clear();
    kernel_.values.clear();
    kernel_.name = fields_[columns_.kernel];
    const auto text = [&](size_t column) { return column == kNone ? std::string_view{} : fields_[column]; };
    kernel_.process_name = text(columns_.process_name);
    kernel_.block = ParseTriple(text(columns_.block));
    kernel_.grid = ParseTriple(text(columns_.grid));
    kernel_.device = ParseTriple(text(columns_.device))[0];
    kernel_.cc = text(columns_.cc);
    kernel_.layer.clear();
    kernel_.op.clear();
    ReadNvtx(text(columns_.push_pop), &kernel_);
    if (kernel_.layer.empty()) ReadNvtx(text(columns_.start_stop), &kernel_);
  }

  void FinishKernel() {
    if (!open_) return;
    open_ = false;
    ++result_.kernels;
    DeriveTraffic();
    Sum& sum = known_sum_ != nullptr ? *known_sum_ : SumOfKernel();
    ++sum.launches;
    for (size_t i = 0; i < kernel_.values.size(); ++i) {
      const auto& [metric, value] = kernel_.values[i];
      auto stat = sum.stats.begin() + static_cast<ptrdiff_t>(std::min(i, sum.stats.size()));
      if (stat == sum.stats.end() || stat->first != metric) {  // not where it was in the launch before
        stat =
            std::find_if(sum.stats.begin(), sum.stats.end(), [id = metric](const auto& s) { return s.first == id; });
      }
      if (stat == sum.stats.end()) stat = sum.stats.insert(sum.stats.end(), {metric, Stat{}});
      stat->second.Add(value);
    }
  }

  // Where the launches of a kernel like kernel_ are summed up.
  Sum& SumOfKernel() {
    if (process_names_.size() < 64) process_names_.insert(kernel_.process_name);
    if (compute_capabilities_.size() < 64) compute_capabilities_.insert(kernel_.cc);
    key_.clear();
    const auto append = [&](const auto& value) { key_.append(reinterpret_cast<const char*>(&value), sizeof value); };
    append(kernel_.grid);
    append(kernel_.block);
    append(kernel_.device);
    for (const std::string* part : {&kernel_.name, &kernel_.layer, &kernel_.op}) {
      key_ += *part;
      key_ += '\0';
    }
    auto [entry, is_new] = keys_.try_emplace(key_);
    Sum& sum = entry->second;
    if (is_new) {
      sum.kernel = kernel_;
      sum.order = keys_.size();
    }
    if (!identity_.empty()) launches_[SlotOf(identity_)] = {identity_, process_, &sum};
    return sum;
  }

  // The details page gives DRAM traffic as a rate only.
  void DeriveTraffic() {
    const int rate = dram_rate_, time = gpu_time_;
    if (std::none_of(kernel_.values.begin(), kernel_.values.end(), [&](const auto& v) { return v.first == rate; }))
      return;
    double bytes_per_s = -1, ns = -1;
    for (const auto& [metric, value] : kernel_.values) {
      const std::string_view name = table_[static_cast<size_t>(metric)].name;
      if (name == kDramReadMetric || name == kDramWriteMetric || name == kDramBytesTotal) return;
      if (metric == rate) bytes_per_s = static_cast<double>(value);
      if (metric == time) ns = static_cast<double>(value);
    }
    if (bytes_per_s < 0 || ns < 0) return;
    derived_traffic_ = true;
    kernel_.values.emplace_back(table_.Find({}, kDramBytesTotal),
                                static_cast<uint64_t>(std::llround(bytes_per_s * ns * 1e-9)));
  }

  void MakeProfile() {
    cli::Run run;
    run.key.source = SourceKind::kImported;
    run.key.collector = "ncu";
    run.processes = 1;
    run.tier = 6;
    std::string model = options_.model;
    if (model.empty() && process_names_.size() == 1) model = *process_names_.begin();
    if (model.empty()) model = "program";
    run.key.models = {model};
    run.models[model] = ModelInfo{.class_name = model};
    DeviceInfo device;
    device.chip = compute_capabilities_.size() == 1
                      ? std::string(ChipOfComputeCapability(*compute_capabilities_.begin()))
                      : std::string();
    device.name = options_.gpu.empty() ? device.chip : options_.gpu;
    run.key.gpu = device.name;
    run.devices = {device};
    std::set<int> used;
    for (const auto& [bytes, sum] : keys_) {
      LaunchKey key;
      key.kernel = sum.kernel.name;
      key.op = sum.kernel.op;
      key.grid = sum.kernel.grid;
      key.block = sum.kernel.block;
      key.device = sum.kernel.device;
      key.layer = LayerKey{model, sum.kernel.layer};
      LayerInfo& layer = run.layers[key.layer];
      if (layer.order == 0 || layer.order > sum.order) layer.order = sum.order;
      LaunchStats& stats = run.launches[key];
      stats.launches += sum.launches;
      for (const auto& [metric, stat] : sum.stats) {
        stats.metrics[table_[static_cast<size_t>(metric)].name].Merge(stat);
        used.insert(metric);
      }
    }
    run.steps.steps = 1;  // an ncu file does not tell steps apart: all of it is one
    for (int metric : used) {
      const KeptMetric& kept = table_[static_cast<size_t>(metric)];
      result_.profile.metrics[kept.name] = MetricInfo{kept.name, kept.unit, kept.scale};
    }
    result_.profile.runs[run.key] = std::move(run);
  }

  void MakeWarnings() {
    const auto warn = [&](std::string text) { result_.warnings.push_back(path_ + ": " + std::move(text)); };
    for (const std::string& unit : bad_units_) warn(unit + ": this unit is not known here; the values were left out");
    if (unreadable_ > 0) warn(std::to_string(unreadable_) + " values are not numbers (n/a?) and were left out");
    if (out_of_range_ > 0) warn(std::to_string(out_of_range_) + " values are negative or too large; left out");
    if (ambiguous_ > 0) {
      warn(std::to_string(ambiguous_) +
           " values like \"1.234\" or \"1,234\" and nothing in the file tells which mark is the decimal one: read as "
           "a "
           "point; --decimal comma reads them the other way");
    }
    if (derived_traffic_) {
      warn("no DRAM byte counters; traffic is Memory Throughput times Duration of the details page (rounded by ncu)");
    }
    if (compute_capabilities_.size() > 1) warn("kernels of GPUs of several kinds in one file; no roofs can be drawn");
  }

  const std::string path_;
  const NcuOptions& options_;
  LineReader reader_;
  ImportResult result_;
  MetricTable table_;
  DecimalMark mark_ = DecimalMark::kUnknown;
  Columns columns_;
  std::vector<std::string_view> fields_;
  std::string arena_;

  std::vector<std::string> wide_names_;
  std::vector<WideColumn> wide_;
  bool expect_units_ = false;

  std::string repeat_;          // what the lines of the open kernel begin with
  size_t repeated_fields_ = 0;  // how many fields that is
  std::vector<Remembered> memory_;
  size_t place_ = 0;

  bool regular_ = false;  // the table begins with the ID and ends with section, metric, unit and value
  std::vector<Launch> launches_;
  std::string identity_;      // of the open kernel, where it is to be remembered
  Sum* known_sum_ = nullptr;  // of the open kernel, where its launch was remembered
  const int dram_rate_ = table_.Find({}, kDramRate), gpu_time_ = table_.Find({}, kGpuTimeMetric);

  bool open_ = false;
  std::string id_, process_;
  Kernel kernel_;
  std::string key_;
  std::unordered_map<std::string, Sum> keys_;

  std::set<std::string> process_names_, compute_capabilities_, bad_units_;
  uint64_t unreadable_ = 0, out_of_range_ = 0, ambiguous_ = 0;
  bool derived_traffic_ = false;
};

}  // namespace

ImportResult ImportNcuCsv(const std::string& path, const NcuOptions& options) {
  return Importer(path, options).Run();
}

}  // namespace rfinject::cli
