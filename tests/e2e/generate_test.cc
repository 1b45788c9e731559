// Tests samples of a trained run with the real programs, also while both lanes train.
#include <algorithm>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"

namespace ablate::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::vector<nlohmann::json> Messages(const std::string& lines) {
  std::vector<nlohmann::json> messages;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    messages.push_back(nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false));
  }
  return messages;
}

class GenerateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.Up({"--lanes", "2"});
    const std::string yaml = SmallNames("words", 200, "seeds: {count: 1}\n");
    cell_ =
        std::string(server_.Json({"submit", "-", "--wait", "--json"}, yaml)["experiment"]["name"]) +
        "/s0";
  }
  std::string Generate(std::vector<std::string> options = {}) {
    options.insert(options.begin(), {"generate", cell_});
    const Output output = server_.Ablate(options);
    EXPECT_EQ(output.exit_code, 0) << output.err;
    return output.out;
  }

  PersonalServer server_;
  std::string cell_;
};

TEST_F(GenerateTest, WritesNamesFromTheLastCheckpoint) {
  const Output output = server_.Ablate({"generate", cell_, "--temperature", "0.5"});
  ASSERT_EQ(output.exit_code, 0) << output.err;
  EXPECT_EQ(std::count(output.out.begin(), output.out.end(), '\n'), 20);
  for (const char c : output.out) EXPECT_TRUE(c == '\n' || (c >= 'a' && c <= 'z')) << c;
  EXPECT_THAT(output.err, AllOf(HasSubstr("20 samples at step 200"), HasSubstr("% distinct")));
}

TEST_F(GenerateTest, TheSameSeedGivesTheSameSamplesHoweverMany) {
  const std::string some = Generate({"--seed", "3"});
  EXPECT_EQ(Generate({"--seed", "3"}), some);
  EXPECT_THAT(Generate({"--seed", "3", "--count", "300"}), StartsWith(some));
  EXPECT_NE(Generate({"--seed", "4"}), some);
  EXPECT_NE(Generate({"--seed", "3", "--step", "0"}), some);
}

TEST_F(GenerateTest, PrintsEverySampleAsJson) {
  const std::vector<nlohmann::json> messages =
      Messages(Generate({"--json", "--count", "50", "--prompt", "an"}));
  ASSERT_THAT(messages, SizeIs(51));
  uint32_t found = 0;
  for (size_t i = 0; i < 50; ++i) {
    const nlohmann::json& sample = messages[i]["sample"];
    EXPECT_EQ(sample["index"], i);
    EXPECT_THAT(std::string(sample["text"]), StartsWith("an"));
    found += sample["in_training_data"].get<bool>() ? 1 : 0;
  }
  EXPECT_EQ(messages[50]["summary"]["in_training_data_share"], found / 50.0);
}

TEST_F(GenerateTest, WritesWhatPlainPythonDrawsFromTheSameCheckpoint) {
  const std::string file = server_.home() + "/../last.safetensors";
  ASSERT_EQ(server_.Ablate({"artifact", "get", cell_, "checkpoint", "-o", file}).exit_code, 0);
  const Output plain = RunProgram({ABLATE_PYTHON, ABLATE_SOURCE "/tests/e2e/plain_samples.py", file,
                                   "40", "5", "0.8", "20", "0.95"},
                                  "", {});
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_EQ(Generate({"--count", "40", "--seed", "5", "--temperature", "0.8", "--top-k", "20",
                      "--top-p", "0.95"}),
            plain.out);
}

TEST_F(GenerateTest, NamesACharacterThatTheDataLacks) {
  const Output output = server_.Ablate({"generate", cell_, "--prompt", "anÉ"});
  EXPECT_EQ(output.exit_code, 1);
  EXPECT_THAT(output.err, HasSubstr("prompt: character 3, \"É\" U+00C9, is not in the run's data"));
}

TEST_F(GenerateTest, AnswersWhileBothLanesTrain) {
  const std::string other =
      server_.Json({"submit", "-", "--json"},
                   SmallNames("busy", 1000000, "seeds: {count: 2}\n"))["experiment"]["name"];
  ASSERT_TRUE(Eventually([&] {
    const nlohmann::json runs = server_.Json({"runs", other, "--json"});
    return runs["rows"][0]["step"] > 0 && runs["rows"][1]["step"] > 0;
  }));
  EXPECT_EQ(Generate().size(), Generate().size());
  const nlohmann::json runs = server_.Json({"runs", other, "--json"});
  for (const nlohmann::json& row : runs["rows"]) EXPECT_EQ(row["state"], "RUNNING");
  server_.Ablate({"cancel", other});
}

}  // namespace
}  // namespace ablate::e2e
