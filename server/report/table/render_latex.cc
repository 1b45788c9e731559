// Tables for papers.
#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "server/report/clean_text.h"
#include "server/report/table/table.h"

namespace ablate::report {
namespace {

struct Escape {
  char32_t code;
  absl::string_view text;
};

// What TeX or babel may take for a command, an argument, or a ligature; and the signs of our own
// texts.
constexpr Escape kEscapes[] = {{'\\', "\\textbackslash{}"},
                               {'{', "\\{"},
                               {'}', "\\}"},
                               {'$', "\\$"},
                               {'&', "\\&"},
                               {'#', "\\#"},
                               {'%', "\\%"},
                               {'_', "\\_"},
                               {'~', "\\textasciitilde{}"},
                               {'^', "\\textasciicircum{}"},
                               {'<', "\\textless{}"},
                               {'>', "\\textgreater{}"},
                               {'|', "\\textbar{}"},
                               {'"', "{\\symbol{34}}"},
                               {'\'', "{\\symbol{39}}"},
                               {'`', "{\\symbol{96}}"},
                               {'[', "{[}"},
                               {']', "{]}"},
                               {'*', "{*}"},
                               {'-', "{-}"},
                               {'\t', " "},
                               {'\n', " "},
                               {'\r', " "},
                               {0x2212, "$-$"},
                               {0x0394, "$\\Delta$"},
                               {0x00D7, "$\\times$"},
                               {0x00B1, "$\\pm$"},
                               {0x2248, "$\\approx$"},
                               {0x2014, "---"}};

// ASCII, and the letters of Latin-1 and Latin Extended-A that every installation can set.
bool IsPlain(char32_t code) {
  const bool ascii = code >= 0x20 && code <= 0x7E;
  const bool letter = code >= 0xC0 && code <= 0x17F && code != 0xD7 && code != 0xF7;
  return ascii || letter;
}

std::string Line(const std::vector<std::string>& cells) {
  return absl::StrCat(absl::StrJoin(cells, " & "), " \\\\\n");
}

}  // namespace

std::string EscapeLatex(const std::string& text) {
  std::string out;
  for (absl::string_view rest = text; !rest.empty();) {
    const absl::string_view before = rest;
    const char32_t code = TakeCharacter(&rest);
    const auto escape = std::find_if(std::begin(kEscapes), std::end(kEscapes),
                                     [code](const Escape& one) { return one.code == code; });
    if (escape != std::end(kEscapes)) {
      absl::StrAppend(&out, escape->text);
    } else if (IsPlain(code)) {
      absl::StrAppend(&out, before.substr(0, before.size() - rest.size()));
    } else {
      absl::StrAppendFormat(&out, "\\texttt{U+%04X}", static_cast<uint32_t>(code));
    }
  }
  return out;
}

std::string RenderLatex(const Table& table) {
  std::string alignment;
  std::vector<std::string> titles;
  for (const Column& column : table.columns) {
    alignment.push_back(column.number ? 'r' : 'l');
    titles.push_back(EscapeLatex(column.title));
  }
  std::string out = absl::StrCat("% needs \\usepackage{booktabs}\n\\begin{tabular}{", alignment,
                                 "}\n\\toprule\n");
  if (!table.note.empty()) {
    absl::StrAppend(&out, "\\multicolumn{", titles.size(), "}{l}{", EscapeLatex(table.note),
                    "} \\\\\n\\midrule\n");
  }
  absl::StrAppend(&out, Line(titles), "\\midrule\n");
  const size_t rows = table.columns.empty() ? 0 : table.columns[0].cells.size();
  for (size_t row = 0; row < rows; ++row) {
    std::vector<std::string> cells;
    for (const Column& column : table.columns) cells.push_back(EscapeLatex(column.cells[row]));
    absl::StrAppend(&out, Line(cells));
  }
  return absl::StrCat(out, "\\bottomrule\n\\end{tabular}\n");
}

}  // namespace ablate::report
