// Tests uploads that break and continue, and downloads of data sets.
#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "tests/engine/gpt2_files.h"
#include "tests/service/model_upload.h"
#include "tests/service/sharing_fixture.h"

namespace ablate::service {
namespace {

using storage::Role;
using testing::HasSubstr;

constexpr char kUploadedText[] = "ada\ngrace\nedsger\nbarbara\n";

v1::UploadDatasetRequest FirstMessage(uint64_t offset, const std::string& data) {
  v1::UploadDatasetRequest message;
  message.set_display_name("names.txt");
  message.set_sha256(Sha256Hex(kUploadedText));
  message.set_offset(offset);
  message.set_data(data);
  return message;
}

class UploadsTest : public SharingTest {
 protected:
  v1::PartialUpload GetUpload(const std::string& sha256 = Sha256Hex(kUploadedText)) {
    v1::GetUploadRequest request;
    request.set_sha256(sha256);
    return AnswerOf(*datasets_, &v1::Datasets::Stub::GetUpload, request);
  }
  void WaitUntil(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    bool is_done = done();
    while (!is_done && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
      is_done = done();
    }
    EXPECT_TRUE(is_done);
  }
  // Uploads as a client does: again while the server hasn't freed the calls that have just ended.
  grpc::Status TryUpload(const std::vector<v1::UploadDatasetRequest>& messages,
                         v1::Dataset* dataset = nullptr) {
    grpc::Status status;
    WaitUntil([&] {
      status = SharingTest::TryUpload(messages, dataset);
      return !absl::StrContains(status.error_message(), "too many uploads");
    });
    return status;
  }
  // Breaks an upload after the first message.
  void Break(const v1::UploadDatasetRequest& first) {
    Context context;
    v1::Dataset dataset;
    const auto writer = datasets_->UploadDataset(&context, &dataset);
    ASSERT_TRUE(writer->Write(first));
    const uint64_t bytes = first.offset() + first.data().size();
    WaitUntil([&] { return GetUpload(first.sha256()).bytes() == bytes; });
    context.TryCancel();
    EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
    WaitUntil([&] { return !GetUpload(first.sha256()).in_use(); });
  }
  grpc::Status TryDownload(const std::string& name, uint64_t offset, std::string* bytes) {
    Context context;
    v1::DownloadDatasetRequest request;
    request.set_name(name);
    request.set_offset(offset);
    const auto reader = datasets_->DownloadDataset(&context, request);
    v1::DatasetChunk chunk;
    while (reader->Read(&chunk)) *bytes += chunk.data();
    return reader->Finish();
  }
  // The server may still count an upload for a moment after its caller has the answer.
  grpc::Status TryAdd(const std::vector<v1::UploadModelRequest>& messages, v1::Model* model) {
    grpc::Status status;
    WaitUntil([&] {
      Context context;
      const auto writer = models_->UploadModel(&context, model);
      for (const v1::UploadModelRequest& message : messages) {
        if (!writer->Write(message)) break;
      }
      writer->WritesDone();
      status = writer->Finish();
      return !absl::StrContains(status.error_message(), "too many uploads");
    });
    return status;
  }
};

TEST_F(UploadsTest, ContinueAlsoAfterARestartOfTheServer) {
  EXPECT_EQ(GetUpload().bytes(), 0u);
  Break(FirstMessage(0, "ada\ngr"));
  Break(FirstMessage(6, "ace\n"));
  Restart();
  EXPECT_EQ(GetUpload().bytes(), 10u);
  v1::Dataset dataset;
  const grpc::Status status = TryUpload({FirstMessage(10, "edsger\nbarbara\n")}, &dataset);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(dataset.documents(), 4u);
  EXPECT_EQ(GetUpload().bytes(), 0u);
}

TEST_F(UploadsTest, ContinueWhenTheServerStoppedThem) {
  Context context;
  v1::Dataset dataset;
  const auto writer = datasets_->UploadDataset(&context, &dataset);
  ASSERT_TRUE(writer->Write(FirstMessage(0, "ada\n")));
  WaitUntil([&] { return GetUpload().bytes() == 4; });
  EXPECT_TRUE(GetUpload().in_use());
  StopServer();
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  Restart();
  EXPECT_EQ(GetUpload().bytes(), 4u);
}

TEST_F(UploadsTest, RefuseOffsetsThatTheServerDoesntHave) {
  Break(FirstMessage(0, "ada\ngr"));
  for (const uint64_t offset : {uint64_t{1}, uint64_t{7}, ~uint64_t{0}}) {
    const grpc::Status status = TryUpload({FirstMessage(offset, "ace\nedsger\nbarbara\n")});
    EXPECT_EQ(status.error_code(), grpc::StatusCode::OUT_OF_RANGE);
    EXPECT_THAT(status.error_message(), HasSubstr("expected 6, the number of bytes"));
  }
  EXPECT_EQ(GetUpload().bytes(), 6u);
  EXPECT_TRUE(TryUpload({FirstMessage(0, kUploadedText)}).ok()) << "as clients that can't continue";
}

TEST_F(UploadsTest, KeepNothingOfARefusedOne) {
  v1::UploadDatasetRequest large;
  large.set_data(std::string((1 << 20) + 1, 'a'));
  EXPECT_EQ(TryUpload({FirstMessage(0, "ada\ngr"), large}).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(GetUpload().bytes(), 0u);

  Break(FirstMessage(0, "ADA\nGR"));
  EXPECT_EQ(TryUpload({FirstMessage(6, "ace\nedsger\nbarbara\n")}).error_code(),
            grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(GetUpload().bytes(), 0u);
}

TEST_F(UploadsTest, OfTheSameBytesPassSideBySide) {
  Context context;
  v1::Dataset dataset;
  const auto writer = datasets_->UploadDataset(&context, &dataset);
  // Each message keeps the file from being taken over for 5 s.
  ASSERT_TRUE(writer->Write(FirstMessage(0, "ada\n")));
  WaitUntil([&] { return GetUpload().bytes() == 4; });
  const grpc::Status refused = TryUpload({FirstMessage(4, "grace\nedsger\nbarbara\n")});
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("expected 0, to upload beside it. To continue,"));
  v1::UploadDatasetRequest more;
  more.set_data("grace\n");
  ASSERT_TRUE(writer->Write(more));
  WaitUntil([&] { return GetUpload().bytes() == 10; });
  v1::Dataset other;
  // The refused call may still count as one of the user's two.
  WaitUntil([&] { return TryUpload({FirstMessage(0, kUploadedText)}, &other).ok(); });
  more.set_data("edsger\nbarbara\n");
  ASSERT_TRUE(writer->Write(more));
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(dataset.name(), other.name());
  std::string bytes;
  EXPECT_TRUE(TryDownload(other.name(), 0, &bytes).ok());
  EXPECT_EQ(bytes, kUploadedText);
}

TEST_F(UploadsTest, BelongToTheirUser) {
  const std::string mia = SecretOf("mia", Role::kMember), rex = SecretOf("rex", Role::kReader);
  Break(FirstMessage(0, "ada\ngr"));
  v1::GetUploadRequest request;
  request.set_sha256(Sha256Hex(kUploadedText));
  const RawAnswer mias = RawCall(public_channel_, "/ablate.v1.Datasets/GetUpload",
                                 {request.SerializeAsString()}, {Bearer(mia)});
  EXPECT_TRUE(mias.status.ok());
  EXPECT_EQ(mias.messages.at(0), "");
  EXPECT_EQ(RawCall(public_channel_, "/ablate.v1.Datasets/GetUpload", {request.SerializeAsString()},
                    {Bearer(rex)})
                .status.error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  const RawAnswer continued =
      RawCall(public_channel_, "/ablate.v1.Datasets/UploadDataset",
              {FirstMessage(6, "ace\nedsger\nbarbara\n").SerializeAsString()}, {Bearer(mia)});
  EXPECT_EQ(continued.status.error_code(), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_THAT(continued.status.error_message(), HasSubstr("expected 0,"));
  EXPECT_EQ(GetUpload().bytes(), 6u);
}

TEST_F(UploadsTest, OfModelsContinueInTheMiddleOfAFile) {
  const std::vector<engine::NamedFile> files = FilesOf(engine::TinyGpt2());
  std::string all;
  std::vector<v1::UploadModelRequest> messages = MessagesOf("tiny", files);
  for (const engine::NamedFile& file : files) {
    all += file.bytes;
    messages[0].add_file_bytes(file.bytes.size());
  }
  messages[0].set_sha256(Sha256Hex(all));
  const auto kept = [&] { return GetUpload(messages[0].sha256()); };
  {
    Context context;
    v1::Model model;
    const auto writer = models_->UploadModel(&context, &model);
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(writer->Write(messages[i]));
    const uint64_t sent =
        messages[1].data().size() + messages[2].data().size() + messages[3].data().size();
    WaitUntil([&] { return kept().bytes() == sent; });
    context.TryCancel();
    writer->Finish();
    WaitUntil([&] { return !kept().in_use(); });
    Restart();
    messages[0].set_offset(sent);
  }
  v1::Model model;
  auto wrong = messages;
  wrong[0].set_file_bytes(0, 1);
  EXPECT_THAT(TryAdd(wrong, &model).error_message(), HasSubstr("file_bytes: the sum of the sizes"));
  wrong = messages;
  wrong[0].clear_file_bytes();
  EXPECT_THAT(TryAdd(wrong, &model).error_message(),
              HasSubstr("file_bytes: 0 sizes; expected one"));
  wrong = messages;
  wrong[0].clear_sha256();
  EXPECT_THAT(TryAdd(wrong, &model).error_message(), HasSubstr("offset: given without sha256"));
  messages.erase(messages.begin() + 1, messages.begin() + 4);
  const grpc::Status status = TryAdd(messages, &model);
  ASSERT_TRUE(status.ok()) << status.error_message();
  v1::Model whole;
  ASSERT_TRUE(TryAdd(MessagesOf("whole", files), &whole).ok());
  EXPECT_EQ(model.sha256(), whole.sha256());
  EXPECT_EQ(kept().bytes(), 0u);
}

TEST_F(UploadsTest, AreDownloadedFromAnyOffset) {
  const v1::Dataset dataset = Upload("names.txt", kUploadedText);
  for (const std::string& name : {dataset.name(), std::string("names.txt")}) {
    std::string bytes;
    EXPECT_TRUE(TryDownload(name, 4, &bytes).ok());
    EXPECT_EQ(bytes, std::string(kUploadedText).substr(4));
  }
  std::string none;
  EXPECT_EQ(TryDownload("names.txt", 100, &none).error_code(), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(TryDownload("other.txt", 0, &none).error_code(), grpc::StatusCode::NOT_FOUND);
  std::filesystem::resize_file(folder() + "/blobs/" + dataset.sha256(), 3);
  EXPECT_EQ(TryDownload("names.txt", 0, &none).error_code(), grpc::StatusCode::DATA_LOSS);
}

}  // namespace
}  // namespace ablate::service
