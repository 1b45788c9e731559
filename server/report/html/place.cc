// What all sections share: their headings, ids and boxes that scroll.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/report/html/sections.h"

namespace ablate::html {
namespace {

// An element per level: elements' names are literals. Its look goes by `kind`, for levels differ
// between pages of one and of several experiments.
void Heading(int level, Literal kind, absl::string_view text, Markup* out) {
  constexpr Literal kHeadings[] = {"h1", "h2", "h3", "h4"};
  out->Element(kHeadings[std::clamp(level, 1, 4) - 1], {{"class", kind.text()}}, text);
}

}  // namespace

void OpenSection(const Place& place, Literal name, absl::string_view title, Markup* out) {
  out->Open("section", {{"id", absl::StrCat(place.prefix, name.text())}, {"class", name.text()}});
  Heading(place.level, "part", title, out);
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

}  // namespace ablate::html
