#include "base/palette.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace ablate::palette {

uint32_t Mixed(uint32_t from, uint32_t to, double share) {
  uint32_t mixed = 0;
  for (const int shift : {0, 8, 16}) {
    const double a = (from >> shift) & 0xFF, b = (to >> shift) & 0xFF;
    mixed |= static_cast<uint32_t>(std::lround(a + share * (b - a))) << shift;
  }
  return mixed;
}

Paint LineOf(size_t hue) {
  constexpr uint32_t kWhite = 0xFFFFFF;
  constexpr double kLighter = .2;  // 3 to 1 on the dark paper
  if (hue == 0) return {kHues[0], kDarkInk};
  return {kHues[hue], Mixed(kHues[hue], kWhite, kLighter)};
}

std::string Hex(uint32_t color) { return absl::StrFormat("#%06X", color); }

std::string Variables(bool dark) {
  std::string css;
  const auto add = [&](const std::string& name, Paint paint) {
    absl::StrAppend(&css, "--", name, ": ", Hex(dark ? paint.dark : paint.light), "; ");
  };
  for (size_t i = 0; i < kHueCount; ++i) add(absl::StrCat("hue", i), LineOf(i));
  add("good", kBetter);
  add("bad", kWorse);
  return css;
}

}  // namespace ablate::palette
