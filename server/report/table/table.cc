#include "server/report/table/table.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/clean.h"
#include "base/csv.h"

namespace ablate::report {

std::vector<ColumnGroup> GroupsOf(const Table& table) {
  std::vector<ColumnGroup> groups;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const std::string& name = table.columns[i].group;
    if (groups.empty() || groups.back().name != name) groups.push_back({name, i, 0});
    ++groups.back().columns;
  }
  return groups;
}

std::string OneLine(const TableCell& cell) {
  if (cell.text.empty()) return cell.note;
  return absl::StrCat(cell.text, cell.interval.empty() ? "" : " ", cell.interval,
                      cell.note.empty() ? "" : absl::StrCat(" (", cell.note, ")"));
}

namespace {

std::string OrDash(const TableCell& cell) {
  std::string line = OneLine(cell);
  return line.empty() ? "\u2014" : line;
}

void AppendCell(const std::string& text, size_t width, bool right, std::string* line) {
  const std::string space(width - text::CountCharacters(text), ' ');
  if (!line->empty()) line->append("  ");
  line->append(right ? space + text : text + space);
}

}  // namespace

std::string RenderText(const Table& table) {
  std::string groups;
  std::vector<std::string> lines;
  for (const ColumnGroup& group : GroupsOf(table)) {
    const size_t end = group.first + group.columns;
    for (size_t i = group.first; i < end; ++i) {
      const Column& column = table.columns[i];
      std::vector<std::string> texts = {text::CleanText(column.title)};
      for (const TableCell& cell : column.cells) texts.push_back(text::CleanText(OrDash(cell)));
      lines.resize(texts.size());
      const size_t start = i == 0 ? 0 : text::CountCharacters(lines[0]) + 2;
      if (i == group.first) {
        groups.append(start - text::CountCharacters(groups), ' ');
        groups.append(text::CleanText(group.name));
      }
      size_t width = 0;
      for (const std::string& text : texts) width = std::max(width, text::CountCharacters(text));
      // The next group starts after the name of this one.
      if (i + 1 == end) width = std::max(start + width, text::CountCharacters(groups)) - start;
      for (size_t row = 0; row < texts.size(); ++row) {
        AppendCell(texts[row], width, column.number, &lines[row]);
      }
    }
  }
  if (groups.find_first_not_of(' ') != std::string::npos) lines.insert(lines.begin(), groups);
  std::string out;
  if (!table.note.empty()) out = absl::StrCat(text::CleanText(table.note), "\n");
  for (std::string& line : lines) {
    line.erase(line.find_last_not_of(' ') + 1);
    out.append(line).push_back('\n');
  }
  if (!table.legend.empty()) absl::StrAppend(&out, text::CleanText(table.legend), "\n");
  return out;
}

std::string RenderCsv(const Table& table) {
  std::string out;
  const auto append_line = [&](const auto& text_of) {
    for (size_t i = 0; i < table.columns.size(); ++i) {
      if (i > 0) out.push_back(',');
      out.append(text::CsvField(text_of(table.columns[i])));
    }
    out.append("\r\n");
  };
  append_line([](const Column& column) { return column.title; });
  const size_t rows = table.columns.empty() ? 0 : table.columns[0].cells.size();
  for (size_t row = 0; row < rows; ++row) {
    append_line([row](const Column& column) { return OneLine(column.cells[row]); });
  }
  return out;
}

namespace {

struct Escape {
  char32_t code;
  absl::string_view text;
};

// Characters that TeX or babel may read as a command, an argument, or a ligature; and the signs in
// our own texts.
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
                               {0x2013, "--"},
                               {0x2014, "---"}};

// Returns true for ASCII, and for letters of Latin-1 and Latin Extended-A that every installation
// can set.
bool IsPlain(char32_t code) {
  const bool ascii = code >= 0x20 && code <= 0x7E;
  const bool letter = code >= 0xC0 && code <= 0x17F && code != 0xD7 && code != 0xF7;
  return ascii || letter;
}

std::string Line(const std::vector<std::string>& cells) {
  return absl::StrCat(absl::StrJoin(cells, " & "), " \\\\\n");
}

std::string LatexCell(const Table& table, const Column& column, size_t row) {
  const TableCell& cell = column.cells[row];
  if (!table.stacked || cell.text.empty() || cell.interval.empty()) {
    return EscapeLatex(OrDash(cell));
  }
  const TableCell below = {cell.interval, "", cell.note};
  return absl::StrCat("\\shortstack[", column.number ? "r" : "l", "]{", EscapeLatex(cell.text),
                      " \\\\ \\scriptsize ", EscapeLatex(OneLine(below)), "}");
}

// Returns a line of groups, each with a rule below it.
std::string GroupLines(const Table& table) {
  std::vector<std::string> cells;
  std::string rules;
  for (const ColumnGroup& group : GroupsOf(table)) {
    cells.push_back(
        absl::StrCat("\\multicolumn{", group.columns, "}{c}{", EscapeLatex(group.name), "}"));
    if (group.name.empty()) continue;
    absl::StrAppend(&rules, "\\cmidrule(lr){", group.first + 1, "-", group.first + group.columns,
                    "}\n");
  }
  return rules.empty() ? "" : absl::StrCat(Line(cells), rules);
}

}  // namespace

std::string EscapeLatex(const std::string& text) {
  std::string out;
  for (absl::string_view rest = text; !rest.empty();) {
    const absl::string_view before = rest;
    const char32_t code = text::TakeCharacter(&rest);
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
    titles.push_back(absl::StrReplaceAll(EscapeLatex(column.title), {{"d\\_z", "$d_z$"}}));
  }
  std::string out = "% needs \\usepackage{booktabs}\n";
  if (!table.legend.empty()) absl::StrAppend(&out, "% ", EscapeLatex(table.legend), "\n");
  absl::StrAppend(&out, "\\begin{tabular}{", alignment, "}\n\\toprule\n");
  if (!table.note.empty()) {
    absl::StrAppend(&out, "\\multicolumn{", titles.size(), "}{l}{", EscapeLatex(table.note),
                    "} \\\\\n\\midrule\n");
  }
  absl::StrAppend(&out, GroupLines(table), Line(titles), "\\midrule\n");
  const size_t rows = table.columns.empty() ? 0 : table.columns[0].cells.size();
  for (size_t row = 0; row < rows; ++row) {
    std::vector<std::string> cells;
    for (const Column& column : table.columns) {
      cells.push_back(LatexCell(table, column, row));
    }
    absl::StrAppend(&out, Line(cells));
  }
  return absl::StrCat(out, "\\bottomrule\n\\end{tabular}\n");
}

}  // namespace ablate::report
