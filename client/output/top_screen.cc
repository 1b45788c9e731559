#include "client/output/top_screen.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/decimal.h"
#include "client/output/format.h"
#include "client/output/table.h"
#include "client/output/terminal_text.h"
#include "client/output/wrap.h"

namespace ablate::client {
namespace {

std::string PartOf(uint64_t part, uint64_t all) {
  return absl::StrCat(text::Grouped(part), "/", text::Grouped(all));
}

// Such as "2 of 2 lanes training, 178 runs queued, 3 experiments active".
ScreenBlock TopHeading(const TopView& view, int width, absl::Time now) {
  uint64_t training = 0;
  uint64_t lanes = 0;
  uint64_t queued = 0;
  for (const WorkerRow& worker : view.workers) {
    training += worker.training;
    lanes += worker.lanes;
  }
  for (const ActiveExperiment& experiment : view.experiments) queued += experiment.queued;
  std::string text = absl::StrCat(text::Grouped(training), " of ", Count(lanes, "lane"),
                                  " training, ", Count(queued, "run"), " queued, ",
                                  Count(view.experiments.size(), "experiment"), " active");
  if (view.queued_analyses > 0) {
    absl::StrAppend(&text, ", ", text::Grouped(view.queued_analyses),
                    view.queued_analyses == 1 ? " analysis" : " analyses", " queued");
  }
  if (!view.stalled.empty()) absl::StrAppend(&text, "\nSTALLED: ", Printable(view.stalled));
  if (view.lost.has_value()) {
    absl::StrAppend(&text, "\nconnection lost ", Duration(now - *view.lost), " ago; trying again");
  }
  ScreenBlock block;
  block.whole = true;
  if (width > 0) text = Wrap(text, width);
  block.rows = absl::StrSplit(text, '\n', absl::SkipEmpty());
  return block;
}

ScreenBlock WorkerBlock(const TopView& view, int width) {
  if (view.workers.empty()) return {};
  Table table({{"worker"}, {"state"}, {"lanes", true}, {"device"}});
  for (const WorkerRow& row : view.workers) {
    table.Add(
        {row.worker, row.state, row.lanes == 0 ? "" : PartOf(row.training, row.lanes), row.device});
  }
  return TableBlock(table.Render(width));
}

ScreenBlock ExperimentBlock(const TopView& view, int width) {
  if (view.experiments.empty()) return {};
  Table table({{.title = "experiment"},
               {.title = "owner", .optional = true},
               {.title = "ended", .right = true},
               {.title = "training", .right = true},
               {.title = "queued", .right = true},
               {.title = "analyses left", .right = true, .optional = true},
               {.title = "failed", .right = true, .optional = true}});
  for (const ActiveExperiment& row : view.experiments) {
    table.Add({row.experiment, row.owner, PartOf(row.ended, row.all), text::Grouped(row.training),
               text::Grouped(row.queued), row.analyses == 0 ? "" : text::Grouped(row.analyses),
               row.failed == 0 ? "" : text::Grouped(row.failed)});
  }
  return TableBlock(table.Render(width));
}

ScreenBlock TopFooter(bool live) {
  ScreenBlock block;
  block.whole = true;
  if (live) block.rows.emplace_back("q leaves");
  return block;
}

}  // namespace

std::vector<std::string> TopScreen(const TopView& view, int width, int height, absl::Time now) {
  return FitBlocks(
      {TopHeading(view, width, now), WorkerBlock(view, width), ExperimentBlock(view, width),
       LaneBlock(view.lanes, width), TopFooter(view.live)},
      height);
}

}  // namespace ablate::client
