// File: untrusted_database.h
//
// A SQLite file of unknown origin, opened to be read. Such a file can be made to never end: by a view where a
// table is expected, which computes rows without a limit, or by rows that a join multiplies. So only plain tables are
// read, and work that the file's size does not explain is ended.
//
//   UntrustedDatabase database;
//   if (absl::Status status = database.Open(path); !status.ok()) return status;
//   if (database.ColumnsOf("T").contains("a")) {
//     const Statement rows = database.Prepare("SELECT a FROM T");
//     while (database.Row(rows)) Use(sqlite3_column_int64(rows.get(), 0));
//   }
//   if (!database.status().ok()) return database.status();
#ifndef RFINJECT_CLI_IMPORT_NSYS_UNTRUSTED_DATABASE_H_
#define RFINJECT_CLI_IMPORT_NSYS_UNTRUSTED_DATABASE_H_

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"

namespace rfinject::cli {

struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

class UntrustedDatabase {
 public:
  // Fails with SQLite's reason; neither here nor below is the file's name part of a message.
  absl::Status Open(const std::string& path);

  // The columns of a plain table; none, and no failure, where there is no such table. A view or a virtual table of
  // that name is a failure.
  std::set<std::string> ColumnsOf(const std::string& table);
  // An empty one where SQLite refuses `sql`, which is a failure.
  Statement Prepare(const std::string& sql);
  // Goes to the next row; false behind the last one, and on a failure.
  bool Row(const Statement& statement);

  // The first failure of all that was done; OK while there was none.
  const absl::Status& status() const { return status_; }

 private:
  struct CloseDatabase {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  static int CountWork(void* self);
  void NoteError();  // SQLite's last one
  void Note(const std::string& why);

  std::unique_ptr<sqlite3, CloseDatabase> database_;
  int64_t work_left_ = 0;  // in calls of CountWork
  absl::Status status_;
};

// The text of a row's column; empty for NULL.
std::string ColumnText(const Statement& row, int column);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_NSYS_UNTRUSTED_DATABASE_H_
