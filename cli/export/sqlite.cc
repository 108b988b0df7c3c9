// Writes an SQLite database. Its tables are row sets with the columns of reports, their names and units;
// docs/use/IMPORT_AND_EXPORT.md shows what can be asked. It is made in memory and written as a whole, so that a
// failure leaves no half of one.
#include <sqlite3.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/export/export.h"
#include "cli/report/facts/memory.h"
#include "cli/report/facts/schemas.h"
#include "cli/report/facts/waits.h"
#include "cli/report/rows/column.h"
#include "cli/report/rows/stacks.h"
#include "cli/text/code_points.h"
#include "cli/words/opening.h"
#include "cli/words/words.h"

namespace rfinject::cli {
namespace {

// "rfij", by which a database says what made it.
constexpr int kApplicationId = 0x7266696a;
constexpr int kSchemaVersion = 1;

struct Closes {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, Closes>;
using Statement = std::unique_ptr<sqlite3_stmt, Closes>;

// What a table says of a run, besides the sums that all tables have.
struct SqlRun {
  const ExportedRun& run;
  ProcessInfo process;
};
Cell OfText(std::string_view text) { return text.empty() ? Cell{} : Cell{PrintableText(text)}; }

constexpr auto kRunColumns = std::to_array<ColumnOf<SqlRun>>({
    {TextColumn("job"), [](const SqlRun& at) { return OfText(at.run.job); }},
    {TextColumn("path"), [](const SqlRun& at) { return OfText(at.run.path); }},
    {TextColumn("trace_id"), [](const SqlRun& at) { return OfText(at.run.trace_id); }},
    {{.name = "started_unix_ns", .kind = Kind::kCount, .unit = "ns"},
     [](const SqlRun& at) {
       return KnownCount(static_cast<uint64_t>(std::max<int64_t>(at.process.start_unix_ns, 0)));
     }},
    {TextColumn("command"), [](const SqlRun& at) { return OfText(CommandText(at.process.argv)); }},
    {TextColumn("host"), [](const SqlRun& at) { return OfText(at.process.host); }},
    {CountColumn("pid"), [](const SqlRun& at) { return KnownCount(at.process.pid); }},
    {CountColumn("rank"),
     [](const SqlRun& at) { return at.run.run.processes == 1 ? Cell{uint64_t{at.process.rank}} : Cell{}; }},
    {CountColumn("world_size"), [](const SqlRun& at) { return KnownCount(at.process.world_size); }},
    {TextColumn("torch_version"), [](const SqlRun& at) { return OfText(at.process.torch_version); }},
});

constexpr auto kAlarmColumns = std::to_array<ColumnOf<Alarm>>({
    {TextColumn("alarm"), [](const Alarm& alarm) { return OfText(alarm.id); }},
    {TextColumn("place"), [](const Alarm& alarm) { return OfText(AlarmWhere(alarm)); }},
    {TextColumn("text"), [](const Alarm& alarm) { return OfText(alarm.text); }},
});

// A rule that holds; `report` is that of the run.
struct Advised {
  const Report& report;
  const Advice& advice;
};

constexpr auto kAdviceColumns = std::to_array<ColumnOf<Advised>>({
    {TextColumn("rule"), [](const Advised& at) { return OfText(at.advice.rule->name); }},
    {UnitColumn("gain_ns_per_step", "ns"), [](const Advised& at) { return Cell{at.advice.gain_ns}; }},
    {CountColumn("instead_of_another"), [](const Advised& at) { return Cell{at.advice.instead}; }},
    {CountColumn("proven"), [](const Advised& at) { return Cell{at.advice.rule->unproven.empty()}; }},
    {TextColumn("title"), [](const Advised& at) { return OfText(at.advice.rule->title); }},
    {TextColumn("why"), [](const Advised& at) { return OfText(AdviceWhy(at.advice, at.report.advice.facts)); }},
    {TextColumn("action"), [](const Advised& at) { return OfText(at.advice.action()); }},
});

std::string Quoted(std::string_view name) { return absl::StrCat("\"", std::string(name), "\""); }

std::string TypeOf(Kind kind) { return kind == Kind::kText ? "TEXT" : kind == Kind::kCount ? "INTEGER" : "REAL"; }

class SqliteExporter : public Exporter {
 public:
  explicit SqliteExporter(WriteBytes write) : write_(std::move(write)) {
    sqlite3* database = nullptr;
    const int code = sqlite3_open_v2(":memory:", &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
    database_.reset(database);
    if (code != SQLITE_OK) {
      status_ = absl::ResourceExhaustedError("out of memory");
      return;
    }
    Execute(absl::StrCat("PRAGMA application_id=", kApplicationId, ";PRAGMA user_version=", kSchemaVersion,
                         ";CREATE TABLE columns(\"table\" TEXT, name TEXT, title TEXT, unit TEXT, additive INTEGER);"
                         "BEGIN"));
  }

  absl::Status Add(const ExportedRun& exported) override {
    ++run_;
    const Report& kernels = exported.kernels;
    const std::vector<SqlRun> facts = {{exported, ProcessOf(exported)}};
    RowSet runs =
        FactRows(Schema::kSql, RowSetOf(kRunColumns, facts), [&kernels](size_t) -> const Report& { return kernels; });
    const std::vector<Row> total = {TotalRow(kernels)};
    for (Column& column : RowsOf(kernels, total).columns) {
      if (column.info.data && !IsIdentity(column.info.name)) runs.columns.push_back(std::move(column));
    }
    Insert("runs", runs);
    Insert("layers", Kept(exported.layers, exported.layers.layer_phases, By::kLayer));
    Insert("kernels", Kept(kernels, kernels.rows, By::kKernel));
    if (exported.lines != nullptr) Insert("lines", Kept(*exported.lines, exported.lines->rows, By::kSource));
    const std::vector<StackRow> stacks = FoldStacks(exported.run);
    Insert("stacks", StacksOf(stacks));
    const MemoryTable memory = FoldMemory(exported.run);
    Insert("memory", MemoryOf(memory.rows));
    const WaitTable waits = FoldWaits(exported.run);
    Insert("waits", RowsOf(waits));
    std::vector<Advised> advised;
    for (const Advice& advice : kernels.advice.advice) {
      if (advice.state == Advice::State::kHolds) advised.push_back({kernels, advice});
    }
    Insert("advice", RowSetOf(kAdviceColumns, advised));
    Insert("roofs", RoofsOf(kernels));
    Insert("alarms", RowSetOf(kAlarmColumns, kernels.alarms));
    return status_;
  }

  absl::Status Finish() override {
    Execute("COMMIT");
    if (!status_.ok()) return status_;
    inserts_.clear();
    sqlite3_int64 size = 0;
    struct Frees {
      void operator()(unsigned char* bytes) const { sqlite3_free(bytes); }
    };
    const std::unique_ptr<unsigned char, Frees> bytes(sqlite3_serialize(database_.get(), "main", &size, 0));
    if (bytes == nullptr) return absl::ResourceExhaustedError("out of memory");
    write_({reinterpret_cast<const char*>(bytes.get()), static_cast<size_t>(size)});
    return absl::OkStatus();
  }

 private:
  // The columns that rows of this grouping have.
  static RowSet Kept(const Report& report, const std::vector<Row>& rows, By by) {
    RowSet kept;
    kept.size = rows.size();
    for (Column& column : RowsOf(report, rows).columns) {
      if (column.info.data && Keeps(by, column.info.name)) kept.columns.push_back(std::move(column));
    }
    return kept;
  }

  void Execute(const std::string& sql) {
    if (status_.ok() && sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) Fail();
  }

  void Fail() { status_ = absl::InternalError(absl::StrCat("the database: ", sqlite3_errmsg(database_.get()))); }

  // Makes the table with the first rows. Every line begins with the number of its run.
  void Insert(const std::string& table, const RowSet& rows) {
    if (!status_.ok()) return;
    Statement& statement = inserts_[table];
    if (statement == nullptr) statement = Create(table, rows);
    for (size_t row = 0; row < rows.size && status_.ok(); ++row) {
      sqlite3_stmt* const into = statement.get();
      sqlite3_bind_int64(into, 1, run_);
      for (size_t i = 0; i < rows.columns.size(); ++i) {
        const Column& column = rows.columns[i];
        Bind(into, static_cast<int>(i) + 2, column.value ? column.value(row) : Cell{});
      }
      if (sqlite3_step(into) != SQLITE_DONE) Fail();
      sqlite3_reset(into);
    }
  }

  Statement Create(const std::string& table, const RowSet& rows) {
    std::string names = "run_id INTEGER", places = "?1";
    if (table == "runs") names += " PRIMARY KEY";
    int place = 1;
    for (const Column& column : rows.columns) {
      names += absl::StrCat(", ", Quoted(column.info.name), " ", TypeOf(column.info.kind));
      places += absl::StrCat(", ?", ++place);
    }
    Execute(absl::StrCat("CREATE TABLE ", table, "(", names, ")"));
    const Statement describe = Prepare("INSERT INTO columns VALUES(?1, ?2, ?3, ?4, ?5)");
    for (const Column& column : rows.columns) {
      if (describe == nullptr) break;
      Bind(describe.get(), 1, table);
      Bind(describe.get(), 2, std::string(column.info.name));
      Bind(describe.get(), 3, TextCell(column.info.title));
      Bind(describe.get(), 4, TextCell(column.info.unit));
      Bind(describe.get(), 5, column.info.additive);
      if (sqlite3_step(describe.get()) != SQLITE_DONE) Fail();
      sqlite3_reset(describe.get());
    }
    return Prepare(absl::StrCat("INSERT INTO ", table, " VALUES(", places, ")"));
  }

  Statement Prepare(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    if (status_.ok() && sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &statement, nullptr) != SQLITE_OK)
      Fail();
    return Statement(statement);
  }

