// Parts that live screens have in common: a bar, a sparkline, names of cells, and blocks of lines
// that are fitted to the height of a window. Texts must be fit for a terminal, as by Printable.
#ifndef ABLATE_CLIENT_OUTPUT_SCREEN_PARTS_H_
#define ABLATE_CLIENT_OUTPUT_SCREEN_PARTS_H_

#include <string>
#include <vector>

#include "ablate/v1/experiment.pb.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_ptr_field.h"

namespace ablate::client {

using Lanes = google::protobuf::RepeatedPtrField<v1::Lane>;

// Lines of which some may be left out if a window is too low.
struct ScreenBlock {
  std::vector<std::string> head;  // shown if the block is
  std::vector<std::string> rows;
  bool whole = false;  // show all rows or none
};

// Returns a bar of `width` columns, of which `fraction`, 0 to 1, is filled.
std::string Bar(double fraction, int width);

// Returns values as bars of eight heights between the smallest and the largest, in at most `width`
// columns. Each column is the mean of the finite values in it, a space if it has none.
std::string Sparkline(const std::vector<double>& values, int width);

// Returns `name`, or its start and its end, which has the seed, with an ellipsis between.
std::string ShortenMiddle(absl::string_view name, int width);

// Returns "1,234" or "3.2"; empty for 0.
std::string RateText(double per_second);

// Returns a table of lanes: cell, steps, speed, loss and its curve, no wider than `width`, 0 for
// any width. Windows below 60 columns have no curve.
ScreenBlock LaneBlock(const Lanes& lanes, int width);

// Returns the blocks with an empty line between them, in at most `height` lines, 0 for any number.
// Rows are left out of the block that shows most, and counted on its last line; then whole blocks,
// the last ones that aren't `whole` first.
std::vector<std::string> FitBlocks(std::vector<ScreenBlock> blocks, int height);

// Splits a rendered table into its titles and rows.
ScreenBlock TableBlock(const std::string& table);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_SCREEN_PARTS_H_
