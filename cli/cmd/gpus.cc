#include "gpus/gpus.h"

#include <array>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/launch.h"
#include "cli/cmd/options.h"
#include "cli/emit/cell_text.h"
#include "cli/emit/csv_writer.h"
#include "cli/emit/json_writer.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kUsage =
    "rfinject gpus [NAME...]\n\n"
    "The GPUs whose roofs are known: dense datasheet peaks in TFLOP/s, memory bandwidth in GB/s, and where each row "
    "comes\n"
    "from. The names are those that --estimate takes.";

constexpr Option kOptions[] = {{"format", 0, "FORMAT", "table (default), json or csv", "table json csv"}};

Cell Tera(const Gpu& gpu, Precision precision) {
  const double peak = gpu.peak[static_cast<size_t>(precision)];
  return peak > 0 ? Cell{peak / 1e12} : Cell{};
}
template <Precision kPrecision>
Cell TeraOf(const Gpu& gpu) {
  return Tera(gpu, kPrecision);
}
template <size_t kPrecision>
Cell PeakOf(const Gpu& gpu) {
  return KnownCell(gpu.peak[kPrecision]);
}
template <size_t kPrecision>
Cell EmpiricalPeakOf(const Gpu& gpu) {
  return KnownCell(gpu.empirical_peak[kPrecision]);
}

using GpuColumn = ColumnOf<Gpu>;

// The table's columns of peaks are in TFLOP/s, those of bandwidth in GB/s, as people say them.
constexpr auto kTable = std::to_array<GpuColumn>({
    {{.name = "FP64", .data = false, .table = {.place = 30, .title = "FP64", .width = 6}}, TeraOf<Precision::kFp64>},
    {{.name = "FP32", .data = false, .table = {.place = 40, .title = "FP32", .width = 6}}, TeraOf<Precision::kFp32>},
    {{.name = "FP16", .data = false, .table = {.place = 50, .title = "FP16", .width = 6}}, TeraOf<Precision::kFp16>},
    {{.name = "TF32tc", .data = false, .table = {.place = 60, .title = "TF32tc", .width = 6}},
     TeraOf<Precision::kTf32Tensor>},
    {{.name = "FP16tc", .data = false, .table = {.place = 70, .title = "FP16tc", .width = 6}},
     TeraOf<Precision::kFp16Tensor>},
    {{.name = "BF16tc", .data = false, .table = {.place = 80, .title = "BF16tc", .width = 6}},
     TeraOf<Precision::kBf16Tensor>},
    {{.name = "FP8tc", .data = false, .table = {.place = 90, .title = "FP8tc", .width = 6}},
     TeraOf<Precision::kFp8Tensor>},
    {{.name = "FP64tc", .data = false, .table = {.place = 100, .title = "FP64tc", .width = 6}},
     TeraOf<Precision::kFp64Tensor>},
    {{.name = "GB/s", .kind = Kind::kText, .data = false, .table = {.place = 110, .title = "GB/s", .width = 6}},
     [](const Gpu& gpu) { return Cell{absl::StrFormat("%.0f", gpu.dram_bytes_per_s / 1e9)}; }},
});

constexpr auto kIdentity = std::to_array<GpuColumn>({
    {{.name = "gpu", .kind = Kind::kText, .table = {.place = 10, .title = "GPU", .width = 17, .left = true}},
     [](const Gpu& gpu) { return Cell{std::string(gpu.name)}; }},
    {{.name = "chip", .kind = Kind::kText, .table = {.place = 20, .title = "chip", .width = 5, .left = true}},
     [](const Gpu& gpu) { return Cell{std::string(gpu.chip)}; }},
    {{.name = "cc", .kind = Kind::kText},
     [](const Gpu& gpu) { return Cell{absl::StrCat(gpu.cc_major, ".", gpu.cc_minor)}; }},
    {{.name = "sm_count", .kind = Kind::kCount, .table = {.place = 120, .title = "SMs", .width = 4}},
     [](const Gpu& gpu) { return Cell{static_cast<uint64_t>(gpu.sm_count)}; }},
    {{.name = "boost_hz"}, [](const Gpu& gpu) { return Cell{gpu.boost_hz}; }},
});
constexpr auto kMemory = std::to_array<GpuColumn>({
    {{.name = "dram_bytes_per_s"}, [](const Gpu& gpu) { return Cell{gpu.dram_bytes_per_s}; }},
    {{.name = "l2_bytes"}, [](const Gpu& gpu) { return Cell{gpu.l2_bytes}; }},
    {{.name = "pcie_bytes_per_s"}, [](const Gpu& gpu) { return Cell{gpu.pcie_bytes_per_s}; }},
    {{.name = "nvlink_bytes_per_s"}, [](const Gpu& gpu) { return KnownCell(gpu.nvlink_bytes_per_s); }},
    {{.name = "link_source", .kind = Kind::kText}, [](const Gpu& gpu) { return Cell{std::string(gpu.link_source)}; }},
    {{.name = "source", .kind = Kind::kText, .table = {.place = 130, .title = "source", .left = true}},
     [](const Gpu& gpu) { return Cell{std::string(gpu.source)}; }},
    {{.name = "note", .kind = Kind::kText}, [](const Gpu& gpu) { return Cell{std::string(gpu.note)}; }},
});
constexpr auto kEmpirical = std::to_array<GpuColumn>({
    {{.name = "empirical_dram_bytes_per_s"},
     [](const Gpu& gpu) { return KnownCell(gpu.empirical_dram_bytes_per_s); }},
    {{.name = "empirical_l2_bytes_per_s"}, [](const Gpu& gpu) { return KnownCell(gpu.empirical_l2_bytes_per_s); }},
    {{.name = "empirical_l1_bytes_per_s"}, [](const Gpu& gpu) { return KnownCell(gpu.empirical_l1_bytes_per_s); }},
    {{.name = "empirical_source", .kind = Kind::kText},
     [](const Gpu& gpu) { return Cell{std::string(gpu.empirical_source)}; }},
});

