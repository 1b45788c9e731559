// The help of the program: for a terminal, and as a page of the docs.
#ifndef ABLATE_CLIENT_HELP_H_
#define ABLATE_CLIENT_HELP_H_

#include <string>

namespace CLI {
class App;
}

namespace ablate::client {

// Returns the command's name with those of its groups, such as "ablate data ls".
std::string FullName(const CLI::App& command);

// Returns purpose, usage, arguments, options or subcommands, and footer in lines of 80 columns.
std::string HelpText(const CLI::App& command);

// Returns the help of all commands as one page of Markdown, docs/reference/cli.md.
std::string HelpPage(const CLI::App& root);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_HELP_H_
