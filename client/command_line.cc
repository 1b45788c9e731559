#include "client/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "base/utf8.h"
#include "client/completion/complete.h"
#include "client/help.h"
#include "client/manual.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

// Returns the innermost command that `arguments` choose; sets `*problem` if there is no such
// command.
CLI::App* Innermost(CLI::App* app, const std::vector<std::string>& arguments,
                    std::string* problem) {
  for (const std::string& word : arguments) {
    const std::vector<std::string> names = CommandNames(*app);
    if (names.empty() || absl::StartsWith(word, "-")) return app;
    if (std::find(names.begin(), names.end(), word) == names.end()) {
      *problem = absl::StrCat("\"", word, "\" isn't a command of ", FullName(*app),
                              reflect::DidYouMean(word, names));
      return app;
    }
    app = app->get_subcommand(word);
  }
  return app;
}

// Returns CLI11's message about a mistake, with a suggestion if an option is unknown.
std::string Explain(const CLI::ParseError& error, const CLI::App& root, const CLI::App& command) {
  const std::vector<std::string> extras = root.remaining(true);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr || extras.empty()) {
    return absl::StrCat(FullName(command), ": ", error.what());
  }
  std::string problem =
      absl::StrCat(FullName(command), ": unexpected argument \"", extras.front(), "\"");
  if (!absl::StartsWith(extras.front(), "-")) {
    const bool sets =
        absl::StrContains(extras.front(), '=') && command.get_option_no_throw("--set") != nullptr;
    return sets ? absl::StrCat(problem, "; did you mean --set ", extras.front(), "?") : problem;
  }
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return problem + reflect::DidYouMean(extras.front().substr(0, extras.front().find('=')), names);
}

// The same for every command that writes a file.
constexpr char kForceHelp[] = "Replace an existing file or folder";

// Returns the problem with an option's value.
std::string RefuseEmpty(const std::string& value) {
  return value.empty() ? "the value is empty; expected a value" : "";
}

// Adds an option whose text `read` converts to a number; `what` describes such a number.
template <typename Number, typename Read>
CLI::Option* AddNumber(CLI::App* app, std::optional<Number>* value, const std::string& flags,
                       const std::string& help, Read read, const char* what) {
  const auto store = [value, read](const std::string& text) {
    Number number = 0;
    if (read(text, &number)) *value = number;
  };
  const auto check = [read, what](const std::string& text) {
    Number number = 0;
    return read(text, &number) ? std::string() : absl::StrCat("\"", text, "\" is not ", what);
  };
  return app->add_option_function<std::string>(flags, store, help)->check(check);
}

// Adds an argument without a name of its own on the line.
template <typename Value>
CLI::Option* AddPositional(CLI::App* app, Value* value, const std::string& name,
                           const std::string& help) {
  return app->add_option(name, *value, help)->check(RefuseEmpty)->type_name("");
}

// Returns a message about an argument that isn't UTF-8, which no request can carry, or "".
std::string FindNotUtf8(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (text::IsUtf8(arguments[i])) continue;
    return absl::StrCat("argument ", i + 1, ": not UTF-8 (", arguments[i], "); expected UTF-8");
  }
  return "";
}

// Replaces `help COMMAND...` by COMMAND... --help.
std::vector<std::string> ExpandHelp(std::vector<std::string> arguments) {
  if (arguments.empty() || arguments[0] != "help") return arguments;
  if (arguments.size() > 1 && absl::StartsWith(arguments[1], "-")) return arguments;
  arguments.erase(arguments.begin());
  arguments.emplace_back("--help");
  return arguments;
}

}  // namespace

bool ParseBytes(const std::string& text, uint64_t* bytes) {
  std::string digits = text;
  try {
    CLI::AsSizeValue(/*kb_is_1000=*/true)(digits);
  } catch (const CLI::ValidationError&) {  // the library's answer to anything but a size
    return false;
  }
  return absl::SimpleAtoi(digits, bytes);
}

Command Command::Add(const std::string& name, const std::string& help, const std::string& section) {
  CLI::App* added = app_->add_subcommand(name, help);
  added->group(section.empty() ? "Commands" : section);  // not the parent's
  return Command(added, chosen_);
}

void Command::Argument(std::string* value, const std::string& name, const std::string& help) {
  AddPositional(app_, value, name, help)->required();
}

void Command::Arguments(std::vector<std::string>* values, const std::string& name,
                        const std::string& help) {
  AddPositional(app_, values, name, help)->required();
}

void Command::OptionalArgument(std::string* value, const std::string& name,
                               const std::string& help) {
  AddPositional(app_, value, name, help);
}

void Command::OptionalArguments(std::vector<std::string>* values, const std::string& name,
                                const std::string& help) {
  AddPositional(app_, values, name, help);
}

void Command::Option(std::string* value, const std::string& flags, const std::string& placeholder,
                     const std::string& help) {
  app_->add_option(flags, *value, help)->check(RefuseEmpty)->type_name(placeholder);
}

void Command::OptionEverywhere(std::string* value, const std::string& flags,
                               const std::string& placeholder, const std::string& help) {
  Option(value, flags, placeholder, help);
  const std::function<void(CLI::App*)> let_through = [&](CLI::App* app) {
    for (CLI::App* below : app->get_subcommands([](const CLI::App*) { return true; })) {
      below->fallthrough();
      let_through(below);
    }
  };
  let_through(app_);
}

