// Feeds bytes to the import of ncu's CSV. Whatever they are, it must end soon and within bounded memory, and either
// fail with the file's name and a reason or give the launches that it says it found.
//
// Lines that repeat others are compared with them and not split into fields (ncu_repeats.h). A column behind the last
// makes a table of another shape than ncu's own, for which that is not done: both must give the same.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/import/ncu/line_reader.h"
#include "cli/import/ncu/ncu_csv.h"
#include "gpus/counters.h"

namespace {

using namespace rfinject;       // NOLINT: the harness is all there is here
using namespace rfinject::cli;  // NOLINT

constexpr char kName[] = "fuzz";

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "ncu_csv_fuzz: %s\n", what);
  std::abort();
}

// `text` with an empty column behind the last of every line.
std::string WithAnotherColumn(std::string_view text) {
  std::string wider;
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    const bool carriage_return = line.ends_with('\r');
    if (carriage_return) line.remove_suffix(1);
    wider.append(line).append(",\"\"").append(carriage_return ? "\r" : "");
    if (newline != std::string_view::npos) wider += '\n';
  }
  return wider;
}

absl::StatusOr<Imported> Import(std::string_view text, const ImportOptions& options) {
  LineReader lines(kName, text);
  return ImportNcuCsv(lines, options);
}

// --- Files by schema: tables of both pages, with every column that the import knows, and values of every kind in
// each.

class Maker {
 public:
  explicit Maker(std::mt19937_64& random) : random_(random) {}

  std::string File() {
    std::string file = OneIn(16) ? "\xEF\xBB\xBF" : "";
    for (uint64_t tables = OneIn(6) ? 2 : 1; tables > 0; --tables) {
      if (OneIn(4)) file += "==PROF== Connected" + End();
      OneIn(2) ? Long(&file) : Wide(&file);
    }
    return file;
  }

 private:
  bool OneIn(uint64_t count) { return random_() % count == 0; }
  template <size_t size>
  std::string Any(const char* const (&words)[size]) {
    return words[random_() % size];
  }
  std::string End() { return OneIn(24) ? "\r\n" : OneIn(64) ? "\r" : OneIn(128) ? "" : "\n"; }

  std::string Line(const std::vector<std::string>& fields) {
    std::string line;
    for (size_t i = 0; i < fields.size(); ++i) {
      const bool quoted = !OneIn(24);
      line += (i == 0 ? "" : ",") + std::string(quoted ? "\"" : "");
      for (const char c : fields[i]) line += c == '"' && quoted ? "\"\"" : std::string(1, c);
      if (quoted && !OneIn(256)) line += '"';
    }
    if (OneIn(48)) line += ",\"more\"";
    if (OneIn(128)) line.resize(line.size() / 2);
    return line + End();
  }

