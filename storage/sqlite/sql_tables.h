// Virtual tables of SQL statements: metrics, from the runs' summaries, and points, from their
// series.
#ifndef ABLATE_STORAGE_SQLITE_SQL_TABLES_H_
#define ABLATE_STORAGE_SQLITE_SQL_TABLES_H_

#include <string>

#include "storage/sqlite/connection.h"

namespace ablate::storage {

// The store that the tables read, by a connection of their own; and the view of the runs that the
// user may see, with a column `run`, on the connection that has the tables.
struct SqlTableSource {
  Connection& db;
  std::string runs;
  bool is_read = false;  // set when a statement that reads one of the tables is prepared
};

// Adds the tables to a connection. `source` must outlive it. Returns SQLite's code.
int AddSqlTables(sqlite3* db, SqlTableSource* source);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_SQL_TABLES_H_
