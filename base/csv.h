// CSV as RFC 4180 has it.
#ifndef ABLATE_TEXT_CSV_H_
#define ABLATE_TEXT_CSV_H_

#include <string>

#include "absl/strings/string_view.h"

namespace ablate::text {

// `text` as a field: in quotes where it must be.
std::string CsvField(absl::string_view text);

}  // namespace ablate::text

#endif  // ABLATE_TEXT_CSV_H_
