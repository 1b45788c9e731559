// Tests samples from trained parameters: the decoder against the plain forward pass, independence
// of the batch, ends and errors.
#include "server/engine/samples.h"

#include <gmock/gmock.h>

#include "base/clean.h"
#include "base/utf8.h"
#include "server/engine/core/analyses/sampling.h"
#include "server/engine/core/checkpoint.h"
#include "server/engine/core/data/documents.h"
#include "server/engine/core/data/whole_text.h"
#include "server/engine/torch/model/transformer.h"
#include "tests/engine/train_configs.h"
#include "tests/engine/train_runs.h"

namespace ablate::engine {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Returns a model's checkpoint after some steps.
std::string CheckpointOf(const RunConfig& run, uint32_t steps) {
  const std::unique_ptr<Trainer> trainer = MustMakeTrainer(run);
  Advance(*trainer, steps);
  return *trainer->ExportCheckpoint();
}

struct Generated {
  absl::Status status;
  std::vector<Sample> samples;
  SampleCounts counts;
  std::vector<std::string> Texts() const {
    std::vector<std::string> texts;
    for (const Sample& sample : samples) texts.push_back(sample.text);
    return texts;
  }
};

Generated Generate(const RunConfig& run, const std::string& checkpoint,
                   const SampleOptions& options, bool stopped = false) {
  Generated generated;
  const std::atomic<bool> stop{stopped};
  const auto counts =
      GenerateSamples(run, checkpoint, options, stop, [&](std::vector<Sample> some) {
        generated.samples.insert(generated.samples.end(), some.begin(), some.end());
      });
  generated.status = counts.status();
  if (counts.ok()) generated.counts = *counts;
  return generated;
}

// The same for samples that must be made.
Generated MustGenerate(const RunConfig& run, const std::string& checkpoint,
                       const SampleOptions& options) {
  Generated generated = Generate(run, checkpoint, options);
  EXPECT_TRUE(generated.status.ok()) << generated.status;
  return generated;
}

// Returns models with different parts, none of which looks ahead.
std::vector<RunConfig> CausalModels() {
  std::vector<RunConfig> models(6, SmallDocumentsRun(3));
  models[1].model.norm.placement = NormPlacement::kPost;
  models[1].model.norm.kind = NormKind::kLayer;
  models[1].model.bias = true;
  models[2].model.norm.placement = NormPlacement::kNone;
  models[2].model.norm.final = false;
  models[2].model.positions = Positions::kNone;
  models[2].model.tied_head = true;
  models[3].model.residual = false;
  models[3].model.activation = Activation::kGelu;
  models[3].model.heads = 1;
  models[4].model.norm.kind = NormKind::kBatch;
  models[4].model.norm.placement = NormPlacement::kSandwich;
  models[4].model.positions = Positions::kRotary;
  models[4].model.attention.kind = AttentionKind::kSigmoid;
  models[4].model.attention.score_bias = -2;
  models[4].model.dropout = 0.1;
  models[4].training.rule = LearningRule::kFeedbackAlignment;
  models[5].model.attention.kind = AttentionKind::kNone;
  models[5].model.attention.causal = false;
  models[5].model.norm.kind = NormKind::kL2;
  models[5].model.positions = Positions::kSinusoidal;
  models[5].model.activation = Activation::kSwiglu;
  models[5].training.rule = LearningRule::kDirectFeedbackAlignment;
  return models;
}

// The model of a checkpoint, with logits of one sequence by the forward pass of training.
struct Model {
  Model(const RunConfig& run, const std::string& checkpoint)
      : config(run.model),
        layout(MakeLayout(config, run.training.rule)),
        tensors(*ReadCheckpoint(layout, checkpoint)),
        flat(FlatTensor(tensors.type, tensors.parameters)),
        buffers(FlatTensor(tensors.type, tensors.buffers)),
        parameters(BindParameters(config, layout, ParameterViews(layout, flat), buffers)) {}

