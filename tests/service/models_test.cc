// Tests imported models: uploads, what is refused, experiments that begin with them, exports.
#include <algorithm>
#include <filesystem>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "server/engine/pretrained.h"
#include "tests/engine/gpt2_files.h"
#include "tests/service/model_upload.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

using engine::NamedFile;
using engine::StoredModel;
using engine::TinyGpt2;
using testing::HasSubstr;
using testing::SizeIs;

constexpr char kLetters[] = "abcabcaabbccabcbacbacbacbabcabcabcbcabcabc\n";

StoredModel WithoutNormBiases() {
  StoredModel model = TinyGpt2();
  engine::RemoveTensors(&model, "ln_1.bias");
  engine::RemoveTensors(&model, "ln_2.bias");
  engine::RemoveTensors(&model, "ln_f.bias");
  return model;
}

class ModelsTest : public ServiceTest {
 protected:
  grpc::Status TryAdd(const std::vector<v1::UploadModelRequest>& messages,
                      v1::Model* model = nullptr) {
    Context context;
    v1::Model ignored;
    const auto writer = models_->UploadModel(&context, model == nullptr ? &ignored : model);
    for (const v1::UploadModelRequest& message : messages) {
      if (!writer->Write(message)) break;
    }
    writer->WritesDone();
    return writer->Finish();
  }
  v1::Model Add(const std::string& name, const StoredModel& stored = TinyGpt2()) {
    v1::Model model;
    const grpc::Status status = TryAdd(MessagesOf(name, FilesOf(stored)), &model);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return model;
  }
  v1::ListModelsResponse List(uint32_t page_size = 0, const std::string& token = "") {
    v1::ListModelsRequest request;
    request.set_page_size(page_size);
    request.set_page_token(token);
    return AnswerOf(*models_, &v1::Models::Stub::ListModels, request);
  }
  grpc::Status TryRemove(const std::string& name) {
    return StatusOf(*models_, &v1::Models::Stub::DeleteModel, Named<v1::DeleteModelRequest>(name));
  }
  grpc::Status TryExport(const v1::ExportModelRequest& request,
                         std::map<std::string, std::string>* files = nullptr) {
    Context context;
    std::vector<v1::FileChunk> chunks;
    const grpc::Status status = ReadAll(models_->ExportModel(&context, request).get(), &chunks);
    for (const v1::FileChunk& chunk : chunks) {
      if (files != nullptr) (*files)[chunk.path()] += chunk.data();
    }
    return status;
  }
  size_t Blobs() {
    size_t blobs = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder() + "/blobs")) {
      blobs += entry.is_regular_file() ? 1 : 0;
    }
    return blobs;
  }
  // Returns an experiment that begins with a model, and uploads its text.
  v1::ExperimentSpec SpecFrom(const std::string& model, const std::string& more = "") {
    std::string text;
    for (int i = 0; i < 20; ++i) text += kLetters;
    return SpecOf(absl::StrCat(R"(name: "from" base { model_from: ")", model,
                               R"(" task { text { dataset: ")", Upload("abc.txt", text).name(),
                               R"(" } } )", more, "} seeds { list: 0 }"));
  }
};

TEST_F(ModelsTest, ImportsAModel) {
  const v1::Model model = Add("tiny");
  EXPECT_EQ(model.name(), "models/tiny");
  EXPECT_EQ(model.model().layers(), 2u);
  EXPECT_EQ(model.model().width(), 4u);
  EXPECT_EQ(model.model().heads(), 2u);
  EXPECT_EQ(model.model().context(), 6u);
  EXPECT_EQ(model.model().norm().kind(), v1::NormKind::layer);
  EXPECT_TRUE(model.model().tied_head());
  EXPECT_EQ(model.vocabulary(), 5u);
  EXPECT_EQ(model.parameters(), 540u);
  EXPECT_THAT(model.notes(), SizeIs(testing::Ge(1)));
  EXPECT_TRUE(model.has_create_time());
  EXPECT_FALSE(model.private_());
  const auto imported = engine::ReadModel(TinyGpt2());
  ASSERT_TRUE(imported.ok());
  const auto checkpoint = engine::ImportedCheckpoint(*imported);
  EXPECT_EQ(model.sha256(), Sha256Hex(*checkpoint));
  EXPECT_EQ(model.bytes(), checkpoint->size());
  Restart();
  for (const char* name : {"tiny", "models/tiny"}) {
    EXPECT_EQ(AnswerOf(*models_, &v1::Models::Stub::GetModel, Named<v1::GetModelRequest>(name))
                  .DebugString(),
              model.DebugString());
  }
}

