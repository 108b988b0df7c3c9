#include "cli/import/nsys/nsys_sqlite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/import/nsys/join_times.h"
#include "cli/import/nvtx_ranges.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr char kStrings[] =
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
    "INSERT INTO StringIds VALUES (1, 'void gemm<float>(float*)'), (2, 'relu');";
constexpr char kKernels[] =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, gridX INTEGER, gridY "
    "INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, dynamicSharedMemory INTEGER, "
    "demangledName INTEGER, shortName INTEGER);";

// One row of kKernels.
std::string Launch(int64_t start, int64_t end, int grid, int name) {
  return "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, gridX, gridY, gridZ, blockX, blockY, blockZ, "
         "dynamicSharedMemory, demangledName, shortName) VALUES (" +
         std::to_string(start) + ", " + std::to_string(end) + ", 0, " + std::to_string(grid) +
         ", 2, 1, 128, 1, 1, 4096, " + std::to_string(name) + ", 0);";
}

constexpr char kRanges[] =
    "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER);";
constexpr char kCalls[] =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, "
    "nameId INTEGER);";

// One row of kRanges, of thread 7.
std::string Range(int64_t start, int64_t end, const std::string& text) {
  return "INSERT INTO NVTX_EVENTS VALUES (" + std::to_string(start) + ", " + std::to_string(end) + ", 59, '" + text +
         "', 7);";
}

class NsysSqlite : public ::testing::Test {
 protected:
  NsysSqlite() {
    char path[] = "/tmp/nsys_sqlite_test.XXXXXX";
    const int fd = mkstemp(path);
    EXPECT_GE(fd, 0);
    close(fd);
    path_ = path;
  }
  ~NsysSqlite() override { unlink(path_.c_str()); }

  void Write(const std::string& sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    char* message = nullptr;
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK) << message;
    sqlite3_free(message);
    sqlite3_close(database);
  }
  absl::StatusOr<Imported> TryImport() { return ImportNsysSqlite(path_, {}); }
  Imported Import(const ImportOptions& options = {}) {
    absl::StatusOr<Imported> imported = ImportNsysSqlite(path_, options);
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
  // Launches of `name` with this grid; an empty one if there are none.
  static LaunchStats Kernel(const cli::Run& run, const std::string& name, uint32_t grid) {
    for (const auto& [key, stats] : run.launches) {
      if (key.kernel == name && key.grid[0] == grid) return stats;
    }
    return {};
  }
  static uint64_t Sum(const LaunchStats& stats, std::string_view metric) {
    const auto found = stats.metrics.find(std::string(metric));
    return found == stats.metrics.end() ? 0 : static_cast<uint64_t>(found->second.sum);
  }

  std::string path_;
};

TEST_F(NsysSqlite, KernelsCopiesAndTheGpu) {
  Write(std::string(kStrings) + kKernels + Launch(100, 400, 8, 1) + Launch(500, 900, 8, 1) + Launch(900, 950, 16, 1) +
        Launch(1000, 1007, 8, 2) + Launch(1000, 1011, 8, 99) +
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (0, 60), (70, 73);"
        "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT);"
        "INSERT INTO TARGET_INFO_GPU VALUES (1, 'second'), (0, 'NVIDIA A100-SXM4-40GB');");
  const Imported result = Import({.model = "vgg11"});
  EXPECT_EQ(result.kernels, 7u);
  const cli::Run& run = OnlyRun(result);
  EXPECT_EQ(run.key.source, SourceKind::kImported);
  EXPECT_THAT(run.key.models, ElementsAre("vgg11"));
  EXPECT_EQ(run.devices[0].name, "NVIDIA A100-SXM4-40GB");
  // Launches of one name, grid and block are one key; another grid is another.
  const LaunchStats gemm = Kernel(run, "void gemm<float>(float*)", 8);
  EXPECT_EQ(gemm.launches, 2u);
  EXPECT_EQ(Sum(gemm, kMetricTime), 700u);
  EXPECT_EQ(Sum(Kernel(run, "void gemm<float>(float*)", 16), kMetricTime), 50u);
  EXPECT_EQ(Sum(Kernel(run, "relu", 8), kMetricTime), 7u);
  EXPECT_EQ(Sum(Kernel(run, "(no name)", 8), kMetricTime), 11u);  // a name that is not in StringIds
  const LaunchStats copies = Kernel(run, "memcpy", 0);
  EXPECT_EQ(copies.launches, 2u);
  EXPECT_EQ(Sum(copies, kMetricTime), 63u);
  // 863 ns of 1011: 0 to 60, 70 to 73, 100 to 400, 500 to 950, 1000 to 1011.
  EXPECT_THAT(result.warnings, ElementsAre(HasSubstr("no counters"), HasSubstr("all of it is taken for one"),
                                           HasSubstr("the GPU was idle for 18 % of the 1.01 us")));
  EXPECT_EQ(run.steps.steps, 1u);
  ASSERT_THAT(run.kept.diagnostic, SizeIs(1));
  EXPECT_THAT(run.kept.diagnostic.begin()->text, StartsWith("the GPU was idle for 18 %"));
}

