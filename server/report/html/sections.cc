#include "server/report/html/sections.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/report/compare/wording.h"

namespace ablate::html {
namespace {

// Writes an element per level, because elements' names are literals. `kind` sets its look, because
// levels differ between pages of one and of several experiments.
void Heading(int level, Literal kind, absl::string_view text, Markup* out) {
  constexpr Literal kHeadings[] = {"h1", "h2", "h3", "h4"};
  out->Element(kHeadings[std::clamp(level, 1, 4) - 1], {{"class", kind.text()}}, text);
}

}  // namespace

void OpenSection(const Place& place, Literal name, absl::string_view title, Markup* out) {
  out->Open("section", {{"id", absl::StrCat(place.prefix, name.text())}, {"class", name.text()}});
  Heading(place.level, "part", title, out);
}

void OpenFolded(const Place& place, Literal name, absl::string_view title, Markup* out) {
  out->Open("section", {{"class", name.text()}}).Open("details").Open("summary");
  Heading(place.level, "part", title, out);
  out->Close();
  // Inside the fold, so that a link to it opens it.
  out->Open("div", {{"id", absl::StrCat(place.prefix, name.text())}});
}

void CloseFolded(Markup* out) { out->Close().Close().Close(); }

void Unseen(const Place& place, absl::string_view title, Markup* out) {
  Heading(place.level, "unseen", title, out);
}

void Subheading(const Place& place, absl::string_view text, Markup* out) {
  Heading(place.level + 1, "subpart", text, out);
}

void OpenScroll(absl::string_view label, Markup* out) { OpenScroll("div", "scroll", label, out); }

void OpenScroll(Literal tag, Literal kind, absl::string_view label, Markup* out) {
  out->Open(tag, {{"class", kind.text()},
                  {"role", "region"},
                  {"tabindex", "0"},
                  {"aria-label", std::string(label)}});
}

void Caption(absl::string_view text, Markup* out) {
  out->Open("caption").Element("span", text).Close();
}

void HeadRow(const std::vector<std::string>& titles, Markup* out) {
  out->Open("tr");
  for (const std::string& title : titles) out->Element("th", {{"scope", "col"}}, title);
  out->Close();
}

namespace {

using report::Column;
using report::ColumnGroup;
using report::Table;
using report::TableCell;

// Writes two lines of heads, groups and columns; and a colgroup for each group, for
// scope="colgroup".
void GroupedHeads(const std::vector<ColumnGroup>& groups, std::vector<std::string> titles,
                  Markup* out) {
  for (const ColumnGroup& group : groups) {
    out->Open("colgroup", {{"span", absl::StrCat(group.columns)}}).Close();
  }
  out->Open("thead").Open("tr");
  for (const ColumnGroup& group : groups) {
    if (group.first == 0) {
      out->Element("th", {{"scope", "col"}, {"rowspan", "2"}}, titles[0]);
    } else {
      out->Element(
          "th",
          {{"scope", "colgroup"}, {"class", "group"}, {"colspan", absl::StrCat(group.columns)}},
          group.name);
    }
  }
  out->Close();
  titles.erase(titles.begin());
  HeadRow(titles, out);
  out->Close();
}

// Returns the label's letters and digits, with hyphens between words.
std::string FileName(absl::string_view label) {
  std::string name = absl::AsciiStrToLower(label);
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return !absl::ascii_isalnum(static_cast<unsigned char>(c)); }, '-');
  return name;
}

void Content(const TableCell& cell, Markup* out) {
  out->Text(cell.text.empty() ? "\u2014" : cell.text);
  const std::string below = report::Together({cell.interval, cell.note}, "; ");
  if (!below.empty()) out->Element("small", below);
  out->Close();
}

void WriteRow(const Table& table, size_t row, bool grouped, Markup* out) {
  const bool baseline = !table.baselines.empty() && table.baselines[row];
  out->Open("tr", {{"class", baseline ? "baseline" : "compared"}});
  for (const Column& column : table.columns) {
    if (&column == &table.columns[0]) {
      out->Open("th", {{"scope", "row"}});
    } else if (grouped) {
      out->Open("td", {{"data-title", column.title}, {"class", column.leads ? "delta" : "value"}});
    } else if (column.number) {
      out->Open("td");
    } else {
      out->Open("td", {{"class", "text"}});
    }
    Content(column.cells[row], out);
  }
  out->Close();
}

}  // namespace

void WriteTable(const Table& table, absl::string_view label, absl::string_view caption,
                Markup* out) {
  const std::vector<ColumnGroup> groups = report::GroupsOf(table);
  const bool grouped = groups.size() > 1;
  std::vector<std::string> titles;
  for (const Column& column : table.columns) titles.push_back(column.title);
  OpenScroll(label, out);
  out->Open("table", {{"class", grouped ? "main" : "plain"}});
  const std::string note =
      table.note.empty() ? "" : absl::StrCat(" ", report::Capitalized(table.note), ".");
  out->Open("caption").Open("span").Text(absl::StrCat(caption, note, " "));
  out->Element("a",
               {{"class", "file"},
                {"download", absl::StrCat(FileName(label), ".tex")},
                {"href", DataUri("application/x-tex", report::RenderLatex(table))},
                {"aria-label", absl::StrCat(label, " as LaTeX")}},
               "LaTeX");
  out->Close().Close();
  if (grouped) {
    GroupedHeads(groups, std::move(titles), out);
  } else {
    out->Open("thead").Open("tr");
    for (const Column& column : table.columns) {
      out->Element("th", {{"scope", "col"}, {"class", column.number ? "value" : "text"}},
                   column.title);
    }
    out->Close().Close();
  }
  out->Open("tbody");
  for (size_t row = 0; row < table.columns[0].cells.size(); ++row)
    WriteRow(table, row, grouped, out);
  out->Close().Close().Close();
}

}  // namespace ablate::html
