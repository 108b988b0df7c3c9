#include "cli/import/nsys_sqlite.h"

#include <sqlite3.h>

#include <memory>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace rfinject::cli {
namespace {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

Statement Prepare(sqlite3* database, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(database, sql.c_str(), static_cast<int>(sql.size()), &statement, nullptr);
  return Statement(statement);
}

std::string Text(sqlite3_stmt* statement, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  return text == nullptr ? std::string()
                         : std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement, column)));
}

std::set<std::string> ColumnsOf(sqlite3* database, const std::string& table) {
  std::set<std::string> columns;
  const Statement statement = Prepare(database, absl::StrCat("SELECT name FROM pragma_table_info('", table, "')"));
  while (statement && sqlite3_step(statement.get()) == SQLITE_ROW) columns.insert(Text(statement.get(), 0));
  return columns;
}

uint32_t Unsigned(sqlite3_stmt* statement, int column) {
  const sqlite3_int64 value = sqlite3_column_int64(statement, column);
  return value < 0 ? 0 : static_cast<uint32_t>(value > UINT32_MAX ? UINT32_MAX : value);
}

class Importer {
 public:
  Importer(const std::string& path, const ImportOptions& options) : path_(path), options_(options) {}

  absl::StatusOr<Imported> Run() {
    sqlite3* raw = nullptr;
    const int opened = sqlite3_open_v2(path_.c_str(), &raw, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOFOLLOW, nullptr);
    database_.reset(raw);
    if (opened != SQLITE_OK) return Fail(raw != nullptr ? sqlite3_errmsg(raw) : "out of memory");
    // The file is untrusted: no functions or virtual tables that its schema names, no writes behind our back.
    sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_limit(raw, SQLITE_LIMIT_LENGTH, 16 << 20);

    const std::set<std::string> columns = ColumnsOf(raw, "CUPTI_ACTIVITY_KIND_KERNEL");
    if (columns.empty()) {
      const Statement probe = Prepare(raw, "SELECT name FROM sqlite_master LIMIT 1");
      if (!probe || sqlite3_step(probe.get()) > SQLITE_ROW) return Fail("not a SQLite file, or a damaged one");
      return Fail(
          "no table CUPTI_ACTIVITY_KIND_KERNEL: not an export of nsys, or one without CUDA kernels "
          "(nsys profile --trace cuda; nsys export --type sqlite)");
    }
    for (const char* needed : {"start", "end", "gridX", "blockX"}) {
      if (!columns.contains(needed)) return Fail(absl::StrCat("CUPTI_ACTIVITY_KIND_KERNEL has no column ", needed));
    }
    const std::string name = columns.contains("demangledName") ? "demangledName" : "shortName";
    if (!columns.contains(name)) return Fail("CUPTI_ACTIVITY_KIND_KERNEL has no column demangledName or shortName");
    const std::string shared = columns.contains("dynamicSharedMemory") ? "k.dynamicSharedMemory" : "0";
    const std::string device = columns.contains("deviceId") ? "k.deviceId" : "0";
    absl::Status status =
        Read(absl::StrCat("SELECT s.value, k.gridX, k.gridY, k.gridZ, k.blockX, k.blockY, k.blockZ, ", shared, ", ",
                          device,
                          ", k.end - k.start FROM CUPTI_ACTIVITY_KIND_KERNEL k "
                          "LEFT JOIN StringIds s ON s.id = k.",
                          name),
             Phase::kOther);
    if (!status.ok()) return status;
    for (const auto& [table, what] :
         {std::pair{"CUPTI_ACTIVITY_KIND_MEMCPY", "memcpy"}, std::pair{"CUPTI_ACTIVITY_KIND_MEMSET", "memset"}}) {
      if (ColumnsOf(raw, table).empty()) continue;
      status = Read(absl::StrCat("SELECT '", what, "', 0, 0, 0, 0, 0, 0, 0, 0, k.end - k.start FROM ", table, " k"),
                    Phase::kData);
      if (!status.ok()) return status;
    }
    if (result_.kernels == 0) return Fail("the export has no kernels");
    Finish();
    return std::move(result_);
  }

 private:
  absl::Status Fail(const std::string& why) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": ", why));
  }

  absl::Status Read(const std::string& sql, Phase phase) {
    const Statement statement = Prepare(database_.get(), sql);
    if (!statement) return Fail(sqlite3_errmsg(database_.get()));
    int status;
    while ((status = sqlite3_step(statement.get())) == SQLITE_ROW) {
      sqlite3_stmt* row = statement.get();
      ++result_.rows;
      const sqlite3_int64 duration = sqlite3_column_int64(row, 9);
      if (sqlite3_column_type(row, 9) == SQLITE_NULL || duration < 0) {
        ++result_.skipped_lines;
        continue;
      }
      LaunchKey key;
      key.phase = phase;
      key.kernel = Text(row, 0);
      if (key.kernel.empty()) key.kernel = "(no name)";
      for (int i = 0; i < 3; ++i) {
        key.grid[static_cast<size_t>(i)] = Unsigned(row, 1 + i);
        key.block[static_cast<size_t>(i)] = Unsigned(row, 4 + i);
      }
      key.dynamic_shared_bytes = Unsigned(row, 7);
      key.device = Unsigned(row, 8);
      LaunchStats& stats = run_.launches[key];
      ++stats.launches;
      stats.metrics[std::string(kMetricTime)].Add(static_cast<uint64_t>(duration));
      ++result_.kernels;
    }
    if (status == SQLITE_DONE) return absl::OkStatus();
    return Fail(absl::StrCat("behind record ", result_.rows, ": ", sqlite3_errmsg(database_.get())));
  }

  void Finish() {
    const std::string model = options_.model.empty() ? "program" : options_.model;
    run_.key.source = SourceKind::kImported;
    run_.key.collector = "nsys";
    run_.key.models = {model};
    run_.models[model] = ModelInfo{.class_name = model};
    run_.processes = 1;
    run_.tier = 6;
    run_.steps.steps = 1;
    DeviceInfo device;
    const Statement gpu = Prepare(database_.get(), "SELECT name FROM TARGET_INFO_GPU ORDER BY id LIMIT 1");
    if (gpu && sqlite3_step(gpu.get()) == SQLITE_ROW) device.name = Text(gpu.get(), 0);
    if (!options_.gpu.empty()) device.name = options_.gpu;
    run_.key.gpu = device.name;
    run_.devices = {device};
    std::map<LaunchKey, LaunchStats> launches;
    for (auto& [key, stats] : run_.launches) {
      LaunchKey named = key;
      named.layer = LayerKey{model, ""};
      launches[named].Merge(stats);
    }
    run_.launches = std::move(launches);
    run_.layers[LayerKey{model, ""}] = LayerInfo{.order = 1};
    result_.profile.metrics[std::string(kMetricTime)] = MetricInfo{std::string(kMetricTime), "ns", 1};
    result_.warnings.push_back(
        absl::StrCat(path_, ": nsys has no counters; FLOP and bytes are missing, times are there"));
    if (result_.skipped_lines > 0) {
      result_.warnings.push_back(
          absl::StrCat(path_, ": ", result_.skipped_lines, " records without a valid time were left out"));
    }
    result_.profile.runs[run_.key] = std::move(run_);
  }

  const std::string path_;
  const ImportOptions& options_;
  Database database_;
  cli::Run run_;
  Imported result_;
};

}  // namespace

absl::StatusOr<Imported> ImportNsysSqlite(const std::string& path, const ImportOptions& options) {
  return Importer(path, options).Run();
}

}  // namespace rfinject::cli