TEST_F(NsysSqlite, CopiesBetweenHostAndGpuHaveTheirBytes) {
  Write(
      std::string(kStrings) + kKernels + Launch(100, 400, 8, 1) +
      "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, copyKind INTEGER, bytes INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (0, 60, 1, 1000), (70, 73, 1, 24), (80, 90, 2, 7), (91, 92, 8, 9);");
  const Imported result = Import();
  const cli::Run& run = OnlyRun(result);
  EXPECT_EQ(Sum(Kernel(run, "Memcpy HtoD", 0), kMetricPcieBytes), 1024u);
  EXPECT_EQ(Sum(Kernel(run, "Memcpy DtoH", 0), kMetricPcieBytes), 7u);
  EXPECT_EQ(Sum(Kernel(run, "Memcpy DtoD", 0), kMetricPcieBytes), 0u);
  EXPECT_EQ(Sum(Kernel(run, "Memcpy DtoD", 0), kMetricTime), 1u);
}

TEST_F(NsysSqlite, CopiesSayBetweenWhatMemoryWhereTheExportDoes) {
  const std::string copies = std::string(kStrings) + kKernels + Launch(100, 400, 8, 1) +
                             "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, copyKind INTEGER, "
                             "bytes INTEGER, srcKind INTEGER, dstKind INTEGER);"
                             "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (0, 60, 1, 1000, 1, 2), "
                             "(70, 73, 1, 24, 0, 2), (80, 90, 2, 7, 2, NULL);";
  Write(copies +
        "CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER, name TEXT, label TEXT);"
        "INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0, '', 'Pageable'), (1, '', 'Pinned'), (2, '', 'Device');");
  const Imported result = Import();
  const cli::Run& run = OnlyRun(result);
  EXPECT_EQ(Sum(Kernel(run, "Memcpy HtoD (Pinned -> Device)", 0), kMetricPcieBytes), 1000u);
  EXPECT_EQ(Sum(Kernel(run, "Memcpy HtoD (Pageable -> Device)", 0), kMetricPcieBytes), 24u);
  EXPECT_EQ(Sum(Kernel(run, "Memcpy DtoH", 0), kMetricPcieBytes), 7u);
}

TEST_F(NsysSqlite, RangesThatDoNotNestAreCounted) {
  Write(std::string(kStrings) + kKernels + Launch(100, 400, 8, 1) + kRanges + kCalls +
        "INSERT INTO NVTX_EVENTS VALUES (0, 500, 60, 'a', 7), (3, 600, 60, 'b', 7), (4, NULL, 34, 'a mark', 7);");
  const Imported result = Import();
  std::vector<std::string> said;
  for (const trace::Diagnostic& one : OnlyRun(result).kept.diagnostic) said.push_back(one.text);
  EXPECT_THAT(said, Contains(StartsWith("2 NVTX ranges of another kind")));
}

