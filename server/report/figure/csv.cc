// Rows of CSV.
#include "server/report/figure/csv.h"

#include <cmath>

#include "absl/strings/str_join.h"
#include "server/report/clean_text.h"
#include "server/report/text.h"

namespace ablate::figure {

std::string CsvText(const std::string& text) { return report::CsvField(report::CleanText(text)); }

std::string CsvNumber(double value) {
  if (!std::isfinite(value)) return "";
  std::string text;
  report::AppendDecimal(value, &text);
  return text;
}

void AddCsvRow(const std::vector<std::string>& fields, std::string* csv) {
  csv->append(absl::StrJoin(fields, ","));
  csv->push_back('\n');
}

}  // namespace ablate::figure
