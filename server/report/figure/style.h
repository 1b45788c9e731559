// Which colour, dash and marker a setting has: the same in every figure. Pure functions.
#ifndef ABLATE_SERVER_REPORT_FIGURE_STYLE_H_
#define ABLATE_SERVER_REPORT_FIGURE_STYLE_H_

#include <cstddef>
#include <vector>

#include "server/report/compare/comparison.h"
#include "server/report/figure/figure.h"

namespace ablate::figure {

inline constexpr Color kInk{0x222222}, kSecondary{0x6E6E6E}, kAxisInk{0x4D4D4D}, kGridInk{0xDEDEDE};
// In small multiples: the panel's own setting, its text, and the other settings.
inline constexpr Color kOwn{0xD55E00}, kOwnText{0xC25600}, kOthers{0xC4C4C4};
inline constexpr Color kWhite{0xFFFFFF};
inline constexpr Color kInvisible{0xFFFFFF, 255};

inline constexpr size_t kMaxInOnePanel = 6;  // settings; more become small multiples

inline constexpr size_t kHues = 7;

struct Style {
  Color line;
  Color text;  // the line's hue at a contrast of 4.5:1 on white
  Dash dash;
  Marker marker = Marker::kCircle;
};

// 0 is the baseline's, and the first kHues have a hue, a dash and a marker each: in grey two hues
// look alike, and dashes and labels carry identity. Behind them are kPlainStyle and those of
// crossed axes. The remainder by kHues is the hue.
Style StyleOf(size_t index);

// Ink: of settings that are more than there are hues, which no colour can tell apart.
inline constexpr size_t kPlainStyle = kHues;

// Of crossed axes: hue and marker go by the setting of the one, the dash by that of the other, each
// below kHues. 0 is the baseline's, as everywhere.
size_t CrossedStyle(size_t hue, size_t dash);
bool IsCrossedStyle(size_t index);

// The dash of the leader to a setting's label: its line's where that tells it from others of its
// hue, else none.
Dash LeaderDash(size_t index);

// The colour made lighter, opaque: what seeds are drawn with.
Color Tint(Color color);

// The colour of a band, and of seeds' lines.
Color BandOf(Color color);
Color SeedLineOf(Color color);

// Every colour that figures draw with, maps aside, and what stands for it on a dark page. Those
// that are transparent need nothing of their own.
struct DarkColor {
  Color light, dark;
};
std::vector<DarkColor> DarkPalette();

// The colour of a map at a share of its scale, 0 to 1: viridis, which in grey goes from dark to
// light. Invisible for NaN.
Color MapColor(double share);

// Of each of so many settings: the index of its style, that of `baseline` being 0, if it is one of
// them; kPlainStyle where there are more of them than hues.
std::vector<size_t> StyleIndices(size_t settings, size_t baseline);

// The same of each of the comparison's rows, by its first baseline; of crossed axes the hue goes by
// the first one and the dash by the others.
std::vector<size_t> StyleIndices(const report::Comparison& comparison);

// Whether it has more rows than there are hues.
bool HasManySettings(const report::Comparison& comparison);

// Whether the setting of index 0 is what all others are compared with, and can be called so.
bool HasOneBaseline(const report::Comparison& comparison);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_STYLE_H_
