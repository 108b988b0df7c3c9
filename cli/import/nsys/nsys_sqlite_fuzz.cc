// Feeds bytes to the import of nsys's SQLite export as a file. Whatever they are, it must end soon and within bounded
// memory, and either fail with the file's name and a reason or give the launches that it says it found.
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/import/nsys/nsys_sqlite.h"

namespace {

using namespace rfinject::cli;  // NOLINT: the harness is all there is here

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "nsys_sqlite_fuzz: %s\n", what);
  std::abort();
}

// The one file that all inputs are written to, in memory where the machine has a file system there.
class InputFile {
 public:
  InputFile() {
    for (const char* folder : {"/dev/shm", "/tmp"}) {
      path_ = std::string(folder) + "/nsys_sqlite_fuzz.XXXXXX";
      fd_ = mkostemp(path_.data(), O_CLOEXEC);
      if (fd_ >= 0) return;
    }
    Fail("no folder to write to");
  }
  ~InputFile() {
    close(fd_);
    unlink(path_.c_str());
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& Hold(const uint8_t* data, size_t size) {
    const bool held = ftruncate(fd_, 0) == 0 && pwrite(fd_, data, size, 0) == static_cast<ssize_t>(size);
    if (!held) Fail("the input cannot be written");
    return path_;
  }

 private:
  std::string path_;
  int fd_ = -1;
};

// --- Files by schema: every table and column that the import knows, as tables, views and what else SQLite has, with
// values of every type.

struct KnownTable {
  std::string_view name;
  std::array<std::string_view, 18> columns;
};
constexpr KnownTable kTables[] = {
    {"StringIds", {"id", "value"}},
    {"CUPTI_ACTIVITY_KIND_KERNEL",
     {"start", "end", "gridX", "blockX", "demangledName", "gridY", "gridZ", "blockY", "blockZ", "correlationId",
      "globalPid", "deviceId", "shortName", "dynamicSharedMemory"}},
    {"CUPTI_ACTIVITY_KIND_MEMCPY", {"start", "end", "correlationId", "globalPid", "deviceId"}},
    {"CUPTI_ACTIVITY_KIND_MEMSET", {"start", "end", "correlationId", "globalPid", "deviceId"}},
    {"CUPTI_ACTIVITY_KIND_RUNTIME", {"start", "end", "correlationId", "globalTid", "nameId"}},
    {"NVTX_EVENTS", {"start", "end", "eventType", "text", "globalTid", "textId"}},
    {"TARGET_INFO_GPU", {"id", "name"}},
    {"TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"}},
};

class Maker {
 public:
  explicit Maker(std::mt19937_64& random) : random_(random) {}

  std::string Sql() {
    std::string sql = "PRAGMA page_size=512;";
    if (OneIn(16)) sql += "PRAGMA encoding='UTF-16';";
    for (const KnownTable& table : kTables) {
      if (!OneIn(table.name.starts_with("CUPTI_ACTIVITY_KIND_KERNEL") ? 64 : 6)) sql += Table(table);
    }
    return sql;
  }

 private:
  bool OneIn(uint64_t count) { return random_() % count == 0; }

  std::string Table(const KnownTable& table) {
    std::vector<std::string> columns;
    for (const std::string_view column : table.columns) {
      if (!column.empty() && !OneIn(32)) columns.emplace_back(column);
    }
    if (columns.empty() || OneIn(32)) columns.emplace_back("other");
    const std::string name(table.name);
    if (OneIn(48)) return View(name, columns);
    std::string sql = "CREATE TABLE " + name + "(";
    static constexpr const char* kTypes[] = {"",      " INTEGER", " TEXT",
                                             " BLOB", " REAL",    " INTEGER NOT NULL DEFAULT 3"};
    for (const std::string& column : columns) {
      sql += (column == columns.front() ? "" : ",") + column + (OneIn(4) ? kTypes[random_() % 6] : " INTEGER");
      if (OneIn(64)) sql += " GENERATED ALWAYS AS (hex(zeroblob(100)))";
    }
    sql += OneIn(16) ? ",PRIMARY KEY(" + columns.front() + ")) WITHOUT ROWID;" : ");";
    for (uint64_t rows = random_() % 6; rows > 0; --rows) {
      sql += "INSERT OR IGNORE INTO " + name + " VALUES(";
      for (const std::string& column : columns) {
        sql += (column == columns.front() ? "" : ",") + Value(column);
      }
      sql += ");";
    }
    if (OneIn(16)) sql += "CREATE INDEX i" + name + " ON " + name + "(" + columns.back() + ");";
    return sql;
  }

