#include "server/service/run_fields.h"

#include <spdlog/spdlog.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/config/fields.h"
#include "server/experiment/field_values.h"
#include "server/lookup/page.h"

namespace ablate::service {
namespace {

std::vector<storage::SpecField> ToRecord(const spec::FieldValues& values) {
  std::vector<storage::SpecField> fields;
  for (const auto& [path, value] : values) fields.push_back({path, value});
  return fields;
}

storage::CellFields ToRecord(const spec::SharedFields& shared) {
  storage::CellFields fields;
  fields.common = ToRecord(shared.Common());
  for (const spec::FieldValues& others : shared.Others()) {
    fields.of_variant.push_back(ToRecord(others));
  }
  return fields;
}

// Reads the spec of the first cell of each variant, whose seeds follow each other.
absl::StatusOr<storage::CellFields> StoredFields(storage::Store* store, const std::string& id) {
  spec::SharedFields shared;
  std::vector<std::pair<std::string, std::string>> labels;
  bool first = true;
  const auto add = [&](const std::vector<storage::CellRecord>& page) -> absl::StatusOr<bool> {
    for (const storage::CellRecord& cell : page) {
      if (!std::exchange(first, false) && cell.labels == labels) continue;
      labels = cell.labels;
      ASSIGN_OR_RETURN(const auto run, store->GetRun(cell.run));
      v1::RunSpec spec;
      if (!spec::ReadStoredRun(run.spec, &spec)) {
        return absl::DataLossError(absl::StrCat("the spec of run ", cell.run, " is damaged"));
      }
      shared.Add(spec.spec());
    }
    return true;
  };
  RETURN_IF_ERROR(lookup::VisitCells(store, id, add));
  return ToRecord(shared);
}

}  // namespace

storage::CellFields FieldsOf(const std::vector<spec::ResolvedCell>& cells) {
  spec::SharedFields shared;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i == 0 || cells[i].labels != cells[i - 1].labels) shared.Add(cells[i].run.spec());
  }
  return ToRecord(shared);
}

void DescribeStoredExperiments(storage::Store* store, const std::stop_token& stop) {
  const auto undescribed = store->UndescribedExperiments();
  if (!undescribed.ok()) {
    spdlog::warn("runs of older experiments can't be found by their fields: {}",
                 undescribed.status().ToString());
    return;
  }
  for (const std::string& id : *undescribed) {
    if (stop.stop_requested()) return;
    const auto fields = StoredFields(store, id);
    const absl::Status described =
        fields.ok() ? store->DescribeExperiment(id, *fields) : fields.status();
    if (described.ok()) continue;
    spdlog::warn("runs of {} can't be found by their fields: {}", id, described.ToString());
  }
}

}  // namespace ablate::service
