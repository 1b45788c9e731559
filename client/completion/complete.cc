#include "client/completion/complete.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/utf8.h"
#include "client/analysis_kinds.h"
#include "client/completion/live_names.h"
#include "client/completion/values.h"
#include "client/help.h"

namespace ablate::client {
namespace {

constexpr char kHelp[] = "help";
constexpr char kServerOption[] = "--server";

// The place of a word in a command line.
struct Place {
  const CLI::App* command = nullptr;
  const CLI::Option* option = nullptr;  // the word is its value
  bool in_help = false;                 // after `help`: the command is one to print the help of
  size_t arguments = 0;                 // before it
  std::string server;                   // of --server
};

struct Answer {
  const char* kind = "words";
  std::vector<Candidate> candidates;
};

// Returns null if `command` and those above it have no such option, or flag.
const CLI::Option* FindOption(const CLI::App* command, const std::string& name) {
  for (; command != nullptr; command = command->get_parent()) {
    for (const CLI::Option* option : command->get_options()) {
      if (option->check_name(name)) return option;
    }
  }
  return nullptr;
}

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// Reads an option among the words before the last.
void PassOption(const std::string& word, Place* place) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(word, absl::MaxSplits('=', 1));
  const bool has_value = absl::StrContains(word, '=');
  if (has_value && parts.first == kServerOption) place->server = parts.second;
  const CLI::Option* option = FindOption(place->command, parts.first);
  if (!has_value && option != nullptr && TakesValue(*option)) place->option = option;
}

// Reads a command's name or an argument among the words before the last.
void PassArgument(const std::string& word, Place* place) {
  if (place->command->get_name() == kHelp) {
    place->in_help = true;
    place->command = place->command->get_parent();
  }
  for (const CLI::App* below : CommandsOf(*place->command)) {
    if (below->get_name() != word) continue;
    place->command = below;
    return;
  }
  ++place->arguments;
}

Place FindPlace(const CLI::App& root, const std::vector<std::string>& before) {
  Place place;
  place.command = &root;
  for (const std::string& word : before) {
    if (place.option != nullptr) {
      if (place.option->check_name(kServerOption)) place.server = word;
      place.option = nullptr;
    } else if (absl::StartsWith(word, "-")) {
      PassOption(word, &place);
    } else {
      PassArgument(word, &place);
    }
  }
  return place;
}

// Returns the argument that the word at `place` is, or null.
const CLI::Option* ArgumentAt(const Place& place) {
  size_t left = place.arguments;
  for (const CLI::Option* option : place.command->get_options()) {
    if (!option->get_positional()) continue;
    if (option->get_expected_max() > 1 || left-- == 0) return option;
  }
  return nullptr;
}

std::vector<Candidate> CommandNames(const CLI::App& above) {
  std::vector<Candidate> names;
  for (const CLI::App* command : CommandsOf(above)) {
    names.push_back({command->get_name(), command->get_description()});
  }
  return names;
}

std::vector<Candidate> OptionNames(const CLI::App& command) {
  std::vector<Candidate> names;
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      if (option->get_positional() || option->get_lnames().empty()) continue;
      // After a command, only this one of the options above it is accepted.
      if (app != &command && !option->check_name(kServerOption)) continue;
      names.push_back({"--" + option->get_lnames().front(), option->get_description()});
    }
  }
  return names;
}

// Returns a, b and c of "Format: a (short), b or c [a]".
std::vector<Candidate> Listed(const std::string& help) {
  std::string list = help.substr(0, help.find(" ["));
  list.erase(0, list.find(": ") + 2);
  while (true) {
    const size_t open = list.find(" ("), close = list.find(')');
    if (open == list.npos || close == list.npos) break;
    list.erase(open, close + 1 - open);
  }
  std::vector<Candidate> words;
  for (const absl::string_view word :
       absl::StrSplit(absl::StrReplaceAll(list, {{" or ", ", "}}), ", ")) {
    words.push_back({std::string(word), ""});
  }
  return words;
}

