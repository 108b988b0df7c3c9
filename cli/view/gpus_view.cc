// The table of GPUs: their roofs and where these come from.
#include "cli/view/gpus_view.h"

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace rfinject::cli {
namespace {

constexpr auto kGpusLooks = std::to_array<TableLook>({
    {.column = "gpu", .title = "GPU", .width = 17, .left = true},
    {.column = "chip", .title = "chip", .width = 6, .left = true},
    // Peaks are in TFLOP/s and bandwidth in GB/s, as people say them.
    {.column = "FP64", .title = "FP64", .width = 6},
    {.column = "FP32", .title = "FP32", .width = 6},
    {.column = "FP16", .title = "FP16", .width = 6},
    {.column = "TF32tc", .title = "TF32tc", .width = 6},
    {.column = "FP16tc", .title = "FP16tc", .width = 6},
    {.column = "BF16tc", .title = "BF16tc", .width = 6},
    {.column = "FP8tc", .title = "FP8tc", .width = 6},
    {.column = "FP64tc", .title = "FP64tc", .width = 6},
    {.column = "INT8tc", .title = "INT8tc", .width = 6},
    {.column = "GB/s", .title = "GB/s", .width = 6},
    {.column = "sm_count", .title = "SMs", .width = 4},
    {.column = "source", .title = "source", .left = true, .gap = 2},
});

// By Precision.
constexpr std::array<std::string_view, kPrecisionCount> kPeaks = {"FP64",   "FP32",  "FP16",   "TF32tc", "FP16tc",
                                                                  "BF16tc", "FP8tc", "FP64tc", "INT8tc"};

using GpuColumn = ColumnOf<Gpu>;

constexpr auto kIdentity = std::to_array<GpuColumn>({
    {TextColumn("gpu"), [](const Gpu& gpu) { return Cell{std::string(gpu.name)}; }},
    {TextColumn("chip"), [](const Gpu& gpu) { return Cell{std::string(gpu.chip)}; }},
    {TextColumn("cc"), [](const Gpu& gpu) { return Cell{absl::StrCat(gpu.cc_major, ".", gpu.cc_minor)}; }},
    {CountColumn("sm_count"), [](const Gpu& gpu) { return Cell{static_cast<uint64_t>(gpu.sm_count)}; }},
    {PlainColumn("boost_hz"), [](const Gpu& gpu) { return Cell{gpu.boost_hz}; }},
});
constexpr auto kMemory = std::to_array<GpuColumn>({
    {PlainColumn("dram_bytes_per_s"), [](const Gpu& gpu) { return Cell{gpu.dram_bytes_per_s}; }},
    {PlainColumn("l2_bytes"), [](const Gpu& gpu) { return Cell{gpu.l2_bytes}; }},
    {PlainColumn("pcie_bytes_per_s"), [](const Gpu& gpu) { return Cell{gpu.pcie_bytes_per_s}; }},
    {PlainColumn("nvlink_bytes_per_s"), [](const Gpu& gpu) { return KnownCell(gpu.nvlink_bytes_per_s); }},
    {TextColumn("link_source"), [](const Gpu& gpu) { return Cell{std::string(gpu.link_source)}; }},
    {TextColumn("source"), [](const Gpu& gpu) { return Cell{std::string(gpu.source)}; }},
    {TextColumn("note"), [](const Gpu& gpu) { return Cell{std::string(gpu.note)}; }},
});
constexpr auto kEmpirical = std::to_array<GpuColumn>({
    {PlainColumn("empirical_dram_bytes_per_s"),
     [](const Gpu& gpu) { return KnownCell(gpu.empirical_dram_bytes_per_s); }},
    {PlainColumn("empirical_l2_bytes_per_s"), [](const Gpu& gpu) { return KnownCell(gpu.empirical_l2_bytes_per_s); }},
    {PlainColumn("empirical_l1_bytes_per_s"), [](const Gpu& gpu) { return KnownCell(gpu.empirical_l1_bytes_per_s); }},
    {TextColumn("empirical_source"), [](const Gpu& gpu) { return Cell{std::string(gpu.empirical_source)}; }},
});

// "peak_fp64_flop_per_s" and so on, one for each precision. The names live for ever, because columns refer to them.
std::string_view PeakName(std::string_view prefix, size_t precision) {
  static auto* const names = new std::map<std::string, std::string>;
  const std::string name = absl::StrCat(std::string(prefix), std::string(kPrecisionNames[precision]), "_flop_per_s");
  return names->try_emplace(name, name).first->second;
}

using Gpus = std::shared_ptr<const std::vector<const Gpu*>>;

void AddPeaks(std::string_view prefix, std::array<double, kPrecisionCount> Gpu::*peaks, const Gpus& gpus,
              RowSet* set) {
  for (size_t i = 0; i < kPrecisionCount; ++i) {
    set->columns.push_back({{.name = PeakName(prefix, i)},
                            [gpus, peaks, i](size_t row) { return KnownCell(((*gpus)[row]->*peaks)[i]); }});
  }
}

// The columns of CSV and JSON.
RowSet DataOf(const Gpus& gpus) {
  RowSet set;
  set.size = gpus->size();
  const auto add = [&](std::span<const GpuColumn> columns) {
    Append(
        columns, [gpus](size_t i) -> const Gpu& { return *(*gpus)[i]; }, &set);
  };
  add(kIdentity);
  AddPeaks("peak_", &Gpu::peak, gpus, &set);
  add(kMemory);
  AddPeaks("empirical_", &Gpu::empirical_peak, gpus, &set);
  add(kEmpirical);
  return set;
}

}  // namespace

Document GpuDocument(std::vector<const Gpu*> given) {
  const Gpus gpus = std::make_shared<const std::vector<const Gpu*>>(std::move(given));
  Document document{.title = "rfinject gpus"};
  Section section{.id = "gpus"};
  section.table = Table{.rows = DataOf(gpus), .looks = {kGpusLooks.begin(), kGpusLooks.end()}};
  RowSet& rows = section.table->rows;
  for (size_t i = 0; i < kPrecisionCount; ++i) {
    rows.columns.push_back(
        {{.name = kPeaks[i]}, [gpus, i](size_t row) { return KnownCell((*gpus)[row]->peak[i] / 1e12); }});
  }
  rows.AddText("GB/s", [gpus](size_t row) { return absl::StrFormat("%.0f", (*gpus)[row]->dram_bytes_per_s / 1e9); });
  section.notes = {
      {.text =
           "Peaks are dense (no 2:4 sparsity), at boost clock; tc: tensor cores. Sources: the letters are explained "
           "at the top of gpus.csv (V, A, H, ...: NVIDIA's datasheets; C: computed from CUPTI's constants; U: not "
           "verified). What published benchmarks reached is in --format csv and json (empirical_*)."}};
  document.sections.push_back(std::move(section));
  document.data.Add("schema", "rfinject.gpus/1").Add("gpus", DataOf(gpus));
  document.lines = {DataOf(gpus)};
  return document;
}

}  // namespace rfinject::cli
