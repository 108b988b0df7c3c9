#include "cli/import/ncu/ncu_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace rfinject::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

class NcuCsv : public ::testing::Test {
 protected:
  static absl::StatusOr<Imported> TryImport(const std::string& text, const ImportOptions& options = {}) {
    LineReader lines("test.csv", text);
    return ImportNcuCsv(lines, options);
  }

  static Imported Import(const std::string& text, const ImportOptions& options = {}) {
    absl::StatusOr<Imported> imported = TryImport(text, options);
    EXPECT_TRUE(imported.ok()) << imported.status();
    return imported.ok() ? *std::move(imported) : Imported{};
  }

  static std::string ErrorOf(const absl::StatusOr<Imported>& imported) {
    return std::string(imported.status().message());
  }

  static const cli::Run& OnlyRun(const Imported& result) {
    EXPECT_THAT(result.profile.runs, SizeIs(1));
    return result.profile.runs.begin()->second;
  }

  static const LaunchStats& Kernel(const cli::Run& run, const std::string& name) {
    for (const auto& [key, stats] : run.launches) {
      if (key.kernel == name) return stats;
    }
    ADD_FAILURE() << "no kernel " << name;
    static const LaunchStats none;
    return none;
  }

  static uint64_t Sum(const LaunchStats& stats, const std::string& metric) {
    const auto found = stats.metrics.find(metric);
    return found == stats.metrics.end() ? 0 : static_cast<uint64_t>(found->second.sum);
  }
};

constexpr char kLongHeader[] =
    "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\","
    "\"Grid Size\",\"Device\",\"CC\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n";

std::string LongLine(int id, const std::string& kernel, const std::string& metric, const std::string& unit,
                     const std::string& value, const std::string& section = "Command line profiler metrics") {
  return "\"" + std::to_string(id) + "\",\"7\",\"python3.10\",\"127.0.0.1\",\"" + kernel +
         "\",\"1\",\"7\",\"(128, 1, 1)\",\"(64, 2, 1)\",\"0\",\"8.0\",\"" + section + "\",\"" + metric + "\",\"" +
         unit + "\",\"" + value + "\"\n";
}

TEST_F(NcuCsv, LongPageWithEveryUnit) {
  // A tool that greps for Kbyte loses the rows in Mbyte, Gbyte and byte.
  const Imported result = Import(kLongHeader + LongLine(0, "a", "dram__bytes_read.sum", "Kbyte", "12.34") +
                                 LongLine(0, "a", "dram__bytes_write.sum", "byte", "96") +
                                 LongLine(0, "a", "gpu__time_duration.sum", "usecond", "3.5") +
                                 LongLine(1, "b", "dram__bytes_read.sum", "Mbyte", "1,234.50") +
                                 LongLine(1, "b", "dram__bytes_write.sum", "Gbyte", "1.25") +
                                 LongLine(1, "b", "gpu__time_duration.sum", "msecond", "2") +
                                 LongLine(2, "a", "dram__bytes_read.sum", "byte", "660") +
                                 LongLine(2, "a", "dram__bytes_write.sum", "byte", "4") +
                                 LongLine(2, "a", "gpu__time_duration.sum", "nsecond", "4500"));
  EXPECT_THAT(result.warnings, IsEmpty());
  EXPECT_EQ(result.kernels, 3u);
  EXPECT_EQ(result.rows, 9u);
  const cli::Run& run = OnlyRun(result);
  EXPECT_EQ(run.devices[0].chip, "GA100");
  EXPECT_EQ(run.key.source, SourceKind::kImported);
  const LaunchStats& a = Kernel(run, "a");
  EXPECT_EQ(a.launches, 2u);
  EXPECT_EQ(Sum(a, "dram__bytes_read.sum"), 12340u + 660u);
  EXPECT_EQ(Sum(a, "dram__bytes_write.sum"), 100u);
  EXPECT_EQ(Sum(a, "gpu__time_duration.sum"), 3500u + 4500u);
  const LaunchStats& b = Kernel(run, "b");
  EXPECT_EQ(Sum(b, "dram__bytes_read.sum"), 1234500000u);
  EXPECT_EQ(Sum(b, "dram__bytes_write.sum"), 1250000000u);
  EXPECT_EQ(Sum(b, "gpu__time_duration.sum"), 2000000u);
  const auto key = run.launches.begin()->first;
  EXPECT_THAT(key.grid, ElementsAre(64, 2, 1));
  EXPECT_THAT(key.block, ElementsAre(128, 1, 1));
}

