// Tests tokenizers and tokens: uploads, and experiments that divide a text into tokens.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/dataset_file.h"
#include "base/sha256.h"
#include "storage/blobs.h"
#include "tests/service/service_fixture.h"
#include "tests/tokenizer/small_tokenizer.h"

namespace ablate::service {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::string Contents(const std::string& path) {
  std::ifstream in(absl::StrCat(ABLATE_EXAMPLES_DATA, "/", path), std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

class TokensTest : public ServiceTest {
 protected:
  TokensTest()
      : vocabulary_(Contents("shakespeare-bpe/vocab.json")),
        merges_(Contents("shakespeare-bpe/merges.txt")),
        text_(Contents("tinyshakespeare.txt").substr(0, 20'000)) {}

  TokenizerFiles files() const { return {vocabulary_, merges_}; }

  v1::ListDatasetsResponse List() {
    return AnswerOf(*datasets_, &v1::Datasets::Stub::ListDatasets, v1::ListDatasetsRequest());
  }

  // Uploads the text and the tokenizer, and returns an experiment of both.
  v1::ExperimentSpec UploadedSpec() {
    const v1::Dataset text = Upload("plays.txt", text_);
    const v1::Dataset tokenizer = Upload("bpe", WriteTokenizerFile(files()));
    return SpecOf(absl::StrCat(R"(name: "a" base { task { text { dataset: ")", text.name(),
                               R"(" tokenizer: ")", tokenizer.name(),
                               R"(" } } model { layers: 1 width: 8 heads: 1 context: 16 }
        training { steps: 2 batch: 2 } })"));
  }

  const std::string vocabulary_, merges_, text_;
};

TEST_F(TokensTest, KeepsATokenizer) {
  const v1::Dataset dataset = Upload("bpe", WriteTokenizerFile(files()));
  EXPECT_EQ(dataset.kind(), v1::DatasetKind::tokenizer);
  EXPECT_EQ(dataset.vocabulary(), 512u);
  EXPECT_EQ(dataset.documents(), 0u);
  Restart();
  ASSERT_EQ(List().datasets_size(), 1);
  EXPECT_EQ(List().datasets(0).DebugString(), dataset.DebugString());
}

TEST_F(TokensTest, DividesATextByATokenizerOfOneFile) {
  const std::string json =
      tokenizer::SmallTokenizer{{"t h", "th e", "Ġ the"}, {"<|endoftext|>"}}.JsonFile().text;
  const v1::Dataset tokenizer = Upload("one", WriteTokenizerFile({"", "", json}));
  EXPECT_EQ(tokenizer.kind(), v1::DatasetKind::tokenizer);
  EXPECT_EQ(tokenizer.vocabulary(), 260u);
  Upload("plays.txt", "the 12 cafe\u0301s of the\n" + text_);
  Create(SpecOf(R"(name: "a" base { task { text { dataset: "plays.txt" tokenizer: "one" } }
      model { layers: 1 width: 8 heads: 1 context: 16 } training { steps: 2 batch: 2 } })"));
  const auto tokens = AnswerOf(*datasets_, &v1::Datasets::Stub::GetDataset,
                               Named<v1::GetDatasetRequest>("plays-one.tokens"));
  EXPECT_EQ(tokens.vocabulary(), 260u);
}

TEST_F(TokensTest, KeepsTokens) {
  const v1::Dataset dataset = Upload("ids.tokens", WriteTokenFile(files(), 512, {1, 2, 511}));
  EXPECT_EQ(dataset.kind(), v1::DatasetKind::tokens);
  EXPECT_EQ(dataset.vocabulary(), 512u);
}

TEST_F(TokensTest, RefusesFilesThatWouldFailLater) {
  const std::string cases[][2] = {
      {WriteTokenFile(files(), 512, {1, 512}), "token 1 is 512; expected an ID below 512"},
      {WriteTokenFile(files(), 512, {1, 512}, {1, 1}), "token 1 is 512; expected an ID below 512"},
      {WriteTokenizerFile({"{}", merges_}), "vocab.json"},
      {WriteTokenizerFile({"", "", "{}"}), "tokenizer.json: model.merges: missing"},
      {WriteTokenFile(files(), 512, {5, 0, 1, 0, 2, 0, 511, 0, 5, 0, 1, 0, 2, 0, 511, 0}),
       "every second one of its 16 tokens is 0, as if ids of 32 bits were read as ids of 16"},
      {std::string("\xFF\xFE"
                   "a\0b\0\n\0",
                   8),
       "the text is in UTF-16; expected UTF-8. Convert it: `iconv -f UTF-16 -t UTF-8 OLD > NEW`"},
      {std::string(100, '\0'), "safetensors"}};
  for (const auto& [file, message] : cases) {
    v1::UploadDatasetRequest upload;
    upload.set_display_name("bad");
    upload.set_sha256(Sha256Hex(file));
    upload.set_data(file);
    const grpc::Status status = TryUpload({upload});
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(FieldOf(status), "data");
    EXPECT_THAT(status.error_message(), HasSubstr(message));
  }
  EXPECT_EQ(List().datasets_size(), 0);
}

TEST_F(TokensTest, NotesThatATableIsReadAsPlainText) {
  const auto notes_of = [this](const std::string& name, const std::string& text) {
    const auto notes =
        Preview(SpecOf(absl::StrCat(R"(name: "a" base { task { documents { dataset: ")",
                                    Upload(name, text).name(), R"(" held_out: 1 } }
                                    model { layers: 1 width: 8 heads: 1 context: 16 }
                                    training { steps: 2 batch: 2 } })")))
            .notes();
    return std::vector<std::string>(notes.begin(), notes.end());
  };
  const auto note = [](absl::string_view file, absl::string_view columns,
                       absl::string_view delimiter) {
    return absl::StrCat(
        file, " is read as plain text, line by line, with its header (columns ", columns,
        "); to train on one column, here the first, make a text of it: ",
        "`python3 -c 'import csv; [print(row[0]) for row in list(csv.reader(open(\"", file, "\")",
        delimiter, "))[1:] if row]' > column.txt`");
  };
  EXPECT_THAT(notes_of("names.csv", "\xEF\xBB\xBFname,\"sex\", n\r\nemma,f,1\nliam,m,2\n"),
              Contains(note("names.csv", "name, sex, n", "")));
  EXPECT_THAT(notes_of("half.csv", "name;n\nemma;1,5\nliam;2,5\n"),
              Contains(note("half.csv", "name, n", ", delimiter=\";\"")));
  EXPECT_THAT(notes_of("tabs.TSV", "name\tn\nemma\t1\nliam\t2\n"),
              Contains(note("tabs.TSV", "name, n", ", delimiter=\"\\t\"")));
  EXPECT_THAT(notes_of("names.txt", "name,n\nemma,1\nliam,2\n"),
              Not(Contains(HasSubstr("is read as plain text"))));
}

