// Rows of CSV.
#ifndef ABLATE_SERVER_REPORT_FIGURE_CSV_H_
#define ABLATE_SERVER_REPORT_FIGURE_CSV_H_

#include <string>
#include <vector>

namespace ablate::figure {

// Quoted where it must be, cleaned as everything that leaves.
std::string CsvText(const std::string& text);

// The shortest decimal that reads back as the same number; empty for what is not finite.
std::string CsvNumber(double value);

// Appends a line of fields, which are CSV already.
void AddCsvRow(const std::vector<std::string>& fields, std::string* csv);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_CSV_H_
