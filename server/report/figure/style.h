// Colours, dashes and markers of settings: the same in every figure. Pure functions.
#ifndef ABLATE_SERVER_REPORT_FIGURE_STYLE_H_
#define ABLATE_SERVER_REPORT_FIGURE_STYLE_H_

#include <cstddef>
#include <vector>

#include "base/palette.h"
#include "server/report/compare/comparison.h"
#include "server/report/figure/figure.h"

namespace ablate::figure {

inline constexpr Color kInk{0x222222}, kSecondary{0x6E6E6E}, kAxisInk{0x4D4D4D}, kGridInk{0xDEDEDE};
// In small multiples: the panel's own setting, its text, and the other settings.
inline constexpr Color kOwn{0xD55E00}, kOwnText{0xC25600}, kOthers{0xC4C4C4};
inline constexpr Color kWhite{0xFFFFFF};
inline constexpr Color kInvisible{0xFFFFFF, 255};

inline constexpr size_t kMaxInOnePanel = 6;  // settings; more become small multiples

inline constexpr size_t kHues = palette::kHueCount;

struct Style {
  Color line;
  Color text;  // the line's hue at a contrast of 4.5:1 on white
  Dash dash;
  Marker marker = Marker::kCircle;
};

// Returns a setting's style. 0 is the baseline's, and the first kHues have a hue, a dash and a
// marker each: two hues look alike in grey, so dashes and labels distinguish them. After these come
// kPlainStyle and the styles of crossed axes. The remainder by kHues is the hue.
Style StyleOf(size_t index);

// Ink, for more settings than there are hues, which colour can't distinguish.
inline constexpr size_t kPlainStyle = kHues;

// Returns the style for crossed axes: hue and marker by the setting of one axis, the dash by that
// of the other, each below kHues. 0 is the baseline's, as everywhere.
size_t CrossedStyle(size_t hue, size_t dash);
bool IsCrossedStyle(size_t index);

// Returns the dash of the leader to a setting's label: its line's if that distinguishes it from
// others of its hue, otherwise none.
Dash LeaderDash(size_t index);

// Returns a lighter, opaque colour, for seeds.
Color Tint(Color color);

// Returns the colour of a band, and of seeds' lines.
Color BandOf(Color color);
Color SeedLineOf(Color color);

// Maps each colour of figures, except maps, to its colour on a dark page. Transparent ones need
// none.
struct DarkColor {
  Color light, dark;
};
std::vector<DarkColor> DarkPalette();

// Colours of verdicts, as text. No setting has one like them, in light or dark, also for readers
// with red-green blindness.
inline constexpr DarkColor kBetterColor{{palette::kBetter.light}, {palette::kBetter.dark}},
    kWorseColor{{palette::kWorse.light}, {palette::kWorse.dark}};

// Returns the colour of a map at a fraction of its scale, 0 to 1: viridis, which goes from dark to
// light in grey. Invisible for NaN.
Color MapColor(double share);

// Returns the colour of a diverging map: from blue over almost white at 0.5 to red. Invisible for
// NaN.
Color DivergingColor(double share);

// Returns the style index of each setting: 0 for `baseline`, if it is one of them; kPlainStyle if
// there are more settings than hues.
std::vector<size_t> StyleIndices(size_t settings, size_t baseline);

// Returns the same for each of the comparison's rows, by its first baseline; for crossed axes the
// hue is by the first one and the dash by the others.
std::vector<size_t> StyleIndices(const report::Comparison& comparison);

// Returns true if it has more rows than there are hues.
bool HasManySettings(const report::Comparison& comparison);

// Returns true if all other settings are compared with the setting of index 0, so that it can be
// called the baseline.
bool HasOneBaseline(const report::Comparison& comparison);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_STYLE_H_
