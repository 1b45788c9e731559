#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "storage/sqlite/artifacts.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/ids.h"
#include "storage/store.h"

namespace ablate::storage {
namespace {

// Columns in the order of the table, without its row's number.
DatasetRecord ReadDataset(const Statement& row) {
  DatasetRecord dataset;
  dataset.id = row.Text(0);
  dataset.display_name = row.Text(1);
  dataset.sha256 = row.Text(2);
  dataset.bytes = row.As<uint64_t>(3);
  dataset.documents = row.As<uint64_t>(4);
  dataset.characters = row.As<uint32_t>(5);
  dataset.create_time = row.Int(6);
  dataset.owner = row.Text(7);
  return dataset;
}

std::optional<DatasetRecord> FindByHash(Connection& db, absl::string_view sha256) {
  Statement row(
      db,
      "SELECT name, display_name, sha256, bytes, documents, characters, create_time, owner "
      "FROM datasets WHERE sha256 = ?1",
      sha256);
  if (!row.Row()) return std::nullopt;
  return ReadDataset(row);
}

}  // namespace

absl::StatusOr<DatasetRecord> Store::AddDataset(const DatasetRecord& dataset) {
  return db_->Write([&](Transaction& t) -> absl::StatusOr<DatasetRecord> {
    if (auto same = FindByHash(t.db, dataset.sha256); same.has_value()) return *std::move(same);
    if (Statement(t.db, "SELECT 1 FROM datasets WHERE name = ?1", dataset.id).Row()) {
      return absl::AlreadyExistsError(
          absl::StrCat("data set '", dataset.id, "' exists with other contents"));
    }
    if (blobs_ != nullptr && !blobs_->Size(dataset.sha256).ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("data set '", dataset.id, "': its blob is not published; publish it first"));
    }
    DatasetRecord added = dataset;
    if (added.create_time == 0) added.create_time = t.now;
    Statement(t.db,
              "INSERT INTO datasets (name, display_name, sha256, bytes, documents, characters, "
              "create_time, owner) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
              added.id, added.display_name, added.sha256, added.bytes, added.documents,
              added.characters, added.create_time, added.owner)
        .Run();
    return added;
  });
}

absl::StatusOr<bool> Store::OwnsAnything(absl::string_view user) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<bool> {
    return Statement(db,
                     "SELECT 1 FROM experiments WHERE owner = ?1 AND deleted = 0 "
                     "UNION ALL SELECT 1 FROM datasets WHERE owner = ?1 "
                     "UNION ALL SELECT 1 FROM analyses WHERE owner = ?1 LIMIT 1",
                     user)
        .Row();
  });
}

absl::StatusOr<DatasetRecord> Store::FindDataset(absl::string_view id_or_name) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<DatasetRecord> {
    Statement by_id(
        db,
        "SELECT name, display_name, sha256, bytes, documents, characters, create_time, owner "
        "FROM datasets WHERE name = ?1",
        id_or_name);
    if (by_id.Row()) return ReadDataset(by_id);
    Statement by_name(
        db,
        "SELECT name, display_name, sha256, bytes, documents, characters, create_time, owner "
        "FROM datasets WHERE display_name = ?1 ORDER BY name LIMIT 2",
        id_or_name);
    if (!by_name.Row()) return NotFound("data set", id_or_name);
    DatasetRecord found = ReadDataset(by_name);
    if (!by_name.Row()) return found;
    return absl::FailedPreconditionError(absl::StrCat("several data sets are named '", id_or_name,
                                                      "', such as ", found.id, " and ",
                                                      by_name.View(0), ": use an id"));
  });
}

absl::StatusOr<DatasetRecord> Store::FindDatasetOf(absl::string_view sha256) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<DatasetRecord> {
    std::optional<DatasetRecord> found = FindByHash(db, sha256);
    if (!found.has_value()) return NotFound("data set of hash", sha256);
    return *std::move(found);
  });
}

absl::StatusOr<std::vector<DatasetRecord>> Store::ListDatasets(absl::string_view after,
                                                               uint32_t limit) {
  return db_->Read([&](Connection& db) {
    std::vector<DatasetRecord> datasets;
    Statement row(
        db,
        "SELECT name, display_name, sha256, bytes, documents, characters, create_time, owner "
        "FROM datasets WHERE name > ?1 ORDER BY name LIMIT ?2",
        after, limit);
    while (row.Row()) datasets.push_back(ReadDataset(row));
    return datasets;
  });
}

absl::StatusOr<DatasetCounts> Store::Counts(absl::string_view id) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<DatasetCounts> {
    Statement found(
        db, "SELECT document_lengths, code_points, line_ends FROM datasets WHERE name = ?1", id);
    if (!found.Row()) return NotFound("data set", id);
    return DatasetCounts{found.Text(0), found.As<uint64_t>(1), found.As<uint64_t>(2)};
  });
}

absl::Status Store::KeepCounts(absl::string_view id, const DatasetCounts& counts) {
  return db_->Write([&](Transaction& t) {
    Statement(t.db,
              "UPDATE datasets SET document_lengths = ?2, code_points = ?3, line_ends = ?4 "
              "WHERE name = ?1",
              id, counts.document_lengths, counts.code_points, counts.line_ends)
        .Run();
    return absl::OkStatus();
  });
}

absl::Status Store::DeleteDataset(absl::string_view id) {
  return db_->Free([&](Transaction& t) -> absl::Status {
    Statement found(t.db, "SELECT id, sha256 FROM datasets WHERE name = ?1", id);
    if (!found.Row()) return NotFound("data set", id);
    Statement user(t.db, "SELECT name FROM runs WHERE dataset = ?1 LIMIT 1", found.Int(0));
    if (user.Row()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "data set '", id, "' is used by run ", user.View(0), ": delete its experiments first"));
    }
    DropReference(t, found.View(1), OnSweep::kTrash);
    Statement(t.db, "DELETE FROM datasets WHERE id = ?1", found.Int(0)).Run();
    return absl::OkStatus();
  });
}

}  // namespace ablate::storage
