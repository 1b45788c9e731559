#include "client/output/progress.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "client/output/experiment_text.h"
#include "client/output/format.h"

namespace ablate::client {

Progress::Progress(ProgressOptions options) : options_(std::move(options)), line_(options_.line) {}

void Progress::Update(const v1::ExperimentEvent& event, uint64_t on_lanes) {
  counts_ = event.counts();
  on_lanes_ = on_lanes;
  const std::string analyses = event.has_analyses() ? AnalysesText(event.analyses()) : "";
  const bool stall_changed = std::exchange(stalled_, event.stalled()) != event.stalled();
  const bool went_on = std::exchange(analyses_, analyses) != analyses && line_.Due();
  if (stall_changed || went_on) line_.Draw(Text());
  if (event.cell().empty()) return;
  for (const std::string& key : {options_.primary, std::string("train/loss")}) {
    const auto value = event.last().find(key);
    if (value == event.last().end()) continue;
    latest_metric_ = absl::StrCat(key, " ", Short(value->second), " of ", event.cell());
    break;
  }
  Advance(event);
  if (line_.Due()) line_.Draw(Text());
}

void Progress::Advance(const v1::ExperimentEvent& event) {
  const WorkDone::Change change = work_.Update(event, options_.line.now());
  if (change.is_new) return line_.Begin(work_.Fraction());
  if (event.state() == v1::RunState::FAILED && !change.had_ended) {
    line_.Tell(absl::StrCat(event.cell(), "  FAILED"));
  }
  line_.Advance(work_.Fraction(), Text());
}

std::string Progress::Text() const { return absl::StrCat(options_.name, "  ", Line()); }

void Progress::Finish() {
  if (!work_.empty()) line_.Finish(Text());
}

std::string Progress::Line() const {
  const uint64_t ended = EndedRuns(counts_), all = AllRuns(counts_);
  std::string line = absl::StrCat(ended, "/", all, " ended");
  const uint64_t running = std::min<uint64_t>(counts_.running(), on_lanes_);
  const std::pair<uint64_t, const char*> parts[] = {{running, "running"},
                                                    {counts_.diverged(), "diverged"},
                                                    {counts_.failed(), "failed"},
                                                    {counts_.cancelled(), "cancelled"}};
  for (const auto& [count, word] : parts) {
    if (count > 0) absl::StrAppend(&line, ", ", count, " ", word);
  }
  // Before that they only wait for the runs.
  if (!analyses_.empty() && ended == all) absl::StrAppend(&line, "   ", analyses_);
  if (!stalled_.empty()) absl::StrAppend(&line, "   STALLED: ", stalled_);
  const bool over = all > 0 && ended == all;  // runs that were cancelled leave steps unmade
  const absl::Duration left = work_.TimeLeft();
  if (!over && left > absl::ZeroDuration() && left < absl::InfiniteDuration() && stalled_.empty()) {
    absl::StrAppend(&line, "   ", text::Grouped(static_cast<uint64_t>(work_.StepsPerSecond())),
                    " steps/s   ETA ", Duration(left));
  }
  if (!latest_metric_.empty()) absl::StrAppend(&line, "   ", latest_metric_);
  return line;
}

}  // namespace ablate::client
