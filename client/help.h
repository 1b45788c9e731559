// The help of the program: for a terminal, and as a page of the docs.
#ifndef ABLATE_CLIENT_HELP_H_
#define ABLATE_CLIENT_HELP_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace CLI {
class App;
}

namespace ablate::client {

// Returns the command's name with those of its groups, such as "ablate data ls".
std::string FullName(const CLI::App& command);

// Returns the commands and groups below it.
std::vector<const CLI::App*> CommandsOf(const CLI::App& app);

// An option's or argument's name and meaning, such as "-o, --output FILE".
using Term = std::pair<std::string, std::string>;
std::vector<Term> OptionTerms(const CLI::App& command);
std::vector<Term> ArgumentTerms(const CLI::App& command);

// Returns such as "ablate submit [OPTIONS] FILE".
std::string Usage(const CLI::App& command);

// The lines of a footer that belong together: indented terms with texts are lists, other indented
// lines are code. Lines of code have no indent.
struct FooterBlock {
  enum class Kind { kText, kList, kCode };
  Kind kind;
  std::vector<std::string> lines;
};
std::vector<FooterBlock> FooterBlocks(const CLI::App& command);
// Splits a line of a list.
Term ListTerm(absl::string_view line);

// The commands of the root that stand under one heading.
struct Section {
  std::string name;
  std::vector<const CLI::App*> commands;  // without groups
};
std::vector<Section> SectionsOf(const CLI::App& root);

// Returns purpose, usage, arguments, options or subcommands, and footer in lines of 80 columns.
std::string HelpText(const CLI::App& command);

// Returns the help of all commands as one page of Markdown, docs/reference/cli.md.
std::string HelpPage(const CLI::App& root);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_HELP_H_
