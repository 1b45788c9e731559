// The help of the program as pages of the manual, for man.
#ifndef ABLATE_CLIENT_MANUAL_H_
#define ABLATE_CLIENT_MANUAL_H_

#include <map>
#include <string>

namespace CLI {
class App;
}

namespace ablate::client {

// Returns the pages in man(7), by the names of their files: ablate.1 and, for each command, such as
// ablate-data-ls.1.
std::map<std::string, std::string> ManualPages(const CLI::App& root);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_MANUAL_H_