  // Returns the logits [V] after the whole sequence.
  at::Tensor Plain(const std::vector<int64_t>& tokens) const {
    BatchTensors batch;
    batch.rows = 1;
    batch.length = static_cast<int64_t>(tokens.size());
    batch.tokens = at::tensor(tokens, at::kLong);
    return Logits(config, parameters, batch, Pass())[batch.length - 1];
  }

  ModelConfig config;
  ParameterLayout layout;
  CheckpointTensors tensors;
  at::Tensor flat;
  at::Tensor buffers;
  ModelParameters parameters;
};

TEST(DecoderTest, GivesTheLogitsOfTheWholePrefix) {
  for (const RunConfig& run : CausalModels()) {
    const Model model(run, CheckpointOf(run, 20));
    const std::vector<std::vector<int64_t>> rows = {{6, 0, 1, 2, 3, 4}, {6, 5, 5, 0, 2, 1}};
    Decoder decoder(model.config, model.parameters, 2);
    for (size_t position = 0; position < 6; ++position) {
      const at::Tensor logits =
          decoder.Next(at::tensor({rows[0][position], rows[1][position]}, at::kLong));
      for (int64_t row = 0; row < 2; ++row) {
        const std::vector<int64_t> prefix(rows[row].begin(), rows[row].begin() + position + 1);
        EXPECT_LT((logits[row] - model.Plain(prefix)).abs().max().item<double>(), 1e-5) << position;
      }
    }
  }
}

TEST(DecoderTest, GoesOnWithTheRowsThatAreKept) {
  const RunConfig run = SmallDocumentsRun(3);
  const Model model(run, CheckpointOf(run, 20));
  Decoder decoder(model.config, model.parameters, 3);
  decoder.Next(at::tensor({6, 6, 6}, at::kLong));
  decoder.Next(at::tensor({0, 1, 2}, at::kLong));
  decoder.Keep(at::tensor({2, 0}, at::kLong));
  const at::Tensor logits = decoder.Next(at::tensor({3, 4}, at::kLong));
  EXPECT_LT((logits[0] - model.Plain({6, 2, 3})).abs().max().item<double>(), 1e-5);
  EXPECT_LT((logits[1] - model.Plain({6, 0, 4})).abs().max().item<double>(), 1e-5);
}

// Draws one sample in the simplest way: the whole prefix again for every token.
Sample PlainSample(const RunConfig& run, const Model& model, uint32_t index,
                   const SampleOptions& options) {
  const auto* const documents = std::get_if<DocumentsTask>(&run.task);
  const std::u32string& alphabet = documents != nullptr
                                       ? documents->documents->alphabet
                                       : std::get<TextTask>(run.task).text->alphabet;
  const auto boundary = static_cast<int64_t>(alphabet.size());
  std::vector<int64_t> tokens;
  if (documents != nullptr) tokens.push_back(boundary);
  const bool line_feed = documents == nullptr && options.prompt.empty();
  for (const char c : line_feed ? "\n" : options.prompt) {
    tokens.push_back(static_cast<int64_t>(alphabet.find(static_cast<char32_t>(c))));
  }
  Sample sample;
  sample.text = options.prompt;
  while (!sample.ended && static_cast<int>(tokens.size()) <= run.model.context) {
    const at::Tensor logits = model.Plain(tokens).to(at::kDouble).contiguous();
    const auto position = static_cast<uint32_t>(tokens.size() - 1);
    const absl::Span<const double> span(logits.const_data_ptr<double>(),
                                        static_cast<size_t>(logits.numel()));
    tokens.push_back(Draw(Keep(span, options), UniformAt(options.seed, index, position)));
    ++sample.tokens;
    sample.ended = documents != nullptr && tokens.back() == boundary;
    if (!sample.ended) {
      sample.text += static_cast<char>(alphabet[static_cast<size_t>(tokens.back())]);
    }
  }
  return sample;
}

TEST(SamplesTest, EqualAPlainLoopOverTheForwardPass) {
  const SampleOptions options = {
      .count = 40, .temperature = .8, .top_k = 5, .top_p = .95, .seed = 11};
  std::vector<RunConfig> models = CausalModels();
  models.push_back(SmallDocumentsRun(3));
  models.back().model.attention.causal = false;  // reads the whole prefix again
  for (size_t i = models.size(); i-- > 0;) {     // in float64 by LibTorch
    models.push_back(models[i]);
    models.back().precision = Precision::kFloat64;
  }
  for (const RunConfig& run : models) {
    const std::string checkpoint = CheckpointOf(run, 30);
    const Model model(run, checkpoint);
    const Generated generated = MustGenerate(run, checkpoint, options);
    ASSERT_EQ(generated.samples.size(), 40u);
    for (const Sample& sample : generated.samples) {
      const Sample plain = PlainSample(run, model, sample.index, options);
      EXPECT_EQ(sample.text, plain.text);
      EXPECT_EQ(sample.tokens, plain.tokens);
      EXPECT_EQ(sample.ended, plain.ended);
    }
  }
}

TEST(SamplesTest, EqualAPlainLoopWhereTheContextIsLong) {
  RunConfig run = SmallDocumentsRun(3);
  run.model.positions = Positions::kNone;
  run.model.context = 1 << 18;  // sixteen samples' keys and values would take 512 MB
  const std::string checkpoint = CheckpointOf(run, 30);
  const Generated generated = MustGenerate(run, checkpoint, {.count = 1});
  EXPECT_EQ(generated.samples.at(0).text,
            PlainSample(run, Model(run, checkpoint), 0, {.count = 1}).text);
}

TEST(SamplesTest, DoNotDependOnHowManyAreAskedFor) {
  const RunConfig run = SmallDocumentsRun(3);
  const std::string checkpoint = CheckpointOf(run, 30);
  const std::vector<std::string> all = Generate(run, checkpoint, {.count = 600}).Texts();
  ASSERT_EQ(all.size(), 600u);
  for (const uint32_t count : {1u, 7u, 256u, 257u}) {
    const std::vector<std::string> some = Generate(run, checkpoint, {.count = count}).Texts();
    EXPECT_EQ(some, std::vector<std::string>(all.begin(), all.begin() + count)) << count;
  }
}

TEST(SamplesTest, DifferByTheSeedAlone) {
  const RunConfig run = SmallDocumentsRun(3);
  const std::string checkpoint = CheckpointOf(run, 30);
  const auto texts = [&](uint32_t seed) {
    return Generate(run, checkpoint, {.count = 20, .seed = seed}).Texts();
  };
  EXPECT_EQ(texts(0), texts(0));
  EXPECT_NE(texts(0), texts(1));
}

TEST(SamplesTest, AreAllTheSameWithoutTemperature) {
  const RunConfig run = SmallDocumentsRun(3);
  const Generated generated = Generate(run, CheckpointOf(run, 30), {.count = 5, .temperature = 0});
  EXPECT_EQ(generated.counts.distinct, 1u);
}

TEST(SamplesTest, BeginWithThePromptAndEndAtTheBoundaryOrTheContext) {
  const RunConfig run = SmallDocumentsRun(3);
  const std::string checkpoint = CheckpointOf(run, 5);
  bool ended = false, full = false;
  for (const Sample& sample : Generate(run, checkpoint, {.count = 100, .prompt = "ab"}).samples) {
    EXPECT_THAT(sample.text, StartsWith("ab"));
    EXPECT_EQ(sample.tokens, sample.text.size() - 2 + (sample.ended ? 1 : 0));
    EXPECT_EQ(!sample.ended, sample.text.size() == 6u && sample.tokens == 4u) << sample.text;
    (sample.ended ? ended : full) = true;
  }
  EXPECT_TRUE(ended && full) << "the test must see both";
}

TEST(SamplesTest, TheLongestPromptLeavesOneToken) {
  const RunConfig run = SmallDocumentsRun(3);
  const std::string checkpoint = CheckpointOf(run, 5);
  const Generated generated = MustGenerate(run, checkpoint, {.count = 3, .prompt = "abcde"});
  for (const Sample& sample : generated.samples) EXPECT_EQ(sample.tokens, 1u);
  EXPECT_THAT(std::string(Generate(run, checkpoint, {.prompt = "abcdef"}).status.message()),
              HasSubstr("prompt: it has 6 characters"));
}

TEST(SamplesTest, CountWhatIsDistinctAndFound) {
  RunConfig run = SmallDocumentsRun(3);
  run.training.steps = 300;
  const Generated generated = Generate(run, CheckpointOf(run, 300), {.count = 200});
  std::set<std::string> texts;
  uint32_t found = 0;
  for (const Sample& sample : generated.samples) {
    texts.insert(sample.text);
    found += sample.in_training_data ? 1 : 0;
  }
  EXPECT_EQ(generated.counts.distinct, texts.size());
  EXPECT_EQ(generated.counts.in_training_data, found);
  EXPECT_GT(found, 50u) << "it learnt its documents";
}

TEST(SamplesTest, OfATextBeginWithThePromptOrAfterALineFeedAndFillTheContext) {
  for (const bool causal : {true, false}) {
    RunConfig run = SmallTextRun(3);
    run.model.attention.causal = causal;
    const std::string checkpoint = CheckpointOf(run, 30);
    const Model model(run, checkpoint);
    for (const char* prompt : {"", "a", "c\nab"}) {
      const SampleOptions options = {.count = 20, .prompt = prompt};
      const Generated generated = MustGenerate(run, checkpoint, options);
      for (const Sample& sample : generated.samples) {
        EXPECT_EQ(sample.text, PlainSample(run, model, sample.index, options).text);
        EXPECT_EQ(sample.tokens, sample.text.size() - options.prompt.size());
        EXPECT_FALSE(sample.ended);
        EXPECT_FALSE(sample.in_training_data);
      }
      EXPECT_GT(generated.counts.distinct, 1u);
    }
  }
}

TEST(SamplesTest, OfATextWithoutLineFeedsNeedAPrompt) {
  RunConfig run = SmallTextRun(3);
  run.task = *ReadTextTask("abcdefgfedcbabcdefgfedcba", 0.5);
  const std::string checkpoint = CheckpointOf(run, 1);
  EXPECT_EQ(
      Generate(run, checkpoint, {.count = 1}).status,
      absl::InvalidArgumentError("prompt: it is empty, and the run's data has no line feed to "
                                 "begin with; expected a prompt"));
  const SampleOptions longest = {.count = 1, .prompt = "abcde"};
  EXPECT_EQ(Generate(run, checkpoint, longest).samples.at(0).tokens, 2u);
}

// Returns a text run whose tokens are those of an encoding, which has bytes that are parts of
// characters.
RunConfig EncodedTextRun() {
  const std::string folder = ABLATE_EXAMPLES_DATA "/shakespeare-bpe/";
  auto text = std::make_shared<TokenizedText>();
  text->encoding = *tokenizer::BytePairEncoding::Read(folder + "vocab.json", folder + "merges.txt");
  text->tokens.assign(200, 1);
  RunConfig run = SmallTextRun(3);
  run.task = TextTask{true, text, 0.5};
  run.model.vocabulary = static_cast<int>(text->vocabulary());
  run.model.context = 64;
  return run;
}

// Returns the bytes of each drawn token.
std::vector<std::string> DrawnBytes(const RunConfig& run, const Sample& sample) {
  const auto* const documents = std::get_if<DocumentsTask>(&run.task);
  const auto* const text = std::get_if<TextTask>(&run.task);
  const SampledData data = {documents != nullptr ? documents->documents.get() : nullptr,
                            text != nullptr ? text->text.get() : nullptr};
  std::vector<std::string> bytes;
  for (const uint32_t id : sample.token_ids) bytes.push_back(data.codec().BytesOf({id}));
  return bytes;
}

// Returns a documents run of the same tokens, whose boundary is one more.
RunConfig EncodedDocumentsRun() {
  RunConfig run = EncodedTextRun();
  const auto encoding = std::get<TextTask>(run.task).text->encoding;
  auto documents =
      std::make_shared<const TokenizedDocuments>(*EncodeDocuments("king\nking\nking\n", encoding));
  run.task = DocumentsTask{true, documents, 1};
  run.model.vocabulary = static_cast<int>(documents->vocabulary());
  run.model.context = 16;
  return run;
}

TEST(SamplesTest, OfEncodedDocumentsBeginAndEndWithTheBoundary) {
  RunConfig run = EncodedDocumentsRun();
  run.training.optimizer.learning_rate = 0.02;
  const auto& documents = *std::get<DocumentsTask>(run.task).documents;
  run.training.steps = 300;
  const std::string checkpoint = CheckpointOf(run, 300);  // knows its only document
  for (const char* prompt : {"", "king"}) {
    const Generated generated =
        MustGenerate(run, checkpoint, {.count = 2, .temperature = 0, .prompt = prompt});
    for (const Sample& sample : generated.samples) {
      EXPECT_EQ(sample.text, "king");
      EXPECT_TRUE(sample.ended);
      EXPECT_TRUE(sample.in_training_data);
      EXPECT_EQ(sample.token_ids.back(), documents.bos());
      EXPECT_EQ(sample.token_ids.size(), sample.tokens);
    }
  }
}

TEST(SamplesTest, NeedOnlyTheTokenizerOfAText) {
  RunConfig run = EncodedTextRun();
  run.model.vocabulary += 88;  // of padding
  const std::string checkpoint = CheckpointOf(run, 5);
  SampleOptions options = {.count = 30};
  const Generated wanted = Generate(run, checkpoint, options);
  auto tokenizer = std::make_shared<TokenizedText>(*std::get<TextTask>(run.task).text);
  tokenizer->tokens.clear();
  std::get<TextTask>(run.task).text = tokenizer;
  const Generated generated = MustGenerate(run, checkpoint, options);
  ASSERT_EQ(generated.samples.size(), 30u);
  for (size_t i = 0; i < generated.samples.size(); ++i) {
    EXPECT_EQ(generated.samples[i].text, wanted.samples[i].text);
    EXPECT_EQ(generated.samples[i].token_ids, wanted.samples[i].token_ids);
    for (const uint32_t id : generated.samples[i].token_ids) EXPECT_LT(id, 512u) << "padding";
  }
}

TEST(SamplesTest, WriteNoTextForIdsOfPadding) {
  RunConfig run = EncodedTextRun();
  run.model.vocabulary += 88;
  const std::string checkpoint = CheckpointOf(run, 1);
  SampleOptions options = {
      .count = 1, .temperature = 0, .max_tokens = 3, .prompt_ids = {512, 5, 599}};
  const Generated generated = MustGenerate(run, checkpoint, options);
  std::string text;
  for (const std::string& bytes : DrawnBytes(run, generated.samples.at(0))) text += bytes;
  EXPECT_EQ(generated.samples[0].text,
            std::string(std::get<TextTask>(run.task).text->encoding->TextOf(5)) + text);
  options.prompt_ids = {600};
  EXPECT_FALSE(Generate(run, checkpoint, options).status.ok());
}

// Checks that each sample with stop strings is the one without them, up to the first occurrence.
void ExpectCut(const RunConfig& run, const SampleOptions& options,
               const std::vector<std::string>& stops) {
  const std::string checkpoint = CheckpointOf(run, 5);
  const Generated whole = Generate(run, checkpoint, options);
  SampleOptions stopping = options;
  stopping.stop = stops;
  const Generated stopped = MustGenerate(run, checkpoint, stopping);
  ASSERT_EQ(stopped.samples.size(), whole.samples.size());
  size_t cut = 0;
  for (size_t i = 0; i < whole.samples.size(); ++i) {
    const Sample& sample = stopped.samples[i];
    std::string drawn;
    size_t tokens = 0, begin = std::string::npos;
    for (const std::string& bytes : DrawnBytes(run, whole.samples[i])) {
      ++tokens;
      drawn += bytes;
      for (const std::string& stop : stops) begin = std::min(begin, drawn.find(stop));
      if (begin != std::string::npos) break;
    }
    EXPECT_EQ(sample.tokens, tokens) << i;
    EXPECT_EQ(sample.token_ids, std::vector<uint32_t>(whole.samples[i].token_ids.begin(),
                                                      whole.samples[i].token_ids.begin() +
                                                          static_cast<int64_t>(tokens)));
    if (begin == std::string::npos) {
      EXPECT_EQ(sample.stop, "");
      EXPECT_EQ(sample.text, whole.samples[i].text);
      EXPECT_EQ(sample.ended, whole.samples[i].ended);
      continue;
    }
    ++cut;
    EXPECT_FALSE(sample.ended);
    EXPECT_EQ(drawn.compare(begin, sample.stop.size(), sample.stop), 0) << sample.stop;
    std::string text = options.prompt, kept = drawn.substr(0, begin);
    for (absl::string_view rest = kept; !rest.empty();) {
      text += text::EncodeUtf8(text::TakeCharacter(&rest));
    }
    EXPECT_EQ(sample.text, text);
  }
  EXPECT_GT(cut, 0u);
  EXPECT_LT(cut, whole.samples.size()) << "the test must see both";
}

TEST(SamplesTest, EndBeforeAStopStringAndLeaveTheOthersAsTheyAre) {
  for (const bool causal : {true, false}) {
    RunConfig run = SmallTextRun(3);
    run.model.attention.causal = causal;
    const SampleOptions options = {.count = 300, .prompt = "ab"};  // "ab" counts only after it
    ExpectCut(run, options, {"ab", "c\n", "fa"});
    ExpectCut(SmallDocumentsRun(3), options, {"ab", "cde"});
    ExpectCut(EncodedDocumentsRun(), {.count = 300}, {"e", "th"});
  }
}

TEST(SamplesTest, EndBeforeAStopStringOfSeveralTokensOrWithinOne) {
  const RunConfig run = EncodedTextRun();
  const SampleOptions options = {.count = 40};
  const Generated whole = Generate(run, CheckpointOf(run, 5), options);
  std::vector<std::string> spanning, within;
  for (const Sample& sample : whole.samples) {
    const std::vector<std::string> tokens = DrawnBytes(run, sample);
    for (size_t i = 0; i + 2 < tokens.size(); ++i) {
      const std::string three =
          tokens[i].substr(tokens[i].size() - 1) + tokens[i + 1] + tokens[i + 2].substr(0, 1);
      if (text::IsUtf8(three) && spanning.size() < 5) spanning.push_back(three);
      if (tokens[i].size() > 3 && text::IsUtf8(tokens[i]) && within.size() < 5) {
        within.push_back(tokens[i].substr(1, 2));
      }
    }
  }
  ASSERT_EQ(spanning.size(), 5u);
  ASSERT_EQ(within.size(), 5u);
  ExpectCut(run, options, spanning);
  ExpectCut(run, options, {within[0]});
  ExpectCut(run, options, {within[1], spanning[1], spanning[2]});
}

TEST(SamplesTest, DrawNoMoreTokensThanAllowed) {
  for (const RunConfig& run : {SmallDocumentsRun(3), SmallTextRun(3)}) {
    const std::string checkpoint = CheckpointOf(run, 5);
    SampleOptions options = {.count = 60, .prompt = "ab"};
    const Generated whole = Generate(run, checkpoint, options);
    for (const uint32_t most : {1u, 2u, 3u, 9u}) {
      options.max_tokens = most;
      const Generated some = Generate(run, checkpoint, options);
      ASSERT_EQ(some.samples.size(), 60u);
      for (size_t i = 0; i < 60; ++i) {
        const Sample& all = whole.samples[i];
        const uint32_t tokens = std::min(most, all.tokens);
        EXPECT_EQ(some.samples[i].tokens, tokens);
        EXPECT_EQ(some.samples[i].token_ids,
                  std::vector<uint32_t>(all.token_ids.begin(), all.token_ids.begin() + tokens));
        EXPECT_EQ(some.samples[i].ended, all.ended && tokens == all.tokens);
        EXPECT_THAT(all.text, StartsWith(some.samples[i].text));
      }
    }
  }
}

TEST(SamplesTest, BeginWithPromptIdsAsWithTheirText) {
  for (const RunConfig& run : {SmallDocumentsRun(3), SmallTextRun(3)}) {
    const std::string checkpoint = CheckpointOf(run, 5);
    const SampleOptions by_text = {.count = 30, .prompt = "cab"};
    SampleOptions by_ids = {.count = 30};
    const bool line_feed = std::holds_alternative<TextTask>(run.task);  // it has the lowest id
    for (const uint32_t id : {2u, 0u, 1u}) by_ids.prompt_ids.push_back(id + (line_feed ? 1 : 0));
    const Generated expected = Generate(run, checkpoint, by_text);
    const Generated generated = MustGenerate(run, checkpoint, by_ids);
    EXPECT_EQ(generated.Texts(), expected.Texts());
    for (size_t i = 0; i < 30; ++i) {
      EXPECT_EQ(generated.samples[i].token_ids, expected.samples[i].token_ids);
      EXPECT_EQ(generated.samples[i].token_ids.size(), generated.samples[i].tokens);
    }
  }
}

TEST(SamplesTest, TakePromptIdsThatStandForNoText) {
  RunConfig run = SmallDocumentsRun(3);
  run.model.vocabulary = 9;  // six letters, the boundary, and two more
  SampleOptions options = {.count = 3, .prompt_ids = {0, 6, 8}};
  const Generated generated = MustGenerate(run, CheckpointOf(run, 1), options);
  for (const Sample& sample : generated.samples) {
    EXPECT_THAT(sample.text, StartsWith("a"));
    EXPECT_EQ(sample.text.size(), 1 + sample.tokens - (sample.ended ? 1 : 0));
  }
  options.prompt_ids = {0, 9};
  EXPECT_EQ(Generate(run, CheckpointOf(run, 1), options).status,
            absl::InvalidArgumentError("prompt_ids: id 2, 9, is not in the model's vocabulary; "
                                       "expected ids below 9, its size"));
}

TEST(SamplesTest, StopsBetweenTwoGroups) {
  const RunConfig run = SmallDocumentsRun(3);
  const SampleOptions options = {.count = 600, .stop = {"a"}};
  std::atomic<bool> stop{false};
  size_t received = 0;
  const auto counts = GenerateSamples(run, CheckpointOf(run, 1), options, stop,
                                      [&](const std::vector<Sample>& samples) {
                                        received += samples.size();
                                        stop = true;
                                      });
  EXPECT_TRUE(absl::IsCancelled(counts.status()));
  EXPECT_EQ(received, 256u);
}

TEST(SamplesTest, StopsWhenItIsAskedTo) {
  const RunConfig run = SmallDocumentsRun(3);
  EXPECT_TRUE(absl::IsCancelled(Generate(run, CheckpointOf(run, 1), {.count = 5}, true).status));
}

TEST(SamplesTest, StopsAsSoonAsTheDataIsRead) {
  EXPECT_TRUE(
      absl::IsCancelled(Generate(SmallDocumentsRun(3), "no file", {.count = 5}, true).status));
}

TEST(SamplesTest, SaysWhyThereIsNoText) {
  for (const RunConfig& recall : {SmallRecallRun(1), SmallPairsRun(1)}) {
    EXPECT_TRUE(
        absl::IsFailedPrecondition(Generate(recall, CheckpointOf(recall, 1), {.count = 1}).status));
  }
  const RunConfig run = SmallDocumentsRun(3);
  EXPECT_THAT(std::string(Generate(run, CheckpointOf(run, 1), {.count = 0}).status.message()),
              HasSubstr("count: 0 is out of range"));
  RunConfig wider = run;
  wider.model.hidden = 24;
  EXPECT_THAT(std::string(Generate(wider, CheckpointOf(run, 1), {.count = 1}).status.message()),
              HasSubstr("block.0.feed_forward.up.weight"));
  EXPECT_TRUE(absl::IsInvalidArgument(Generate(run, "no checkpoint", {.count = 1}).status));
  RunConfig wild = run;
  wild.training.optimizer.kind = OptimizerKind::kSgd;
  wild.training.optimizer.learning_rate = 1e300;
  EXPECT_THAT(std::string(Generate(wild, CheckpointOf(wild, 3), {.count = 1}).status.message()),
              HasSubstr("not finite"));
}

}  // namespace
}  // namespace ablate::engine
