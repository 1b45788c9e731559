// Turns a new database into one of an older version, as far as tests need it.
#ifndef ABLATE_TESTS_STORAGE_OLDER_STORE_H_
#define ABLATE_TESTS_STORAGE_OLDER_STORE_H_

#include <string>

#include "absl/strings/str_cat.h"

namespace ablate::storage {

// Returns the statements that undo the steps after this version, which must be 19, or 24 or later.
inline std::string BackToVersion(int version) {
  struct Step {
    int version;
    const char* undo;
  };
  constexpr Step kUndone[] = {
      {31,
       "ALTER TABLE experiments DROP COLUMN paused; ALTER TABLE runs DROP COLUMN whole_seconds;"},
      {30,
       "ALTER TABLE experiments DROP COLUMN max_failed;"
       "ALTER TABLE experiments DROP COLUMN why_cancelled;"},
      {29, "DROP INDEX runs_program_data; ALTER TABLE runs DROP COLUMN program_data;"},
      {28, "ALTER TABLE runs DROP COLUMN shown;"},
      {27, "ALTER TABLE runs DROP COLUMN open_steps; DROP TABLE run_logs;"},
      {26, "DROP INDEX datasets_unused_until; ALTER TABLE datasets DROP COLUMN unused_until;"},
      {24,
       "DROP INDEX runs_ends; DROP INDEX runs_visible; DROP INDEX experiments_visible;"
       "DROP INDEX experiments_visible_title; DROP INDEX analyses_visible;"},
      {23, "DROP INDEX cells_name;"},
      {22, "ALTER TABLE analyses DROP COLUMN state_on_gpu;"},
      {21,
       "DROP INDEX experiments_title; DROP INDEX experiments_extends; DROP INDEX runs_growth;"
       "ALTER TABLE experiments DROP COLUMN tags; ALTER TABLE experiments DROP COLUMN note;"
       "ALTER TABLE experiments DROP COLUMN archived; ALTER TABLE experiments DROP COLUMN extends;"
       "ALTER TABLE experiments DROP COLUMN changes; ALTER TABLE runs DROP COLUMN "
       "first_experiment;"},
      {20,
       "DROP TABLE cell_fields; DROP TABLE final_values; DROP TABLE names;"
       "DROP INDEX experiments_undescribed; ALTER TABLE cells DROP COLUMN variant;"
       "ALTER TABLE experiments DROP COLUMN described;"},
  };
  std::string sql;
  for (const Step& step : kUndone) {
    if (step.version > version) absl::StrAppend(&sql, step.undo);
  }
  return absl::StrCat(sql, "PRAGMA user_version = ", version);
}

}  // namespace ablate::storage

#endif  // ABLATE_TESTS_STORAGE_OLDER_STORE_H_
