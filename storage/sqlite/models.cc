// Stores imported models.
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

// The columns that ReadModel reads, in its order. A macro, because a statement is a literal.
#define ABLATE_MODEL_COLUMNS                                                      \
  "name, sha256, bytes, parameters, vocabulary, spec, notes, owner, private_to, " \
  "create_time"
#define ABLATE_SELECT_MODELS "SELECT " ABLATE_MODEL_COLUMNS " FROM models "

ModelRecord ReadModel(const Statement& row) {
  ModelRecord model;
  model.name = row.Text(0);
  model.sha256 = row.Text(1);
  model.bytes = row.As<uint64_t>(2);
  model.parameters = row.As<uint64_t>(3);
  model.vocabulary = row.As<uint32_t>(4);
  model.spec = row.Text(5);
  model.notes = row.Text(6);
  model.owner = row.Text(7);
  model.private_to = row.Text(8);
  model.create_time = row.Int(9);
  return model;
}

std::optional<ModelRecord> FindByName(Connection& db, absl::string_view name) {
  Statement row(db, ABLATE_SELECT_MODELS "WHERE name = ?1", name);
  if (!row.Row()) return std::nullopt;
  return ReadModel(row);
}

}  // namespace

std::string PrivateModelName(absl::string_view name, absl::string_view user) {
  return absl::StrCat(name, "@", user);
}

absl::StatusOr<ModelRecord> Store::AddModel(const ModelRecord& model) {
  return db_->Write([&](Transaction& t) -> absl::StatusOr<ModelRecord> {
    if (const auto known = FindByName(t.db, model.name); known.has_value()) {
      if (known->sha256 == model.sha256 && known->private_to == model.private_to) return *known;
      return absl::AlreadyExistsError(
          absl::StrCat("model '", model.name, "' exists with other content. Choose another name"));
    }
    RETURN_IF_ERROR(CheckPublished(blobs_.get(), model.sha256));
    ModelRecord added = model;
    if (added.create_time == 0) added.create_time = t.now;
    Statement(t.db,
              "INSERT INTO models (" ABLATE_MODEL_COLUMNS
              ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
              added.name, added.sha256, added.bytes, added.parameters, added.vocabulary,
              Bytes{added.spec}, added.notes, added.owner, added.private_to, added.create_time)
        .Run();
    return added;
  });
}

absl::StatusOr<ModelRecord> Store::FindModel(const Viewer& viewer, absl::string_view name) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<ModelRecord> {
    for (const std::string& one : {PrivateModelName(name, viewer.user), std::string(name)}) {
      std::optional<ModelRecord> found = FindByName(db, one);
      if (found.has_value() && Sees(viewer, found->private_to)) return *std::move(found);
    }
    return NotFound("model", name);
  });
}

absl::StatusOr<std::vector<ModelRecord>> Store::ListModels(const Viewer& viewer,
                                                           absl::string_view after,
                                                           uint32_t limit) {
  return db_->Read([&](Connection& db) {
    std::vector<ModelRecord> models;
    Statement row(db,
                  ABLATE_SELECT_MODELS
                  "WHERE name > ?1 AND (?3 OR private_to IN ('', ?4)) ORDER BY name LIMIT ?2",
                  after, limit, viewer.sees_all, viewer.user);
    while (row.Row()) models.push_back(ReadModel(row));
    return models;
  });
}

absl::Status Store::DeleteModel(absl::string_view name) {
  return db_->Free([&](Transaction& t) -> absl::Status {
    Statement gone(t.db, "DELETE FROM models WHERE name = ?1 RETURNING sha256", name);
    if (!gone.Row()) return NotFound("model", name);
    DropReference(t, gone.View(0), OnSweep::kTrash);
    return absl::OkStatus();
  });
}

}  // namespace ablate::storage
