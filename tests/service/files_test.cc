// Tests data sets and artifacts: uploads and reads.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "storage/blobs.h"
#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

using testing::ElementsAre;

constexpr char kNames[] = "ada\ngrace\nedsger\nbarbara\n";

v1::UploadDatasetRequest Message(const std::string& name, const std::string& text,
                                 const std::string& sent) {
  v1::UploadDatasetRequest message;
  message.set_display_name(name);
  message.set_sha256(Sha256Hex(text));
  message.set_data(sent);
  return message;
}

v1::UploadDatasetRequest More(const std::string& data) {
  v1::UploadDatasetRequest message;
  message.set_data(data);
  return message;
}

class FilesTest : public ServiceTest {
 protected:
  v1::ListDatasetsResponse List(uint32_t page_size = 0, const std::string& token = "") {
    v1::ListDatasetsRequest request;
    request.set_page_size(page_size);
    request.set_page_token(token);
    return AnswerOf(*datasets_, &v1::Datasets::Stub::ListDatasets, request);
  }
  v1::Dataset GetDataset(const std::string& name, bool verify = false) {
    auto request = Named<v1::GetDatasetRequest>(name);
    request.set_verify(verify);
    return AnswerOf(*datasets_, &v1::Datasets::Stub::GetDataset, request);
  }
  // Waits until the server has received an upload's first message.
  void WaitForDraft() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    const auto files = [this] {
      const std::filesystem::recursive_directory_iterator all(folder() + "/blobs");
      return std::count_if(std::filesystem::begin(all), std::filesystem::end(all),
                           [](const auto& entry) { return entry.is_regular_file(); });
    };
    while (files() == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_EQ(files(), 1);
  }
  grpc::Status TryDelete(const std::string& name) {
    return StatusOf(*datasets_, &v1::Datasets::Stub::DeleteDataset,
                    Named<v1::DeleteDatasetRequest>(name));
  }
};

TEST_F(FilesTest, KeepsATextUnderItsNameAndHash) {
  const v1::Dataset dataset = Upload("names.v2.txt", kNames);
  const std::string sha256 = Sha256Hex(kNames);
  EXPECT_EQ(dataset.name(), "datasets/names.v2-" + sha256.substr(0, 6));
  EXPECT_EQ(dataset.display_name(), "names.v2.txt");
  EXPECT_EQ(dataset.sha256(), sha256);
  EXPECT_EQ(dataset.bytes(), sizeof kNames - 1);
  EXPECT_EQ(dataset.documents(), 4u);
  EXPECT_EQ(dataset.characters(), 8u);  // a b c d e g r s
  EXPECT_TRUE(dataset.has_create_time());
  for (const std::string& name :
       {dataset.name(), dataset.name().substr(9), dataset.display_name()}) {
    EXPECT_EQ(GetDataset(name).name(), dataset.name()) << name;
  }
}

