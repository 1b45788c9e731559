// What gnuplot's SVG needs before it can stand in a page.
#include "server/report/figure/svg.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "server/report/clean_text.h"

namespace ablate::figure {
namespace {

constexpr absl::string_view kFonts = "'Liberation Sans', Arial, Helvetica, sans-serif";

// The opening tag of the whole: our size, and a picture to screen readers.
std::string OpenSvg(absl::string_view tag, const Figure& figure) {
  const size_t box = tag.find("viewBox=");
  const absl::string_view rest = box == absl::string_view::npos ? ">" : tag.substr(box);
  return absl::StrFormat("<svg role=\"img\" width=\"%.6gin\" height=\"%.6gin\"\n %s", figure.width,
                         figure.height, std::string(rest));
}

std::string FinishTag(absl::string_view tag, const std::string& name) {
  return absl::StrReplaceAll(
      tag, {{"font-family=\"Arial\"", absl::StrCat("font-family=\"", kFonts, "\"")},
            {"font-family=\"Arial:Bold\"",
             absl::StrCat("font-family=\"", kFonts, "\" font-weight=\"bold\"")},
            {" id=\"", absl::StrCat(" id=\"", name, "-")},
            {" id='", absl::StrCat(" id='", name, "-")},
            {"href='#", absl::StrCat("href='#", name, "-")},
            {"url(#", absl::StrCat("url(#", name, "-")}});
}

}  // namespace

std::string FinishSvg(absl::string_view svg, const Figure& figure) {
  std::string out;
  bool titled = false;
  while (!svg.empty()) {
    const size_t open = std::min(svg.find('<'), svg.size());
    // gnuplot leaves > as it is, which is no XML behind ]].
    absl::StrAppend(&out, absl::StrReplaceAll(svg.substr(0, open), {{">", "&gt;"}}));
    svg.remove_prefix(open);
    // Texts are escaped, so that a < begins a tag, and no attribute holds a >.
    const size_t length = std::min(svg.find('>'), svg.size() - 1) + 1;
    if (svg.empty()) break;
    absl::string_view tag = svg.substr(0, length);
    svg.remove_prefix(length);
    const bool title = tag == "<title>";
    if (title || tag == "<desc>") {
      const absl::string_view close = title ? "</title>" : "</desc>";
      const size_t end = svg.find(close);
      if (end != absl::string_view::npos) svg.remove_prefix(end + close.size());
      if (title && !titled) {
        absl::StrAppend(&out, "<title>", report::EscapeMarkup(report::CleanText(figure.title)),
                        "</title>");
        titled = true;
      }
      continue;
    }
    out += absl::StartsWith(tag, "<svg") ? OpenSvg(tag, figure) : FinishTag(tag, figure.name);
  }
  return out;
}

std::string FinishPdf(std::string pdf) {
  constexpr char kKey[] = "/CreationDate (";
  constexpr absl::string_view kDate = "D:20000101000000Z00'00";
  for (size_t at = pdf.find(kKey); at != std::string::npos; at = pdf.find(kKey, at)) {
    at += sizeof(kKey) - 1;
    const size_t end = pdf.find(')', at);
    for (size_t i = at; i < std::min(end, pdf.size()); ++i) {
      pdf[i] = i - at < kDate.size() ? kDate[i - at] : ' ';
    }
  }
  return pdf;
}

}  // namespace ablate::figure
