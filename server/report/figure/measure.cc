// How wide texts are, and texts cut to fit.
#include "server/report/figure/measure.h"

#include <array>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "server/report/clean_text.h"

namespace ablate::figure {
namespace {

// Thousandths of the size, of U+0020 to U+007E.
constexpr std::array<uint16_t, 95> kWidths = {
    278,  278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,  //
    556,  556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,  //
    1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,  //
    667,  778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,  //
    333,  556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,  //
    556,  556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584};

constexpr double kBold = 1.07;  // on average

double CharacterWidth(char32_t code) {
  if (code >= 0x20 && code < 0x20 + kWidths.size()) return kWidths[code - 0x20];
  if (code == U'…' || code == 0xFFFD || code >= 0x1100) return 1000;  // wide scripts, and arrows
  if (code == U'−' || code == U'±' || code == U'×') return 584;
  return code < 0x0250 ? 556 : 722;
}

// The first or last `count` characters.
std::string Part(const std::vector<std::string>& characters, size_t first, size_t count) {
  return absl::StrJoin(absl::MakeConstSpan(characters).subspan(first, count), "");
}

}  // namespace

double TextWidth(absl::string_view text, double size, bool bold) {
  double width = 0;
  while (!text.empty()) width += CharacterWidth(report::TakeCharacter(&text));
  return width / 1000 * size * kPoint * (bold ? kBold : 1);
}

std::string ElideMiddle(absl::string_view text, double most, double size, bool bold) {
  const std::string clean = report::CleanText(text);
  if (TextWidth(clean, size, bold) <= most) return clean;
  std::vector<std::string> characters;
  for (absl::string_view rest = clean; !rest.empty();) {
    const absl::string_view before = rest;
    report::TakeCharacter(&rest);
    characters.emplace_back(before.substr(0, before.size() - rest.size()));
  }
  for (size_t kept = characters.size() - 1; kept > 1; --kept) {
    const size_t front = (kept + 1) / 2, back = kept - front;
    std::string elided = absl::StrCat(Part(characters, 0, front), "…",
                                      Part(characters, characters.size() - back, back));
    if (TextWidth(elided, size, bold) <= most) return elided;
  }
  return "…";
}

std::vector<std::string> Wrap(absl::string_view text, double most, double size, size_t lines) {
  std::vector<std::string> wrapped;
  std::string line;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const std::string longer = line.empty() ? std::string(word) : absl::StrCat(line, " ", word);
    const bool fits = line.empty() || TextWidth(longer, size) <= most;
    if (fits || wrapped.size() + 1 == lines) {
      line = longer;
    } else {
      wrapped.push_back(line);
      line = std::string(word);
    }
  }
  if (!line.empty()) wrapped.push_back(line);
  for (std::string& one : wrapped) one = ElideMiddle(one, most, size);
  return wrapped;
}

}  // namespace ablate::figure
