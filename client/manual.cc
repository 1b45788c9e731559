#include "client/manual.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "client/help.h"
#include "client/output/part_file.h"

namespace ablate::client {
namespace {

constexpr int kManualSection = 1;  // commands

// Returns text as roff prints it unchanged, also at the beginning of a line.
std::string Roff(absl::string_view text) {
  std::string roff = absl::StartsWith(text, ".") ? "\\&" : "";
  for (size_t at = 0; at < text.size();) {
    const char32_t code = text::DecodeUtf8(text, at);
    switch (code) {
      case '\\':
        roff += "\\e";
        break;
      case '-':
        roff += "\\-";
        break;
      case '\'':
        roff += "\\(aq";
        break;
      case '`':
        roff += "\\(ga";
        break;
      case '^':
        roff += "\\(ha";
        break;
      case '~':
        roff += "\\(ti";
        break;
      default:
        if (code < 0x80) {
          roff += static_cast<char>(code);
        } else {
          absl::StrAppendFormat(&roff, "\\[u%04X]", static_cast<uint32_t>(code));
        }
    }
  }
  return roff;
}

std::string Bold(absl::string_view text) { return absl::StrCat("\\fB", Roff(text), "\\fR"); }

// Returns a sentence; what stands in `backticks` is bold.
std::string Sentence(absl::string_view text) {
  std::string roff;
  bool is_code = false;
  for (const absl::string_view part : absl::StrSplit(text, '`')) {
    roff += std::exchange(is_code, !is_code) ? Bold(part) : Roff(part);
  }
  return roff;
}

std::string List(const std::vector<Term>& terms) {
  std::string list;
  for (const auto& [term, text] : terms) {
    absl::StrAppend(&list, ".TP\n", Bold(term), "\n", Sentence(text), "\n");
  }
  return list;
}

std::string Code(const std::vector<std::string>& lines) {
  std::string code = ".PP\n.RS 4\n.nf\n";
  for (const std::string& line : lines) absl::StrAppend(&code, Roff(line), "\n");
  return code + ".fi\n.RE\n";
}

// Returns the footer as a section.
std::string Notes(const CLI::App& command) {
  std::string notes;
  for (const FooterBlock& block : FooterBlocks(command)) {
    if (block.kind == FooterBlock::Kind::kCode) {
      notes += Code(block.lines);
      continue;
    }
    for (const std::string& line : block.lines) {
      if (line.empty()) continue;
      if (block.kind == FooterBlock::Kind::kList) {
        notes += List({ListTerm(line)});
      } else {
        absl::StrAppend(&notes, notes.empty() ? "" : ".PP\n", Sentence(line), "\n");
      }
    }
  }
  return notes.empty() ? "" : absl::StrCat(".SH NOTES\n", notes);
}

// Returns "ablate-data-ls" of the command `ablate data ls`.
std::string PageName(const CLI::App& command) {
  return absl::StrReplaceAll(FullName(command), {{" ", "-"}});
}

std::string FileOf(const CLI::App& command) {
  return absl::StrCat(PageName(command), ".", kManualSection);
}

// Returns the page of a command, or of the root, with `commands` after the options.
std::string Page(const CLI::App& command, const std::string& commands) {
  const std::string name = PageName(command);
  const std::string usage = Usage(command).substr(FullName(command).size());
  std::vector<Term> terms = ArgumentTerms(command);
  for (Term& term : OptionTerms(command)) terms.push_back(std::move(term));
  std::string page =
      absl::StrCat(".TH ", Roff(absl::AsciiStrToUpper(name)), " 1 \"\" \"ablate ", ABLATE_VERSION,
                   "\" \"ablate\"\n.SH NAME\n", Roff(name), " \\- ",
                   Roff(command.get_description()), "\n.SH SYNOPSIS\n", Bold(FullName(command)),
                   Roff(usage), "\n.SH OPTIONS\n", List(terms), commands, Notes(command));
  if (command.get_parent() != nullptr) absl::StrAppend(&page, ".SH SEE ALSO\n.BR ablate (1)\n");
  return page;
}

}  // namespace

std::map<std::string, std::string> ManualPages(const CLI::App& root) {
  std::map<std::string, std::string> pages;
  std::string commands = ".SH COMMANDS\n";
  for (const Section& section : SectionsOf(root)) {
    absl::StrAppend(&commands, ".SS ", section.name, "\n");
    for (const CLI::App* command : section.commands) {
      absl::StrAppend(&commands, ".TP\n.BR ", Roff(PageName(*command)), " (1)\n",
                      Sentence(command->get_description()), "\n");
      pages[FileOf(*command)] = Page(*command, "");
    }
  }
  pages[FileOf(root)] = Page(root, commands);
  return pages;
}

absl::Status WriteManual(const std::map<std::string, std::string>& pages, const std::string& folder,
                         bool force) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);  // otherwise the first page can't be written
  for (const auto& [name, page] : pages) {
    RETURN_IF_ERROR(WriteFile(Output{absl::StrCat(folder, "/", name), force}, page));
  }
  return absl::OkStatus();
}

}  // namespace ablate::client
