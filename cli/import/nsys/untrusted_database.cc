#include "cli/import/nsys/untrusted_database.h"

#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "gpus/kernel_names.h"

namespace rfinject::cli {
namespace {

// SQLite's virtual machine makes some 500 steps for a row of an export, over all queries that an import asks, and a
// row has 30 bytes at least.
constexpr int64_t kStepsOfAnyFile = 50'000'000, kStepsPerByte = 200;
constexpr int kStepsPerCall = 1 << 16;

constexpr int kLongestValue = 16 << 20;  // in bytes

// IsCommunicationKernel, for queries.
void TellCommunication(sqlite3_context* result, int /*count*/, sqlite3_value** name) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(*name));
  sqlite3_result_int(result, text != nullptr && IsCommunicationKernel(text) ? 1 : 0);
}

}  // namespace

std::string ColumnText(const Statement& row, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(row.get(), column));
  return text == nullptr ? std::string()
                         : std::string(text, static_cast<size_t>(sqlite3_column_bytes(row.get(), column)));
}

int UntrustedDatabase::CountWork(void* self) {
  return static_cast<UntrustedDatabase*>(self)->work_left_-- > 0 ? 0 : 1;
}

void UntrustedDatabase::NoteError() {
  if (!status_.ok()) return;
  const int code = database_ == nullptr ? SQLITE_NOMEM : sqlite3_errcode(database_.get());
  Note(code == SQLITE_INTERRUPT
           ? "reading it takes far more work than its size explains: its rows multiply each other"
       : code == SQLITE_NOTADB ? "not a SQLite file, or a damaged one"
       : database_ == nullptr  ? "out of memory"
                               : sqlite3_errmsg(database_.get()));
}

void UntrustedDatabase::Note(const std::string& why) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(why);
}

absl::Status UntrustedDatabase::Open(const std::string& path) {
  sqlite3* raw = nullptr;
  // One thread reads it; a lock around each value of each row would be a tenth of the time.
  const int opened =
      sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX, nullptr);
  database_.reset(raw);
  if (opened != SQLITE_OK) {
    NoteError();
    return status_;
  }
  // Functions and virtual tables that its schema names are not used, and nothing is written.
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_limit(raw, SQLITE_LIMIT_LENGTH, kLongestValue);
  sqlite3_create_function(raw, "is_communication_kernel", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY,
                          nullptr, TellCommunication, nullptr, nullptr);
  struct stat info {};
  const int64_t bytes = stat(path.c_str(), &info) == 0 ? info.st_size : 0;
  work_left_ = (kStepsOfAnyFile + kStepsPerByte * bytes) / kStepsPerCall;
  sqlite3_progress_handler(raw, kStepsPerCall, CountWork, this);
  return status_;
}

Statement UntrustedDatabase::Prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_.get(), sql.c_str(), static_cast<int>(sql.size()), &statement, nullptr) !=
      SQLITE_OK) {
    NoteError();
  }
  return Statement(statement);
}

bool UntrustedDatabase::Row(const Statement& statement) {
  if (!statement || !status_.ok()) return false;
  const int result = sqlite3_step(statement.get());
  if (result != SQLITE_ROW && result != SQLITE_DONE) NoteError();
  return result == SQLITE_ROW;
}

std::set<std::string> UntrustedDatabase::ColumnsOf(const std::string& table) {
  std::set<std::string> columns;
  // What SQLite made of the schema, and not what the file says that it is.
  const Statement kind =
      Prepare(absl::StrCat("SELECT type FROM pragma_table_list('", table, "') WHERE schema = 'main'"));
  if (!Row(kind)) return columns;
  if (const std::string type = ColumnText(kind, 0); type != "table") {
    Note(absl::StrCat(table, " is a ", type, ", not a table"));
    return columns;
  }
  const Statement names = Prepare(absl::StrCat("SELECT name FROM pragma_table_info('", table, "')"));
  while (Row(names)) columns.insert(ColumnText(names, 0));
  return columns;
}

}  // namespace rfinject::cli
