#include "server/report/html/style.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/sha256.h"
#include "server/report/figure/style.h"

namespace ablate::html {
namespace {

// Texts have a contrast of 4.5 to 1 and more on the paper or its tint, in light and in dark.
// Colours of verdicts only repeat the words.
constexpr absl::string_view kStyle = R"css(
* { box-sizing: border-box; }
:root { color-scheme: light dark; --paper: #ffffff; --ink: #222222; --muted: #595959; --rule: #c4c4c4; --line: #dedede;
  --tint: #f4f4f4; --link: #0b5394; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem 1.25rem 3rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 -apple-system, 'Segoe UI', 'Liberation Sans', Arial, Helvetica, sans-serif; font-variant-numeric: lining-nums; }
p, ul, ol, dl, details { max-width: 70ch; }
a { color: var(--link); }
a:focus-visible, [tabindex]:focus-visible, summary:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
header { border-bottom: 1px solid var(--rule); margin-bottom: 1.5rem; }
h1, h2, h3, h4 { line-height: 1.2; }
h1 { font-size: 1.9rem; max-width: 60ch; text-wrap: balance; margin: .15rem 0 1.1rem; }
.part { font-size: 1.35rem; margin: 2.4rem 0 .7rem; }
.subpart { font-size: 1.05rem; margin: 1.5rem 0 .5rem; }
article > h2 { font-size: 1.6rem; margin: .2rem 0 1.2rem; max-width: 40ch; }
article + article { border-top: 3px solid var(--ink); margin-top: 3rem; padding-top: 1rem; }
article > section > h3 { font-size: 1.25rem; margin: 2.2rem 0 .7rem; }
article > section:first-of-type > .part { margin-top: 0; }
.kicker { color: var(--muted); margin: 0; }
.answer { font-size: 1.15rem; line-height: 1.45; border-left: .3rem solid var(--muted); padding: .1rem 0 .1rem .9rem; margin: .6rem 0 1rem; }
.answer.preliminary, .answer.scored-differently { border-color: var(--ink); background: var(--tint); padding: .5rem .9rem; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.first { display: grid; grid-template-columns: minmax(0, 1fr); gap: 1.2rem 2.2rem; align-items: start; }
.measured { color: var(--muted); margin: 0 0 .4rem; }
.measured strong { color: var(--ink); }
ul.cards, ul.checks { list-style: none; padding: 0; margin: 0; max-width: none; }
.card { display: grid; grid-template-columns: minmax(5.5rem, 22%) minmax(0, 1fr); gap: 0 1rem; padding: .75rem 0; margin: 0;
  border-bottom: 1px solid var(--line); }
.card p { margin: 0; max-width: none; }
.card .who { font-weight: 600; overflow-wrap: anywhere; padding-left: 1.35em; text-indent: -1.35em; }
.card .facts { color: var(--muted); font-size: .9rem; margin-top: .15rem; }
.card .who.effect { padding-left: 0; text-indent: 0; }
.cards + .measured { margin-top: 1rem; }
.card strong { font-size: 1.05em; }
.card.better strong { color: var(--good); }
.card.worse strong { color: var(--bad); }
.chip { width: .8em; height: .8em; margin-right: .45em; vertical-align: -.06em; }
ul.checks { margin-top: .9rem; }
.checks li { padding-left: 1.3rem; position: relative; margin: .3rem 0; max-width: 75ch; }
.checks li::before { position: absolute; left: 0; }
.checks .passed::before { content: '\25cf'; content: '\25cf' / ''; color: var(--good); }
.checks .caution::before { content: '\25b2'; content: '\25b2' / ''; color: var(--bad); }
.scope, .again { color: var(--muted); font-size: .9rem; margin: .7rem 0 0; max-width: 75ch; }
.again code { background: var(--tint); padding: .1rem .3rem; overflow-wrap: anywhere; }
.first figcaption { font-size: .85rem; }
details { max-width: none; }
section > details > summary { cursor: pointer; margin-top: 1.6rem; }
section > details > summary > * { display: inline; }
details > summary + * { margin-top: .7rem; }
button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer; }
button:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
button.copier { color: var(--link); font-size: .85rem; margin-left: .5rem; }
pre + button.copier { margin: .2rem 0 .8rem; }
th button { text-align: inherit; text-decoration: underline dotted; text-underline-offset: .2em; }
th[aria-sort=ascending] button::after { content: ' \2191'; }
th[aria-sort=descending] button::after { content: ' \2193'; }
.readout { color: var(--muted); font-size: .85rem; margin: .2rem 0 0; min-height: 1.4em; font-variant-numeric: tabular-nums; }
.aside { color: var(--muted); }
small { display: block; color: var(--muted); font-size: .85em; font-weight: normal; }
nav small { display: inline; }
li { margin: .25rem 0; }
.scroll { overflow-x: auto; margin: .8rem 0 1.2rem; }
table { border-collapse: separate; border-spacing: 0; min-width: min(100%, 32rem); font-size: .875rem; line-height: 1.35; font-variant-numeric: lining-nums tabular-nums; }
caption { text-align: left; color: var(--muted); padding: 0 0 .45rem; }
caption span { display: block; position: sticky; left: 0; width: min(70ch, 100vw - 2.5rem); }
th, td { padding: .3rem .5rem; text-align: right; vertical-align: top; white-space: nowrap; }
th:first-child, th.text, td.text, .texts th, .texts td { text-align: left; }
thead th { font-weight: 600; vertical-align: bottom; border-bottom: 1px solid var(--muted); }
thead th.group { text-align: center; border-bottom: 1px solid var(--rule); font-weight: 400; color: var(--muted); }
thead tr:not(:first-child) th:first-child { text-align: right; }
tbody th, tbody td { border-bottom: 1px solid var(--line); }
tbody th { font-weight: 600; }
tbody th:first-child, thead tr:first-child th:first-child { position: sticky; left: 0; background: var(--paper); }
tr.baseline td, tr.baseline th:first-child { background: var(--tint); }
td.text { white-space: normal; overflow-wrap: anywhere; min-width: 6rem; }
td.text code { white-space: nowrap; }
.gallery { display: grid; grid-template-columns: minmax(0, 1fr); gap: 1.6rem 2.2rem; }
figure { margin: 0; }
.picture svg { display: block; width: 100%; height: auto; max-width: 34rem; }
.wide .picture { overflow-x: auto; }
.wide .picture svg { max-width: 70rem; min-width: 46rem; }
figcaption { font-size: .875rem; line-height: 1.4; color: var(--muted); max-width: 70ch; margin-top: .4rem; }
figcaption strong { color: var(--ink); }
.missing { border: 1px dashed var(--muted); padding: .7rem .9rem; color: var(--muted); }
.writers { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(16rem, 100%), 1fr)); gap: 0 2rem; }
ul.texts { list-style: none; padding: 0; margin: 0; columns: 2; overflow-wrap: anywhere; }
ul.texts li { margin: 0; white-space: pre-wrap; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .25rem 1.2rem; margin: .6rem 0; }
dt { color: var(--muted); }
dd { margin: 0; overflow-wrap: anywhere; }
code, pre { font-family: ui-monospace, 'Liberation Mono', Menlo, Consolas, monospace; font-size: .875em; }
pre { background: var(--tint); padding: .8rem 1rem; overflow-x: auto; max-width: 100%; line-height: 1.45; }
pre code { font-size: 1em; }
footer { border-top: 1px solid var(--rule); margin-top: 3rem; color: var(--muted); font-size: .875rem; }
@media (min-width: 62rem) {
  .first { grid-template-columns: minmax(0, 7fr) minmax(0, 5fr); }
  .gallery { display: block; columns: 2; column-gap: 2.2rem; }
  .gallery figure { break-inside: avoid; margin-bottom: 1.6rem; }
  .gallery figure.wide { column-span: all; margin-top: 1.6rem; }
}
@media (max-width: 34rem) {
  .card { grid-template-columns: minmax(0, 1fr); }
  table.main, table.main tbody, table.main tr, table.main th, table.main td { display: block; }
  table.main thead, table.main colgroup { display: none; }
  table.main { min-width: 0; }
  table.main tr { display: flex; flex-direction: column; padding: .5rem 0; border-bottom: 1px solid var(--rule); }
  table.main tbody th, table.main tbody td { border: 0; padding: .1rem 0; white-space: normal; }
  table.main tbody td { display: flex; flex-wrap: wrap; gap: 0 .6rem; text-align: left; }
  table.main tbody td::before { content: attr(data-title); color: var(--muted); flex: 0 0 9.5rem; }
  table.main tbody td small { display: inline; }
  table.main tbody th { order: -2; position: static; }
  table.main tbody td.delta { order: -1; font-weight: 600; }
  body { padding: 1rem .9rem 2rem; }
  h1 { font-size: 1.5rem; }
  dl { grid-template-columns: minmax(0, 1fr); gap: 0; }
  dd { margin-bottom: .5rem; }
}
@page { size: A4; margin: 14mm 13mm; }
@media print {
  :root { color-scheme: light; }
  .first { grid-template-columns: minmax(0, 7fr) minmax(0, 5fr); gap: 1rem; }
  .card { break-inside: avoid; padding: .25rem 0; }
  .checks li { margin: .15rem 0; padding-left: 1.1rem; }
  .card .facts, .scope, .again { font-size: 8pt; }
  .first figcaption { font-size: 7.5pt; }
  details::details-content { content-visibility: visible; height: auto; }
  .copier, .readout { display: none; }
  body { max-width: none; padding: 0; font-size: 9.5pt; }
  h1 { font-size: 17pt; }
  .part { font-size: 13pt; margin-top: 1.2rem; }
  .subpart { font-size: 10.5pt; margin-top: .8rem; }
  .answer { font-size: 11pt; }
  h1, h2, h3, h4, summary, caption { break-after: avoid; }
  a { color: inherit; text-decoration: none; }
  .file, .checks a { display: none; }
  .scroll { overflow: visible; }
  tbody th:first-child, thead tr:first-child th:first-child { position: static; }
  caption span { position: static; width: auto; }
  table { font-size: 7.5pt; min-width: 0; }
  table.main { font-size: 6.6pt; width: 100%; }
  th, td { padding: .12rem .22rem; white-space: normal; }
  td small { font-size: 6pt; white-space: nowrap; }
  tr, table, figure, .writer, li, dl > * { break-inside: avoid; }
  thead { display: table-header-group; }
  .gallery { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1rem; }
  figure.wide { grid-column: 1 / -1; }
  .wide .picture { overflow: visible; }
  .narrow .picture svg { max-width: 2.9in; }
  .wide .picture svg { min-width: 0; }
  figcaption { font-size: 7.5pt; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 7.5pt; }
  tr.baseline td, tr.baseline th, pre { -webkit-print-color-adjust: exact; }
}
)css";

