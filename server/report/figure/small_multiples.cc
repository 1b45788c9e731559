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
constexpr double kLine = kLineHeight * kLabelSize * kPoint;  // of a panel's label
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

SmallMultiples::SmallMultiples(double width, double left, std::vector<std::string> labels,
                               size_t blocks, bool titled, std::vector<std::string> footnote)
    : left_(left),
      labels_(std::move(labels)),
      blocks_(blocks),
      block_title_(TitleHeight(titled)),
      footnote_(std::move(footnote)) {
  rows_ = RowsOf(width, labels_.size());
  columns_ = (labels_.size() + rows_ - 1) / rows_;
  panel_width_ = (width - left_ - kRight - kGap * static_cast<double>(columns_ - 1)) /
                 static_cast<double>(columns_);
  foot_ = FootHeight(footnote_.size());
  figure_.width = width;
  for (const std::string& label : labels_) {
    lines_ = std::max(lines_, NameLines(label, panel_width_, kLabelSize).size());
  }
  SetHeight();
  if (figure_.height > kMaxHeight) lines_ = 1;  // cuts names rather than fail
  SetHeight();
}

void SmallMultiples::SetHeight() {
  pitch_ = kPitch + kLine * static_cast<double>(lines_ - 1);
  figure_.height = foot_ + (pitch_ * static_cast<double>(rows_) + kNumbersRoom + block_title_) *
                               static_cast<double>(blocks_);
}

absl::Status SmallMultiples::Check() const {
  if (figure_.height <= kMaxHeight) return absl::OkStatus();
  const double beside = kNumbersRoom + block_title_;  // of a block's rows
  const double block = (kMaxHeight - foot_) / static_cast<double>(blocks_);
  const auto most = static_cast<size_t>((block - beside) / pitch_) * MaxColumns(figure_.width);
  return absl::InvalidArgumentError(absl::StrCat(
      "kind: ", labels_.size(), " settings don't fit into this figure; expected at most ", most,
      " at this width"));
}

double SmallMultiples::BlockBottom(size_t block) const {
  return foot_ + kNumbersRoom +
         (pitch_ * static_cast<double>(rows_) + kNumbersRoom + block_title_) *
             static_cast<double>(blocks_ - 1 - block);
}

void SmallMultiples::MoveLastNumber(Panel* panel) {
  double end = panel->left - kGap;  // of the number before
  for (Tick& tick : panel->x.ticks) {
    const double half = TextWidth(tick.label, kLabelSize) / 2, at = XInches(*panel, tick.at);
    if (at + half <= panel->right + kGap / 2) {
      end = at + half;
      continue;
    }
    if (panel->right - 2 * half > end + kGap / 2) {
      figure_.texts.push_back({panel->right, panel->bottom - kXNumbers * kPoint, tick.label,
                               kLabelSize, kInk, Align::kRight});
    }
    tick.label.clear();
  }
}

Panel SmallMultiples::PanelAt(size_t block, size_t index) const {
  const size_t row = index / columns_, column = index % columns_;
  Panel panel;
  panel.left = left_ + (panel_width_ + kGap) * static_cast<double>(column);
  panel.right = panel.left + panel_width_;
  panel.bottom = BlockBottom(block) + pitch_ * static_cast<double>(rows_ - 1 - row);
  panel.top = panel.bottom + kPanelHeight;
  return panel;
}

void SmallMultiples::Add(Panel panel, size_t index, Color color) {
  const bool lowest = index + columns_ >= labels_.size();
  const auto blank = [](Axis* axis) {
    for (Tick& tick : axis->ticks) tick.label.clear();
  };
  if (!lowest) blank(&panel.x);
  if (lowest) MoveLastNumber(&panel);
  if (index % columns_ != 0) blank(&panel.y);
  const auto lines = NameLines(labels_[index], panel_width_, kLabelSize, lines_);
  double y = panel.top + 0.075 + kLine * static_cast<double>(lines.size() - 1);
  for (const std::string& line : lines) {
    figure_.texts.push_back({panel.left, y, line, kLabelSize, color});
    y -= kLine;
  }
  figure_.panels.push_back(std::move(panel));
}

void SmallMultiples::TitleBlock(size_t block, const std::string& title, const std::string& remark) {
  if (block_title_ == 0) return;
  const double top = BlockBottom(block) + pitch_ * static_cast<double>(rows_) - 0.04;
  AddPanelTitle(kEdge, figure_.width - kEdge, top, title, remark, &figure_);
}

void SmallMultiples::TitleAxes(size_t block, const std::string& x, const std::string& y) {
  const double bottom = BlockBottom(block);
  const double top = bottom + pitch_ * static_cast<double>(rows_ - 1) + kPanelHeight;
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
