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

constexpr size_t kShownIds = 5;  // of data sets that one name may mean

// The columns that ReadDataset reads, in its order. A macro, because a statement is a literal.
#define ABLATE_DATASET_COLUMNS                                                     \
  "name, display_name, sha256, bytes, documents, characters, create_time, owner, " \
  "private_to, kind, encoded_from"
#define ABLATE_SELECT_DATASETS "SELECT " ABLATE_DATASET_COLUMNS " FROM datasets "

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
  dataset.private_to = row.Text(8);
  dataset.kind = static_cast<DatasetKind>(row.Int(9));
  dataset.encoded_from = row.Text(10);
  return dataset;
}

// Returns at most one for a viewer who sees nothing private.
std::vector<DatasetRecord> FindByHash(Connection& db, const Viewer& viewer,
                                      absl::string_view sha256) {
  std::vector<DatasetRecord> found;
  Statement row(db,
                ABLATE_SELECT_DATASETS
                "WHERE sha256 = ?1 AND (?2 OR private_to IN ('', ?3)) ORDER BY private_to DESC",
                sha256, viewer.sees_all, viewer.user);
  while (row.Row()) found.push_back(ReadDataset(row));
  return found;
}

// Returns the data sets that the name may mean: the viewer's own, or others'.
std::vector<DatasetRecord> FindByDisplayName(Connection& db, const std::string& user, bool own,
                                             absl::string_view name) {
  std::vector<DatasetRecord> found;
  Statement row(db,
                ABLATE_SELECT_DATASETS
                "WHERE display_name = ?1 AND (owner = ?2) = ?3 AND private_to IN ('', ?2) "
                "ORDER BY name LIMIT ?4",
                name, user, own, kShownIds + 1);
  while (row.Row()) found.push_back(ReadDataset(row));
  return found;
}

absl::Status SeveralOfName(absl::string_view name, const std::vector<DatasetRecord>& found) {
  std::string ids;
  for (size_t i = 0; i < found.size() && i < kShownIds; ++i) {
    absl::StrAppend(&ids, i == 0 ? "" : ", ", found[i].id);
  }
  return absl::FailedPreconditionError(
      absl::StrCat("several data sets are named '", name, "': ", ids,
                   found.size() > kShownIds ? " and more" : "", ". Use an ID"));
}

}  // namespace

std::string EncodedFrom(absl::string_view text_sha256, absl::string_view tokenizer_sha256,
                        bool documents) {
  return absl::StrCat(text_sha256, "/", tokenizer_sha256, documents ? "/documents" : "");
}

absl::StatusOr<DatasetRecord> Store::AddDataset(const DatasetRecord& dataset) {
  return db_->Write([&](Transaction& t) -> absl::StatusOr<DatasetRecord> {
    for (DatasetRecord& same : FindByHash(t.db, kServer, dataset.sha256)) {
      if (same.private_to == dataset.private_to) return std::move(same);
    }
    if (Statement(t.db, "SELECT 1 FROM datasets WHERE name = ?1", dataset.id).Row()) {
      return absl::AlreadyExistsError(absl::StrCat(
          "data set '", dataset.id, "' exists with other content. Choose another name"));
    }
    if (blobs_ != nullptr && !blobs_->Size(dataset.sha256).ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("data set '", dataset.id, "': its blob isn't published. Publish it first"));
    }
    DatasetRecord added = dataset;
    if (added.create_time == 0) added.create_time = t.now;
    Statement(t.db,
              "INSERT INTO datasets (" ABLATE_DATASET_COLUMNS
              ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
              added.id, added.display_name, added.sha256, added.bytes, added.documents,
              added.characters, added.create_time, added.owner, added.private_to,
              static_cast<int64_t>(added.kind), added.encoded_from)
        .Run();
    return added;
  });
}

absl::StatusOr<bool> Store::OwnsAnything(absl::string_view user) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<bool> {
    return Statement(db,
                     "SELECT 1 FROM experiments WHERE owner = ?1 AND deleted = 0 "
                     "UNION ALL SELECT 1 FROM datasets WHERE owner = ?1 "
                     "UNION ALL SELECT 1 FROM models WHERE owner = ?1 "
                     "UNION ALL SELECT 1 FROM analyses WHERE owner = ?1 OR private_to = ?1 "
                     "UNION ALL SELECT 1 FROM runs WHERE private_to = ?1 LIMIT 1",
                     user)
        .Row();
  });
}

absl::StatusOr<DatasetRecord> Store::FindDataset(const Viewer& viewer,
                                                 absl::string_view id_or_name) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<DatasetRecord> {
    Statement by_id(db, ABLATE_SELECT_DATASETS "WHERE name = ?1", id_or_name);
    if (by_id.Row()) {
      DatasetRecord found = ReadDataset(by_id);
      if (Sees(viewer, found.private_to)) return found;
    }
    for (const bool own : {true, false}) {
      std::vector<DatasetRecord> named = FindByDisplayName(db, viewer.user, own, id_or_name);
      if (named.size() == 1) return std::move(named.front());
      if (!named.empty()) return SeveralOfName(id_or_name, named);
    }
    return NotFound("data set", id_or_name);
  });
}

absl::StatusOr<std::vector<DatasetRecord>> Store::FindDatasetsOf(const Viewer& viewer,
                                                                 absl::string_view sha256) {
  return db_->Read([&](Connection& db) { return FindByHash(db, viewer, sha256); });
}

absl::StatusOr<std::optional<DatasetRecord>> Store::FindEncoded(absl::string_view encoded_from,
                                                                absl::string_view private_to) {
  return db_->Read([&](Connection& db) {
    std::optional<DatasetRecord> found;
    Statement row(db,
                  ABLATE_SELECT_DATASETS
                  "WHERE encoded_from = ?1 AND encoded_from <> '' AND private_to IN ('', ?2) "
                  "ORDER BY private_to DESC LIMIT 1",
                  encoded_from, private_to);
    if (row.Row()) found = ReadDataset(row);
    return found;
  });
}

absl::StatusOr<std::vector<DatasetRecord>> Store::ListDatasets(const Viewer& viewer,
                                                               absl::string_view after,
                                                               uint32_t limit) {
  return db_->Read([&](Connection& db) {
    std::vector<DatasetRecord> datasets;
    Statement row(db,
                  ABLATE_SELECT_DATASETS
                  "WHERE name > ?1 AND (?3 OR private_to IN ('', ?4)) ORDER BY name LIMIT ?2",
                  after, limit, viewer.sees_all, viewer.user);
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
    Statement user(
        t.db, "SELECT name, private_to FROM runs WHERE dataset = ?1 ORDER BY private_to LIMIT 1",
        found.Int(0));
    if (user.Row()) {
      const std::string run =
          user.View(1).empty() ? absl::StrCat("run ", user.View(0)) : std::string("a private run");
      return absl::FailedPreconditionError(absl::StrCat(
          "data set '", id, "' is used by ", run, ". Remove its experiments first (`ablate rm`)"));
    }
    DropReference(t, found.View(1), OnSweep::kTrash);
    Statement(t.db, "DELETE FROM datasets WHERE id = ?1", found.Int(0)).Run();
    return absl::OkStatus();
  });
}

}  // namespace ablate::storage
