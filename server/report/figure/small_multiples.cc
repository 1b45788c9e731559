#include "server/report/figure/small_multiples.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/report/figure/layout.h"
#include "server/report/figure/style.h"

namespace ablate::figure {
namespace {

constexpr double kPitch = 0.84, kGap = 0.1;
constexpr double kMaxHeight = 9;  // of a page
constexpr double kRight = 0.1;
constexpr double kNumbersRoom =
    0.45;  // below a block's lowest panels: numbers and the axis's title

size_t MaxColumns(double width) { return width >= 5 ? 6 : 3; }

size_t RowsOf(double width, size_t panels) {
  const size_t most = MaxColumns(width);
  return (panels + most - 1) / most;
}

double TitleHeight(bool titled) { return titled ? kTitleLine : 0; }

double FootHeight(size_t lines) { return kFootnoteLine * static_cast<double>(lines) + kEdge / 2; }

}  // namespace

absl::Status SmallMultiples::Check(double width, size_t panels, size_t blocks, bool titled,
                                   size_t footnote) {
  const double rows = static_cast<double>(RowsOf(width, panels));
  const double beside = kNumbersRoom + TitleHeight(titled);  // of a block's rows
  const double block = (kMaxHeight - FootHeight(footnote)) / static_cast<double>(blocks);
  if (rows * kPitch + beside <= block) return absl::OkStatus();
  const auto most = static_cast<size_t>((block - beside) / kPitch) * MaxColumns(width);
  return absl::InvalidArgumentError(
      absl::StrCat("kind: ", panels, " settings don't fit into this figure; expected at most ",
                   most, " at this width"));
}

SmallMultiples::SmallMultiples(double width, double left, size_t panels, size_t blocks, bool titled,
                               std::vector<std::string> footnote)
    : left_(left),
      panels_(panels),
      blocks_(blocks),
      block_title_(TitleHeight(titled)),
      footnote_(std::move(footnote)) {
  rows_ = RowsOf(width, panels);
  columns_ = (panels + rows_ - 1) / rows_;
  panel_width_ = (width - left_ - kRight - kGap * static_cast<double>(columns_ - 1)) /
                 static_cast<double>(columns_);
  foot_ = FootHeight(footnote_.size());
  figure_.width = width;
  figure_.height = foot_ + (kPitch * static_cast<double>(rows_) + kNumbersRoom + block_title_) *
                               static_cast<double>(blocks_);
}

double SmallMultiples::BlockBottom(size_t block) const {
  return foot_ + kNumbersRoom +
         (kPitch * static_cast<double>(rows_) + kNumbersRoom + block_title_) *
             static_cast<double>(blocks_ - 1 - block);
}

Panel SmallMultiples::PanelAt(size_t block, size_t index) const {
  const size_t row = index / columns_, column = index % columns_;
  Panel panel;
  panel.left = left_ + (panel_width_ + kGap) * static_cast<double>(column);
  panel.right = panel.left + panel_width_;
  panel.bottom = BlockBottom(block) + kPitch * static_cast<double>(rows_ - 1 - row);
  panel.top = panel.bottom + kPanelHeight;
  return panel;
}

void SmallMultiples::Add(Panel panel, size_t index, const std::string& label, Color color) {
  const bool lowest = index + columns_ >= panels_;
  const auto blank = [](Axis* axis) {
    for (Tick& tick : axis->ticks) tick.label.clear();
  };
  if (!lowest) blank(&panel.x);
  // Blanks a number that would reach into the next panel.
  for (Tick& tick : panel.x.ticks) {
    const double end = XInches(panel, tick.at) + TextWidth(tick.label, kLabelSize) / 2;
    if (end > panel.right + kGap / 2) tick.label.clear();
  }
  if (index % columns_ != 0) blank(&panel.y);
  figure_.texts.push_back({panel.left, panel.top + 0.075,
                           ElideMiddle(label, panel_width_, kLabelSize), kLabelSize, color});
  figure_.panels.push_back(std::move(panel));
}

void SmallMultiples::TitleBlock(size_t block, const std::string& title, const std::string& remark) {
  if (block_title_ == 0) return;
  const double top = BlockBottom(block) + kPitch * static_cast<double>(rows_) - 0.04;
  AddPanelTitle(kEdge, figure_.width - kEdge, top, title, remark, &figure_);
}

void SmallMultiples::TitleAxes(size_t block, const std::string& x, const std::string& y) {
  const double bottom = BlockBottom(block);
  const double top = bottom + kPitch * static_cast<double>(rows_ - 1) + kPanelHeight;
  AddXTitle(left_, figure_.width - kRight, bottom - 0.32, x, &figure_);
  AddYTitle(bottom, top, y, &figure_);
}

Figure SmallMultiples::Finish() {
  AddFootnote(footnote_, &figure_);
  return std::move(figure_);
}

std::string MultiplesText(bool baseline) {
  return absl::StrCat(baseline ? "black: baseline; " : "", "grey: the other settings; ");
}

}  // namespace ablate::figure
