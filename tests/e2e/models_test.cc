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
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kTokenizer[] = ABLATE_SOURCE "/examples/data/shakespeare-bpe";

Output Transformers(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {ABLATE_PYTHON, ABLATE_SOURCE "/tests/e2e/transformers_model.py"});
  return RunProgram(arguments, "", {});
}

// Returns the number at the end of a text's last line.
double LastNumber(std::string csv) {
  while (!csv.empty() && csv.back() == '\n') csv.pop_back();
  return std::strtod(csv.c_str() + csv.rfind(',') + 1, nullptr);
}

class FamiliesTest : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, FamiliesTest,
                         ::testing::Values("gpt2", "llama", "qwen2", "qwen3", "gpt_neox"),
                         [](const auto& type) { return std::string(type.param); });

TEST_P(FamiliesTest, EvaluatesAnImportedModelAndHandsItBack) {
  PersonalServer server;
  server.Up({"--lanes", "1"});
  const std::string folder = server.home() + "/../";
  const std::string tiny = folder + "tiny";
  const Output made = Transformers({"make", GetParam(), tiny});
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

  for (const char* kind : {"attention", "remove", "logit_lens", "spectrum", "gradient_flow"}) {
    const Output analyzed = server.Ablate({"analyze", kind, experiment + "/s0"});
    EXPECT_EQ(analyzed.exit_code, 0) << kind << "\n" << analyzed.err;
  }

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

TEST(ModelsTest, LearnsDocumentsOfATokenizerAndSamplesThem) {
  PersonalServer server;
  server.Up({"--lanes", "1"});
  const std::string folder = server.home() + "/../", file = folder + "names.yaml";
  WriteFile(folder + "names.txt",
            ReadFile(ABLATE_SOURCE "/examples/data/names.txt").substr(0, 20'000));
  const std::string yaml = absl::StrCat(
      "name: pieces\nbase:\n  task: {documents: {dataset: names.txt, held_out: 200, tokenizer: ",
      kTokenizer, "}}\n",
      "  model: {layers: 1, width: 16, heads: 2, context: 12}\n"
      "  training: {steps: 150, batch: 16, learning_rate: 0.01}\nseeds: {count: 1}\n"
      "analyses:\n  - {predictions: {}, inputs: {documents: 20}}\n"
      "  - {samples: {count: 3}}\n");
  WriteFile(file, yaml);
  const Output submitted = server.Ablate({"submit", file, "--data", kTokenizer, "--wait"});
  ASSERT_EQ(submitted.exit_code, 0) << submitted.err;
  EXPECT_THAT(submitted.err, HasSubstr("shakespeare-bpe"));
  const Output metrics = server.Ablate({"metrics", "pieces", "--key", "eval/loss", "--csv"});
  ASSERT_EQ(metrics.exit_code, 0) << metrics.err;
  EXPECT_LT(LastNumber(metrics.out), 4.5) << "it begins near log 513\n" << metrics.out;

  const Output generated = server.Ablate({"generate", "pieces/s0", "-n", "40", "--prompt", "an"});
  ASSERT_EQ(generated.exit_code, 0) << generated.err;
  EXPECT_THAT(generated.out, StartsWith("an"));
  EXPECT_THAT(generated.out, Not(HasSubstr("<|endoftext|>")));
  EXPECT_THAT(generated.err, HasSubstr("in the training data"));

  // Goes on with the model.
  const std::string more = absl::StrReplaceAll(
      yaml, {{"name: pieces", "name: more"},
             {"  model: {layers: 1, width: 16, heads: 2, context: 12}", "  model_from: pieces/s0"},
             {"steps: 150", "steps: 5"}});
  WriteFile(file, more.substr(0, more.find("analyses:")));
  const Output tuned = server.Ablate({"submit", file, "--data", kTokenizer, "--wait"});
  EXPECT_EQ(tuned.exit_code, 0) << tuned.err;
}

// Writes the example's tokenizer with <|endoftext|> in place of its last merge.
void WriteTokenizerWithEndOfText(const std::string& folder) {
  const std::string merges = ReadFile(absl::StrCat(kTokenizer, "/merges.txt"));
  const size_t last = merges.rfind('\n', merges.size() - 2) + 1;
  const std::string made = absl::StrReplaceAll(merges.substr(last), {{" ", ""}, {"\n", ""}});
  nlohmann::json vocabulary =
      nlohmann::json::parse(ReadFile(absl::StrCat(kTokenizer, "/vocab.json")));
  vocabulary["<|endoftext|>"] = vocabulary.at(made);
  vocabulary.erase(made);
  std::filesystem::create_directories(folder);
  WriteFile(folder + "/vocab.json", vocabulary.dump());
  WriteFile(folder + "/merges.txt", merges.substr(0, last));
}

TEST(ModelsTest, FineTunesAnImportedModelOnDocuments) {
  PersonalServer server;
  server.Up({"--lanes", "1"});
  const std::string folder = server.home() + "/../";
  const Output made = Transformers({"make", "gpt2", folder + "tiny"});
  if (made.exit_code == 77) GTEST_SKIP() << made.out;
  ASSERT_EQ(server.Ablate({"model", "add", folder + "tiny", "--name", "tiny"}).exit_code, 0);
  WriteFile(folder + "lines.txt",
            ReadFile(ABLATE_SOURCE "/examples/data/tinyshakespeare.txt").substr(0, 20'000));
  WriteTokenizerWithEndOfText(folder + "bpe");
  const std::string file = folder + "tune.yaml";
  WriteFile(file,
            "name: tune\nbase:\n  model_from: models/tiny\n"
            "  task: {documents: {dataset: lines.txt, held_out: 50, tokenizer: ./bpe}}\n"
            "  training: {steps: 3, batch: 4}\nseeds: {count: 1}\n");
  const Output tuned = server.Ablate({"submit", file, "--wait"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  const Output metrics = server.Ablate({"metrics", "tune", "--key", "eval/loss", "--csv"});
  EXPECT_LT(LastNumber(metrics.out), 7) << "it begins near log 512\n" << metrics.out;
  // Without <|endoftext|> the boundary is a token that the model lacks.
  const Output lacks = server.Ablate({"submit", file, "--data", kTokenizer, "--set",
                                      absl::StrCat("task.documents.tokenizer=", kTokenizer)});
  EXPECT_NE(lacks.exit_code, 0);
  EXPECT_THAT(lacks.err, HasSubstr("the task has 513 tokens, and models/tiny has 512"));
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
                      absl::StrCat("analyses:\n  - {robustness: {replace_words: [0.2], draws: 1}, ",
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