  static void Bind(sqlite3_stmt* statement, int place, const Cell& cell) {
    if (const auto* text = std::get_if<std::string>(&cell)) {
      const std::string printable = PrintableText(*text);
      sqlite3_bind_text(statement, place, printable.data(), static_cast<int>(printable.size()), SQLITE_TRANSIENT);
    } else if (const auto* count = std::get_if<uint64_t>(&cell)) {
      // SQLite's integers are signed.
      if (*count <= INT64_MAX) {
        sqlite3_bind_int64(statement, place, static_cast<sqlite3_int64>(*count));
      } else {
        sqlite3_bind_double(statement, place, static_cast<double>(*count));
      }
    } else if (const auto* number = std::get_if<double>(&cell)) {
      sqlite3_bind_double(statement, place, *number);  // one that is not a number becomes NULL
    } else if (const auto* yes = std::get_if<bool>(&cell)) {
      sqlite3_bind_int64(statement, place, *yes ? 1 : 0);
    } else {
      sqlite3_bind_null(statement, place);
    }
  }

  const WriteBytes write_;
  Database database_;
  std::map<std::string, Statement> inserts_;  // by table; closed before the database is
  absl::Status status_;
  sqlite3_int64 run_ = 0;
};

}  // namespace

std::unique_ptr<Exporter> MakeSqliteExporter(WriteBytes write) {
  return std::make_unique<SqliteExporter>(std::move(write));
}

}  // namespace rfinject::cli
