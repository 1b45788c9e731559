// Finds a figure's texts that leave it or touch.
#ifndef ABLATE_TESTS_REPORT_FIGURE_TEXT_BOXES_H_
#define ABLATE_TESTS_REPORT_FIGURE_TEXT_BOXES_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/report/figure/figure.h"
#include "server/report/figure/layout.h"

namespace ablate::figure {

// Returns texts that are outside the figure by more than a line's width.
inline std::vector<std::string> Outside(const Figure& figure) {
  std::vector<std::string> outside;
  for (const Text& text : figure.texts) {
    const double width = text.upright ? 0 : TextWidth(text.text, text.size, text.bold);
    const double left = text.align == Align::kLeft    ? text.x
                        : text.align == Align::kRight ? text.x - width
                                                      : text.x - width / 2;
    const bool inside = left >= -0.01 && left + width <= figure.width + 0.01 && text.y >= 0.02 &&
                        text.y <= figure.height - 0.02;
    if (!inside) outside.push_back(text.text);
  }
  return outside;
}

// Returns texts that overlap, with the numbers of y axes.
inline std::vector<std::string> Overlapping(const Figure& figure) {
  struct Box {
    double left, right, low, high;
    std::string text;
  };
  std::vector<Text> texts = figure.texts;
  for (const Panel& panel : figure.panels) {
    for (const Tick& tick : panel.y.ticks) {
      texts.push_back({panel.left - kYNumbers * kPoint,
                       YInches(panel, tick.at),
                       tick.label,
                       kLabelSize,
                       {},
                       Align::kRight});
    }
  }
  std::vector<Box> boxes;
  for (const Text& text : texts) {
    if (text.text.empty()) continue;
    const double length = TextWidth(text.text, text.size, text.bold), half = text.size / 72 * 0.35;
    if (text.upright) {
      const double descenders = text.size / 72 * 0.55;  // to the right of the middle
      boxes.push_back({text.x - half, text.x + descenders, text.y - length / 2, text.y + length / 2,
                       text.text});
      continue;
    }
    const double left = text.align == Align::kLeft    ? text.x
                        : text.align == Align::kRight ? text.x - length
                                                      : text.x - length / 2;
    boxes.push_back({left, left + length, text.y - half, text.y + half, text.text});
  }
  std::vector<std::string> found;
  for (size_t i = 0; i < boxes.size(); ++i) {
    for (size_t j = i + 1; j < boxes.size(); ++j) {
      const Box &a = boxes[i], &b = boxes[j];
      const bool apart =
          a.right <= b.left || b.right <= a.left || a.high <= b.low || b.high <= a.low;
      if (!apart) found.push_back(absl::StrCat(a.text, " / ", b.text));
    }
  }
  return found;
}

}  // namespace ablate::figure

#endif  // ABLATE_TESTS_REPORT_FIGURE_TEXT_BOXES_H_