TEST_F(ModelsTest, ListsModelsInPages) {
  for (const char* name : {"b", "a", "c"}) Add(name);
  const v1::ListModelsResponse first = List(2);
  ASSERT_EQ(first.models_size(), 2);
  EXPECT_EQ(first.models(0).name(), "models/a");
  EXPECT_EQ(first.models(1).name(), "models/b");
  const v1::ListModelsResponse rest = List(2, first.next_page_token());
  ASSERT_EQ(rest.models_size(), 1);
  EXPECT_EQ(rest.models(0).name(), "models/c");
  EXPECT_EQ(rest.next_page_token(), "");
}

TEST_F(ModelsTest, KeepsANameForOneModel) {
  const v1::Model first = Add("tiny");
  EXPECT_EQ(Add("tiny").DebugString(), first.DebugString());
  const grpc::Status other = TryAdd(MessagesOf("tiny", FilesOf([] {
                                                 StoredModel model = TinyGpt2();
                                                 model.config["resid_pdrop"] = 0.2;
                                                 model.config["embd_pdrop"] = 0.2;
                                                 model.config["attn_pdrop"] = 0.2;
                                                 return model;
                                               }())));
  EXPECT_EQ(other.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(ReasonOf(other), "MODEL_EXISTS");
  EXPECT_EQ(List().models_size(), 1);
}

TEST_F(ModelsTest, TakesSettingsThatTheFilesLeaveOpen) {
  std::vector<v1::UploadModelRequest> messages = MessagesOf("rms", FilesOf(WithoutNormBiases()));
  const grpc::Status open = TryAdd(messages);
  EXPECT_EQ(open.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(open.error_message(), HasSubstr("Give model.norm.kind"));
  messages[0].set_norm_kind(v1::NormKind::rms);
  v1::Model model;
  const grpc::Status status = TryAdd(messages, &model);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(model.model().norm().kind(), v1::NormKind::rms);
  EXPECT_FALSE(model.model().norm().bias());
  messages[0].set_norm_kind(v1::NormKind::batch);
  EXPECT_EQ(FieldOf(TryAdd(messages)), "norm_kind");
  StoredModel dropouts = TinyGpt2();
  dropouts.config["attn_pdrop"] = 0.3;
  messages = MessagesOf("dropouts", FilesOf(dropouts));
  EXPECT_EQ(TryAdd(messages).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  messages[0].set_dropout(0.2);
  ASSERT_TRUE(TryAdd(messages, &model).ok());
  EXPECT_EQ(model.model().dropout(), 0.2);
}

TEST_F(ModelsTest, RefusesFilesByNameAndStoresNothing) {
  StoredModel missing = TinyGpt2();
  engine::RemoveTensors(&missing, "h.1.mlp.c_fc.bias");
  StoredModel infinite = TinyGpt2();
  infinite.tensors["transformer.wpe.weight"].bytes.replace(0, 4, std::string("\0\0\x80\x7f", 4));
  StoredModel constant = TinyGpt2();  // whose norms divide 0 by 0
  constant.config["layer_norm_epsilon"] = 0;
  for (const char* name : {"transformer.wte.weight", "transformer.wpe.weight"}) {
    std::string& bytes = constant.tensors[name].bytes;
    bytes.assign(bytes.size(), '\0');
  }
  StoredModel other = TinyGpt2();
  other.config["model_type"] = "bert";
  std::vector<NamedFile> damaged = FilesOf(TinyGpt2());
  damaged[1].bytes.resize(100);
  const struct {
    std::vector<NamedFile> files;
    std::string message;
  } cases[] = {
      {FilesOf(missing), "tensor h.1.mlp.c_fc.bias is missing"},
      {FilesOf(infinite), "wpe.weight"},
      {FilesOf(constant), "the model's logits aren't finite"},
      {FilesOf(other), "config.json: model_type"},
      {damaged, "model.safetensors: "},
      {{{"config.json", "{}"}, {"model.safetensors", ""}}, "model.safetensors: "},
      {{{"model.safetensors", "abc"}}, "config.json: the file is missing"},
  };
  for (const auto& [files, message] : cases) {
    const grpc::Status status = TryAdd(MessagesOf("bad", files));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << message;
    EXPECT_EQ(FieldOf(status), "files");
    EXPECT_THAT(status.error_message(), HasSubstr(message));
  }
  EXPECT_EQ(List().models_size(), 0);
  EXPECT_EQ(Blobs(), 0u);
}

TEST_F(ModelsTest, RefusesAPickleByItsNameAlone) {
  v1::UploadModelRequest first;
  first.set_name("pickled");
  first.add_files("config.json");
  first.add_files("pytorch_model.bin");
  Context context;
  v1::Model ignored;
  const auto writer = models_->UploadModel(&context, &ignored);
  ASSERT_TRUE(writer->Write(first));
  const grpc::Status status = writer->Finish();  // answers though the client could send more
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("pytorch_model.bin: a pickle can run code"));
  EXPECT_THAT(status.error_message(), HasSubstr("save_pretrained('converted')"));
}

TEST_F(ModelsTest, RefusesMessagesOutOfOrder) {
  const auto messages = MessagesOf("tiny", FilesOf(TinyGpt2()));
  const auto refusal = [this](std::vector<v1::UploadModelRequest> changed) {
    return std::string(TryAdd(changed).error_message());
  };
  auto changed = messages;
  changed[0].set_name("a/b");
  EXPECT_THAT(refusal(changed), HasSubstr("name: \"a/b\" isn't a valid model name"));
  changed = messages;
  changed[0].set_name("tiny@mia");
  EXPECT_THAT(refusal(changed), HasSubstr("name: \"tiny@mia\" isn't a valid model name"));
  changed = messages;
  changed[0].set_files(1, "../model.safetensors");
  EXPECT_THAT(refusal(changed),
              HasSubstr("files[1]: \"../model.safetensors\" isn't a file's name"));
  changed = messages;
  changed[1].set_name("tiny");
  EXPECT_THAT(refusal(changed), HasSubstr("name: name, files, bytes or settings are repeated"));
  changed = messages;
  std::swap(changed[1], changed.back());
  EXPECT_THAT(refusal(changed), HasSubstr("file: 0 is out of order or range; expected 1 to 1"));
  changed = messages;
  changed[1].set_file(2);
  EXPECT_THAT(refusal(changed), HasSubstr("file: 2 is out of order or range; expected 0 to 1"));
  changed = messages;
  changed[1].set_data(std::string((1 << 20) + 1, 'a'));
  EXPECT_THAT(refusal(changed), HasSubstr("data: a message has 1048577 bytes"));
  changed = messages;
  changed[0].set_bytes(5000);
  EXPECT_THAT(refusal(changed), HasSubstr("expected 5,000, as `bytes` says"));
  EXPECT_THAT(refusal({}), HasSubstr("name: missing"));
  EXPECT_EQ(List().models_size(), 0);
}

TEST_F(ModelsTest, BoundsTheMemoryOfAllUploads) {
  auto messages = MessagesOf("large", FilesOf(TinyGpt2()));
  messages[0].set_bytes((uint64_t{2} << 30) + 1);
  EXPECT_EQ(TryAdd(messages).error_message(),
            "bytes: the files have 2,147,483,649 bytes; expected at most 2,147,483,648");
  messages[0].set_bytes(uint64_t{2} << 30);
  grpc::Status large, second;
  // The second call may be the first to arrive; then both are made again.
  while (second.ok()) {
    Context context;
    v1::Model model;
    const auto writer = models_->UploadModel(&context, &model);
    ASSERT_TRUE(writer->Write(messages[0]));
    second = TryAdd(MessagesOf("tiny", FilesOf(TinyGpt2())));
    writer->WritesDone();
    large = writer->Finish();
  }
  EXPECT_EQ(second.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(second.error_message(), HasSubstr("too many bytes of models at once"));
  EXPECT_EQ(large.error_message(),
            "data: 0 bytes were sent; expected 2,147,483,648, as `bytes` says");
  Add("tiny");
}

TEST_F(ModelsTest, BeginsARunThatOutlivesIt) {
  const v1::Model model = Add("tiny");
  const v1::ExperimentSpec spec = SpecFrom("models/tiny");
  const v1::CreateExperimentResponse created = Create(spec);
  EXPECT_EQ(created.experiment().spec().base().model_from(), "models/tiny");
  EXPECT_TRUE(TryRemove("models/tiny").ok());
  EXPECT_EQ(TryRemove("models/tiny").error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(List().models_size(), 0);
  ASSERT_TRUE(store().Maintain().ok());
  const auto worker = MakeWorker();
  const FakeWorker::Leased run = worker->NextRun();
  EXPECT_EQ(run.run.initial_blob(), model.sha256());
  EXPECT_EQ(run.run.spec().vocabulary(), 5u);
  EXPECT_EQ(run.run.spec().spec().training().steps(), 0u);
  EXPECT_EQ(run.run.spec().spec().model().DebugString(), model.model().DebugString());
  EXPECT_EQ(Blobs(), 2u) << "the text and the parameters";
}

TEST_F(ModelsTest, SaysWhatModelFromCanName) {
  Add("tiny");
  const auto complaint = [this](const std::string& model, const std::string& more = "") {
    v1::CreateExperimentRequest request;
    request.set_request_id(absl::StrCat("of ", model, more));
    *request.mutable_spec() = SpecFrom(model, more);
    return TryCreate(request).error_message();
  };
  EXPECT_THAT(complaint("models/tinny"),
              HasSubstr("base.model_from: there is no model \"tinny\"; did you mean tiny?"));
  EXPECT_THAT(complaint("models/tinny"),
              HasSubstr("expected models/NAME, or EXPERIMENT/CELL of a run that is done"));
  EXPECT_THAT(complaint("tiny"), HasSubstr("\"tiny\" doesn't name a model"));
  EXPECT_THAT(
      complaint("models/tiny", "model { layers: 3 }"),
      HasSubstr("base.model.layers: 3 isn't the value of models/tiny; expected 2, or none"));
}

TEST_F(ModelsTest, HandsAnImportedModelBack) {
  Add("tiny");
  v1::ExportModelRequest request;
  request.set_name("models/tiny");
  std::map<std::string, std::string> files;
  const grpc::Status status = TryExport(request, &files);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_THAT(files, SizeIs(2));
  const auto again = engine::ReadFiles(
      {{"config.json", files["config.json"]}, {"model.safetensors", files["model.safetensors"]}});
  ASSERT_TRUE(again.ok()) << again.status();
  const auto imported = engine::ReadModel(TinyGpt2());
  EXPECT_TRUE(again->model == imported->model);
  EXPECT_EQ(again->parameters, imported->parameters);
}

TEST_F(ModelsTest, HandsTheCheckpointOfARunBack) {
  Add("tiny");
  const std::string experiment = Create(SpecFrom("models/tiny")).experiment().name();
  const auto worker = MakeWorker();
  const FakeWorker::Leased run = worker->NextRun();
  auto imported = engine::ReadModel(TinyGpt2());
  imported->parameters[7] = 0.125;
  worker->Started(run);
  worker->Checkpoint(run, 0, *engine::ImportedCheckpoint(*imported));
  worker->Finished(run, 0);
  worker->Settle();
  v1::ExportModelRequest request;
  request.set_experiment(experiment);
  request.set_cell("s0");
  std::map<std::string, std::string> files;
  ASSERT_TRUE(TryExport(request, &files).ok());
  const auto again = engine::ReadFiles(
      {{"config.json", files["config.json"]}, {"model.safetensors", files["model.safetensors"]}});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->parameters, imported->parameters);
  request.set_step(3);
  EXPECT_THAT(TryExport(request).error_message(), HasSubstr("has no checkpoint of step 3"));
  request.set_name("models/tiny");
  EXPECT_EQ(FieldOf(TryExport(request)), "name");
  request.clear_experiment();
  EXPECT_EQ(FieldOf(TryExport(request)), "cell");
  request.clear_cell();
  EXPECT_EQ(FieldOf(TryExport(request)), "step");
  request.set_name("models/none");
  EXPECT_EQ(TryExport(request).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ModelsTest, NamesWhatGpt2CantHold) {
  const std::string experiment = Create(SmallSpec()).experiment().name();
  TrainAll(MakeWorker().get(), 2);
  v1::ExportModelRequest request;
  request.set_name(Rows(experiment)[0].run());
  const grpc::Status status = TryExport(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("GPT-2 has no such model"));
}

}  // namespace
}  // namespace ablate::service
