// Defines the command line: commands, arguments, options, help, and errors with suggestions.
#ifndef ABLATE_CLIENT_COMMAND_LINE_H_
#define ABLATE_CLIENT_COMMAND_LINE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/context.h"
#include "client/output/part_file.h"

namespace CLI {
class App;
}

namespace ablate::client {

// Runs a command once its arguments are read; returns the exit code.
using Action = std::function<int(const Context&)>;

// One command, or a group of them. A handle: the CommandLine owns what it names. What the
// arguments are stored in must live as long as the action, which should own it.
class Command {
 public:
  Command(CLI::App* app, Action* chosen) : app_(app), chosen_(chosen) {}

  // The help lists commands under the headings of their sections.
  Command Add(const std::string& name, const std::string& help, const std::string& section = "");

  void Argument(std::string* value, const std::string& name, const std::string& help);
  // One or more.
  void Arguments(std::vector<std::string>* values, const std::string& name,
                 const std::string& help);
  // None or one; none or more.
  void OptionalArgument(std::string* value, const std::string& name, const std::string& help);
  void OptionalArguments(std::vector<std::string>* values, const std::string& name,
                         const std::string& help);
  // An empty value is a mistake: in a script, a variable that is not set.
  void Option(std::string* value, const std::string& flags, const std::string& placeholder,
              const std::string& help);
  // Accepted also after the names of commands below this one.
  void OptionEverywhere(std::string* value, const std::string& flags,
                        const std::string& placeholder, const std::string& help);
  void RequiredOption(std::string* value, const std::string& flags, const std::string& placeholder,
                      const std::string& help);
  void Option(std::optional<uint32_t>* value, const std::string& flags,
              const std::string& placeholder, const std::string& help);
  void Option(std::optional<double>* value, const std::string& flags,
              const std::string& placeholder, const std::string& help);
  // May be given several times.
  void Options(std::vector<std::string>* values, const std::string& flags,
               const std::string& placeholder, const std::string& help);
  // Adds --output,-o and --force for a file or folder that the command writes. Before the command
  // runs, an existing one is refused without --force, and standard output together with --json.
  void Output(client::Output* output, OutputKind kind, const std::string& placeholder,
              const std::string& help);
  void RequiredOutput(client::Output* output, OutputKind kind, const std::string& placeholder,
                      const std::string& help);
  void Flag(bool* value, const std::string& flags, const std::string& help);
  // Sets the last lines of the help: limits, exit codes, examples. Lines that begin with two spaces
  // are kept as they are, the others wrapped.
  void Footer(const std::string& text);
  // The same for lines that depend on the arguments given with --help.
  void Footer(std::function<std::string()> text);
  void Do(Action action);
  // Returns the name with those of its groups, such as "ablate data ls".
  std::string FullName() const;
  // Returns the help of the whole program as a page of Markdown.
  std::string HelpPage() const;
  // The same as pages of the manual, by the names of their files.
  std::map<std::string, std::string> ManualPages() const;

 private:
  const CLI::App& root() const;

  CLI::App* app_;
  Action* chosen_;
  client::Output* output_ = nullptr;  // null if it writes no file
  OutputKind output_kind_ = OutputKind::kFile;
};

// Reads a number of bytes, perhaps with a unit, such as 20GB; false if `text` is none.
bool ParseBytes(const std::string& text, uint64_t* bytes);

class CommandLine {
 public:
  CommandLine(const std::string& program, const std::string& version, const std::string& help);
  ~CommandLine();

  Command root();
  // Reads `arguments` (without the program's name) and does what they say. Help and the version go
  // to the console's `out`; mistakes to `err`, with kUsage as the result.
  int Run(const std::vector<std::string>& arguments, const Context& context);
  // Prints what completes the last of `words`; see PrintCompletions.
  void Complete(const std::vector<std::string>& words, const Context& context) const;

 private:
  std::unique_ptr<CLI::App> app_;
  Action chosen_;
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_COMMAND_LINE_H_
