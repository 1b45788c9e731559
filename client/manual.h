// The help of the program as pages of the manual, for man.
#ifndef ABLATE_CLIENT_MANUAL_H_
#define ABLATE_CLIENT_MANUAL_H_

#include <map>
#include <string>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace ablate::client {

// Returns the pages in man(7), by the names of their files: ablate.1 and, for each command, such as
// ablate-data-ls.1.
std::map<std::string, std::string> ManualPages(const CLI::App& root);

// Writes pages to a folder, which is made if it isn't there and may hold pages of other programs.
// ALREADY_EXISTS for a page that is there, unless `force`.
absl::Status WriteManual(const std::map<std::string, std::string>& pages, const std::string& folder,
                         bool force);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_MANUAL_H_