// "peak_fp64_flop_per_s" and so on, a column a precision.
template <size_t... kPrecisions>
std::vector<GpuColumn> PeakColumns(bool empirical, std::index_sequence<kPrecisions...>) {
  static const auto* const kNames = [] {
    auto* const names = new std::vector<std::string>;
    for (const char* prefix : {"peak_", "empirical_"}) {
      for (const std::string_view precision : kPrecisionNames) {
        names->push_back(prefix + std::string(precision) + "_flop_per_s");
      }
    }
    return names;
  }();
  return {GpuColumn{{.name = (*kNames)[kPrecisions + (empirical ? kPrecisionCount : 0)]},
                    empirical ? EmpiricalPeakOf<kPrecisions> : PeakOf<kPrecisions>}...};
}

RowSet RowsOf(const std::vector<const Gpu*>& gpus) {
  RowSet set;
  set.size = gpus.size();
  const auto gpu = [&gpus](size_t i) -> const Gpu& { return *gpus[i]; };
  const auto add = [&](std::span<const GpuColumn> columns) { Append(columns, gpu, &set); };
  constexpr auto kAll = std::make_index_sequence<kPrecisionCount>();
  add(kIdentity);
  add(PeakColumns(false, kAll));
  add(kMemory);
  add(PeakColumns(true, kAll));
  add(kEmpirical);
  add(kTable);
  return set;
}

void WriteTable(const RowSet& gpus, std::ostream& out) {
  TextGrid grid;
  grid.mark = "";
  const std::vector<const Column*> columns = ShownIn(gpus, &ColumnInfo::table);
  for (const Column* column : columns) grid.columns.push_back(GridColumnOf(column->info.table));
  grid.columns.back().gap = 2;
  for (size_t i = 0; i < gpus.size; ++i) {
    GridLine& line = grid.lines.emplace_back();
    for (const Column* column : columns) {
      line.cells.push_back(TableText(column->info, column->info.table, column->value(i)));
    }
  }
  WriteGrid(grid, kAnyWidth, /*color=*/false, out);
  out << "\nPeaks are dense (no 2:4 sparsity), at boost clock; tc: tensor cores. Sources: the letters are "
         "explained at the\n"
         "top of gpus.csv (V, A, H, ...: NVIDIA's datasheets; C: computed from CUPTI's constants; U: not "
         "verified).\n"
         "What published benchmarks reached is in --format csv and json (empirical_*).\n";
}

RowSet DataOf(RowSet gpus) {
  std::erase_if(gpus.columns, [](const Column& column) { return !column.info.data; });
  return gpus;
}

}  // namespace

std::string UnknownGpu(std::string_view name) {
  const Gpu* nearest[3];
  std::string names;
  for (const Gpu* gpu : NearestGpus(name, nearest)) names += (names.empty() ? "" : ", ") + std::string(gpu->name);
  return std::string(name) + ": no such GPU in the table" + (names.empty() ? "" : "; nearest: " + names) +
         " (rfinject gpus lists all)";
}

VerbHelp GpusHelp() { return {kUsage, {std::begin(kOptions), std::end(kOptions)}, kGpus}; }

int GpusMain(Arguments arguments) {
  ParsedOptions parsed;
  if (const auto code = ParseOptions("gpus", GpusHelp(), arguments, WordPolicy::kAnywhere, &parsed)) return *code;
  std::vector<const Gpu*> gpus;
  for (const char* name : parsed.words) {
    const Gpu* gpu = FindBoard(name);
    if (gpu == nullptr) return UsageError("gpus", UnknownGpu(name));
    gpus.push_back(gpu);
  }
  if (gpus.empty()) {
    for (const Gpu& gpu : AllGpus()) gpus.push_back(&gpu);
  }
  const std::string format = parsed.Value("format", "table");
  std::ostringstream text;
  if (format == "table") {
    WriteTable(RowsOf(gpus), text);
  } else if (format == "csv") {
    WriteCsv(std::vector<RowSet>{DataOf(RowsOf(gpus))}, CsvTexts::kForSpreadsheets, text);
  } else if (format == "json") {
    JsonWriter json(text);
    json.BeginObject();
    json.Member("schema", "rfinject.gpus/1");
    json.Rows("gpus", DataOf(RowsOf(gpus)));
    json.EndObject();
  } else {
    return UsageError("gpus", "--format " + format + ": there are table, json and csv");
  }
  Print(std::move(text).str());
  return 0;
}

}  // namespace rfinject::cli
