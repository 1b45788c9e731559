#include "client/near_values.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/decimal.h"
#include "client/output/format.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

constexpr size_t kMaxComparisons = 4;
constexpr size_t kShownValues = 5;
constexpr uint32_t kReadRuns = 1'000;

// A comparison as the filter has it, such as model.layers = 3.
struct WrittenComparison {
  std::string name;
  std::string value;
  std::string text;  // the whole of it
};

size_t EndOfQuoted(absl::string_view text, size_t begin) {
  size_t end = begin + 1;
  while (end < text.size() && text[end] != text[begin]) end += text[end] == '\\' ? 2 : 1;
  return std::min(end + 1, text.size());
}

// Returns where the name before an operator begins: a word, a "string" or function(name).
size_t BeginOfName(absl::string_view text, size_t end) {
  size_t begin = end;
  const bool call = end > 0 && text[end - 1] == ')';
  if (call) {
    const size_t open = text.substr(0, end).rfind('(');
    begin = open == absl::string_view::npos ? 0 : open;
  } else if (end > 0 && text[end - 1] == '"') {
    const size_t open = end < 2 ? absl::string_view::npos : text.rfind('"', end - 2);
    return open == absl::string_view::npos ? 0 : open;
  }
  while (begin > 0 && !absl::ascii_isspace(text[begin - 1]) && text[begin - 1] != '(') --begin;
  return begin;
}

// Returns the comparisons of a filter that the server has accepted.
std::vector<WrittenComparison> ComparisonsOf(absl::string_view filter) {
  std::vector<WrittenComparison> found;
  for (size_t at = 0; at < filter.size();) {
    if (filter[at] == '"') {
      at = EndOfQuoted(filter, at);
      continue;
    }
    if (std::string("=<>!:").find(filter[at]) == std::string::npos) {
      ++at;
      continue;
    }
    const absl::string_view before = absl::StripTrailingAsciiWhitespace(filter.substr(0, at));
    const size_t begin = BeginOfName(before, before.size());
    at = std::min(filter.find_first_not_of("=<>!:", at), filter.size());
    at = std::min(filter.find_first_not_of(' ', at), filter.size());
    const bool quoted = at < filter.size() && (filter[at] == '"' || filter[at] == '\'');
    const size_t end =
        quoted ? EndOfQuoted(filter, at) : std::min(filter.find_first_of(" )", at), filter.size());
    absl::string_view value = filter.substr(at, end - at);
    if (quoted && value.size() >= 2) value = value.substr(1, value.size() - 2);
    found.push_back({std::string(before.substr(begin)), std::string(value),
                     std::string(filter.substr(begin, end - begin))});
    at = end;
  }
  return found;
}

std::string NearText(double value) {
  return value == std::floor(value) ? text::ShortestDecimal(value) : Short(value);
}

// Returns the values, the nearest ones first: by their distance from a number, or by spelling.
std::vector<std::string> NearestFirst(const std::set<double>& numbers,
                                      const std::set<std::string>& texts,
                                      const std::string& wanted) {
  std::vector<std::string> values;
  double number = 0;
  if (!numbers.empty() && absl::SimpleAtod(wanted, &number)) {
    std::vector<double> sorted(numbers.begin(), numbers.end());
    std::stable_sort(sorted.begin(), sorted.end(), [number](double a, double b) {
      return std::fabs(a - number) < std::fabs(b - number);
    });
    for (const double value : sorted) values.push_back(NearText(value));
    return values;
  }
  for (const double value : numbers) values.push_back(NearText(value));
  values.insert(values.end(), texts.begin(), texts.end());
  const auto nearest = std::find(values.begin(), values.end(), reflect::Nearest(wanted, values));
  if (nearest != values.end()) std::rotate(values.begin(), nearest, nearest + 1);
  return values;
}

// Returns the sentence about a comparison that no run meets; "" if one does, or on an error.
std::string ExplainUnmet(Connection* connection, v1::ListRunsRequest request,
                         const WrittenComparison& comparison) {
  request.clear_order_by();
  request.clear_columns();
  request.set_filter(comparison.text);
  request.set_page_size(1);
  const auto met = connection->Call(kListRuns, request);
  if (!met.ok() || !met->rows().empty()) return "";
  request.set_filter(absl::StrCat(comparison.name, ":*"));
  request.add_columns(comparison.name);
  request.set_page_size(kReadRuns);
  const auto runs = connection->Call(kListRuns, request);
  if (!runs.ok()) return "";
  std::set<double> numbers;
  std::set<std::string> texts;
  for (const v1::RunRow& row : runs->rows()) {
    if (row.values().empty()) continue;
    if (row.values(0).has_number_value()) numbers.insert(row.values(0).number_value());
    if (row.values(0).has_string_value()) texts.insert(row.values(0).string_value());
    if (row.values(0).has_bool_value()) texts.insert(row.values(0).bool_value() ? "true" : "false");
  }
  std::vector<std::string> values = NearestFirst(numbers, texts, comparison.value);
  if (values.empty()) return absl::StrCat("no run has ", comparison.name);
  const bool all = values.size() <= kShownValues && runs->next_page_token().empty();
  values.resize(std::min(values.size(), kShownValues));
  return absl::StrCat("no run has ", comparison.text, "; ", all ? "the values are " : "near are ",
                      reflect::AnyOf(values));
}

}  // namespace

std::vector<std::string> NearValues(Connection* connection, const v1::ListRunsRequest& request) {
  std::vector<WrittenComparison> comparisons = ComparisonsOf(request.filter());
  comparisons.resize(std::min(comparisons.size(), kMaxComparisons));
  std::vector<std::string> sentences;
  for (const WrittenComparison& comparison : comparisons) {
    std::string sentence = ExplainUnmet(connection, request, comparison);
    if (!sentence.empty()) sentences.push_back(std::move(sentence));
  }
  return sentences;
}

}  // namespace ablate::client