TEST_F(FilesTest, DeletesATextByItsIdAlone) {
  const v1::Dataset dataset = Upload("names.txt", kNames);
  const std::string id = dataset.name().substr(9);
  const grpc::Status status = TryDelete("names.txt");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), absl::StrCat("there is no data set \"names.txt\", but ", id,
                                                 " has that display name. Give the whole ID"));
  EXPECT_EQ(ReasonOf(status), "DATASET_NOT_FOUND");
  EXPECT_EQ(List().datasets_size(), 1);
  EXPECT_TRUE(TryDelete(id).ok());
  EXPECT_EQ(TryDelete(id).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(FilesTest, TakesATextInPieces) {
  std::string text;
  for (int i = 0; i < 300'000; ++i) absl::StrAppend(&text, "document ", i, "\n");
  std::vector<v1::UploadDatasetRequest> messages = {Message("many", text, "")};
  for (size_t at = 0; at < text.size(); at += 1 << 20) {
    messages.push_back(More(text.substr(at, 1 << 20)));
  }
  v1::Dataset dataset;
  ASSERT_TRUE(TryUpload(messages, &dataset).ok());
  EXPECT_EQ(dataset.documents(), 300'000u);
  EXPECT_EQ(dataset.bytes(), text.size());
}

TEST_F(FilesTest, ReadsNothingMoreWhenItHasTheHash) {
  const v1::Dataset first = Upload("names.txt", kNames);
  v1::Dataset second;
  const grpc::Status status = TryUpload({Message("other.txt", kNames, "")}, &second);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(second.name(), first.name());
  EXPECT_EQ(List().datasets_size(), 1);
}

TEST_F(FilesTest, TakesATextAgainThatWasDeleted) {
  const v1::Dataset first = Upload("names.txt", kNames);
  ASSERT_TRUE(TryDelete(first.name()).ok());
  EXPECT_EQ(List().datasets_size(), 0);
  const v1::Dataset again = Upload("names.txt", kNames);
  EXPECT_EQ(again.name(), first.name());
  EXPECT_EQ(again.documents(), 4u);
}

TEST_F(FilesTest, MendsATextWhoseFileIsDamagedOrGone) {
  const v1::Dataset dataset = Upload("names.txt", kNames);
  const std::string file = folder() + "/blobs/" + dataset.sha256();
  const auto is_damaged = [&] {
    const v1::Dataset got = GetDataset(dataset.name(), true);
    EXPECT_TRUE(got.has_damaged());
    return got.damaged();
  };
  EXPECT_FALSE(is_damaged());
  const std::function<void()> damages[] = {
      [&] { std::ofstream(file) << "bda" << std::string(kNames).substr(3); },
      [&] { std::filesystem::resize_file(file, 3); },
      [&] { std::filesystem::remove(file); },
  };
  for (const std::function<void()>& damage : damages) {
    damage();
    EXPECT_FALSE(GetDataset(dataset.name()).has_damaged()) << "nobody asked";
    EXPECT_TRUE(is_damaged());
    Upload("names.txt", kNames);
    EXPECT_FALSE(is_damaged());
  }
  EXPECT_EQ(List().datasets_size(), 1);
}

TEST_F(FilesTest, RefusesWhatIsNoText) {
  for (const std::string& text :
       {std::string("a\xff\xfe"), std::string("a\0b\n", 4), std::string(), std::string("\n\n\n")}) {
    const grpc::Status status = TryUpload({Message("names.txt", text, text)});
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(FieldOf(status), "data") << status.error_message();
  }
  EXPECT_EQ(List().datasets_size(), 0);
}

TEST_F(FilesTest, RefusesMessagesThatAreTooLargeOrNamedTwice) {
  const std::string large(2 << 20, 'a');
  grpc::Status status = TryUpload({Message("a", large, large)});
  EXPECT_EQ(status.error_message(), "data: a message has 2097152 bytes; expected at most 1048576");
  status = TryUpload({Message("names.txt", kNames, ""), Message("names.txt", kNames, kNames)});
  EXPECT_EQ(status.error_message(),
            "display_name: display_name, sha256 or offset is repeated; expected them in the first "
            "message only");
  EXPECT_EQ(List().datasets_size(), 0);
}

TEST_F(FilesTest, EndsAnUploadThatSendsNothingMore) {
  pace_ = {absl::Milliseconds(20), 1000 << 20};
  Restart();
  Context context;
  v1::Dataset dataset;
  const auto writer = datasets_->UploadDataset(&context, &dataset);
  ASSERT_TRUE(writer->Write(Message("names.txt", kNames, "ada\n")));
  const grpc::Status status = writer->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(status.error_message(),
            "the client sends too slowly; expected at least 1024000.0 KiB a second, with at most "
            "21ms of delay");
  EXPECT_EQ(List().datasets_size(), 0);
}

TEST_F(FilesTest, EndsAnUploadWithTheServer) {
  Context context;
  v1::Dataset dataset;
  const auto writer = datasets_->UploadDataset(&context, &dataset);
  ASSERT_TRUE(writer->Write(Message("names.txt", kNames, "ada\n")));
  WaitForDraft();
  StopServer();
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(FilesTest, EndsAnUploadThatIsCancelled) {
  {
    Context context;
    v1::Dataset dataset;
    const auto writer = datasets_->UploadDataset(&context, &dataset);
    ASSERT_TRUE(writer->Write(Message("names.txt", kNames, "ada\n")));
    WaitForDraft();
    context.TryCancel();
    EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  // A server that can end has released it.
  Restart();
  EXPECT_EQ(List().datasets_size(), 0);
  EXPECT_EQ(Upload("names.txt", kNames).documents(), 4u);
}

TEST_F(FilesTest, RefusesAnUploadOfNothing) {
  const grpc::Status status = TryUpload({});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(status), "display_name");
}

TEST_F(FilesTest, SaysThatADisplayNameIsSeveral) {
  Upload("names.txt", kNames);
  Upload("names.txt", "other\n");
  EXPECT_EQ(StatusOf(*datasets_, &v1::Datasets::Stub::GetDataset,
                     Named<v1::GetDatasetRequest>("names.txt"))
                .error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(FilesTest, ListsDatasetsPageByPage) {
  for (int i = 0; i < 5; ++i) Upload(absl::StrCat("d", i), absl::StrCat("text ", i, "\n"));
  std::vector<std::string> names;
  std::string token;
  do {
    const v1::ListDatasetsResponse page = List(2, token);
    for (const v1::Dataset& dataset : page.datasets()) names.push_back(dataset.display_name());
    token = page.next_page_token();
  } while (!token.empty());
  EXPECT_THAT(names, ElementsAre("d0", "d1", "d2", "d3", "d4"));
}

TEST_F(FilesTest, KeepsADatasetWhileARunNeedsIt) {
  const v1::Dataset dataset = Upload("names.txt", kNames);
  Create(DocumentsSpec("names.txt"));
  const grpc::Status status = TryDelete(dataset.name());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReasonOf(status), "DATASET_IN_USE");
}

TEST_F(FilesTest, ListsAndReadsCheckpoints) {
  const std::string run = Create(SmallSpec()).cells(0).run();
  const auto worker = MakeWorker();
  TrainAll(worker.get(), 2);
  v1::ListArtifactsRequest request;
  request.set_run(run.substr(0, 12));
  const auto response = AnswerOf(*artifacts_, &v1::Artifacts::Stub::ListArtifacts, request);
  ASSERT_EQ(response.artifacts_size(), 1);
  const v1::Artifact& artifact = response.artifacts(0);
  const std::string bytes = "weights of " + run.substr(5);
  EXPECT_EQ(artifact.name(), run + "/checkpoints/10");
  EXPECT_EQ(artifact.run(), run);
  EXPECT_EQ(artifact.kind(), "checkpoint");
  EXPECT_EQ(artifact.step(), 10u);
  EXPECT_EQ(artifact.sha256(), Sha256Hex(bytes));
  EXPECT_EQ(artifact.bytes(), bytes.size());
  EXPECT_EQ(Read(artifact.name()), bytes);
  EXPECT_EQ(Read(artifact.name(), 8), bytes.substr(8));
  EXPECT_EQ(Read(artifact.name(), bytes.size()), "");
}

TEST_F(FilesTest, ReadsALargeCheckpointInChunksFromAnyOffset) {
  Create(SmallSpec());
  const auto worker = MakeWorker();
  const FakeWorker::Leased run = worker->NextRun();
  std::string bytes;
  for (uint32_t i = 0; bytes.size() < (3u << 20) + 17; ++i) absl::StrAppend(&bytes, i, ",");
  worker->Started(run);
  const std::string sha256 = Sha256Hex(bytes);
  std::vector<std::string> chunks;
  for (size_t at = 0; at < bytes.size(); at += 1 << 20) chunks.push_back(bytes.substr(at, 1 << 20));
  ASSERT_TRUE(worker->WriteBlob(run.lease, sha256, chunks).ok());
  worker->Checkpoint(run, 5, bytes);
  worker->Settle();
  const std::string name = "runs/" + run.run.run() + "/checkpoints/5";
  EXPECT_EQ(Read(name), bytes);
  EXPECT_EQ(Read(name, 2'000'003), bytes.substr(2'000'003));
}

TEST_F(FilesTest, EndsADamagedCheckpointWithItsName) {
  Create(SmallSpec(1));
  const auto worker = MakeWorker();
  const FakeWorker::Leased run = worker->NextRun();
  worker->Started(run);
  const std::string sha256 = worker->Checkpoint(run, 10, std::string(3'000'000, 'w'));
  worker->Settle();
  {
    std::fstream file(folder() + "/blobs/" + sha256,
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(1'500'000);
    file.put('v');
  }
  for (const uint64_t offset : {0, 1, 2'999'999, 3'000'000}) {
    Context context;
    v1::ReadArtifactRequest request;
    request.set_name("runs/" + run.run.run() + "/checkpoints/10");
    request.set_offset(offset);
    const auto reader = artifacts_->ReadArtifact(&context, request);
    v1::ArtifactChunk chunk;
    uint64_t bytes = 0;
    while (reader->Read(&chunk)) bytes += chunk.data().size();
    EXPECT_EQ(bytes, 3'000'000 - offset);
    const grpc::Status status = reader->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS);
    EXPECT_THAT(status.error_message(), testing::HasSubstr(sha256));
  }
}

// Returns a line of CoNLL-U.
std::string Tagged(const std::string& id, const std::string& form) {
  return absl::StrCat(id, "\t", form, "\t_\tX\t_\t_\t_\t_\t_\t_\n");
}

TEST_F(FilesTest, KeepsTaggedSentences) {
  const std::string file =
      absl::StrCat("# c\n", Tagged("1", "a"), Tagged("2", "b"), "\n", Tagged("1", "c"));
  const v1::Dataset dataset = Upload("tags.txt", file);
  EXPECT_EQ(dataset.kind(), v1::DatasetKind::tagged) << "by its contents";
  EXPECT_EQ(dataset.documents(), 2u);
  EXPECT_EQ(dataset.characters(), 0u);
  const std::string id = dataset.name().substr(std::string("datasets/").size());
  EXPECT_EQ(store().Counts(id)->code_points, 4u) << "bytes of “a b” and “c”";
  Restart();
  ASSERT_EQ(List().datasets_size(), 1);
  EXPECT_EQ(List().datasets(0).DebugString(), dataset.DebugString());

  v1::CreateExperimentRequest request;
  request.set_request_id("r");
  *request.mutable_spec() = SmallSpec();
  request.mutable_spec()->mutable_base()->mutable_task()->mutable_documents()->set_dataset(
      dataset.name());
  const grpc::Status status = TryCreate(request);
  EXPECT_EQ(FieldOf(status), "base.task.documents.dataset");
  EXPECT_THAT(status.error_message(), testing::HasSubstr("holds tagged sentences"));
}

TEST_F(FilesTest, RefusesWrongTaggedSentences) {
  const std::string cases[][3] = {
      {"tags.txt", absl::StrCat(Tagged("1", "a"), Tagged("3", "b")),
       "line 2: its ID is 3; expected 2"},
      {"tags.conllu", "a plain text\n", "line 1: the number of its columns is 1; expected 10"},
      {"tags.conllu", "# comments\n", "it has no sentence"},
      {"tags.conllu",
       absl::StrCat(std::string(40'000, '#'), "\n", std::string(30'000, '#'), "\n",
                    Tagged("1", "a")),
       "its first word isn't within the first 65,536 bytes"}};
  for (const auto& [name, file, message] : cases) {
    const grpc::Status status = TryUpload({Message(name, file, file)});
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(FieldOf(status), "data");
    EXPECT_THAT(status.error_message(), testing::HasSubstr(message));
  }
  EXPECT_EQ(List().datasets_size(), 0);
}

TEST_F(FilesTest, SaysWhichCheckpointsThereAre) {
  const std::string run = Create(SmallSpec()).cells(0).run();
  const auto worker = MakeWorker();
  TrainAll(worker.get(), 2);
  const auto status_of = [this](const std::string& name, uint64_t offset) {
    Context context;
    v1::ReadArtifactRequest request;
    request.set_name(name);
    request.set_offset(offset);
    const auto reader = artifacts_->ReadArtifact(&context, request);
    v1::ArtifactChunk chunk;
    EXPECT_FALSE(reader->Read(&chunk));
    return reader->Finish();
  };
  grpc::Status status = status_of(run + "/checkpoints/3", 0);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(),
            "run " + run.substr(5) + " has no checkpoint of step 3; it has steps 10");
  EXPECT_EQ(ReasonOf(status), "ARTIFACT_NOT_FOUND");
  status = status_of(run + "/checkpoints/10", 1'000);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::OUT_OF_RANGE);
}

}  // namespace
}  // namespace ablate::service
