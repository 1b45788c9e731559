// Tests the way of a model of transformers into an experiment and back, with the real programs.
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"

namespace ablate::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kTokenizer[] = ABLATE_SOURCE "/examples/data/shakespeare-bpe";

Output Transformers(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {ABLATE_PYTHON, ABLATE_SOURCE "/tests/e2e/gpt2_model.py"});
  return RunProgram(arguments, "", {});
}

// Returns the number at the end of a text's last line.
double LastNumber(std::string csv) {
  while (!csv.empty() && csv.back() == '\n') csv.pop_back();
  return std::strtod(csv.c_str() + csv.rfind(',') + 1, nullptr);
}

TEST(ModelsTest, EvaluatesAnImportedModelAndHandsItBack) {
  PersonalServer server;
  server.Up({"--lanes", "1"});
  const std::string folder = server.home() + "/../";
  const std::string tiny = folder + "tiny";
  const Output made = Transformers({"make", tiny});
  if (made.exit_code == 77) GTEST_SKIP() << made.out;
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const std::string text = folder + "plays.txt";
  WriteFile(text, ReadFile(ABLATE_SOURCE "/examples/data/tinyshakespeare.txt").substr(0, 60'000));
  const nlohmann::json model = server.Json({"model", "add", tiny, "--name", "tiny", "--json"});
  EXPECT_EQ(model["name"], "models/tiny");
  EXPECT_EQ(model["model"]["context"], 48);
  const std::string data = server.Json({"data", "add", text, "--json"})["name"];
  const std::string tokenizer = server.Json({"data", "add", kTokenizer, "--json"})["name"];
  const std::string yaml = absl::StrCat(
      "name: imported\nbase:\n  model_from: models/tiny\n  task: {text: {dataset: ", data,
      ", tokenizer: ", tokenizer, "}}\nseeds: {count: 1}\n");
  const std::string experiment =
      server.Json({"submit", "-", "--wait", "--json"}, yaml)["experiment"]["name"];
  const Output metrics = server.Ablate({"metrics", experiment, "--key", "eval/loss", "--csv"});
  ASSERT_EQ(metrics.exit_code, 0) << metrics.err;
  const Output loss = Transformers({"loss", tiny, text, kTokenizer, "48"});
  ASSERT_EQ(loss.exit_code, 0) << loss.err;
  EXPECT_NEAR(LastNumber(metrics.out), std::strtod(loss.out.c_str(), nullptr), 1e-4) << metrics.out;

  const std::vector<std::string> greedy = {"--temperature", "0", "--prompt", "KING ", "-n", "2"};
  const auto generate = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "generate");
    arguments.insert(arguments.end(), greedy.begin(), greedy.end());
    const Output output = server.Ablate(arguments);
    EXPECT_EQ(output.exit_code, 0) << output.err;
    return output;
  };
  const Output of_model = generate({"models/tiny", "--tokenizer", tokenizer});
  EXPECT_THAT(of_model.err, HasSubstr("2 samples of models/tiny: 50 % distinct"));
  EXPECT_THAT(of_model.out, StartsWith("KING "));
  EXPECT_EQ(of_model.out, generate({experiment + "/s0"}).out);

  ASSERT_EQ(server.Ablate({"model", "rm", "tiny"}).exit_code, 0);
  const std::string exported = folder + "exported";
  const Output written = server.Ablate({"model", "export", experiment + "/s0", "-o", exported});
  ASSERT_EQ(written.exit_code, 0) << written.err;
  EXPECT_THAT(written.err, HasSubstr("2 files"));
  const Output same = Transformers({"check", tiny, exported});
  EXPECT_EQ(same.exit_code, 0) << same.err;
}