TEST_F(TokensTest, DividesATextOnceForAllRuns) {
  const v1::ExperimentSpec spec = UploadedSpec();
  const v1::CreateExperimentResponse preview = Preview(spec);
  EXPECT_EQ(List().datasets_size(), 2) << "a dry run stores nothing";
  const v1::CreateExperimentResponse created = Create(spec);
  ASSERT_EQ(List().datasets_size(), 3);
  const auto tokens = AnswerOf(*datasets_, &v1::Datasets::Stub::GetDataset,
                               Named<v1::GetDatasetRequest>("plays-bpe.tokens"));
  EXPECT_THAT(tokens.name(), HasSubstr("datasets/plays-bpe-"));
  EXPECT_EQ(tokens.kind(), v1::DatasetKind::tokens);
  EXPECT_EQ(preview.parameters(0).parameters(), created.parameters(0).parameters());

  const v1::Run run = GetRun(created.cells(0).run());
  EXPECT_EQ(run.resolved_spec().spec().task().text().dataset(), tokens.name());
  EXPECT_EQ(run.resolved_spec().spec().task().text().tokenizer(), "stored");

  v1::ExperimentSpec more = spec;
  more.mutable_base()->mutable_training()->set_steps(3);
  Create(more);
  EXPECT_EQ(List().datasets_size(), 3) << "the tokens are there";

  // The text and the tokenizer may go, the tokens may not while runs read them.
  const v1::ListDatasetsResponse all = List();
  for (const v1::Dataset& dataset : all.datasets()) {
    const grpc::Status deleted = StatusOf(*datasets_, &v1::Datasets::Stub::DeleteDataset,
                                          Named<v1::DeleteDatasetRequest>(dataset.name()));
    EXPECT_EQ(deleted.ok(), dataset.kind() != v1::DatasetKind::tokens) << dataset.name();
  }
}

