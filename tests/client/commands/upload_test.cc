// Tests that `ablate data add` and `ablate model add` continue an upload that broke.
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "client/context.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A server that keeps the bytes of uploads that break.
class UploadTest : public ClientTest {
 protected:
  UploadTest() {
    answers_.dataset = [](const v1::GetDatasetRequest&, v1::Dataset*) {
      return absl::NotFoundError("no such data set");
    };
    answers_.get_upload = [this](const v1::GetUploadRequest& request, v1::PartialUpload* upload) {
      EXPECT_EQ(request.sha256(), Sha256Hex(text_));
      upload->set_bytes(kept_.size());
      upload->set_in_use(in_use_-- > 0);
      return absl::OkStatus();
    };
    answers_.upload = [this](const std::vector<v1::UploadDatasetRequest>& messages,
                             v1::Dataset* dataset) {
      dataset->set_name("datasets/text-1a2b3c");
      std::string sent;
      for (const auto& message : messages) sent += message.data();
      return Take(messages[0].offset(), sent);
    };
    answers_.upload_model = [this](const std::vector<v1::UploadModelRequest>& messages,
                                   v1::Model* model) {
      model->set_name("models/tiny");
      first_ = messages[0];
      std::string sent;
      for (const auto& message : messages) {
        sent += message.data();
        if (!message.data().empty()) sent += absl::StrCat("@", message.file(), " ");
      }
      sent_files_.push_back(sent);
      return refusals_.empty() ? absl::OkStatus() : NextRefusal();
    };
    StartServer();
  }

  absl::Status NextRefusal() {
    const absl::Status refusal = refusals_.front();
    refusals_.erase(refusals_.begin());
    return refusal;
  }
  // Takes the bytes of an upload, or keeps `step_` of them.
  absl::Status Take(uint64_t offset, const std::string& sent) {
    offsets_.push_back(offset);
    if (!refusals_.empty()) {
      kept_ += sent.substr(0, step_);
      return NextRefusal();
    }
    EXPECT_EQ(kept_.substr(0, offset) + sent, text_);
    return absl::OkStatus();
  }
  Outcome Add() { return Run({"data", "add", Write("text", text_)}); }

  const std::string text_ = "0123456789";
  std::string kept_;
  int in_use_ = 0;   // answers
  size_t step_ = 3;  // bytes that an upload brings before it breaks
  std::vector<absl::Status> refusals_;
  std::vector<uint64_t> offsets_;
  v1::UploadModelRequest first_;
  std::vector<std::string> sent_files_;
};

TEST_F(UploadTest, ContinuesWhereAnUploadBroke) {
  refusals_ = {absl::UnavailableError("cut"), absl::UnavailableError("cut")};
  const Outcome outcome = Add();
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_THAT(offsets_, ElementsAre(0, 3, 6));
  EXPECT_THAT(outcome.err,
              HasSubstr("note: continuing the upload of " + folder_ + "/text at 3 B of 10 B\n"));
  EXPECT_THAT(outcome.err, HasSubstr("text at 6 B of 10 B\n"));
}

TEST_F(UploadTest, ContinuesAnUploadOfAnEarlierCommand) {
  kept_ = "0123";
  EXPECT_EQ(Add().code, kSuccess);
  EXPECT_THAT(offsets_, ElementsAre(4));
}

TEST_F(UploadTest, GivesUpWhenTriesBringNothing) {
  step_ = 0;
  refusals_.assign(20, absl::UnavailableError("cut"));
  const Outcome outcome = Add();
  EXPECT_EQ(outcome.code, kNoServer);
  EXPECT_EQ(offsets_.size(), 16u);
  EXPECT_EQ(slept_, absl::Seconds(95.5));
  EXPECT_THAT(outcome.err, HasSubstr("for a day: run the same command again to continue\n"));
}

