#include "client/output/progress.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "client/output/experiment_text.h"
#include "client/output/format.h"

namespace ablate::client {
namespace {

constexpr absl::Duration kRateWindow = absl::Seconds(20);
constexpr absl::Duration kMinRateTime = absl::Seconds(1);
constexpr double kMostOfARun = 0.999;  // of a run that has made its steps and has not ended

}  // namespace

Progress::Progress(ProgressOptions options) : options_(std::move(options)), line_(options_.line) {}

void Progress::Count(const v1::ExperimentEvent& event) {
  const auto [found, is_new] = runs_.try_emplace(event.run());
  RunProgress& run = found->second;
  const auto left = [](const RunProgress& r) -> int64_t {
    return r.ended || r.step > r.steps ? 0 : r.steps - r.step;
  };
  const RunProgress before = run;
  run = {event.step(), event.steps(), HasEnded(event.state())};
  remaining_ += left(run) - (is_new ? 0 : left(before));
  if (!is_new) made_ += int64_t{run.step} - int64_t{before.step};
  const absl::Time now = options_.line.now();
  samples_.emplace_back(now, made_);
  // One sample older than the window stays, so that the window is never shorter than the known
  // time.
  while (samples_.size() > 2 && now - samples_[1].first >= kRateWindow) samples_.pop_front();
}

void Progress::Update(const v1::ExperimentEvent& event) {
  counts_ = event.counts();
  const std::string analyses = event.has_analyses() ? AnalysesText(event.analyses()) : "";
  const bool stall_changed = std::exchange(stalled_, event.stalled()) != event.stalled();
  const bool went_on = std::exchange(analyses_, analyses) != analyses && line_.Due();
  if (stall_changed || went_on) line_.Draw(Text());
  if (event.cell().empty()) return;
  Count(event);
  for (const std::string& key : {options_.primary, std::string("train/loss")}) {
    const auto value = event.last().find(key);
    if (value == event.last().end()) continue;
    latest_metric_ = absl::StrCat(key, " ", Short(value->second));
    break;
  }
  Advance(event);
  if (line_.Due()) line_.Draw(Text());
}

void Progress::Advance(const v1::ExperimentEvent& event) {
  double now = 0;
  if (HasEnded(event.state())) {
    now = 1;
  } else if (event.steps() > 0) {
    now = std::min(kMostOfARun, static_cast<double>(event.step()) / event.steps());
  }
  const auto [cell, is_new] = cells_.try_emplace(event.cell(), 0);
  const double before = std::exchange(cell->second, now);
  done_ += now - before;
  const auto all = static_cast<double>(std::max<uint64_t>(AllRuns(counts_), cells_.size()));
  if (is_new) return line_.Begin(done_ / all);
  if (event.state() == v1::RunState::FAILED && before < 1) {
    line_.Tell(absl::StrCat(event.cell(), "  FAILED"));
  }
  line_.Advance(done_ / all, Text());
}

std::string Progress::Text() const { return absl::StrCat(options_.name, "  ", Line()); }

void Progress::Finish() {
  if (!cells_.empty()) line_.Finish(Text());
}

double Progress::Rate() const {
  if (samples_.empty()) return 0;
  const absl::Duration time = samples_.back().first - samples_.front().first;
  const int64_t steps = samples_.back().second - samples_.front().second;
  if (time < kMinRateTime || steps <= 0) return 0;
  return static_cast<double>(steps) / absl::ToDoubleSeconds(time);
}

std::string Progress::Line() const {
  const uint64_t ended = EndedRuns(counts_), all = AllRuns(counts_);
  std::string line = absl::StrCat(ended, "/", all, " ended");
  const std::pair<uint32_t, const char*> parts[] = {{counts_.running(), "training"},
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
  const double rate = over ? 0 : Rate();
  if (rate > 0 && remaining_ > 0 && stalled_.empty()) {
    absl::StrAppend(&line, "   ", text::Grouped(static_cast<uint64_t>(rate)), " steps/s   ETA ",
                    Duration(absl::Seconds(static_cast<double>(remaining_) / rate)));
  }
  if (!latest_metric_.empty()) absl::StrAppend(&line, "   ", latest_metric_);
  return line;
}

}  // namespace ablate::client
