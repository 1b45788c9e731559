// The shape of the command line: commands, arguments, options, help, and errors that suggest what
// was meant.
#ifndef ABLATE_CLIENT_COMMAND_LINE_H_
#define ABLATE_CLIENT_COMMAND_LINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/context.h"

namespace CLI {
class App;
}

namespace ablate::client {

// What a command does once its arguments are read; the result is the exit code.
using Action = std::function<int(const Context&)>;

// One command, or a group of them. A handle: the CommandLine owns what it names. What the
// arguments are stored in must live as long as the action, which should own it.
class Command {
 public:
  Command(CLI::App* app, Action* chosen) : app_(app), chosen_(chosen) {}

  Command Add(const std::string& name, const std::string& help);

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
  // Also behind the names of commands below this one.
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
  void Flag(bool* value, const std::string& flags, const std::string& help);
  // The last lines of its help: an example, and whatever else must be known.
  void Footer(const std::string& text);
  // The same where the lines depend on the arguments that stand beside --help.
  void Footer(std::function<std::string()> text);
  void Do(Action action);
  // With the names of its groups, such as "ablate data ls".
  std::string FullName() const;

 private:
  CLI::App* app_;
  Action* chosen_;
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

 private:
  std::unique_ptr<CLI::App> app_;
  Action chosen_;
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_COMMAND_LINE_H_
