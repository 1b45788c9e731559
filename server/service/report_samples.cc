// The samples of a report: what the models of each setting write.
#include "server/service/report_samples.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/service/samples.h"
#include "server/spec/engine_config.h"
#include "text/decimal.h"

namespace ablate::service {
namespace {

constexpr size_t kMostSettings = 12;  // that are asked; the rest of a large grid is left out

std::string HowText(const engine::SampleOptions& options, size_t left_out) {
  std::string text = absl::StrCat(
      "Written from the last checkpoint of one run a setting, that of its lowest seed that "
      "converged, at temperature ",
      text::ShortestDecimal(options.temperature));
  if (options.top_k > 0) absl::StrAppend(&text, ", from the ", options.top_k, " likeliest tokens");
  if (options.top_p < 1) {
    absl::StrAppend(&text, ", from the likeliest tokens that have probability ",
                    text::ShortestDecimal(options.top_p), " together");
  }
  absl::StrAppend(&text, ". The draws are those of seed ", options.seed,
                  ", the same for every setting.");
  if (left_out > 0) {
    absl::StrAppend(&text, " The first ", kMostSettings, " settings are shown; ", left_out,
                    " are left out.");
  }
  return text;
}

// The cell of a row's first run that converged.
std::optional<size_t> CellToAsk(const ComparedGrid& compared, size_t row) {
  const std::vector<report::SeedRun>& runs = compared.comparison.rows[row].runs;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].diverged) return compared.rows[row][i];
  }
  return std::nullopt;
}

// Fills in what the run writes.
absl::Status Ask(const Backend& backend, const std::string& run,
                 const engine::SampleOptions& options, const Cancelled& cancelled,
                 html::Samples::Setting* setting) {
  auto set = MakeSamples(backend, {run, std::nullopt, options}, cancelled);
  if (!set.ok()) return set.status();
  for (engine::Sample& sample : set->samples) setting->texts.push_back(std::move(sample.text));
  if (setting->texts.empty()) return absl::OkStatus();
  const auto count = static_cast<double>(setting->texts.size());
  setting->distinct = set->counts.distinct / count;
  setting->in_training = set->counts.in_training_data / count;
  return absl::OkStatus();
}

// Whether the next setting would wait as long, for the same: no worker, a slow or a busy one.
bool AsksInVain(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsResourceExhausted(status);
}

}  // namespace

std::optional<html::Samples> ReportSamples(const Backend& backend, const ComparedGrid& compared,
                                           const Cancelled& cancelled) {
  const auto& analyses = compared.grid.spec.analyses();
  const auto wanted =
      std::find_if(analyses.begin(), analyses.end(),
                   [](const v1::AnalysisSpec& analysis) { return analysis.has_samples(); });
  if (wanted == analyses.end()) return std::nullopt;
  const engine::SampleOptions options = spec::ToSampleOptions(wanted->samples());
  const size_t rows = compared.comparison.rows.size();
  const size_t shown = std::min(rows, kMostSettings);
  html::Samples samples;
  samples.how = HowText(options, rows - shown);
  absl::Status last;
  for (size_t row = 0; row < shown && !cancelled(); ++row) {
    html::Samples::Setting setting;
    setting.label = compared.comparison.rows[row].label;
    const auto cell = CellToAsk(compared, row);
    if (!cell.has_value()) {
      setting.missing = "No run of this setting has converged.";
    } else {
      if (!AsksInVain(last)) {
        last = Ask(backend, compared.grid.cells[*cell].run, options, cancelled, &setting);
      }
      if (!last.ok()) setting.missing = absl::StrCat("No samples: ", last.message(), ".");
    }
    samples.settings.push_back(std::move(setting));
  }
  return samples;
}

}  // namespace ablate::service
