// Tests Generate of an imported model over a real connection, with a scripted worker for analyses.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/dataset_file.h"
#include "server/config/engine_config.h"
#include "tests/engine/gpt2_files.h"
#include "tests/service/generate_call.h"
#include "tests/service/model_upload.h"
#include "tests/service/service_fixture.h"
#include "tests/test_folder.h"

namespace ablate::service {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using worker::v1::Analyze;

constexpr int kTokens = 512;  // of the example's tokenizer

class GenerateModelTest : public ServiceTest {
 protected:
  GenerateModelTest() {
    const std::string folder = ABLATE_EXAMPLES_DATA "/shakespeare-bpe/";
    vocabulary_ = ReadText(folder + "vocab.json");
    merges_ = ReadText(folder + "merges.txt");
    tokenizer_ = Upload("bpe", WriteTokenizerFile({vocabulary_, merges_})).name();
  }

  // Imports a model with so many tokens and a context of 6.
  v1::Model Import(const std::string& name, int vocabulary) {
    engine::StoredModel stored = engine::TinyGpt2();
    stored.config["vocab_size"] = vocabulary;
    stored.tensors["transformer.wte.weight"] = engine::Numbers({vocabulary, 4}, 1);
    Context context;
    v1::Model model;
    const auto writer = models_->UploadModel(&context, &model);
    for (const v1::UploadModelRequest& message : MessagesOf(name, FilesOf(stored))) {
      if (!writer->Write(message)) break;
    }
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return model;
  }
  v1::GenerateRequest Request(const std::string& model, const std::string& tokenizer) {
    v1::GenerateRequest request;
    request.set_model(model);
    request.set_tokenizer(tokenizer);
    return request;
  }
  grpc::Status Try(const v1::GenerateRequest& request) {
    return GenerateCall(models_.get(), request).Wait();
  }

  std::string vocabulary_, merges_;
  std::string tokenizer_;  // datasets/ID
};

TEST_F(GenerateModelTest, AsksForTheModelWithItsTokenizer) {
  const v1::Model model = Import("tiny", kTokens + 88);
  const auto analyst = MakeAnalyst();
  v1::GenerateRequest request = Request("tiny", "bpe");
  request.set_count(3);
  request.set_prompt("KING ");
  GenerateCall call(models_.get(), request);
  const Analyze analysis = analyst->NextAnalysis();
  EXPECT_EQ(analysis.checkpoint_blob(), model.sha256());
  EXPECT_EQ(analysis.samples().count(), 3u);
  EXPECT_EQ(analysis.samples().prompt(), "KING ");
  std::string bytes;
  EXPECT_TRUE(analyst->ReadBlob(analysis.id(), analysis.checkpoint_blob(), &bytes).ok());
  EXPECT_TRUE(analyst->ReadBlob(analysis.id(), analysis.dataset_blob(), &bytes).ok());
  EXPECT_EQ(bytes, WriteTokenizerFile({vocabulary_, merges_}));
  analyst->AnalysisPart(analysis, {SampleOf(0, "KING a", false), SampleOf(1, "KING b", false)});
  analyst->AnalysisResult(analysis, 2, 0);
  ASSERT_TRUE(call.Wait().ok());
  ASSERT_THAT(call.messages(), SizeIs(3));
  EXPECT_EQ(call.messages()[1].sample().text(), "KING b");
  const v1::GenerateSummary& summary = call.messages()[2].summary();
  EXPECT_EQ(summary.model(), "models/tiny");
  EXPECT_EQ(summary.run(), "");
  EXPECT_EQ(summary.step(), 0u);
  EXPECT_EQ(summary.samples(), 3u);
  EXPECT_EQ(summary.distinct_share(), 2 / 3.0);
  EXPECT_FALSE(summary.has_in_training_data_share());
}

TEST_F(GenerateModelTest, DescribesTheModelAsAWorkerReadsIt) {
  const v1::Model model = Import("tiny", kTokens + 88);
  const auto analyst = MakeAnalyst();
  GenerateCall call(models_.get(), Request(model.name(), tokenizer_));
  const Analyze analysis = analyst->NextAnalysis();
  EXPECT_TRUE(spec::CheckKnown(analysis.spec()).ok()) << spec::CheckKnown(analysis.spec());
  const auto config =
      spec::ToEngineConfig(analysis.spec(), {kTokens, 0, engine::LossPositions::kAll});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->model.vocabulary, kTokens + 88);
  EXPECT_EQ(config->model.context, 6);
  EXPECT_EQ(config->model.layers, 2);
  EXPECT_TRUE(std::get<engine::TextTask>(config->task).stored);
  analyst->AnalysisResult(analysis, 0, 0);
  EXPECT_TRUE(call.Wait().ok());
}

TEST_F(GenerateModelTest, TakesTheTokenizerOfTokens) {
  Import("tiny", kTokens);
  const std::string file = WriteTokenFile({vocabulary_, merges_}, kTokens, {1, 2, 511});
  const v1::Dataset tokens = Upload("ids.tokens", file);
  const auto analyst = MakeAnalyst();
  GenerateCall call(models_.get(), Request("tiny", tokens.name()));
  const Analyze analysis = analyst->NextAnalysis();
  EXPECT_EQ(analysis.dataset_blob(), tokens.sha256());
  analyst->AnalysisResult(analysis, 0, 0);
  EXPECT_TRUE(call.Wait().ok());
}

TEST_F(GenerateModelTest, RefusesAText) {
  Import("tiny", kTokens);
  const std::string text = Upload("words", "anna\nbob\n").name();
  const grpc::Status status = Try(Request("tiny", "words"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(status), "tokenizer");
  EXPECT_EQ(status.error_message(),
            absl::StrCat("tokenizer: ", text, " is a text; expected a tokenizer, or tokens"));
}

TEST_F(GenerateModelTest, RefusesATokenizerWithMoreTokensThanTheModel) {
  Import("small", kTokens - 1);
  const grpc::Status status = Try(Request("small", tokenizer_));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(status), "tokenizer");
  EXPECT_EQ(status.error_message(),
            absl::StrCat("tokenizer: ", tokenizer_,
                         " has a vocabulary of 512, but models/small has one of 511; expected the "
                         "model's tokenizer, of at most 511 tokens"));
}

TEST_F(GenerateModelTest, RefusesAPromptThatIsLongerThanTheContext) {
  Import("tiny", kTokens);
  v1::GenerateRequest request = Request("tiny", tokenizer_);
  for (uint32_t id = 0; id < 6; ++id) request.add_prompt_ids(id);
  EXPECT_EQ(Try(request).error_message(),
            "prompt_ids: it has 6 ids; expected at most 5, one less than the model's context");
}

TEST_F(GenerateModelTest, NeedsATokenizerThatIsThere) {
  Import("tiny", kTokens);
  const grpc::Status status = Try(Request("tiny", "bpf"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("there is no data set \"bpf\"; did you mean bpe"));
}

}  // namespace
}  // namespace ablate::service
