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

  // Returns INVALID_ARGUMENT if so many panels don't fit on a page, with titles above the blocks
  // and so many lines of footnote.
  static absl::Status Check(double width, size_t panels, size_t blocks, bool titled,
                            size_t footnote);

  // `left` is the room for the y axes' numbers and title.
  SmallMultiples(double width, double left, size_t panels, size_t blocks, bool titled,
                 std::vector<std::string> footnote);

  // Returns an empty panel at its position.
  Panel PanelAt(size_t block, size_t index) const;
  // Adds a panel below its label; only the left column and the lowest panels have numbers.
  void Add(Panel panel, size_t index, const std::string& label, Color color);
  void TitleBlock(size_t block, const std::string& title, const std::string& remark);
  void TitleAxes(size_t block, const std::string& x, const std::string& y);
  Figure Finish();

 private:
  double BlockBottom(size_t block) const;  // bottom of its lowest panels

  const double left_;
  const size_t panels_, blocks_;
  const double block_title_;
  const std::vector<std::string> footnote_;
  size_t columns_ = 1, rows_ = 1;
  double panel_width_ = 1, foot_ = 0;
  Figure figure_;
};

// Returns the meaning of the colours of small multiples; `baseline`: one is drawn in black.
std::string MultiplesText(bool baseline);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_SMALL_MULTIPLES_H_