TEST_F(NcuCsv, GermanNumbers) {
  const Imported result =
      Import(kLongHeader + LongLine(0, "a", "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", "inst", "1.234") +
             LongLine(0, "a", "dram__bytes_read.sum", "byte", "27.595.520") +
             LongLine(0, "a", "gpu__time_duration.sum", "usecond", "12,5"));
  EXPECT_THAT(result.warnings, IsEmpty());
  const LaunchStats& a = Kernel(OnlyRun(result), "a");
  EXPECT_EQ(Sum(a, "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"), 1234u);
  EXPECT_EQ(Sum(a, "dram__bytes_read.sum"), 27595520u);
  EXPECT_EQ(Sum(a, "gpu__time_duration.sum"), 12500u);
}

TEST_F(NcuCsv, AmbiguousNumbersAreSaidToBe) {
  const std::string text = kLongHeader + LongLine(0, "a", "dram__bytes_read.sum", "Kbyte", "1.234");
  const Imported point = Import(text);
  EXPECT_EQ(Sum(Kernel(OnlyRun(point), "a"), "dram__bytes_read.sum"), 1234u);
  EXPECT_THAT(point.warnings, ElementsAre(HasSubstr("--decimal comma")));
  const Imported comma = Import(text, {.decimal = DecimalMark::kComma});
  EXPECT_EQ(Sum(Kernel(OnlyRun(comma), "a"), "dram__bytes_read.sum"), 1234000u);
  EXPECT_THAT(comma.warnings, IsEmpty());
}

TEST_F(NcuCsv, WidePageWithUnitsLine) {
  const Imported result = Import(
      "==PROF== Connected to process 7\r\n"
      "\"ID\",\"Process ID\",\"Process Name\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"Device\",\"CC\","
      "\"dram__bytes_read.sum\",\"gpu__time_duration.sum\",\"sm__inst_executed.avg\"\r\n"
      "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"Mbyte\",\"ns\",\"inst\"\r\n"
      "\"0\",\"7\",\"python\",\"a<int, 3>(float*)\",\"(32, 1, 1)\",\"(1, 1, "
      "1)\",\"0\",\"7.0\",\"1.5\",\"2,048\",\"9\"\r\n"
      "\"1\",\"7\",\"python\",\"a<int, 3>(float*)\",\"(32, 1, 1)\",\"(1, 1, "
      "1)\",\"0\",\"7.0\",\"2.5\",\"1,024\",\"9\"\r\n");
  const cli::Run& run = OnlyRun(result);
  EXPECT_EQ(run.devices[0].chip, "GV100");
  const LaunchStats& a = Kernel(run, "a<int, 3>(float*)");
  EXPECT_EQ(a.launches, 2u);
  EXPECT_EQ(Sum(a, "dram__bytes_read.sum"), 4000000u);
  EXPECT_EQ(Sum(a, "gpu__time_duration.sum"), 3072u);
  EXPECT_EQ(result.skipped_lines, 1u);
}

TEST_F(NcuCsv, ProgramOutputBetweenTheLines) {
  const Imported result =
      Import("=> creating model 'resnet18'\n" + std::string(kLongHeader) +
             LongLine(0, "a", "dram__bytes_read.sum", "byte", "100") + "Epoch: [0][ 1/10]\tLoss 6.9, \"ok\"\n" +
             "\"unbalanced\n" + "==PROF== Profiling \"a\": 0%....100% - 9 passes\n" +
             LongLine(0, "a", "dram__bytes_write.sum", "byte", "50"));
  EXPECT_EQ(result.kernels, 1u);
  EXPECT_EQ(result.skipped_lines, 4u);
  EXPECT_EQ(Sum(Kernel(OnlyRun(result), "a"), "dram__bytes_write.sum"), 50u);
}

TEST_F(NcuCsv, NvtxRangesBecomeLayers) {
  const Imported result = Import(
      "\"ID\",\"thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg\",\"Kernel Name\","
      "\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
      "\"0\",\"7  \"\"<default domain>:ResNet:none:none:none:none:none:none\"\"  \"\"<default "
      "domain>:layer1.0.conv1:none:none:none:none:none:none\"\"  \"\"<default domain>:aten::conv2d, seq = "
      "3:none:none:none:none:none:none\"\" \",\"a\",\"dram__bytes_read.sum\",\"byte\",\"5\"\n");
  const LaunchKey& key = OnlyRun(result).launches.begin()->first;
  EXPECT_EQ(key.layer.path, "ResNet/layer1.0.conv1");
  EXPECT_EQ(key.op, "aten::conv2d");
}

