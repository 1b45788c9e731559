// Keeps what runs' programs write to their standard output and error.
#ifndef ABLATE_STORAGE_SQLITE_RUN_LOGS_H_
#define ABLATE_STORAGE_SQLITE_RUN_LOGS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "storage/sqlite/writer.h"

namespace ablate::storage {

// Appends to a run's log. Its oldest parts are removed while it has more than kMaxLogBytes.
void AppendLog(Transaction& t, int64_t run, absl::string_view text);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_RUN_LOGS_H_
