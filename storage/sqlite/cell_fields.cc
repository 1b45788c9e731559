#include "storage/sqlite/cell_fields.h"

#include <algorithm>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "storage/sqlite/bytes.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/final_values.h"
#include "storage/sqlite/ids.h"
#include "storage/store.h"

namespace ablate::storage {
namespace {

// Writes values of one experiment. Each name is looked up once.
class FieldWriter {
 public:
  FieldWriter(Transaction& t, int64_t experiment, const std::string& private_to)
      : t_(t), experiment_(experiment), private_to_(private_to) {}

  // `variant` 0: all of them.
  void Add(NameKind kind, const std::string& name, uint32_t variant, const std::string& value) {
    const auto [found, is_new] = names_.try_emplace({kind, name}, 0);
    if (is_new) found->second = InternName(t_, kind, name, private_to_);
    Statement(t_.db, "REPLACE INTO cell_fields VALUES (?1, ?2, ?3, ?4)", found->second, experiment_,
              variant, value)
        .Run();
  }

 private:
  Transaction& t_;
  const int64_t experiment_;
  const std::string& private_to_;
  std::map<std::pair<NameKind, std::string>, int64_t> names_;
};

void AddLabels(const std::vector<Labels>& labels, FieldWriter* writer) {
  for (size_t axis = 0; !labels.empty() && axis < labels.front().size(); ++axis) {
    const auto& [name, first] = labels.front()[axis];
    const bool common = std::all_of(labels.begin(), labels.end(), [&](const Labels& variant) {
      return variant[axis].second == first;
    });
    if (common) {
      writer->Add(NameKind::kAxis, name, 0, first);
      continue;
    }
    for (size_t i = 0; i < labels.size(); ++i) {
      writer->Add(NameKind::kAxis, name, static_cast<uint32_t>(i + 1), labels[i][axis].second);
    }
  }
}

// Gives each cell the number of its variant; returns the variants' labels.
std::vector<Labels> NumberCells(Transaction& t, int64_t experiment) {
  VariantNumbers variants;
  std::vector<std::pair<int64_t, uint32_t>> cells;  // place, variant
  Statement cell(t.db, "SELECT place, labels FROM cells WHERE experiment = ?1 ORDER BY place",
                 experiment);
  while (cell.Row()) cells.emplace_back(cell.Int(0), variants.Of(DecodeLabels(cell.View(1))));
  for (const auto& [place, variant] : cells) {
    Statement(t.db, "UPDATE cells SET variant = ?3 WHERE experiment = ?1 AND place = ?2",
              experiment, place, variant)
        .Run();
  }
  return variants.labels();
}

}  // namespace

std::string EncodeLabels(const Labels& labels) {
  std::string bytes;
  for (const auto& [axis, label] : labels) {
    PutText(&bytes, axis);
    PutText(&bytes, label);
  }
  return bytes;
}

Labels DecodeLabels(absl::string_view bytes) {
  Labels labels;
  for (ByteReader in(bytes); in.ok() && !in.empty();) {
    std::string axis(in.Text());
    labels.emplace_back(std::move(axis), std::string(in.Text()));
  }
  return labels;
}

uint32_t VariantNumbers::Of(const Labels& labels) {
  // Seeds are the innermost loop of a grid.
  if (!labels_.empty() && labels_.back() == labels) return static_cast<uint32_t>(labels_.size());
  const auto next = static_cast<uint32_t>(labels_.size() + 1);
  const auto [found, is_new] = numbers_.try_emplace(labels, next);
  if (is_new) labels_.push_back(labels);
  return found->second;
}

int64_t InternName(Transaction& t, NameKind kind, absl::string_view name,
                   absl::string_view private_to) {
  const int number = static_cast<int>(kind);
  Statement found(t.db, "SELECT id FROM names WHERE name = ?1 AND kind = ?2 AND private_to = ?3",
                  name, number, private_to);
  if (found.Row()) return found.Int(0);
  Statement added(t.db,
                  "INSERT INTO names (kind, name, private_to) VALUES (?2, ?1, ?3) RETURNING id",
                  name, number, private_to);
  const int64_t id = added.Row() ? added.Int(0) : 0;
  added.Run();
  return id;
}

std::vector<int64_t> VisibleNames(Connection& db, const Viewer& viewer, NameKind kind,
                                  absl::string_view name) {
  std::vector<int64_t> ids;
  Statement row(db,
                "SELECT id FROM names WHERE name = ?1 AND kind = ?2 "
                "AND (?3 OR private_to IN ('', ?4))",
                name, static_cast<int>(kind), viewer.sees_all, viewer.user);
  while (row.Row()) ids.push_back(row.Int(0));
  return ids;
}

void AddCellFields(Transaction& t, int64_t experiment, const std::string& private_to,
                   const std::vector<Labels>& labels, const CellFields& fields) {
  FieldWriter writer(t, experiment, private_to);
  AddLabels(labels, &writer);
  for (const SpecField& field : fields.common) {
    writer.Add(NameKind::kField, field.path, 0, field.value);
  }
  for (size_t i = 0; i < fields.of_variant.size(); ++i) {
    for (const SpecField& field : fields.of_variant[i]) {
      writer.Add(NameKind::kField, field.path, static_cast<uint32_t>(i + 1), field.value);
    }
  }
}

absl::StatusOr<std::vector<std::string>> Store::UndescribedExperiments() {
  return db_->Read([](Connection& db) {
    std::vector<std::string> ids;
    Statement row(
        db, "SELECT name FROM experiments WHERE described = 0 AND deleted = 0 ORDER BY id DESC");
    while (row.Row()) ids.push_back(row.Text(0));
    return ids;
  });
}

absl::Status Store::DescribeExperiment(absl::string_view id, const CellFields& fields) {
  return db_->Write([&](Transaction& t) -> absl::Status {
    Statement row(t.db, "SELECT id, private_to FROM experiments WHERE name = ?1 AND deleted = 0",
                  id);
    if (!row.Row()) return NotFound("experiment", id);
    const int64_t experiment = row.Int(0);
    AddCellFields(t, experiment, row.Text(1), NumberCells(t, experiment), fields);
    KeepFinalValuesOf(t, experiment);
    Statement(t.db, "UPDATE experiments SET described = 1 WHERE id = ?1", experiment).Run();
    return absl::OkStatus();
  });
}

}  // namespace ablate::storage
