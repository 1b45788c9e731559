// Tests `ablate model`: the files that are sent, lists, and exports to a folder.
#include <filesystem>

#include "client/context.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::Model Tiny() {
  v1::Model model;
  model.set_name("models/tiny");
  v1::ModelSpec& spec = *model.mutable_model();
  spec.set_layers(2);
  spec.set_width(32);
  spec.set_heads(4);
  spec.set_context(64);
  spec.set_positions(v1::Positions::learned);
  spec.set_dropout(0.1);
  spec.set_tied_head(true);
  spec.mutable_feed_forward()->set_hidden(1280);
  spec.mutable_feed_forward()->set_activation(v1::Activation::gelu_tanh);
  spec.mutable_norm()->set_kind(v1::NormKind::rms);
  spec.mutable_norm()->set_placement(v1::NormPlacement::pre);
  spec.mutable_norm()->set_attention(true);
  spec.mutable_norm()->set_final(true);
  spec.mutable_norm()->set_eps(1e-5);
  model.set_vocabulary(50'257);
  model.set_parameters(44'000);
  model.set_bytes(176'000);
  model.set_sha256("abc");
  model.add_notes("model.norm.kind is rms, as given.");
  model.mutable_create_time()->set_seconds(1'700'000'000 - 120);
  return model;
}

class ModelTest : public ClientTest {
 protected:
  ModelTest() {
    answers_.upload_model = [this](const std::vector<v1::UploadModelRequest>& messages,
                                   v1::Model* model) {
      first_ = messages.empty() ? v1::UploadModelRequest() : messages[0];
      sent_.assign(static_cast<size_t>(first_.files_size()), "");
      for (const auto& message : messages) {
        if (!message.data().empty()) sent_.at(message.file()) += message.data();
      }
      *model = Tiny();
      return result_;
    };
    answers_.model = [this](const v1::GetModelRequest& request, v1::Model* model) {
      asked_.push_back(request.name());
      *model = Tiny();
      return result_;
    };
    answers_.remove_model = [this](const v1::DeleteModelRequest& request,
                                   google::protobuf::Empty*) {
      asked_.push_back("rm " + request.name());
      return result_;
    };
    answers_.export_model = [this](const v1::ExportModelRequest& request,
                                   const std::function<bool(const v1::FileChunk&)>& write) {
      asked_.push_back(request.ShortDebugString());
      for (const auto& [path, data] : chunks_) {
        v1::FileChunk chunk;
        chunk.set_path(path);
        chunk.set_data(data);
        write(chunk);
      }
      return result_;
    };
    StartServer();
  }
  // Writes a file in the model's folder.
  void WriteFile(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(folder_ + "/model");
    Write("model/" + name, text);
  }
  Outcome Add(const std::vector<std::string>& more = {}) {
    return Run(With({"model", "add", folder_ + "/model", "--name", "tiny"}, more));
  }

  v1::UploadModelRequest first_;
  std::vector<std::string> sent_;  // bytes of each file
  std::vector<std::pair<std::string, std::string>> chunks_ = {
      {"config.json", R"({"ablate": {}, "eps": 1e-5, "bos_token_id": null})"},
      {"model.safetensors", "abc"},
      {"model.safetensors", "def"}};
};

TEST_F(ModelTest, AddsTheFilesOfAFolder) {
  WriteFile("config.json", "{}");
  WriteFile("model-00001-of-00002.safetensors", std::string((1 << 20) + 5, 'a'));
  WriteFile("model-00002-of-00002.safetensors", "b");
  WriteFile("model.safetensors.index.json", "{\"weight_map\": {}}");
  WriteFile("pytorch_model.bin", "pickle");
  WriteFile("tokenizer.json", "secret");
  const Outcome outcome = Add();
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_EQ(outcome.out, "models/tiny\n");
  EXPECT_EQ(outcome.err,
            "imported 44,000 parameters in 176 kB, norms rms (attention, final)\n"
            "note: model.norm.kind is rms, as given.\n");
  EXPECT_EQ(first_.name(), "tiny");
  EXPECT_FALSE(first_.private_() || first_.has_norm_kind() || first_.has_dropout());
  EXPECT_THAT(first_.files(),
              ElementsAre("config.json", "model-00001-of-00002.safetensors",
                          "model-00002-of-00002.safetensors", "model.safetensors.index.json"));
  EXPECT_THAT(sent_,
              ElementsAre("{}", std::string((1 << 20) + 5, 'a'), "b", "{\"weight_map\": {}}"));
  EXPECT_EQ(first_.bytes(), 2u + (1 << 20) + 5 + 1 + 18);
  EXPECT_THAT(Add({"--json"}).out, HasSubstr("\"parameters\": \"44000\""));
}

TEST_F(ModelTest, SendsSettings) {
  WriteFile("model.safetensors", "a");
  for (const char* kind : {"norm.kind=rms", "model.norm.kind=rms"}) {
    EXPECT_EQ(Add({"--private", "--set", kind, "--set", "dropout=0.1"}).code, kSuccess);
    EXPECT_TRUE(first_.private_());
    EXPECT_EQ(first_.norm_kind(), v1::NormKind::rms);
    EXPECT_EQ(first_.dropout(), 0.1);
  }
  const Outcome other = Add({"--set", "width=3"});
  EXPECT_EQ(other.code, kUsage);
  EXPECT_THAT(other.err, HasSubstr("--set width: a model's files determine it; expected norm.kind "
                                   "or dropout"));
  const Outcome unknown = Add({"--set", "norm.kind=rmss"});
  EXPECT_EQ(unknown.code, kUsage);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean rms?"));
}

TEST_F(ModelTest, LetsTheServerRefuseAPickleByItsName) {
  WriteFile("config.json", "{}");
  WriteFile("pytorch_model.bin", "pickle");
  result_ = absl::InvalidArgumentError("pytorch_model.bin: a pickle can run code");
  const Outcome outcome = Add();
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_EQ(outcome.err,
            "error: " + folder_ + "/model: pytorch_model.bin: a pickle can run code\n");
  EXPECT_THAT(first_.files(), ElementsAre("config.json", "pytorch_model.bin"));
  EXPECT_THAT(sent_, ElementsAre("{}", "")) << "a pickle isn't sent";
}

TEST_F(ModelTest, FollowsNoLinkOutOfTheFolder) {
  const std::string secret = Write("secret", "key");
  WriteFile("config.json", "{}");
  const std::string link = folder_ + "/model/model.safetensors";
  WriteFile("shard", "inside");
  WriteFile(".cache", "hidden");
  std::filesystem::create_symlink("shard", link);
  EXPECT_EQ(Add().code, kSuccess);
  EXPECT_THAT(sent_, ElementsAre("{}", "inside"));
  for (const auto& [target, problem] :
       {std::pair(secret, secret + " is outside the folder"),
        std::pair(std::string(".cache"), folder_ + "/model/.cache is hidden")}) {
    std::filesystem::remove(link);
    std::filesystem::create_symlink(target, link);
    first_.Clear();
    const Outcome outcome = Add();
    EXPECT_EQ(outcome.code, kFailure);
    EXPECT_EQ(outcome.err, "error: " + folder_ + "/model: " + problem +
                               ", and would be uploaded; to allow that, add --data " + link + "\n");
    EXPECT_EQ(first_.files_size(), 0) << "nothing is sent";
    EXPECT_EQ(Add({"--data", link}).code, kSuccess);
    EXPECT_EQ(Add({"--data", folder_}).code, kSuccess);
    EXPECT_EQ(first_.files_size(), 2);
  }
}

TEST_F(ModelTest, NamesAFolderThatIsNotThere) {
  const Outcome outcome = Run({"model", "add", folder_ + "/gone", "--name", "tiny"});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_EQ(outcome.err, "error: " + folder_ + "/gone: No such file or directory\n");
  EXPECT_EQ(first_.name(), "");
}

TEST_F(ModelTest, ListsModels) {
  answers_.models = [](const v1::ListModelsRequest&, v1::ListModelsResponse* list) {
    *list->add_models() = Tiny();
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"model", "ls"}).out,
            "model  layers  width  heads  context  vocabulary  norms                   parameters  "
            "  size  created\n"
            "tiny        2     32      4       64      50,257  rms (attention, final)      44,000  "
            "176 kB  2 min ago\n");
  EXPECT_THAT(Run({"model", "ls", "--json"}).out, HasSubstr("\"name\": \"models/tiny\""));
}

TEST_F(ModelTest, ShowsAModel) {
  const Outcome outcome = Run({"model", "show", "tiny"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_EQ(outcome.out,
            "models/tiny   44,000 parameters   176 kB   created 2 min ago\n"
            "layers 2, width 32, heads 4, context 64, vocabulary 50,257\n"
            "feed-forward 1,280 gelu_tanh, positions learned, head tied to the embedding, dropout "
            "0.1\n"
            "norms rms (attention, final), eps 1e-05, without bias\n"
            "sha256 abc\n"
            "- model.norm.kind is rms, as given.\n");
  EXPECT_THAT(asked_, ElementsAre("models/tiny"));
  EXPECT_THAT(Run({"model", "show", "models/tiny", "--json"}).out,
              HasSubstr("\"sha256\": \"abc\""));
}

TEST_F(ModelTest, RemovesAModel) {
  EXPECT_EQ(Run({"model", "rm", "tiny"}).err, "removed tiny\n");
  EXPECT_EQ(Run({"model", "rm", "models/tiny"}).err, "removed tiny\n");
  EXPECT_THAT(asked_, ElementsAre("models/tiny", "rm models/tiny", "rm models/tiny"))
      << "a whole name isn't looked up";
  EXPECT_EQ(Run({"model", "rm", "tiny", "--json"}).out, "{}\n");
}

TEST_F(ModelTest, ExportsToAFolder) {
  AnswerRun("pre-s1", "runs/r");
  const std::string target = folder_ + "/out";
  const Outcome outcome = Run({"model", "export", "models/tiny", "-o", target + "/"});
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_EQ(outcome.err, target + "/: 2 files, 55 B\n");
  EXPECT_EQ(Read(target + "/config.json"), chunks_[0].second);
  EXPECT_EQ(Read(target + "/model.safetensors"), "abcdef");
  EXPECT_THAT(asked_, ElementsAre("name: \"models/tiny\""));
  asked_.clear();
  EXPECT_EQ(Run({"model", "export", "small/pre-s1", "-o", target}).code, kFailure) << "it exists";
  const Outcome replaced =
      Run({"model", "export", "small/pre-s1", "--step", "0", "-o", target, "--force", "--json"});
  EXPECT_EQ(replaced.code, kSuccess) << replaced.err;
  EXPECT_THAT(replaced.out, AllOf(HasSubstr("\"files\": 2"), HasSubstr("\"bytes\": 55")));
  EXPECT_THAT(asked_, ElementsAre("name: \"runs/r\" step: 0"));
  for (const char* config : {"{\"eps\": 1e-5}", "no JSON", ""}) {
    Write("out/config.json", config);
    const Outcome refused =
        Run({"model", "export", "small/pre-s1", "--step", "0", "-o", target, "--force"});
    EXPECT_EQ(refused.code, kFailure) << config;
    EXPECT_THAT(refused.err,
                HasSubstr(absl::StrCat(target, " is not replaced: it lacks the mark")));
    EXPECT_EQ(Read(target + "/config.json"), config);
  }
}

TEST_F(ModelTest, LeavesNothingOfAnExportThatFails) {
  result_ = absl::DataLossError("the checkpoint is damaged");
  const std::string target = folder_ + "/out";
  const Outcome outcome = Run({"model", "export", "models/tiny", "-o", target});
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_EQ(outcome.err, "error: the checkpoint is damaged\n");
  EXPECT_FALSE(std::filesystem::exists(target));
  result_ = absl::OkStatus();
  chunks_ = {{"../config.json", "{}"}};
  EXPECT_EQ(Run({"model", "export", "models/tiny", "-o", target}).code, kFailure);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/config.json"));
}

TEST_F(ModelTest, SaysWhatTheServerRefuses) {
  answers_.models = [this](const v1::ListModelsRequest&, v1::ListModelsResponse*) {
    return result_;
  };
  WriteFile("model.safetensors", "a");
  ExpectRefusals({{"model", "ls"},
                  {"model", "show", "tiny"},
                  {"model", "rm", "models/tiny"},
                  {"model", "add", folder_ + "/model", "--name", "tiny"},
                  {"model", "export", "models/tiny", "-o", folder_ + "/out"}});
}

}  // namespace
}  // namespace ablate::client