TEST_F(NsysSqlite, ALaunchWithoutANameHasNoOthers) {
  Write("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT); INSERT INTO StringIds VALUES (0, 'first');" +
        std::string(kKernels) + Launch(0, 5, 8, 0) +
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, gridX) VALUES (10, 17, 8);");
  const Imported result = Import();
  const cli::Run& run = OnlyRun(result);
  EXPECT_EQ(Sum(Kernel(run, "first", 8), kMetricTime), 5u);
  EXPECT_EQ(Sum(Kernel(run, "(no name)", 8), kMetricTime), 7u);
}

// More than are kept in memory, on two GPUs, the later ones first in the file.
TEST_F(NsysSqlite, AMillionActivitiesAreSortedByTheDatabase) {
  Write(std::string(kStrings) + kKernels + Launch(0, 20, 8, 1) +
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, deviceId INTEGER);"
        "WITH RECURSIVE n(i) AS (SELECT 1100000 UNION ALL SELECT i - 1 FROM n WHERE i > 1)"
        "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET SELECT 100 * i, 100 * i + 60, i % 2 FROM n;");
  const Imported result = Import();
  EXPECT_EQ(result.kernels, 1'100'001u);
  EXPECT_EQ(Sum(Kernel(OnlyRun(result), "memset", 0), kMetricTime), 66'000'000u);
  // Each GPU does 60 ns of each 200 ns.
  EXPECT_THAT(result.warnings, Contains(HasSubstr("the GPU was idle for 70 % of the 220 ms")));
}

