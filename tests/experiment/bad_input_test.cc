// Tests bad input: every sentence, exactly. The cases are in bad_input/*.txt: a title after #, a
// JSON merge patch to a small valid experiment (its member overrides isn't part of the spec), and
// the sentences after >, in which {ModelSpec} stands for a list of fields (field_lists.h).
#include <cctype>
#include <fstream>
#include <ostream>

#include "gmock/gmock.h"
#include "server/experiment/resolve.h"
#include "tests/experiment/specs.h"
#include "tests/reflect/field_lists.h"

namespace ablate::spec {
namespace {

using ::google::protobuf::Value;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

struct BadCase {
  std::string title;
  std::string json;
  std::vector<std::string> messages;
};

// Names a case in tests and failures.
void PrintTo(const BadCase& bad, std::ostream* out) { *out << bad.title; }

std::vector<BadCase> ReadCases(const std::string& name) {
  std::ifstream file(std::string(ABLATE_TEST_DATA) + "/bad_input/" + name + ".txt");
  std::vector<BadCase> cases;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("# ", 0) == 0) {
      cases.push_back({line.substr(2), "", {}});
    } else if (line.rfind("> ", 0) == 0) {
      cases.back().messages.push_back(WithFieldLists(line.substr(2)));
    } else {
      cases.back().json += line;
    }
  }
  return cases;
}

std::vector<BadCase> AllCases() {
  std::vector<BadCase> all;
  for (const char* name : {"fields", "experiment", "run", "axes"}) {
    const std::vector<BadCase> cases = ReadCases(name);
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

// RFC 7396: members replace, null removes.
void MergePatch(const Value& patch, Value* target) {
  if (!patch.has_struct_value()) {
    *target = patch;
    return;
  }
  auto& fields = *target->mutable_struct_value()->mutable_fields();
  for (const auto& [key, value] : patch.struct_value().fields()) {
    if (value.has_null_value()) {
      fields.erase(key);
    } else {
      MergePatch(value, &fields[key]);
    }
  }
}

// Returns the messages about `patch`: the schema's refusals, as in a client; otherwise Resolve's.
std::vector<std::string> MessagesFor(const std::string& patch) {
  Value value = Json(R"({"name": "bad", "base": {"task": {"legacy_recall": {}}}})");
  Value change = Json(patch);
  auto& changes = *change.mutable_struct_value()->mutable_fields();
  const Value given = changes["overrides"];
  changes.erase("overrides");
  MergePatch(change, &value);
  const Overrides overrides(given.struct_value().fields().begin(),
                            given.struct_value().fields().end());
  v1::ExperimentSpec spec;
  std::vector<Problem> problems;
  reflect::FromValue(value, "", &spec, &problems);
  if (problems.empty()) {
    const Resolution resolution = Resolve(spec, overrides, TestSurroundings());
    problems = resolution.problems;
  }
  std::vector<std::string> messages;
  for (const Problem& problem : problems) {
    EXPECT_THAT(problem.message, ::testing::HasSubstr(problem.field));
    EXPECT_THAT(problem.message, ::testing::HasSubstr(problem.allowed));
    messages.push_back(problem.message);
  }
  return messages;
}

class BadInputTest : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadInputTest, GetsItsExactSentences) {
  ASSERT_THAT(GetParam().messages, ::testing::Not(IsEmpty()));
  EXPECT_THAT(MessagesFor(GetParam().json), ElementsAreArray(GetParam().messages));
}

std::string CaseName(const ::testing::TestParamInfo<BadCase>& info) {
  std::string name;
  for (const char c : info.param.title) {
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Files, BadInputTest, ::testing::ValuesIn(AllCases()), CaseName);

TEST(BadInputFilesTest, HoldManyCases) { EXPECT_GE(AllCases().size(), 150u); }

}  // namespace
}  // namespace ablate::spec
