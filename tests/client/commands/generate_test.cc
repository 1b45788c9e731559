// Tests `ablate generate`: the request, one sample per line, the closing line, errors.
#include "client/context.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GenerateTest : public ClientTest {
 protected:
  using Write = std::function<bool(const v1::GenerateResponse&)>;

  GenerateTest() {
    AnswerRun("pre-s1", "runs/r");
    answers_.generate = [this](const v1::GenerateRequest& request, const Write& write) {
      request_ = request;
      for (const std::string& text : texts_) {
        v1::GenerateResponse message;
        message.mutable_sample()->set_text(text);
        message.mutable_sample()->add_token_ids(50256);
        message.mutable_sample()->add_token_ids(318);
        message.mutable_sample()->set_stop("\n");
        write(message);
      }
      v1::GenerateResponse message;
      message.mutable_summary()->set_run("runs/r");
      message.mutable_summary()->set_step(1000);
      message.mutable_summary()->set_samples(20);
      message.mutable_summary()->set_distinct_share(.95);
      message.mutable_summary()->set_in_training_data_share(.1);
      write(message);
      return absl::OkStatus();
    };
    StartServer();
  }

  std::vector<std::string> texts_ = {"anna", "", "zoé"};
  v1::GenerateRequest request_;
};

TEST_F(GenerateTest, PrintsOneSampleALineAndTheSharesBesides) {
  const Outcome outcome = Run({"generate", "small/pre-s1"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_EQ(outcome.out, "anna\n\nzoé\n");
  EXPECT_EQ(outcome.err,
            "20 samples at step 1,000: 95 % distinct, 10 % found in the training data\n");
  EXPECT_EQ(request_.run(), "runs/r");
  EXPECT_FALSE(request_.has_step() || request_.has_count() || request_.has_temperature() ||
               request_.has_top_k() || request_.has_top_p() || request_.has_seed())
      << "defaults are the server's";
}

TEST_F(GenerateTest, SamplesAnImportedModelByItsTokenizer) {
  answers_.generate = [this](const v1::GenerateRequest& request, const Write& write) {
    request_ = request;
    v1::GenerateResponse message;
    message.mutable_summary()->set_model("models/tiny@mia");
    message.mutable_summary()->set_samples(1);
    message.mutable_summary()->set_distinct_share(1);
    write(message);
    return absl::OkStatus();
  };
  const Outcome outcome = Run({"generate", "models/tiny", "--tokenizer", "gpt2", "-n", "1"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_EQ(outcome.err, "1 sample of models/tiny@mia: 100 % distinct\n");
  EXPECT_EQ(request_.model(), "models/tiny");
  EXPECT_EQ(request_.tokenizer(), "gpt2");
  EXPECT_EQ(request_.run(), "");
  EXPECT_EQ(request_.count(), 1u);
}

TEST_F(GenerateTest, NeedsTheTokenizerOfAnImportedModel) {
  const Outcome outcome = Run({"generate", "models/tiny"});
  EXPECT_EQ(outcome.code, kUsage);
  EXPECT_THAT(outcome.err,
              HasSubstr("--tokenizer: missing for models/tiny; expected the data set of its "
                        "tokenizer. `ablate data add FOLDER` uploads a folder with its "
                        "tokenizer.json, or its vocab.json and merges.txt, and prints the name"));
  EXPECT_EQ(request_.model(), "") << "nothing is asked";
}

TEST_F(GenerateTest, LetsTheServerRefuseOptionsOfTheOtherKindOfModel) {
  EXPECT_EQ(Run({"generate", "runs/r", "--tokenizer", "gpt2"}).code, kSuccess);
  EXPECT_EQ(request_.run(), "runs/r");
  EXPECT_EQ(request_.tokenizer(), "gpt2");
  EXPECT_EQ(Run({"generate", "models/m", "--tokenizer", "t", "--step", "3"}).code, kSuccess);
  EXPECT_EQ(request_.step(), 3);
}

TEST_F(GenerateTest, KeepsSamplesOfSeveralLinesApart) {
  texts_ = {"to be\nor not", "that\n"};
  EXPECT_EQ(Run({"generate", "runs/r"}).out, "to be\nor not\n\nthat\n\n\n");
  texts_ = {"to\x1b\nbe", "or"};
  for (const bool terminal : {false, true}) {
    console_.out_is_terminal = terminal;
    EXPECT_EQ(Run({"generate", "runs/r"}).out, "to\\x1b\nbe\n\nor\n") << terminal;
  }
}

TEST_F(GenerateTest, LeavesOutAShareThatIsNotLookedFor) {
  answers_.generate = [](const v1::GenerateRequest&, const Write& write) {
    v1::GenerateResponse message;
    message.mutable_summary()->set_samples(1);
    message.mutable_summary()->set_distinct_share(1);
    write(message);
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"generate", "runs/r"}).err, "1 sample at step 0: 100 % distinct\n");
}

TEST_F(GenerateTest, PassesEveryOptionOn) {
  const Outcome outcome =
      Run({"generate", "runs/r", "--step", "100", "--count", "5", "--temperature", "0.5", "--top-k",
           "40", "--top-p", "0.9", "--seed", "7", "--prompt", "an", "--max-tokens", "9"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_EQ(request_.step(), 100);
  EXPECT_EQ(request_.count(), 5u);
  EXPECT_EQ(request_.temperature(), .5);
  EXPECT_EQ(request_.top_k(), 40u);
  EXPECT_EQ(request_.top_p(), .9);
  EXPECT_EQ(request_.seed(), 7u);
  EXPECT_EQ(request_.prompt(), "an");
  EXPECT_EQ(request_.max_tokens(), 9u);
}

TEST_F(GenerateTest, TakesStopStringsAsTheyAre) {
  const Outcome outcome = Run({"generate", "--stop", "\n\n", "--stop", "\\n", "--stop=[END]",
                               "--stop", " a, b ", "--stop=--", "runs/r"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_THAT(request_.stop(), ElementsAre("\n\n", "\\n", "[END]", " a, b ", "--"));
  EXPECT_EQ(request_.run(), "runs/r");
  EXPECT_EQ(Run({"generate", "runs/r", "--stop", ""}).code, kUsage);
}

TEST_F(GenerateTest, ReadsPromptIds) {
  EXPECT_EQ(Run({"generate", "runs/r", "--prompt-ids", "50256,318"}).code, kSuccess);
  EXPECT_THAT(request_.prompt_ids(), ElementsAre(50256, 318));
  for (const char* const text : {"1,", "1,x", "-1", "1.5", "4294967296"}) {
    const Outcome outcome = Run({"generate", "runs/r", std::string("--prompt-ids=") + text});
    EXPECT_EQ(outcome.code, kUsage) << text;
    EXPECT_THAT(outcome.err, HasSubstr("is not a token id; expected whole numbers"));
  }
}

TEST_F(GenerateTest, PrintsTheMessagesAsJsonOneALine) {
  const Outcome outcome = Run({"generate", "runs/r", "--json"});
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 4);
  EXPECT_THAT(outcome.out, HasSubstr("\"in_training_data\":false"));
  EXPECT_THAT(outcome.out, HasSubstr("\"token_ids\":[50256,318]"));
  EXPECT_THAT(outcome.out, HasSubstr("\"stop\":\"\\n\""));
  EXPECT_THAT(outcome.out, HasSubstr("\"distinct_share\":0.95"));
}

TEST_F(GenerateTest, KeepsATerminalSafe) {
  texts_ = {
      "a\xE2\x80\xAE"
      "b"};  // turns the direction of writing
  for (const bool terminal : {false, true}) {
    console_.out_is_terminal = terminal;
    EXPECT_EQ(Run({"generate", "runs/r"}).out, "a\\u202eb\n") << "also through a file";
  }
}

TEST_F(GenerateTest, SaysWhatTheServerRefuses) {
  answers_.generate = [](const v1::GenerateRequest&, const Write&) {
    return absl::InvalidArgumentError("count: 0 is out of range; expected 1 to 1,000");
  };
  const Outcome outcome = Run({"generate", "runs/r", "--count", "0"});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_THAT(outcome.err, HasSubstr("count: 0 is out of range"));
}

TEST_F(GenerateTest, RefusesWhatIsNoNumber) {
  for (const auto& [option, value, what] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"--temperature", "hot", "\"hot\" is not a number"},
           {"--top-k", "1.5", "\"1.5\" is not a whole number"},
           {"--step", "3000000000",
            "--step: 3000000000 is too large; expected at most 2147483647"}}) {
    const Outcome outcome = Run({"generate", "runs/r", option, value});
    EXPECT_EQ(outcome.code, kUsage) << option;
    EXPECT_THAT(outcome.err, HasSubstr(what));
  }
}

TEST_F(GenerateTest, SaysHowACellIsNamed) {
  answers_.generate = [](const v1::GenerateRequest&, const Write&) {
    return NotFound("there is no run \"small\"", "RUN_NOT_FOUND");
  };
  answers_.get = [](const v1::GetExperimentRequest&, v1::Experiment*) {
    return absl::NotFoundError("there is no experiment \"small\"");
  };
  EXPECT_EQ(Run({"generate", "small"}).err,
            "error: there is no run \"small\"; no experiment has that name, either; expected "
            "EXP/CELL or runs/ID\n");
  answers_.get = [](const v1::GetExperimentRequest&, v1::Experiment*) {
    return absl::InvalidArgumentError("\"small\" matches several experiments: small-1a, small-2b");
  };
  EXPECT_EQ(Run({"generate", "small"}).err,
            "error: \"small\" matches several experiments: small-1a, small-2b\n");
  answers_.get = [](const v1::GetExperimentRequest&, v1::Experiment* experiment) {
    experiment->set_name("experiments/small-1a2b");
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"generate", "small"}).err,
            "error: small is an experiment; expected one of its cells, such as small-1a2b/pre-s1. "
            "`ablate runs small-1a2b` lists them.\n");
}

TEST_F(GenerateTest, SaysOnlyWhatARunLacks) {
  answers_.generate = [](const v1::GenerateRequest&, const Write&) {
    return absl::NotFoundError("run 1a2b has no checkpoint of step 7; it has steps 0, 250");
  };
  EXPECT_EQ(Run({"generate", "1a2b", "--step", "7"}).err,
            "error: run 1a2b has no checkpoint of step 7; it has steps 0, 250\n");
}

}  // namespace
}  // namespace ablate::client
