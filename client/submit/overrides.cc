#include "client/submit/overrides.h"

#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/submit/document.h"
#include "proto/reflect/from_value.h"

namespace ablate::client {
namespace {

using google::protobuf::Value;

constexpr uint32_t kMaxSeeds = 10'000;

// The value of one --set, read as YAML.
absl::StatusOr<Value> ParseValue(absl::string_view text) {
  if (text.find_first_not_of(' ') == absl::string_view::npos) {
    return absl::InvalidArgumentError("no value behind the '=': write null to clear the field");
  }
  const SourceText source{std::string(text)};
  std::vector<Diagnostic> problems = source.Check();
  Document document;
  if (problems.empty()) {
    document = ParseYaml(source);
    problems = std::move(document.problems);
  }
  if (!problems.empty()) return absl::InvalidArgumentError(problems.front().message);
  return std::move(document.root);
}

// Adds what `argument` says.
absl::Status ParseOverride(const std::string& argument, Overrides* overrides) {
  if (argument.find('=') == std::string::npos || argument[0] == '=') {
    return absl::InvalidArgumentError("write path=value, such as training.steps=100");
  }
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(argument, absl::MaxSplits('=', 1));
  absl::StatusOr<Value> value = ParseValue(parts.second);
  if (!value.ok()) return value.status();
  const bool is_new = overrides->emplace(parts.first, *std::move(value)).second;
  return is_new ? absl::OkStatus() : absl::InvalidArgumentError("given twice");
}

struct SeedRange {
  uint32_t first = 0;
  uint32_t last = 0;
};

absl::StatusOr<SeedRange> ParseRange(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(text, absl::MaxSplits("..", 1));
  const bool single = text.find("..") == absl::string_view::npos;
  SeedRange range;
  if (!absl::SimpleAtoi(ends.first, &range.first) ||
      !absl::SimpleAtoi(single ? ends.first : ends.second, &range.last)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--seeds: \"", text, "\" is neither a seed (0 to 4294967295) nor a range such as 0..9"));
  }
  if (range.last < range.first) {
    return absl::InvalidArgumentError(
        absl::StrCat("--seeds: the range \"", text, "\" ends before it begins"));
  }
  return range;
}

}  // namespace

absl::StatusOr<Overrides> ParseOverrides(const std::vector<std::string>& arguments) {
  Overrides overrides;
  for (const std::string& argument : arguments) {
    const absl::Status status = ParseOverride(argument, &overrides);
    if (status.ok()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--set ", argument.substr(0, argument.find('=')), ": ", status.message()));
  }
  return overrides;
}

void CheckOverrides(const Overrides& overrides, std::vector<Diagnostic>* problems) {
  for (const auto& [path, value] : overrides) {
    v1::BaseSpec scratch;
    std::vector<reflect::FieldProblem> found;
    reflect::SetPath(path, value, path, &scratch, &found);
    for (reflect::FieldProblem& problem : found) {
      problems->push_back({{}, std::move(problem.message), absl::StrCat("--set ", path)});
    }
  }
}

absl::StatusOr<v1::Seeds> ParseSeeds(absl::string_view text) {
  v1::Seeds seeds;
  const std::vector<absl::string_view> items = absl::StrSplit(text, ',');
  std::set<uint32_t> seen;
  for (const absl::string_view item : items) {
    const absl::StatusOr<SeedRange> range = ParseRange(item);
    if (!range.ok()) return range.status();
    if (range->last - range->first >= kMaxSeeds - seen.size()) {
      return absl::InvalidArgumentError(absl::StrCat("--seeds: more than ", kMaxSeeds, " seeds"));
    }
    for (uint64_t seed = range->first; seed <= range->last; ++seed) {
      if (!seen.insert(static_cast<uint32_t>(seed)).second) {
        return absl::InvalidArgumentError(absl::StrCat("--seeds: ", seed, " is given twice"));
      }
      seeds.add_list(static_cast<uint32_t>(seed));
    }
  }
  if (items.size() > 1) return seeds;
  v1::Seeds range;
  range.set_first(seeds.list(0));
  range.set_count(static_cast<uint32_t>(seeds.list_size()));
  return range;
}

}  // namespace ablate::client
