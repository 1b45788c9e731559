// Small multiples: one panel per setting in rows and columns, in one block or several.
#ifndef ABLATE_SERVER_REPORT_FIGURE_SMALL_MULTIPLES_H_
#define ABLATE_SERVER_REPORT_FIGURE_SMALL_MULTIPLES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/report/figure/figure.h"

namespace ablate::figure {

// Builds one figure: Add each panel, then Finish. Not thread-safe.
class SmallMultiples {
 public:
  static constexpr double kPanelHeight = 0.62;  // inches

  // `left` is the room for the y axes' numbers and title; `labels` are the panels'; `titled`: there
  // are titles above the blocks.
  SmallMultiples(double width, double left, std::vector<std::string> labels, size_t blocks,
                 bool titled, std::vector<std::string> footnote);

  // Returns INVALID_ARGUMENT if the panels don't fit on a page.
  absl::Status Check() const;

  // Returns an empty panel at its position.
  Panel PanelAt(size_t block, size_t index) const;
  // Adds a panel below its label; only the left column and the lowest panels have numbers.
  void Add(Panel panel, size_t index, Color color);
  void TitleBlock(size_t block, const std::string& title, const std::string& remark);
  void TitleAxes(size_t block, const std::string& x, const std::string& y);
  Figure Finish();

 private:
  void SetHeight();
  // Moves a number that would reach into the next panel to the left, or blanks it without room.
  void MoveLastNumber(Panel* panel);
  double BlockBottom(size_t block) const;  // bottom of its lowest panels

  const double left_;
  const std::vector<std::string> labels_;
  const size_t blocks_;
  const double block_title_;
  const std::vector<std::string> footnote_;
  size_t columns_ = 1, rows_ = 1;
  double panel_width_ = 1, foot_ = 0;
  size_t lines_ = 1;  // of a label
  double pitch_ = 1;  // from a row of panels to the next, with their labels
  Figure figure_;
};

// Returns the meaning of the colours of small multiples; `baseline`: one is drawn in black.
std::string MultiplesText(bool baseline);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_SMALL_MULTIPLES_H_
