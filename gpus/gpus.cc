#include "gpus/gpus.h"

#include <algorithm>

#include "gpus/csv.h"

namespace rfinject {
namespace {

constexpr std::string_view kCsv =
#include "gpus/gpus.csv.inc"
    ;

constexpr std::string_view kHeader =
    "gpu,chip,cc,sm,boost_MHz,fp64,fp32,fp16_scalar,tf32_tc,fp16_tc,bf16_tc,fp8_tc,fp64_tc,int8_tc,dram_GBps,l2_MB,"
    "l1_Bpclk,pcie,nvlink_GBps,link_source,emp_fp32,emp_bf16_tc,emp_fp8_tc,emp_dram_GBps,emp_l2_GBps,emp_l1_GBps,emp_source,"
    "driver_name,memory_MiB,memory_source,board_W,dram_pJ_per_bit,chk,source,note";

using csv::Decimal;
using csv::TakeField;

// "4x16": 16 lanes of PCI Express 4.0. Bytes a second in one direction: a lane of generation 3 signals at 8 GT/s,
// each one after it twice as fast, and 128 of 130 bits are data (PCI Express Base Specification, 4.2.2).
constexpr double PcieBytesPerSecond(std::string_view text) {
  const size_t cross = text.find('x');
  if (cross != 1 || text[0] < '3' || text[0] > '5') csv::MalformedCsv();
  const double lanes = Decimal(text.substr(cross + 1), 0);
  double transfers_per_s = 8e9;
  for (char generation = '3'; generation < text[0]; ++generation) transfers_per_s *= 2;
  return lanes * transfers_per_s / 8 * 128 / 130;
}

constexpr Gpu ParseRow(std::string_view line) {
  Gpu gpu{};
  gpu.name = TakeField(line);
  gpu.chip = TakeField(line);
  const std::string_view cc = TakeField(line);
  const size_t point = cc.find('.');
  gpu.cc_major = static_cast<int>(Decimal(cc.substr(0, point), 0));
  gpu.cc_minor = static_cast<int>(Decimal(cc.substr(point + 1), 0));
  gpu.sm_count = static_cast<int>(Decimal(TakeField(line), 0));
  gpu.boost_hz = Decimal(TakeField(line), 6);
  for (double& peak : gpu.peak) peak = Decimal(TakeField(line), 12);  // the columns are in Precision's order
  gpu.dram_bytes_per_s = Decimal(TakeField(line), 9);
  // A cache's "MB" is 2^20 bytes: cudaDeviceProp::l2CacheSize is 41943040 on an A100.
  gpu.l2_bytes = Decimal(TakeField(line), 0) * (1 << 20);
  gpu.l1_bytes_per_cycle = Decimal(TakeField(line), 0);
  gpu.pcie_bytes_per_s = PcieBytesPerSecond(TakeField(line));
  gpu.nvlink_bytes_per_s = Decimal(TakeField(line), 9) / 2;
  gpu.link_source = TakeField(line);
  for (const Precision precision : {Precision::kFp32, Precision::kBf16Tensor, Precision::kFp8Tensor}) {
    gpu.empirical_peak[static_cast<size_t>(precision)] = Decimal(TakeField(line), 12);
  }
  gpu.empirical_dram_bytes_per_s = Decimal(TakeField(line), 9);
  gpu.empirical_l2_bytes_per_s = Decimal(TakeField(line), 9);
  gpu.empirical_l1_bytes_per_s = Decimal(TakeField(line), 9);
  gpu.empirical_source = TakeField(line);
  gpu.driver_name = TakeField(line);
  gpu.memory_bytes = static_cast<uint64_t>(Decimal(TakeField(line))) << 20;
  gpu.memory_source = TakeField(line);
  TakeField(line);  // board_W and dram_pJ_per_bit, which calibration/fit reads
  TakeField(line);
  gpu.check = TakeField(line);
  gpu.source = TakeField(line);
  gpu.note = line;
  if (gpu.name.empty() || gpu.chip.empty() || gpu.sm_count == 0 || gpu.boost_hz == 0 || gpu.dram_bytes_per_s == 0 ||
      gpu.peak[static_cast<size_t>(Precision::kFp32)] == 0 || gpu.peak[static_cast<size_t>(Precision::kFp64)] == 0 ||
      gpu.link_source.empty() || gpu.driver_name.empty() || gpu.memory_source.empty() != (gpu.memory_bytes == 0) ||
      gpu.check.empty() || gpu.source.empty()) {
    csv::MalformedCsv();
  }
  return gpu;
}

constexpr auto ParseTable() {
  std::array<Gpu, csv::CountRows(kCsv, kHeader)> table{};
  size_t row = 0;
  csv::ForRows(kCsv, kHeader, [&](std::string_view line) { table[row++] = ParseRow(line); });
  return table;
}

constexpr auto kTable = ParseTable();

constexpr char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool EqualIgnoringCase(std::string_view a, std::string_view b) { return std::ranges::equal(a, b, {}, Lower, Lower); }

// A name for comparing: lower case, letters and digits only ("NVIDIA A100-SXM4" and "nvidia a100 sxm4" agree). Longer
// names are cut: no row is that long.
struct Key {
  std::array<char, 64> text{};
  size_t size = 0;
  std::string_view view() const { return {text.data(), size}; }
};

Key MakeKey(std::string_view name) {
  Key key;
  for (char c : name) {
    c = Lower(c);
    const bool keep = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (keep && key.size < key.text.size()) key.text[key.size++] = c;
  }
  return key;
}

// Levenshtein distance, one row at a time.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::array<size_t, 65> row;
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

// Whether `part` stands in `whole` and does not end within a number: "a10" is no part of "a100".
bool Contains(std::string_view whole, std::string_view part) {
  const size_t at = whole.find(part);
  if (part.empty() || at == std::string_view::npos) return false;
  const size_t end = at + part.size();
  return end == whole.size() || whole[end] < '0' || whole[end] > '9';
}

size_t Distance(const Key& wanted, const Gpu& gpu) {
  const Key key = MakeKey(gpu.name);
  const bool part_of_row = wanted.size != 0 && key.view().find(wanted.view()) != std::string_view::npos;
  if (part_of_row || Contains(wanted.view(), key.view())) return 0;
  return EditDistance(wanted.view(), key.view());
}

}  // namespace

std::span<const Gpu> AllGpus() noexcept { return kTable; }

bool HasEstimates(const Gpu& gpu) noexcept { return !gpu.chip.starts_with("gfx"); }

const Gpu* FindGpu(std::string_view name) noexcept {
  for (const Gpu& gpu : kTable) {
    if (EqualIgnoringCase(gpu.name, name)) return &gpu;
  }
  return nullptr;
}

const Gpu* FindBoard(std::string_view name) noexcept {
  if (const Gpu* gpu = FindGpu(name)) return gpu;
  if (name.empty()) return nullptr;
  for (const Gpu& gpu : kTable) {
    if (gpu.name.size() > name.size() && gpu.name[name.size()] == '-' &&
        EqualIgnoringCase(gpu.name.substr(0, name.size()), name)) {
      return &gpu;
    }
  }
  return nullptr;
}

std::span<const Gpu* const> NearestGpus(std::string_view name, std::span<const Gpu*> out) noexcept {
  const Key wanted = MakeKey(name);
  std::array<size_t, kTable.size()> distance;
  for (size_t i = 0; i < kTable.size(); ++i) distance[i] = Distance(wanted, kTable[i]);
  std::array<bool, kTable.size()> taken{};
  size_t count = 0;
  for (; count < out.size() && count < kTable.size(); ++count) {
    size_t best = kTable.size();
    for (size_t i = 0; i < kTable.size(); ++i) {
      if (!taken[i] && (best == kTable.size() || distance[i] < distance[best])) best = i;
    }
    if (distance[best] > std::max(wanted.size, MakeKey(kTable[best].name).size) / 2) break;
    taken[best] = true;
    out[count] = &kTable[best];
  }
  return out.first(count);
}

}  // namespace rfinject
