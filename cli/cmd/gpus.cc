#include "gpus/gpus.h"

#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "cli/cmd/commands.h"
#include "cli/cmd/options.h"
#include "cli/emit/columns.h"
#include "cli/emit/markup.h"
#include "cli/report/units.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kUsage =
    "rfinject gpus [NAME...]\n\n"
    "The GPUs whose roofs are known: dense datasheet peaks in TFLOP/s, memory bandwidth in GB/s, and where each row "
    "comes\n"
    "from. The names are those that --estimate takes.";

constexpr Option kOptions[] = {{"format", 0, "FORMAT", "table (default), json or csv"}};

void PrintTable(const std::vector<const Gpu*>& gpus) {
  std::printf("%-17s %-5s %6s %6s %6s %6s %6s %6s %6s %6s %6s %4s  %s\n", "GPU", "chip", "FP64", "FP32", "FP16",
              "TF32tc", "FP16tc", "BF16tc", "FP8tc", "FP64tc", "GB/s", "SMs", "source");
  const auto tera = [](double peak) { return peak > 0 ? Plain(peak / 1e12) : std::string("-"); };
  for (const Gpu* gpu : gpus) {
    const auto peak = [&](Precision precision) { return tera(gpu->peak[static_cast<size_t>(precision)]); };
    std::printf("%-17s %-5s %6s %6s %6s %6s %6s %6s %6s %6s %6.0f %4d  %s\n", std::string(gpu->name).c_str(),
                std::string(gpu->chip).c_str(), peak(Precision::kFp64).c_str(), peak(Precision::kFp32).c_str(),
                peak(Precision::kFp16).c_str(), peak(Precision::kTf32Tensor).c_str(),
                peak(Precision::kFp16Tensor).c_str(), peak(Precision::kBf16Tensor).c_str(),
                peak(Precision::kFp8Tensor).c_str(), peak(Precision::kFp64Tensor).c_str(),
                gpu->dram_bytes_per_s / 1e9, gpu->sm_count, std::string(gpu->source).c_str());
  }
  std::printf(
      "\nPeaks are dense (no 2:4 sparsity), at boost clock; tc: tensor cores. Sources: the letters are explained at "
      "the\n"
      "top of gpus.csv (V, A, H, ...: NVIDIA's datasheets; C: computed from CUPTI's constants; U: not verified).\n"
      "What published benchmarks reached is in --format csv and json (empirical_*).\n");
}

void PrintCsv(const std::vector<const Gpu*>& gpus) {
  std::cout << "gpu,chip,cc,sm_count,boost_hz";
  for (const std::string_view name : kPrecisionNames) std::cout << ",peak_" << name << "_flop_per_s";
  std::cout << ",dram_bytes_per_s,l2_bytes,source,note";
  for (const std::string_view name : kPrecisionNames) std::cout << ",empirical_" << name << "_flop_per_s";
  std::cout << ",empirical_dram_bytes_per_s,empirical_l2_bytes_per_s,empirical_l1_bytes_per_s,empirical_source\n";
  const auto known = [](double value) { return value > 0 ? NumberText(value) : std::string(); };
  const auto quoted = [](std::string_view text) {
    std::string result = "\"";
    for (const char c : text) result += c == '"' ? "\"\"" : std::string(1, c);
    return result + "\"";
  };
  for (const Gpu* gpu : gpus) {
    std::cout << gpu->name << ',' << gpu->chip << ',' << gpu->cc_major << '.' << gpu->cc_minor << ',' << gpu->sm_count
              << ',' << NumberText(gpu->boost_hz);
    for (const double peak : gpu->peak) std::cout << ',' << (peak > 0 ? NumberText(peak) : "");
    std::cout << ',' << NumberText(gpu->dram_bytes_per_s) << ',' << NumberText(gpu->l2_bytes) << ','
              << quoted(gpu->source) << ',' << quoted(gpu->note);
    for (const double peak : gpu->empirical_peak) std::cout << ',' << known(peak);
    std::cout << ',' << known(gpu->empirical_dram_bytes_per_s) << ',' << known(gpu->empirical_l2_bytes_per_s) << ','
              << known(gpu->empirical_l1_bytes_per_s) << ',' << quoted(gpu->empirical_source) << '\n';
  }
}

void PrintJson(const std::vector<const Gpu*>& gpus) {
  std::cout << "{\"schema\": \"rfinject.gpus/1\", \"gpus\": [";
  const char* separator = "\n  ";
  for (const Gpu* gpu : gpus) {
    std::cout << separator << "{\"gpu\": " << JsonText(gpu->name) << ", \"chip\": " << JsonText(gpu->chip)
              << ", \"cc\": \"" << gpu->cc_major << '.' << gpu->cc_minor << "\", \"sm_count\": " << gpu->sm_count
              << ", \"boost_hz\": " << NumberText(gpu->boost_hz);
    for (size_t i = 0; i < kPrecisionCount; ++i) {
      std::cout << ", \"peak_" << kPrecisionNames[i]
                << "_flop_per_s\": " << (gpu->peak[i] > 0 ? NumberText(gpu->peak[i]) : "null");
    }
    std::cout << ", \"dram_bytes_per_s\": " << NumberText(gpu->dram_bytes_per_s)
              << ", \"l2_bytes\": " << NumberText(gpu->l2_bytes) << ", \"source\": " << JsonText(gpu->source)
              << ", \"note\": " << JsonText(gpu->note);
    const auto known = [](std::string_view name, double value) {
      std::cout << ", \"empirical_" << name << "\": " << (value > 0 ? NumberText(value) : "null");
    };
    for (size_t i = 0; i < kPrecisionCount; ++i) {
      known(std::string(kPrecisionNames[i]) + "_flop_per_s", gpu->empirical_peak[i]);
    }
    known("dram_bytes_per_s", gpu->empirical_dram_bytes_per_s);
    known("l2_bytes_per_s", gpu->empirical_l2_bytes_per_s);
    known("l1_bytes_per_s", gpu->empirical_l1_bytes_per_s);
    std::cout << ", \"empirical_source\": " << JsonText(gpu->empirical_source) << "}";
    separator = ",\n  ";
  }
  std::cout << "\n]}\n";
}

}  // namespace

std::string NearestGpuNames(std::string_view name) {
  const Gpu* nearest[3];
  std::string text;
  for (const Gpu* gpu : NearestGpus(name, nearest)) text += (text.empty() ? "" : ", ") + std::string(gpu->name);
  return text;
}

int GpusMain(Arguments arguments) {
  ParsedOptions parsed;
  if (const auto code = ParseOptions("gpus", kUsage, kOptions, arguments, WordPolicy::kAnywhere, &parsed))
    return *code;
  std::vector<const Gpu*> gpus;
  for (const char* name : parsed.words) {
    const Gpu* gpu = FindGpu(name);
    if (gpu == nullptr) {
      return UsageError("gpus", "'" + std::string(name) + "' is not in the table; nearest: " + NearestGpuNames(name));
    }
    gpus.push_back(gpu);
  }
  if (gpus.empty()) {
    for (const Gpu& gpu : AllGpus()) gpus.push_back(&gpu);
  }
  const std::string format = parsed.Value("format", "table");
  if (format == "table") {
    PrintTable(gpus);
  } else if (format == "csv") {
    PrintCsv(gpus);
  } else if (format == "json") {
    PrintJson(gpus);
  } else {
    return UsageError("gpus", "--format " + format + ": there are table, json and csv");
  }
  return 0;
}

}  // namespace rfinject::cli
