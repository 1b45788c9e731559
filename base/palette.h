// The colours of settings and verdicts, which figures, reports and the live page share; as CSS.
#ifndef ABLATE_BASE_PALETTE_H_
#define ABLATE_BASE_PALETTE_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

namespace ablate::palette {

// A colour on a light page and on a dark one, as 0xRRGGBB.
struct Paint {
  uint32_t light = 0, dark = 0;
};

// Lines of settings: two hues look alike in grey, so dashes, markers and labels distinguish them,
// too. The first is the baseline's.
inline constexpr uint32_t kHues[] = {0x222222, 0x0072B2, 0xD55E00, 0x009E73,
                                     0xCC79A7, 0xE69F00, 0x56B4E9};
inline constexpr size_t kHueCount = std::size(kHues);
inline constexpr uint32_t kDarkPaper = 0x16181B, kDarkInk = 0xE6E6E6;

// Colours of verdicts, as text. No setting has one like them, in light or dark, also for readers
// with red-green blindness.
inline constexpr Paint kBetter{0x3F32B8, 0xA594FF}, kWorse{0x7A3814, 0xE8E07A};

// Mixes two colours, with `share` of the second.
uint32_t Mixed(uint32_t from, uint32_t to, double share);

// Returns a hue's line on both pages; `hue` is below kHueCount.
Paint LineOf(size_t hue);

// Returns #RRGGBB.
std::string Hex(uint32_t color);

// Returns declarations of the variables --hue0 … and --good, --bad, for `:root`.
std::string Variables(bool dark);

}  // namespace ablate::palette

#endif  // ABLATE_BASE_PALETTE_H_