TEST_F(NcuCsv, DetailsPageGivesTimeAndTraffic) {
  const Imported result =
      Import(kLongHeader + LongLine(0, "a", "Duration", "usecond", "10.00", "GPU Speed Of Light Throughput") +
             LongLine(0, "a", "SM Frequency", "cycle/nsecond", "1.41", "GPU Speed Of Light Throughput") +
             LongLine(0, "a", "Memory Throughput", "%", "55.5", "GPU Speed Of Light Throughput") +
             LongLine(0, "a", "Memory Throughput", "Gbyte/second", "800.00", "Memory Workload Analysis"));
  const LaunchStats& a = Kernel(OnlyRun(result), "a");
  EXPECT_EQ(Sum(a, "gpu__time_duration.sum"), 10000u);
  EXPECT_EQ(Sum(a, "dram__bytes.sum"), 8000000u);
  EXPECT_EQ(Sum(a, "sm__cycles_elapsed.avg.per_second"), 1410000000u);
  EXPECT_THAT(result.warnings, ElementsAre(HasSubstr("Memory Throughput times Duration")));
}

// Lines of metrics end behind the value, with a comma, below a header that goes on; lines of rules have all fields.
TEST_F(NcuCsv, LinesThatAreShorterThanTheirHeader) {
  std::string header = kLongHeader;
  header.insert(header.size() - 1,
                R"(,"Rule Name","Rule Type","Rule Description","Estimated Speedup Type","Estimated Speedup")");
  const auto line = [](const std::string& metric, const std::string& unit, const std::string& value,
                       const std::string& section) {
    std::string text = LongLine(0, "copy", metric, unit, value, section);
    text.insert(text.size() - 1, ",");
    return text;
  };
  const std::string rule =
      R"csv("0","7","python3.10","127.0.0.1","copy","1","7","(128, 1, 1)","(64, 2, 1)","0","8.0","S","","","",)csv"
      R"("R","OPT","Do it, now","global","12.5")";
  const Imported result =
      Import(header + line("Duration", "ns", "21,058,944", "GPU Speed Of Light Throughput") + rule + "\n" +
             line("Memory Throughput", "byte/s", "196,456,177,859.63", "Memory Workload Analysis") +
             "\"0\",\"7\",\"no more\"\n" + "what the program says\n");
  const LaunchStats copy = Kernel(OnlyRun(result), "copy");
  EXPECT_EQ(Sum(copy, "gpu__time_duration.sum"), 21'058'944u);
  EXPECT_EQ(Sum(copy, "dram__bytes.sum"), 4'137'159'648u);
  EXPECT_THAT(result.warnings, Contains(HasSubstr("1 lines of the table could not be read")));
}

TEST_F(NcuCsv, TheRawPageNamesTheBoard) {
  const std::string page =
      R"("ID","Kernel Name","Block Size","Grid Size","Device","CC","device__attribute_display_name",)"
      R"("device__attribute_multiprocessor_count","device__attribute_total_memory","gpu__time_duration.sum")"
      "\n\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"byte\",\"ns\"\n"
      R"csv("0","k","(1, 1, 1)","(1, 1, 1)","0","9.0","NVIDIA H100 80GB HBM3","132","85,017,493,504","1,500")csv"
      "\n";
  const cli::Run run = OnlyRun(Import(page));
  EXPECT_EQ(run.key.gpu, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(run.devices[0].chip, "GH100");
  EXPECT_EQ(run.devices[0].sm_count, 132u);
  EXPECT_EQ(run.devices[0].memory_bytes, 85'017'493'504u);
}

TEST_F(NcuCsv, TrafficThatNoNumberHoldsIsTheLargest) {
  const Imported result =
      Import(kLongHeader + LongLine(0, "a", "Duration", "nsecond", "1e19", "GPU Speed Of Light Throughput") +
             LongLine(0, "a", "Memory Throughput", "byte/second", "1e19", "Memory Workload Analysis"));
  EXPECT_EQ(Sum(Kernel(OnlyRun(result), "a"), "dram__bytes.sum"), UINT64_MAX);
}

// GB202 and its sisters call the reads and writes of DRAM otherwise; Blackwell's B200 has packed FP32 instructions.
TEST_F(NcuCsv, CountersOfBlackwell) {
  const std::string header = "\"ID\",\"Kernel Name\",\"CC\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n";
  const auto line = [](const char* cc, const std::string& metric, const char* unit, const char* value) {
    return std::string("\"0\",\"a\",\"") + cc + "\",\"" + metric + "\",\"" + unit + "\",\"" + value + "\"\n";
  };
  const Imported geforce =
      Import(header + line("12.0", "dram__bytes_op_read.sum", "Kbyte", "2.5") +
             line("12.0", "dram__bytes_op_write.sum", "byte", "96") +
             line("12.0", "dram__bytes.sum.per_second", "Gbyte/second", "1") +
             line("12.0", "gpu__time_duration.sum", "nsecond", "1000") +
             line("12.0", "sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32_sparsity_off.sum", "", "4096"));
  EXPECT_EQ(OnlyRun(geforce).devices[0].chip, "GB202");
  const LaunchStats& a = Kernel(OnlyRun(geforce), "a");
  EXPECT_EQ(Sum(a, "dram__bytes_op_read.sum"), 2500u);
  EXPECT_EQ(Sum(a, "dram__bytes_op_write.sum"), 96u);
  EXPECT_EQ(Sum(a, "sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32_sparsity_off.sum"), 4096u);
  // Where the bytes were counted the rate is not made into bytes once more.
  EXPECT_EQ(a.metrics.count("dram__bytes.sum"), 0u);
  EXPECT_THAT(geforce.warnings, IsEmpty());
  const Imported b200 =
      Import(header + line("10.0", "smsp__sass_thread_inst_executed_op_ffma2_pred_on.sum", "inst", "7"));
  EXPECT_EQ(Sum(Kernel(OnlyRun(b200), "a"), "smsp__sass_thread_inst_executed_op_ffma2_pred_on.sum"), 7u);
}

TEST_F(NcuCsv, UnknownUnitsAreNeverAdded) {
  const Imported result = Import(kLongHeader + LongLine(0, "a", "dram__bytes_read.sum", "furlong", "5") +
                                 LongLine(0, "a", "gpu__time_duration.sum", "byte", "5") +
                                 LongLine(0, "a", "dram__bytes_write.sum", "byte", "n/a"));
  EXPECT_THAT(Kernel(OnlyRun(result), "a").metrics, IsEmpty());
  EXPECT_THAT(result.warnings, SizeIs(3));
}

TEST_F(NcuCsv, TwoTablesInOneFile) {
  const Imported result = Import(kLongHeader + LongLine(0, "a", "dram__bytes_read.sum", "byte", "1") +
                                 std::string(kLongHeader) + LongLine(0, "a", "dram__bytes_read.sum", "byte", "2"));
  EXPECT_EQ(result.kernels, 2u);
  EXPECT_EQ(Sum(Kernel(OnlyRun(result), "a"), "dram__bytes_read.sum"), 3u);
}

TEST_F(NcuCsv, ErrorsNameFileAndRemedy) {
  EXPECT_THAT(ErrorOf(ImportNcuCsv("/nonexistent/x.csv", {})), HasSubstr("/nonexistent/x.csv: No such file"));
  EXPECT_THAT(ErrorOf(ImportNcuCsv("/tmp", {})), HasSubstr("/tmp: is a folder"));
  EXPECT_THAT(ErrorOf(TryImport("hello\nworld\n")), AllOf(StartsWith("test.csv: "), HasSubstr("--page raw --csv")));
  EXPECT_THAT(ErrorOf(TryImport("")), HasSubstr("no table"));
  EXPECT_THAT(ErrorOf(TryImport(kLongHeader)), HasSubstr("no kernels"));
  EXPECT_THAT(ErrorOf(TryImport("\xFF\xFEI")), HasSubstr("iconv"));
}

// A file on disk and its bytes in memory are one table.
TEST_F(NcuCsv, FromAFile) {
  char path[] = "/tmp/ncu_csv_test.XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  close(fd);
  const std::string text = kLongHeader + LongLine(0, "a", "dram__bytes_read.sum", "Kbyte", "1.50");
  std::ofstream(path, std::ios::binary) << text;
  const absl::StatusOr<Imported> imported = ImportNcuCsv(path, {});
  unlink(path);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_TRUE(imported->profile == Import(text).profile);
  EXPECT_EQ(imported->rows, 1u);
}

TEST_F(NcuCsv, LongLinesAndMissingLineEnd) {
  const std::string noise(3u << 20, 'x');
  std::string text = noise + "\n" + kLongHeader + LongLine(0, "a", "dram__bytes_read.sum", "byte", "1") + noise +
                     "\n" + LongLine(1, "a", "dram__bytes_read.sum", "byte", "2");
  text.pop_back();
  const Imported result = Import(text);
  EXPECT_EQ(Sum(Kernel(OnlyRun(result), "a"), "dram__bytes_read.sum"), 3u);
  EXPECT_EQ(result.skipped_lines, 2u);
}

TEST_F(NcuCsv, TheShortWayGivesWhatTheLongOneGives) {
  // A column behind the value makes a table that is not ncu's own: every line of it is split into its fields.
  uint32_t state = 7;
  const auto draw = [&](uint32_t below) { return (state = state * 1664525u + 1013904223u) / 65536u % below; };
  const std::vector<std::pair<std::string, std::vector<std::string>>> metrics = {
      {"dram__bytes_read.sum", {"byte", "Kbyte", "Mbyte", "furlong"}},
      {"gpu__time_duration.sum", {"nsecond", "usecond"}},
      {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", {"inst"}},
      {"launch__registers_per_thread", {"register/thread"}}};
  const std::string header = std::string(kLongHeader).substr(0, std::string(kLongHeader).size() - 1);
  std::string shorter = header + "\n", longer = header + ",\"Rule\"\n";
  for (int launch = 0; launch < 24000; ++launch) {
    // More kernels than are remembered, some of them often; names with quotes, commas and words of the table in them.
    const uint32_t kernel = draw(2) == 0 ? draw(20000) : draw(40);
    const std::string name = "k<" + std::to_string(kernel) + ">(int, " +
                             (kernel % 7 == 0 ? "\"\"dram__bytes_read.sum\"\",\"\"byte\"\"," : "float*") + ")";
    for (const auto& [metric, units] : metrics) {
      if (draw(50) == 0) continue;  // lists of different length
      const std::string value =
          draw(40) == 0 ? "n/a"
                        : std::to_string(draw(1000)) + (metric[0] == 's' ? "" : "." + std::to_string(draw(100)));
      std::string line = LongLine(launch, name, metric, units[draw(static_cast<uint32_t>(units.size()))], value,
                                  draw(60) == 0 ? "Other \"\"section\"\"" : "Command line profiler metrics");
      if (draw(80) == 0) line.insert(line.size() - 2, "\"\",\"\"7");  // a quote in the value: not a number
      shorter += line;
      longer += line.substr(0, line.size() - 1) + ",\"\"\n";
      if (draw(100) == 0) {
        for (std::string* text : {&shorter, &longer})
          *text += "Epoch: [0], \"said\"\n\"" + std::to_string(launch) + "\n";
      }
    }
  }
  ASSERT_GT(shorter.size(), 4u << 20);  // several blocks
  const Imported ours = Import(shorter), reference = Import(longer);
  EXPECT_EQ(ours.rows, reference.rows);
  EXPECT_EQ(ours.kernels, reference.kernels);
  EXPECT_EQ(ours.skipped_lines, reference.skipped_lines);
  const auto without_path = [](std::vector<std::string> warnings) {
    for (std::string& warning : warnings) warning.erase(0, warning.find(": "));
    return warnings;
  };
  EXPECT_EQ(without_path(ours.warnings), without_path(reference.warnings));
  EXPECT_TRUE(OnlyRun(ours).launches == OnlyRun(reference).launches);
}

TEST_F(NcuCsv, ProcessesThatUseTheSameIds) {
  const auto of_process = [](std::string line, const char* process) {
    return line.replace(line.find("\"7\""), 3, std::string("\"") + process + "\"");
  };
  std::string text = kLongHeader;
  for (int round = 0; round < 3; ++round) {
    for (const char* process : {"7", "8"})
      text += of_process(LongLine(0, "a", "dram__bytes_read.sum", "byte", "1"), process);
  }
  const Imported result = Import(text);
  EXPECT_EQ(result.kernels, 6u);
  EXPECT_EQ(Sum(Kernel(OnlyRun(result), "a"), "dram__bytes_read.sum"), 6u);
}

}  // namespace
}  // namespace rfinject::cli
