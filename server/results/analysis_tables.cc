#include "server/results/analysis_tables.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "ablate/v1/analysis.pb.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "google/protobuf/message.h"
#include "server/report/compare/statistics.h"
#include "server/results/analysed.h"
#include "server/spec/analysis.h"
#include "server/spec/experiment_analyses.h"

namespace ablate::results {
namespace {

// More columns would be unreadable; metrics and figures have the others.
constexpr size_t kMaxColumns = 8;

// Returns true if a number is about the whole model; those of blocks, sites and tensors are a path.
bool IsOfWholeModel(absl::string_view number) {
  absl::ConsumeSuffix(&number, "/all");
  return !absl::StrContains(number, '/');
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

// Adds one line for each step of a row of the comparison.
void AddLines(const ComparedGrid& compared, size_t row, const std::string& label,
              html::AnalysisTable* table) {
  const analysis::AnalysisMetrics& metrics = compared.grid.metrics;
  const std::vector<std::string> runs = RunsOfRow(compared, row);
  for (const uint32_t step : StepsOf(metrics, runs, label, table->numbers)) {
    html::AnalysisTable::Line& line = table->lines.emplace_back();
    line.setting = compared.comparison.rows[row].label;
    line.step = step;
    for (const std::string& number : table->numbers) {
      std::vector<double> values;
      for (const std::string& run : runs) {
        const analysis::Points* const points = metrics.Find(run, absl::StrCat(label, "/", number));
        const auto value = points == nullptr ? std::nullopt : analysis::ValueAt(*points, step);
        if (value.has_value()) values.push_back(*value);
      }
      line.entries.push_back({report::Summarize(values), runs.size() - values.size()});
    }
  }
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

// Returns the numbers that get a column: the first of those of the whole model, or of all if there
// are none.
std::vector<std::string> ColumnsOf(std::vector<std::string> numbers) {
  const auto places = std::stable_partition(numbers.begin(), numbers.end(), IsOfWholeModel);
  if (places != numbers.begin()) numbers.erase(places, numbers.end());
  if (numbers.size() > kMaxColumns) numbers.resize(kMaxColumns);
  return numbers;
}

// Returns "too few tokens", for example; empty for a number with a value.
std::string ReasonText(const v1::AnalysisNumber& number) {
  if (number.has_value()) return "";
  const std::string reason = v1::UndefinedNumber::Value_Name(number.undefined());
  return absl::StrReplaceAll(absl::AsciiStrToLower(reason), {{"_", " "}});
}

// Adds the numbers of an analysis that doesn't belong to one run.
void AddOwnNumbers(const v1::Analysis& result, html::AnalysisTable* table) {
  const std::map<std::string, v1::AnalysisNumber> sorted(result.numbers().begin(),
                                                         result.numbers().end());
  for (const auto& [name, number] : sorted) {
    table->own.push_back({name,
                          number.has_value() ? std::optional<double>(number.value()) : std::nullopt,
                          ReasonText(number)});
  }
}

// Adds how many were computed, and why the others were not.
absl::Status AddStates(storage::Store* store, const std::vector<storage::AskedAnalysis>& asked,
                       html::AnalysisTable* table) {
  for (const storage::AskedAnalysis& one : asked) {
    if (one.label != table->label) continue;
    ++table->asked;
    if (one.state == storage::AnalysisState::kDone) ++table->done;
    if (one.state == storage::AnalysisState::kFailed && table->failure.empty()) {
      const auto record = store->GetAnalysis(one.id);
      if (!record.ok()) return record.status();
      table->failure = record->failure;
    }
  }
  return absl::OkStatus();
}

absl::Status ReadOwn(storage::Store* store, const std::vector<storage::AskedAnalysis>& asked,
                     html::AnalysisTable* table) {
  for (const storage::AskedAnalysis& one : asked) {
    if (one.label != table->label || one.state != storage::AnalysisState::kDone) continue;
    const auto record = store->GetAnalysis(one.id);
    if (!record.ok()) return record.status();
    const auto result = analysis::ReadAnalysis(one.id, record->result);
    if (!result.ok()) return result.status();
    AddOwnNumbers(*result, table);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<html::AnalysisTable>> AnalysisTables(storage::Store* store,
                                                                const ComparedGrid& compared) {
  std::vector<html::AnalysisTable> tables;
  const std::vector<spec::AskedAnalysis> entries = spec::AskedAnalyses(compared.grid.spec);
  if (entries.empty()) return tables;
  const auto asked = store->AskedAnalyses(compared.grid.record.id);
  if (!asked.ok()) return asked.status();
  for (const spec::AskedAnalysis& entry : entries) {
    html::AnalysisTable& table = tables.emplace_back();
    table.label = entry.label;
    table.kind = spec::KindName(entry.analysis);
    table.how = HowText(entry);
    if (absl::Status added = AddStates(store, *asked, &table); !added.ok()) return added;
    if (table.asked == 0) table.failure = compared.grid.record.analyses.failure;
    if (spec::TakesNoSubject(entry.analysis)) {
      if (absl::Status read = ReadOwn(store, *asked, &table); !read.ok()) return read;
      continue;
    }
    const std::vector<std::string> numbers = NumbersOf(compared.grid.metrics, entry.label);
    table.numbers = ColumnsOf(numbers);
    table.left_out = numbers.size() - table.numbers.size();
    for (size_t row = 0; row < compared.comparison.rows.size(); ++row) {
      AddLines(compared, row, entry.label, &table);
    }
  }
  return tables;
}

}  // namespace ablate::results