TEST_F(TokensTest, KeepsUploadsAndTheirTokensOnceAnExperimentUsesThem) {
  const auto upload = [this](const std::string& name, const std::string& bytes) {
    v1::UploadDatasetRequest message;
    message.set_display_name(name);
    message.set_sha256(Sha256Hex(bytes));
    message.set_data(bytes);
    message.set_for_experiment(true);
    v1::Dataset dataset;
    EXPECT_TRUE(TryUpload({message}, &dataset).ok());
    EXPECT_TRUE(dataset.has_expire_time());
  };
  upload("plays.txt", text_);
  upload("bpe", WriteTokenizerFile(files()));
  const v1::ListDatasetsResponse uploaded = List();
  ASSERT_EQ(uploaded.datasets_size(), 2);
  Create(SpecOf(R"(name: "a" base { task { text { dataset: "plays.txt" tokenizer: "bpe" } }
      model { layers: 1 width: 8 heads: 1 context: 16 } training { steps: 2 batch: 2 } })"));
  const v1::ListDatasetsResponse all = List();
  ASSERT_EQ(all.datasets_size(), 3);
  for (const v1::Dataset& dataset : all.datasets()) {
    EXPECT_FALSE(dataset.has_expire_time()) << dataset.name();
    EXPECT_FALSE(dataset.private_()) << dataset.name();
  }
}

// Returns an experiment on the lines of a text.
v1::ExperimentSpec DocumentsOf(const v1::Dataset& text, const std::string& tokenizer) {
  return SpecOf(absl::StrCat(R"(name: "a" base { task { documents { dataset: ")", text.name(),
                             R"(" tokenizer: ")", tokenizer,
                             R"(" held_out: 5 } } model { layers: 1 width: 8 heads: 1 context: 16 }
      training { steps: 2 batch: 2 } })"));
}

