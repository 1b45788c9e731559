#include "storage/sqlite/datasets.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
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
  "private_to, kind, encoded_from, unused_until"
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
  dataset.expire_time = row.Int(11);
  const size_t slash = dataset.id.rfind('/');  // as DatasetKey adds it
  dataset.becomes_public = slash != std::string::npos;
  if (dataset.becomes_public) dataset.id.erase(0, slash + 1);
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
                "WHERE display_name = ?1 AND (owner = ?2) = ?3 AND private_to IN ('', ?2) ORDER BY "
                "name LIMIT ?4",
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

std::optional<DatasetRecord> FindByKey(Connection& db, absl::string_view key) {
  Statement row(db, ABLATE_SELECT_DATASETS "WHERE name = ?1", key);
  if (!row.Row()) return std::nullopt;
  return ReadDataset(row);
}

absl::Status CheckKeyIsFree(Connection& db, const DatasetRecord& dataset) {
  if (!FindByKey(db, DatasetKey(dataset)).has_value()) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("data set '", dataset.id, "' exists with other content. Choose another name"));
}

// Deletes uploads of the bytes of a public data set that would become public by its ID.
void DropUploadsOf(Transaction& t, const DatasetRecord& published) {
  Statement gone(t.db,
                 "DELETE FROM datasets WHERE sha256 = ?1 AND name = private_to || '/' || ?2 "
                 "RETURNING sha256",
                 published.sha256, published.id);
  while (gone.Row()) DropReference(t, gone.View(0), OnSweep::kTrash);
}

// Turns an upload that becomes public into a public data set, also in `upload`.
absl::Status Publish(Transaction& t, DatasetRecord* upload) {
  const std::vector<DatasetRecord> same = FindByHash(t.db, Viewer(), upload->sha256);
  if (!same.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("data set '", upload->id, "' is public as '",
                                                      same.front().id,
                                                      "' since a moment ago. Submit again"));
  }
  const std::string key = DatasetKey(*upload);
  upload->private_to.clear();
  upload->becomes_public = false;
  upload->expire_time = 0;
  RETURN_IF_ERROR(CheckKeyIsFree(t.db, *upload));
  Statement(t.db,
            "UPDATE datasets SET name = ?2, private_to = '', unused_until = 0 WHERE name = ?1", key,
            upload->id)
      .Run();
  DropUploadsOf(t, *upload);
  return absl::OkStatus();
}

// Returns the data set of the same bytes and user, kept as long as it or `wanted` is to be, and
// private if either is.
DatasetRecord Merged(Transaction& t, const DatasetRecord& wanted, DatasetRecord same) {
  if (same.expire_time == 0) return same;
  const std::string key = DatasetKey(same);
  same.expire_time = wanted.expire_time == 0 ? 0 : t.now + kKeepUnused;
  if (same.becomes_public && !wanted.becomes_public) {
    same.becomes_public = false;
    same.id = wanted.id;
  }
  Statement(t.db, "UPDATE datasets SET name = ?2, unused_until = ?3 WHERE name = ?1", key,
            DatasetKey(same), same.expire_time)
      .Run();
  return same;
}

}  // namespace

std::string DatasetKey(const DatasetRecord& dataset) {
  return dataset.becomes_public ? absl::StrCat(dataset.private_to, "/", dataset.id) : dataset.id;
}

absl::Status UseUpload(Transaction& t, const std::string& key) {
  std::optional<DatasetRecord> upload = FindByKey(t.db, key);
  if (!upload.has_value()) {
    // Somebody else may have published it.
    const std::string id = key.substr(key.rfind('/') + 1);
    return FindByKey(t.db, id).has_value() ? absl::OkStatus() : NotFound("data set", id);
  }
  if (upload->becomes_public) return Publish(t, &*upload);
  Statement(t.db, "UPDATE datasets SET unused_until = 0 WHERE name = ?1", key).Run();
  return absl::OkStatus();
}

void DeleteUnusedUploads(Transaction& t) {
  Statement gone(
      t.db,
      "DELETE FROM datasets WHERE unused_until BETWEEN 1 AND ?1 AND NOT EXISTS (SELECT "
      "1 FROM runs WHERE dataset = datasets.id OR program_data = datasets.id) RETURNING sha256",
      t.now);
  while (gone.Row()) DropReference(t, gone.View(0), OnSweep::kTrash);
}

std::string EncodedFrom(absl::string_view text_sha256, absl::string_view tokenizer_sha256,
                        bool documents) {
  return absl::StrCat(text_sha256, "/", tokenizer_sha256, documents ? "/documents" : "");
}

