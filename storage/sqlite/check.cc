// Checks the whole database, and lists the blobs that it names.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sqlite/bytes.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/points.h"
#include "storage/sqlite/summaries.h"
#include "storage/store.h"

namespace ablate::storage {
namespace {

// Adds a sentence about each row of points or summaries whose bytes have changed.
void CheckSeals(Connection& db, std::vector<std::string>* problems) {
  const auto check = [problems](const char* what, absl::string_view run,
                                const absl::Status& status) {
    if (status.ok()) return;
    problems->push_back(absl::StrCat(what, " of run ", run, ": ", status.message()));
  };
  Statement group(db,
                  "SELECT name, row_groups.id, first_step, last_step, data FROM row_groups JOIN "
                  "runs ON runs.id = run");
  while (group.Row()) {
    const std::string place = GroupPlace(group.Text(0), group.As<uint64_t>(1),
                                         group.As<uint32_t>(2), group.As<uint32_t>(3));
    check("points", group.View(0), Unseal(place, group.View(4)).status());
  }
  Statement chunk(db,
                  "SELECT name, key, first_step, last_step, data FROM chunks JOIN runs ON runs.id "
                  "= run");
  while (chunk.Row()) {
    const std::string place = ChunkPlace(chunk.Text(0), chunk.As<uint32_t>(1),
                                         chunk.As<uint32_t>(2), chunk.As<uint32_t>(3));
    check("points", chunk.View(0), Unseal(place, chunk.View(4)).status());
  }
  Statement summaries(db, "SELECT name, data FROM summaries JOIN runs ON runs.id = run");
  while (summaries.Row()) {
    check("summaries", summaries.View(0),
          DecodeSummaries(summaries.Text(0), summaries.View(1)).status());
  }
}

}  // namespace

absl::StatusOr<Damage> Store::FindDamage() {
  return db_->Read([](Connection& db) {
    Damage damage;
    std::vector<std::string>& problems = damage.problems;
    Statement damaged(db, "PRAGMA integrity_check");
    while (damaged.Row()) {
      if (damaged.View(0) != "ok") problems.push_back(damaged.Text(0));
    }
    if (absl::IsDataLoss(db.error())) {  // SQLite gives up on some damaged pages
      problems.emplace_back(db.error().message());
      db.ClearError();
    }
    damage.readable = problems.empty();
    if (!damage.readable) return damage;
    Statement homeless(db,
                       "SELECT 'cell ' || name || ' of experiment ' || experiment || ' has no run' "
                       "FROM cells WHERE run NOT IN (SELECT id FROM runs) LIMIT 100");
    while (homeless.Row()) problems.push_back(homeless.Text(0));
    CheckSeals(db, &problems);
    return damage;
  });
}

// A run as users name it, EXPERIMENT/CELL, or by its ID if no experiment has it any more.
#define ABLATE_CELL                                                                        \
  "coalesce((SELECT experiments.name || '/' || cells.name FROM cells JOIN experiments ON " \
  "experiments.id = cells.experiment WHERE cells.run = runs.id AND deleted = 0 ORDER BY "  \
  "experiments.id LIMIT 1), 'run ' || runs.name)"

absl::StatusOr<std::vector<NamedBlob>> Store::NamedBlobs() {
  return db_->Read([](Connection& db) {
    std::vector<NamedBlob> blobs;
    Statement row(
        db,
        "SELECT sha256, min(what) FROM ("
        "SELECT sha256, 'data set ' || display_name AS what FROM datasets UNION ALL "
        "SELECT sha256, 'model ' || name FROM models UNION ALL "
        "SELECT blob, 'checkpoint of ' || " ABLATE_CELL
        " || ' at step ' || artifacts.step FROM "
        "artifacts JOIN runs ON runs.id = run UNION ALL "
        "SELECT blob, 'resume state of ' || " ABLATE_CELL
        " FROM resume_states JOIN runs ON "
        "runs.id = run UNION ALL "
        "SELECT blob, 'saved training state of ' || " ABLATE_CELL
        " FROM last_states JOIN runs ON "
        "runs.id = run UNION ALL "
        "SELECT initial_blob, 'initial checkpoint of ' || " ABLATE_CELL
        " FROM runs WHERE "
        "initial_blob <> '' UNION ALL "
        "SELECT state_blob, 'state of analysis ' || name FROM analyses WHERE state_blob IS "
        "NOT NULL UNION ALL "
        "SELECT artifact, 'arrays of analysis ' || name FROM analyses WHERE artifact IS "
        "NOT NULL) GROUP BY sha256 ORDER BY sha256");
    while (row.Row()) blobs.push_back({row.Text(0), row.Text(1)});
    return blobs;
  });
}

#undef ABLATE_CELL

}  // namespace ablate::storage