constexpr absl::string_view kDark =
    ":root { --paper: #16181b; --ink: #e6e6e6; --muted: #a8a8a8; --rule: #5c6066; --line: #3a3d41; "
    "--tint: #212428; --link: #8ab8f0; }\n";

std::string Hex(figure::Color color) { return absl::StrFormat("#%06X", color.rgb); }

std::string VerdictColors(figure::Color better, figure::Color worse) {
  return absl::StrCat(":root { --good: ", Hex(better), "; --bad: ", Hex(worse), "; }\n");
}

// Returns the colours of settings beside their names.
std::string Chips() {
  std::string css;
  for (size_t i = 0; i < figure::kHues; ++i) {
    absl::StrAppend(&css, ".c", i, " { fill: ", Hex(figure::StyleOf(i).line), "; }\n");
  }
  return css;
}

// Returns figures' colours on a dark page: rules override the attributes in the SVG.
std::string DarkFigures() {
  std::string css;
  for (size_t i = 0; i < figure::kHues; ++i) {
    for (const figure::DarkColor& color : figure::DarkPalette()) {
      if (color.light.rgb != figure::StyleOf(i).line.rgb) continue;
      absl::StrAppend(&css, ".c", i, " { fill: ", Hex(color.dark), "; }\n");
    }
  }
  for (const figure::DarkColor& color : figure::DarkPalette()) {
    for (const char* paint : {"fill", "stroke"}) {
      absl::StrAppend(&css, ".picture svg [", paint, "=\"", Hex(color.light), "\"] { ", paint, ": ",
                      Hex(color.dark), "; }\n");
    }
  }
  return css;
}

// Returns 'sha256-…' as policies write it.
std::string Hash(absl::string_view text) {
  return absl::StrCat("'sha256-", absl::Base64Escape(absl::HexStringToBytes(Sha256Hex(text))), "'");
}

}  // namespace

std::string PageStyle() {
  using figure::kBetterColor, figure::kWorseColor;
  return absl::StrCat(kStyle, VerdictColors(kBetterColor.light, kWorseColor.light), Chips(),
                      "@media screen and (prefers-color-scheme: dark) {\n", kDark,
                      VerdictColors(kBetterColor.dark, kWorseColor.dark), DarkFigures(), "}\n");
}

std::string PagePolicy(absl::string_view style, absl::string_view script) {
  return absl::StrCat("default-src 'none'; style-src ", Hash(style), "; script-src ", Hash(script),
                      "; base-uri 'none'; form-action 'none'");
}

}  // namespace ablate::html
