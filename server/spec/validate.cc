// Checks name, question, report and limits.
#include "server/spec/validate.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/spec/labels.h"
#include "text/decimal.h"
#include "text/utf8.h"

namespace ablate::spec {
namespace {

constexpr size_t kLongestQuestion = 2000;
constexpr int kMostSummaries = 50;

// What training emits.
const std::vector<std::string>& Metrics() {
  static const auto* const kMetrics = new std::vector<std::string>{
      "train/loss", "train/gradient_norm", "eval/loss", "eval/accuracy"};
  return *kMetrics;
}

void CheckMetric(const std::string& field, const std::string& key, Problems* problems) {
  for (const std::string& metric : Metrics()) {
    if (key == metric) return;
  }
  const std::string complaint = key.empty()
                                    ? "there is no metric"
                                    : absl::StrCat(reflect::Quoted(key), " is no metric",
                                                   reflect::DidYouMean(key, Metrics(), " (", ")"));
  problems->Add(field, reflect::ShortText(key), complaint, absl::StrJoin(Metrics(), ", "));
}

void CheckQuestion(const std::string& question, Problems* problems) {
  if (question.size() > kLongestQuestion) {
    problems->Add("question", reflect::ShortText(question),
                  absl::StrCat("the text has ", text::Grouped(question.size()), " bytes"),
                  "at most 2,000 bytes");
  } else if (text::HasControlCharacter(question, "\n\t")) {
    problems->Add("question", reflect::ShortText(question),
                  absl::StrCat(reflect::Quoted(question), " has control characters"),
                  "text with line breaks and tabs");
  }
}

void CheckWindow(const v1::Window& window, const std::string& path, Problems* problems) {
  CheckMetric(absl::StrCat(path, ".key"), window.key(), problems);
  if (window.has_first() && window.has_last()) {
    problems->Add(path, "", "first and last are given together", "first, last or neither");
  }
  const auto at_least_one = [&](bool has, uint32_t value, const char* field) {
    if (has && value == 0) {
      problems->Add(absl::StrCat(path, ".", field), "0", "0 is out of range", "1 or more");
    }
  };
  at_least_one(window.has_first(), window.first(), "first");
  at_least_one(window.has_last(), window.last(), "last");
}

void CheckReport(const v1::ReportSpec& report, Problems* problems) {
  if (report.has_primary()) CheckMetric("report.primary", report.primary(), problems);
  if (report.has_smooth() && (report.smooth() < 1 || report.smooth() > 100'000)) {
    problems->Add("report.smooth", absl::StrCat(report.smooth()),
                  absl::StrCat(report.smooth(), " is out of range"), "1 to 100,000");
  }
  if (report.summaries_size() > kMostSummaries) {
    problems->Add("report.summaries", absl::StrCat(report.summaries_size()),
                  absl::StrCat("there are ", text::Grouped(report.summaries_size()), " windows"),
                  "at most 50");
    return;
  }
  for (int i = 0; i < report.summaries_size(); ++i) {
    CheckWindow(report.summaries(i), absl::StrCat("report.summaries[", i, "]"), problems);
  }
}

void CheckLimits(const v1::Limits& limits, Problems* problems) {
  if (limits.has_runs() && (limits.runs() < 1 || limits.runs() > 100'000)) {
    problems->Add("limits.runs", absl::StrCat(limits.runs()),
                  absl::StrCat(limits.runs(), " is out of range"), "1 to 100,000");
  }
  const auto& time = limits.device_time();
  const bool valid = time.seconds() >= 0 && time.seconds() <= 315'576'000'000 &&
                     time.nanos() >= 0 && time.nanos() < 1'000'000'000;
  if (!valid) {
    const std::string text = absl::StrCat(time.seconds(), "s");
    const std::string nanos =
        time.nanos() == 0 ? "" : absl::StrCat(" with ", time.nanos(), " nanoseconds");
    problems->Add("limits.device_time", text, absl::StrCat(text, nanos, " is out of range"),
                  "0s to 315576000000s");
  }
}

}  // namespace

void CheckExperiment(const v1::ExperimentSpec& spec, Problems* problems) {
  CheckName("name", spec.name(), problems);
  CheckQuestion(spec.question(), problems);
  CheckReport(spec.report(), problems);
  CheckLimits(spec.limits(), problems);
}

}  // namespace ablate::spec
