#include "cli/import/nsys/overlaps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/import/nsys/nsys_sqlite.h"

namespace rfinject::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr char kTables[] =
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
    "INSERT INTO StringIds VALUES (1, 'A'), (2, 'B'), (3, 'C'), (4, 'D'), (10, 'cudaLaunchKernel_v7000'), "
    "(11, 'cudaLaunchKernelExC_v11060');"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId "
    "INTEGER, correlationId INTEGER, globalPid INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, "
    "blockY INTEGER, blockZ INTEGER, demangledName INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, "
    "nameId INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId "
    "INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER);";
constexpr int64_t kProcess = 5 * 16777216;

struct Ran {
  int name;
  int64_t start_us, end_us;
  int call = 10;  // what launched it
  int64_t stream = 7, context = 1, process = kProcess;
};

struct Read {
  std::map<std::string, uint64_t> us;  // by kernel
  std::map<std::string, std::string> said;
};

Read ImportOf(const std::vector<Ran>& all, const std::string& more = "") {
  const std::string path = absl::StrCat(::testing::TempDir(), "/nsys_overlaps_", getpid(), ".sqlite");
  std::filesystem::remove(path);
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  std::string sql = absl::StrCat(kTables, more);
  int number = 0;
  for (const Ran& one : all) {
    ++number;
    absl::StrAppend(&sql, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (", 1000 * one.start_us, ", ",
                    1000 * one.end_us, ", 0, ", one.context, ", ", one.stream, ", ", number, ", ", one.process,
                    ", 1, 1, 1, 1, 1, 1, ", one.name, ");");
    absl::StrAppend(&sql, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (", number, ", ", number, ", ",
                    one.process + 1, ", ", number, ", ", one.call, ");");
  }
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
  sqlite3_close(database);
  Read read;
  const absl::StatusOr<Imported> imported = ImportNsysSqlite(path, {});
  std::filesystem::remove(path);
  EXPECT_TRUE(imported.ok()) << imported.status();
  if (!imported.ok()) return read;
  const cli::Run& run = imported->profile.runs.begin()->second;
  for (const auto& [key, stats] : run.launches) {
    read.us[key.kernel] += static_cast<uint64_t>(stats.metrics.at(std::string(kMetricTime)).sum) / 1000;
  }
  for (const trace::Diagnostic& one : run.kept.diagnostic) read.said[one.id] = one.text;
  return read;
}

// A lost end of three seconds.
TEST(NsysOverlaps, AKernelEndsWhereTheNextOfItsStreamBegins) {
  const Read read = ImportOf({{1, 0, 3'000'000}, {2, 100, 150}, {3, 150, 200}});
  EXPECT_THAT(read.us, ElementsAre(Pair("A", 100), Pair("B", 50), Pair("C", 50)));
  EXPECT_THAT(
      read.said.at("kernels-overlap"),
      HasSubstr("1 kernel is said to run on while others of the stream do, which cannot be: 3.00 s of that is "
                "not counted, most of it of A"));
}

TEST(NsysOverlaps, ALongNameIsCutBetweenCharacters) {
  LostOverlaps lost;
  lost.Add(1000, std::string(79, 'x') + "\xc3\xa4" + std::string(500, 'y'));
  EXPECT_TRUE(lost.Text().ends_with("of " + std::string(79, 'x') + "..")) << lost.Text();
}

TEST(NsysOverlaps, ACopyIsInTheStreamToo) {
  const Read read =
      ImportOf({{1, 0, 100}, {2, 200, 300}},
               absl::StrCat("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (150000, 5000000, 0, 1, 7, 90, ", kProcess,
                            ", 64, 1);"));
  EXPECT_THAT(read.us, ElementsAre(Pair("A", 100), Pair("B", 100), Pair("Memcpy HtoD", 50)));
  EXPECT_THAT(read.said.at("kernels-overlap"), HasSubstr("most of it of Memcpy HtoD"));
}

// With attributes the next one may begin before this one ends, and counts whole.
TEST(NsysOverlaps, AProgrammaticLaunchMayBeginEarlier) {
  const Read read = ImportOf({{1, 0, 100}, {2, 90, 190, 11}, {3, 180, 280, 11}});
  EXPECT_THAT(read.us, ElementsAre(Pair("A", 100), Pair("B", 100), Pair("C", 100)));
  EXPECT_FALSE(read.said.contains("kernels-overlap"));
}

TEST(NsysOverlaps, StreamsOfOneNumberAreOthersInOtherContextsAndProcesses) {
  const Read read = ImportOf({{1, 0, 1000},
                              {2, 100, 200, 10, /*stream=*/8},
                              {3, 100, 200, 10, 7, /*context=*/2},
                              {4, 100, 200, 10, 7, 1, /*process=*/2 * kProcess}});
  EXPECT_THAT(read.us, ElementsAre(Pair("A", 1000), Pair("B", 100), Pair("C", 100), Pair("D", 100)));
  EXPECT_FALSE(read.said.contains("kernels-overlap"));
}

}  // namespace
}  // namespace rfinject::cli
