// Rows of CSV.
#include "server/report/figure/csv.h"

#include <cmath>

#include "absl/strings/str_join.h"
#include "server/report/clean_text.h"
#include "server/report/text.h"
#include "text/csv.h"
#include "text/decimal.h"

namespace ablate::figure {

std::string CsvText(const std::string& text) { return text::CsvField(report::CleanText(text)); }

std::string CsvNumber(double value) {
  if (!std::isfinite(value)) return "";
  std::string text;
  text::AppendDecimal(value, &text);
  return text;
}

void AddCsvRow(const std::vector<std::string>& fields, std::string* csv) {
  csv->append(absl::StrJoin(fields, ","));
  csv->push_back('\n');
}

}  // namespace ablate::figure