TEST(ModelsTest, TrainsTheExampleOfFineTuningOnTwoCoresInBfloat16) {
  PersonalServer server;
  server.Up({"--lanes", "2"});
  const std::string model = server.home() + "/../plays";
  const Output made =
      RunProgram({ABLATE_PYTHON, ABLATE_SOURCE "/examples/make-gpt2.py", model}, "", {});
  if (made.exit_code != 0) GTEST_SKIP() << made.err;  // no transformers
  ASSERT_EQ(server.Ablate({"model", "add", model, "--name", "gpt2-plays"}).exit_code, 0);
  const nlohmann::json submitted = server.Json(
      {"submit", ABLATE_SOURCE "/examples/gpt2-finetune.yaml", "--seeds", "0..0", "--set",
       "training.steps=6", "--set", "training.warmup=0", "--set", "training.threads=2", "--set",
       "training.precision=bfloat16", "--set", "evaluation.tokens=200", "--wait", "--json"});
  const std::string experiment = submitted["experiment"]["name"];
  for (const char* lr : {"lr0.0003", "lr0.001", "lr0.003", "lr0.01"}) {
    const std::string cell = absl::StrCat(experiment, "/", lr, "-s0");
    const Output metrics = server.Ablate({"metrics", cell, "--key", "eval/loss", "--csv"});
    ASSERT_EQ(metrics.exit_code, 0) << metrics.err;
    const double last = LastNumber(metrics.out);
    EXPECT_GT(last, 1) << metrics.out;
    EXPECT_LT(last, 6.3) << "it begins near log 512\n" << metrics.out;
  }
}

constexpr char kExamples[] = ABLATE_SOURCE "/examples/";

// Returns an example's file with other analyses, and with its data by whole paths.
std::string WithAnalyses(const std::string& example, const std::string& analyses) {
  const std::string file = ReadFile(kExamples + example);
  const size_t begin = file.find("analyses:\n"), end = file.find("report:");
  EXPECT_LT(begin, end);
  return absl::StrReplaceAll(absl::StrCat(file.substr(0, begin), analyses, file.substr(end)),
                             {{" data/", absl::StrCat(" ", kExamples, "data/")},
                              {"./data/", absl::StrCat(kExamples, "data/")}});
}

// The models of gpt2-norm-sites, exported and imported again, are compared over sequences.
TEST(ModelsTest, AnalysesTheExampleOfNormSitesBeforeAndAfterImport) {
  PersonalServer server;
  server.Up({"--lanes", "2"});
  const std::string folder = server.home() + "/../", file = folder + "sites.yaml";
  const auto submit = [&](const std::string& yaml, std::vector<std::string> options) {
    WriteFile(file, yaml);
    options.insert(options.begin(), {"submit", file, "--data", absl::StrCat(kExamples, "data")});
    const Output output = server.Ablate(options);
    EXPECT_EQ(output.exit_code, 0) << output.err;
  };
  const std::string of_training = "gpt2-norm-sites.yaml",
                    imported = "gpt2-norm-sites-imported.yaml";
  EXPECT_EQ(server.Ablate({"submit", kExamples + of_training, "--dry-run"}).exit_code, 0);
  submit(WithAnalyses(of_training, ""),
         {"--seeds", "0..0", "--set", "training.steps=2", "--set", "training.warmup=0", "--set",
          "evaluation.tokens=128", "--wait"});
  for (const std::string site : {"both", "attention-only", "ffn-only", "none"}) {
    const std::string model = folder + site;
    const Output written =
        server.Ablate({"model", "export", "gpt2-norm-sites/" + site + "-s0", "-o", model});
    ASSERT_EQ(written.exit_code, 0) << written.err;
    const Output added = server.Ablate({"model", "add", model, "--name", "sites-" + site});
    ASSERT_EQ(added.exit_code, 0) << added.err;
  }
  const Output planned = server.Ablate({"submit", kExamples + imported, "--dry-run"});
  EXPECT_EQ(planned.exit_code, 0) << planned.err;
  const std::string tagged = "inputs: {dataset: data/tagged.conllu, documents: 40}";
  submit(WithAnalyses(imported,
                      absl::StrCat("analyses:\n  - {robustness: {replace_words: [0.2], "
                                   "draws: 1}, ",
                                   tagged, "}\n  - {probe: {controls: false}, ", tagged, "}\n")),
         {"--set", "evaluation.tokens=128", "--wait"});
  const nlohmann::json compared = server.Json({"compare", "gpt2-norm-sites-imported", "--json"});
  EXPECT_EQ(compared["unit"], "SEQUENCE") << compared.dump();
  EXPECT_EQ(compared["rows"][3]["pairs"], 40) << compared["rows"][3].dump();
  const Output probes = server.Ablate(
      {"compare", "gpt2-norm-sites-imported", "--key", "probe/accuracy/block.3", "--json"});
  EXPECT_EQ(nlohmann::json::parse(probes.out)["unit"], "SEQUENCE") << probes.err;
}

}  // namespace
}  // namespace ablate::e2e
