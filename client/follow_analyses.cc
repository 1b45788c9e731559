#include "client/follow_analyses.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>

#include "absl/strings/str_cat.h"
#include "client/follow.h"
#include "client/output/format.h"
#include "client/output/status_line.h"

namespace ablate::client {
namespace {

using OnChange = std::function<void(const v1::Analysis&)>;

// Watches an analysis until it has ended.
absl::Status Follow(Connection* connection, const Context& context, const std::string& name,
                    const OnChange& on_change) {
  v1::WatchAnalysisRequest request;
  request.set_name(name);
  return KeepWatching(context, [&](const std::function<void()>& alive) {
    bool ended = false;
    absl::Status watched =
        connection->Stream(kWatchAnalysis, request, [&](const v1::Analysis& analysis) {
          alive();
          ended = HasEnded(analysis);
          on_change(analysis);
          return absl::OkStatus();
        });
    if (!watched.ok() || ended) return watched;
    return absl::UnavailableError("the server ended the watch early");
  });
}

std::ptrdiff_t CountEnded(const std::vector<LabelledAnalysis>& analyses) {
  return std::count_if(analyses.begin(), analyses.end(),
                       [](const auto& one) { return HasEnded(one.analysis); });
}

double EndedFraction(const std::vector<LabelledAnalysis>& analyses) {
  return static_cast<double>(CountEnded(analyses)) / static_cast<double>(analyses.size());
}

// Estimates the time left of an analysis from its progress since it was first seen to run.
class TimeLeft {
 public:
  // Returns text such as "  ETA 1 min 20 s"; empty while nothing is known.
  std::string Text(const v1::Analysis& analysis, absl::Time now) {
    if (analysis.state() != v1::AnalysisState::RUNNING) return "";
    if (!began_) {
      began_ = now;
      first_ = analysis.progress();
    }
    const double made = analysis.progress() - first_;
    if (made <= 0 || now <= *began_) return "";
    return absl::StrCat("  ETA ", Duration((now - *began_) * ((1 - analysis.progress()) / made)));
  }

 private:
  std::optional<absl::Time> began_;
  double first_ = 0;
};

// Such as "spectrum  3/12 ended   pre-s1  RUNNING 43 %".
std::string LineOf(const std::string& kind, const std::vector<LabelledAnalysis>& analyses,
                   const LabelledAnalysis& current) {
  std::string line = kind;
  if (analyses.size() > 1) {
    absl::StrAppend(&line, "  ", CountEnded(analyses), "/", analyses.size(), " ended ");
  }
  return absl::StrCat(line, "  ", current.label, current.label.empty() ? "" : "  ",
                      v1::AnalysisState::Value_Name(current.analysis.state()), " ",
                      ProgressText(current.analysis));
}

}  // namespace

bool HasEnded(const v1::Analysis& analysis) {
  const v1::AnalysisState::Value state = analysis.state();
  return state == v1::AnalysisState::DONE || state == v1::AnalysisState::FAILED ||
         state == v1::AnalysisState::CANCELLED;
}

absl::Status FollowAnalyses(Connection* connection, const Context& context, const std::string& kind,
                            std::vector<LabelledAnalysis>* analyses) {
  const Console& console = context.console;
  StatusLine line({console.err_is_live(), console.width, console.err, context.now});
  std::string last;
  absl::Status watched;
  for (LabelledAnalysis& one : *analyses) {
    if (HasEnded(one.analysis)) continue;
    TimeLeft left;
    watched = Follow(connection, context, one.analysis.name(), [&](const v1::Analysis& analysis) {
      one.analysis = analysis;
      last = LineOf(kind, *analyses, one) + left.Text(analysis, context.now());
      if (HasEnded(analysis)) line.Advance(EndedFraction(*analyses), last);
      if (!HasEnded(analysis) && line.Due()) line.Draw(last);
    });
    if (!watched.ok()) break;
  }
  if (console.err_is_live() && !last.empty()) line.Finish(last);
  return watched;
}

int ExitCodeOf(const std::vector<LabelledAnalysis>& analyses) {
  int code = kSuccess;
  for (const LabelledAnalysis& one : analyses) {
    if (one.analysis.state() == v1::AnalysisState::FAILED) return kFailure;
    if (one.analysis.state() == v1::AnalysisState::CANCELLED) code = kCancelled;
  }
  return code;
}

}  // namespace ablate::client