TEST_F(UploadTest, AsksAgainIfTheServerDoesntAnswerAfterABreak) {
  refusals_ = {absl::UnavailableError("cut")};
  answers_.get_upload = [this, asked = 0](const v1::GetUploadRequest&,
                                          v1::PartialUpload* upload) mutable {
    upload->set_bytes(kept_.size());
    return ++asked == 2 ? absl::DeadlineExceededError("late") : absl::OkStatus();
  };
  EXPECT_EQ(Add().code, kSuccess);
  EXPECT_THAT(offsets_, ElementsAre(0, 3));
}

TEST_F(UploadTest, DoesntRepeatARefusal) {
  refusals_ = {absl::InvalidArgumentError("no text")};
  EXPECT_EQ(Add().code, kFailure);
  EXPECT_THAT(offsets_, ElementsAre(0));
}

TEST_F(UploadTest, BeginsAgainIfTheServersBytesAreDamaged) {
  kept_ = "xyz";
  step_ = 0;
  refusals_ = {absl::DataLossError("another hash")};
  answers_.get_upload = [this](const v1::GetUploadRequest&, v1::PartialUpload* upload) {
    upload->set_bytes(offsets_.empty() ? 3 : 0);
    return absl::OkStatus();
  };
  EXPECT_EQ(Add().code, kSuccess);
  EXPECT_THAT(offsets_, ElementsAre(3, 0));
}

TEST_F(UploadTest, WaitsForItsOwnBrokenUploadOnly) {
  in_use_ = 1;
  kept_ = "012";
  EXPECT_EQ(Add().code, kSuccess);
  EXPECT_THAT(offsets_, ElementsAre(0));  // beside the other one
  EXPECT_EQ(slept_, absl::ZeroDuration());

  offsets_.clear();
  kept_.clear();
  refusals_ = {absl::UnavailableError("cut")};
  answers_.get_upload = [this, asked = 0](const v1::GetUploadRequest&,
                                          v1::PartialUpload* upload) mutable {
    upload->set_bytes(kept_.size());
    upload->set_in_use(++asked == 2 || asked == 3);
    return absl::OkStatus();
  };
  EXPECT_EQ(Add().code, kSuccess);
  EXPECT_THAT(offsets_, ElementsAre(0, 3));
}

TEST_F(UploadTest, SendsEverythingOnceToAServerThatKeepsNothing) {
  answers_.get_upload = nullptr;
  refusals_ = {absl::UnavailableError("cut")};
  EXPECT_EQ(Add().code, kNoServer);
  EXPECT_THAT(offsets_, ElementsAre(0));
}

TEST_F(UploadTest, ContinuesAModelInTheMiddleOfItsFiles) {
  std::filesystem::create_directory(folder_ + "/model");
  Write("model/config.json", "0123");
  Write("model/model.safetensors", "456789");
  const std::vector<std::string> add = {"model", "add", folder_ + "/model", "--name", "tiny"};
  refusals_ = {absl::UnavailableError("cut")};
  answers_.get_upload = [this](const v1::GetUploadRequest& request, v1::PartialUpload* upload) {
    EXPECT_EQ(request.sha256(), Sha256Hex(text_));
    upload->set_bytes(sent_files_.empty() ? 0 : 6);
    return absl::OkStatus();
  };
  const Outcome outcome = Run(add);
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_THAT(sent_files_, ElementsAre("0123@0 456789@1 ", "6789@1 "));
  EXPECT_EQ(first_.offset(), 6u);
  EXPECT_EQ(first_.sha256(), Sha256Hex(text_));
  EXPECT_THAT(first_.file_bytes(), ElementsAre(4, 6));
  EXPECT_THAT(outcome.err, HasSubstr("/model at 6 B of 10 B"));

  sent_files_.assign(1, "");
  answers_.get_upload = [](const v1::GetUploadRequest&, v1::PartialUpload* upload) {
    upload->set_bytes(10);
    return absl::OkStatus();
  };
  EXPECT_EQ(Run(add).code, kSuccess);
  EXPECT_THAT(sent_files_.back(), IsEmpty());
}

}  // namespace
}  // namespace ablate::client
