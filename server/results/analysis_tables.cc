#include "server/results/analysis_tables.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "ablate/v1/analysis.pb.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "google/protobuf/message.h"
#include "server/experiment/analysis.h"
#include "server/experiment/analysis_numbers.h"
#include "server/experiment/experiment_analyses.h"
#include "server/lookup/errors.h"
#include "server/report/compare/paired.h"
#include "server/report/table/cells.h"
#include "server/results/analyzed.h"

namespace ablate::results {
namespace {

constexpr size_t kMaxColumns = 8;  // more would be unreadable; metrics and figures have the others

// Returns a text by which numbers sort in order of depth: block.2 before block.10, and the
// embedding first.
std::string DepthKey(const std::string& number) {
  constexpr size_t kDigits = 10;
  std::string key;
  for (size_t i = 0; i < number.size();) {
    size_t end = i;
    while (end < number.size() && absl::ascii_isdigit(static_cast<unsigned char>(number[end]))) {
      ++end;
    }
    if (end == i) {
      key.push_back(number[i++]);
      continue;
    }
    const bool decimals = i > 1 && number[i - 1] == '.' &&
                          absl::ascii_isdigit(static_cast<unsigned char>(number[i - 2]));
    if (!decimals && end - i < kDigits) key.append(kDigits - (end - i), '0');
    key.append(number, i, end - i);
    i = end;
  }
  return absl::StrReplaceAll(key, {{"embedding", " "}});
}

// Returns `count` of the numbers, at equal distances, with the first and the last one.
std::vector<std::string> Spread(const std::vector<std::string>& numbers, size_t count) {
  if (count >= numbers.size()) return numbers;
  std::vector<std::string> spread;
  for (size_t i = 0; i < count; ++i) {
    spread.push_back(
        numbers[count == 1 ? numbers.size() - 1
                           : (i * (numbers.size() - 1) + (count - 1) / 2) / (count - 1)]);
  }
  return spread;
}

// Returns the numbers that get a column, in the order of the kind's headline forms. If they are too
// many, forms with the most of them have fewer.
std::vector<std::string> ColumnsOf(const v1::AnalysisKind& kind,
                                   const std::vector<std::string>& numbers) {
  std::vector<std::vector<std::string>> families;
  for (const std::string& form : spec::HeadlineForms(kind)) {
    std::vector<std::string>& family = families.emplace_back();
    std::copy_if(numbers.begin(), numbers.end(), std::back_inserter(family),
                 [&form](const std::string& number) { return spec::HasNumberForm(number, form); });
    std::sort(family.begin(), family.end(),
              [](const std::string& a, const std::string& b) { return DepthKey(a) < DepthKey(b); });
  }
  std::vector<size_t> shares;
  for (const auto& family : families) shares.push_back(family.size());
  while (std::accumulate(shares.begin(), shares.end(), size_t{0}) > kMaxColumns) {
    --*std::max_element(shares.begin(), shares.end());
  }
  std::vector<std::string> columns;
  for (size_t i = 0; i < families.size(); ++i) {
    for (std::string& number : Spread(families[i], shares[i])) columns.push_back(std::move(number));
  }
  return columns;
}

bool IsOf(const std::vector<std::string>& forms, const std::string& number) {
  return std::any_of(forms.begin(), forms.end(), [&number](const std::string& form) {
    return spec::HasNumberForm(number, form);
  });
}

// Returns the label's numbers that some run has, without the label.
std::vector<std::string> NumbersOf(const analysis::AnalysisMetrics& metrics,
                                   const std::string& label) {
  std::vector<std::string> numbers;
  for (const auto& [key, points] : metrics.Keys()) {
    absl::string_view number = key;
    if (absl::ConsumePrefix(&number, absl::StrCat(label, "/"))) numbers.emplace_back(number);
  }
  return numbers;
}

std::vector<std::string> RunsOfRow(const ComparedGrid& compared, size_t row) {
  std::vector<std::string> runs;
  for (const ChosenRun& run : Converged(compared.chosen[row])) {
    runs.push_back(compared.grid.cells[run.cell].run);
  }
  return runs;
}

// Returns the steps at which one of the runs has a number.
std::set<uint32_t> StepsOf(const analysis::AnalysisMetrics& metrics,
                           const std::vector<std::string>& runs, const std::string& label,
                           const std::vector<std::string>& numbers) {
  std::set<uint32_t> steps;
  for (const std::string& run : runs) {
    for (const std::string& number : numbers) {
      const analysis::Points* const points = metrics.Find(run, absl::StrCat(label, "/", number));
      if (points != nullptr) steps.insert(points->steps.begin(), points->steps.end());
    }
  }
  return steps;
}

// Returns a row's entry in the column of the compared number.
report::HeadlineNumbers::Entry EntryOf(const report::Comparison& number, size_t row,
                                       size_t converged) {
  const report::ComparisonRow& of = number.rows[row];
  report::HeadlineNumbers::Entry entry;
  entry.scale = number.scale;
  entry.unit = number.unit;
  entry.own = of.own;
  entry.runs = of.n - of.diverged;
  entry.left_out = converged - std::min(converged, entry.runs);
  if (!of.compared()) return entry;
  entry.difference =
      of.in_family() ? of.difference : report::NoPairs(report::Undefined::kScoredDifferently);
  entry.ended = of.withheld != report::Withheld::kUnfinished;
  const report::Summary& baseline = number.rows[*of.baseline].own;
  entry.baseline = report::MeanCell(baseline.mean, baseline.interval, -1, number.scale);
  return entry;
}

// The steps of a table's lines.
struct LineSteps {
  std::vector<std::set<uint32_t>> of_rows;
  std::set<uint32_t> all;
  // Runs have different lengths: then only their ends are compared.
  bool ends = false;
};

LineSteps StepsOfRows(const ComparedGrid& compared, const report::HeadlineNumbers& table) {
  LineSteps steps;
  std::set<uint32_t> last;
  for (size_t row = 0; row < compared.comparison.rows.size(); ++row) {
    std::set<uint32_t>& own = steps.of_rows.emplace_back(
        StepsOf(compared.grid.metrics, RunsOfRow(compared, row), table.label, table.numbers));
    steps.all.insert(own.begin(), own.end());
    if (!own.empty()) last.insert(*own.rbegin());
  }
  steps.ends = last.size() > 1 && !SharedValue(compared.grid, "training.steps").has_value();
  if (!steps.ends) return steps;
  for (std::set<uint32_t>& own : steps.of_rows) {
    if (!own.empty()) own = {*own.rbegin()};
  }
  return steps;
}

// Adds the lines of all rows, each with its steps in order.
absl::Status AddLines(storage::Store* store, const ComparedGrid& compared,
                      const v1::AnalysisKind& kind, const lookup::Cancelled& cancelled,
                      report::HeadlineNumbers* table) {
  const LineSteps steps = StepsOfRows(compared, *table);
  std::map<std::pair<size_t, uint32_t>, report::HeadlineNumbers::Line> lines;  // by row and step
  for (size_t row = 0; row < steps.of_rows.size(); ++row) {
    const report::ComparisonRow& of = compared.comparison.rows[row];
    for (const uint32_t step : steps.of_rows[row]) {
      lines[{row, step}] = {of.label, of.is_baseline, of.compared(), step, {}};
    }
  }
  std::vector<std::optional<uint32_t>> read;
  if (steps.ends) {
    read.emplace_back();
  } else {
    read.assign(steps.all.begin(), steps.all.end());
  }
  for (const std::string& number : table->numbers) {
    const bool by_sequence = spec::IsStoredBySequence(kind, number);
    for (const std::optional<uint32_t>& step : read) {
      if (cancelled()) return lookup::CallCancelled();
      ASSIGN_OR_RETURN(const auto result,
                       CompareNumber(store, compared.grid, absl::StrCat(table->label, "/", number),
                                     step, by_sequence, cancelled));
      for (auto& [place, line] : lines) {
        const auto& [row, at] = place;
        if (step.has_value() && at != *step) continue;
        line.entries.push_back(EntryOf(result, row, Converged(compared.chosen[row]).size()));
      }
    }
  }
  for (auto& [place, line] : lines) table->lines.push_back(std::move(line));
  return absl::OkStatus();
}

// Returns the options that differ from the defaults: "direction unit", "sites embedding,
// block.0.output".
std::vector<std::string> ChosenOptions(const v1::AnalysisKind& written) {
  const auto resolved = [](v1::AnalysisKind kind) {
    spec::Problems problems;
    spec::ResolveAnalysis(&kind, "", &problems);  // it was checked on submission
    return OptionsOf(kind);
  };
  const auto options = resolved(written);
  std::vector<std::string> chosen;
  for (const auto& [name, values] : OptionsOf(written)) {
    v1::AnalysisKind without = written;
    google::protobuf::Message* const message =
        without.GetReflection()->MutableMessage(&without, spec::KindField(without));
    message->GetReflection()->ClearField(message, message->GetDescriptor()->FindFieldByName(name));
    const auto defaults = resolved(without);
    const auto standard = defaults.find(name);
    if (standard != defaults.end() && standard->second == options.at(name)) continue;
    chosen.push_back(absl::StrCat(name, " ", absl::StrJoin(values, ", ")));
  }
  return chosen;
}

// Returns "Input: at most 20,000 held-out tokens. Options: site embedding; seed 3." For attention
// without maps also explains how to get some.
std::string HowText(const spec::AskedAnalysis& entry) {
  v1::AnalysisInputs inputs = entry.inputs;
  spec::Problems problems;
  spec::ResolveInputs(entry.analysis, &inputs, &problems);  // it was checked, too
  std::vector<std::string> sentences;
  if (inputs.has_tokens() || inputs.has_documents() || !inputs.prompt().empty()) {
    sentences.push_back(absl::StrCat("Input: ", InputsText(inputs), "."));
  }
  std::vector<std::string> chosen = ChosenOptions(entry.analysis);
  if (entry.seed != 0) chosen.push_back(absl::StrCat("seed ", entry.seed));
  if (!chosen.empty()) {
    sentences.push_back(absl::StrCat("Options: ", absl::StrJoin(chosen, "; "), "."));
  }
  if (entry.analysis.has_attention() && entry.analysis.attention().maps().empty()) {
    sentences.push_back(
        absl::StrCat("Maps are drawn on request: ablate analyze attention EXP/CELL ", kMapOptions,
                     " --label ", entry.label, "-maps."));
  }
  return absl::StrJoin(sentences, " ");
}

// Returns "too few tokens", for example; empty for a number with a value.
std::string ReasonText(const v1::AnalysisNumber& number) {
  if (number.has_value()) return "";
  const std::string reason = v1::UndefinedNumber::Value_Name(number.undefined());
  return absl::StrReplaceAll(absl::AsciiStrToLower(reason), {{"_", " "}});
}

// Adds the numbers of an analysis that doesn't belong to one run.
void AddOwnNumbers(const v1::Analysis& result, report::HeadlineNumbers* table) {
  const std::map<std::string, v1::AnalysisNumber> sorted(result.numbers().begin(),
                                                         result.numbers().end());
  for (const auto& [name, number] : sorted) {
    table->own.push_back({name,
                          number.has_value() ? std::optional<double>(number.value()) : std::nullopt,
                          ReasonText(number)});
  }
}

// Adds what is known of one analysis that was requested.
absl::Status AddAnalysis(storage::Store* store, const storage::AskedAnalysis& one,
                         const v1::AnalysisKind& kind, report::HeadlineNumbers* table) {
  ++table->asked;
  if (one.state == storage::AnalysisState::kFailed && table->failure.empty()) {
    ASSIGN_OR_RETURN(const auto record, store->GetAnalysis(one.id));
    table->failure = record.failure;
  }
  if (one.state != storage::AnalysisState::kDone) return absl::OkStatus();
  ++table->done;
  ASSIGN_OR_RETURN(const auto record, store->GetAnalysis(one.id));
  table->device_seconds += static_cast<double>(record.device_time) / 1e6;
  ASSIGN_OR_RETURN(const auto result, analysis::ReadAnalysis(one.id, record.result));
  if (spec::TakesNoSubject(kind)) {
    AddOwnNumbers(result, table);
    return absl::OkStatus();
  }
  const std::vector<std::string> headline = spec::HeadlineForms(kind);
  for (const auto& [name, number] : result.numbers()) {
    if (!number.has_value() && IsOf(headline, name)) ++table->undefined[ReasonText(number)][name];
  }
  return absl::OkStatus();
}

// Returns why an experiment has requested no analysis of an entry; "" if it is unknown.
std::string WhyNotAsked(const storage::ExperimentRecord& experiment) {
  if (!experiment.analyses.failure.empty()) return experiment.analyses.failure;
  if (experiment.state == storage::ExperimentState::kCancelled) {
    return "the experiment was cancelled";
  }
  return experiment.analyses.planned ? "" : "the runs haven't all ended";
}

}  // namespace

absl::StatusOr<std::vector<report::HeadlineNumbers>> AnalysisTables(
    storage::Store* store, const ComparedGrid& compared, const lookup::Cancelled& cancelled) {
  std::vector<report::HeadlineNumbers> tables;
  const std::vector<spec::AskedAnalysis> entries = spec::AskedAnalyses(compared.grid.spec);
  if (entries.empty()) return tables;
  ASSIGN_OR_RETURN(const auto asked, store->AskedAnalyses(compared.grid.record.id));
  for (const spec::AskedAnalysis& entry : entries) {
    report::HeadlineNumbers& table = tables.emplace_back();
    table.label = entry.label;
    table.kind = spec::KindName(entry.analysis);
    table.how = HowText(entry);
    for (const storage::AskedAnalysis& one : asked) {
      if (one.label != entry.label) continue;
      if (cancelled()) return lookup::CallCancelled();
      RETURN_IF_ERROR(AddAnalysis(store, one, entry.analysis, &table));
    }
    if (table.asked == 0) table.failure = WhyNotAsked(compared.grid.record);
    if (spec::TakesNoSubject(entry.analysis)) continue;
    const std::vector<std::string> numbers = NumbersOf(compared.grid.metrics, entry.label);
    table.numbers = ColumnsOf(entry.analysis, numbers);
    table.left_out = numbers.size() - table.numbers.size();
    RETURN_IF_ERROR(AddLines(store, compared, entry.analysis, cancelled, &table));
    report::SetConstantsApart(&table);
  }
  report::TestTogether(PrimaryMetric(compared.grid.spec), &tables);
  return tables;
}

}  // namespace ablate::results
