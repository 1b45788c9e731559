// RenderTable: a comparison's main table as a file.
#include "server/service/render_table.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/report/table/comparison_tables.h"
#include "server/service/compare.h"
#include "server/service/errors.h"
#include "server/service/limits.h"

namespace ablate::service {
namespace {

std::string Render(const report::Comparison& comparison, v1::TableFormat::Value format) {
  if (format == v1::TableFormat::csv) return report::RenderCsv(report::DataTable(comparison));
  const report::Table table = report::MainTable(comparison);
  return format == v1::TableFormat::latex ? report::RenderLatex(table) : report::RenderText(table);
}

}  // namespace

absl::Status RenderTable(storage::Store* store, const v1::RenderTableRequest& request,
                         const Cancelled& cancelled, v1::RenderTableResponse* response) {
  if (request.format() == v1::TableFormat::unspecified ||
      !v1::TableFormat::Value_IsValid(request.format())) {
    return InvalidField("format",
                        request.format() == 0
                            ? "it is missing"
                            : absl::StrCat(static_cast<int>(request.format()), " is no format"),
                        "text, csv, latex");
  }
  const auto compared = CompareGrid(store, request.comparison(), {cancelled});
  if (!compared.ok()) return compared.status();
  std::string data = Render(compared->comparison, request.format());
  if (data.size() > kPageBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a table of ", compared->comparison.rows.size(), " rows has ", data.size(),
                     " bytes; at most ", kPageBytes, " fit into an answer"));
  }
  response->set_data(std::move(data));
  return absl::OkStatus();
}

}  // namespace ablate::service