// A program that marks its steps and blocks, with two threads whose numbers of calls are alike.
TEST_F(NsysSqlite, RangesOfNvtxAreStepsAndLayers) {
  std::string sql = std::string(kStrings) + kKernels +
                    "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN correlationId INTEGER;"
                    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, "
                    "correlationId INTEGER);"
                    "INSERT INTO StringIds VALUES (3, 'encoder');"
                    "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId "
                    "INTEGER, globalTid INTEGER);";
  const auto range = [&sql](int64_t start, const std::string& end, const std::string& text) {
    sql += "INSERT INTO NVTX_EVENTS VALUES (" + std::to_string(start) + ", " + end + ", 59, " +
           (text == "encoder" ? "NULL, 3" : "'" + text + "', NULL") + ", 7);";
  };
  int64_t correlation = 0;
  const auto launch = [&](int64_t call, int64_t start, int name, int64_t thread = 7) {
    ++correlation;
    sql += Launch(start, start + 100, 8, name) +
           "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET correlationId = " + std::to_string(correlation) +
           " WHERE start = " + std::to_string(start) + ";INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (" +
           std::to_string(call) + ", " + std::to_string(call + 1) + ", " + std::to_string(thread) + ", " +
           std::to_string(correlation) + ");";
  };
  range(0, "9000", "epoch 0");
  for (int step = 0; step < 5; ++step) {
    const int64_t at = 1000 * step;
    range(at, std::to_string(at + 500), "step " + std::to_string(step));
    range(at, std::to_string(at + 100), "forward");
    range(at + 10, std::to_string(at + 60), "encoder");
    range(at + 20, std::to_string(at + 40), "conv1");
    range(at + 25, std::to_string(at + 35), "aten::conv2d, seq = 5");
    range(at + 300, std::to_string(at + 400), "Optimizer.step#SGD.step");
    // The GPU runs behind the program, beyond the range's own end.
    launch(at + 30, 10'000 + at, 1);
    launch(at + 50, 10'200 + at, 2);
    launch(at + 350, 10'400 + at, 2);
    launch(at + 30, 10'600 + at, 1, 8);  // another thread, in no range
  }
  range(5000, "NULL", "step 5");  // cut short
  launch(5100, 15'000, 2);
  Write(sql);
  const Imported result = Import({.model = "net"});
  const cli::Run& run = OnlyRun(result);
  EXPECT_EQ(run.steps.steps, 5u);
  EXPECT_EQ(result.kernels, 21u);
  const auto launches = [&run](Phase phase, const LayerKey& layer, const std::string& op) {
    uint64_t sum = 0;
    for (const auto& [key, stats] : run.launches) {
      if (key.phase == phase && key.layer == layer && key.op == op) sum += stats.launches;
    }
    return sum;
  };
  EXPECT_EQ(launches(Phase::kForward, {"net", "encoder.conv1"}, "aten::conv2d"), 5u);
  EXPECT_EQ(launches(Phase::kForward, {"net", "encoder"}, ""), 5u);
  EXPECT_EQ(launches(Phase::kOptimizer, {"net", ""}, ""), 5u);
  EXPECT_EQ(launches(Phase::kOther, {}, ""), 6u) << "another thread's, and a step's that did not end";
  EXPECT_THAT(result.warnings, Not(Contains(HasSubstr("taken for one"))));
  EXPECT_THAT(result.warnings, Contains(HasSubstr("the GPU was idle for 59 %")));
}

// A loop that marks its steps, and loads and waits in and between them, as emit_nvtx() and the runtime's calls show
// it.
TEST_F(NsysSqlite, StepsHaveWhatTheyWaitedFor) {
  std::string sql = std::string(kStrings) + kKernels +
                    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, "
                    "correlationId INTEGER, nameId INTEGER);"
                    "INSERT INTO StringIds VALUES (3, 'cudaStreamSynchronize_v3020'), (4, 'cudaLaunchKernel_v7000');"
                    "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid "
                    "INTEGER);";
  const auto range = [&sql](int64_t start, int64_t end, const std::string& text, int64_t thread = 7) {
    sql += "INSERT INTO NVTX_EVENTS VALUES (" + std::to_string(start) + ", " + std::to_string(end) + ", 59, '" +
           text + "', " + std::to_string(thread) + ");";
  };
  const auto call = [&sql](int64_t start, int64_t end, int name, int64_t thread = 7) {
    sql += "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (" + std::to_string(start) + ", " + std::to_string(end) +
           ", " + std::to_string(thread) + ", 0, " + std::to_string(name) + ");";
  };
  const std::string loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
  for (const int64_t at : {0, 100'000, 200'000}) {
    range(at, at + 50'000, "step");
    if (at > 0) range(at - 40'000, at - 10'000, loader);
    call(at + 1'000, at + 2'000, 4);
    call(at + 40'000, at + 48'000, 3);
    call(at + 10'000, at + 40'000, 3, 8);                                                   // another thread's
    range(at + 20'000, at + 40'000, loader, 8);                                             // that thread's
    sql += Launch(at + 5'000, at + 45'000, 8, 1) + Launch(at + 20'000, at + 30'000, 8, 2);  // at the same time
  }
  Write(sql);
  const cli::Run run = OnlyRun(Import());
  ASSERT_THAT(run.step_times, SizeIs(1));
  const StepTimes& times = run.step_times.at(0);
  EXPECT_EQ(times.wall_ns.n(), 3u);
  EXPECT_EQ(static_cast<uint64_t>(times.wall_ns.sum()), 50'000u + 2 * 100'000u);
  EXPECT_EQ(static_cast<uint64_t>(times.data_wait_ns.sum()), 2 * 30'000u);
  EXPECT_EQ(static_cast<uint64_t>(times.gpu_wait_ns.sum()), 3 * 8'000u);
  EXPECT_EQ(static_cast<uint64_t>(times.gpu_busy_ns.sum()), 3 * 40'000u);
  // The loader's 30 us lie in the 60 in which the GPU has nothing to do; 10 before the kernels and 20 after remain.
  EXPECT_EQ(static_cast<uint64_t>(times.launch_gap_ns.sum()), 10'000u + 2 * 30'000u);
  EXPECT_EQ(static_cast<uint64_t>(times.own_ns.sum()), 50'000u - 8'000 + 2 * (100'000u - 30'000 - 8'000));
  // By the file's own clock, since no table says the time of day.
  ASSERT_THAT(run.step_spans, SizeIs(3));
  EXPECT_EQ(run.step_spans[0], (StepSpan{.index = 0,
                                         .start_unix_ns = 0,
                                         .duration_ns = 50'000,
                                         .data_wait_ns = 0,
                                         .gpu_wait_ns = 8'000,
                                         .busy_ns = 40'000}));
  EXPECT_EQ(run.step_spans[2].start_unix_ns, 150'000);
  EXPECT_EQ(run.step_spans[2].duration_ns, 100'000u);
  EXPECT_EQ(run.step_spans[2].data_wait_ns, 30'000u);
  // Of several processes nothing says whose steps they are.
  cli::Run both = run;
  both.Merge(run);
  EXPECT_THAT(both.step_spans, SizeIs(0));
  Write(
      "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);"
      "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000);");
  EXPECT_EQ(OnlyRun(Import()).step_spans[2].start_unix_ns, 1'700'000'000'000'150'000);
}

TEST_F(NsysSqlite, WhatAStepIsCalled) {
  for (const char* name : {"step", "step 3", "ProfilerStep#4", "iteration_12", "train_step", "iter", "Batch 7"}) {
    EXPECT_TRUE(IsStepName(name)) << name;
  }
  for (const char* name :
       {"Optimizer.step#SGD.step", "optim step", "forward", "stepper", "aten::batch_norm_stats", "batch_norm",
        "BatchNorm2d", "", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"}) {
    EXPECT_FALSE(IsStepName(name)) << name;
  }
}

TEST_F(NsysSqlite, TheUsersGpuIsTaken) {
  Write(std::string(kStrings) + kKernels + Launch(0, 1, 8, 1) +
        "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT); INSERT INTO TARGET_INFO_GPU VALUES (0, 'other');");
  EXPECT_EQ(OnlyRun(Import({.gpu = "V100-SXM2-16GB"})).key.gpu, "V100-SXM2-16GB");
}

TEST_F(NsysSqlite, NegativeAndMissingDurationsAreLeftOut) {
  Write(std::string(kStrings) + kKernels + Launch(100, 400, 8, 1) + Launch(500, 400, 8, 1) +
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, gridX, demangledName) VALUES (7, 8, 1);");
  const Imported result = Import();
  EXPECT_EQ(result.kernels, 1u);
  EXPECT_EQ(Sum(Kernel(OnlyRun(result), "void gemm<float>(float*)", 8), kMetricTime), 300u);
  EXPECT_THAT(result.warnings, Contains(AllOf(StartsWith(path_), HasSubstr("2 records without a valid time"))));
}

TEST_F(NsysSqlite, OnlyInvalidTimesIsNoImport) {
  Write(std::string(kStrings) + kKernels + Launch(500, 400, 8, 1));
  EXPECT_THAT(ErrorOf(TryImport()), HasSubstr("has no kernels"));
}

TEST_F(NsysSqlite, WhatIsMissingIsNamed) {
  Write(kStrings);
  EXPECT_THAT(ErrorOf(TryImport()), AllOf(StartsWith(path_), HasSubstr("no table CUPTI_ACTIVITY_KIND_KERNEL")));
  Write("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, gridX INTEGER, blockX INTEGER, shortName INTEGER);");
  EXPECT_THAT(ErrorOf(TryImport()), AllOf(StartsWith(path_), HasSubstr("has no column end")));
  Write(
      "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN end INTEGER;"
      "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME COLUMN shortName TO name;");
  EXPECT_THAT(ErrorOf(TryImport()), HasSubstr("no column demangledName or shortName"));
}

TEST_F(NsysSqlite, NoSqliteFileAtAll) {
  std::ofstream(path_) << "\"ID\",\"Kernel Name\"\n";
  EXPECT_THAT(ErrorOf(TryImport()), AllOf(StartsWith(path_), HasSubstr("not a SQLite file")));
  EXPECT_THAT(ErrorOf(ImportNsysSqlite(path_ + ".none", {})), StartsWith(path_ + ".none: "));
}

TEST_F(NsysSqlite, DamagedFileIsAnError) {
  std::string sql = std::string(kStrings) + kKernels + "BEGIN;";
  for (int i = 0; i < 2000; ++i) sql += Launch(i, i + 5, i + 1, 1);
  Write(sql + "COMMIT;");
  ASSERT_EQ(Import().kernels, 2000u);
  std::ifstream in(path_, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  // The second half's pages, whose headers then name no kind of page; the schema at the front stays readable.
  bytes.replace(bytes.size() / 2, bytes.size() - bytes.size() / 2, bytes.size() - bytes.size() / 2, '\xFF');
  std::ofstream(path_, std::ios::binary) << bytes;
  EXPECT_THAT(ErrorOf(TryImport()), StartsWith(path_));
}

// The launches stay whole, and the table of ranges, which is read by other queries, is the damaged one.
TEST_F(NsysSqlite, DamageElsewhereIsAnErrorToo) {
  std::string sql =
      std::string("PRAGMA page_size=512;") + kStrings + kKernels + kRanges + kCalls + Launch(10, 20, 8, 1);
  for (int i = 0; i < 200; ++i) sql += Range(i * 10, i * 10 + 5, "step marker " + std::to_string(i));
  Write(sql);
  ASSERT_EQ(OnlyRun(Import()).steps.steps, 200u);
  std::ifstream in(path_, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const size_t page = bytes.find("step marker 150") / 512 * 512;
  bytes.replace(page, 8, 8, '\xFF');
  std::ofstream(path_, std::ios::binary) << bytes;
  EXPECT_THAT(ErrorOf(TryImport()), AllOf(StartsWith(path_), HasSubstr("malformed")));
}

// --- Files that are made to keep the reader busy for ever.

TEST_F(NsysSqlite, AViewIsNoTable) {
  Write(
      std::string(kStrings) +
      "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
      "SELECT i AS start, i + 1 AS end, i AS gridX, 1 AS gridY, 1 AS gridZ, 1 AS blockX, 1 AS blockY, 1 AS blockZ, 1 "
      "AS demangledName FROM n;");
  EXPECT_THAT(ErrorOf(TryImport()), HasSubstr("CUPTI_ACTIVITY_KIND_KERNEL is a view"));
}

TEST_F(NsysSqlite, ACallThatIsThereTwiceCountsItsLaunchOnce) {
  Write(std::string(kStrings) + kKernels + kRanges + kCalls + Launch(10, 20, 8, 1) + Launch(30, 40, 8, 1) +
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN correlationId INTEGER;"
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET correlationId = start;"
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (5, 6, 7, 10, 0), (7, 8, 7, 10, 0), (25, 26, 7, 30, 0);" +
        Range(0, 100, "step 1") + Range(1, 50, "layer1"));
  const Imported result = Import();
  EXPECT_EQ(result.kernels, 2u);
  EXPECT_EQ(Kernel(OnlyRun(result), "void gemm<float>(float*)", 8).launches, 2u);
  EXPECT_THAT(result.warnings, Contains(HasSubstr("several calls")));
}

TEST_F(NsysSqlite, RowsThatMultiplyAreAnError) {
  Write(std::string(kStrings) + kKernels + kRanges + kCalls +
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN correlationId INTEGER;"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, gridX, correlationId) SELECT i, i, 1, 1 FROM n;"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)"
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT i, i, 7, 1, 0 FROM n;");
  EXPECT_THAT(ErrorOf(TryImport()), HasSubstr("more work than its size explains"));
}

TEST_F(NsysSqlite, RangesAreKeptToADepth) {
  std::string sql = std::string(kStrings) + kKernels + kRanges + kCalls + Launch(900, 910, 8, 1) +
                    "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN correlationId INTEGER;"
                    "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET correlationId = 1;"
                    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (500, 501, 7, 1, 0);";
  for (int i = 0; i < 300; ++i) sql += Range(i, 1000, "r");
  Write(sql);
  const cli::Run run = OnlyRun(Import());
  ASSERT_THAT(run.launches, SizeIs(1));
  EXPECT_EQ(run.launches.begin()->first.layer.path.size(), 2 * NvtxStack::kMostNested - 1);  // "r.r.r"
}

TEST_F(NsysSqlite, NamesOfRangesAreKeptToALength) {
  Write(std::string(kStrings) + kKernels + kRanges + kCalls + Launch(900, 910, 8, 1) +
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN correlationId INTEGER;"
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET correlationId = 1;"
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (500, 501, 7, 1, 0);" +
        Range(0, 1000, std::string(1'000'000, 'r')));
  EXPECT_EQ(OnlyRun(Import()).launches.begin()->first.layer.path.size(), 4096u);
}

// --- JoinTimes.

class JoinTimesTest : public NsysSqlite {
 protected:
  // As ncu has it: bytes and its own, slower, time.
  static Imported Counters(std::initializer_list<std::pair<const char*, uint32_t>> kernels) {
    Imported result;
    cli::Run run;
    run.key.source = SourceKind::kImported;
    run.key.collector = "ncu";
    for (const auto& [name, grid] : kernels) {
      LaunchKey key;
      key.kernel = name;
      key.grid = {grid, 2, 1};
      key.block = {128, 1, 1};
      LaunchStats& stats = run.launches[key];
      stats.launches = 1;
      stats.metrics["gpu__time_duration.sum"].Add(999);
      stats.metrics["dram__bytes_read.sum"].Add(4096);
    }
    result.profile.runs[run.key] = std::move(run);
    return result;
  }
};

TEST_F(JoinTimesTest, TimesAreReplacedAndWhatDiffersIsSaid) {
  Write(std::string(kStrings) + kKernels + Launch(0, 300, 8, 1) + Launch(0, 20, 8, 2) + Launch(0, 30, 9, 2));
  const absl::StatusOr<Imported> joined =
      JoinTimes(Counters({{"void gemm<float>(float*)", 8}, {"void gemm<float>(float*)", 16}}), TryImport());
  ASSERT_TRUE(joined.ok()) << joined.status();
  const cli::Run& run = OnlyRun(*joined);
  EXPECT_EQ(run.key.collector, "ncu+nsys");
  EXPECT_EQ(joined->profile.runs.begin()->first, run.key);
  const LaunchStats both = Kernel(run, "void gemm<float>(float*)", 8);
  EXPECT_EQ(Sum(both, kMetricTime), 300u);
  EXPECT_EQ(Sum(both, "gpu__time_duration.sum"), 0u);
  EXPECT_EQ(Sum(both, "dram__bytes_read.sum"), 4096u);
  const LaunchStats counters_only = Kernel(run, "void gemm<float>(float*)", 16);
  EXPECT_EQ(Sum(counters_only, "gpu__time_duration.sum"), 999u);
  EXPECT_EQ(Sum(counters_only, kMetricTime), 0u);
  EXPECT_THAT(joined->warnings, Contains(AllOf(HasSubstr("flushes the caches"), HasSubstr("locks the clocks"))));
  EXPECT_THAT(joined->warnings, Contains(StartsWith("1 kernels of the ncu file are not in the nsys file")));
  EXPECT_THAT(joined->warnings, Contains(StartsWith("2 kernels of the nsys file have no counters")));
}

TEST_F(JoinTimesTest, CompleteMatchWarnsOfNothingMissing) {
  Write(std::string(kStrings) + kKernels + Launch(0, 20, 8, 2) +
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (0, 60);");  // ncu has no memory sets: none is missed
  const absl::StatusOr<Imported> joined = JoinTimes(Counters({{"relu", 8}}), TryImport());
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_THAT(joined->warnings, Not(Contains(HasSubstr("kernels of the"))));
}

TEST_F(JoinTimesTest, FilesOfDifferentProgramsAreAnError) {
  Write(std::string(kStrings) + kKernels + Launch(0, 20, 8, 2));
  EXPECT_THAT(ErrorOf(JoinTimes(Counters({{"relu", 7}}), TryImport())), HasSubstr("no kernel in common"));
}

TEST_F(JoinTimesTest, EitherFilesErrorIsTheResults) {
  EXPECT_EQ(ErrorOf(JoinTimes(absl::InvalidArgumentError("bad.csv: no table"), TryImport())), "bad.csv: no table");
  Write(kStrings);
  EXPECT_THAT(ErrorOf(JoinTimes(Counters({{"relu", 8}}), TryImport())), HasSubstr("CUPTI_ACTIVITY_KIND_KERNEL"));
}

}  // namespace
}  // namespace rfinject::cli