std::vector<Candidate> AnalysisKinds() {
  std::vector<Candidate> kinds;
  for (const AnalysisKindRow& row : AnalysisKindTable()) kinds.push_back({row.name, row.help});
  return kinds;
}

Values ValuesOfOption(const CLI::App& command, const CLI::Option& option) {
  const bool is_argument = option.get_positional();
  const bool is_server = !is_argument && option.check_name(kServerOption);
  const std::string name = is_server ? "ablate" : FullName(command);
  const std::string metavar = is_argument ? option.get_name(true) : option.get_type_name();
  return ValuesOf(absl::StripPrefix(name, "ablate "), metavar);
}

Answer Live(Values values, const std::string& typed, const std::string& server,
            const Environment& environment) {
  const auto chosen = [&](const char* name) -> std::optional<std::string> {
    if (!server.empty() && std::string(name) == "ABLATE_SERVER") return server;
    return environment(name);
  };
  // A slash and a part may follow an experiment.
  const bool may_go_on = values >= Values::kCells && !HasExperiment(typed);
  return {may_go_on ? "nospace" : "words", LiveNames(values, typed, chosen)};
}

// Returns what completes `typed`, a value of `option`.
Answer ValuesFor(const Place& place, const CLI::Option& option, const std::string& typed,
                 const Environment& environment) {
  const Values values = ValuesOfOption(*place.command, option);
  if (place.in_help && values != Values::kAnalysisKinds) return {};
  switch (values) {
    case Values::kNone:
      return {};
    case Values::kFiles:
      return {"files", {}};
    case Values::kFolders:
      return {"folders", {}};
    case Values::kListed:
      return {"words", Listed(option.get_description())};
    case Values::kCommands:
      return {"words", CommandNames(*place.command->get_parent())};
    case Values::kAnalysisKinds:
      return {"words", AnalysisKinds()};
    default:
      return Live(values, typed, place.server, environment);
  }
}

// Returns what completes `word` at `place`; not only the candidates that begin with it.
Answer Complete(const Place& place, const std::string& word, const Environment& environment) {
  if (place.option != nullptr) return ValuesFor(place, *place.option, word, environment);
  if (absl::StartsWith(word, "-")) {
    const size_t equals = word.find('=');
    if (equals == word.npos) return {"words", OptionNames(*place.command)};
    const CLI::Option* option = FindOption(place.command, word.substr(0, equals));
    if (option == nullptr || !TakesValue(*option)) return {};
    Answer answer = ValuesFor(place, *option, word.substr(equals + 1), environment);
    for (Candidate& candidate : answer.candidates) {
      candidate.word.insert(0, word, 0, equals + 1);
    }
    return answer;
  }
  if (!CommandsOf(*place.command).empty()) {
    if (place.arguments > 0) return {};  // after a word that is no command
    return {"words", CommandNames(*place.command)};
  }
  const CLI::Option* argument = ArgumentAt(place);
  if (argument == nullptr) return {"words", OptionNames(*place.command)};
  return ValuesFor(place, *argument, word, environment);
}

}  // namespace

void PrintCompletions(const CLI::App& root, const std::vector<std::string>& words,
                      const Context& context) {
  // No request can carry others.
  const bool are_utf8 = std::all_of(words.begin(), words.end(), text::IsUtf8);
  if (words.empty() || !are_utf8) return;
  const Place place = FindPlace(root, {words.begin(), words.end() - 1});
  const Answer answer = Complete(place, words.back(), context.environment);
  std::ostream& out = context.console.data();
  out << answer.kind << "\n";
  for (const Candidate& candidate : answer.candidates) {
    if (!absl::StartsWith(candidate.word, words.back())) continue;
    out << candidate.word << "\t" << candidate.help << "\n";
  }
}

}  // namespace ablate::client