absl::StatusOr<DatasetRecord> Store::AddDataset(const DatasetRecord& dataset) {
  return db_->Write([&](Transaction& t) -> absl::StatusOr<DatasetRecord> {
    std::vector<DatasetRecord> known = FindByHash(t.db, kServer, dataset.sha256);
    for (DatasetRecord& same : known) {
      if (same.private_to == dataset.private_to) return Merged(t, dataset, std::move(same));
    }
    for (DatasetRecord& same : known) {
      const bool own = same.becomes_public && same.private_to == dataset.owner;
      if (!own || !dataset.private_to.empty()) continue;
      RETURN_IF_ERROR(Publish(t, &same));
      return std::move(same);
    }
    RETURN_IF_ERROR(CheckKeyIsFree(t.db, dataset));
    if (blobs_ != nullptr && !blobs_->Size(dataset.sha256).ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("data set '", dataset.id, "': its blob isn't published. Publish it first"));
    }
    DatasetRecord added = dataset;
    if (added.create_time == 0) added.create_time = t.now;
    if (added.expire_time != 0) added.expire_time = t.now + kKeepUnused;
    Statement(t.db,
              "INSERT INTO datasets (" ABLATE_DATASET_COLUMNS
              ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
              DatasetKey(added), added.display_name, added.sha256, added.bytes, added.documents,
              added.characters, added.create_time, added.owner, added.private_to,
              static_cast<int64_t>(added.kind), added.encoded_from, added.expire_time)
        .Run();
    if (added.private_to.empty()) DropUploadsOf(t, added);
    return added;
  });
}

absl::StatusOr<bool> Store::OwnsAnything(absl::string_view user) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<bool> {
    return Statement(db,
                     "SELECT 1 FROM experiments WHERE owner = ?1 AND deleted = 0 UNION ALL SELECT "
                     "1 FROM datasets WHERE owner = ?1 UNION ALL SELECT 1 FROM models WHERE owner "
                     "= ?1 UNION ALL SELECT 1 FROM analyses WHERE owner = ?1 OR private_to = ?1 "
                     "UNION ALL SELECT 1 FROM runs WHERE private_to = ?1 LIMIT 1",
                     user)
        .Row();
  });
}

absl::StatusOr<DatasetRecord> Store::FindDataset(const Viewer& viewer,
                                                 absl::string_view id_or_name) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<DatasetRecord> {
    for (const std::string& key :
         {std::string(id_or_name), absl::StrCat(viewer.user, "/", id_or_name)}) {
      std::optional<DatasetRecord> found = FindByKey(db, key);
      if (found.has_value() && Sees(viewer, found->private_to)) return *std::move(found);
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
                  "WHERE encoded_from = ?1 AND encoded_from <> '' AND private_to IN ('', ?2) ORDER "
                  "BY private_to DESC LIMIT 1",
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
                  "WHERE name > ?1 AND (private_to IN ('', ?4) OR (?3 AND instr(name, '/') = 0)) "
                  "ORDER BY name LIMIT ?2",
                  after, limit, viewer.sees_all, viewer.user);
    while (row.Row()) datasets.push_back(ReadDataset(row));
    return datasets;
  });
}

absl::StatusOr<DatasetCounts> Store::Counts(absl::string_view key) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<DatasetCounts> {
    Statement found(
        db, "SELECT document_lengths, code_points, line_ends FROM datasets WHERE name = ?1", key);
    if (!found.Row()) return NotFound("data set", key);
    return DatasetCounts{found.Text(0), found.As<uint64_t>(1), found.As<uint64_t>(2)};
  });
}

absl::Status Store::KeepCounts(absl::string_view key, const DatasetCounts& counts) {
  return db_->Write([&](Transaction& t) {
    Statement(t.db,
              "UPDATE datasets SET document_lengths = ?2, code_points = ?3, line_ends = ?4 WHERE "
              "name = ?1",
              key, counts.document_lengths, counts.code_points, counts.line_ends)
        .Run();
    return absl::OkStatus();
  });
}

absl::Status Store::DeleteDataset(absl::string_view key) {
  return db_->Free([&](Transaction& t) -> absl::Status {
    Statement found(t.db, "SELECT id, sha256 FROM datasets WHERE name = ?1", key);
    if (!found.Row()) return NotFound("data set", key);
    Statement user(t.db,
                   "SELECT name, private_to FROM runs WHERE dataset = ?1 OR program_data = ?1 "
                   "ORDER BY private_to "
                   "LIMIT 1",
                   found.Int(0));
    if (user.Row()) {
      const std::string run =
          user.View(1).empty() ? absl::StrCat("run ", user.View(0)) : std::string("a private run");
      return absl::FailedPreconditionError(absl::StrCat(
          "data set '", key, "' is used by ", run, ". Remove its experiments first (`ablate rm`)"));
    }
    DropReference(t, found.View(1), OnSweep::kTrash);
    Statement(t.db, "DELETE FROM datasets WHERE id = ?1", found.Int(0)).Run();
    return absl::OkStatus();
  });
}

}  // namespace ablate::storage
