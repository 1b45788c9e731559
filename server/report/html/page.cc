#include "server/report/html/page.h"

#include "absl/strings/str_cat.h"
#include "server/report/html/markup.h"
#include "server/report/html/sections.h"

namespace ablate::html {
namespace {

// Screen, phone, print.
// Texts are #222222, #595959 or #0b5394 on white or a tint of at least #f4f4f4: 4.5 to 1 and more.
// The edges of verdicts are the palette's colours of figures; the sentence says the same in words.
constexpr char kStyle[] = R"css(
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem 1.25rem 3rem; background: #ffffff; color: #222222;
  font: 1rem/1.5 -apple-system, 'Segoe UI', 'Liberation Sans', Arial, Helvetica, sans-serif; font-variant-numeric: lining-nums; }
p, ul, ol, dl, details { max-width: 70ch; }
a { color: #0b5394; }
a:focus-visible, [tabindex]:focus-visible, summary:focus-visible { outline: 2px solid #0b5394; outline-offset: 2px; }
header { border-bottom: 1px solid #c4c4c4; margin-bottom: 1.5rem; }
h1, h2, h3, h4 { line-height: 1.2; }
h1 { font-size: 1.9rem; max-width: 34ch; margin: .15rem 0 1.1rem; }
.part { font-size: 1.35rem; margin: 2.4rem 0 .7rem; }
.subpart { font-size: 1.05rem; margin: 1.5rem 0 .5rem; }
article > h2 { font-size: 1.6rem; margin: .2rem 0 1.2rem; max-width: 40ch; }
article + article { border-top: 3px solid #222222; margin-top: 3rem; padding-top: 1rem; }
article > section > h3 { font-size: 1.25rem; margin: 2.2rem 0 .7rem; }
article > section:first-of-type > .part { margin-top: 0; }
.kicker { color: #595959; margin: 0; }
.answer { font-size: 1.15rem; line-height: 1.45; border-left: .3rem solid #6e6e6e; padding: .1rem 0 .1rem .9rem; margin: .6rem 0 1rem; }
.answer.better { border-color: #009e73; }
.answer.worse { border-color: #d55e00; }
.answer.preliminary, .answer.scored-differently { border-color: #222222; background: #f4f4f4; padding: .5rem .9rem; }
.aside { color: #595959; }
small { display: block; color: #595959; font-size: .85em; font-weight: normal; }
nav small { display: inline; }
li { margin: .25rem 0; }
.scroll { overflow-x: auto; margin: .8rem 0 1.2rem; }
table { border-collapse: separate; border-spacing: 0; min-width: min(100%, 32rem); font-size: .875rem; line-height: 1.35; font-variant-numeric: lining-nums tabular-nums; }
caption { text-align: left; color: #595959; padding: 0 0 .45rem; }
caption span { display: block; position: sticky; left: 0; width: min(70ch, 100vw - 2.5rem); }
th, td { padding: .3rem .5rem; text-align: right; vertical-align: top; white-space: nowrap; }
th:first-child, td.text, .texts th, .texts td { text-align: left; }
thead th { font-weight: 600; vertical-align: bottom; border-bottom: 1px solid #4d4d4d; }
thead th.group { text-align: center; border-bottom: 1px solid #c4c4c4; font-weight: 400; color: #595959; }
thead tr:not(:first-child) th:first-child { text-align: right; }
tbody th, tbody td { border-bottom: 1px solid #dedede; }
tbody th { font-weight: 600; }
tbody th:first-child, thead tr:first-child th:first-child { position: sticky; left: 0; background: #ffffff; }
tr.baseline td, tr.baseline th:first-child { background: #f4f4f4; }
td.text { white-space: normal; overflow-wrap: anywhere; min-width: 6rem; }
td.text code { white-space: nowrap; }
.gallery { display: grid; grid-template-columns: minmax(0, 1fr); gap: 1.6rem 2.2rem; }
figure { margin: 0; }
.picture svg { display: block; width: 100%; height: auto; max-width: 34rem; }
.wide .picture { overflow-x: auto; }
.wide .picture svg { max-width: 70rem; min-width: 34rem; }
figcaption { font-size: .875rem; line-height: 1.4; color: #595959; max-width: 70ch; margin-top: .4rem; }
figcaption strong { color: #222222; }
.missing { border: 1px dashed #8a8a8a; padding: .7rem .9rem; color: #595959; }
.writers { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(16rem, 100%), 1fr)); gap: 0 2rem; }
ul.texts { list-style: none; padding: 0; margin: 0; columns: 2; overflow-wrap: anywhere; }
ul.texts li { margin: 0; white-space: pre-wrap; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .25rem 1.2rem; margin: .6rem 0; }
dt { color: #595959; }
dd { margin: 0; overflow-wrap: anywhere; }
code, pre { font-family: ui-monospace, 'Liberation Mono', Menlo, Consolas, monospace; font-size: .875em; }
pre { background: #f4f4f4; padding: .8rem 1rem; overflow-x: auto; max-width: 100%; line-height: 1.45; }
pre code { font-size: 1em; }
footer { border-top: 1px solid #c4c4c4; margin-top: 3rem; color: #595959; font-size: .875rem; }
@media (min-width: 62rem) {
  .gallery { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  figure.wide { grid-column: 1 / -1; }
}
@media (max-width: 34rem) {
  body { padding: 1rem .9rem 2rem; }
  h1 { font-size: 1.5rem; }
  dl { grid-template-columns: minmax(0, 1fr); gap: 0; }
  dd { margin-bottom: .5rem; }
}
@page { size: A4; margin: 14mm 13mm; }
@media print {
  body { max-width: none; padding: 0; font-size: 9.5pt; }
  h1 { font-size: 17pt; }
  .part { font-size: 13pt; margin-top: 1.2rem; }
  .subpart { font-size: 10.5pt; margin-top: .8rem; }
  .answer { font-size: 11pt; }
  h1, h2, h3, h4, caption { break-after: avoid; }
  a { color: inherit; text-decoration: none; }
  .csv { display: none; }
  .scroll { overflow: visible; }
  tbody th:first-child, thead tr:first-child th:first-child { position: static; }
  caption span { position: static; width: auto; }
  table { font-size: 7.5pt; min-width: 0; }
  table.main { font-size: 6.6pt; width: 100%; }
  th, td { padding: .12rem .22rem; white-space: normal; }
  td small { font-size: 6pt; white-space: nowrap; }
  tr, figure, .writer, li, dl > * { break-inside: avoid; }
  thead { display: table-header-group; }
  .gallery { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1rem; }
  figure.wide { grid-column: 1 / -1; }
  .wide .picture { overflow: visible; }
  .wide .picture svg { min-width: 0; }
  figcaption { font-size: 7.5pt; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 7.5pt; }
  tr.baseline td, tr.baseline th, pre { -webkit-print-color-adjust: exact; }
}
)css";

bool IsAlone(const Page& page) { return page.experiments.size() == 1; }

// The question, or the name of an experiment that asks none.
std::string QuestionOf(const std::pair<std::string, std::string>& experiment) {
  return experiment.second.empty() ? experiment.first : experiment.second;
}

std::string TitleOf(const Page& page) {
  if (IsAlone(page)) return QuestionOf(page.experiments[0]);
  return absl::StrCat("Report on ", page.experiments.size(), " experiments");
}

std::string PrefixOf(const Page& page, size_t index) {
  return IsAlone(page) ? "" : absl::StrCat("e", index + 1, "-");
}

void Contents(const Page& page, Markup* out) {
  out->Open("nav", {{"aria-label", "Contents"}}).Open("ol");
  for (size_t i = 0; i < page.experiments.size(); ++i) {
    out->Open("li").Element("a", {{"href", absl::StrCat("#e", i + 1)}},
                            QuestionOf(page.experiments[i]));
    if (!page.experiments[i].second.empty()) {
      out->Text(" ").Element("small", page.experiments[i].first);
    }
    out->Close();
  }
  out->Close().Close();
}

void Heads(const Page& page, Markup* out) {
  out->Open("head").Void("meta", {{"charset", "utf-8"}});
  out->Void("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  out->Void("meta", {{"name", "generator"}, {"content", absl::StrCat("ablate ", page.version)}});
  out->Element("title", absl::StrCat(TitleOf(page), " – ablate report"));
  out->Open("style").Constant(kStyle).Close();
  out->Close();
}

}  // namespace

std::string PageHead(const Page& page) {
  Markup out;
  out.Constant("<!DOCTYPE html>\n").Open("html", {{"lang", "en"}});
  Heads(page, &out);
  out.Open("body").Open("header");
  out.Element("p", {{"class", "kicker"}},
              IsAlone(page) ? absl::StrCat("ablate report · ", page.experiments[0].first)
                            : std::string("ablate report"));
  out.Element("h1", TitleOf(page)).Close();
  if (!IsAlone(page)) Contents(page, &out);
  out.Open("main");
  return out.Take();
}

std::string ExperimentSection(const Page& page, size_t index, const Experiment& experiment) {
  Markup out;
  const Place place = {IsAlone(page) ? 2 : 3, PrefixOf(page, index)};
  out.Open("article", {{"id", absl::StrCat("e", index + 1)}});
  if (!IsAlone(page)) {
    out.Element("p", {{"class", "kicker"}}, experiment.id);
    out.Element("h2", QuestionOf(page.experiments[index]));
  }
  VerdictSection(place, experiment, &out);
  ResultsSection(place, experiment, &out);
  ChangesSection(place, experiment, &out);
  FiguresSection(place, experiment, &out);
  AnalysesSection(place, experiment, &out);
  SamplesSection(place, experiment, &out);
  MethodsSection(place, experiment, &out);
  ProvenanceSection(place, experiment, &out);
  out.Close();
  return out.Take();
}

std::string PageFoot(const Page& page) {
  Markup out;
  out.Constant("</main>\n").Open("footer");
  out.Element("p", absl::StrCat("Made by ablate ", page.version, " on ", page.made, "."));
  out.Close();
  out.Constant("</body>\n</html>\n");
  return out.Take();
}

}  // namespace ablate::html