  std::string Value() {
    static constexpr const char* kUsual[] = {"0", "12", "3.50", "1,024", "1.024", "2,048.5", "1 234,5", "7"};
    static constexpr const char* kOdd[] = {"",     "n/a",  "-5",       "1e300", "18446744073709551616",
                                           "nan",  "inf",  "1.2.3,4",  ",,,",   "\"",
                                           "a\nb", "\xFF", "\x1b[31m", "0x10",  "+1",
                                           " 7 "};
    if (OneIn(64)) return std::string(random_() % 70'000, '9');
    return OneIn(5) ? Any(kOdd) : Any(kUsual);
  }
  std::string Unit() {
    static constexpr const char* kUnits[] = {
        "",       "byte",         "Kbyte", "Mbyte",         "usecond", "nsecond",      "inst", "%",
        "second", "Gbyte/second", "hz",    "cycle/nsecond", "warp",    "Mbyte/byte/s", "/",    "K"};
    return Any(kUnits);
  }
  std::string Metric() {
    static const std::vector<std::string>* const metrics = new std::vector<std::string>([] {
      std::vector<std::string> names = {"Duration", "Memory Throughput", "SM Frequency", "no such metric", ""};
      for (const BaseMetric& metric : kBaseMetrics) names.emplace_back(metric.name);
      for (const std::string_view name : {kDramTotalMetric, kDramRateMetric, kGpuTimeMetric, kSmClockMetric}) {
        names.emplace_back(name);
      }
      names.push_back(std::string(kGpuTimePrefix) + "max");
      return names;
    }());
    return (*metrics)[random_() % metrics->size()];
  }
  std::string Section() {
    static constexpr const char* kSections[] = {"Command line profiler metrics", "GPU Speed Of Light Throughput",
                                                "Memory Workload Analysis", "Launch Statistics", ""};
    return Any(kSections);
  }
  std::string Range() {
    static constexpr const char* kRanges[] = {"",
                                              "1 \"d:layer1:none:none:none:none:none:none\"",
                                              "2 \"d:net:n:n:n:n:n:n\" \"d:aten::conv2d, seq = 3:n:n:n:n:n:n\"",
                                              "\"",
                                              "\":\"",
                                              "\"::::::::::::\""};
    if (!OneIn(64)) return Any(kRanges);
    std::string deep;
    for (int i = 0; i < 200; ++i) deep += "\"d:r:n:n:n:n:n:n\" ";
    return deep;
  }
  // What stands in a column of this name.
  std::string Of(std::string_view column, uint64_t launch) {
    if (OneIn(40)) return Value();
    if (column == "ID") return std::to_string(launch);
    if (column == "Process ID") return std::to_string(random_() % 2);
    if (column == "Kernel Name") return OneIn(2) ? "gemm<int>" : OneIn(8) ? "" : OneIn(16) ? "\x1b]0;x\x07" : "relu";
    if (column == "Block Size" || column == "Grid Size") return OneIn(8) ? "(4294967296, -1, 1)" : "(64, 2, 1)";
    if (column == "Device") return std::to_string(random_() % 2);
    if (column == "CC") return OneIn(6) ? "99.9" : OneIn(2) ? "8.0" : "7.0";
    if (column == "Section Name") return Section();
    if (column == "Metric Name") return Metric();
    if (column == "Metric Unit") return Unit();
    if (column.find("Range") != std::string_view::npos) return Range();
    return Value();
  }

  std::vector<std::string> Columns() {
    static constexpr const char* kColumns[] = {"Process ID",
                                               "Process Name",
                                               "Kernel Name",
                                               "Block Size",
                                               "Grid Size",
                                               "Device",
                                               "CC",
                                               "thread Domain:Push/Pop_Range:PL_Type",
                                               "Id:Domain:Start/Stop_Range:PL_Type"};
    std::vector<std::string> columns = {"ID"};
    for (const std::string column : kColumns) {
      if (column == "Kernel Name" ? !OneIn(64) : OneIn(2)) columns.push_back(column);
    }
    return columns;
  }
  void Disorder(std::vector<std::string>* columns) {
    if (OneIn(8)) std::swap((*columns)[random_() % columns->size()], (*columns)[random_() % columns->size()]);
    if (OneIn(16)) columns->push_back((*columns)[random_() % columns->size()]);
    if (OneIn(16)) columns->erase(columns->begin() + static_cast<std::ptrdiff_t>(random_() % columns->size()));
  }

  void Long(std::string* file) {
    std::vector<std::string> columns = Columns();
    for (const char* column : {"Section Name", "Metric Name", "Metric Unit", "Metric Value"})
      columns.emplace_back(column);
    Disorder(&columns);
    *file += Line(columns);
    std::vector<std::string> lines;  // which repeat each other, as the import expects it
    for (uint64_t launch = 0, launches = 1 + random_() % 5; launch < launches; ++launch) {
      std::vector<std::string> fields;
      for (const std::string& column : columns) fields.push_back(Of(column, launch));
      for (uint64_t metrics = 1 + random_() % 4; metrics > 0; --metrics) {
        for (size_t i = 0; i < columns.size(); ++i) {
          if (columns[i].starts_with("Metric") || OneIn(64)) fields[i] = Of(columns[i], launch);
        }
        lines.push_back(Line(fields));
        *file += lines.back();
        if (OneIn(12)) *file += lines[random_() % lines.size()];
      }
    }
  }

  void Wide(std::string* file) {
    std::vector<std::string> columns = Columns();
    for (uint64_t metrics = 1 + random_() % 5; metrics > 0; --metrics) columns.push_back(Metric());
    Disorder(&columns);
    *file += Line(columns);
    std::vector<std::string> units;
    for (const std::string& column : columns) {
      units.push_back(Of(column, 0).empty() || column.find('_') == std::string::npos ? "" : Unit());
    }
    if (!OneIn(8)) *file += Line(units);
    for (uint64_t launch = 0, launches = 1 + random_() % 5; launch < launches; ++launch) {
      std::vector<std::string> fields;
      for (const std::string& column : columns) fields.push_back(Of(column, launch));
      *file += Line(fields);
    }
  }

  std::mt19937_64& random_;
};

}  // namespace

std::vector<uint8_t> HostileInput(std::mt19937_64& random) {
  const std::string file = Maker(random).File();
  return {file.begin(), file.end()};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<Imported> imported = Import(text, {});
  const absl::StatusOr<Imported> wider = Import(WithAnotherColumn(text), {});
  if (imported.ok() != wider.ok()) Fail("the short way and the long one do not agree that there is a table");
  if (!imported.ok()) {
    const std::string message(imported.status().message());
    if (!message.starts_with(std::string(kName) + ": ")) Fail("a failure without the file's name and a reason");
    return 0;
  }
  uint64_t launches = 0;
  for (const auto& [key, run] : imported->profile.runs) {
    for (const auto& [launch, stats] : run.launches) launches += stats.launches;
  }
  if (imported->kernels == 0 || launches != imported->kernels) Fail("launches were lost");
  if (imported->rows < imported->kernels) Fail("more launches than lines");
  if (imported->rows != wider->rows || imported->kernels != wider->kernels ||
      imported->skipped_lines != wider->skipped_lines || imported->warnings != wider->warnings ||
      imported->profile != wider->profile) {
    Fail("the short way and the long one give different things");
  }
  return 0;
}
