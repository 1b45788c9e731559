#include "client/output/analysis_text.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "client/output/format.h"
#include "client/output/table.h"
#include "client/output/terminal_text.h"

namespace ablate::client {
namespace {

constexpr size_t kMaxNamed = 3;

// Digits at the beginning of `text`.
absl::string_view LeadingDigits(absl::string_view text) {
  const size_t end = text.find_first_not_of("0123456789");
  return text.substr(0, end == absl::string_view::npos ? text.size() : end);
}

// As texts are compared, but numbers in them by their value.
struct ByNumbersInside {
  bool operator()(absl::string_view a, absl::string_view b) const {
    while (!a.empty() && !b.empty()) {
      const absl::string_view left = LeadingDigits(a), right = LeadingDigits(b);
      uint64_t x = 0, y = 0;
      const bool numbers = absl::SimpleAtoi(left, &x) && absl::SimpleAtoi(right, &y);
      if (numbers && x != y) return x < y;
      if (!numbers && a[0] != b[0]) return a[0] < b[0];
      if (numbers && left.size() != right.size()) return left.size() < right.size();
      a.remove_prefix(numbers ? left.size() : 1);
      b.remove_prefix(numbers ? right.size() : 1);
    }
    return a.size() < b.size();
  }
};

// Numbers by name; an empty text if an analysis has no such number.
using Rows = std::map<std::string, std::vector<std::string>, ByNumbersInside>;

Rows RowsOf(const std::vector<LabelledAnalysis>& analyses) {
  Rows rows;
  for (size_t i = 0; i < analyses.size(); ++i) {
    for (const auto& [name, number] : analyses[i].analysis.numbers()) {
      std::vector<std::string>& row = rows[name];
      row.resize(analyses.size());
      row[i] = NumberText(number);
    }
  }
  return rows;
}

std::string NumbersTable(const std::vector<LabelledAnalysis>& analyses, int width) {
  std::vector<Column> columns = {{"number"}};
  for (const LabelledAnalysis& one : analyses) {
    columns.push_back({analyses.size() == 1 ? "value" : one.label, true});
  }
  Table table(std::move(columns));
  for (auto& [name, texts] : RowsOf(analyses)) {
    std::vector<std::string> row = {name};
    row.insert(row.end(), texts.begin(), texts.end());
    table.Add(std::move(row));
  }
  return table.Render(width);
}

}  // namespace

std::string NumberText(const v1::AnalysisNumber& number) {
  if (number.has_value()) return Short(number.value());
  const std::string reason = v1::UndefinedNumber::Value_Name(number.undefined());
  if (reason.empty()) return "—";  // a reason of a newer server
  return absl::StrCat("— (", absl::StrReplaceAll(absl::AsciiStrToLower(reason), {{"_", " "}}), ")");
}

std::string ProgressText(const v1::Analysis& analysis) {
  return absl::StrCat(static_cast<int>(std::floor(analysis.progress() * 100)), " %");
}

std::string NumbersText(const std::vector<LabelledAnalysis>& analyses, int width) {
  if (analyses.size() == 1) return NumbersTable(analyses, width);
  std::string columns = NumbersTable(analyses, 0);
  const absl::string_view first_line = absl::string_view(columns).substr(0, columns.find('\n'));
  if (width == 0 || DisplayWidth(first_line) <= width) return columns;
  std::vector<std::string> blocks;
  for (const LabelledAnalysis& one : analyses) {
    blocks.push_back(absl::StrCat(Printable(one.label), "\n", NumbersTable({one}, width)));
  }
  return absl::StrJoin(blocks, "\n");
}

std::string ModelsText(const LabelledAnalysis& analysis, int width) {
  Table table({{"subject"}, {"model"}});
  for (size_t i = 0; i < analysis.models.size(); ++i) {
    std::string model = analysis.models[i];
    if (i < static_cast<size_t>(analysis.analysis.subjects_size())) {
      absl::StrAppend(&model, "@", analysis.analysis.subjects(static_cast<int>(i)).step());
    }
    table.Add({absl::StrCat("subject.", i), std::move(model)});
  }
  return table.Render(width);
}

std::string TookText(absl::Duration took) {
  if (took >= absl::Minutes(1)) return Duration(took);
  if (took < absl::Milliseconds(1)) return "less than 0.001 s";
  return absl::StrFormat("%.2g s", absl::ToDoubleSeconds(took));
}

std::string CostText(const std::vector<LabelledResponse>& responses, int width) {
  Table table({{"model"},
               {"time", true},
               {"forwards", true},
               {"memory", true},
               {"arrays", true},
               {"stored"}});
  const auto time_text = [](absl::Duration time, bool measured) {
    return absl::StrCat(TookText(time), measured ? "" : " (a guess)");
  };
  absl::Duration time;
  bool measured = true;
  double forwards = 0;
  uint64_t arrays = 0, to_make = 0;
  for (const auto& [label, response, models] : responses) {
    const v1::Analysis& analysis = response.analysis();
    const std::string stored =
        response.reused()
            ? absl::StrCat(analysis.name(), " ", v1::AnalysisState::Value_Name(analysis.state()))
            : "no";
    const absl::Duration own = ToDuration(response.cost().device_time());
    table.Add({label.empty() ? "—" : label, time_text(own, response.cost().measured()),
               Short(response.cost().forwards()), Bytes(response.cost().state_bytes()),
               Bytes(response.cost().array_bytes()), stored});
    if (response.reused()) continue;
    ++to_make;
    time += own;
    measured = measured && response.cost().measured();
    forwards += response.cost().forwards();
    arrays += response.cost().array_bytes();
  }
  if (responses.size() > 1) {
    table.Add({absl::StrCat("total to make: ", to_make), time_text(time, measured), Short(forwards),
               "", Bytes(arrays), ""});
  }
  return table.Render(width);
}

void Remarks::Add(const std::string& label, const std::string& message) {
  auto found = std::find_if(remarks_.begin(), remarks_.end(),
                            [&](const auto& remark) { return remark.first == message; });
  if (found == remarks_.end()) found = remarks_.insert(remarks_.end(), {message, {}});
  found->second.push_back(label);
}

std::vector<std::string> Remarks::Lines() const {
  std::vector<std::string> lines;
  for (const auto& [message, labels] : remarks_) {
    const auto named_end =
        labels.begin() + static_cast<std::ptrdiff_t>(std::min(labels.size(), kMaxNamed));
    std::string about = absl::StrJoin(labels.begin(), named_end, ", ");
    if (labels.size() > kMaxNamed) {
      absl::StrAppend(&about, " and ", labels.size() - kMaxNamed, " more");
    }
    lines.push_back(absl::StrCat(about, about.empty() ? "" : ": ", message));
  }
  return lines;
}

}  // namespace ablate::client
