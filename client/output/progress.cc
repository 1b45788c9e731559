#include "client/output/progress.h"

#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "client/output/experiment_text.h"
#include "client/output/format.h"

namespace ablate::client {

Progress::Progress(ProgressOptions options) : options_(std::move(options)), line_(options_.line) {}

void Progress::Update(const v1::ExperimentEvent& event) {
  const bool is_first = !event_.has_snapshot();
  const auto& failed = event_.snapshot().failed();
  const std::set<std::string> known(failed.begin(), failed.end());
  const bool stall_changed = event.stalled() != event_.stalled();
  event_ = event;
  if (is_first) {
    line_.Begin(event.snapshot().fraction());
  } else {
    for (const std::string& cell : event.snapshot().failed()) {
      if (known.count(cell) == 0) line_.Tell(absl::StrCat(cell, "  FAILED"));
    }
    line_.Advance(event.snapshot().fraction(), Text());
  }
  if (stall_changed || line_.Due()) line_.Draw(Text());
}

std::string Progress::Text() const { return absl::StrCat(options_.name, "  ", Line()); }

void Progress::Finish() {
  if (event_.has_snapshot()) line_.Finish(Text());
}

std::string Progress::Line() const {
  const v1::RunCounts& counts = event_.counts();
  const uint64_t ended = EndedRuns(counts), all = AllRuns(counts);
  std::string line = absl::StrCat(ended, "/", all, " ended");
  const std::pair<uint64_t, const char*> parts[] = {{counts.running(), "running"},
                                                    {counts.diverged(), "diverged"},
                                                    {counts.failed(), "failed"},
                                                    {counts.cancelled(), "cancelled"}};
  for (const auto& [count, word] : parts) {
    if (count > 0) absl::StrAppend(&line, ", ", count, " ", word);
  }
  // Before that they only wait for the runs.
  if (event_.has_analyses() && ended == all) {
    absl::StrAppend(&line, "   ", AnalysesText(event_.analyses()));
  }
  const std::string& stalled = event_.stalled();
  if (!stalled.empty()) absl::StrAppend(&line, "   STALLED: ", stalled);
  const bool over = all > 0 && ended == all;  // runs that were cancelled leave steps unmade
  const v1::Snapshot& snapshot = event_.snapshot();
  const absl::Duration left = ToDuration(snapshot.time_left());  // 0: unknown
  if (!over && left > absl::ZeroDuration() && stalled.empty()) {
    absl::StrAppend(&line, "   ", text::Grouped(static_cast<uint64_t>(snapshot.steps_per_second())),
                    " steps/s   ETA ", Duration(left));
  }
  if (snapshot.has_newest()) {
    const v1::CellValue& newest = snapshot.newest();
    absl::StrAppend(&line, "   ", newest.key(), " ", Short(newest.value()), " of ", newest.cell());
  }
  return line;
}

}  // namespace ablate::client
