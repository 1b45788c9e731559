#include "client/output/screen_parts.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/decimal.h"
#include "base/utf8.h"
#include "client/output/format.h"
#include "client/output/table.h"
#include "client/output/terminal_text.h"

namespace ablate::client {
namespace {

constexpr const char* kLevels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
constexpr int kMinWidthOfCurve = 60;
constexpr int kMinWidthOfRate = 50;
constexpr int kMaxCurve = 40;
constexpr int kMinCurve = 8;
constexpr int kShareOfCell = 44;  // and of numbers; the curve has half of the rest
constexpr int kEndOfName = 8;
constexpr int kMinWithEnd = 13;

size_t Height(const ScreenBlock& block, size_t shown) { return block.head.size() + shown; }

std::vector<std::string> LinesOf(const std::vector<ScreenBlock>& blocks,
                                 const std::vector<size_t>& shown) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const ScreenBlock& block = blocks[i];
    if (!lines.empty()) lines.emplace_back();
    lines.insert(lines.end(), block.head.begin(), block.head.end());
    const bool all = shown[i] == block.rows.size();
    const size_t rows = all ? shown[i] : shown[i] - 1;
    lines.insert(lines.end(), block.rows.begin(), block.rows.begin() + rows);
    if (!all) lines.push_back(absl::StrCat("… ", text::Grouped(block.rows.size() - rows), " more"));
  }
  return lines;
}

// Takes a row from the block that shows most; returns false if each has only one and the number of
// others.
bool LeaveOutRow(const std::vector<ScreenBlock>& blocks, std::vector<size_t>* shown) {
  size_t* most = nullptr;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].whole || (*shown)[i] <= 2) continue;
    if (most == nullptr || (*shown)[i] > *most) most = &(*shown)[i];
  }
  if (most != nullptr) --*most;
  return most != nullptr;
}

// Removes the last block that may be cut, or else the last one, and shows all of the others again.
void LeaveOutBlock(std::vector<ScreenBlock>* blocks, std::vector<size_t>* shown) {
  size_t last = blocks->size() - 1;
  for (size_t i = 0; i < blocks->size(); ++i) {
    if (!(*blocks)[i].whole) last = i;
  }
  blocks->erase(blocks->begin() + static_cast<std::ptrdiff_t>(last));
  shown->clear();
  for (const ScreenBlock& block : *blocks) shown->push_back(block.rows.size());
}

}  // namespace

std::string Bar(double fraction, int width) {
  const int eighths = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * 8 * width);
  std::string bar;
  for (int i = 0; i < eighths / 8; ++i) bar += "█";
  bar += kEighths[eighths % 8];
  for (int i = (eighths + 7) / 8; i < width; ++i) bar += "░";
  return bar;
}

std::string Sparkline(const std::vector<double>& values, int width) {
  if (values.empty() || width <= 0) return "";
  const size_t columns = std::min(values.size(), static_cast<size_t>(width));
  std::vector<double> means(columns, std::numeric_limits<double>::quiet_NaN());
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  for (size_t i = 0; i < columns; ++i) {
    double sum = 0;
    int n = 0;
    for (size_t j = i * values.size() / columns; j < (i + 1) * values.size() / columns; ++j) {
      if (!std::isfinite(values[j])) continue;
      sum += values[j];
      ++n;
    }
    if (n == 0) continue;
    means[i] = sum / n;
    least = std::min(least, means[i]);
    most = std::max(most, means[i]);
  }
  std::string line;
  for (const double mean : means) {
    if (!std::isfinite(mean)) {
      line += ' ';
      continue;
    }
    const double height = most > least ? (mean - least) / (most - least) : 0;
    line += kLevels[std::min(7, static_cast<int>(height * 8))];
  }
  return line;
}

std::string ShortenMiddle(absl::string_view name, int width) {
  if (DisplayWidth(name) <= width || width < kMinWithEnd) return Truncate(name, width);
  absl::string_view end = name;
  while (DisplayWidth(end) > kEndOfName) end.remove_prefix(text::FirstCharacter(end).bytes);
  return absl::StrCat(Truncate(name, width - DisplayWidth(end)), end);
}

std::string RateText(double per_second) {
  if (per_second <= 0) return "";
  if (per_second < 9.95) return absl::StrCat(std::round(per_second * 10) / 10);
  return text::Grouped(static_cast<uint64_t>(std::llround(per_second)));
}

ScreenBlock TableBlock(const std::string& table) {
  ScreenBlock block;
  block.rows = absl::StrSplit(table, '\n', absl::SkipEmpty());
  if (block.rows.empty()) return block;
  block.head.push_back(std::move(block.rows.front()));
  block.rows.erase(block.rows.begin());
  return block;
}

ScreenBlock LaneBlock(const Lanes& lanes, int width) {
  if (lanes.empty()) return {};
  const bool has_rate = width == 0 || width >= kMinWidthOfRate;
  const bool has_curve = width == 0 || width >= kMinWidthOfCurve;
  std::vector<Column> columns = {{"training"}, {"step", true}};
  if (has_rate) columns.push_back({"steps/s", true});
  columns.push_back({"loss", true});
  if (has_curve) columns.push_back({""});
  const int curve =
      width == 0 ? kMaxCurve : std::clamp((width - kShareOfCell) / 2, kMinCurve, kMaxCurve);
  std::vector<std::vector<std::string>> rows;
  std::vector<int> widths = {0, 4, 7, 4, 0};  // of the titles
  for (const v1::Lane& lane : lanes) {
    const std::vector<double> losses(lane.training().losses().begin(),
                                     lane.training().losses().end());
    std::vector<std::string>& row = rows.emplace_back();
    row = {lane.cell(), StepText(lane.step(), lane.steps())};
    if (has_rate) row.push_back(RateText(lane.training().steps_per_second()));
    row.push_back(losses.empty() ? "" : ShortAligned(losses.back()));
    if (has_curve) row.push_back(Sparkline(losses, curve));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  int rest = width;  // for the cell
  for (size_t i = 1; i < columns.size(); ++i) rest -= 2 + widths[i];
  Table table(columns);
  for (std::vector<std::string>& row : rows) {
    if (width > 0) row[0] = ShortenMiddle(row[0], std::max(rest, 8));
    table.Add(std::move(row));
  }
  return TableBlock(table.Render(0));
}

std::vector<std::string> FitBlocks(std::vector<ScreenBlock> blocks, int height) {
  std::vector<size_t> shown;
  for (auto block = blocks.begin(); block != blocks.end();) {
    if (block->head.empty() && block->rows.empty()) {
      block = blocks.erase(block);
      continue;
    }
    shown.push_back(block->rows.size());
    ++block;
  }
  if (height <= 0) return LinesOf(blocks, shown);
  const auto too_high = [&] {
    size_t lines = blocks.size() - 1;
    for (size_t i = 0; i < blocks.size(); ++i) lines += Height(blocks[i], shown[i]);
    return lines > static_cast<size_t>(height);
  };
  while (too_high()) {
    if (LeaveOutRow(blocks, &shown)) continue;
    if (blocks.size() <= 1) break;
    LeaveOutBlock(&blocks, &shown);
  }
  std::vector<std::string> lines = LinesOf(blocks, shown);
  if (lines.size() > static_cast<size_t>(height)) lines.resize(static_cast<size_t>(height));
  return lines;
}

}  // namespace ablate::client
