// Sections of an experiment's report, and their shared parts: headings, scrolling boxes, tables.
// The functions append to a page's markup and keep no state.
#ifndef ABLATE_SERVER_REPORT_HTML_SECTIONS_H_
#define ABLATE_SERVER_REPORT_HTML_SECTIONS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/markup.h"
#include "server/report/html/page.h"
#include "server/report/table/cells.h"
#include "server/report/table/table.h"

namespace ablate::html {

// Position of a section: its headings' level, and the prefix of its ids.
struct Place {
  int level = 2;       // of the section's heading: 2 or 3
  std::string prefix;  // of ids, distinct in a page
};

// Opens a section with `name` in its ids, with its heading.
void OpenSection(const Place& place, Literal name, absl::string_view title, Markup* out);
// The same with everything except the heading folded; CloseFolded ends it.
void OpenFolded(const Place& place, Literal name, absl::string_view title, Markup* out);
void CloseFolded(Markup* out);
// Adds a section's heading that only assistive technology shows.
void Unseen(const Place& place, absl::string_view title, Markup* out);
// Adds a heading one level below the section's.
void Subheading(const Place& place, absl::string_view text, Markup* out);
// Opens a box that scrolls by itself if its content is wider than the screen.
void OpenScroll(absl::string_view label, Markup* out);
// Opens another scrolling element with the class `kind`, reachable by keyboard.
void OpenScroll(Literal tag, Literal kind, absl::string_view label, Markup* out);

// Writes a table in a box that scrolls; `label` names the box. The caption is sentences, and ends
// with the table's note and a link to its LaTeX. Rows begin with their first cell. Columns with
// groups have two lines of heads, can be sorted by the page's script, and become a list for each
// row on a phone.
void WriteTable(const report::Table& table, absl::string_view label, absl::string_view caption,
                Markup* out);

// Write the parts of a table that isn't a report::Table: its caption, which on a phone stays in
// view while the table scrolls, and a line of column heads.
void Caption(absl::string_view text, Markup* out);
void HeadRow(const std::vector<std::string>& titles, Markup* out);

// Writes a figure with its caption and its numbers as CSV; `number` is its number in the page.
void OneFigure(const Figure& figure, const std::string& prefix, size_t number, Markup* out);

// Writes the figures of an analysis, by its index; nothing if it has none.
void FiguresOf(const Place& place, const Experiment& experiment, size_t analysis, Markup* out);

// Write parts of the first screen: cards of settings; cards of main effects and interactions,
// nothing if axes aren't crossed; and the list of checks and cautions.
void Cards(const Experiment& experiment, Markup* out);
void EffectCards(const Place& place, const report::Comparison& comparison, Markup* out);
void Checks(const Place& place, const Experiment& experiment, Markup* out);

// The following, in the order of the page, write one <section> each, or nothing if there is no
// content.
//
// Writes the answer, setting by setting, with the figure that decides it, checks and cautions, and
// the command that makes the page again.
void FirstScreen(const Place& place, const std::string& command, const Experiment& experiment,
                 Markup* out);
// Writes the main table, and the tables of settings at shared tuned values and of windows of
// curves.
void ResultsSection(const Place& place, const Experiment& experiment, Markup* out);
// Writes the differences between a setting and its baseline besides its label, and the warnings.
void ChangesSection(const Place& place, const Experiment& experiment, Markup* out);
// Writes figures as inline SVG except the one on the first screen and those of analyses; then,
// folded, those that repeat others.
void FiguresSection(const Place& place, const Experiment& experiment, Markup* out);
// Writes what differs between settings in the numbers of the analyses that the spec asks for, then
// each analysis with its table and figures.
void AnalysesSection(const Place& place, const Experiment& experiment, Markup* out);
// Writes the texts that the models of each setting generate.
void SamplesSection(const Place& place, const Experiment& experiment, Markup* out);
// Writes how the numbers were computed, as far as it concerns this experiment.
void MethodsSection(const Place& place, const Experiment& experiment, Markup* out);
// Writes where the numbers come from, and how to reproduce them.
void ProvenanceSection(const Place& place, const Experiment& experiment, Markup* out);

}  // namespace ablate::html

#endif  // ABLATE_SERVER_REPORT_HTML_SECTIONS_H_
