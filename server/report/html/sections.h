// The sections of an experiment's report, in the page's order; each writes one <section>.
#ifndef ABLATE_SERVER_REPORT_HTML_SECTIONS_H_
#define ABLATE_SERVER_REPORT_HTML_SECTIONS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "server/report/html/markup.h"
#include "server/report/html/page.h"

namespace ablate::html {

// Where a section stands: its headings' level, and what its ids begin with.
struct Place {
  int level = 2;       // of the section's heading: 2 or 3
  std::string prefix;  // of ids, distinct in a page
};

// Opens a section called `name` in ids, with its heading.
void OpenSection(const Place& place, Literal name, absl::string_view title, Markup* out);
// A heading one level below the section's.
void Subheading(const Place& place, absl::string_view text, Markup* out);
// Opens a box that scrolls by itself where its content is wider than the screen.
void OpenScroll(absl::string_view label, Markup* out);
// Another element that scrolls, of the class `kind`: what scrolls must be reachable by keyboard.
void OpenScroll(Literal tag, Literal kind, absl::string_view label, Markup* out);

void VerdictSection(const Place& place, const Experiment& experiment, Markup* out);
void ResultsSection(const Place& place, const Experiment& experiment, Markup* out);
// Parts of the results: each setting at each shared combination of tuned values, and the windows;
// nothing where there is none.
void MatchedTable(const Place& place, const Experiment& experiment, Markup* out);
void WindowTable(const Place& place, const Experiment& experiment, Markup* out);

void ChangesSection(const Place& place, const Experiment& experiment, Markup* out);
void FiguresSection(const Place& place, const Experiment& experiment, Markup* out);
void SamplesSection(const Place& place, const Experiment& experiment, Markup* out);
void MethodsSection(const Place& place, const Experiment& experiment, Markup* out);
void ProvenanceSection(const Place& place, const Experiment& experiment, Markup* out);

}  // namespace ablate::html

#endif  // ABLATE_SERVER_REPORT_HTML_SECTIONS_H_
