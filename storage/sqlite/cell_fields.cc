#include "storage/sqlite/cell_fields.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
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

// Variants of an experiment, by their places from 0: from `begin` up to `end`.
struct VariantRange {
  size_t begin = 0;
  size_t end = 0;
};

void AddLabels(const std::vector<Labels>& labels, VariantRange range, FieldWriter* writer) {
  for (size_t axis = 0; !labels.empty() && axis < labels.front().size(); ++axis) {
    const std::string& name = labels.front()[axis].first;
    const std::string& first = labels.front()[axis].second;
    const bool common = std::all_of(labels.begin(), labels.end(), [&](const Labels& variant) {
      return variant[axis].second == first;
    });
    if (common) {
      writer->Add(NameKind::kAxis, name, 0, first);
      continue;
    }
    for (size_t i = range.begin; i < range.end; ++i) {
      writer->Add(NameKind::kAxis, name, static_cast<uint32_t>(i + 1), labels[i][axis].second);
    }
  }
}

// Writes what all variants have in common, and what those of the range have of their own.
void AddSomeFields(Transaction& t, int64_t experiment, const std::string& private_to,
                   const std::vector<Labels>& labels, const CellFields& fields,
                   VariantRange range) {
  FieldWriter writer(t, experiment, private_to);
  AddLabels(labels, range, &writer);
  for (const SpecField& field : fields.common) {
    writer.Add(NameKind::kField, field.path, 0, field.value);
  }
  for (size_t i = range.begin; i < std::min(range.end, fields.of_variant.size()); ++i) {
    for (const SpecField& field : fields.of_variant[i]) {
      writer.Add(NameKind::kField, field.path, static_cast<uint32_t>(i + 1), field.value);
    }
  }
}

// The cells of an experiment without stored fields.
struct NumberedCells {
  std::vector<std::pair<int64_t, uint32_t>> cells;  // place, variant from 1
  std::vector<Labels> labels;                       // of each variant
};

NumberedCells NumberCells(Connection& db, absl::string_view id) {
  VariantNumbers variants;
  NumberedCells numbered;
  Statement cell(db,
                 "SELECT place, labels FROM cells WHERE experiment = (SELECT id FROM experiments "
                 "WHERE name = ?1) ORDER BY place",
                 id);
  while (cell.Row()) {
    numbered.cells.emplace_back(cell.Int(0), variants.Of(DecodeLabels(cell.View(1))));
  }
  numbered.labels = variants.labels();
  return numbered;
}

// Cells that are described by one request, so that other requests needn't wait long.
constexpr size_t kDescribedCells = 1000;

// Describes the cells from number `begin` up to `end`, and with the last one the experiment.
absl::Status DescribeCells(Transaction& t, absl::string_view id, const NumberedCells& numbered,
                           const CellFields& fields, size_t begin, size_t end) {
  Statement row(t.db, "SELECT id, private_to FROM experiments WHERE name = ?1 AND deleted = 0", id);
  if (!row.Row()) return NotFound("experiment", id);
  const int64_t experiment = row.Int(0);
  VariantRange range{numbered.labels.size(), 0};
  for (size_t i = begin; i < end; ++i) {
    const auto& [place, variant] = numbered.cells[i];
    range = {std::min<size_t>(range.begin, variant - 1), std::max<size_t>(range.end, variant)};
    Statement(t.db, "UPDATE cells SET variant = ?3 WHERE experiment = ?1 AND place = ?2",
              experiment, place, variant)
        .Run();
  }
  AddSomeFields(t, experiment, row.Text(1), numbered.labels, fields, range);
  if (begin < end) {
    KeepFinalValuesOf(t, experiment, numbered.cells[begin].first,
                      numbered.cells[end - 1].first + 1);
  }
  if (end == numbered.cells.size()) {
    Statement(t.db, "UPDATE experiments SET described = 1 WHERE id = ?1", experiment).Run();
  }
  return absl::OkStatus();
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
  const int number = static_cast<int>(kind);
  if (viewer.sees_all) {
    Statement row(db, "SELECT id FROM names WHERE name = ?1 AND kind = ?2", name, number);
    while (row.Row()) ids.push_back(row.Int(0));
    return ids;
  }
  // By all columns of the index, so that names that others have aren't read.
  for (const std::string& private_to : std::set<std::string>{"", viewer.user}) {
    Statement row(db, "SELECT id FROM names WHERE name = ?1 AND kind = ?2 AND private_to = ?3",
                  name, number, private_to);
    if (row.Row()) ids.push_back(row.Int(0));
  }
  return ids;
}

void AddCellFields(Transaction& t, int64_t experiment, const std::string& private_to,
                   const std::vector<Labels>& labels, const CellFields& fields) {
  AddSomeFields(t, experiment, private_to, labels, fields, {0, labels.size()});
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
  ASSIGN_OR_RETURN(const auto numbered,
                   db_->Read([&](Connection& db) { return NumberCells(db, id); }));
  // Repeating a slice changes nothing, so that an experiment that was left halfway begins again.
  size_t begin = 0;
  do {
    const size_t end = std::min(begin + kDescribedCells, numbered.cells.size());
    RETURN_IF_ERROR(db_->Write(
        [&](Transaction& t) { return DescribeCells(t, id, numbered, fields, begin, end); }));
    begin = end;
  } while (begin < numbered.cells.size());
  return absl::OkStatus();
}

}  // namespace ablate::storage
