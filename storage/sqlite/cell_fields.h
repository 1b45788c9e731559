// Writes the labels on axes and the fields of resolved specs, by which cells are found.
#ifndef ABLATE_STORAGE_SQLITE_CELL_FIELDS_H_
#define ABLATE_STORAGE_SQLITE_CELL_FIELDS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "storage/records.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/writer.h"

namespace ablate::storage {

// Axis names and labels of a cell, in axis order.
using Labels = std::vector<std::pair<std::string, std::string>>;

// Encode labels for a cell's row.
std::string EncodeLabels(const Labels& labels);
Labels DecodeLabels(absl::string_view bytes);

// Numbers the variants of an experiment from 1, in the order of their first cells.
class VariantNumbers {
 public:
  uint32_t Of(const Labels& labels);
  // Returns the labels of each variant, in order.
  const std::vector<Labels>& labels() const { return labels_; }

 private:
  std::map<Labels, uint32_t> numbers_;
  std::vector<Labels> labels_;
};

// Kinds of names in the table `names`.
enum class NameKind { kField, kAxis, kMetric };

// Returns the row of a name, which it adds if there is none.
int64_t InternName(Transaction& t, NameKind kind, absl::string_view name,
                   absl::string_view private_to);
// Returns the rows of a name that the viewer's questions may read.
std::vector<int64_t> VisibleNames(Connection& db, const Viewer& viewer, NameKind kind,
                                  absl::string_view name);

// Writes the labels of each variant, and the fields, of which there may be none. What all variants
// have in common is one row, so that a run costs a few bytes.
void AddCellFields(Transaction& t, int64_t experiment, const std::string& private_to,
                   const std::vector<Labels>& labels, const CellFields& fields);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_CELL_FIELDS_H_
