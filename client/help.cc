#include "client/help.h"

#include <CLI/CLI.hpp>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/output/wrap.h"

namespace ablate::client {
namespace {

constexpr int kTerminalWidth = 80;
constexpr int kPageWidth = 100;
constexpr int kCommandWidth = 10;  // so that the lists of several sections are aligned

bool TakesSeveral(const CLI::Option& option) { return option.get_expected_max() > 1; }

// Such as "--output FILE" or, with its short name, "-o, --output FILE".
std::string OptionName(const CLI::Option& option, bool with_short) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) {
    if (with_short) names.push_back(absl::StrCat("-", name));
  }
  for (const std::string& name : option.get_lnames()) {
    if (with_short || names.empty()) names.push_back(absl::StrCat("--", name));
  }
  const std::string value = option.get_type_name();
  return absl::StrCat(absl::StrJoin(names, ", "), value.empty() ? "" : " ", value);
}

// Such as "FILE", or "EXP..." if it takes several values.
std::string ArgumentName(const CLI::Option& argument) {
  return absl::StrCat(argument.get_name(true), TakesSeveral(argument) ? "..." : "");
}

std::string FooterOf(const CLI::App& command) {
  return std::string(absl::StripAsciiWhitespace(command.get_footer()));
}

// Returns `text` as an item of a list.
std::string Item(absl::string_view text) {
  const std::string item = Wrap(absl::StrCat("- ", text), kPageWidth - 2);
  return absl::StrCat(absl::StrReplaceAll(item, {{"\n", "\n  "}}), "\n");
}

// Returns the block that a line of a footer belongs to.
FooterBlock::Kind BlockOf(absl::string_view line) {
  using Kind = FooterBlock::Kind;
  if (!absl::StartsWith(line, "  ")) return Kind::kText;
  const bool command = absl::StartsWith(line, "  ablate ") || absl::StartsWith(line, "      ");
  return !command && line.find("  ", 2) != line.npos ? Kind::kList : Kind::kCode;
}

std::string FooterPage(const CLI::App& command) {
  using Kind = FooterBlock::Kind;
  std::string page;
  Kind before = Kind::kText;
  for (const FooterBlock& block : FooterBlocks(command)) {
    if (block.kind != before && !block.lines.front().empty()) page += '\n';
    before = block.kind;
    if (block.kind == Kind::kCode) page += "```\n";
    for (const std::string& line : block.lines) {
      if (block.kind == Kind::kList) {
        const auto [term, text] = ListTerm(line);
        page += Item(absl::StrCat("`", term, "`: ", text));
      } else {
        absl::StrAppend(&page, Wrap(line, kPageWidth), "\n");
      }
    }
    if (block.kind == Kind::kCode) page += "```\n";
  }
  return page;
}

std::string TermsPage(const std::vector<Term>& terms) {
  std::string page;
  for (const auto& [term, text] : terms) page += Item(absl::StrCat("`", term, "`: ", text));
  return page;
}

std::string Anchor(const std::string& heading) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(heading), {{" ", "-"}});
}

// Appends `command`, or, of a group, the commands in it.
void AddLeaves(const CLI::App* command, std::vector<const CLI::App*>* leaves) {
  const std::vector<const CLI::App*> below = CommandsOf(*command);
  if (below.empty()) leaves->push_back(command);
  for (const CLI::App* one : below) AddLeaves(one, leaves);
}

std::string CommandPage(const CLI::App& command) {
  std::string page =
      absl::StrCat("\n### ", FullName(command), "\n\n", Wrap(command.get_description(), kPageWidth),
                   ".\n\n```\n", Usage(command), "\n```\n\n");
  std::vector<Term> terms = ArgumentTerms(command);
  for (Term& term : OptionTerms(command)) {
    if (!absl::StrContains(term.first, "--help")) terms.push_back(std::move(term));
  }
  absl::StrAppend(&page, TermsPage(terms));
  const std::string footer = FooterPage(command);
  return absl::StrCat(page, footer.empty() ? "" : "\n", footer);
}

std::string Contents(const std::vector<Section>& sections) {
  constexpr char kBlank[] = "\x01";  // a space at which no line is broken
  std::string page;
  for (const Section& section : sections) {
    std::vector<std::string> links;
    for (const CLI::App* command : section.commands) {
      const std::string name = FullName(*command);
      const absl::string_view shown = absl::StripPrefix(name, "ablate ");
      links.push_back(
          absl::StrCat("[", absl::StrReplaceAll(shown, {{" ", kBlank}}), "](#", Anchor(name), ")"));
    }
    page += Item(absl::StrCat(section.name, ": ", absl::StrJoin(links, ", ")));
  }
  return absl::StrReplaceAll(page, {{kBlank, " "}});
}

}  // namespace