void Command::RequiredOption(std::string* value, const std::string& flags,
                             const std::string& placeholder, const std::string& help) {
  app_->add_option(flags, *value, help)->required()->check(RefuseEmpty)->type_name(placeholder);
}

void Command::Option(std::optional<uint32_t>* value, const std::string& flags,
                     const std::string& placeholder, const std::string& help) {
  AddNumber<uint32_t>(
      app_, value, flags, help,
      [](const auto& text, auto* to) { return absl::SimpleAtoi(text, to); },
      "a whole number from 0 to 4294967295")
      ->type_name(placeholder);
}

void Command::Option(std::optional<double>* value, const std::string& flags,
                     const std::string& placeholder, const std::string& help) {
  AddNumber<double>(
      app_, value, flags, help,
      [](const auto& text, auto* to) {
        return absl::SimpleAtod(text, to) && text::DecimalProblem(text).empty();
      },
      "a number")
      ->type_name(placeholder);
}

void Command::Options(std::vector<std::string>* values, const std::string& flags,
                      const std::string& placeholder, const std::string& help) {
  app_->add_option(flags, *values, help)
      ->check(RefuseEmpty)
      ->type_name(placeholder)
      ->allow_extra_args(false);  // --key A B must not take B, which may be a positional
}

void Command::Output(client::Output* output, OutputKind kind, const std::string& placeholder,
                     const std::string& help) {
  output_ = output;
  output_kind_ = kind;
  Option(&output->path, "--output,-o", placeholder, help);
  Flag(&output->force, "--force", kForceHelp);
}

void Command::RequiredOutput(client::Output* output, OutputKind kind,
                             const std::string& placeholder, const std::string& help) {
  Output(output, kind, placeholder, help);
  app_->get_option("--output")->required();
}

void Command::Flag(bool* value, const std::string& flags, const std::string& help) {
  app_->add_flag(flags, *value, help);
}

void Command::Footer(const std::string& text) { app_->footer(text); }

void Command::Footer(std::function<std::string()> text) { app_->footer(std::move(text)); }

std::string Command::FullName() const { return client::FullName(*app_); }

const CLI::App& Command::root() const {
  const CLI::App* root = app_;
  while (root->get_parent() != nullptr) root = root->get_parent();
  return *root;
}

std::string Command::HelpPage() const { return client::HelpPage(root()); }

std::map<std::string, std::string> Command::ManualPages() const {
  return client::ManualPages(root());
}

void Command::Do(Action action) {
  if (output_ != nullptr) {
    action = [app = app_, output = output_, kind = output_kind_,
              action = std::move(action)](const Context& context) {
      const CLI::Option* json = app->get_option_no_throw("--json");
      if (output->is_standard() && json != nullptr && json->count() > 0) {
        context.console.Error(absl::StrCat(
            client::FullName(*app),
            ": --json: can't be combined with -o -, which writes to standard output, too; remove "
            "one of them"));
        return kUsage;
      }
      if (const absl::Status free = CheckOutput(*output, kind); !free.ok()) {
        return Fail(context, free);
      }
      output->standard = &context.console.data();
      return action(context);
    };
  }
  // Those of a group's commands come before the group's own.
  app_->callback([chosen = chosen_, action = std::move(action)] {
    if (!*chosen) *chosen = action;
  });
}

CommandLine::CommandLine(const std::string& program, const std::string& version,
                         const std::string& help)
    : app_(std::make_unique<CLI::App>(help, program)) {
  app_->set_help_flag("-h,--help", "Print this help");
  app_->set_version_flag("--version", absl::StrCat(program, " ", version), "Print the version");
  app_->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

CommandLine::~CommandLine() = default;

Command CommandLine::root() { return Command(app_.get(), &chosen_); }

int CommandLine::Run(const std::vector<std::string>& given, const Context& context) {
  std::string problem = FindNotUtf8(given);
  const std::vector<std::string> arguments = ExpandHelp(given);
  const CLI::App* command = Innermost(app_.get(), arguments, &problem);
  const std::string advice = absl::StrCat("see ", FullName(*command), " --help");
  std::vector<std::string> reversed(arguments.rbegin(),
                                    arguments.rend());  // the order that CLI11 expects
  if (problem.empty()) {
    try {
      app_->parse(reversed);
    } catch (const CLI::CallForHelp&) {
      *context.console.out << HelpText(*command);
      return kSuccess;
    } catch (const CLI::CallForVersion& version) {
      *context.console.out << version.what() << "\n";
      return kSuccess;
    } catch (const CLI::ParseError& error) {  // the library's way to report a mistake
      problem = Explain(error, *app_, *command);
    }
  }
  if (problem.empty() && !chosen_) {
    *context.console.err << HelpText(*command);
    return kUsage;
  }
  if (!problem.empty()) {
    context.console.Error(problem);
    context.console.Info(advice);
    return kUsage;
  }
  return chosen_(context);
}

void CommandLine::Complete(const std::vector<std::string>& words, const Context& context) const {
  PrintCompletions(*app_, words, context);
}

}  // namespace ablate::client