  // One that has rows of its own, and one without an end.
  std::string View(const std::string& name, const std::vector<std::string>& columns) {
    std::string sql = "CREATE VIEW " + name + " AS ";
    if (OneIn(2)) sql += "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) ";
    const std::string value = sql.ends_with("n) ") ? "i" : "7";
    sql += "SELECT ";
    for (const std::string& column : columns) {
      sql += (column == columns.front() ? "" : ",") + value + " AS " + column;
    }
    return sql + (value == "i" ? " FROM n;" : ";");
  }

  std::string Value(const std::string& column) {
    static constexpr const char* kOdd[] = {"NULL",
                                           "-1",
                                           "9223372036854775807",
                                           "-9223372036854775808",
                                           "1e300",
                                           "1.5",
                                           "''",
                                           "'x'",
                                           "x'00ff41'",
                                           "zeroblob(5000)",
                                           "'step 1'",
                                           "char(27)||'[31m'",
                                           "CAST(x'c328' AS TEXT)"};
    static constexpr const char* kTexts[] = {"'step 1'",
                                             "'step 2'",
                                             "'layer1'",
                                             "'forward'",
                                             "'aten::conv2d, seq = 1'",
                                             "'enumerate(DataLoader)#x.__next__'",
                                             "'cudaDeviceSynchronize'",
                                             "'cudaMemcpy_v3020'",
                                             "'NVIDIA A100-SXM4-40GB'"};
    if (OneIn(12)) return kOdd[random_() % std::size(kOdd)];
    if (column == "value" || column == "text" || column == "name") return kTexts[random_() % std::size(kTexts)];
    if (column == "eventType") return OneIn(4) ? "60" : "59";
    if (column == "globalTid" || column == "globalPid") return std::to_string(16777216 + random_() % 2);
    if (column == "end") return std::to_string(20 + random_() % 60);
    return std::to_string(random_() % 24);
  }

  std::mt19937_64& random_;
};

}  // namespace

std::vector<uint8_t> HostileInput(std::mt19937_64& random) {
  sqlite3* raw = nullptr;
  if (sqlite3_open(":memory:", &raw) != SQLITE_OK) Fail("no memory for a database");
  const std::unique_ptr<sqlite3, decltype([](sqlite3* database) { sqlite3_close_v2(database); })> database(raw);
  // What SQLite refuses (a generated column in a primary key) leaves the tables before it.
  (void)sqlite3_exec(raw, Maker(random).Sql().c_str(), nullptr, nullptr, nullptr);
  sqlite3_int64 size = 0;
  const std::unique_ptr<uint8_t, decltype([](uint8_t* bytes) { sqlite3_free(bytes); })> bytes(
      sqlite3_serialize(raw, "main", &size, 0));
  if (bytes == nullptr) return {0};
  std::vector<uint8_t> input(bytes.get(), bytes.get() + size);
  // Half of them are damaged somewhere, so that the damage is met by every query.
  if (random() % 2 == 0 && !input.empty()) {
    for (uint64_t n = 1 + random() % 4; n > 0; --n) input[random() % input.size()] = static_cast<uint8_t>(random());
  }
  return input;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static InputFile file;
  const std::string& path = file.Hold(data, size);
  const absl::StatusOr<Imported> imported = ImportNsysSqlite(path, {});
  if (!imported.ok()) {
    const std::string message(imported.status().message());
    if (!message.starts_with(path + ": ") || message.size() < path.size() + 8) {
      Fail("a failure without the file's name and a reason");
    }
    return 0;
  }
  uint64_t launches = 0;
  for (const auto& [key, run] : imported->profile.runs) {
    for (const auto& [launch, stats] : run.launches) launches += stats.launches;
  }
  if (imported->kernels == 0 || launches != imported->kernels) Fail("launches were lost");
  if (imported->rows != imported->kernels + imported->skipped_lines) Fail("records were lost");
  return 0;
}