std::string FullName(const CLI::App& command) {
  return command.get_parent() == nullptr
             ? command.get_name()
             : absl::StrCat(FullName(*command.get_parent()), " ", command.get_name());
}

std::vector<const CLI::App*> CommandsOf(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<Term> OptionTerms(const CLI::App& command) {
  std::vector<Term> terms;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) continue;
    terms.emplace_back(
        OptionName(*option, true),
        absl::StrCat(option->get_description(), TakesSeveral(*option) ? " (repeatable)" : "",
                     option->get_required() ? " (required)" : ""));
  }
  return terms;
}

std::vector<Term> ArgumentTerms(const CLI::App& command) {
  std::vector<Term> terms;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    terms.emplace_back(ArgumentName(*option), option->get_description());
  }
  return terms;
}

std::string Usage(const CLI::App& command) {
  std::string usage = absl::StrCat(FullName(command), " [OPTIONS]");
  if (!CommandsOf(command).empty()) {
    return command.get_parent() == nullptr ? absl::StrCat(usage, " COMMAND")
                                           : absl::StrCat(FullName(command), " COMMAND");
  }
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) {
      const std::string name = ArgumentName(*option);
      absl::StrAppend(
          &usage, option->get_required() ? absl::StrCat(" ", name) : absl::StrCat(" [", name, "]"));
    } else if (option->get_required()) {
      absl::StrAppend(&usage, " ", OptionName(*option, false));
    }
  }
  return usage;
}

std::vector<FooterBlock> FooterBlocks(const CLI::App& command) {
  std::vector<FooterBlock> blocks;
  for (absl::string_view line : absl::StrSplit(FooterOf(command), '\n')) {
    const FooterBlock::Kind kind = BlockOf(line);
    if (blocks.empty() || blocks.back().kind != kind) blocks.push_back({kind, {}});
    if (kind == FooterBlock::Kind::kCode) line.remove_prefix(2);
    blocks.back().lines.emplace_back(line);
  }
  return blocks;
}

Term ListTerm(absl::string_view line) {
  const size_t gap = line.find("  ", 2);
  return {std::string(line.substr(2, gap - 2)),
          std::string(absl::StripLeadingAsciiWhitespace(line.substr(gap)))};
}

std::vector<Section> SectionsOf(const CLI::App& root) {
  std::vector<Section> sections;
  for (const CLI::App* command : CommandsOf(root)) {
    const std::string name = command->get_group();
    if (sections.empty() || sections.back().name != name) sections.push_back({name, {}});
    AddLeaves(command, &sections.back().commands);
  }
  return sections;
}

std::string HelpText(const CLI::App& command) {
  std::string text =
      absl::StrCat(Wrap(command.get_description(), kTerminalWidth), "\n\n",
                   Wrap(absl::StrCat("Usage: ", Usage(command)), kTerminalWidth), "\n");
  const auto add = [&text](absl::string_view heading, const std::vector<Term>& terms, int least) {
    if (terms.empty()) return;
    absl::StrAppend(&text, "\n", heading, ":\n", TermList(terms, kTerminalWidth, least));
  };
  std::string section;
  std::vector<Term> commands;
  for (const CLI::App* one : CommandsOf(command)) {
    if (one->get_group() != section) add(section, std::exchange(commands, {}), kCommandWidth);
    section = one->get_group();
    commands.emplace_back(one->get_name(), one->get_description());
  }
  add(section, commands, kCommandWidth);
  add("Arguments", ArgumentTerms(command), 0);
  add("Options", OptionTerms(command), 0);
  const std::string footer = FooterOf(command);
  return footer.empty() ? text : absl::StrCat(text, "\n", Wrap(footer, kTerminalWidth), "\n");
}

std::string HelpPage(const CLI::App& root) {
  const std::vector<Section> sections = SectionsOf(root);
  std::string page = absl::StrCat(
      "# The command line\n\n"
      "<!-- Generated: build/bin/ablate help --markdown > docs/reference/cli.md -->\n\n"
      "Every command and option of `ablate`. `ablate help COMMAND` prints the same in a terminal.\n"
      "\n",
      Contents(sections), "\n```\n", Usage(root), "\n```\n\n", TermsPage(OptionTerms(root)), "\n",
      FooterPage(root));
  for (const Section& section : sections) {
    absl::StrAppend(&page, "\n## ", section.name, "\n");
    for (const CLI::App* command : section.commands) absl::StrAppend(&page, CommandPage(*command));
  }
  return page;
}

}  // namespace ablate::client
