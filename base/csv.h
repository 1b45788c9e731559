// Writes CSV as in RFC 4180.
#ifndef ABLATE_BASE_CSV_H_
#define ABLATE_BASE_CSV_H_

#include <string>

#include "absl/strings/string_view.h"

namespace ablate::text {

// Returns `text` as a field, quoted if necessary.
std::string CsvField(absl::string_view text);

}  // namespace ablate::text

#endif  // ABLATE_BASE_CSV_H_