TEST_F(TokensTest, DividesDocumentsOnceForAllRuns) {
  UploadedSpec();
  const v1::Dataset names = Upload("names.txt", "emma\n\nolivia\r\nava\na\nb\nc\nd\ne\n");
  v1::ExperimentSpec spec = DocumentsOf(names, "bpe");
  Preview(spec);
  EXPECT_EQ(List().datasets_size(), 3) << "a dry run stores nothing";
  const v1::CreateExperimentResponse created = Create(spec);
  ASSERT_EQ(List().datasets_size(), 4);
  const auto tokens = AnswerOf(*datasets_, &v1::Datasets::Stub::GetDataset,
                               Named<v1::GetDatasetRequest>("names-bpe.documents"));
  EXPECT_EQ(tokens.kind(), v1::DatasetKind::tokens);
  EXPECT_EQ(tokens.documents(), 8u);
  EXPECT_EQ(tokens.vocabulary(), 513u) << "with the boundary";
  const v1::Run run = GetRun(created.cells(0).run());
  EXPECT_EQ(run.resolved_spec().spec().task().documents().dataset(), tokens.name());
  EXPECT_EQ(run.resolved_spec().spec().task().documents().tokenizer(), "stored");

  spec.mutable_base()->mutable_training()->set_steps(3);
  Create(spec);
  EXPECT_EQ(List().datasets_size(), 4) << "the tokens are there";
  // A text of the same two has other tokens.
  v1::ExperimentSpec text = UploadedSpec();
  text.mutable_base()->mutable_task()->mutable_text()->set_dataset(names.name());
  text.mutable_base()->mutable_model()->set_context(2);
  text.mutable_base()->mutable_task()->mutable_text()->set_validation(0.4);
  Create(text);
  EXPECT_EQ(List().datasets_size(), 5);

  // The tokens themselves are the data set of the same run.
  v1::ExperimentSpec direct = DocumentsOf(tokens, "stored");
  EXPECT_EQ(Create(direct).cells(0).run(), created.cells(0).run());
  direct.mutable_base()->mutable_task()->mutable_text()->set_dataset(tokens.name());
  v1::CreateExperimentRequest request;
  request.set_request_id("r");
  *request.mutable_spec() = direct;
  EXPECT_EQ(FieldOf(TryCreate(request)), "base.task.text.dataset");
}

TEST_F(TokensTest, KeepsTokensOfDocuments) {
  const v1::Dataset dataset = Upload("ids", WriteTokenFile(files(), 512, {1, 2, 511}, {1, 2}));
  EXPECT_EQ(dataset.kind(), v1::DatasetKind::tokens);
  EXPECT_EQ(dataset.documents(), 2u);
  EXPECT_EQ(dataset.vocabulary(), 513u);
  const storage::DatasetCounts counts = *store().Counts(dataset.name().substr(9));
  EXPECT_EQ(counts.document_lengths, "2 1:1 2:1");
}

// A run of the stored tokens is the run of the text and its tokenizer.
TEST_F(TokensTest, SharesRunsWithTheTokensThemselves) {
  const v1::ExperimentSpec spec = UploadedSpec();
  const v1::CreateExperimentResponse created = Create(spec);
  v1::ExperimentSpec direct = spec;
  v1::TextTask* text = direct.mutable_base()->mutable_task()->mutable_text();
  text->clear_tokenizer();
  text->set_dataset("plays-bpe.tokens");
  EXPECT_EQ(Create(direct).cells(0).run(), created.cells(0).run());
}

// The tokens aren't stored yet.
TEST_F(TokensTest, ChecksPromptsOfAnalysesAtTheFirstSubmit) {
  v1::CreateExperimentRequest request;
  request.set_request_id("r");
  *request.mutable_spec() = UploadedSpec();
  v1::PatchOptions* patch = request.mutable_spec()->add_analyses()->mutable_patch();
  patch->add_clean("KING");
  patch->add_corrupt("KING");
  patch->add_right("\xf0\x9f\x99\x82");
  patch->add_wrong("a");
  patch->set_part(v1::PatchedPart::feed_forward);
  const grpc::Status status = TryCreate(request);
  EXPECT_EQ(FieldOf(status), "analyses[0].patch.right[0]");
  EXPECT_THAT(status.error_message(), HasSubstr("it has 4 tokens; expected text of one token"));
  EXPECT_EQ(List().datasets_size(), 2) << "nothing is stored";
}

TEST_F(TokensTest, NamesATextThatIsGone) {
  v1::ExperimentSpec spec = UploadedSpec();
  spec.mutable_base()->mutable_task()->mutable_text()->set_tokenizer("bpf");
  v1::CreateExperimentRequest request;
  request.set_request_id("r");
  *request.mutable_spec() = spec;
  const grpc::Status status = TryCreate(request);
  EXPECT_EQ(FieldOf(status), "base.task.text.tokenizer");
  EXPECT_THAT(status.error_message(), HasSubstr("bpf"));
}

}  // namespace
}  // namespace ablate::service
